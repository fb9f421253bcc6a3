//! YCSB's `CoreWorkload` as a pure function of the operation's index.

use crate::integrity::fill_integrity;
use crate::keys::{Chooser, Existing, Range};
use crate::kind::{Kind, StepId};
use crate::kind_sequence::{KindSequence, Position};
use crate::ledger::{Write, Writes};
pub use crate::mix::Mix;
use crate::operation::{Check, Operation, RecordWorkload, Selection, Workload};
use crate::random::{Draws, mix};
use crate::row::Row;
use crate::value_length::Lengths;
use crate::version::{Origin, Phase, RunMark, Version};

mod spec;
mod values;
mod writes;

pub use spec::CoreSpec;
use values::Shape;

/// One in this many reads compares whole values with the values written, which costs as much as generating the values.
/// All other reads check only the versions of their values.
pub const COMPARED_ONE_IN: u64 = 16;

/// The load phase, with one insert per record.
#[derive(Debug)]
pub struct CoreLoad {
    shape: Shape,
}

impl CoreLoad {
    /// The load of a spec.
    pub fn new(spec: CoreSpec, seed: u64) -> Self {
        Self { shape: Shape::new(spec, seed, Phase::Load) }
    }
}

impl Workload for CoreLoad {
    type Operation = Operation;

    fn steps(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    #[inline]
    fn fill(&self, index: u64, operation: &mut Operation) {
        operation.index = index;
        operation.kind = Kind::Insert;
        self.shape.set_key(operation, self.shape.spec.insert_start + index);
        self.shape.write_all(operation);
    }

    fn step_of(&self, _index: u64) -> StepId {
        Kind::Insert.step()
    }

    fn operations(&self) -> Option<u64> {
        Some(self.shape.spec.insert_count)
    }
}

impl RecordWorkload for CoreLoad {
    fn field_names(&self) -> &[String] {
        &self.shape.names
    }
}

/// The run phase.
#[derive(Debug)]
pub struct CoreRun {
    shape: Shape,
    kinds: KindSequence,
    chooser: Chooser,
    scan_length: Lengths,
}

impl CoreRun {
    /// The run of a spec; `None` if no kind of operation has a proportion above 0.
    pub fn new(spec: CoreSpec, seed: u64) -> Option<Self> {
        let mix = spec.mix;
        let weights = mix.weights();
        let counted: &[Kind] = if spec.versions { &writes::KINDS } else { &[Kind::Insert, Kind::Delete] };
        let kinds = KindSequence::new(seed, &weights, counted, spec.operations)?;
        let total: f64 = weights.iter().map(|&(_, w)| w.max(0.0)).sum();
        let expected = spec.operations.unwrap_or(0) as f64 * (mix.insert.max(0.0) / total);
        let range = Range { start: spec.insert_start, count: spec.insert_count, growth: (expected * 2.0) as u64 };
        let chooser = Chooser::new(&spec.keys, range, spec.records);
        let scan_length = Lengths::new(&spec.scan_length);
        Some(Self { shape: Shape::new(spec, seed, Phase::Run), kinds, chooser, scan_length })
    }

    /// Sets the run's number, which distinguishes the run's values from the values of other runs of the spec.
    #[must_use]
    pub fn with_number(mut self, run: Option<u64>) -> Self {
        self.shape.run = RunMark::new(run);
        self
    }

    /// The write that a field's value names as its origin; `None` if the check in the value is wrong.
    #[inline]
    pub fn origin(&self, key: &[u8], name: &[u8], value: &[u8]) -> Option<Origin> {
        self.shape.stamp(key).read(value, name)
    }

    /// Writes to `out` the value that a write of the load or of this run put into a record's field. Returns `false` if
    /// the write did not write this field.
    pub fn expect(&self, version: Version, record: u64, key: &[u8], field: usize, out: &mut Vec<u8>) -> bool {
        let write = match version.phase {
            Phase::Run => self.write(version.index),
            // The records may have been written by several loads with different `insertstart`, so the index does not
            // identify a record.
            Phase::Load => self.is_loaded(record).then_some(Write { record, field: None, delete: false }),
        };
        let touches = |own: &Write| own.record == record && own.field.is_none_or(|only| only == field) && !own.delete;
        let Some(write) = write.filter(touches) else { return false };
        self.shape.regenerate(version, write, key, field, out);
        true
    }

    /// Whether every value read equals the value that its write wrote. A wrong version gives `false`.
    #[cold]
    fn compare(&self, operation: &Operation, read: &Row) -> bool {
        let mut expected = Vec::new();
        read.fields().flatten().all(|(name, value)| {
            let field = self.shape.names.iter().position(|own| own.as_bytes() == name);
            match (self.origin(&operation.key, name, value), field) {
                (Some(Origin::Own(version)), Some(field)) => {
                    self.expect(version, operation.record, &operation.key, field, &mut expected) && expected == value
                }
                // If another run wrote the value, only the first half of the check is known.
                (Some(Origin::OtherRun(_)), Some(_)) => true,
                _ => false,
            }
        })
    }

