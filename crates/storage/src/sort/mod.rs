//! TeraGen, TeraSort and TeraValidate in stages.
//!
//! Each stage consists of one call of [`task::SortTask::run`] for each of n segments. Segments exchange data only
//! through files, and the caller is the barrier between stages. Chunks of rows are sorted in memory and written as
//! runs, and the runs are merged into parts. If all rows fit into memory, the parts are written directly from memory.

pub mod checksum;
pub mod chunk;
pub mod disk;
pub mod exchange;
pub mod files;
pub mod input;
pub mod job;
pub mod memory;
pub mod merge;
pub mod parallel;
pub mod progress;
pub mod read_ahead;
pub mod rows;
pub mod runs;
pub mod scratch;
pub mod splitters;
pub mod spool;
pub mod stage;
pub mod task;
pub mod tournament;
pub mod validate;

use loadstone_session::EngineError;
use thiserror::Error;

use crate::fs::{FsError, FsErrorKind};

/// The reason why a sort cannot continue, as one line with a hint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SortError {
    /// One line, without a full stop.
    pub message: String,
    /// A remedy.
    pub hint: Option<String>,
    /// Whether the command was wrong, in which case nothing was done.
    pub usage: bool,
    /// Whether the stage was stopped by request.
    pub stopped: bool,
    /// Whether servers were lost while a file was written. Another attempt may use different servers.
    pub rewrite: bool,
}

impl SortError {
    /// A failure.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, usage: false, stopped: false, rewrite: false }
    }

    /// A usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { usage: true, ..Self::new(message) }
    }

    /// The error that a stage returns when it was stopped by request.
    pub fn stop() -> Self {
        Self { stopped: true, ..Self::new("stopped") }
    }

    /// Adds a hint to the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<FsError> for SortError {
    fn from(error: FsError) -> Self {
        let message = error.to_string();
        let own = match error.kind {
            FsErrorKind::NoSpace => {
                "free some space: a sort in memory needs room for its output, an external one for twice its input"
            }
            FsErrorKind::NotFound => "check the path",
            // All attempts to write the file again have failed as well.
            FsErrorKind::Rewound => "a data node was lost while it was written to: run the job again",
            _ => return Self { hint: error.hint, ..Self::new(message) },
        };
        Self::new(message).hint(own)
    }
}

impl From<EngineError> for SortError {
    fn from(error: EngineError) -> Self {
        Self { usage: error.is_usage(), hint: error.hint, ..Self::new(error.message) }
    }
}

impl From<SortError> for EngineError {
    fn from(error: SortError) -> Self {
        let own = if error.usage { Self::usage } else { Self::failed };
        Self { hint: error.hint, ..own(error.message) }
    }
}
