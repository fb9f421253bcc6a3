//! The clients of a trial. Each of them is bound to its session and its work; the workers that drive the clients know
//! neither type.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use loadstone_session::erased::{Driving, OpenRecordStore, OpenStore, VirtualSession};
use loadstone_session::{Connection, EngineError, Options};

use crate::alarm::Alarm;
use crate::borders::Borders;
use crate::client::{ClientContext, block_on, drive_client, drive_thread};
use crate::clock::ThreadTimer;
use crate::task::{Task, Work};

/// A future of a client.
pub type Future<'a, T> = Pin<Box<dyn std::future::Future<Output = T> + 'a>>;

/// A client on a separate thread. Its calls block.
pub trait ThreadClient {
    /// Connects. Called once, before any other method.
    fn connect(&mut self) -> Result<(), EngineError>;
    /// Inspects the store before the trial.
    fn inspect_store(&mut self);
    /// Performs operations until there are no more, then closes the session.
    fn drive_operations(&mut self, borders: &Borders, timer: ThreadTimer, context: ClientContext<'_>);
}

/// A client that shares an executor with other clients. See [`ThreadClient`] for the methods.
pub trait TaskClient {
    /// Connects.
    fn connect(&mut self) -> Future<'_, Result<(), EngineError>>;
    /// Inspects the store.
    fn inspect_store(&mut self) -> Future<'_, ()>;
    /// Performs operations.
    fn drive_operations<'a>(
        &'a mut self,
        borders: &'a Borders,
        alarm: &'a Alarm,
        context: ClientContext<'a>,
    ) -> Future<'a, ()>;
}

type NewClient<C> = Box<dyn Fn() -> Result<Box<C>, EngineError> + Send + Sync>;

/// Creates the clients of a trial, on the threads that will drive them.
pub enum Crew {
    /// Each client has a thread.
    Threads(NewClient<dyn ThreadClient>),
    /// Each executor drives many clients.
    Tasks(NewClient<dyn TaskClient>),
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Threads(_) => "Threads",
            Self::Tasks(_) => "Tasks",
        })
    }
}

/// A type of store, for one workload kind.
pub trait Target<W>: Sync {
    /// The threads that clients of this store need.
    fn driving_mode(&self) -> Driving;

    /// Performs the operations of a probe in a closed loop, on a store that does nothing.
    fn probe_operations(&self, task: &Task<W>, borders: &Borders, context: ClientContext<'_>);

    /// Opens the store.
    fn open_store(&self, options: &Options) -> Result<OpenedStore<W>, EngineError>;
}

/// A store that is open, and has no clients yet.
pub struct OpenedStore<W> {
    pub store: Arc<dyn OpenStore>,
    /// Creates the store's crew; `true` requests a thread per client.
    pub crew: NewCrew<W>,
}

type NewCrew<W> = Box<dyn FnOnce(Arc<Task<W>>, bool) -> Crew>;

impl<W: Work<VirtualSession>> OpenedStore<W> {
    /// A store of records. `to_thread` creates a client on a separate thread, and `to_task` creates a client of an
    /// executor.
    pub fn with_records(
        store: Arc<dyn OpenRecordStore>,
        to_thread: impl Fn(Client<VirtualSession, W>) -> Box<dyn ThreadClient> + Send + Sync + 'static,
        to_task: impl Fn(Client<VirtualSession, W>) -> Box<dyn TaskClient> + Send + Sync + 'static,
    ) -> Self {
        let open: Arc<dyn OpenStore> = Arc::clone(&store) as _;
        let crew = move |task, by_thread| {
            let new = move || Ok(Client { session: store.session()?, task: Arc::clone(&task) });
            if by_thread {
                Crew::Threads(Box::new(move || new().map(&to_thread)))
            } else {
                Crew::Tasks(Box::new(move || new().map(&to_task)))
            }
        };
        Self { store: open, crew: Box::new(crew) }
    }
}

/// The session of a client, and its work.
#[derive(Debug)]
pub struct Client<S, W> {
    pub session: S,
    pub task: Arc<Task<W>>,
}

impl<S: Connection, W: Work<S>> ThreadClient for Client<S, W> {
    fn connect(&mut self) -> Result<(), EngineError> {
        block_on(self.session.connect())
    }

    fn inspect_store(&mut self) {
        block_on(self.task.work.inspect_store(&mut self.session));
    }

    fn drive_operations(&mut self, borders: &Borders, timer: ThreadTimer, context: ClientContext<'_>) {
        drive_thread(&self.task, borders, timer, &mut self.session, context);
    }
}

impl<S: Connection, W: Work<S>> TaskClient for Client<S, W> {
    fn connect(&mut self) -> Future<'_, Result<(), EngineError>> {
        Box::pin(self.session.connect())
    }

    fn inspect_store(&mut self) -> Future<'_, ()> {
        Box::pin(self.task.work.inspect_store(&mut self.session))
    }

    fn drive_operations<'a>(
        &'a mut self,
        borders: &'a Borders,
        alarm: &'a Alarm,
        context: ClientContext<'a>,
    ) -> Future<'a, ()> {
        Box::pin(drive_client(&self.task, borders, alarm, &mut self.session, context))
    }
}
