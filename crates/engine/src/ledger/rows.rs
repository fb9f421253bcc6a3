//! Reads back the rows of a run of cassandra-stress.

use std::collections::HashMap;
use std::sync::Arc;

use loadstone_kinds::mapping::Mapping;
use loadstone_kinds::stress::{StressOperation, StressWork};
use loadstone_load::Workload;
use loadstone_load::ledger::{Evidence, Fate, WriteOutcome, WriteState};
use loadstone_session::statements::{Cells, Statement, StatementStore, Statements, Values};
use loadstone_session::{Connection, ReadLevel};
use loadstone_wire::error::{EngineError, ErrorKind};
use loadstone_wire::spec::TrialSpec;

use super::findings::{Findings, Proof};
use super::levels::{ATTEMPTS, BETWEEN_ATTEMPTS, find_own_level, list_stronger, options_at, store_error};
use super::reading::RecordsReading;

/// A run whose writes are compared with the rows of a store.
pub struct RowRun<'a, E> {
    /// The spec of the run.
    pub spec: &'a TrialSpec,
    /// The operations of the run.
    pub work: &'a StressWork,
    /// The names of the run's columns.
    pub columns: &'a [String],
    /// The number of writes that may have been sent.
    pub writes: u64,
    /// The ledgers of the run.
    pub evidence: &'a E,
    /// The instants of the system's crashes, in order, ns of Unix time.
    pub crashes: &'a [u64],
}

/// The result of one pass over all partitions.
#[derive(Debug, Default)]
pub struct RowsPass<T> {
    /// The states of the partitions.
    pub states: T,
    pub reading: RecordsReading,
    /// The outcome of the planted faults; absent if no value can be damaged.
    pub proof: Option<Proof>,
}

impl RowRun<'_, Evidence<'_, Mapping>> {
    /// Visits the writes that were sent, in order, with the index, operation and state of each write.
    pub fn visit_writes(&self, mut visit: impl FnMut(u64, &StressOperation, WriteState)) {
        let mut operation = StressOperation::default();
        for (index, number) in self.work.list_writes(self.writes) {
            if let Some(state) = self.evidence.state(index, number) {
                self.work.fill_operation(index, &mut operation);
                visit(index, &operation, state);
            }
        }
    }

    /// Counts the acknowledged writes by their fate. `find_fate` returns the fate of the write with this key and index,
    /// and whether the write is missing at the workload's consistency level.
    pub fn add_findings(&self, findings: &mut Findings, find_fate: impl Fn(&[u8], u64) -> Option<(Fate, bool)>) {
        self.visit_writes(|index, operation, state| {
            if is_acknowledged(state)
                && let Some((fate, missed)) = find_fate(&operation.row().key, index)
            {
                findings.count_outcome(
                    &WriteOutcome { index, span: self.evidence.span(index), fate, missed },
                    self.crashes,
                );
            }
        });
    }

    /// Makes a pass over the rows at the workload's own level, and another at the strongest level that the servers can
    /// answer. Returns the states from both passes, which are equal if the levels are the same. The weaker level is
    /// read first, because a read at a stronger level repairs the replicas that it contacts.
    pub fn read_at_levels<S: StatementStore, T: Clone>(
        &self,
        findings: &mut Findings,
        pass: &impl AsyncFn(&S) -> Result<RowsPass<T>, EngineError>,
    ) -> Result<[T; 2], EngineError> {
        let open = |level: Option<ReadLevel>| S::open(&options_at(self.spec, level, "")).map_err(store_error);
        let own = open(None)?;
        findings.note_guarantee(own.guarantee().loss_ns_max());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| refuse_unread(format!("cannot start an executor: {error}")))?;
        let local = tokio::task::LocalSet::new();
        let mut decisive = local.block_on(&runtime, pass(&own))?;
        let earlier = decisive.states.clone();
        let own_level = find_own_level(self.spec, S::read_levels());
        let mut decisive_level = own_level.clone();
        for level in list_stronger(self.spec, S::read_levels()) {
            let result = open(Some(level)).and_then(|store| {
                let result = local.block_on(&runtime, pass(&store));
                store.close().map_err(store_error).and(result)
            });
            match result {
                Ok(result) => {
                    (decisive, decisive_level) = (result, Some(level.name.to_owned()));
                    break;
                }
                // Servers that this level needs are unavailable.
                Err(error) if error.kind == ErrorKind::Unread => findings.note_weaker_level(),
                Err(error) => return Err(error),
            }
        }
        findings.note_levels(decisive_level, own_level);
        own.close().map_err(store_error)?;
        findings.note_proof(decisive.proof);
        findings.add_reading(decisive.reading);
        Ok([earlier, decisive.states])
    }
}

/// Whether the server acknowledged the write.
pub const fn is_acknowledged(state: WriteState) -> bool {
    matches!(state, WriteState::Acknowledged | WriteState::Retried)
}

/// Creates the error for a read-back that could not read every row, and therefore proves nothing.
pub fn refuse_unread(message: String) -> EngineError {
    super::levels::refuse_unread(message, "row")
}

/// Reads each partition with a statement that takes its key, and passes the answer to `judge`.
pub async fn read_partitions<S: StatementStore, P>(
    store: &S,
    select: &str,
    partitions: &HashMap<Vec<u8>, P>,
    mut judge: impl FnMut(&[u8], &P, &Cells) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let statement = Statement { text: select.to_owned(), writes: false, prepared: true };
    let mut session = store.statements(&Arc::from([statement]));
    session.connect().await.map_err(store_error)?;
    let (mut cells, mut values) = (Cells::default(), Values::default());
    for (key, partition) in partitions {
        values.clear();
        values.push(key);
        read_row(&mut session, &values, &mut cells).await?;
        judge(key, partition, &cells)?;
    }
    session.cleanup().await;
    Ok(())
}

/// Executes the statement until the server answers.
async fn read_row<S: Statements>(session: &mut S, values: &Values, cells: &mut Cells) -> Result<(), EngineError> {
    for attempt in 1.. {
        let status = session.execute(0, values, cells).await;
        if status.is_ok() {
            break;
        }
        let message = session.last_error().unwrap_or_else(|| "no message".to_owned());
        if attempt == ATTEMPTS {
            return Err(refuse_unread(format!("cannot read a row: {}: {message}", status.name())));
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
    }
    Ok(())
}
