//! Reads every record that a run wrote, and judges its values.

use std::time::Duration;

use loadstone_load::core::{CoreRun, CoreSpec};
use loadstone_load::keys::write_key;
use loadstone_load::ledger::{Evidence, Judge, Loss, Shown, Writes};
use loadstone_load::version::Stamp;
use loadstone_load::{RecordWorkload, Row, Status, Wanted};
use loadstone_stores::{Connection, Options, RecordStore, Session};

use super::findings::Findings;
use crate::dispatch::Visitor;
use crate::error::EngineError;
use crate::mapping::Mapping;
use crate::spec::TrialSpec;

/// How many histories are judged at a time; 8 bytes each.
const HISTORIES: u64 = 1 << 26;
/// Attempts at a read: a server that was just restarted may need some time.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);
/// The exit code when the store cannot be read.
const UNREADABLE: u8 = 3;

/// A run, to be compared with what a store returns.
#[derive(Debug)]
pub struct ReadBack<'a, E> {
    /// The spec of the run.
    pub spec: &'a TrialSpec,
    /// Its records.
    pub core: &'a CoreSpec,
    /// Its operations.
    pub workload: &'a CoreRun,
    /// Its ledgers.
    pub evidence: &'a E,
    /// When the system crashed, ns of Unix time.
    pub crash: Option<u64>,
    /// What is known so far.
    pub findings: Findings,
}

impl Visitor for ReadBack<'_, Evidence<'_, Mapping>> {
    type Output = Result<Findings, EngineError>;

    fn visit<S: RecordStore>(self) -> Self::Output {
        self.run::<S>()
    }
}

fn unreadable(message: String) -> EngineError {
    let error = EngineError { exit: UNREADABLE, ..EngineError::failed(message) };
    error.hint("repair the store and repeat the command: it must read every record")
}

impl ReadBack<'_, Evidence<'_, Mapping>> {
    fn run<S: RecordStore>(mut self) -> Result<Findings, EngineError> {
        let failed = |error: loadstone_stores::StoreError| {
            let error = EngineError::from(error);
            if error.exit == 2 { error } else { EngineError { exit: UNREADABLE, ..error } }
        };
        let store = S::open(&Options {
            properties: self.spec.store.properties.clone(),
            durability: self.spec.store.durability.into(),
            table: self.core.table.clone(),
            create: false,
            clients: 1,
        })
        .map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| unreadable(format!("cannot start an executor: {error}")))?;
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let mut session = store.session().map_err(failed)?;
            session.connect().await.map_err(failed)?;
            self.judge(&mut session).await?;
            session.cleanup().await;
            Ok::<_, EngineError>(())
        })?;
        store.close().map_err(failed)?;
        Ok(self.findings)
    }

    async fn judge<S: Session>(&mut self, session: &mut S) -> Result<(), EngineError> {
        let (workload, evidence, histories) = (self.workload, self.evidence, self.workload.histories());
        let operations = evidence.end().checked_sub(1).and_then(|last| workload.index(last)).map_or(0, |last| last + 1);
        let end = (0..operations).filter_map(|index| workload.write(index)).map(|write| write.record + 1).max();
        let end = end.unwrap_or(0);
        let each = (HISTORIES / histories as u64).max(1);
        for start in (self.core.insert_start..end).step_by(each as usize) {
            let records = start..end.min(start + each);
            let mut written = vec![false; (records.end - records.start) as usize];
            for record in (0..operations).filter_map(|index| workload.write(index)).map(|write| write.record) {
                if records.contains(&record) {
                    written[(record - start) as usize] = true;
                }
            }
            // A server applies writes in the order of arrival, so an abandoned one may be applied last.
            let mut judge = Judge::new(workload, evidence, true, records.clone());
            let mut losses = Vec::new();
            for record in records.filter(|record| written[(record - start) as usize]) {
                self.record(session, &judge, record, &mut losses).await?;
            }
            let ages = judge.ages(&losses, self.crash.unwrap_or(0));
            self.findings.age(&losses, &ages, histories, self.crash.is_some());
        }
        Ok(())
    }

    /// Reads a record and judges its fields.
    async fn record<S: Session>(
        &mut self,
        session: &mut S,
        judge: &Judge<'_, CoreRun, Mapping>,
        record: u64,
        losses: &mut Vec<Loss>,
    ) -> Result<(), EngineError> {
        let (mut key, mut row) = (Vec::new(), Row::default());
        write_key(&mut key, record, self.core.insert_order, self.core.zero_padding);
        read(session, &key, &mut row).await?;
        self.findings.read();
        let stamp = Stamp::of(self.spec.seed, &key);
        for (field, name) in self.workload.field_names().iter().enumerate() {
            let shown = match row.get(name.as_bytes()) {
                None => Shown::Absent,
                Some(value) => stamp.read(value, name.as_bytes()).map_or(Shown::Unreadable, Shown::Of),
            };
            if self.findings.add(judge.judge(record, field, shown), shown, &key, name) {
                losses.push(Loss { record, field, shown });
            }
        }
        Ok(())
    }
}

/// Reads a record; the row of a missing one is empty.
async fn read<S: Session>(session: &mut S, key: &[u8], row: &mut Row) -> Result<(), EngineError> {
    for attempt in 1.. {
        let status = session.read(key, Wanted::All, row).await;
        if status.is_ok() {
            return Ok(());
        }
        if status == Status::NotFound {
            row.clear();
            return Ok(());
        }
        let message = session.last_error().unwrap_or_else(|| "no message".to_owned());
        if attempt == ATTEMPTS {
            let key = String::from_utf8_lossy(key);
            return Err(unreadable(format!("cannot read {key}: {}: {message}", status.name())));
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
    }
    Ok(())
}
