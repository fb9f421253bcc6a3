//! Compares the rows read with the rows written.

use std::collections::BTreeMap;

use loadstone_load::Status;
use loadstone_session::statements::Cells;
use loadstone_stress::partition::ColumnPlace;

use super::{ColumnsOperation, ColumnsWork, State};

impl ColumnsWork {
    /// Compares the rows read with the rows written by this program, or by cassandra-stress if the spec permits:
    /// cassandra-stress may write only the first rows of a partition. The partition is open in the generator of its
    /// table.
    pub(super) fn validate_cells(&self, operation: &ColumnsOperation, cells: &Cells) -> Result<(), (Status, String)> {
        let planned = &self.operations[operation.operation].operation;
        let layout = &self.plan.layouts[planned.table];
        let mut state = operation.state.borrow_mut();
        let State { generators: Some(generators), scratch, .. } = &mut *state else { return Ok(()) };
        let share = generators.population_ratio[planned.table]
            .as_mut()
            .map_or(1.0, |(sampler, ratio)| ratio.share(sampler.next_double()));
        let generator = &mut generators.tables[planned.table];
        let marker_of = |place: ColumnPlace| planned.markers.iter().position(|other| *other == place);
        let mut returned: BTreeMap<Vec<u8>, (usize, bool)> = BTreeMap::new();
        for row in 0..cells.rows() {
            let mut key = Vec::new();
            for at in 0..layout.clustering.len() {
                let place = ColumnPlace::Clustering(at);
                let cell = match planned.results.iter().position(|result| *result == Some(place)) {
                    Some(column) => cells.get(row, column),
                    None => marker_of(place).and_then(|marker| operation.values.get(marker)),
                };
                let cell = cell.unwrap_or_default();
                key.extend_from_slice(&(cell.len() as u32).to_be_bytes());
                key.extend_from_slice(cell);
            }
            returned.insert(key, (row, false));
        }
        let number = operation.number;
        let mut expected = 0;
        // The last row that matched, and whether all later rows are missing because cassandra-stress did not write
        // them.
        let (mut last_match, mut is_ended) = (None, false);
        for row in 0..generator.rows() {
            generator.seek(row);
            let mut is_requested = true;
            for condition in &planned.conditions {
                scratch.clear();
                generator.append(condition.place, scratch);
                let value = operation.values.get(condition.marker).unwrap_or_default();
                let kind = &layout.column(condition.place).kind;
                is_requested &= condition.operator.has_match(kind.compare(scratch, value));
            }
            if !is_requested {
                continue;
            }
            let mut key = Vec::new();
            for at in 0..layout.clustering.len() {
                let value = generator.clustering(at);
                key.extend_from_slice(&(value.len() as u32).to_be_bytes());
                key.extend_from_slice(value);
            }
            expected += 1;
            let Some((at, is_matched)) = returned.get_mut(&key) else {
                if cells.rows() == 0 {
                    return Err((Status::NotFound, format!("partition {number} has no row")));
                }
                if self.spec.written_by_tool && !is_ended {
                    let end = generator.tool_rows();
                    is_ended = row >= end && last_match.is_none_or(|last| last < end);
                }
                if is_ended {
                    continue;
                }
                return Err((Status::UnexpectedState, format!("partition {number}: row {row} is missing")));
            };
            if is_ended && !*is_matched {
                return Err((
                    Status::UnexpectedState,
                    format!("partition {number}: rows before row {row} are missing"),
                ));
            }
            (*is_matched, last_match) = (true, Some(row));
            for (column, place) in planned.results.iter().enumerate() {
                let Some(place) = place else { continue };
                let is_null = match place {
                    // The rows of a partition share this value, and which of several writes was last is unknown.
                    ColumnPlace::Value(value) if layout.statics.contains(value) && generator.rows() > 1 => continue,
                    ColumnPlace::Value(value) => (*value + 1) as f64 / layout.values.len() as f64 > share,
                    _ => false,
                };
                scratch.clear();
                generator.append(*place, scratch);
                let written = (!is_null).then_some(scratch.as_slice());
                if cells.get(*at, column) != written {
                    let name = &layout.column(*place).name;
                    return Err((
                        Status::UnexpectedState,
                        format!("partition {number}: row {row} has a different value for {name}"),
                    ));
                }
            }
        }
        match returned.values().find(|(_, is_matched)| !is_matched) {
            Some((row, _)) => Err((
                Status::UnexpectedState,
                format!("partition {number}: row {row} of the answer was not written; {expected} rows were expected"),
            )),
            None => Ok(()),
        }
    }
}
