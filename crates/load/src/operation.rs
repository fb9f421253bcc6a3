//! Defines workloads: operations as a pure function of their index, and their timed steps.
//!
//! [`Operation`] is for YCSB's records; workloads with other operations have separate types.

use crate::kind::{Kind, StepId};
use crate::kind_sequence::DeckCursor;
use crate::row::{Projection, Row};

/// The fields that an operation reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All fields (YCSB passes `null`).
    #[default]
    All,
    /// One field, by its index in the workload's list of field names.
    One(usize),
}

impl Selection {
    /// The names of the selected fields, from the workload's list.
    #[inline]
    pub fn project_fields(self, names: &[String]) -> Projection<'_> {
        match self {
            Self::All => Projection::All,
            Self::One(i) => names.get(i).map_or(Projection::All, |name| Projection::One(name.as_bytes())),
        }
    }
}

/// One operation on YCSB's records. The workload fills it, an actor performs it, and the next operation overwrites it.
/// No memory is allocated once the buffers have grown to the size that the workload needs.
#[derive(Debug)]
pub struct Operation {
    /// The operation's number in the whole trial.
    pub index: u64,
    /// The kind of operation.
    pub kind: Kind,
    /// The text of the key.
    pub key: Vec<u8>,
    /// The number of the record with this key.
    pub record: u64,
    /// The fields to write, for inserts, updates and read-modify-writes.
    pub row: Row,
    /// The fields to read, for reads, scans and read-modify-writes.
    pub selection: Selection,
    /// Number of records that a scan reads.
    pub scan_count: usize,
    /// The position of the last operation in the sequence of kinds. It is cached because the next position is usually
    /// near.
    pub(crate) cursor: DeckCursor,
}

impl Default for Operation {
    fn default() -> Self {
        Self {
            index: 0,
            kind: Kind::Read,
            key: Vec::with_capacity(32),
            record: 0,
            row: Row::default(),
            selection: Selection::All,
            scan_count: 0,
            cursor: DeckCursor::default(),
        }
    }
}

/// Operations as a pure function of their index.
pub trait Workload: Send + Sync {
    /// The type of an operation, with reused buffers.
    type Operation: Default;

    /// Names of the timed steps, by [`StepId`].
    fn step_names(&self) -> &'static [&'static str];

    /// Fills `operation` with the operation at `index`.
    fn fill_operation(&self, index: u64, operation: &mut Self::Operation);

    /// The step under which the whole operation at `index` is counted.
    fn step_of(&self, index: u64) -> StepId;

    /// The total number of operations; `None` if unlimited.
    fn operation_count(&self) -> Option<u64>;

    /// Whether operations may begin in any order, because none of them depends on how many operations began before it.
    fn any_order(&self) -> bool {
        false
    }

    /// Number of consecutive operations that belong together: one client performs them in order, and they are in one
    /// segment.
    fn unit(&self) -> u64 {
        1
    }

    /// Number of bytes that an operation transfers; 0 if its cost does not depend on bytes.
    fn operation_bytes(&self) -> u64 {
        0
    }
}

/// A workload on YCSB's records, including the functions that check a store's answers.
pub trait RecordWorkload: Workload<Operation = Operation> {
    /// Names of the fields, for [`Selection::One`].
    fn field_names(&self) -> &[String];

    /// Whether reads are checked. Called once per read, before the clock is read for the check.
    fn has_read_checks(&self) -> bool {
        false
    }

    /// Compares the fields read with the expected fields; `None` if this workload does not check reads.
    fn verify_read(&self, _operation: &Operation, _read: &Row) -> Option<Check> {
        None
    }

    /// Whether the operation at `index` compares whole values, rather than only their versions.
    fn is_value_compared(&self, _index: u64) -> bool {
        false
    }

    /// The number (from 0) of the run-phase insert that writes a record; `None` for a loaded record.
    fn insert_number(&self, _record: u64) -> Option<u64> {
        None
    }

    /// The index of the operation that performs the insert with the given number.
    fn index_of_insert(&self, _number: u64) -> Option<u64> {
        None
    }

    /// The number of the write at `index` among all writes of the trial, if writes are counted.
    fn write_number(&self, _index: u64) -> Option<u64> {
        None
    }

    /// The index of the operation that deletes a record, if there is one.
    fn index_of_delete(&self, _record: u64) -> Option<u64> {
        None
    }
}

/// The result of comparing a read with the expected fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every field is as expected.
    Right,
    /// A field differs.
    Wrong,
    /// Nothing was read.
    Empty,
}
