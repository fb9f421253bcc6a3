//! The core of the measurement, which depends on no store and no front end.
//!
//! A trial ([`trial::run_trial`]) creates its clients through a [`crew::Target`], drives them on [`worker_threads`], and is
//! monitored by its [`conductor`]. The timing loop is in [`client`].

#![allow(missing_docs, reason = "fields whose names say everything")]

pub mod actor;
pub mod alarm;
pub mod borders;
pub mod calibrate;
pub mod client;
pub mod clock;
pub mod conductor;
pub mod control;
pub mod crew;
pub mod diagnostics;
pub mod event_printer;
pub mod failures;
pub mod lateness;
pub mod limits;
pub mod observer;
pub mod pulse;
pub mod recorder;
pub mod scheduler;
pub mod sink;
pub mod task;
pub mod trial;
pub mod tsc;
pub mod usage;
pub mod window;
pub mod worker_threads;
