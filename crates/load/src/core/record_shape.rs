//! The keys, fields and values of a record, as functions of the index of the write.

use super::CoreSpec;
use crate::integrity::fill_integrity;
use crate::java;
use crate::keys::write_key;
use crate::ledger::Write;
use crate::operation::Operation;
use crate::random::{Draws, Purpose, Streams};
use crate::row::{EqualHeads, Head};
use crate::text_pool::{Place, Pool};
use crate::value_length::Lengths;
use crate::version::{FieldHash, Mark, Phase, RunMark, Stamp, Version};

/// The form of the records, shared by the load and the run.
#[derive(Debug)]
pub(super) struct RecordShape {
    pub(super) spec: CoreSpec,
    pub(super) seed: u64,
    /// The random streams from which keys and values are drawn.
    pub(super) keys: Streams,
    values: Streams,
    /// The phase of the writes, which is part of the versions in values.
    phase: Phase,
    pub(super) run: RunMark,
    pub(super) names: Vec<String>,
    /// The head of each field, by the number of the field.
    heads: Vec<Head>,
    hashes: Vec<FieldHash>,
    /// The heads of a whole record, if its values are random text of equal length.
    equal: Option<EqualHeads>,
    /// Field numbers in the iteration order of Java's `HashMap`, so that the stored bytes equal YCSB's.
    order: Vec<usize>,
    pub(super) lengths: Lengths,
    pool: Pool,
}

impl RecordShape {
    pub(super) fn new(spec: CoreSpec, seed: u64, phase: Phase) -> Self {
        let names: Vec<String> = (0..spec.field_count).map(|i| format!("{}{i}", spec.field_name_prefix)).collect();
        let order = java::hash_map_order(&names);
        let hashes = names.iter().map(|name| FieldHash::new(name.as_bytes())).collect();
        let heads = names.iter().map(|name| Head::new(name.as_bytes())).collect();
        let lengths = Lengths::new(&spec.field_length);
        let equal = match lengths {
            Lengths::Constant(bytes) if !spec.integrity => {
                EqualHeads::new(order.iter().map(|&field| names[field].as_str()), bytes)
            }
            _ => None,
        };
        let (keys, values) = (Streams::new(seed, Purpose::Key), Streams::new(seed, Purpose::Value));
        let (run, pool) = (RunMark::default(), Pool::new(seed));
        Self { spec, seed, keys, values, phase, run, names, heads, hashes, equal, order, lengths, pool }
    }

    #[inline]
    fn write_field(
        &self,
        operation: &mut Operation,
        field: usize,
        by: Option<&Mark>,
        draws: &mut Draws,
        place: &mut Place,
    ) {
        let Operation { row, key, .. } = operation;
        let head = &self.heads[field];
        let len = self.lengths.next_length(draws);
        row.push_after(head, len, |out| {
            if self.spec.integrity {
                return fill_integrity(out, key, head.name());
            }
            self.pool.fill_bytes(out, place);
            if let Some(mark) = by {
                mark.write_mark(out, self.hashes[field]);
            }
        });
    }

    #[inline]
    fn mark_of(&self, operation: &Operation) -> Option<Mark> {
        let version = Version { phase: self.phase, index: operation.index };
        self.spec.versions.then(|| self.stamp_key(&operation.key).mark_version(version))
    }

    #[inline]
    pub(super) fn stamp_key(&self, key: &[u8]) -> Stamp {
        Stamp::new(self.seed, key).with_run(self.run)
    }

    /// The place in the pool from which the values of a write are taken.
    #[inline]
    fn draw_place(&self, phase: Phase, draws: &mut Draws) -> Place {
        self.pool.draw_place(draws, if phase == Phase::Run { self.run.turn } else { 0 })
    }

    /// Regenerates the value that a write put into `field`, from the draws of this write.
    pub(super) fn regenerate_value(&self, version: Version, write: Write, key: &[u8], field: usize, out: &mut Vec<u8>) {
        let mut draws = self.values.stream(version.index);
        let mut place = self.draw_place(version.phase, &mut draws);
        let mut len = 0;
        if write.field.is_some() {
            let _field = draws.draw_below(self.names.len() as u64);
            len = self.lengths.next_length(&mut draws);
        } else {
            for &other in &self.order {
                len = self.lengths.next_length(&mut draws);
                if other == field {
                    break;
                }
                self.pool.skip_bytes(len, &mut place);
            }
        }
        out.resize(len, 0);
        self.pool.fill_bytes(out, &mut place);
        self.stamp_key(key).mark_version(version).write_mark(out, self.hashes[field]);
    }

    #[inline]
    pub(super) fn write_all(&self, operation: &mut Operation) {
        let mut draws = self.values.stream(operation.index);
        let mut place = self.draw_place(self.phase, &mut draws);
        let by = self.mark_of(operation);
        if let (Some(heads), None) = (&self.equal, by) {
            let values = operation.row.set_heads(heads);
            return self.pool.fill_each(values, heads.value_len(), &mut place);
        }
        operation.row.clear_fields();
        for &field in &self.order {
            self.write_field(operation, field, by.as_ref(), &mut draws, &mut place);
        }
    }

    #[inline]
    pub(super) fn write_one(&self, operation: &mut Operation) {
        let mut draws = self.values.stream(operation.index);
        operation.row.clear_fields();
        let (mut place, field) = self.choose_field(&mut draws);
        self.write_field(operation, field, self.mark_of(operation).as_ref(), &mut draws, &mut place);
    }

    /// The field of a one-field write, and the place in the pool from which its value is taken.
    #[inline]
    pub(super) fn choose_field(&self, draws: &mut Draws) -> (Place, usize) {
        (self.draw_place(self.phase, draws), draws.draw_below(self.names.len() as u64) as usize)
    }

    #[inline]
    pub(super) fn set_key(&self, operation: &mut Operation, record: u64) {
        operation.record = record;
        write_key(&mut operation.key, record, self.spec.insert_order, self.spec.zero_padding);
    }
}
