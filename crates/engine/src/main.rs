//! engine
fn main() {}
