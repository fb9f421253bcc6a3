//! The crew: the threads that drive clients. Each is either one client's own thread or an executor of many.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use loadstone_load::Workload;
use loadstone_load::pace::Pace;
use loadstone_stores::{Drive, Session, Store, StoreError};

use crate::alarm::Alarm;
use crate::client::{Common, InsertPolicy, drive};
use crate::clock::{Clock, Monotonic, ThreadTimer, Timer, unix_ns};
use crate::course::{Acks, Course};
use crate::error::EngineError;
use crate::limits;
use crate::spec::{Phase, TrialSpec};
use crate::tape::Tape;

/// With up to this many clients, a store that does not care gets threads.
const THREADS_MAX: u64 = 64;
/// So many clients that wait for a network leave an executor idle most of the time. A second one would only share its
/// wake-ups out, and a wake-up costs more than what is done in it.
const CLIENTS_PER_EXECUTOR: u64 = 32;
/// How many clients of an executor connect at once: fewer than any server's backlog, more than its round trips take.
const CONNECTING_MAX: usize = 64;

/// Everything the workers need.
#[derive(Debug)]
pub struct Job<S, W> {
    /// The open store.
    pub store: Arc<S>,
    /// What is done.
    pub workload: Arc<W>,
    /// What is next.
    pub course: Arc<Course>,
    /// When it is due.
    pub pace: Option<Arc<Pace>>,
    /// Inserts under way.
    pub acks: Option<Arc<Acks>>,
    /// The spec.
    pub spec: Arc<TrialSpec>,
}

impl<S, W> Clone for Job<S, W> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            workload: Arc::clone(&self.workload),
            course: Arc::clone(&self.course),
            pace: self.pace.clone(),
            acks: self.acks.clone(),
            spec: Arc::clone(&self.spec),
        }
    }
}

impl<S: Store, W: Workload> Job<S, W> {
    fn common(&self, start_ns: u64) -> Common<'_, W> {
        let inserts = self.spec.inserts;
        Common {
            workload: &self.workload,
            course: &self.course,
            pace: self.pace.as_deref(),
            start_ns,
            acks: self.acks.as_deref(),
            inserts: InsertPolicy {
                retries: inserts.retries,
                interval_ns: (inserts.retry_seconds * 1e9) as u64,
                stop: self.spec.phase == Phase::Load && !inserts.keep_going,
            },
            seed: self.spec.seed,
        }
    }
}

/// Holds all workers at the line until the start is known.
#[derive(Debug, Default)]
struct Gate {
    start_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

impl Gate {
    fn open(&self, start_ns: u64) {
        *self.start_ns.lock().unwrap_or_else(PoisonError::into_inner) = Some(start_ns);
        self.opened.notify_all();
    }

