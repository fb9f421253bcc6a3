//! Verifies the values that reads return: by the version in each value, or by YCSB's template.

use super::CoreRun;
use crate::integrity::fill_integrity;
use crate::ledger::{Write, Writes};
use crate::operation::{Check, Operation, RecordWorkload, Selection};
use crate::row::Row;
use crate::value_length::Lengths;
use crate::version::{Origin, Phase, Version};

/// One in this many reads compares whole values with the values written, which costs as much as generating the values.
/// All other reads check only the versions of their values.
pub const COMPARED_ONE_IN: u64 = 16;

impl CoreRun {
    /// The write that a field's value names as its origin; `None` if the check in the value is wrong.
    #[inline]
    pub fn find_origin(&self, key: &[u8], name: &[u8], value: &[u8]) -> Option<Origin> {
        self.shape.stamp_key(key).read_origin(value, name)
    }

    /// Writes to `out` the value that a write of the load or of this run put into a record's field. Returns `false` if
    /// the write did not write this field.
    pub fn expect_value(&self, version: Version, record: u64, key: &[u8], field: usize, out: &mut Vec<u8>) -> bool {
        let write = match version.phase {
            Phase::Run => self.find_write(version.index),
            // The records may have been written by several loads with different `insertstart`, so the index does not
            // identify a record.
            Phase::Load => self.is_loaded(record).then_some(Write { record, field: None, delete: false }),
        };
        let touches = |own: &Write| own.record == record && own.field.is_none_or(|only| only == field) && !own.delete;
        let Some(write) = write.filter(touches) else { return false };
        self.shape.regenerate_value(version, write, key, field, out);
        true
    }

    /// Whether every value read equals the value that its write wrote; `false` if a version is wrong. A value of
    /// another run counts as equal.
    #[cold]
    fn compare_row(&self, operation: &Operation, read: &Row) -> bool {
        let mut expected = Vec::new();
        read.fields().flatten().all(|(name, value)| {
            let field = self.shape.names.iter().position(|own| own.as_bytes() == name);
            match (self.find_origin(&operation.key, name, value), field) {
                (Some(Origin::Own(version)), Some(field)) => {
                    self.expect_value(version, operation.record, &operation.key, field, &mut expected)
                        && expected == value
                }
                // If another run wrote the value, only the first half of the check can be verified.
                (Some(Origin::OtherRun(_)), Some(_)) => true,
                _ => false,
            }
        })
    }

    /// Compares a row that was read with the values that its writes must have written. If values contain versions, most
    /// reads only check that each value has a valid version.
    #[inline]
    pub(super) fn verify_row(&self, operation: &Operation, read: &Row) -> Check {
        if read.is_empty() {
            return Check::Empty;
        }
        let expected_fields = match operation.selection {
            Selection::One(_) => 1,
            Selection::All => self.shape.names.len(),
        };
        let stamp = self.shape.spec.versions.then(|| self.shape.stamp_key(&operation.key));
        if self.is_value_compared(operation.index) && !self.compare_row(operation, read) {
            return Check::Wrong;
        }
        let mut expected = [0u8; 1_024];
        let mut read_fields = 0;
        for (name, value) in read.fields().flatten() {
            read_fields += 1;
            let wrong_length = matches!(self.shape.lengths, Lengths::Constant(bytes) if bytes != value.len());
            if let Some(stamp) = stamp {
                // While writes are in flight, the expected version is unknown, but the value must at least be a version
                // of this field.
                if wrong_length || stamp.read_origin(value, name).is_none() {
                    return Check::Wrong;
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
            if !right || wrong_length {
                return Check::Wrong;
            }
        }
        if read_fields < expected_fields { Check::Wrong } else { Check::Right }
    }
}
