//! The stores of records as targets of a trial.

use loadstone_stores::erased::{Driving, StoreType, VirtualSession};
use loadstone_stores::null::NullSession;
use loadstone_stores::{Options, RecordStore, StoreError};

use super::{Records, RecordsOf};
use crate::borders::Borders;
use crate::client::{ClientContext, drive_closed, drive_thread};
use crate::clock::ThreadTimer;
use crate::crew::{Client, Opened, Target, ThreadClient};
use crate::task::Task;

type RecordTask = Task<Records<RecordsOf>>;

/// The closed loop of a client on its own thread, compiled for one type of store.
type ClosedLoop = fn(&RecordTask, &Borders, ThreadTimer, &mut VirtualSession, ClientContext<'_>);

/// A type of store of records.
#[derive(Debug)]
pub struct RecordTarget {
    pub store: StoreType,
    closed: Option<ClosedLoop>,
}

impl RecordTarget {
    /// A store whose calls take a microsecond: its closed loop is compiled for its own sessions. On LMDB, virtual calls and the
    /// state of a future in memory would take 2 to 4 % of an operation (`make bench`).
    pub const fn embedded<S: RecordStore>() -> Self {
        Self { store: StoreType::of::<S>(), closed: Some(drive_embedded::<S>) }
    }

    /// A store whose calls take much longer.
    pub const fn remote<S: RecordStore>() -> Self {
        Self { store: StoreType::of::<S>(), closed: None }
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
        Some(session) => drive_closed(task, borders, timer, session, context),
        None => drive_thread(task, borders, timer, session, context),
    }
}

impl Target<Records<RecordsOf>> for RecordTarget {
    fn driving(&self) -> Driving {
        self.store.driving
    }

    fn probe(&self, task: &RecordTask, borders: &Borders, context: ClientContext<'_>) {
        let (timer, mut session) = (ThreadTimer::default(), NullSession::default());
        match self.closed {
            Some(_) => drive_closed(task, borders, timer, &mut session, context),
            None => drive_thread(task, borders, timer, &mut VirtualSession::new(session), context),
        }
    }

    fn open(&self, options: &Options) -> Result<Opened<Records<RecordsOf>>, StoreError> {
        let store = self.store.open(options)?;
        Ok(match self.closed {
            Some(closed) => Opened::on_records(store, move |client| Box::new(EmbeddedClient { client, closed })),
            None => Opened::on_records(store, |client| Box::new(client)),
        })
    }
}

/// A client of an embedded store.
struct EmbeddedClient {
    client: Client<VirtualSession, Records<RecordsOf>>,
    closed: ClosedLoop,
}

impl ThreadClient for EmbeddedClient {
    fn connect(&mut self) -> Result<(), StoreError> {
        ThreadClient::connect(&mut self.client)
    }

    fn inspect(&mut self) {
        ThreadClient::inspect(&mut self.client);
    }

    fn drive(&mut self, borders: &Borders, timer: ThreadTimer, context: ClientContext<'_>) {
        let Client { session, task } = &mut self.client;
        match task.pace {
            None => (self.closed)(task, borders, timer, session, context),
            Some(_) => drive_thread(task, borders, timer, session, context),
        }
    }
}
