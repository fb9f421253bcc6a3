//! Simulated time and a scripted store: the fakes with which the timing loop is tested to the nanosecond.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use loadstone_load::{Row, Status, Wanted};
use loadstone_stores::{Rows, Session};

use crate::clock::{Clock, Timer};

#[derive(Debug, Default)]
struct World {
    now_ns: Cell<u64>,
    /// Wake-ups to come.
    wakes: RefCell<BinaryHeap<Reverse<u64>>>,
}

/// A clock that stands still while anybody computes, and jumps when everybody waits.
#[derive(Clone, Debug, Default)]
pub struct SimTimer {
    world: Rc<World>,
    /// How much too late this timer wakes, ns: a generator without a processor to run on.
    late_ns: u64,
}

impl SimTimer {
    /// The same world, seen by a generator that wakes late.
    pub fn waking_late(&self, late_ns: u64) -> Self {
        Self { world: Rc::clone(&self.world), late_ns }
    }

    async fn sleep_until(&self, ns: u64) {
        let mut told = false;
        poll_fn(|_| {
            if self.now_ns() >= ns {
                return Poll::Ready(());
            }
            if !told {
                told = true;
                self.world.wakes.borrow_mut().push(Reverse(ns));
            }
            Poll::Pending
        })
        .await;
    }

    /// Runs clients to their end.
    pub fn run(&self, clients: Vec<Client<'_>>) {
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
            let Some(Reverse(ns)) = self.world.wakes.borrow_mut().pop() else {
                panic!("every client waits and nothing will wake one");
            };
            self.world.now_ns.set(ns.max(self.now_ns()));
        }
    }
}

impl Clock for SimTimer {
    fn now_ns(&self) -> u64 {
        self.world.now_ns.get()
    }
}

impl Timer for SimTimer {
    async fn until(&self, ns: u64, _stopped: impl Fn() -> bool) {
        if ns > self.now_ns() {
            self.sleep_until(ns + self.late_ns).await;
        }
    }

    async fn turn(&self) {}
}

/// A client, ready to be polled.
pub type Client<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// What the scripted store does with a key: how long it takes, ns, and what comes of it.
pub type Script = Rc<dyn Fn(&[u8]) -> (u64, Status)>;

/// A session whose every call follows a script.
#[derive(Clone)]
pub struct Scripted {
    timer: SimTimer,
    script: Script,
    error: Option<String>,
}

impl Scripted {
    /// A session in a world.
    pub fn new(timer: &SimTimer, script: &Script) -> Self {
        Self { timer: timer.clone(), script: Rc::clone(script), error: None }
    }

    /// What it rests after a failure.
    pub const REST_NS: u64 = 50_000_000;

    async fn act(&mut self, key: &[u8]) -> Status {
        let (ns, status) = (self.script)(key);
        self.timer.sleep_until(self.timer.now_ns() + ns).await;
        // As stores do: that there is no such record needs no words.
        if !status.is_ok() && status != Status::NotFound {
            self.error = Some(format!("scripted {}", status.name()));
        }
        status
    }
}

impl Session for Scripted {
    async fn rest(&mut self) {
        self.timer.sleep_until(self.timer.now_ns() + Self::REST_NS).await;
    }
    async fn read(&mut self, key: &[u8], _: Wanted<'_>, row: &mut Row) -> Status {
        row.clear();
        self.act(key).await
    }
    async fn scan(&mut self, key: &[u8], _: usize, _: Wanted<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        self.act(key).await
    }
    async fn insert(&mut self, key: &[u8], _: &Row) -> Status {
        self.act(key).await
    }
    async fn update(&mut self, key: &[u8], _: &Row) -> Status {
        self.act(key).await
    }
    async fn delete(&mut self, key: &[u8]) -> Status {
        self.act(key).await
    }
    fn last_error(&mut self) -> Option<String> {
        self.error.take()
    }
}
