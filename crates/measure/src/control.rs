//! The reasons why a trial ends: external commands and failures.

use std::sync::mpsc::Receiver;

use loadstone_load::Status;
use thiserror::Error;

use crate::clock::unix_ns;

/// An external command to the conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Start the load at this time, ns since the Unix epoch.
    StartAt(u64),
    /// Stop the trial now; its end is reported as `stopped`.
    Stop(Stop),
    /// The lease was lost, for this reason; the end of the trial is reported as `lease`.
    LeaseLost(String),
    /// No more control lines can arrive. Without a lease, this ends only a trial that is still waiting for its start.
    StdinClosed,
}

impl Control {
    /// The end that this command requests, if any.
    pub fn find_end(self) -> Option<End> {
        match self {
            Self::Stop(who) => Some(End::Stopped(who)),
            Self::LeaseLost(why) => Some(End::Lease(why)),
            Self::StartAt(_) | Self::StdinClosed => None,
        }
    }
}

/// Waits for the request to start. Returns the time until the start, ns.
pub fn receive_start(controls: &Receiver<Control>) -> Result<u64, End> {
    match controls.recv() {
        Ok(Control::StartAt(at_ns)) => {
            let now_ns = unix_ns();
            let late = || End::Failed(TrialFailure::LateStart { late_ns: now_ns - at_ns });
            at_ns.checked_sub(now_ns).ok_or_else(late)
        }
        other => Err(other.ok().and_then(Control::find_end).unwrap_or(End::Failed(TrialFailure::NoStart))),
    }
}

/// The origin of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A signal, such as Ctrl-C.
    Signal,
    /// A control line.
    ControlLine,
}

impl Stop {
    /// The reason as stated in a summary.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Signal => "interrupted",
            Self::ControlLine => "control line",
        }
    }
}

/// The reason why a trial could not continue.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrialFailure {
    /// An operation failed after all its attempts, although every operation must succeed.
    #[error("{operation} of {key} failed with {}: {message}", status.name())]
    Operation {
        /// The name of the operation, such as `insert`.
        operation: &'static str,
        key: String,
        /// The status of the last attempt.
        status: Status,
        message: String,
        /// Number of attempts that failed; 0 if the answer was wrong.
        attempts: u32,
    },
    /// A client's thread panicked, with this message.
    #[error("internal error: a client thread panicked: {0}")]
    ClientPanicked(String),
    /// A stage of a sort failed for this reason.
    #[error("{0}")]
    Sort(String),
    /// The store can no longer be used for this reason.
    #[error("{0}")]
    StoreLost(String),
    /// The trial waited for a start that can no longer be requested.
    #[error("stdin was closed before start_at")]
    NoStart,
    /// The requested start was in the past.
    #[error("start_at is {:.3} ms in the past: give the load generators more time to start", *.late_ns as f64 / 1e6)]
    LateStart {
        /// Lateness of the request, ns.
        late_ns: u64,
    },
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The trial reached its time limit or its operation limit, or its figures became precise enough.
    Done,
    /// A control line or a signal stopped the trial.
    Stopped(Stop),
    /// The lease was lost, for this reason.
    Lease(String),
    /// The trial could not continue.
    Failed(TrialFailure),
}

impl End {
    /// The name of this end in a summary, and the reason if the trial did not end normally.
    pub fn name_and_reason(&self) -> (&'static str, Option<String>) {
        match self {
            Self::Done => ("done", None),
            Self::Stopped(who) => ("stopped", Some(who.reason().to_owned())),
            Self::Lease(why) => ("lease", Some(why.clone())),
            Self::Failed(why) => ("failed", Some(why.to_string())),
        }
    }

    /// The exit code, without considering failed operations.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped(Stop::Signal) => 130,
            Self::Done | Self::Stopped(Stop::ControlLine) => 0,
            Self::Lease(_) | Self::Failed(_) => 1,
        }
    }
}
