//! Reads back the counters of a cassandra-stress run.
//!
//! A counter does not show which writes changed it. Its value must be at least the sum of the acknowledged increments,
//! and at most this sum plus the increments of every other attempt that may have been applied. Counters must be 0 at
//! the start.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use loadstone_kinds::mapping::Mapping;
use loadstone_kinds::stress::{StressOperation, StressWork};
use loadstone_load::Workload;
use loadstone_load::ledger::{Evidence, Fate, Finding, Outcome, State};
use loadstone_session::Connection;
use loadstone_session::statements::{Cells, Statement, StatementStore, Values};
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::TrialSpec;

use super::findings::{Counter, Crash, Findings, Proof, Reading};
use super::levels::{is_acknowledged, read, read_at_levels, store_error, unread};

/// A run whose increments are compared with a store's counters.
pub struct CounterReadBack<'a, E> {
    /// The spec of the run.
    pub spec: &'a TrialSpec,
    /// The run's operations.
    pub work: &'a StressWork,
    /// The names of the columns.
    pub columns: &'a [String],
    /// The statement that reads the counters of a partition.
    pub select: String,
    /// The number of writes that may have been sent.
    pub writes: u64,
    /// The run's ledgers.
    pub evidence: &'a E,
    /// Time at which the system crashed, ns since the Unix epoch.
    pub crash: Option<u64>,
    /// The findings so far.
    pub findings: Findings,
}

/// The bounds of each counter, by the key of its partition; the values are still 0.
type Bounds = HashMap<Vec<u8>, Vec<Counter>>;

/// The result of one pass over all counters.
#[derive(Debug, Default)]
struct Pass {
    /// The sum missing from each counter, for partitions with a counter that is too low.
    missing: HashMap<Vec<u8>, Vec<i64>>,
    reading: Reading,
    /// Absent if there is no counter that can be damaged.
    proof: Option<Proof>,
}

/// An acknowledged write to a partition with missing increments.
#[derive(Debug)]
struct Write {
    index: u64,
    increments: Vec<i64>,
}

impl CounterReadBack<'_, Evidence<'_, Mapping>> {
    /// Reads the counters from a store of this type.
    pub fn run<S: StatementStore>(mut self) -> Result<Findings, EngineError> {
        let bounds = self.sum_increments();
        let mut findings = std::mem::take(&mut self.findings);
        let pass = async |store: &S| self.pass(store, &bounds).await;
        let (mut decisive, stronger) = read_at_levels(self.spec, &mut findings, &pass)?;
        let lost_earlier = self.find_lost(&decisive.missing);
        if let Some(stronger) = stronger {
            decisive = stronger;
        }
        findings.prove(decisive.proof);
        findings.add(decisive.reading);
        let lost = self.find_lost(&decisive.missing);
        let crash = self.crash.map(|at_ns| Crash { at_ns });
        self.visit_writes(|_, index, state| {
            if is_acknowledged(state) {
                let fate = if lost.contains(&index) { Fate::Lost } else { Fate::Proven };
                let missed = lost_earlier.contains(&index);
                findings.account(&Outcome { index, span: self.evidence.span(index), fate, missed }, crash);
            }
        });
        Ok(findings)
    }

    /// Visits the writes that were sent, in order: operation, index and state.
    fn visit_writes(&self, mut visit: impl FnMut(&StressOperation, u64, State)) {
        let mut operation = StressOperation::default();
        for (index, number) in self.work.writes(self.writes) {
            if let Some(state) = self.evidence.state(index, number) {
                self.work.fill(index, &mut operation);
                visit(&operation, index, state);
            }
        }
    }

