//! Finds lost writes by comparing the records after the run with the ledgers.
//!
//! The first pass over the writes stores, for each history, the acknowledged write that was sent last, in eight bytes.
//! A history belongs to a record, or to a field if each write writes one field. A value that is read back names its
//! write. The value is stale if its write had finished before the last acknowledged write was sent. If the two writes
//! overlapped, the value is correct as far as can be known. A second pass determines the fate of each acknowledged
//! write.

use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{Evidence, Write, WriteSpan, WriteState, Writes};
use crate::version::{Phase, Version};

/// The value of a field that was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// No record, or a record without this field.
    Absent,
    /// A value with a wrong check, or whose bytes after the version differ from the bytes that its write wrote.
    Unreadable,
    /// A value that the given write wrote.
    Of(Version),
    /// A value of another run with the same seed.
    OtherRun,
}

/// The conclusion from the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The value of the last acknowledged write.
    Fine,
    /// The value of a write that may have overlapped the last acknowledged write: either of them may have been the
    /// later one.
    Overlapped,
    /// The value of a write with an unknown outcome, or with an attempt that may have been applied late.
    CameTrue,
    /// An acknowledged write is missing. The index is the index of the missing write that was sent last; earlier writes
    /// may also be missing (see [`Judge::judge_writes`]). `None`: the loaded value is missing.
    Lost(Option<u64>),
    /// The value of a write that was certainly refused or never sent.
    Phantom(u64),
    /// A value that no write of this trial wrote.
    Corrupt,
    /// The record has no value, this run has no acknowledged write to it, and the load may never have written it.
    NotLoaded,
    /// A value of another run, in a history without an acknowledged write of this run.
    OtherRun,
    /// The ledger had no space for the required evidence.
    Unsure,
}

/// The fate of an acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The write is present, or was replaced by a write that was certainly sent after this write had finished.
    Proven,
    /// The record has an older state, which was complete before this write was sent.
    Lost,
    /// The order of this write and the write that was read back is unknown, or no known write made the value.
    Undecided,
}

/// An acknowledged write and its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// The index of the write.
    pub index: u64,
    /// The bounds of the write's time.
    pub span: WriteSpan,
    /// The fate according to the reading on which the findings are based.
    pub fate: Fate,
    /// Whether the write is missing from an earlier reading at the workload's level.
    pub missed: bool,
}

/// For each history of a range of records, the write whose value was read, in eight bytes.
#[derive(Clone, Debug)]
pub struct Standings(Vec<u64>);

/// Special values of [`Standings`]: nothing was read; the state before the run was read; there is no evidence. Larger
/// values represent indices of writes.
const UNREAD: u64 = 0;
const BEFORE_RUN: u64 = 1;
const UNDECIDED: u64 = 2;
const FIRST: u64 = 3;

/// The write whose value a history returned, and the latest time at which it can have finished.
#[derive(Clone, Copy)]
struct Standing {
    index: u64,
    done: u64,
    maybe: bool,
}

/// The state before the run.
const BEFORE: Standing = Standing { index: u64::MAX, done: 0, maybe: false };

/// Judges a range of records.
pub struct Judge<'a, W, M> {
    writes: &'a W,
    evidence: &'a Evidence<'a, M>,
    /// Whether an unacknowledged write may take effect after later writes: true if the server decides the order of
    /// writes, false if the clients' timestamps decide it.
    late_writes_land: bool,
    records: Range<u64>,
    /// For each history, the index of the acknowledged write that was sent last, plus 1.
    last: Vec<u64>,
}

impl<'a, W: Writes, M: AsRef<[AtomicU64]>> Judge<'a, W, M> {
    /// Makes one pass over all writes. It needs 8 bytes of memory per history of `records`. If there is not enough
    /// memory for all records, judge them range by range.
    pub fn new(writes: &'a W, evidence: &'a Evidence<'a, M>, late_writes_land: bool, records: Range<u64>) -> Self {
        let histories = (records.end.saturating_sub(records.start)) as usize * writes.history_count();
        let mut judge = Self { writes, evidence, late_writes_land, records, last: Vec::new() };
        let mut last = vec![0; histories];
        judge.visit_acknowledged(|index, write| {
            let sent = evidence.span(index).sent;
            for history in judge.history_range(write) {
                if last[history] == 0 || evidence.span(last[history] - 1).sent <= sent {
                    last[history] = index + 1;
                }
            }
        });
        judge.last = last;
        judge
    }

    /// The standings before any record has been read.
    pub fn standings(&self) -> Standings {
        Standings(vec![UNREAD; self.last.len()])
    }

    /// Visits, by index, every acknowledged write to a record in the range.
    fn visit_acknowledged(&self, mut visit: impl FnMut(u64, Write)) {
        let end = self.evidence.end().checked_sub(1).and_then(|last| self.writes.find_index(last));
        for index in 0..end.map_or(0, |last| last + 1) {
            let Some(number) = self.writes.find_number(index) else { continue };
            if matches!(self.evidence.state(index, number), Some(WriteState::Acknowledged | WriteState::Retried))
                && let Some(write) = self.writes.find_write(index).filter(|write| self.records.contains(&write.record))
            {
                visit(index, write);
            }
        }
    }

    fn history_range(&self, write: Write) -> Range<usize> {
        let per_record = self.writes.history_count();
        let first = (write.record - self.records.start) as usize * per_record;
        match write.field {
            Some(field) if per_record > 1 => first + field..first + field + 1,
            _ => first..first + per_record,
        }
    }

    fn history_index(&self, record: u64, field: usize) -> usize {
        self.history_range(Write { record, field: Some(field), delete: false }).start
    }

