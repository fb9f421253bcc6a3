//! The steps of YCSB's workloads.

/// A timed step, as its index in the names of [`Workload::steps`](crate::Workload::steps).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u16);

/// The kinds of operation in YCSB's workloads. The names are YCSB's metric names.
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
    /// Reads a record, then updates it. It is timed as one operation, and each half is also timed separately.
    ReadModifyWrite,
    /// Compares the value read with the expected value (`dataintegrity`).
    Verify,
    /// Closes a session.
    Cleanup,
}

impl Kind {
    /// The number of kinds.
    pub const COUNT: usize = 8;
    /// Every kind, in numerical order.
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

    /// The names of all kinds, indexed by [`Kind::step`].
    pub const NAMES: [&'static str; Self::COUNT] =
        ["READ", "UPDATE", "INSERT", "SCAN", "DELETE", "READ-MODIFY-WRITE", "VERIFY", "CLEANUP"];

    /// The step of this kind in a workload that names its steps by [`Kind::NAMES`].
    #[inline]
    pub const fn step(self) -> StepId {
        StepId(self as u16)
    }

    /// YCSB's name of the metric.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}
