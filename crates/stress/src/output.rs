//! What the tool prints.

mod number;

pub use number::format_decimals;
