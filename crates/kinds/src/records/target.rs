//! Record stores as targets of a trial.

use loadstone_session::erased::{Driving, StoreType, VirtualSession};
use loadstone_session::null::NullSession;
use loadstone_session::{EngineError, Options, RecordStore};

use super::{Records, RecordsOf};
use loadstone_measure::alarm::Alarm;
use loadstone_measure::borders::Borders;
use loadstone_measure::client::{ClientContext, drive_client, drive_closed, drive_thread};
use loadstone_measure::clock::ThreadTimer;
use loadstone_measure::crew::{Client, Future, OpenedStore, Target, TaskClient, ThreadClient};
use loadstone_measure::task::Task;

type RecordTask = Task<Records<RecordsOf>>;

/// The closed loop of a client on a separate thread, compiled for one type of store.
type ClosedLoop = fn(&RecordTask, &Borders, ThreadTimer, &mut VirtualSession, ClientContext<'_>);

/// The loop of a client on an executor, compiled for one type of store.
type TaskLoop =
    for<'a> fn(&'a RecordTask, &'a Borders, &'a Alarm, &'a mut VirtualSession, ClientContext<'a>) -> Future<'a, ()>;

/// A type of record store.
#[derive(Debug)]
pub struct RecordTarget {
    pub store: StoreType,
    closed: Option<ClosedLoop>,
    tasks: Option<TaskLoop>,
}

impl RecordTarget {
    /// A store whose calls take about a microsecond. Its closed loop is compiled for its session type. On LMDB, virtual
    /// calls and futures kept in memory would cost 2 to 4 % of an operation's time (`make bench`).
    pub const fn new_embedded<S: RecordStore>() -> Self {
        Self { store: StoreType::describe::<S>(), closed: Some(drive_embedded::<S>), tasks: None }
    }

    /// A store whose calls take nanoseconds, so that one executor drives thousands of its clients. Virtual calls to
    /// sessions that are not in the cache would cost a tenth of an operation's time (`make bench`, part c).
    pub const fn new_instant<S: RecordStore>() -> Self {
        Self { tasks: Some(drive_tasks::<S>), ..Self::new_embedded::<S>() }
    }

    /// A store whose calls take much longer than a microsecond.
    pub const fn new_remote<S: RecordStore>() -> Self {
        Self { store: StoreType::describe::<S>(), closed: None, tasks: None }
    }
}

fn drive_embedded<S: RecordStore>(
    task: &RecordTask,
    borders: &Borders,
    timer: ThreadTimer,
    session: &mut VirtualSession,
    context: ClientContext<'_>,
) {
    match session.downcast::<S::Session>() {
        Ok(session) => drive_closed(task, borders, timer, session, context),
        Err(session) => drive_thread(task, borders, timer, session, context),
    }
}

fn drive_tasks<'a, S: RecordStore>(
    task: &'a RecordTask,
    borders: &'a Borders,
    alarm: &'a Alarm,
    session: &'a mut VirtualSession,
    context: ClientContext<'a>,
) -> Future<'a, ()> {
    match session.downcast::<S::Session>() {
        Ok(session) => Box::pin(drive_client(task, borders, alarm, session, context)),
        Err(session) => Box::pin(drive_client(task, borders, alarm, session, context)),
    }
}

impl Target<Records<RecordsOf>> for RecordTarget {
    fn driving_mode(&self) -> Driving {
        self.store.driving
    }

    fn probe_operations(&self, task: &RecordTask, borders: &Borders, context: ClientContext<'_>) {
        let (timer, mut session) = (ThreadTimer::default(), NullSession::default());
        match self.closed {
            Some(_) => drive_closed(task, borders, timer, &mut session, context),
            None => drive_thread(task, borders, timer, &mut VirtualSession::new(session), context),
        }
    }

    fn open_store(&self, options: &Options) -> Result<OpenedStore<Records<RecordsOf>>, EngineError> {
        let store = self.store.open(options)?;
        let (closed, tasks) = (self.closed, self.tasks);
        Ok(OpenedStore::with_records(
            store,
            move |client| match closed {
                Some(closed) => Box::new(EmbeddedClient { client, closed }),
                None => Box::new(client),
            },
            move |client| match tasks {
                Some(tasks) => Box::new(InstantClient { client, tasks }),
                None => Box::new(client),
            },
        ))
    }
}

/// A client of an embedded store.
struct EmbeddedClient {
    client: Client<VirtualSession, Records<RecordsOf>>,
    closed: ClosedLoop,
}

impl ThreadClient for EmbeddedClient {
    fn connect(&mut self) -> Result<(), EngineError> {
        ThreadClient::connect(&mut self.client)
    }

    fn inspect_store(&mut self) {
        ThreadClient::inspect_store(&mut self.client);
    }

    fn drive_operations(&mut self, borders: &Borders, timer: ThreadTimer, context: ClientContext<'_>) {
        let Client { session, task } = &mut self.client;
        match task.pace {
            None => (self.closed)(task, borders, timer, session, context),
            Some(_) => drive_thread(task, borders, timer, session, context),
        }
    }
}

/// A client on an executor, of a store whose calls take nanoseconds.
struct InstantClient {
    client: Client<VirtualSession, Records<RecordsOf>>,
    tasks: TaskLoop,
}

impl TaskClient for InstantClient {
    fn connect(&mut self) -> Future<'_, Result<(), EngineError>> {
        TaskClient::connect(&mut self.client)
    }

    fn inspect_store(&mut self) -> Future<'_, ()> {
        TaskClient::inspect_store(&mut self.client)
    }

    fn drive_operations<'a>(
        &'a mut self,
        borders: &'a Borders,
        alarm: &'a Alarm,
        context: ClientContext<'a>,
    ) -> Future<'a, ()> {
        let Client { session, task } = &mut self.client;
        (self.tasks)(task, borders, alarm, session, context)
    }
}

#[cfg(test)]
mod tests {
    use loadstone_load::core::CoreRun;
    use loadstone_load::ledger::WriteState;
    use loadstone_session::null::Null;

    use loadstone_measure::calibrate::Probe;
    use loadstone_wire::sink::Sink;
    use loadstone_wire::spec::{LedgerSpec, TrialSpec, WorkSpec};

    use super::*;

    #[test]
    fn probe_uses_ledger_and_sinks_of_trial() {
        let mut spec = TrialSpec::parse(include_str!("../../../wire/fixtures/trial-spec-1.json")).unwrap();
        spec.sinks = vec![Sink::HdrNs, Sink::YcsbRaw];
        spec.ledger = Some(LedgerSpec { file: "/nonexistent/ledger".to_owned() });
        let WorkSpec::Records(core) = &mut spec.work else { panic!("{:?}", spec.work) };
        core.versions = true;
        core.mix.read = 0.0;
        core.mix.update = 1.0;
        let work = Records::new(RecordsOf::Run(CoreRun::new(core.clone(), 1).unwrap()));
        let mut probe = Probe::new(work, &spec, 2, 1).unwrap();
        probe.measure_cost(&RecordTarget::new_embedded::<Null>());
        let ledger = probe.task.work.ledger.as_ref().unwrap();
        ledger.settle_writes();
        assert!((0..probe.borders.steps).all(|write| ledger.state(write) == WriteState::Acknowledged));
        assert!(probe.recorders.iter().all(|recorder| recorder.ycsb.len() == 1));
    }
}
