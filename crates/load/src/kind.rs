//! The steps of YCSB's workloads.

/// A timed step, as its index in the names of [`Workload::step_names`](crate::Workload::step_names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub u16);

crate::named_variants! {
    /// The kinds of operation in YCSB's workloads. The names are YCSB's metric names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Kind {
        /// Reads one record.
        Read = "READ",
        /// Merges some fields into a record.
        Update = "UPDATE",
        /// Writes a whole new record.
        Insert = "INSERT",
        /// Reads records in key order from a start key.
        Scan = "SCAN",
        /// Removes a record.
        Delete = "DELETE",
        /// Reads a record, then updates it. It is timed as one operation, and each half is also timed separately.
        ReadModifyWrite = "READ-MODIFY-WRITE",
        /// Compares the value read with the expected value (`dataintegrity`).
        Verify = "VERIFY",
        /// Closes a session.
        Cleanup = "CLEANUP",
    }
}

impl Kind {
    /// The step of this kind in a workload that names its steps by [`Kind::NAMES`].
    #[inline]
    pub const fn step(self) -> StepId {
        StepId(self as u16)
    }
}