    fn sum_increments(&self) -> Bounds {
        let mut bounds = Bounds::new();
        let retries = i64::try_from(self.spec.inserts.retries).unwrap_or(i64::MAX);
        self.visit_writes(|operation, _, state| {
            // Number of attempts that were certainly applied, and number that may have been applied.
            let (certain, possible) = match state {
                State::Acknowledged => (1, 1),
                State::Retried => (1, retries.saturating_add(1)),
                State::Maybe | State::Unknown => (0, retries.saturating_add(1)),
                State::Refused => (0, 0),
            };
            let zero = Counter { value: 0, acknowledged: 0, possible: 0 };
            let columns = bounds.entry(operation.row().key.clone()).or_insert_with(|| vec![zero; self.columns.len()]);
            for (counter, increment) in columns.iter_mut().zip(operation.increments()) {
                counter.acknowledged = counter.acknowledged.saturating_add(increment.saturating_mul(certain));
                counter.possible = counter.possible.saturating_add(increment.saturating_mul(possible));
            }
        });
        bounds
    }

    /// The smallest number of acknowledged writes whose increments add up to the missing sum. After a crash, the latest
    /// writes are preferred, because a guarantee may allow the loss of recent writes.
    fn find_lost(&self, missing: &HashMap<Vec<u8>, Vec<i64>>) -> HashSet<u64> {
        let mut writes: HashMap<&[u8], Vec<Write>> = HashMap::new();
        if missing.is_empty() {
            return HashSet::new();
        }
        self.visit_writes(|operation, index, state| {
            if let Some((key, _)) = missing.get_key_value(&operation.row().key).filter(|_| is_acknowledged(state)) {
                writes.entry(key).or_default().push(Write { index, increments: operation.increments().to_vec() });
            }
        });
        let lost = writes.into_iter().flat_map(|(key, mut writes)| {
            let mut most = Vec::new();
            for (column, missing) in missing[key].iter().enumerate() {
                writes.sort_by_key(|write| {
                    (Reverse(if self.crash.is_some() { 0 } else { write.increments[column] }), Reverse(write.index))
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
    async fn pass<S: StatementStore>(&self, store: &S, bounds: &Bounds) -> Result<Pass, EngineError> {
        let statement = Statement { text: self.select.clone(), writes: false, prepared: true };
        let mut session = store.statements(&Arc::from([statement]));
        session.connect().await.map_err(store_error)?;
        let mut pass = Pass::default();
        let (mut cells, mut values) = (Cells::default(), Values::default());
        for (key, counters) in bounds {
            values.clear();
            values.push(key);
            read(&mut session, &values, &mut cells).await?;
            let mut missing = Vec::with_capacity(counters.len());
            for (column, (name, counter)) in self.columns.iter().zip(counters).enumerate() {
                let counter = Counter { value: self.value(&cells, column)?, ..*counter };
                pass.reading.add_counter(counter, key, name);
                missing.push(counter.acknowledged.saturating_sub(counter.value).max(0));
                if counter.acknowledged > 0 && matches!(counter.judge(), Finding::Fine | Finding::CameTrue) {
                    pass.proof.get_or_insert_with(|| prove(counter));
                }
            }
            pass.reading.end_record();
            if missing.iter().any(|missing| *missing > 0) {
                pass.missing.insert(key.clone(), missing);
            }
        }
        session.cleanup().await;
        Ok(pass)
    }

    /// The value of a counter, or 0 if there is no row. An answer with an unexpected number of columns proves nothing.
    fn value(&self, cells: &Cells, column: usize) -> Result<i64, EngineError> {
        let (rows, width, columns) = (cells.rows(), cells.width(), self.columns.len());
        if rows == 0 {
            return Ok(0);
        }
        if rows > 1 || width != columns {
            let message =
                format!("a partition must have one row of {columns} counters, got {rows} with {width} columns");
            return Err(unread(message));
        }
        match cells.get(0, column).map(<[u8; 8]>::try_from) {
            None => Ok(0),
            Some(Ok(value)) => Ok(i64::from_be_bytes(value)),
            Some(Err(_)) => Err(unread(format!("the counter {} does not have 8 bytes", self.columns[column]))),
        }
    }
}

/// Damages a counter in memory. Reports whether the read-back finds the damage.
fn prove(counter: Counter) -> Proof {
    let too_high = Counter { value: counter.possible.saturating_add(1), ..counter };
    let removed = Counter { value: 0, ..counter };
    Proof::from_answer(matches!(too_high.judge(), Finding::Phantom(_)), matches!(removed.judge(), Finding::Lost(_)))
}
