//! The HSE store over a fake libhse, or over a real one (see `hse_fake`).

mod bench;
mod faults;
#[path = "../hse_fake/mod.rs"]
mod hse_fake;
mod opening;
mod records;
