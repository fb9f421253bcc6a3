//! Reads every record that a run wrote and judges its values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use loadstone_load::core::{CoreRun, CoreSpec};
use loadstone_load::keys::write_key;
use loadstone_load::ledger::{Evidence, FieldValue, Finding, Judge, Standings, Writes};
use loadstone_load::version::{LEN, Origin, Phase, Version};
use loadstone_load::{Projection, RecordWorkload, Row, Status};
use loadstone_stores::erased::{OpenRecordStore, StoreType, VirtualSession};
use loadstone_stores::{Connection, ReadLevel, Session};

use super::findings::{Findings, Proof};
use super::levels::{
    ATTEMPTS, BETWEEN_ATTEMPTS, find_own_level, list_stronger, options_at, refuse_unread, store_error,
};
use super::reading::RecordsReading;
use loadstone_kinds::mapping::Mapping;
use loadstone_wire::error::{EngineError, ErrorKind};
use loadstone_wire::spec::TrialSpec;

/// Number of histories, of 24 bytes each, that are judged at a time.
const HISTORIES: u64 = 1 << 25;
/// The noun that error messages use for an item to read back.
const UNIT: &str = "record";
/// Pause between removing and restoring a record, because HBase drops a write made in the same millisecond as a delete
/// (HBASE-2256).
const BEFORE_RETURN: Duration = Duration::from_millis(5);

/// A run whose writes are compared with a store's records.
#[derive(Debug)]
pub struct ReadBack<'a, E> {
    /// The spec of the run.
    pub spec: &'a TrialSpec,
    /// The run's records.
    pub core: &'a CoreSpec,
    /// The run's operations.
    pub workload: &'a CoreRun,
    /// The run's ledgers.
    pub evidence: &'a E,
    /// Times at which the system crashed, in order, ns since the Unix epoch.
    pub crashes: &'a [u64],
    /// Whether the load wrote all of the run's records.
    pub loaded: bool,
    /// The findings so far.
    pub findings: Findings,
}

/// The result of one pass over the records of a range.
struct Pass {
    standings: Standings,
    reading: RecordsReading,
    /// Records with a correct value of this run. The proof may damage these records and then repairs them.
    samples: Vec<u64>,
}

/// A store that is open for reads at one level.
struct Opened {
    store: Arc<dyn OpenRecordStore>,
    level: Option<String>,
}

impl Opened {
    async fn open_session(&self) -> Result<VirtualSession, EngineError> {
        let mut session = self.store.session().map_err(store_error)?;
        session.connect().await.map_err(store_error)?;
        Ok(session)
    }
}

