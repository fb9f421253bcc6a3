//! What goes wrong with a store: when it is opened ([`StoreError`]) and in an operation ([`Failure`]).

use loadstone_load::Status;
use thiserror::Error;

/// A store that cannot be opened or closed. `message` names the thing and the place, `hint` the next step.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct StoreError {
    /// One line, without a full stop.
    pub message: String,
    /// One line, or nothing to say.
    pub hint: Option<String>,
    /// Whether the command was wrong (exit 2), and not the world (exit 1).
    pub usage: bool,
}

impl StoreError {
    /// The world is not as the command needs it.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, usage: false }
    }

    /// The command asks for something that cannot be.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, usage: true }
    }

    /// The same with a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {message}", status.name())]
pub struct Failure {
    /// How it is counted.
    pub status: Status,
    /// The store's own words.
    pub message: String,
    /// Of a write: whether it was refused for certain, so that nothing was written and nothing will be.
    pub refused: bool,
}

impl Failure {
    /// A failure with its status. A write that fails with it may have been done.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), refused: false }
    }

    /// The same where it is certain that nothing was written, and nothing will be.
    #[must_use]
    pub fn refusal(self) -> Self {
        Self { refused: true, ..self }
    }

    /// The same where something may have been written, even if its last step was refused.
    #[must_use]
    pub fn in_doubt(self) -> Self {
        Self { refused: false, ..self }
    }

    /// From an engine's error text: a full device is told apart, because every operation after it fails too.
    pub fn from_text(message: impl Into<String>) -> Self {
        let message = message.into();
        let full = ["No space left on device", "MDB_MAP_FULL", "Disk quota exceeded", "os error 28", "StorageFull"];
        let status = if full.iter().any(|text| message.contains(text)) { Status::NoSpace } else { Status::Error };
        Self::new(status, message)
    }
}
