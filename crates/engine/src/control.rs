//! What ends a trial: commands from outside, and failures.

use loadstone_load::Status;
use thiserror::Error;

/// A command to the conductor from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Start the load at this Unix time, ns.
    StartAt(u64),
    /// End it now: `stopped`.
    Stop(Stop),
    /// The lab went away: `lease`.
    LeaseLost(String),
}

/// Who stopped a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal, such as Ctrl-C.
    Signal,
    /// A control line.
    ControlLine,
}

impl Stop {
    /// The reason as a summary gives it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Signal => "interrupted",
            Self::ControlLine => "control line",
        }
    }
}

/// Why a trial could not go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrialFailure {
    /// An insert failed for good, and the load must be complete.
    #[error("insert of {key} failed with {}: {message}", status.name())]
    Insert {
        key: String,
        /// How it failed.
        status: Status,
        message: String,
    },
    /// A client's thread panicked, with this message.
    #[error("internal error: a client thread panicked: {0}")]
    ClientPanicked(String),
    /// A stage of a sort failed, for this reason.
    #[error("{0}")]
    Sort(String),
    /// The store cannot be used any more, for this reason.
    #[error("{0}")]
    StoreLost(String),
    /// The start was asked for too late.
    #[error("start_at is {:.3} ms in the past: give engines more time to start together", *.late_ns as f64 / 1e6)]
    LateStart {
        /// By how much, ns.
        late_ns: u64,
    },
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By its own limits.
    Done,
    /// By a control line or a signal.
    Stopped(Stop),
    /// Because the lab went away, for this reason.
    Lease(String),
    /// Because it could not go on.
    Failed(TrialFailure),
}

impl End {
    /// As a summary tells it, with the reason if it did not end by itself.
    pub fn told(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Done => ("done", None),
            Self::Stopped(who) => ("stopped", Some(who.reason().to_owned())),
            Self::Lease(why) => ("lease", Some(why.clone())),
            Self::Failed(why) => ("failed", Some(why.to_string())),
        }
    }

    /// The exit code, failed operations aside.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped(Stop::Signal) => 130,
            Self::Done | Self::Stopped(Stop::ControlLine) => 0,
            Self::Lease(_) | Self::Failed(_) => 1,
        }
    }
}
