//! The workers: the threads that drive clients. A worker is either the thread of one client or an executor of many.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadstone_stores::{Connection, Drive, Store, StoreError};

use crate::actor::overwrites::Overwrites;
use crate::actor::{Task, Work};
use crate::alarm::Alarm;
use crate::borders::Borders;
use crate::client::{ClientContext, drive, drive_thread};
use crate::clock::{Clock, Monotonic, ThreadTimer, Timer};
use crate::error::EngineError;
use crate::limits;
use crate::pulse::{COARSE_TICK_NS, Pulse, TICK_NS};
use crate::recorder::{Recorder, Shape};
use crate::spec::{Phase, TrialSpec};

/// With up to this many clients, a store that supports both gets a thread per client.
const THREADS_MAX: u64 = 64;
/// How often to check whether all workers have ended, ns.
const JOIN_NS: u64 = 200_000;
/// How many clients of an executor connect at once: fewer than any server's backlog, but enough to hide the round trips.
const CONNECTING_MAX: usize = 64;

/// Everything the workers need.
#[derive(Debug)]
pub struct Job<S, W> {
    pub store: Arc<S>,
    /// What the clients share.
    pub task: Arc<Task<W>>,
    /// What the recorders record.
    pub shape: Shape,
    pub spec: Arc<TrialSpec>,
}

impl<S, W> Clone for Job<S, W> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            task: Arc::clone(&self.task),
            shape: self.shape.clone(),
            spec: Arc::clone(&self.spec),
        }
    }
}

/// Whether a store is driven by a thread per client, and by how many threads in all.
pub fn threads<S: Store>(clients: u64, asked: u64) -> (bool, u64) {
    let by_thread = match S::DRIVE {
        Drive::Thread => true,
        Drive::Task => false,
        Drive::Either => clients <= THREADS_MAX && asked == 0,
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let executors = match (asked, S::DRIVE) {
        (0, Drive::Task) => processors.min(clients.div_ceil(S::CLIENTS_PER_EXECUTOR)),
        (0, _) => processors,
        (asked, _) => asked,
    };
    (by_thread, if by_thread { clients } else { executors.min(clients) })
}

/// Holds all workers until the borders of the trial are known.
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
    recorders: Vec<Arc<Recorder>>,
    /// Those of the executors; empty where each client has a thread.
    pulses: Vec<Arc<Pulse>>,
    /// The conductor's.
    conductor: Arc<Pulse>,
    threads: Vec<JoinHandle<()>>,
    gate: Arc<Gate>,
    working: Arc<AtomicUsize>,
    /// The message of the first worker that panicked.
    panic: Option<String>,
    overwrites: Option<Overwrites>,
}

