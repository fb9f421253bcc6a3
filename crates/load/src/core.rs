//! YCSB's `CoreWorkload` as a pure function of the operation's index.

use crate::keys::{Chooser, Existing, KeyRange};
use crate::kind::{Kind, StepId};
use crate::kind_sequence::{KindSequence, Position};
use crate::ledger::Writes;
use crate::operation::{Check, Operation, RecordWorkload, Selection, Workload};
pub use crate::proportions::Mix;
use crate::random::{Draws, mix_bits};
use crate::row::Row;
use crate::value_length::Lengths;
use crate::version::{Phase, RunMark};

mod record_shape;
mod spec;
mod verify;
mod writes;

use record_shape::RecordShape;
pub use spec::CoreSpec;
pub use verify::COMPARED_ONE_IN;

/// The load phase, with one insert per record.
#[derive(Debug)]
pub struct CoreLoad {
    shape: RecordShape,
}

impl CoreLoad {
    /// The load of a spec.
    pub fn new(spec: CoreSpec, seed: u64) -> Self {
        Self { shape: RecordShape::new(spec, seed, Phase::Load) }
    }
}

impl Workload for CoreLoad {
    type Operation = Operation;

    fn step_names(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    #[inline]
    fn fill_operation(&self, index: u64, operation: &mut Operation) {
        operation.index = index;
        operation.kind = Kind::Insert;
        self.shape.set_key(operation, self.shape.spec.insert_start + index);
        self.shape.write_all(operation);
    }

    fn step_of(&self, _index: u64) -> StepId {
        Kind::Insert.step()
    }

    fn operation_count(&self) -> Option<u64> {
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
    shape: RecordShape,
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
        let range = KeyRange { start: spec.insert_start, count: spec.insert_count, growth: (expected * 2.0) as u64 };
        let chooser = Chooser::new(&spec.keys, range, spec.records);
        let scan_length = Lengths::new(&spec.scan_length);
        Some(Self { shape: RecordShape::new(spec, seed, Phase::Run), kinds, chooser, scan_length })
    }

    /// Sets the run's number, which distinguishes the run's values from the values of other runs of the spec.
    #[must_use]
    pub fn with_number(mut self, run: Option<u64>) -> Self {
        self.shape.run = RunMark::new(run);
        self
    }

    /// The records that certainly exist when the operation at a position is sent. These are the loaded records and all
    /// inserted records, with two exceptions: the most recent inserts (the lag), and the records that have been deleted
    /// or that the next few deletes (the same lag) will delete.
    #[inline]
    fn existing_records(&self, at: Position) -> Existing {
        let spec = &self.shape.spec;
        let inserted = self.kinds.before_at(Kind::Insert, at).saturating_sub(spec.insert_lag);
        let last = (spec.records + inserted).saturating_sub(1);
        if !self.kinds.has_kind(Kind::Delete) {
            return Existing { first: spec.insert_start.min(last), last };
        }
        let deleted = self.kinds.before_at(Kind::Delete, at) + spec.insert_lag;
        Existing { first: (spec.insert_start + deleted).min(last), last }
    }

    #[inline]
    fn choose_record(&self, index: u64, at: Position, draws: &mut Draws) -> u64 {
        let turn = index - self.kinds.before_at(Kind::Insert, at);
        self.chooser.choose_key(turn, self.existing_records(at), draws)
    }

    #[inline]
    fn record_number(&self, kind: Kind, index: u64, at: Position, draws: &mut Draws) -> u64 {
        match kind {
            Kind::Insert => self.shape.spec.records + self.kinds.before_at(Kind::Insert, at),
            Kind::Delete => self.shape.spec.insert_start + self.kinds.before_at(Kind::Delete, at),
            _ => self.choose_record(index, at, draws),
        }
    }

    fn select_fields(&self, operation: &mut Operation, draws: &mut Draws) {
        operation.selection = if self.shape.spec.read_all_fields {
            Selection::All
        } else {
            Selection::One(draws.draw_below(self.shape.names.len() as u64) as usize)
        };
    }
}

impl Workload for CoreRun {
    type Operation = Operation;

    fn step_names(&self) -> &'static [&'static str] {
        &Kind::NAMES
    }

    #[inline]
    fn fill_operation(&self, index: u64, operation: &mut Operation) {
        let spec = &self.shape.spec;
        let at = self.kinds.position_near(index, &mut operation.cursor);
        let kind = self.kinds.kind_at(at);
        operation.index = index;
        operation.kind = kind;
        let mut draws = self.shape.keys.stream(index);
        let record = self.record_number(kind, index, at, &mut draws);
        self.shape.set_key(operation, record);
        match kind {
            Kind::Insert => self.shape.write_all(operation),
            Kind::Update | Kind::ReadModifyWrite => {
                if spec.write_all_fields {
                    self.shape.write_all(operation);
                } else {
                    self.shape.write_one(operation);
                }
                self.select_fields(operation, &mut draws);
            }
            Kind::Scan => {
                operation.scan_count = self.scan_length.next_length(&mut draws);
                self.select_fields(operation, &mut draws);
            }
            _ => self.select_fields(operation, &mut draws),
        }
    }

    fn step_of(&self, index: u64) -> StepId {
        self.kinds.kind(index).step()
    }

    fn operation_count(&self) -> Option<u64> {
        self.shape.spec.operations
    }

    fn any_order(&self) -> bool {
        !self.kinds.has_kind(Kind::Insert) && !self.kinds.has_kind(Kind::Delete)
    }
}

impl RecordWorkload for CoreRun {
    fn field_names(&self) -> &[String] {
        &self.shape.names
    }

    fn has_read_checks(&self) -> bool {
        self.shape.spec.integrity || self.shape.spec.versions
    }

    fn verify_read(&self, operation: &Operation, read: &Row) -> Option<Check> {
        self.has_read_checks().then(|| self.verify_row(operation, read))
    }

    #[inline]
    fn is_value_compared(&self, index: u64) -> bool {
        // The reads to compare are chosen by a hash of the index, because the indices of a segment's operations, or of
        // one kind of operation, may be periodic.
        self.shape.spec.versions && mix_bits(index).is_multiple_of(COMPARED_ONE_IN)
    }

    fn insert_number(&self, record: u64) -> Option<u64> {
        record.checked_sub(self.shape.spec.records).filter(|_| self.kinds.has_kind(Kind::Insert))
    }

    fn index_of_insert(&self, number: u64) -> Option<u64> {
        self.kinds.index_of(Kind::Insert, number)
    }

    #[inline]
    fn write_number(&self, index: u64) -> Option<u64> {
        Writes::find_number(self, index)
    }

    fn index_of_delete(&self, record: u64) -> Option<u64> {
        self.kinds.index_of(Kind::Delete, record.checked_sub(self.shape.spec.insert_start)?)
    }
}

#[cfg(test)]
mod tests;
