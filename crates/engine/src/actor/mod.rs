//! How an operation is performed: the part of the timing loop that knows what an operation is.
//!
//! A workload says what is done, an actor does it in a session, through a stopwatch that reads the clocks and records. A new
//! kind of work is a workload and an actor; the loop, the borders and the recorders stay as they are.

pub mod files;
pub mod inserts;
mod ledger_writer;
pub mod misses;
pub mod records;
pub mod series;

use loadstone_load::ledger::Ledger;
use loadstone_load::pace::Pace;
use loadstone_load::{Status, StepId, Workload};
use loadstone_stores::Connection;

use crate::clock::Timer;
use crate::failures::Failures;
use crate::file_log::FileLog;
use crate::mapping::Mapping;
use crate::pulse::Pulse;
use crate::recorder::{Recorder, Step};
use crate::scheduler::Scheduler;
use crate::sink::Times;
use inserts::{InsertLog, InsertPolicy};
use misses::Misses;

/// What all clients of a trial share.
#[derive(Debug)]
pub struct Task<W> {
    /// What is done.
    pub workload: W,
    /// What is next.
    pub scheduler: Scheduler,
    /// When it is due; `None`: closed loop.
    pub pace: Option<Pace>,
    /// Messages of failures.
    pub failures: Failures,
    /// Inserts of the run phase; `None` if there are none.
    pub inserts: Option<InsertLog>,
    /// Reads that missed inserts of other segments.
    pub misses: Misses,
    /// What a failed insert leads to.
    pub insert_policy: InsertPolicy,
    /// Where the writes of the run are noted, if they are.
    pub ledger: Option<Ledger<Mapping>>,
    /// What became of the files, if the work is on files.
    pub files: FileLog,
    /// What makes a time of the clients' clock one since the Unix epoch, ns.
    pub to_unix_ns: u64,
    pub seed: u64,
}

/// A workload that the engine can run in sessions of a type.
pub trait Work<S: Connection>: Workload + Sized + 'static {
    /// What performs its operations.
    type Actor<'a>: Actor<Operation = Self::Operation>
    where
        Self: 'a,
        S: 'a;

    /// An actor for one client of this worker.
    fn actor<'a>(task: &'a Task<Self>, session: &'a mut S, worker: usize) -> Self::Actor<'a>;
}

/// How a whole operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The worst of its steps.
    pub status: Status,
    /// When the answer was there, ns.
    pub done_ns: u64,
    /// Records that it read or wrote.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Performs operations, one after the other.
#[allow(async_fn_in_trait)]
pub trait Actor {
    /// What it performs.
    type Operation: Default;

    /// Performs one. Called right after the clock was read for `watch.sent_ns`.
    async fn perform<T: Timer>(&mut self, operation: &Self::Operation, watch: &Stopwatch<'_, T>) -> Outcome;

    /// Rests after an operation that failed, before the next: no part of any latency.
    async fn rest(&mut self);

    /// Closes the session; returns the step under which that is recorded, and how it ended.
    async fn close(&mut self) -> (StepId, Status);
}

/// What of an operation's response is the generator's, at a rate.
#[derive(Clone, Copy, Debug)]
pub struct Lateness<'a> {
    /// How much too late it sent the operation, ns.
    pub sent_ns: u64,
    /// Says when the client's thread was paused.
    pub pulse: &'a Pulse,
    /// For how long it had been paused when the operation was sent, ns.
    pub held_ns: u64,
}

impl Lateness<'_> {
    /// How much earlier an answer seen at `done` may have been there, had the generator been on time, ns.
    ///
    /// Answers come to an executor from elsewhere, whether it runs or not: it may have seen one late. A client with a thread
    /// of its own, which is paused with the store that it calls, would have had it earlier by the length of the pause.
    #[inline]
    pub fn at(&self, done: u64) -> u64 {
        let seen_late = if self.pulse.clients > 0 {
            self.pulse.behind_ns(done)
        } else {
            self.pulse.held_ns(done).saturating_sub(self.held_ns)
        };
        self.sent_ns + seen_late
    }
}

/// Reads the clock for one operation, and records its steps.
#[derive(Debug)]
pub struct Stopwatch<'a, T> {
    pub timer: &'a T,
    /// Where it is recorded.
    pub recorder: &'a Recorder,
    // Two that a `Step` has side by side are apart here: a copy of both at once would wait until each has been written.
    /// When the operation was due (closed loop: sent), ns.
    pub due_ns: u64,
    /// The interval in which it was due.
    pub interval: u64,
    /// When it was sent, ns.
    pub sent_ns: u64,
    /// What of its response is the generator's; at a rate only.
    pub lateness: Option<Lateness<'a>>,
    /// When the client was free for it and it was due, ns: it was claimed no earlier.
    pub ready_ns: u64,
    /// Whether it counts.
    pub counted: bool,
}

impl<T: Timer> Stopwatch<'_, T> {
    /// Now, ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.timer.now_ns()
    }

    /// Records the operation, or a part of it that began at `sent` and was due with the whole.
    #[expect(clippy::inline_always, reason = "see `Recorder::step`")]
    #[inline(always)]
    pub fn step(&self, id: StepId, status: Status, sent: u64, done: u64) {
        self.record(id, status, Times { due: self.due_ns, sent, done }, self.lateness.as_ref());
    }

    /// Records something beside the operation, which was due when it began.
    #[inline]
    pub fn beside(&self, id: StepId, status: Status, sent: u64, done: u64) {
        self.record(id, status, Times { due: sent, sent, done }, None);
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn record(&self, id: StepId, status: Status, times: Times, lateness: Option<&Lateness<'_>>) {
        if self.counted {
            let generator_ns = lateness.map_or(0, |lateness| lateness.at(times.done));
            self.recorder.step(Step { id, status, times, generator_ns, interval: self.interval });
        }
    }

    /// Records an attempt that is followed by another.
    #[cold]
    pub fn attempt(&self, id: StepId, status: Status, sent: u64, done: u64) {
        if self.counted {
            self.recorder.attempt(id, status, Times { due: self.due_ns, sent, done });
        }
    }
}