impl ReadBack<'_, Evidence<'_, Mapping>> {
    /// Reads back the records from a store of this type.
    pub fn read_store(self, store: &StoreType) -> Result<Findings, EngineError> {
        // Opens and closes the stores outside the executor, because a store may need a separate executor for this.
        // The strongest level is first; `None`, for the workload's own level, is last.
        let levels = list_stronger(self.spec, (store.read_levels)()).map(Some).chain([None]);
        let stores = levels.map(|level| self.open_store(store, level)).collect::<Result<Vec<_>, _>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| refuse_unread(format!("cannot start an executor: {error}"), UNIT))?;
        let findings = tokio::task::LocalSet::new().block_on(&runtime, self.read_stores(&stores))?;
        for opened in stores {
            opened.store.close().map_err(store_error)?;
        }
        Ok(findings)
    }

    /// Reads back at the workload's own level, which is last in `stores`, and at the strongest level that the servers
    /// can answer.
    async fn read_stores(mut self, stores: &[Opened]) -> Result<Findings, EngineError> {
        let (workload, evidence, histories) = (self.workload, self.evidence, self.workload.history_count());
        let operations =
            evidence.end().checked_sub(1).and_then(|last| workload.find_index(last)).map_or(0, |last| last + 1);
        let end = (0..operations).filter_map(|index| workload.find_write(index)).map(|write| write.record + 1).max();
        let end = end.unwrap_or(0);
        let [stronger @ .., weakest] = stores else { return Ok(self.findings) };
        self.findings.note_guarantee(weakest.store.guarantee().loss_ns_max());
        let (mut own, mut stronger) = (weakest.open_session().await?, stronger.iter());
        let mut strongest = claim_range(&mut stronger).await?;
        let per_pass = (HISTORIES / histories as u64).max(1);
        for start in (self.core.insert_start..end).step_by(per_pass as usize) {
            let records = start..end.min(start + per_pass);
            let mut written = vec![false; (records.end - records.start) as usize];
            for record in (0..operations).filter_map(|index| workload.find_write(index)).map(|write| write.record) {
                if records.contains(&record) {
                    written[(record - start) as usize] = true;
                }
            }
            let written: Vec<u64> = records.clone().filter(|record| written[(record - start) as usize]).collect();
            // A server applies writes in the order in which they arrive, so an abandoned write may be applied last.
            let judge = Judge::new(workload, evidence, true, records);
            // The workload's own level is read first, because a read at a stronger level repairs the replicas that it
            // contacts.
            let earlier = match strongest {
                None => None,
                Some(_) => Some(self.read_pass(&mut own, &judge, &written).await?.standings),
            };
            let decisive = loop {
                let Some((session, _)) = &mut strongest else {
                    break self.read_pass(&mut own, &judge, &written).await?;
                };
                match self.read_pass(session, &judge, &written).await {
                    Ok(pass) => break pass,
                    // Some servers that this level needs are unavailable.
                    Err(error) if error.kind == ErrorKind::Unread => strongest = claim_range(&mut stronger).await?,
                    Err(error) => return Err(error),
                }
                self.findings.note_weaker_level();
            };
            self.findings.add_reading(decisive.reading);
            let (findings, crashes) = (&mut self.findings, self.crashes);
            judge.judge_writes(&decisive.standings, earlier.as_ref(), |outcome| {
                findings.count_outcome(&outcome, crashes);
            });
            if self.findings.needs_proof() {
                let session = strongest.as_mut().map_or(&mut own, |(session, _)| session);
                let proof = self.plant_faults(session, &judge, &decisive.samples).await?;
                self.findings.note_proof(proof);
            }
        }
        let level = strongest.as_ref().map_or(&weakest.level, |(_, level)| level).clone();
        self.findings.note_levels(level, weakest.level.clone());
        own.cleanup().await;
        if let Some((mut session, _)) = strongest {
            session.cleanup().await;
        }
        Ok(self.findings)
    }

    /// Opens the store as the run did, but with the read `level` if it is given.
    fn open_store(&self, kind: &StoreType, level: Option<ReadLevel>) -> Result<Opened, EngineError> {
        let store = kind.open(&options_at(self.spec, level, &self.core.table)).map_err(store_error)?;
        let own = || find_own_level(self.spec, (kind.read_levels)());
        Ok(Opened { store, level: level.map_or_else(own, |level| Some(level.name.to_owned())) })
    }

    /// Reads and judges the given records.
    async fn read_pass(
        &self,
        session: &mut VirtualSession,
        judge: &Judge<'_, CoreRun, Mapping>,
        records: &[u64],
    ) -> Result<Pass, EngineError> {
        let mut pass = Pass { standings: judge.standings(), reading: RecordsReading::default(), samples: Vec::new() };
        let (mut key, mut row, mut scratch) = (Vec::new(), Row::default(), judge.standings());
        for &record in records {
            write_key(&mut key, record, self.core.insert_order, self.core.zero_padding);
            read_row(session, &key, &mut row).await?;
            let (mut own, mut clean) = (None, true);
            self.judge_row(judge, &mut pass.standings, (record, &key), &row, |field, finding, value| {
                if finding == Finding::Fine && matches!(value, FieldValue::Of(version) if version.phase == Phase::Run) {
                    own = Some(field);
                }
                clean &= !matches!(finding, Finding::Lost(_) | Finding::Corrupt | Finding::Phantom(_));
                pass.reading.add_finding(finding, value, &key, &self.workload.field_names()[field]);
            });
            pass.reading.end_record();
            if let Some(field) = own.filter(|_| clean && pass.samples.len() < 2)
                && matches!(judge.judge_value(&mut scratch, record, field, FieldValue::Absent), Finding::Lost(Some(_)))
            {
                pass.samples.push(record);
            }
        }
        Ok(pass)
    }

    /// Judges the fields of a record that was read.
    fn judge_row(
        &self,
        judge: &Judge<'_, CoreRun, Mapping>,
        standings: &mut Standings,
        (record, key): (u64, &[u8]),
        row: &Row,
        mut visit: impl FnMut(usize, Finding, FieldValue),
    ) {
        let mut expected = Vec::new();
        let mut classify = |field: usize, name: &str| match row.find_field(name.as_bytes()) {
            None => FieldValue::Absent,
            Some(value) => match self.workload.find_origin(key, name.as_bytes(), value) {
                Some(Origin::OtherRun(_)) => FieldValue::OtherRun,
                Some(Origin::Own(version))
                    if self.find_torn_updates(version, (record, key), field, value, &mut expected) =>
                {
                    FieldValue::Unreadable
                }
                Some(Origin::Own(version)) => FieldValue::Of(version),
                None => FieldValue::Unreadable,
            },
        };
        let names = self.workload.field_names().iter().enumerate();
        let values: Vec<FieldValue> = names.map(|(field, name)| classify(field, name)).collect();
        // Either the load wrote every record (`--loaded`), or a loaded value in this record shows that the load wrote
        // the record.
        let loaded = self.loaded
            || values.iter().any(|value| matches!(value, FieldValue::Of(version) if version.phase == Phase::Load));
        for (field, &value) in values.iter().enumerate() {
            let finding = match judge.judge_value(standings, record, field, value) {
                Finding::Lost(None) if !loaded => Finding::NotLoaded,
                finding => finding,
            };
            visit(field, finding, value);
        }
    }

    /// Whether the version of a value is correct, but the remaining bytes differ from the bytes written. The judge
    /// handles writes that did not write this field.
    fn find_torn_updates(
        &self,
        version: Version,
        (record, key): (u64, &[u8]),
        field: usize,
        value: &[u8],
        expected: &mut Vec<u8>,
    ) -> bool {
        self.workload.expect_value(version, record, key, field, expected) && expected != value
    }

    /// Damages one value and removes one write in records of this run. Reports whether the read-back finds both faults.
    async fn plant_faults(
        &self,
        session: &mut VirtualSession,
        judge: &Judge<'_, CoreRun, Mapping>,
        samples: &[u64],
    ) -> Result<Option<Proof>, EngineError> {
        let (Some(&corrupted), Some(&removed)) = (samples.first(), samples.last()) else { return Ok(None) };
        let mut proof = Proof::default();
        let detects = |row: &Row, record: u64, key: &[u8], is_planted: fn(Finding) -> bool| {
            let mut detected = false;
            self.judge_row(judge, &mut judge.standings(), (record, key), row, |_, finding, _| {
                detected |= is_planted(finding);
            });
            detected
        };
        let (mut key, mut before, mut after) = (Vec::new(), Row::default(), Row::default());
        // Flips one bit in the last byte of a value of this run, so that its version stays correct.
        write_key(&mut key, corrupted, self.core.insert_order, self.core.zero_padding);
        read_row(session, &key, &mut before).await?;
        let own = before.fields().flatten().find(|(name, value)| {
            matches!(self.workload.find_origin(&key, name, value), Some(Origin::Own(version)) if version.phase == Phase::Run)
        });
        if let Some((name, value)) = own {
            let (mut plant, mut repair) = (Row::default(), Row::default());
            plant.push_with(name, value.len(), |out| {
                out.copy_from_slice(value);
                // A value that consists of the version alone has no other byte.
                out[value.len() - 1] ^= if value.len() > LEN { 1 } else { 0x40 };
            });
            repair.push_field(name, value);
            for _ in 0..ATTEMPTS {
                if proof.note_planting(session.update(&key, &plant).await) {
                    break;
                }
                tokio::time::sleep(BETWEEN_ATTEMPTS).await;
            }
            read_row(session, &key, &mut after).await?;
            proof.corrupted = detects(&after, corrupted, &key, |finding| finding == Finding::Corrupt);
            proof.note_repair(restore_row(session, &key, &repair, &before, false).await?);
        }
        write_key(&mut key, removed, self.core.insert_order, self.core.zero_padding);
        read_row(session, &key, &mut before).await?;
        for _ in 0..ATTEMPTS {
            if proof.note_planting(session.delete(&key).await) {
                break;
            }
            tokio::time::sleep(BETWEEN_ATTEMPTS).await;
        }
        read_row(session, &key, &mut after).await?;
        proof.removed = detects(&after, removed, &key, |finding| matches!(finding, Finding::Lost(Some(_))));
        proof.note_repair(restore_row(session, &key, &before, &before, true).await?);
        Ok(Some(proof))
    }
}

