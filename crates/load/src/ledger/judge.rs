//! Was anything lost? What a record shows after the run, against the ledgers.
//!
//! One pass over the writes keeps, for each history (a record, or a field where writes are of one field), the acknowledged
//! write that was sent last: eight bytes. A value read back names its own write. It is stale if that was over before the
//! last one was sent, and right, as far as can be known, if the two overlapped.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{Evidence, State, Write, Writes};
use crate::version::{Phase, Version};

/// What stands in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Nothing: no record, or none with this field.
    Absent,
    /// A value whose check is wrong.
    Unreadable,
    /// A value of this write.
    Of(Version),
}

/// What that means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// What was acknowledged last is there.
    Fine,
    /// A write that may have overlapped the last in time: either may have been the later one.
    Overlapped,
    /// A write with an unknown outcome.
    CameTrue,
    /// An acknowledged write is missing: that of this index, which was sent last, and maybe others before it, see
    /// [`Judge::ages`]; `None`: what was there before the run.
    Lost(Option<u64>),
    /// A write that was surely refused, or never sent.
    Phantom(u64),
    /// A value that no write of this trial put there.
    Corrupt,
    /// The ledger had no room for the evidence.
    Unsure,
}

/// A finding of a loss, to be looked into.
#[allow(missing_docs, reason = "the field's name explains it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    pub record: u64,
    /// The field's place in the workload's list.
    pub field: usize,
    /// What stands there.
    pub shown: Shown,
}

/// How old the lost writes of a history were at a given instant; negative where they came after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// How many acknowledged writes were lost. Overwritten ones count: what stands there is older than they.
    pub writes: u64,
    /// The index of the oldest.
    pub oldest: u64,
    /// It was at least so old, ns: a stale read.
    pub least_ns: i64,
    /// And at most, ns.
    pub most_ns: i64,
}

/// What stands in a history, and by when it was done.
#[derive(Clone, Copy)]
struct Standing {
    index: u64,
    done: u64,
    maybe: bool,
}

/// What was there before the run.
const BEFORE: Standing = Standing { index: u64::MAX, done: 0, maybe: false };

/// Judges the records of a range.
pub struct Judge<'a, W, M> {
    writes: &'a W,
    evidence: &'a Evidence<'a, M>,
    /// Whether a write that was not acknowledged may land after later ones: so where the server orders writes, and not
    /// where the client's time stamps do.
    late_writes_land: bool,
    records: Range<u64>,
    /// For each history, the index of the acknowledged write that was sent last, plus one.
    last: Vec<u64>,
}

impl<'a, W: Writes, M: AsRef<[AtomicU64]>> Judge<'a, W, M> {
    /// Goes over all writes once; memory: 8 bytes a history of `records`. More records than there is memory for are judged
    /// range by range.
    pub fn new(writes: &'a W, evidence: &'a Evidence<'a, M>, late_writes_land: bool, records: Range<u64>) -> Self {
        let histories = (records.end.saturating_sub(records.start)) as usize * writes.histories();
        let mut judge = Self { writes, evidence, late_writes_land, records, last: vec![0; histories] };
        judge.acknowledged(|judge, index, write| {
            let begun = judge.evidence.span(index).begun;
            for history in judge.histories(write) {
                let last = judge.last[history];
                if last == 0 || judge.evidence.span(last - 1).begun <= begun {
                    judge.last[history] = index + 1;
                }
            }
        });
        judge
    }

    /// Every acknowledged write to a record of the range, by index.
    fn acknowledged(&mut self, mut each: impl FnMut(&mut Self, u64, Write)) {
        let end = self.evidence.end().checked_sub(1).and_then(|last| self.writes.index(last));
        for index in 0..end.map_or(0, |last| last + 1) {
            let Some(number) = self.writes.number(index) else { continue };
            if self.evidence.state(index, number) == Some(State::Acknowledged)
                && let Some(write) = self.writes.write(index).filter(|write| self.records.contains(&write.record))
            {
                each(self, index, write);
            }
        }
    }

    fn histories(&self, write: Write) -> Range<usize> {
        let each = self.writes.histories();
        let first = (write.record - self.records.start) as usize * each;
        match write.field {
            Some(field) if each > 1 => first + field..first + field + 1,
            _ => first..first + each,
        }
    }

