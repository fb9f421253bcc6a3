//! The steps of YCSB's workloads.

/// A step that is timed: its place in the list of names that [`Workload::steps`](crate::Workload::steps) gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u16);

/// The steps of YCSB's workloads. The names are YCSB's metric names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Reads one record.
    Read,
    /// Merges some fields into a record.
    Update,
    /// Writes a whole new record.
    Insert,
    /// Reads records in key order from a start key.
    Scan,
    /// Removes a record.
    Delete,
    /// Reads a record, then updates it; timed as one, and its two halves as themselves.
    ReadModifyWrite,
    /// Compares what was read with what must stand there (`dataintegrity`).
    Verify,
    /// Closes a session.
    Cleanup,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 8;
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Read,
        Self::Update,
        Self::Insert,
        Self::Scan,
        Self::Delete,
        Self::ReadModifyWrite,
        Self::Verify,
        Self::Cleanup,
    ];

    /// The names of all, by [`Kind::step`].
    pub const NAMES: [&'static str; Self::COUNT] =
        ["READ", "UPDATE", "INSERT", "SCAN", "DELETE", "READ-MODIFY-WRITE", "VERIFY", "CLEANUP"];

    /// Its number among the steps of a workload that names them by [`Kind::NAMES`].
    #[inline]
    pub const fn step(self) -> StepId {
        StepId(self as u16)
    }

    /// YCSB's name of the metric.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