    /// The records that certainly exist when the operation at a position is sent. These are the loaded records and all
    /// inserted records except the most recent (the lag), minus the records at the low end that earlier deletes or the
    /// next few deletes (the same lag) remove.
    #[inline]
    fn existing(&self, at: Position) -> Existing {
        let spec = &self.shape.spec;
        let inserted = self.kinds.before_at(Kind::Insert, at).saturating_sub(spec.insert_lag);
        let last = (spec.records + inserted).saturating_sub(1);
        if !self.kinds.includes(Kind::Delete) {
            return Existing { first: spec.insert_start.min(last), last };
        }
        let deleted = self.kinds.before_at(Kind::Delete, at) + spec.insert_lag;
        Existing { first: (spec.insert_start + deleted).min(last), last }
    }

    #[inline]
    fn choose(&self, index: u64, at: Position, draws: &mut Draws) -> u64 {
        let turn = index - self.kinds.before_at(Kind::Insert, at);
        self.chooser.choose(turn, self.existing(at), draws)
    }

    #[inline]
    fn record(&self, kind: Kind, index: u64, at: Position, draws: &mut Draws) -> u64 {
        match kind {
            Kind::Insert => self.shape.spec.records + self.kinds.before_at(Kind::Insert, at),
            Kind::Delete => self.shape.spec.insert_start + self.kinds.before_at(Kind::Delete, at),
            _ => self.choose(index, at, draws),
        }
    }

    fn selection(&self, operation: &mut Operation, draws: &mut Draws) {
        operation.selection = if self.shape.spec.read_all_fields {
            Selection::All
        } else {
            Selection::One(draws.below(self.shape.names.len() as u64) as usize)
        };
    }
}

impl Workload for CoreRun {
    type Operation = Operation;

    fn steps(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    #[inline]
    fn fill(&self, index: u64, operation: &mut Operation) {
        let spec = &self.shape.spec;
        let at = self.kinds.position_near(index, &mut operation.cursor);
        let kind = self.kinds.kind_at(at);
        operation.index = index;
        operation.kind = kind;
        let mut draws = self.shape.keys.stream(index);
        let record = self.record(kind, index, at, &mut draws);
        self.shape.set_key(operation, record);
        match kind {
            Kind::Insert => self.shape.write_all(operation),
            Kind::Update | Kind::ReadModifyWrite => {
                if spec.write_all_fields {
                    self.shape.write_all(operation);
                } else {
                    self.shape.write_one(operation);
                }
                self.selection(operation, &mut draws);
            }
            Kind::Scan => {
                operation.scan_count = self.scan_length.next(&mut draws);
                self.selection(operation, &mut draws);
            }
            _ => self.selection(operation, &mut draws),
        }
    }

    fn step_of(&self, index: u64) -> StepId {
        self.kinds.kind(index).step()
    }

    fn operations(&self) -> Option<u64> {
        self.shape.spec.operations
    }

    fn any_order(&self) -> bool {
        !self.kinds.includes(Kind::Insert) && !self.kinds.includes(Kind::Delete)
    }
}

impl RecordWorkload for CoreRun {
    fn field_names(&self) -> &[String] {
        &self.shape.names
    }

    fn verifies(&self) -> bool {
        self.shape.spec.integrity || self.shape.spec.versions
    }

    fn verify(&self, operation: &Operation, read: &Row) -> Option<Check> {
        if !self.verifies() {
            return None;
        }
        if read.is_empty() {
            return Some(Check::Empty);
        }
        let expected_fields = match operation.selection {
            Selection::One(_) => 1,
            Selection::All => self.shape.names.len(),
        };
        let stamp = self.shape.spec.versions.then(|| self.shape.stamp(&operation.key));
        if self.compares(operation.index) && !self.compare(operation, read) {
            return Some(Check::Wrong);
        }
        let mut expected = [0u8; 1_024];
        let mut read_fields = 0;
        for (name, value) in read.fields().flatten() {
            read_fields += 1;
            let length = matches!(self.shape.lengths, Lengths::Constant(bytes) if bytes != value.len());
            if let Some(stamp) = stamp {
                // While writes are in flight, the expected version is unknown, but the value must at least be a version
                // of this field.
                if length || stamp.read(value, name).is_none() {
                    return Some(Check::Wrong);
                }
                continue;
            }
            // Values over 1 KiB are rare, so they get a separate buffer.
            let mut longer = Vec::new();
            let buffer = if value.len() <= expected.len() {
                &mut expected[..value.len()]
            } else {
                longer.resize(value.len(), 0);
                &mut longer[..]
            };
            fill_integrity(buffer, &operation.key, name);
            let right = buffer == value;
            if !right || length {
                return Some(Check::Wrong);
            }
        }
        Some(if read_fields < expected_fields { Check::Wrong } else { Check::Right })
    }

    #[inline]
    fn compares(&self, index: u64) -> bool {
        // These reads are chosen at random, because the indices within a segment, or with one kind of operation, may be
        // periodic.
        self.shape.spec.versions && mix(index).is_multiple_of(COMPARED_ONE_IN)
    }

    fn insert_number(&self, record: u64) -> Option<u64> {
        record.checked_sub(self.shape.spec.records).filter(|_| self.kinds.includes(Kind::Insert))
    }

    fn index_of_insert(&self, number: u64) -> Option<u64> {
        self.kinds.index_of(Kind::Insert, number)
    }

    #[inline]
    fn write_number(&self, index: u64) -> Option<u64> {
        Writes::number(self, index)
    }

    fn index_of_delete(&self, record: u64) -> Option<u64> {
        self.kinds.index_of(Kind::Delete, record.checked_sub(self.shape.spec.insert_start)?)
    }
}

#[cfg(test)]
mod tests;