    fn history(&self, record: u64, field: usize) -> usize {
        self.histories(Write { record, field: Some(field), delete: false }).start
    }

    /// What `shown` means for the field of a record of the range.
    pub fn judge(&self, record: u64, field: usize, shown: Shown) -> Finding {
        let standing = match self.standing(record, field, shown) {
            Ok(standing) => standing,
            Err(finding) => return finding,
        };
        let Some(last) = self.last[self.history(record, field)].checked_sub(1) else {
            return match shown {
                Shown::Absent if standing.index == BEFORE.index && self.writes.loaded(record) => Finding::Lost(None),
                Shown::Absent if !self.writes.loaded(record) => Finding::Fine,
                _ if standing.maybe => Finding::CameTrue,
                _ => Finding::Fine,
            };
        };
        if standing.index == last {
            Finding::Fine
        } else if self.over(standing, self.evidence.span(last).begun, last) {
            Finding::Lost(Some(last))
        } else if standing.maybe {
            Finding::CameTrue
        } else if self.evidence.bounded() {
            Finding::Overlapped
        } else {
            Finding::Unsure
        }
    }

    /// Whether what stands there was surely over before the write at `index` was sent.
    fn over(&self, standing: Standing, begun: u64, index: u64) -> bool {
        standing.index == BEFORE.index || self.evidence.precedes((standing.index, standing.done), (index, begun))
    }

    fn standing(&self, record: u64, field: usize, shown: Shown) -> Result<Standing, Finding> {
        let index = match shown {
            Shown::Of(Version { phase: Phase::Load, .. }) if self.writes.loaded(record) => return Ok(BEFORE),
            Shown::Unreadable | Shown::Of(Version { phase: Phase::Load, .. }) => return Err(Finding::Corrupt),
            Shown::Of(Version { phase: Phase::Run, index }) => {
                let touches = |write: &Write| {
                    write.record == record && write.field.is_none_or(|own| own == field) && !write.delete
                };
                self.writes.write(index).filter(touches).map(|_| index).ok_or(Finding::Corrupt)?
            }
            Shown::Absent => match self.writes.deleted(record) {
                Some(delete) => delete,
                None => return Ok(BEFORE),
            },
        };
        let Some(number) = self.writes.number(index) else { return Err(Finding::Corrupt) };
        let span = self.evidence.span(index);
        match self.evidence.state(index, number) {
            Some(State::Acknowledged) => Ok(Standing { index, done: span.done, maybe: false }),
            Some(State::Refused) | None if shown == Shown::Absent => Ok(BEFORE),
            Some(State::Refused) | None => Err(Finding::Phantom(index)),
            Some(State::Unknown) if self.evidence.overflowed(number) => Err(Finding::Unsure),
            Some(State::Maybe) if !self.late_writes_land => Ok(Standing { index, done: span.done, maybe: true }),
            Some(_) => Ok(Standing { index, done: u64::MAX, maybe: true }),
        }
    }

    /// The acknowledged writes that each loss took, and how old the oldest was at `at_ns` of Unix time: the instant of the
    /// crash. Goes over all writes once more. `None`: only what had been loaded is lost.
    pub fn ages(&mut self, losses: &[Loss], at_ns: u64) -> Vec<Option<Age>> {
        let mut lost: HashMap<usize, (Standing, Option<Age>)> = HashMap::new();
        for loss in losses {
            if let Ok(standing) = self.standing(loss.record, loss.field, loss.shown) {
                lost.insert(self.history(loss.record, loss.field), (standing, None));
            }
        }
        let age = |ns: u64| (i128::from(at_ns) - i128::from(ns)).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        self.acknowledged(|judge, index, write| {
            for history in judge.histories(write) {
                let Some((standing, found)) = lost.get_mut(&history) else { continue };
                let span = judge.evidence.span(index);
                if judge.over(*standing, span.begun, index) {
                    let (least_ns, most_ns) = (age(span.done), age(span.begun));
                    let found = found.get_or_insert(Age { writes: 0, oldest: index, least_ns, most_ns });
                    found.writes += 1;
                    if least_ns > found.least_ns {
                        (found.oldest, found.least_ns) = (index, least_ns);
                    }
                    found.most_ns = found.most_ns.max(most_ns);
                }
            }
        });
        losses.iter().map(|loss| lost.get(&self.history(loss.record, loss.field)).and_then(|&(_, age)| age)).collect()
    }
}
