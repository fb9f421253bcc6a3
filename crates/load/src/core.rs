//! YCSB's `CoreWorkload` as a pure function of the operation's index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deal::Deal;
use crate::java;
use crate::keys::{Chooser, Existing, InsertOrder, KeyDistribution, Range, write_key};
use crate::operation::{Check, Kind, Operation, Selection, Workload};
use crate::random::{Draws, Purpose};
use crate::row::Row;
use crate::values::{Length, Lengths, Place, Pool, fill_integrity};

/// What a core workload is. The properties that it comes from are named in each field's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoreSpec {
    /// `table`.
    pub table: String,
    /// `recordcount`: records present before a run.
    pub records: u64,
    /// `insertstart`: first record number of the range.
    pub insert_start: u64,
    /// `insertcount`: how many records a load writes, and how many a run chooses from.
    pub insert_count: u64,
    /// `fieldcount`.
    pub field_count: usize,
    /// `fieldnameprefix`.
    pub field_name_prefix: String,
    /// `fieldlength`, `minfieldlength`, `fieldlengthdistribution`, `fieldlengthhistogram`.
    pub field_length: Length,
    /// `readallfields`.
    pub read_all_fields: bool,
    /// `writeallfields`.
    pub write_all_fields: bool,
    /// `dataintegrity`: values follow from key and field, and reads are checked.
    pub integrity: bool,
    /// The `…proportion` properties.
    pub mix: Mix,
    /// `requestdistribution` and its parameters.
    pub keys: KeyDistribution,
    /// `insertorder`.
    pub insert_order: InsertOrder,
    /// `zeropadding`: least digits of a key's number.
    pub zero_padding: usize,
    /// `minscanlength`, `maxscanlength`, `scanlengthdistribution`.
    pub scan_length: Length,
    /// Operations of the run, if it has an end of its own: YCSB leaves the zipfian room for the inserts expected.
    pub operations: Option<u64>,
    /// How many inserts behind the newest a chooser stays, so that the record is there when it is asked for.
    pub insert_lag: u64,
}

/// Proportions of the kinds of operation; they need not sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
    /// `deleteproportion` (an extension).
    pub delete: f64,
}

/// What both phases share: the shape of records.
#[derive(Debug)]
struct Shape {
    spec: CoreSpec,
    seed: u64,
    names: Vec<String>,
    /// Field numbers in the order in which Java's `HashMap` hands them to a binding, so that stored bytes are YCSB's.
    order: Vec<usize>,
    lengths: Lengths,
    pool: Pool,
}

impl Shape {
    fn new(spec: CoreSpec, seed: u64) -> Self {
        let names: Vec<String> = (0..spec.field_count).map(|i| format!("{}{i}", spec.field_name_prefix)).collect();
        let order = java::hash_map_order(&names);
        let lengths = Lengths::new(&spec.field_length);
        Self { spec, seed, names, order, lengths, pool: Pool::new(seed) }
    }

    #[inline]
    fn write_field(&self, row: &mut Row, key: &[u8], field: usize, draws: &mut Draws, place: &mut Place) {
        let name = self.names[field].as_bytes();
        let len = self.lengths.next(draws);
        if self.spec.integrity {
            row.push_with(name, len, |out| fill_integrity(out, key, name));
        } else if len <= Pool::LEN {
            row.push(name, self.pool.next(place, len));
        } else {
            row.push_with(name, len, |out| self.pool.fill(out, place));
        }
    }

    #[inline]
    fn write_all(&self, operation: &mut Operation) {
        let mut draws = Draws::at(self.seed, operation.index, Purpose::Value);
        let mut place = self.pool.place(&mut draws);
        operation.row.clear();
        for &field in &self.order {
            self.write_field(&mut operation.row, &operation.key, field, &mut draws, &mut place);
        }
    }

    #[inline]
    fn write_one(&self, operation: &mut Operation) {
        let mut draws = Draws::at(self.seed, operation.index, Purpose::Value);
        let mut place = self.pool.place(&mut draws);
        operation.row.clear();
        let field = draws.below(self.names.len() as u64) as usize;
        self.write_field(&mut operation.row, &operation.key, field, &mut draws, &mut place);
    }

    #[inline]
    fn set_key(&self, operation: &mut Operation, record: u64) {
        operation.record = record;
        write_key(&mut operation.key, record, self.spec.insert_order, self.spec.zero_padding);
    }
}

/// The load phase: one insert per record.
#[derive(Debug)]
pub struct CoreLoad {
    shape: Shape,
}

impl CoreLoad {
    /// The load of a spec.
    pub fn new(spec: CoreSpec, seed: u64) -> Self {
        Self { shape: Shape::new(spec, seed) }
    }
}

