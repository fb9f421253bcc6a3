//! How well a thread of the engine keeps time: a tick of 1 ms, whose oversleep is the lag of whatever else it has to do.
//!
//! The idea is jHiccup's (Tene, <https://github.com/giltene/jHiccup>): what delays a thread that does nothing but sleep
//! delays everything else on it as much, be it too much work, a busy host or a hypervisor.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use loadstone_load::meter::{Grid, Reading};

use crate::borders::{Borders, NEVER};
use crate::clock::Timer;
use crate::recorder::LATE_NS;

/// The length of a tick, ns.
pub const TICK_NS: u64 = 1_000_000;

/// One thread of the engine, looked at from outside.
#[derive(Debug)]
pub struct Pulse {
    pub name: String,
    /// How many clients it serves.
    pub clients: u64,
    /// How much too late its ticks woke, ns.
    pub lag: Grid,
    /// For how long it was paused so far, ns; see [`Self::held_ns`].
    held: AtomicU64,
    /// Since when it has not been on time, ns; [`NEVER`] while it is.
    behind: AtomicU64,
    /// When the tick that it waits for is due, ns; [`NEVER`] while it does something else.
    next: AtomicU64,
    /// Its clock of processor time; 0 before it began.
    clock: AtomicI32,
    /// Its processor time when it ended, ns; 0 before.
    ended: AtomicU64,
}

impl Pulse {
    /// Of a thread that has not begun.
    pub fn new(name: String, clients: u64) -> Self {
        let clock = AtomicI32::new(0);
        let [held, ended] = [AtomicU64::new(0), AtomicU64::new(0)];
        let [behind, next] = [AtomicU64::new(NEVER), AtomicU64::new(NEVER)];
        Self { name, clients, lag: Grid::default(), held, behind, next, clock, ended }
    }

    /// The calling thread begins; dropping the returned value ends it.
    pub fn begin(&self) -> Beating<'_> {
        let mut clock = 0;
        // SAFETY: the calling thread exists, and the call fills the number.
        if unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) } == 0 {
            self.clock.store(clock, Ordering::Release);
        }
        Beating(self)
    }

    /// Processor time of the thread so far, ns.
    pub fn cpu_ns(&self) -> u64 {
        match (self.ended.load(Ordering::Acquire), self.clock.load(Ordering::Acquire)) {
            (0, 0) => 0,
            // A thread that ends right now has no clock any more: then it has left the time.
            (0, clock) => cpu_ns(clock).unwrap_or_else(|| self.ended.load(Ordering::Acquire)),
            (ended, _) => ended,
        }
    }

    /// Ticks until `over`; counts the ticks that reach into the window.
    pub async fn beat<T: Timer>(&self, borders: &Borders, timer: &T, over: impl Fn() -> bool) {
        while !over() {
            let due = timer.now_ns() + TICK_NS;
            self.expect(due);
            timer.until(due, &over).await;
            self.tick(borders, due, timer.now_ns());
        }
    }

    /// The thread waits for a tick at `due`.
    pub fn expect(&self, due: u64) {
        self.next.store(due, Ordering::Relaxed);
    }

    /// Counts a tick that was to wake at `due` and woke at `woke`.
    pub fn tick(&self, borders: &Borders, due: u64, woke: u64) {
        self.next.store(NEVER, Ordering::Relaxed);
        let lag = woke.saturating_sub(due);
        let held = self.held.load(Ordering::Relaxed) + pause(lag);
        self.held.store(held, Ordering::Relaxed);
        let behind = match self.behind.load(Ordering::Relaxed) {
            _ if lag <= LATE_NS => NEVER,
            NEVER => due.saturating_sub(TICK_NS),
            since => since,
        };
        self.behind.store(behind, Ordering::Relaxed);
        // One that was woken early, by a stop, is none.
        if woke >= due && woke >= borders.first_ns && due < borders.end_ns {
            self.lag.record(woke - due);
        }
    }

    /// For how long, up to `now`, the thread was paused, ns: an upper bound, a tick still to come included.
    #[inline]
    pub fn held_ns(&self, now: u64) -> u64 {
        let waiting = now.saturating_sub(self.next.load(Ordering::Relaxed));
        self.held.load(Ordering::Relaxed) + pause(waiting)
    }

    /// How much earlier than `now` the thread could have seen what it sees now, ns: since it was last on time. After a
    /// pause that is until a tick is, as everything that had come meanwhile has to be seen to first.
    #[inline]
    pub fn behind_ns(&self, now: u64) -> u64 {
        let waiting = now.saturating_sub(self.next.load(Ordering::Relaxed));
        match self.behind.load(Ordering::Relaxed) {
            NEVER => waiting + if waiting > LATE_NS { TICK_NS } else { 0 },
            since => now.saturating_sub(since),
        }
    }

    /// The lag so far.
    pub fn reading(&self) -> Reading {
        let mut reading = Reading::default();
        reading.add(&self.lag);
        reading
    }
}

/// How long a pause that a tick is late for by `lag` may have been, ns: it may have begun right after the tick before.
/// Less than 1 ms is none, but a wake-up.
fn pause(lag: u64) -> u64 {
    if lag > LATE_NS { lag + TICK_NS } else { 0 }
}

/// A thread that is looked at; see [`Pulse::begin`].
#[derive(Debug)]
pub struct Beating<'a>(&'a Pulse);

impl Drop for Beating<'_> {
    fn drop(&mut self) {
        let cpu = cpu_ns(self.0.clock.load(Ordering::Relaxed)).unwrap_or(0);
        self.0.ended.store(cpu.max(1), Ordering::Release);
    }
}

fn cpu_ns(clock: i32) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct, and refuses the clock of a thread that has ended.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (read == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