    /// Judges the value of a field in a record of the range, and records it in `standings`.
    pub fn judge_value(&self, standings: &mut Standings, record: u64, field: usize, value: FieldValue) -> Finding {
        let history = self.history_index(record, field);
        let standing = match self.find_standing(record, field, value) {
            Ok(standing) => standing,
            Err(finding) => {
                if standings.0[history] == UNREAD {
                    standings.0[history] = UNDECIDED;
                }
                return finding;
            }
        };
        self.note_standing(&mut standings.0[history], standing);
        let Some(last) = self.last[history].checked_sub(1) else {
            return match value {
                FieldValue::Absent if standing.index == BEFORE.index && self.writes.is_loaded(record) => {
                    Finding::Lost(None)
                }
                FieldValue::Absent if !self.writes.is_loaded(record) => Finding::Fine,
                FieldValue::OtherRun => Finding::OtherRun,
                _ if standing.maybe => Finding::CameTrue,
                _ => Finding::Fine,
            };
        };
        if standing.index == last {
            Finding::Fine
        } else if self.is_over(standing, self.evidence.span(last).sent, last) {
            Finding::Lost(Some(last))
        } else if standing.maybe {
            Finding::CameTrue
        } else if self.evidence.is_bounded() {
            Finding::Overlapped
        } else {
            Finding::Unsure
        }
    }

    /// If the fields of a record share a history, the write that finished first decides: one lost field is a loss.
    fn note_standing(&self, noted: &mut u64, standing: Standing) {
        let earlier = match *noted {
            UNREAD | UNDECIDED => true,
            BEFORE_RUN => false,
            other => standing.done < self.standing_of_write(other - FIRST).map_or(u64::MAX, |own| own.done),
        };
        if earlier {
            *noted = if standing.index == BEFORE.index { BEFORE_RUN } else { standing.index + FIRST };
        }
    }

    /// Whether the write in `standing` had certainly finished before the write at `index` was sent.
    fn is_over(&self, standing: Standing, sent: u64, index: u64) -> bool {
        standing.index == BEFORE.index
            || self.evidence.is_certainly_before((standing.index, standing.done), (index, sent))
    }

    fn find_standing(&self, record: u64, field: usize, value: FieldValue) -> Result<Standing, Finding> {
        let index = match value {
            FieldValue::OtherRun => return Ok(BEFORE),
            FieldValue::Of(Version { phase: Phase::Load, .. }) if self.writes.is_loaded(record) => return Ok(BEFORE),
            FieldValue::Unreadable | FieldValue::Of(Version { phase: Phase::Load, .. }) => {
                return Err(Finding::Corrupt);
            }
            FieldValue::Of(Version { phase: Phase::Run, index }) => {
                let touches = |write: &Write| {
                    write.record == record && write.field.is_none_or(|own| own == field) && !write.delete
                };
                self.writes.find_write(index).filter(touches).map(|_| index).ok_or(Finding::Corrupt)?
            }
            FieldValue::Absent => match self.writes.deletion_of(record) {
                Some(delete) => delete,
                None => return Ok(BEFORE),
            },
        };
        match self.standing_of_write(index) {
            Err(Finding::Phantom(_)) if value == FieldValue::Absent => Ok(BEFORE),
            other => other,
        }
    }

    /// The standing of the write at `index`.
    fn standing_of_write(&self, index: u64) -> Result<Standing, Finding> {
        let Some(number) = self.writes.find_number(index) else { return Err(Finding::Corrupt) };
        let span = self.evidence.span(index);
        match self.evidence.state(index, number) {
            Some(WriteState::Acknowledged) => Ok(Standing { index, done: span.done, maybe: false }),
            Some(WriteState::Refused) | None => Err(Finding::Phantom(index)),
            Some(WriteState::Unknown) if self.evidence.may_exceed_ledger(number) => Err(Finding::Unsure),
            // An abandoned attempt may be applied after later writes.
            Some(WriteState::Maybe | WriteState::Retried) if !self.late_writes_land => {
                Ok(Standing { index, done: span.done, maybe: true })
            }
            Some(_) => Ok(Standing { index, done: u64::MAX, maybe: true }),
        }
    }

    /// Reports the fate of each acknowledged write, by index, according to the decisive reading and, if there was one,
    /// an earlier reading at the workload's level. Makes another pass over all writes. An overwritten write counts as
    /// lost if an older write was read back.
    pub fn judge_writes(&self, decisive: &Standings, earlier: Option<&Standings>, mut visit: impl FnMut(WriteOutcome)) {
        self.visit_acknowledged(|index, write| {
            let span = self.evidence.span(index);
            let histories = self.history_range(write);
            let fate = self.find_fate(index, span, &decisive.0[histories.clone()]);
            let missed =
                earlier.is_some_and(|earlier| self.find_fate(index, span, &earlier.0[histories]) == Fate::Lost);
            visit(WriteOutcome { index, span, fate, missed });
        });
    }

    /// Combines all histories that the write affects: a loss in one of them is a loss.
    fn find_fate(&self, index: u64, span: WriteSpan, noted: &[u64]) -> Fate {
        let mut all = Fate::Proven;
        for &noted in noted {
            let standing = match noted {
                UNREAD | UNDECIDED => None,
                BEFORE_RUN => Some(BEFORE),
                other => self.standing_of_write(other - FIRST).ok(),
            };
            let Some(standing) = standing else {
                all = Fate::Undecided;
                continue;
            };
            if standing.index == index {
                continue;
            }
            if self.is_over(standing, span.sent, index) {
                return Fate::Lost;
            }
            let sent = self.evidence.span(standing.index).sent;
            if !self.evidence.is_certainly_before((index, span.done), (standing.index, sent)) {
                all = Fate::Undecided;
            }
        }
        all
    }
}