impl Workload for CoreLoad {
    #[inline]
    fn fill(&self, index: u64, operation: &mut Operation) {
        operation.index = index;
        operation.kind = Kind::Insert;
        self.shape.set_key(operation, self.shape.spec.insert_start + index);
        self.shape.write_all(operation);
    }

    fn operations(&self) -> Option<u64> {
        Some(self.shape.spec.insert_count)
    }

    fn field_names(&self) -> &[String] {
        &self.shape.names
    }
}

/// The run phase.
#[derive(Debug)]
pub struct CoreRun {
    shape: Shape,
    deal: Deal,
    chooser: Chooser,
    scan_length: Lengths,
}

impl CoreRun {
    /// The run of a spec; `None` if no kind of operation has a proportion above 0.
    pub fn new(spec: CoreSpec, seed: u64) -> Option<Self> {
        let mix = spec.mix;
        let weights = [
            (Kind::Read, mix.read),
            (Kind::Update, mix.update),
            (Kind::Insert, mix.insert),
            (Kind::Scan, mix.scan),
            (Kind::ReadModifyWrite, mix.read_modify_write),
            (Kind::Delete, mix.delete),
        ];
        let deal = Deal::new(seed, &weights, &[Kind::Insert, Kind::Delete])?;
        let total: f64 = weights.iter().map(|&(_, w)| w.max(0.0)).sum();
        let expected = spec.operations.unwrap_or(0) as f64 * (mix.insert.max(0.0) / total);
        let range = Range { start: spec.insert_start, count: spec.insert_count, growth: (expected * 2.0) as u64 };
        let chooser = Chooser::new(&spec.keys, range, spec.records);
        let scan_length = Lengths::new(&spec.scan_length);
        Some(Self { shape: Shape::new(spec, seed), deal, chooser, scan_length })
    }

    /// The records that surely exist when the operation at `index` is sent: those loaded, plus the inserts before it
    /// less the lag, less the records deleted from the low end (with the same lag ahead).
    #[inline]
    fn existing(&self, index: u64) -> Existing {
        let spec = &self.shape.spec;
        let inserted = self.deal.before(Kind::Insert, index).saturating_sub(spec.insert_lag);
        let last = (spec.records + inserted).saturating_sub(1);
        if !self.deal.deals(Kind::Delete) {
            return Existing { first: spec.insert_start.min(last), last };
        }
        let deleted = self.deal.before(Kind::Delete, index) + spec.insert_lag;
        Existing { first: (spec.insert_start + deleted).min(last), last }
    }