    fn wait(&self) -> u64 {
        let mut start = self.start_ns.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(ns) = *start {
                return ns;
            }
            start = self.opened.wait(start).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The workers of a trial.
#[derive(Debug)]
pub struct Crew {
    tapes: Vec<Arc<Tape>>,
    threads: Vec<JoinHandle<()>>,
    gate: Arc<Gate>,
    working: Arc<AtomicUsize>,
    /// The words of the first worker that died of a defect of ours.
    panic: Option<String>,
}

impl Crew {
    /// Starts the workers and waits until every session is connected. The first failure is the error.
    pub fn hire<S: Store, W: Workload + 'static>(job: &Job<S, W>, clients: u64) -> Result<Self, EngineError> {
        let by_thread = match S::DRIVE {
            Drive::Thread => true,
            Drive::Task => false,
            Drive::Either => clients <= THREADS_MAX && job.spec.executors == 0,
        };
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let executors = match (job.spec.executors, S::DRIVE) {
            (0, Drive::Task) => processors.min(clients.div_ceil(CLIENTS_PER_EXECUTOR)),
            (0, _) => processors,
            (asked, _) => asked,
        };
        let workers = if by_thread { clients } else { executors.min(clients) };
        limits::check(workers, S::STACK_BYTES as u64)?;
        limits::check_files(job.store.connections(clients))?;
        let open = job.pace.is_some();
        let to_unix_ns = unix_ns().wrapping_sub(Monotonic.now_ns());
        let gate = Arc::new(Gate::default());
        let working = Arc::new(AtomicUsize::new(workers as usize));
        let (connected, connections) = channel();
        let mut crew = Self { tapes: Vec::new(), threads: Vec::new(), gate: Arc::clone(&gate), working, panic: None };
        for worker in 0..workers {
            let tape = Arc::new(Tape::new(&job.spec.sinks, open, to_unix_ns));
            let own = clients / workers + u64::from(worker < clients % workers);
            let place = Worker {
                job: job.clone(),
                tape: Arc::clone(&tape),
                gate: Arc::clone(&gate),
                working: Working(Arc::clone(&crew.working)),
                connected: connected.clone(),
                clients: own,
            };
            let body = move || if by_thread { place.thread() } else { place.executor() };
            let name = format!("client-{worker}");
            let spawned = std::thread::Builder::new().name(name).stack_size(S::STACK_BYTES).spawn(body);
            match spawned {
                Ok(thread) => crew.threads.push(thread),
                Err(error) => {
                    job.course.interrupt();
                    crew.gate.open(0);
                    return Err(EngineError::failed(format!("cannot start thread {worker} of {workers}: {error}"))
                        .hint("raise the limit with ulimit -u, or use fewer clients"));
                }
            }
            crew.tapes.push(tape);
        }
        drop(connected);
        for result in connections.iter().take(workers as usize) {
            if let Err(error) = result {
                job.course.interrupt();
                crew.gate.open(0);
                return Err(error.into());
            }
        }
        Ok(crew)
    }

    /// The workers' tapes.
    pub fn tapes(&self) -> &[Arc<Tape>] {
        &self.tapes
    }

    /// Why a worker died, once all are home.
    pub fn panic(&self) -> Option<&str> {
        self.panic.as_deref()
    }

    /// Lets the clients go; the trial starts at `start_ns` on the monotonic clock.
    pub fn start(&self, start_ns: u64) {
        self.gate.open(start_ns);
    }

    /// Whether every worker has ended.
    pub fn finished(&self) -> bool {
        self.working.load(Ordering::Acquire) == 0
    }

    /// Waits for the workers; `false` if one still works when `grace` is over.
    pub fn come_home(&mut self, grace: Duration) -> bool {
        let start = Instant::now();
        while !self.finished() {
            if start.elapsed() > grace {
                return false;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join() {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
                self.panic.get_or_insert_with(|| words.to_owned());
            }
        }
        true
    }
}

/// Counts itself out when dropped, also by a panic.
#[derive(Debug)]
struct Working(Arc<AtomicUsize>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

struct Worker<S, W> {
    job: Job<S, W>,
    tape: Arc<Tape>,
    gate: Arc<Gate>,
    working: Working,
    connected: Sender<Result<(), StoreError>>,
    clients: u64,
}

impl<S: Store, W: Workload + 'static> Worker<S, W> {
    /// One client on a thread of its own: its futures are always ready, so a poll is a call.
    fn thread(self) {
        let Self { job, tape, gate, working, connected, .. } = self;
        let session = job.store.session().and_then(|mut session| block_on(session.connect()).map(|()| session));
        let told = connected.send(session.as_ref().map(|_| ()).map_err(Clone::clone));
        drop(connected);
        let (Ok(mut session), Ok(())) = (session, told) else { return };
        let start_ns = gate.wait();
        let timer = ThreadTimer::for_this_thread(job.spec.spin);
        block_on(timer.until(start_ns, || job.course.stopped()));
        block_on(drive(&job.common(start_ns), &timer, &mut session, &tape));
        drop(session);
        drop(job);
        drop(working);
    }

    /// Many clients on one executor.
    fn executor(self) {
        let Self { job, tape, gate, working, connected, clients } = self;
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
            let sessions = match connect(&*job.store, clients as usize).await {
                Ok(sessions) => sessions,
                Err(error) => {
                    let _ = connected.send(Err(error));
                    return;
                }
            };
            let course = Arc::clone(&job.course);
            let (alarm, ringing) = match Alarm::new(move || course.stopped()) {
                Ok(made) => made,
                Err(error) => {
                    let _ = connected.send(Err(StoreError::failed(format!("cannot make a timer: {error}"))));
                    return;
                }
            };
            if connected.send(Ok(())).is_err() {
                return;
            }
            drop(connected);
            let start_ns = gate.wait();
            ThreadTimer::default().until(start_ns, || job.course.stopped()).await;
            let ringing = tokio::task::spawn_local(ringing);
            let mut clients = Vec::with_capacity(sessions.len());
            for mut session in sessions {
                let (job, alarm, tape) = (job.clone(), alarm.clone(), Arc::clone(&tape));
                clients.push(tokio::task::spawn_local(async move {
                    drive(&job.common(start_ns), &alarm, &mut session, &tape).await;
                }));
            }
            let mut panic = None;
            for client in clients {
                if let Err(died) = client.await {
                    panic = panic.or(died.try_into_panic().ok());
                }
            }
            ringing.abort();
            // The executor caught it; without its client the counts are not what they seem.
            if let Some(panic) = panic {
                std::panic::resume_unwind(panic);
            }
        });
        drop(local);
        drop(job);
        drop(working);
    }
}

/// Connects an executor's clients, some at a time. The first failure is the error.
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

/// Runs a future whose parts are always ready. A store that says its calls block and then waits is a defect of that
/// store; it is waited for with naps rather than hung on.
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