impl WorkerThreads {
    /// Starts the workers and waits until every session is connected. Returns the first failure.
    pub fn start<S: Store, W: Work<S::Session> + Send + Sync>(
        job: &Job<S, W>,
        clients: u64,
    ) -> Result<Self, EngineError> {
        let (by_thread, workers) = threads::<S>(clients, job.spec.executors);
        limits::check(workers, S::STACK_BYTES as u64)?;
        limits::check_files(job.store.connections(clients))?;
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
            overwrites: None,
        };
        for worker in 0..workers {
            let share = clients / workers + u64::from(worker < clients % workers);
            let recorder = Arc::new(Recorder::new(&job.shape, share as usize));
            let name = if by_thread { format!("client-{worker}") } else { format!("executor-{worker}") };
            let pulse =
                if by_thread { Arc::clone(&conductor) } else { Arc::new(Pulse::new(name.clone(), share, TICK_NS)) };
            let one = Worker {
                job: job.clone(),
                recorder: Arc::clone(&recorder),
                pulse: Arc::clone(&pulse),
                gate: Arc::clone(&gate),
                working: Working(Arc::clone(&all.working)),
                connected: connected.clone(),
                clients: share,
                number: worker as usize,
            };
            let body = move || if by_thread { one.thread() } else { one.executor() };
            let spawned = std::thread::Builder::new().name(name).stack_size(S::STACK_BYTES).spawn(body);
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
            match result {
                Ok(overwrites) => all.overwrites = all.overwrites.or(overwrites),
                Err(error) => {
                    all.gate.open(None);
                    return Err(error.into());
                }
            }
        }
        Ok(all)
    }

    /// The workers' recorders.
    pub fn recorders(&self) -> &[Arc<Recorder>] {
        &self.recorders
    }

    /// The records that the inserts of the trial overwrite.
    pub fn overwrites(&self) -> Option<Overwrites> {
        self.overwrites
    }

    /// The pulses of the executors; empty where each client has a thread.
    pub fn pulses(&self) -> &[Arc<Pulse>] {
        &self.pulses
    }

    /// The conductor's pulse, which also stands for the threads of single clients.
    pub fn conductor(&self) -> &Arc<Pulse> {
        &self.conductor
    }

    /// Why a worker panicked, once all have ended.
    pub fn panic(&self) -> Option<&str> {
        self.panic.as_deref()
    }

    /// Starts the clients with the borders of the trial on the monotonic clock; `None` cancels the trial.
    pub fn release(&self, borders: Option<Borders>) {
        self.gate.open(borders);
    }

    /// Whether every worker has ended.
    pub fn finished(&self) -> bool {
        self.working.load(Ordering::Acquire) == 0
    }

    /// Waits until all workers have ended; `false` if one is still running after `grace`, or as soon as the store is `lost`,
    /// since its clients will not end.
    pub fn join(&mut self, borders: &Borders, grace: Duration, lost: impl Fn() -> bool) -> bool {
        let start = Instant::now();
        while !self.finished() {
            if lost() || start.elapsed() > grace {
                return false;
            }
            let due = Monotonic.now_ns() + JOIN_NS;
            self.conductor.expect(due);
            std::thread::sleep(Duration::from_nanos(JOIN_NS));
            self.conductor.tick(borders, due, Monotonic.now_ns());
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

/// Decrements the count of running workers when dropped, also by a panic.
#[derive(Debug)]
struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

struct Worker<S, W> {
    job: Job<S, W>,
    recorder: Arc<Recorder>,
    pulse: Arc<Pulse>,
    gate: Arc<Gate>,
    working: Working,
    connected: Sender<Result<Option<Overwrites>, StoreError>>,
    clients: u64,
    number: usize,
}

impl<S: Store, W: Work<S::Session> + Send + Sync> Worker<S, W> {
    /// One client on its own thread: its futures are always ready, so a poll is a call.
    fn thread(self) {
        let Self { job, recorder, pulse, gate, working, connected, number: worker, .. } = self;
        let mut session = job.store.session().and_then(|mut session| block_on(session.connect()).map(|()| session));
        let overwrites = match &mut session {
            Ok(session) => Ok(block_on(find_overwrites(&job, worker, session))),
            Err(error) => Err(error.clone()),
        };
        let reported = connected.send(overwrites);
        drop(connected);
        let (Ok(mut session), Ok(())) = (session, reported) else { return };
        if let Some(borders) = gate.wait() {
            let (task, timer) = (&*job.task, ThreadTimer::for_this_thread(job.spec.spin));
            block_on(timer.until(borders.start_ns, || task.scheduler.halted()));
            let context = ClientContext { recorder: &recorder, client: 0, worker, pulse: &pulse };
            drive_thread(task, &borders, timer, &mut session, context);
        }
        drop(session);
        drop(job);
        drop(working);
    }

    /// Many clients on one executor.
    fn executor(self) {
        let Self { job, recorder, pulse, gate, working, connected, clients, number: worker } = self;
        let beating = pulse.begin();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = connected.send(Err(StoreError::failed(format!("cannot start an executor: {error}"))));
                return;
            }
        };
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let mut sessions = match connect(&*job.store, clients as usize).await {
                Ok(sessions) => sessions,
                Err(error) => {
                    let _ = connected.send(Err(error));
                    return;
                }
            };
            let task = Arc::clone(&job.task);
            let (alarm, ringing) = match Alarm::new(move || task.scheduler.halted()) {
                Ok(made) => made,
                Err(error) => {
                    let _ = connected.send(Err(StoreError::failed(format!("cannot create a timer: {error}"))));
                    return;
                }
            };
            let overwrites = match sessions.first_mut() {
                Some(session) => find_overwrites(&job, worker, session).await,
                None => None,
            };
            if connected.send(Ok(overwrites)).is_err() {
                return;
            }
            drop(connected);
            let Some(borders) = gate.wait() else { return };
            ThreadTimer::default().until(borders.start_ns, || job.task.scheduler.halted()).await;
            let ringing = tokio::task::spawn_local(ringing);
            let beat = {
                let (task, pulse, alarm) = (Arc::clone(&job.task), Arc::clone(&pulse), alarm.clone());
                tokio::task::spawn_local(async move { pulse.beat(&borders, &alarm, || task.scheduler.halted()).await })
            };
            let mut clients = Vec::with_capacity(sessions.len());
            for (client, mut session) in sessions.into_iter().enumerate() {
                let (task, alarm) = (Arc::clone(&job.task), alarm.clone());
                let (recorder, pulse) = (Arc::clone(&recorder), Arc::clone(&pulse));
                clients.push(tokio::task::spawn_local(async move {
                    let context = ClientContext { recorder: &recorder, client, worker, pulse: &pulse };
                    drive(&task, &borders, &alarm, &mut session, context).await;
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
            // The executor caught the panic; without this client the counts would be incomplete.
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

/// Lets the first client of the first segment look for the records that inserts would overwrite.
async fn find_overwrites<S: Store, W: Work<S::Session> + Send + Sync>(
    job: &Job<S, W>,
    worker: usize,
    session: &mut S::Session,
) -> Option<Overwrites> {
    if worker > 0 || job.spec.segment.k > 0 || job.spec.phase == Phase::Load {
        return None;
    }
    job.task.workload.find_overwrites(session).await
}

/// Connects an executor's clients, some at a time. Returns the first failure.
async fn connect<S: Store>(store: &S, clients: usize) -> Result<Vec<S::Session>, StoreError> {
    let mut sessions = Vec::with_capacity(clients);
    while sessions.len() < clients {
        let mut connecting = Vec::new();
        for _ in 0..CONNECTING_MAX.min(clients - sessions.len()) {
            let mut session = store.session()?;
            connecting.push(tokio::task::spawn_local(async move { session.connect().await.map(|()| session) }));
        }
        for session in connecting {
            let joined = session.await;
            sessions.push(joined.map_err(|error| StoreError::failed(format!("a client could not connect: {error}")))??);
        }
    }
    Ok(sessions)
}

/// Runs a future that is expected to be always ready. A store that declares its calls as blocking must not return pending
/// futures; one that does is polled every 50 µs.
#[expect(clippy::inline_always, reason = "the state of the future would go through memory, in the timing loop")]
#[inline(always)]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[cfg(test)]
mod tests;
