//! The writes of a run by number: the operation and the fields of each write, without generating values.

use super::{CoreRun, Kind};
use crate::ledger::{Write, Writes};
use crate::random::{Draws, Purpose};

/// The kinds of operation that change data.
pub(super) const KINDS: [Kind; 4] = [Kind::Update, Kind::Insert, Kind::ReadModifyWrite, Kind::Delete];

/// Writes are counted only with [`versions`](super::CoreSpec::versions).
impl Writes for CoreRun {
    #[inline]
    fn find_number(&self, index: u64) -> Option<u64> {
        let at = self.kinds.position(index);
        let write = self.shape.spec.versions && KINDS.contains(&self.kinds.kind_at(at));
        write.then(|| self.kinds.before_any(&KINDS, at))
    }

    fn find_index(&self, number: u64) -> Option<u64> {
        if self.shape.spec.versions { self.kinds.index_of_any(&KINDS, number) } else { None }
    }

    fn find_write(&self, index: u64) -> Option<Write> {
        let spec = &self.shape.spec;
        let at = self.kinds.position(index);
        let kind = self.kinds.kind_at(at);
        if !KINDS.contains(&kind) {
            return None;
        }
        let record = self.record_number(kind, index, at, &mut Draws::new(self.shape.seed, index, Purpose::Key));
        let whole = spec.write_all_fields || matches!(kind, Kind::Insert | Kind::Delete);
        let field = || self.shape.choose_field(&mut Draws::new(self.shape.seed, index, Purpose::Value)).1;
        Some(Write { record, field: (!whole).then(field), delete: kind == Kind::Delete })
    }

    fn history_count(&self) -> usize {
        if self.shape.spec.write_all_fields { 1 } else { self.shape.names.len() }
    }

    fn is_loaded(&self, record: u64) -> bool {
        (self.shape.spec.insert_start..self.shape.spec.records).contains(&record)
    }

    fn deletion_of(&self, record: u64) -> Option<u64> {
        self.kinds.index_of(Kind::Delete, record.checked_sub(self.shape.spec.insert_start)?)
    }
}
