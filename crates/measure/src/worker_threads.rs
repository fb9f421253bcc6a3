//! The workers are the threads that drive clients. A worker is either the thread of one client, or an executor of many.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadstone_session::erased::Driving;
use loadstone_session::{Drive, EngineError};

use crate::alarm::Alarm;
use crate::borders::Borders;
use crate::client::{ClientContext, block_on};
use crate::clock::{Clock, Monotonic, ThreadTimer, Timer};
use crate::crew::{Crew, TaskClient};
use crate::limits;
use crate::pulse::{COARSE_TICK_NS, Pulse, TICK_NS};
use crate::recorder::{Recorder, RecorderShape};
use crate::task::{Task, WorkKind};
use loadstone_wire::spec::{Phase, TrialSpec};

/// With up to this number of clients, a store that supports both modes gets one thread per client, unless the spec sets
/// the number of executors.
const THREADS_MAX: u64 = 64;
/// Interval between checks of whether all workers have stopped, ns.
const JOIN_NS: u64 = 200_000;
/// Number of an executor's clients that connect at the same time: fewer than any server's backlog, but enough to hide
/// round trips.
const CONNECTING_MAX: usize = 64;

/// Everything that the workers need.
#[derive(Clone, Debug)]
pub struct WorkerJob {
    /// Creates the clients.
    pub crew: Arc<Crew>,
    /// The state that the clients share.
    pub task: Arc<Task<dyn WorkKind>>,
    /// The parts of the workload that are recorded.
    pub shape: RecorderShape,
    pub spec: Arc<TrialSpec>,
    /// Stack size of each thread, bytes.
    pub stack_bytes: usize,
    /// Number of workers.
    pub workers: u64,
    /// Number of connections of the store.
    pub connections: u64,
}

/// Whether a store is driven by one thread per client, and the total number of threads.
pub fn count_threads(driving: &Driving, clients: u64, requested: u64) -> (bool, u64) {
    let by_thread = match driving.drive {
        Drive::Thread => true,
        Drive::Task => false,
        Drive::Either => clients <= THREADS_MAX && requested == 0,
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let executors = match (requested, driving.drive) {
        (0, Drive::Task) => processors.min(clients.div_ceil(driving.clients_per_executor)),
        (0, _) => processors,
        (requested, _) => requested,
    };
    (by_thread, if by_thread { clients } else { executors.min(clients) })
}

/// Blocks all workers until the borders of the trial are known.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    opened: Condvar,
}

#[derive(Clone, Copy, Debug, Default)]
enum GateState {
    #[default]
    Shut,
    /// The trial has these borders.
    Open(Borders),
    /// The trial was cancelled.
    Cancelled,
}

impl Gate {
    fn open(&self, borders: Option<Borders>) {
        let state = borders.map_or(GateState::Cancelled, GateState::Open);
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.opened.notify_all();
    }

    fn wait(&self) -> Option<Borders> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                GateState::Shut => state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner),
                GateState::Open(borders) => return Some(borders),
                GateState::Cancelled => return None,
            }
        }
    }
}

/// The workers of a trial.
#[derive(Debug)]
pub struct WorkerThreads {
    /// The workers' recorders.
    pub recorders: Vec<Arc<Recorder>>,
    /// The pulses of the executors; empty if each client has a thread.
    pub pulses: Vec<Arc<Pulse>>,
    /// The conductor's pulse, which also represents the threads that serve one client each.
    pub conductor: Arc<Pulse>,
    threads: Vec<JoinHandle<()>>,
    gate: Arc<Gate>,
    working: Arc<AtomicUsize>,
    /// The message of the first worker that panicked, once all workers have stopped.
    pub panic: Option<String>,
}

