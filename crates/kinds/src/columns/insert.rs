//! The rows of an insert, sent batch by batch.

use loadstone_session::statements::{BatchKind, Values};
use loadstone_stress::columns::{BATCH_ROWS_MAX, PlannedOperation};
use loadstone_stress::distribution::{Distribution, RatioSpec};
use loadstone_stress::partition::ColumnPlace;
use loadstone_stress::random::mix_seed;

use super::strides::draw_uniform;
use super::{ColumnsWork, Generators, Prepared, SHUFFLE, State};

/// These constants separate the random draws of an insert by purpose.
const SELECT: u64 = 0x7365_6c65;
const RATIO: u64 = 0x7261_7469;
/// Size at which a batch is full unless it is logged, bytes: a larger batch would exceed the largest mutation that a
/// server accepts by default.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// The current position in an insert.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertCursor {
    index: u64,
    /// The next partition, and the end of the partitions.
    place: u64,
    last: u64,
    /// The remaining rows of the open partition: `next..end`.
    next: u64,
    end: u64,
    is_open: bool,
    share: f64,
    draws: u64,
    column_share: f64,
}

impl InsertCursor {
    /// Creates a cursor at the start of an operation, which takes the given places in the population.
    pub fn new(index: u64, places: std::ops::Range<u64>) -> Self {
        Self { index, place: places.start, last: places.end, ..Self::default() }
    }
}

impl ColumnsWork {
    /// Fills the batch with the next rows of an insert. If the batch remains empty, there are no more rows.
    pub(super) fn fill_batch(&self, at: usize, state: &mut State) {
        let Prepared { operation: PlannedOperation { table, markers, .. }, batch: kind, .. } = &self.operations[at];
        let State { generators, batch, batch_rows, cursor, rows, partitions, .. } = state;
        let Some(generators) = generators else { return };
        let columns = self.plan.layouts[*table].values.len() as f64;
        *batch_rows = 0;
        let mut bytes = 0;
        while *batch_rows < BATCH_ROWS_MAX && (*kind == BatchKind::Logged || bytes < BATCH_BYTES_MAX) {
            if !cursor.is_open {
                if cursor.place == cursor.last {
                    return;
                }
                self.open_partition(*table, cursor, generators);
                *partitions += 1;
            }
            if cursor.next >= cursor.end {
                cursor.is_open = false;
                continue;
            }
            let generator = &mut generators.tables[*table];
            generator.seek(cursor.next);
            cursor.next = cursor.next.saturating_add(1).saturating_add(draw_gap(self.seed, cursor));
            if batch.len() == *batch_rows {
                batch.push((at, Values::default()));
            }
            let (statement, values) = &mut batch[*batch_rows];
            *statement = at;
            values.clear();
            for place in markers {
                match place {
                    ColumnPlace::Value(column) if (*column + 1) as f64 / columns > cursor.column_share => {
                        values.push_null();
                    }
                    place => values.push_with(|out| generator.append(*place, out)),
                }
            }
            bytes += values.as_bytes().len();
            *batch_rows += 1;
            *rows += 1;
        }
    }

    /// Opens the next partition of an insert, and chooses the first row in it.
    fn open_partition(&self, table: usize, cursor: &mut InsertCursor, generators: &mut Generators) {
        let (place, visit) = self.visit_place(cursor.place);
        let number = generators.population.number_at(place).unwrap_or_default();
        let draw = mix_seed(self.seed, cursor.place, RATIO);
        let share = |ratio: &mut Option<(Distribution, RatioSpec)>| {
            ratio.as_mut().map_or(1.0, |(sampler, ratio)| {
                sampler.seed(draw);
                ratio.share(sampler.next_double())
            })
        };
        cursor.share = share(&mut generators.select[table]);
        cursor.column_share = share(&mut generators.population_ratio[table]);
        let generator = &mut generators.tables[table];
        let seed = generators.population.seed_of(number);
        let is_open = generator.open(seed, |below| mix_seed(self.seed, number as u64, SHUFFLE) as u64 % below).is_ok();
        let rows = if is_open { generator.rows() } else { 0 };
        let visits = u64::from(self.spec.visits);
        let chunk = (rows / visits).max(1);
        let start = (visit * chunk).min(rows);
        cursor.end = if visit + 1 == visits { rows } else { (start + chunk).min(rows) };
        cursor.next = start;
        cursor.is_open = true;
        cursor.place += 1;
        if cursor.share < 1.0 && cursor.end > start {
            let first = start.saturating_add(draw_gap(self.seed, cursor));
            // At least one row is written, as in cassandra-stress.
            cursor.next = first.min(cursor.end - 1);
        }
    }
}

/// Number of rows to skip before the next row that is written. If only a random share of the rows is written, the gaps
/// have a geometric distribution.
#[inline]
fn draw_gap(seed: u64, cursor: &mut InsertCursor) -> u64 {
    if cursor.share >= 1.0 {
        return 0;
    }
    cursor.draws += 1;
    let draw = draw_uniform(seed, cursor.index.wrapping_mul(0x9e37_79b9).wrapping_add(cursor.draws), SELECT);
    // A share of 0 gives an infinite gap, which saturates.
    ((1.0 - draw).ln() / (1.0 - cursor.share).ln()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_parts_have_their_share() {
        let mut cursor = InsertCursor { share: 0.1, index: 3, ..InsertCursor::default() };
        let gaps: u64 = (0..10_000).map(|_| draw_gap(1, &mut cursor)).sum();
        assert!((85_000..95_000).contains(&gaps), "{gaps}");
        cursor.share = 1e-7;
        let gaps: u64 = (0..100).map(|_| draw_gap(1, &mut cursor)).sum();
        assert!(gaps > 100_000_000);
    }
}
