//! Reads back the rows of a cassandra-stress run, and judges them by the timestamps of their values.
//!
//! Values depend on the partition alone, so the write that made a value is identified by its timestamp: the start of
//! the run plus the index of the operation, in µs. The server keeps the value with the highest timestamp. The order of
//! writes is therefore known without their times, and a retry of a write counts as the same write.

use std::collections::HashMap;

use loadstone_kinds::mapping::Mapping;
use loadstone_kinds::stress::StressOperation;
use loadstone_load::Workload;
use loadstone_load::ledger::{Evidence, Fate, FieldValue, Finding, WriteState};
use loadstone_load::version::Version;
use loadstone_session::statements::{Cells, StatementStore};
use loadstone_wire::error::EngineError;

use super::findings::{Findings, Proof};
use super::rows::{RowRun, RowsPass, is_acknowledged, read_partitions, refuse_unread};

/// A run whose writes are compared with a store's rows.
pub struct TimestampReadBack<'a, E> {
    pub run: RowRun<'a, E>,
    /// The statement that reads the values of a partition, followed by their timestamps.
    pub select: String,
    /// The timestamp of the operation at index 0, µs since 1970.
    pub start_us: i64,
    /// The index after the last write that may have been sent.
    pub end: u64,
}

/// A partition that the run wrote.
#[derive(Debug)]
struct Partition {
    /// The index of one write to the partition.
    sample: u64,
    /// The index of the last acknowledged write to the partition.
    last: Option<u64>,
}

/// The write that made the values in a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RowState {
    /// A value that no known write made, or a newer value from another client: no conclusion about earlier writes is
    /// possible.
    Unknown,
    /// No row, or the state before the run.
    Before,
    /// The values of the write at this index.
    Write(u64),
}

/// Partitions by key.
type Partitions = HashMap<Vec<u8>, Partition>;
/// The states of partitions, by [`Partition::sample`].
type RowStates = HashMap<u64, RowState>;

/// A value and its timestamp, µs.
type Cell<'a> = Option<(&'a [u8], i64)>;

impl TimestampReadBack<'_, Evidence<'_, Mapping>> {
    /// Reads back the rows from a store of this type.
    pub fn read_back<S: StatementStore>(&self, mut findings: Findings) -> Result<Findings, EngineError> {
        let partitions = self.partitions();
        let pass = async |store: &S| self.read_pass(store, &partitions).await;
        let [earlier, decisive] = self.run.read_at_levels(&mut findings, &pass)?;
        self.run.add_findings(&mut findings, |key, index| {
            let partition = partitions.get(key)?;
            let is_missing = |rows: &RowStates| match rows.get(&partition.sample) {
                Some(RowState::Write(last)) => Some(*last < index),
                Some(RowState::Before) => Some(true),
                Some(RowState::Unknown) | None => None,
            };
            let fate = match is_missing(&decisive) {
                Some(true) => Fate::Lost,
                Some(false) => Fate::Proven,
                None => Fate::Undecided,
            };
            Some((fate, is_missing(&earlier) == Some(true)))
        });
        Ok(findings)
    }

    /// The partitions that the run wrote, by key.
    fn partitions(&self) -> Partitions {
        let mut partitions = Partitions::new();
        self.run.visit_writes(|index, operation, state| {
            let partition = partitions.entry(operation.row().key.clone());
            let partition = partition.or_insert_with(|| Partition { sample: index, last: None });
            if is_acknowledged(state) {
                partition.last = Some(index);
            }
        });
        partitions
    }

    /// Reads and judges all partitions.
    async fn read_pass<S: StatementStore>(
        &self,
        store: &S,
        partitions: &Partitions,
    ) -> Result<RowsPass<RowStates>, EngineError> {
        let mut pass = RowsPass::<RowStates>::default();
        let mut scratch = StressOperation::default();
        read_partitions(store, &self.select, partitions, |key, partition, cells| {
            let mut state = RowState::Write(u64::MAX);
            for (column, name) in self.run.columns.iter().enumerate() {
                let cell = self.parse_cell(cells, column)?;
                let (finding, content) = self.judge_cell(partition, key, column, cell, &mut scratch);
                state = state.min(match (finding, content) {
                    (Finding::Corrupt | Finding::Phantom(_), _) => RowState::Unknown,
                    (_, FieldValue::Of(version)) => RowState::Write(version.index),
                    // The value is newer than the run, so the server was right to discard the run's writes.
                    (Finding::OtherRun, _) if partition.last.is_some() => RowState::Unknown,
                    _ => RowState::Before,
                });
                pass.reading.add_finding(finding, content, key, name);
                if let (Finding::Fine | Finding::CameTrue, Some(_), Some(cell), None) =
                    (finding, partition.last, cell, pass.proof.as_ref())
                {
                    pass.proof = Some(self.prove_timestamps(partition, key, column, cell, &mut scratch));
                }
            }
            pass.reading.end_record();
            pass.states.insert(partition.sample, state);
            Ok(())
        })
        .await?;
        Ok(pass)
    }

