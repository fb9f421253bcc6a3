//! Reads back the counters of a cassandra-stress run.
//!
//! A counter does not show which writes changed it. Its value must be at least the sum of the acknowledged increments,
//! and at most this sum plus the increments of every other attempt that may have been applied. Counters must be 0 at
//! the start.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use loadstone_kinds::mapping::Mapping;
use loadstone_load::ledger::{Evidence, Fate, Finding, WriteState};
use loadstone_session::statements::{Cells, StatementStore};
use loadstone_wire::error::EngineError;

use super::findings::{Findings, Proof, find_crash};
use super::reading::CounterBounds;
use super::rows::{RowRun, RowsPass, is_acknowledged, read_partitions, refuse_unread};

/// A run whose increments are compared with a store's counters.
pub struct CounterReadBack<'a, E> {
    pub run: RowRun<'a, E>,
    /// The statement that reads the counters of a partition.
    pub select: String,
}

/// The bounds of each counter, by partition key. The field `value` is not set yet.
type Bounds = HashMap<Vec<u8>, Vec<CounterBounds>>;
/// The missing amount of each counter, by partition key. Partitions without missing amounts are omitted.
type Missing = HashMap<Vec<u8>, Vec<i64>>;

/// An acknowledged write to a partition with missing increments.
#[derive(Debug)]
struct Write {
    index: u64,
    sent: u64,
    increments: Vec<i64>,
}

impl CounterReadBack<'_, Evidence<'_, Mapping>> {
    /// Reads the counters from a store of this type.
    pub fn read_back<S: StatementStore>(&self, mut findings: Findings) -> Result<Findings, EngineError> {
        let bounds = self.sum_increments();
        let pass = async |store: &S| self.read_pass(store, &bounds).await;
        let missing = self.run.read_at_levels(&mut findings, &pass)?;
        let [lost_earlier, lost] = missing.map(|missing| self.find_lost(&missing));
        self.run.add_findings(&mut findings, |_, index| {
            let fate = if lost.contains(&index) { Fate::Lost } else { Fate::Proven };
            Some((fate, lost_earlier.contains(&index)))
        });
        Ok(findings)
    }

    fn sum_increments(&self) -> Bounds {
        let mut bounds = Bounds::new();
        let retries = i64::try_from(self.run.spec.inserts.retries).unwrap_or(i64::MAX);
        self.run.visit_writes(|_, operation, state| {
            // The number of attempts that were certainly applied, and the number that may have been applied.
            let (certain, possible) = match state {
                WriteState::Acknowledged => (1, 1),
                WriteState::Retried => (1, retries.saturating_add(1)),
                WriteState::Maybe | WriteState::Unknown => (0, retries.saturating_add(1)),
                WriteState::Refused => (0, 0),
            };
            let columns = bounds.entry(operation.row().key.clone());
            let columns = columns.or_insert_with(|| vec![CounterBounds::default(); self.run.columns.len()]);
            for (counter, increment) in columns.iter_mut().zip(operation.increments()) {
                counter.acknowledged = counter.acknowledged.saturating_add(increment.saturating_mul(certain));
                counter.possible = counter.possible.saturating_add(increment.saturating_mul(possible));
            }
        });
        bounds
    }

    /// Acknowledged writes whose increments account for the missing amounts: as few writes as possible or, if there was
    /// a crash, the latest writes that the crash can explain, because a guarantee may allow the loss of recent writes.
    fn find_lost(&self, missing: &Missing) -> HashSet<u64> {
        let mut writes: HashMap<&[u8], Vec<Write>> = HashMap::new();
        if missing.is_empty() {
            return HashSet::new();
        }
        self.run.visit_writes(|index, operation, state| {
            if let Some((key, _)) = missing.get_key_value(&operation.row().key).filter(|_| is_acknowledged(state)) {
                let sent = self.run.evidence.span(index).sent;
                writes.entry(key).or_default().push(Write { index, sent, increments: operation.increments().to_vec() });
            }
        });
        let lost = writes.into_iter().flat_map(|(key, mut writes)| {
            let mut most = Vec::new();
            for (column, missing) in missing[key].iter().enumerate() {
                writes.sort_by_key(|write| {
                    (
                        find_crash(self.run.crashes, write.sent).is_none(),
                        Reverse(if self.run.crashes.is_empty() { write.increments[column] } else { 0 }),
                        Reverse(write.index),
                    )
                });
                let mut left = *missing;
                let lost = writes.iter().take_while(|write| {
                    let takes = left > 0;
                    left -= write.increments[column];
                    takes
                });
                let lost: Vec<u64> = lost.map(|write| write.index).collect();
                if lost.len() > most.len() {
                    most = lost;
                }
            }
            most
        });
        lost.collect()
    }

    /// Reads and judges all counters.
    async fn read_pass<S: StatementStore>(&self, store: &S, bounds: &Bounds) -> Result<RowsPass<Missing>, EngineError> {
        let mut pass = RowsPass::<Missing>::default();
        read_partitions(store, &self.select, bounds, |key, counters, cells| {
            let mut missing = Vec::with_capacity(counters.len());
            for (column, (name, counter)) in self.run.columns.iter().zip(counters).enumerate() {
                let counter = CounterBounds { value: self.read_value(cells, column)?, ..*counter };
                pass.reading.add_counter(counter, key, name);
                missing.push(counter.acknowledged.saturating_sub(counter.value).max(0));
                if counter.acknowledged > 0 && matches!(counter.judge_counter(), Finding::Fine | Finding::CameTrue) {
                    pass.proof.get_or_insert_with(|| prove_counter(counter));
                }
            }
            pass.reading.end_record();
            if missing.iter().any(|missing| *missing > 0) {
                pass.states.insert(key.to_vec(), missing);
            }
            Ok(())
        })
        .await?;
        Ok(pass)
    }

    /// The value of a counter, or 0 if there is no row. An answer with an unexpected number of columns proves nothing.
    fn read_value(&self, cells: &Cells, column: usize) -> Result<i64, EngineError> {
        let (rows, width, columns) = (cells.rows(), cells.width(), self.run.columns.len());
        if rows == 0 {
            return Ok(0);
        }
        if rows > 1 || width != columns {
            let message =
                format!("a partition must have one row of {columns} counters, got {rows} with {width} columns");
            return Err(refuse_unread(message));
        }
        match cells.get(0, column).map(<[u8; 8]>::try_from) {
            None => Ok(0),
            Some(Ok(value)) => Ok(i64::from_be_bytes(value)),
            Some(Err(_)) => {
                Err(refuse_unread(format!("the counter {} does not have 8 bytes", self.run.columns[column])))
            }
        }
    }
}

/// Damages a counter in memory. Reports whether the read-back finds the damage.
fn prove_counter(counter: CounterBounds) -> Proof {
    let too_high = CounterBounds { value: counter.possible.saturating_add(1), ..counter };
    let removed = CounterBounds { value: 0, ..counter };
    Proof::from_answer(
        matches!(too_high.judge_counter(), Finding::Phantom(_)),
        matches!(removed.judge_counter(), Finding::Lost(_)),
    )
}
