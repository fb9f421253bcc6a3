//! The error message when the engine cannot go on, and its exit code.

use loadstone_stores::StoreError;
use thiserror::Error;

/// An error for the user: one line, perhaps a hint, and an exit code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct EngineError {
    /// One line, without a full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// 1 for a failed run, 2 for bad usage.
    pub exit: u8,
}

impl EngineError {
    /// The run failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: 1 }
    }

    /// The command was wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: 2 }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self { message: error.message, hint: error.hint, exit: if error.usage { 2 } else { 1 } }
    }
}