impl WorkerThreads {
    /// Starts the workers, and waits until every session is connected. If any worker fails, returns the first failure.
    pub fn start(job: &WorkerJob, clients: u64) -> Result<Self, EngineError> {
        let workers = job.workers;
        let by_thread = matches!(*job.crew, Crew::Threads(_));
        limits::check_limits(workers, job.stack_bytes as u64)?;
        limits::check_files(job.connections)?;
        let gate = Arc::new(Gate::default());
        let working = Arc::new(AtomicUsize::new(workers as usize));
        let (connected, connections) = channel();
        let tick_ns = if job.task.pace.is_some() { TICK_NS } else { COARSE_TICK_NS };
        let conductor = Arc::new(Pulse::new("conductor".to_owned(), 0, tick_ns));
        let mut all = Self {
            recorders: Vec::new(),
            pulses: Vec::new(),
            conductor: Arc::clone(&conductor),
            threads: Vec::new(),
            gate: Arc::clone(&gate),
            working,
            panic: None,
        };
        for worker in 0..workers {
            let share = clients / workers + u64::from(worker < clients % workers);
            let recorder = Arc::new(Recorder::new(&job.shape, share as usize));
            let name = if by_thread { format!("client-{worker}") } else { format!("executor-{worker}") };
            let pulse =
                if by_thread { Arc::clone(&conductor) } else { Arc::new(Pulse::new(name.clone(), share, tick_ns)) };
            let client_thread = Worker {
                job: job.clone(),
                recorder: Arc::clone(&recorder),
                pulse: Arc::clone(&pulse),
                gate: Arc::clone(&gate),
                working: Working(Arc::clone(&all.working)),
                connected: connected.clone(),
                clients: share,
                number: worker as usize,
            };
            let spawned = std::thread::Builder::new()
                .name(name)
                .stack_size(job.stack_bytes)
                .spawn(move || client_thread.run_worker());
            match spawned {
                Ok(thread) => all.threads.push(thread),
                Err(error) => {
                    all.gate.open(None);
                    return Err(EngineError::failed(format!("cannot start thread {worker} of {workers}: {error}"))
                        .hint("raise the limit with ulimit -u, or use fewer clients"));
                }
            }
            all.recorders.push(recorder);
            if !by_thread {
                all.pulses.push(pulse);
            }
        }
        drop(connected);
        for result in connections.iter().take(workers as usize) {
            if let Err(error) = result {
                all.gate.open(None);
                return Err(error);
            }
        }
        Ok(all)
    }

    /// Starts the clients with the borders of the trial on the monotonic clock; `None` cancels the trial.
    pub fn release_workers(&self, borders: Option<Borders>) {
        self.gate.open(borders);
    }

    /// Whether every worker has stopped.
    pub fn is_finished(&self) -> bool {
        self.working.load(Ordering::Acquire) == 0
    }

    /// Waits until all workers have stopped. Returns `false` if a worker is still running after `grace`, or as soon as
    /// the store is `lost`, because the clients of a lost store will not stop.
    pub fn join_workers(&mut self, borders: &Borders, grace: Duration, lost: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !self.is_finished() {
            if lost() || start.elapsed() > grace {
                return false;
            }
            let due = Monotonic.now_ns() + JOIN_NS;
            self.conductor.expect_beat(due);
            std::thread::sleep(Duration::from_nanos(JOIN_NS));
            self.conductor.record_beat(borders, due, Monotonic.now_ns());
        }
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                let message = panic.downcast_ref::<String>().map(String::as_str);
                let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                self.panic.get_or_insert_with(|| message.to_owned());
            }
        }
        true
    }
}

/// Decrements the number of running workers when dropped, even after a panic.
#[derive(Debug)]
struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

struct Worker {
    job: WorkerJob,
    recorder: Arc<Recorder>,
    pulse: Arc<Pulse>,
    gate: Arc<Gate>,
    working: Working,
    connected: Sender<Result<(), EngineError>>,
    clients: u64,
    number: usize,
}

impl Worker {
    fn run_worker(self) {
        let crew = Arc::clone(&self.job.crew);
        match &*crew {
            Crew::Threads(_) => self.run_thread(),
            Crew::Tasks(_) => self.run_executor(),
        }
    }

    /// Whether this worker's first client inspects the store.
    fn is_inspector(&self) -> bool {
        self.number == 0 && self.job.spec.segment.k == 0 && self.job.spec.phase != Phase::Load
    }

