//! The data that the engine and the lab exchange, and the output of all command lines.

pub mod error;
pub mod event;
pub mod histogram;
pub mod merge_events;
pub mod merge_rule;
pub mod output;
pub mod sink;
pub mod spec;
pub mod suggest;

pub use spec::work::files;
