//! The HSE store with a fake libhse, or with a real one (see `hse_fake`).

mod bench;
mod faults;
#[path = "../hse_fake/mod.rs"]
mod hse_fake;
mod opening;
mod records;
