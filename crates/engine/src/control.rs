//! What a trial is told from outside, and how it ends.

/// The reason of an end by signal.
pub const INTERRUPTED: &str = "interrupted";

/// What tells the conductor from outside what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Start the load at this Unix time, ns.
    StartAt(u64),
    /// End it now: `stopped`.
    Stop(String),
    /// The lab went away: `lease`.
    LeaseLost(String),
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By its own limits.
    Done,
    /// By a control line or a signal.
    Stopped(String),
    /// Because the lab went away.
    Lease(String),
    /// Because it could not go on.
    Failed(String),
}

impl End {
    /// The exit code, failed operations aside.
    pub fn code(&self) -> u8 {
        match self {
            Self::Stopped(why) if why == INTERRUPTED => 130,
            Self::Done | Self::Stopped(_) => 0,
            Self::Lease(_) | Self::Failed(_) => 1,
        }
    }
}