/// Opens a session of the next store in `stores`. Returns the session and its read level; `None` after the last store.
async fn claim_range(
    stores: &mut std::slice::Iter<'_, Opened>,
) -> Result<Option<(VirtualSession, Option<String>)>, EngineError> {
    match stores.next() {
        None => Ok(None),
        Some(opened) => Ok(Some((opened.open_session().await?, opened.level.clone()))),
    }
}

/// Writes `row` until the record equals `before`; returns `false` if it still differs after the last attempt.
async fn restore_row(
    session: &mut VirtualSession,
    key: &[u8],
    row: &Row,
    before: &Row,
    whole: bool,
) -> Result<bool, EngineError> {
    let mut after = Row::default();
    for _ in 0..ATTEMPTS {
        tokio::time::sleep(BEFORE_RETURN).await;
        let _status = if whole { session.insert(key, row).await } else { session.update(key, row).await };
        read_row(session, key, &mut after).await?;
        if sort_fields(&after) == sort_fields(before) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Sorts the fields by name, because a store may return them in another order.
fn sort_fields(row: &Row) -> BTreeMap<&[u8], &[u8]> {
    row.fields().flatten().collect()
}

/// Reads a record. A missing record gives an empty row.
async fn read_row(session: &mut VirtualSession, key: &[u8], row: &mut Row) -> Result<(), EngineError> {
    for attempt in 1.. {
        let status = session.read(key, Projection::All, row).await;
        if status.is_ok() {
            return Ok(());
        }
        if status == Status::NotFound {
            row.clear_fields();
            return Ok(());
        }
        let message = session.last_error().unwrap_or_else(|| "no message".to_owned());
        if attempt == ATTEMPTS {
            let key = String::from_utf8_lossy(key);
            return Err(refuse_unread(format!("cannot read {key}: {}: {message}", status.name()), UNIT));
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
    }
    Ok(())
}