    #[inline]
    fn choose(&self, index: u64, draws: &mut Draws) -> u64 {
        let turn = index - self.deal.before(Kind::Insert, index);
        self.chooser.choose(turn, self.existing(index), draws)
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
    #[inline]
    fn fill(&self, index: u64, operation: &mut Operation) {
        let spec = &self.shape.spec;
        let kind = self.deal.kind(index);
        operation.index = index;
        operation.kind = kind;
        let mut draws = Draws::at(self.shape.seed, index, Purpose::Key);
        let record = match kind {
            Kind::Insert => spec.records + self.deal.before(Kind::Insert, index),
            Kind::Delete => spec.insert_start + self.deal.before(Kind::Delete, index),
            _ => self.choose(index, &mut draws),
        };
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

    fn operations(&self) -> Option<u64> {
        self.shape.spec.operations
    }

    fn field_names(&self) -> &[String] {
        &self.shape.names
    }

    fn verifies(&self) -> bool {
        self.shape.spec.integrity
    }

    fn verify(&self, operation: &Operation, read: &Row) -> Option<Check> {
        if !self.shape.spec.integrity {
            return None;
        }
        if read.is_empty() {
            return Some(Check::Empty);
        }
        let wanted = match operation.selection {
            Selection::One(_) => 1,
            _ => self.shape.names.len(),
        };
        let mut expected = [0u8; 1_024];
        let mut seen = 0;
        for (name, value) in read.fields().flatten() {
            seen += 1;
            // Values over 1 KiB are rare enough for a buffer of their own.
            let mut longer = Vec::new();
            let buffer = if value.len() <= expected.len() {
                &mut expected[..value.len()]
            } else {
                longer.resize(value.len(), 0);
                &mut longer[..]
            };
            fill_integrity(buffer, &operation.key, name);
            let right = buffer == value;
            let length = matches!(self.shape.lengths, Lengths::Constant(bytes) if bytes != value.len());
            if !right || length {
                return Some(Check::Wrong);
            }
        }
        Some(if seen < wanted { Check::Wrong } else { Check::Right })
    }

    fn insert_number(&self, record: u64) -> Option<u64> {
        record.checked_sub(self.shape.spec.records).filter(|_| self.deal.deals(Kind::Insert))
    }

    fn index_of_insert(&self, number: u64) -> Option<u64> {
        self.deal.index_of(Kind::Insert, number)
    }

    fn index_of_delete(&self, record: u64) -> Option<u64> {
        self.deal.index_of(Kind::Delete, record.checked_sub(self.shape.spec.insert_start)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Wanted;
    use crate::segment::Segment;
    use std::hash::{DefaultHasher, Hash, Hasher};

    fn spec() -> CoreSpec {
        CoreSpec {
            table: "usertable".to_owned(),
            records: 1_000,
            insert_start: 0,
            insert_count: 1_000,
            field_count: 10,
            field_name_prefix: "field".to_owned(),
            field_length: Length::Constant { bytes: 100 },
            read_all_fields: true,
            write_all_fields: false,
            integrity: false,
            mix: Mix { read: 0.5, update: 0.3, insert: 0.1, scan: 0.05, read_modify_write: 0.05, delete: 0.0 },
            keys: KeyDistribution::Latest,
            insert_order: InsertOrder::Hashed,
            zero_padding: 1,
            scan_length: Length::Uniform { min: 1, max: 100 },
            operations: Some(10_000),
            insert_lag: 8,
        }
    }

    fn hash_of(workload: &impl Workload, index: u64) -> u64 {
        let mut operation = Operation::default();
        workload.fill(index, &mut operation);
        let mut hasher = DefaultHasher::new();
        (index, operation.kind, &operation.key, operation.row.bytes(), operation.scan_count).hash(&mut hasher);
        hasher.finish()
    }

    /// The operations of a trial do not depend on who performs them: any segmentation gives the same set.
    #[test]
    fn segments_together_do_exactly_the_operations_of_the_whole() {
        let workload = CoreRun::new(spec(), 5).unwrap();
        let whole = (0..10_000).fold(0u64, |sum, i| sum.wrapping_add(hash_of(&workload, i)));
        for n in [1, 2, 7] {
            let mut sum = 0u64;
            for k in 0..n {
                // Each segment is another process: it builds its own workload from the same spec.
                let own = CoreRun::new(spec(), 5).unwrap();
                let segment = Segment { k, n };
                for step in 0..segment.share(10_000) {
                    sum = sum.wrapping_add(hash_of(&own, segment.index(step)));
                }
            }
            assert_eq!(sum, whole, "{n} segments");
        }
        let other = CoreRun::new(spec(), 6).unwrap();
        assert_ne!((0..10_000).fold(0u64, |sum, i| sum.wrapping_add(hash_of(&other, i))), whole);
    }

    #[test]
    fn inserts_of_a_run_take_the_next_numbers_without_gap() {
        let workload = CoreRun::new(spec(), 5).unwrap();
        let mut operation = Operation::default();
        let mut next = 1_000;
        for index in 0..10_000 {
            workload.fill(index, &mut operation);
            if operation.kind == Kind::Insert {
                assert_eq!(operation.record, next);
                assert_eq!(workload.index_of_insert(next - 1_000), Some(index));
                next += 1;
            } else {
                assert!(operation.record < next.saturating_sub(8).max(1_000), "reads stay behind the inserts");
            }
        }
        assert_eq!(next, 2_000);
    }

    #[test]
    fn deletes_move_a_window_over_the_records() {
        let mix = Mix { read: 0.8, insert: 0.1, delete: 0.1, ..Mix::default() };
        let keys = KeyDistribution::Uniform;
        let workload = CoreRun::new(CoreSpec { mix, keys, ..spec() }, 5).unwrap();
        let mut operation = Operation::default();
        let mut gone = 0;
        for index in 0..9_000 {
            workload.fill(index, &mut operation);
            match operation.kind {
                Kind::Delete => {
                    assert_eq!(operation.record, gone);
                    gone += 1;
                }
                Kind::Read => assert!(operation.record >= gone, "a deleted record is not read"),
                _ => {}
            }
        }
        assert_eq!(gone, 900);
    }

    #[test]
    fn integrity_is_checked_field_by_field() {
        let workload = CoreRun::new(CoreSpec { integrity: true, ..spec() }, 5).unwrap();
        let load = CoreLoad::new(CoreSpec { integrity: true, ..spec() }, 5);
        let mut operation = Operation::default();
        load.fill(3, &mut operation);
        let stored = operation.row.clone();
        assert_eq!(stored.fields().flatten().next().unwrap().0, b"field1", "Java's order");
        assert_eq!(workload.verify(&operation, &stored), Some(Check::Right));
        let mut bytes = stored.bytes().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        let mut wrong = Row::default();
        wrong.read(&bytes, Wanted::All).unwrap();
        assert_eq!(workload.verify(&operation, &wrong), Some(Check::Wrong));
        let mut short = Row::default();
        short.read(stored.bytes(), Wanted::One(b"field3")).unwrap();
        assert_eq!(workload.verify(&operation, &short), Some(Check::Wrong), "a missing field is wrong");
        assert_eq!(workload.verify(&operation, &Row::default()), Some(Check::Empty));
    }
}