    /// A column of an answer. The values come first, then their timestamps. An answer with an unexpected number of
    /// columns proves nothing.
    fn parse_cell<'a>(&self, cells: &'a Cells, column: usize) -> Result<Cell<'a>, EngineError> {
        let columns = self.run.columns.len();
        if cells.rows() == 0 {
            return Ok(None);
        }
        if cells.rows() > 1 || cells.width() != 2 * columns {
            let (rows, width) = (cells.rows(), cells.width());
            return Err(refuse_unread(format!(
                "a partition must have one row of {columns} values and their timestamps, got {rows} with {width} columns"
            )));
        }
        match (cells.get(0, column), cells.get(0, columns + column).map(<[u8; 8]>::try_from)) {
            (None, None) => Ok(None),
            (Some(value), Some(Ok(stamp))) => Ok(Some((value, i64::from_be_bytes(stamp)))),
            _ => Err(refuse_unread(format!(
                "the column {} has a value or a timestamp without the other",
                self.run.columns[column]
            ))),
        }
    }

    /// Judges the value of a column by the write that its timestamp identifies. A value from before the run is not
    /// compared.
    fn judge_cell(
        &self,
        partition: &Partition,
        key: &[u8],
        column: usize,
        cell: Cell<'_>,
        scratch: &mut StressOperation,
    ) -> (Finding, FieldValue) {
        let lost_or = |other| partition.last.map_or(other, |last| Finding::Lost(Some(last)));
        let Some((value, stamp_us)) = cell else { return (lost_or(Finding::NotLoaded), FieldValue::Absent) };
        let Ok(index) = u64::try_from(stamp_us.saturating_sub(self.start_us)) else {
            return (lost_or(Finding::OtherRun), FieldValue::OtherRun);
        };
        if index >= self.end {
            return (Finding::OtherRun, FieldValue::OtherRun);
        }
        let content = FieldValue::Of(Version::from_run(index));
        let number = self.run.work.write_number(index).filter(|number| *number < self.run.writes);
        let state = number.and_then(|number| {
            self.run.work.fill_operation(index, scratch);
            if scratch.row().key == key { self.run.evidence.state(index, number) } else { None }
        });
        let finding = match (partition.last, state) {
            (_, None | Some(WriteState::Refused)) => Finding::Phantom(index),
            _ if scratch.row().columns().nth(column).flatten() != Some(value) => {
                return (Finding::Corrupt, FieldValue::Unreadable);
            }
            (Some(last), _) if index < last => Finding::Lost(Some(last)),
            (_, Some(WriteState::Acknowledged | WriteState::Retried)) => Finding::Fine,
            (_, Some(WriteState::Maybe | WriteState::Unknown)) => Finding::CameTrue,
        };
        (finding, content)
    }

    /// Damages an answer in memory, and reports whether the read-back finds the damage. A damaged row in the store
    /// could not be repaired, because the repair would need another timestamp.
    fn prove_timestamps(
        &self,
        partition: &Partition,
        key: &[u8],
        column: usize,
        (value, stamp_us): (&[u8], i64),
        scratch: &mut StressOperation,
    ) -> Proof {
        let mut damaged = value.to_vec();
        match damaged.last_mut() {
            Some(byte) => *byte ^= 1,
            None => damaged.push(0),
        }
        let (corrupt, _) = self.judge_cell(partition, key, column, Some((&damaged, stamp_us)), scratch);
        let (removed, _) = self.judge_cell(partition, key, column, None, scratch);
        Proof::from_answer(corrupt == Finding::Corrupt, matches!(removed, Finding::Lost(Some(_))))
    }
}
