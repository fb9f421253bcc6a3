//! Monitors how punctually the engine's threads run: when a short tick oversleeps, all other work on its thread lags by
//! the same time.
//!
//! The idea is from jHiccup (Tene, <https://github.com/giltene/jHiccup>): whatever delays a task that only sleeps also
//! delays everything else on its thread by the same time, whether the cause is too much work, a busy host or a
//! hypervisor.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use loadstone_load::histogram::{Grid, Reading};

use crate::borders::{Borders, NEVER};
use crate::clock::LATE_NS;
use crate::clock::Timer;

/// The length of a tick, ns, if lateness affects the result (with a rate).
pub const TICK_NS: u64 = 1_000_000;
/// The length of a tick in a closed loop, where no operation is due, ns. A wake-up takes 11 to 18 µs on our virtual
/// machine, whichever program sleeps. Once per millisecond, this is more than 1 % of a processor.
pub const COARSE_TICK_NS: u64 = 4 * TICK_NS;

/// A thread of the engine, as observed from other threads.
#[derive(Debug)]
pub struct Pulse {
    pub name: String,
    /// Number of clients that the thread serves.
    pub clients: u64,
    /// The length of the thread's ticks, ns.
    pub tick_ns: u64,
    /// Lateness of the ticks, ns.
    pub lag: Grid,
    /// The thread's total pauses so far, ns; see [`Self::pause_ns`].
    paused: AtomicU64,
    /// Time since which the thread has been late, ns; [`NEVER`] while it is on time.
    behind: AtomicU64,
    /// Due time of the tick for which the thread is waiting, ns; [`NEVER`] if it is not waiting.
    next: AtomicU64,
    /// The id of the thread's CPU-time clock; 0 before the thread starts.
    clock: AtomicI32,
    /// The thread's final CPU time, ns; 0 until it ends.
    ended: AtomicU64,
}

impl Pulse {
    /// The pulse of a thread that has not started yet.
    pub fn new(name: String, clients: u64, tick_ns: u64) -> Self {
        let clock = AtomicI32::new(0);
        let [paused, ended] = [AtomicU64::new(0), AtomicU64::new(0)];
        let [behind, next] = [AtomicU64::new(NEVER), AtomicU64::new(NEVER)];
        Self { name, clients, tick_ns, lag: Grid::default(), paused, behind, next, clock, ended }
    }

    /// Starts to observe the calling thread, until the returned value is dropped.
    pub fn begin_beating(&self) -> Beating<'_> {
        let mut clock = 0;
        // SAFETY: the calling thread exists, and the call fills the number.
        if unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) } == 0 {
            self.clock.store(clock, Ordering::Release);
        }
        Beating(self)
    }

    /// CPU time that the thread has used so far, ns.
    pub fn cpu_ns(&self) -> u64 {
        match (self.ended.load(Ordering::Acquire), self.clock.load(Ordering::Acquire)) {
            (0, 0) => 0,
            // The clock of a thread that has just ended no longer exists, but its time was stored before.
            (0, clock) => cpu_ns(clock).unwrap_or_else(|| self.ended.load(Ordering::Acquire)),
            (ended, _) => ended,
        }
    }

    /// Ticks until `over` returns true, and records the ticks that overlap the window.
    pub async fn beat_until<T: Timer>(&self, borders: &Borders, timer: &T, over: impl Fn() -> bool) {
        while !over() {
            let due = timer.now_ns() + self.tick_ns;
            self.expect_beat(due);
            timer.wait_until(due, &over).await;
            self.record_beat(borders, due, timer.now_ns());
        }
    }

    /// Records that the thread is waiting for a tick at `due`.
    pub fn expect_beat(&self, due: u64) {
        self.next.store(due, Ordering::Relaxed);
    }

    /// Records a tick that was due at `due` and occurred at `woke`.
    pub fn record_beat(&self, borders: &Borders, due: u64, woke: u64) {
        self.next.store(NEVER, Ordering::Relaxed);
        let lag = woke.saturating_sub(due);
        let paused = self.paused.load(Ordering::Relaxed) + self.record_pause(lag);
        self.paused.store(paused, Ordering::Relaxed);
        let behind = match self.behind.load(Ordering::Relaxed) {
            _ if lag <= LATE_NS => NEVER,
            NEVER => due.saturating_sub(self.tick_ns),
            since => since,
        };
        self.behind.store(behind, Ordering::Relaxed);
        // A tick that occurred early because of a stop does not count.
        if woke >= due && woke >= borders.first_ns && due < borders.end_ns {
            self.lag.record_value(woke - due);
        }
    }

    /// Total pauses of the thread up to `now`, ns: an upper bound, which includes a tick that is overdue.
    #[inline]
    pub fn pause_ns(&self, now: u64) -> u64 {
        let waiting = now.saturating_sub(self.next.load(Ordering::Relaxed));
        self.paused.load(Ordering::Relaxed) + self.record_pause(waiting)
    }

    /// Time since the thread was last on time, ns; it may have missed events during this time. After a pause, the
    /// thread counts as late until a tick is on time, because it must first work off its backlog.
    #[inline]
    pub fn behind_ns(&self, now: u64) -> u64 {
        let waiting = now.saturating_sub(self.next.load(Ordering::Relaxed));
        match self.behind.load(Ordering::Relaxed) {
            NEVER => waiting + if waiting > LATE_NS { self.tick_ns } else { 0 },
            since => now.saturating_sub(since),
        }
    }

    /// The recorded lag so far.
    pub fn reading(&self) -> Reading {
        let mut reading = Reading::default();
        reading.add_grid(&self.lag);
        reading
    }

    /// The longest pause that can explain a tick that was late by `lag`, ns. The pause may have begun right after the
    /// preceding tick. A lag of up to 1 ms is attributed to a slow wake-up, and counts as no pause.
    fn record_pause(&self, lag: u64) -> u64 {
        if lag > LATE_NS { lag + self.tick_ns } else { 0 }
    }
}

/// A thread that is being observed; see [`Pulse::begin_beating`].
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
