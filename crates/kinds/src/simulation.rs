//! Simulated time and a scripted store, with which the timing loop is tested to the nanosecond.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use loadstone_load::{Projection, Row, Status};
use loadstone_session::{Connection, Rows, Session};

use loadstone_measure::clock::{Clock, Timer};

#[derive(Debug, Default)]
struct Simulation {
    now_ns: Cell<u64>,
    /// Pending wake-ups.
    wakes: RefCell<BinaryHeap<Reverse<u64>>>,
    /// A period in which no client runs.
    paused_ns: Cell<(u64, u64)>,
}

/// A clock that stops while any client computes, and jumps when all clients are waiting.
#[derive(Clone, Debug, Default)]
pub struct SimTimer {
    simulation: Rc<Simulation>,
    /// Delay of this timer's wake-ups, ns. It simulates a generator that waits for a processor.
    late_ns: u64,
}

impl SimTimer {
    /// Creates a timer in the same simulation that wakes clients `late_ns` late.
    pub fn waking_late(&self, late_ns: u64) -> Self {
        Self { simulation: Rc::clone(&self.simulation), late_ns }
    }

    /// Prevents all clients from running between two times, as if the process were stopped: a wake-up due in this
    /// period occurs at its end.
    pub fn pause_between(&self, from_ns: u64, to_ns: u64) {
        self.simulation.paused_ns.set((from_ns, to_ns));
    }

    async fn sleep_until(&self, ns: u64) {
        let mut queued = false;
        poll_fn(|_| {
            if self.now_ns() >= ns {
                return Poll::Ready(());
            }
            if !queued {
                queued = true;
                self.simulation.wakes.borrow_mut().push(Reverse(ns));
            }
            Poll::Pending
        })
        .await;
    }

    /// Runs the clients until all of them have stopped.
    pub fn run_clients(&self, clients: Vec<SimulatedClient<'_>>) {
        let mut clients: Vec<Option<_>> = clients.into_iter().map(Some).collect();
        let mut context = Context::from_waker(Waker::noop());
        loop {
            for slot in &mut clients {
                if slot.as_mut().is_some_and(|client| client.as_mut().poll(&mut context).is_ready()) {
                    *slot = None;
                }
            }
            if clients.iter().all(Option::is_none) {
                return;
            }
            let Some(Reverse(ns)) = self.simulation.wakes.borrow_mut().pop() else {
                panic!("every client waits and no wake-up is pending");
            };
            let (from, to) = self.simulation.paused_ns.get();
            let ns = if (from..to).contains(&ns) { to } else { ns };
            self.simulation.now_ns.set(ns.max(self.now_ns()));
        }
    }
}

impl Clock for SimTimer {
    fn now_ns(&self) -> u64 {
        self.simulation.now_ns.get()
    }
}

impl Timer for SimTimer {
    async fn wait_until(&self, ns: u64, _stopped: impl Fn() -> bool) {
        if ns > self.now_ns() {
            self.sleep_until(ns + self.late_ns).await;
        }
    }

    async fn yield_to_clients(&self) {}
}

/// A client that is ready to be polled.
pub type SimulatedClient<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The scripted store's response to a key: its duration in ns, and its status.
pub type Script = Rc<dyn Fn(&[u8]) -> (u64, Status)>;

/// A session in which every call follows a script.
#[derive(Clone)]
pub struct Scripted {
    timer: SimTimer,
    script: Script,
    /// The script for inserts, if there is a separate one.
    inserts: Option<Script>,
    error: Option<String>,
    unsent: bool,
}

impl Scripted {
    /// Creates a session in a simulation.
    pub fn new(timer: &SimTimer, script: &Script) -> Self {
        Self { timer: timer.clone(), script: Rc::clone(script), inserts: None, error: None, unsent: false }
    }

    /// Gives the session a separate script for inserts.
    pub fn with_inserts(self, script: Option<&Script>) -> Self {
        Self { inserts: script.cloned(), ..self }
    }

    /// A script in which every answer takes `service_ns`, but no answer arrives between the two times.
    pub fn silent_between(timer: &SimTimer, from_ns: u64, to_ns: u64, service_ns: u64) -> Script {
        let timer = timer.clone();
        Rc::new(move |_| {
            let (now, done) = (timer.now_ns(), timer.now_ns() + service_ns);
            (if (from_ns..to_ns).contains(&done) { to_ns - now } else { service_ns }, Status::Ok)
        })
    }

    /// Length of the pause after a failure.
    pub const REST_NS: u64 = 50_000_000;

    /// The status of a write that was certainly refused.
    pub const REFUSAL: Status = Status::Forbidden;

    async fn simulate_operation(&mut self, key: &[u8]) -> Status {
        self.follow_script(&Rc::clone(&self.script), key).await
    }

    async fn follow_script(&mut self, script: &Script, key: &[u8]) -> Status {
        let (ns, status) = script(key);
        // Only a refused connection takes no time.
        self.unsent = ns == 0 && !status.is_ok();
        self.timer.sleep_until(self.timer.now_ns() + ns).await;
        // As in real stores, `NOT_FOUND` has no message.
        if !status.is_ok() && status != Status::NotFound {
            self.error = Some(format!("scripted {}", status.name()));
        }
        status
    }
}

impl Connection for Scripted {
    async fn pause(&mut self) {
        self.timer.sleep_until(self.timer.now_ns() + Self::REST_NS).await;
    }

    fn is_unsent(&self) -> bool {
        self.unsent
    }

    fn last_error(&mut self) -> Option<String> {
        self.error.take()
    }

    fn is_refusal(&self, status: Status) -> bool {
        status == Self::REFUSAL
    }
}

impl Session for Scripted {
    async fn read(&mut self, key: &[u8], _: Projection<'_>, row: &mut Row) -> Status {
        row.clear_fields();
        self.simulate_operation(key).await
    }
    async fn scan(&mut self, key: &[u8], _: usize, _: Projection<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        self.simulate_operation(key).await
    }
    async fn insert(&mut self, key: &[u8], _: &Row) -> Status {
        let script = Rc::clone(self.inserts.as_ref().unwrap_or(&self.script));
        self.follow_script(&script, key).await
    }
    async fn update(&mut self, key: &[u8], _: &Row) -> Status {
        self.simulate_operation(key).await
    }
    async fn delete(&mut self, key: &[u8]) -> Status {
        self.simulate_operation(key).await
    }
}
