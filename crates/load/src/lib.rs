//! Defines load: operations, their pace, their keys and values, and the histograms that record them.
//!
//! Nothing in this crate depends on a store, a socket, a thread or a clock. Every operation is a pure function of
//! (seed, index), every due time is arithmetic on the index, and every histogram merges exactly. A run can therefore be
//! replayed, split into segments that do not communicate, and tested in simulated time.

pub mod core;
pub mod divisor;
pub mod fnv;
pub mod histogram;
mod integrity;
pub mod java;
pub mod keys;
pub mod kind;
pub mod kind_sequence;
pub mod ledger;
pub mod operation;
pub mod pace;
pub mod proportions;
pub mod random;
pub mod refusal;
pub mod row;
pub mod segment;
pub mod status;
pub mod text_pool;
pub mod time_series;
pub mod value_length;
pub mod version;
pub mod zipf;

pub use kind::{Kind, StepId};
pub use operation::{Check, Operation, RecordWorkload, Selection, Workload};
pub use refusal::Refusal;
pub use row::{Fields, Projection, Row};
pub use segment::Segment;
pub use status::Status;
