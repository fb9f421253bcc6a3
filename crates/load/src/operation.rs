//! What a workload is: operations as a pure function of their index, and the steps that are timed in them.
//!
//! [`Operation`] is that of YCSB's records; a workload with other operations has a separate type.

use crate::kind::{Kind, StepId};
use crate::kind_sequence::Cursor;
use crate::row::{Row, Wanted};

/// Which fields of a record are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All of them (YCSB passes `null`).
    #[default]
    All,
    /// One, by its place in the workload's list of field names.
    One(usize),
}

impl Selection {
    /// As names, given the workload's list.
    #[inline]
    pub fn wanted(self, names: &[String]) -> Wanted<'_> {
        match self {
            Self::All => Wanted::All,
            Self::One(i) => names.get(i).map_or(Wanted::All, |name| Wanted::One(name.as_bytes())),
        }
    }
}

/// One operation on YCSB's records. The workload fills it, an actor performs it, the next one overwrites it: no allocation once its
/// buffers have grown to the workload's size.
#[derive(Debug)]
pub struct Operation {
    /// Its number in the whole trial.
    pub index: u64,
    /// What is done.
    pub kind: Kind,
    /// The key's text.
    pub key: Vec<u8>,
    /// The record number behind the key.
    pub record: u64,
    /// The fields to write, for insert, update and read-modify-write.
    pub row: Row,
    /// The fields to read, for read, scan and read-modify-write.
    pub selection: Selection,
    /// How many records a scan wants.
    pub scan_count: usize,
    /// The position of the last operation in the sequence of kinds: a cache, as the next one is near it.
    pub(crate) cursor: Cursor,
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
            cursor: Cursor::default(),
        }
    }
}

/// Operations as a pure function of their index.
pub trait Workload: Send + Sync {
    /// What an operation is, in buffers that are used again for the next one.
    type Operation: Default;

    /// Names of the steps that are timed, by [`StepId`].
    fn steps(&self) -> &'static [&'static str];

    /// Fills `operation` with the one at `index`.
    fn fill(&self, index: u64, operation: &mut Self::Operation);

    /// The step under which the whole operation at `index` is counted.
    fn step_of(&self, index: u64) -> StepId;

    /// The total number of operations; `None`: unlimited.
    fn operations(&self) -> Option<u64>;

    /// Whether operations may be begun in any order: none depends on how many of the earlier ones have begun.
    fn any_order(&self) -> bool {
        false
    }

    /// How many operations belong together: one client performs them, in their order, and a segment has all of them.
    fn unit(&self) -> u64 {
        1
    }

    /// Bytes that an operation moves, where that is what it costs.
    fn operation_bytes(&self) -> u64 {
        0
    }
}

/// A workload on YCSB's records: what is needed to judge a store's answers.
pub trait RecordWorkload: Workload<Operation = Operation> {
    /// Names of the fields, for [`Selection::One`].
    fn field_names(&self) -> &[String];

    /// Whether reads are checked at all; asked once per read, before the clock is read for the check.
    fn verifies(&self) -> bool {
        false
    }

    /// Compares what was read with what must stand there; `None` when this workload does not check.
    fn verify(&self, _operation: &Operation, _read: &Row) -> Option<Check> {
        None
    }

    /// Whether the values that the operation at `index` reads are compared as a whole, and not by their versions alone.
    fn compares(&self, _index: u64) -> bool {
        false
    }

    /// The number (from 0) of the run-phase insert that writes a record; `None` for a loaded record.
    fn insert_number(&self, _record: u64) -> Option<u64> {
        None
    }

    /// The index of the operation that performs the insert of this number.
    fn index_of_insert(&self, _number: u64) -> Option<u64> {
        None
    }

    /// The number of the write at `index` among all writes of the trial, where they are counted.
    fn write_number(&self, _index: u64) -> Option<u64> {
        None
    }

    /// The index of the operation that deletes a record, if one is to.
    fn index_of_delete(&self, _record: u64) -> Option<u64> {
        None
    }
}

/// The outcome of comparing what was read with what must stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Every field is as it must be.
    Right,
    /// A field differs.
    Wrong,
    /// Nothing was read.
    Empty,
}
