//! Tests of the HSE store with a fake libhse, or with a real libhse (see `hse_fake`).

mod bench;
mod faults;
#[path = "../hse_fake/mod.rs"]
mod hse_fake;
mod opening;
mod records;