    /// Drives one client on a separate thread.
    fn run_thread(self) {
        let inspects = self.is_inspector();
        let Self { job, recorder, pulse, gate, working, connected, number: worker, .. } = self;
        let Crew::Threads(new) = &*job.crew else { return };
        let mut client = new().and_then(|mut client| client.connect().map(|()| client));
        if let (Ok(client), true) = (&mut client, inspects) {
            client.inspect_store();
        }
        let reported = connected.send(client.as_ref().map(|_| ()).map_err(Clone::clone));
        drop(connected);
        let (Ok(mut client), Ok(())) = (client, reported) else { return };
        if let Some(borders) = gate.wait() {
            let (task, timer) = (&*job.task, ThreadTimer::for_this_thread(job.spec.spin));
            block_on(timer.wait_until(borders.start_ns, || task.scheduler.is_halted()));
            let context =
                ClientContext { recorder: &recorder, client: 0, worker, pulse: &pulse, stripe: &Cell::default() };
            client.drive_operations(&borders, timer, context);
        }
        drop(client);
        drop(job);
        drop(working);
    }

    /// Drives many clients on one executor.
    fn run_executor(self) {
        let inspects = self.is_inspector();
        let Self { job, recorder, pulse, gate, working, connected, clients, number: worker } = self;
        let beating = pulse.begin_beating();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = connected.send(Err(EngineError::failed(format!("cannot start an executor: {error}"))));
                return;
            }
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let mut all = match connect_clients(&job.crew, clients as usize).await {
                Ok(all) => all,
                Err(error) => {
                    let _ = connected.send(Err(error));
                    return;
                }
            };
            let task = Arc::clone(&job.task);
            let (alarm, ringing) = match Alarm::new(move || task.scheduler.is_halted()) {
                Ok(made) => made,
                Err(error) => {
                    let _ = connected.send(Err(EngineError::failed(format!("cannot create a timer: {error}"))));
                    return;
                }
            };
            if let (Some(first), true) = (all.first_mut(), inspects) {
                first.inspect_store().await;
            }
            if connected.send(Ok(())).is_err() {
                return;
            }
            drop(connected);
            let Some(borders) = gate.wait() else { return };
            ThreadTimer::default().wait_until(borders.start_ns, || job.task.scheduler.is_halted()).await;
            let ringing = tokio::task::spawn_local(ringing);
            let beat = {
                let (task, pulse, alarm) = (Arc::clone(&job.task), Arc::clone(&pulse), alarm.clone());
                tokio::task::spawn_local(async move {
                    pulse.beat_until(&borders, &alarm, || task.scheduler.is_halted()).await;
                })
            };
            // An executor's clients share a stripe if possible. Otherwise two executors would write to the same counter
            // for every operation.
            let shared = Rc::new(Cell::default());
            let borders = Rc::new(borders);
            let mut clients = Vec::with_capacity(all.len());
            for (number, mut client) in all.into_iter().enumerate() {
                let alarm = alarm.clone();
                let (recorder, pulse, borders) = (Arc::clone(&recorder), Arc::clone(&pulse), Rc::clone(&borders));
                let stripe = if job.task.scheduler.shares_stripes() { Rc::clone(&shared) } else { Rc::default() };
                clients.push(tokio::task::spawn_local(async move {
                    let context =
                        ClientContext { recorder: &recorder, client: number, worker, pulse: &pulse, stripe: &stripe };
                    client.drive_operations(&borders, &alarm, context).await;
                }));
            }
            let mut panic = None;
            for client in clients {
                if let Err(died) = client.await {
                    panic = panic.or(died.try_into_panic().ok());
                }
            }
            beat.abort();
            ringing.abort();
            // The executor caught the panic. Without this client, the counts would be incomplete.
            if let Some(panic) = panic {
                std::panic::resume_unwind(panic);
            }
        });
        drop(local);
        drop(beating);
        drop(job);
        drop(working);
    }
}

/// Connects an executor's clients, several at a time. If any client fails, returns the first failure.
async fn connect_clients(crew: &Crew, clients: usize) -> Result<Vec<Box<dyn TaskClient>>, EngineError> {
    let Crew::Tasks(new) = crew else { return Ok(Vec::new()) };
    let mut all = Vec::with_capacity(clients);
    while all.len() < clients {
        let mut connecting = Vec::new();
        for _ in 0..CONNECTING_MAX.min(clients - all.len()) {
            let mut client = new()?;
            connecting.push(tokio::task::spawn_local(async move { client.connect().await.map(|()| client) }));
        }
        for client in connecting {
            let joined = client.await;
            all.push(joined.map_err(|error| EngineError::failed(format!("a client could not connect: {error}")))??);
        }
    }
    Ok(all)
}
