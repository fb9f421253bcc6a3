//! How an operation is performed: the part of the timing loop that knows what an operation is.

use loadstone_load::{Status, StepId};

use crate::borders::IntervalCursor;
use crate::clock::Timer;
use crate::lateness::Lateness;
use crate::recorder::{Recorder, Step};
use crate::sink::Times;

/// How a whole operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The worst of its steps.
    pub status: Status,
    /// When the answer arrived, ns.
    pub done_ns: u64,
    /// Records read or written.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Performs operations, one at a time.
#[allow(async_fn_in_trait)]
pub trait Actor {
    /// The type of its operations.
    type Operation: Default;

    /// Performs an operation. Called right after the clock was read for `watch.sent_ns`.
    async fn perform<T: Timer>(&mut self, operation: &Self::Operation, watch: &Stopwatch<'_, T>) -> Outcome;

    /// Whether nothing was sent for the last operation, which failed, because no server could be reached.
    fn unsent(&self) -> bool;

    /// Pauses after a failed operation in a closed loop, before the next; not part of any latency.
    async fn pause(&mut self);

    /// Closes the session; returns the step under which that is recorded, and how it ended.
    async fn close(&mut self) -> (StepId, Status);
}

/// Reads the clock for one operation, and records its steps.
///
/// A client has one for all its operations: most of it stays the same from one to the next.
#[derive(Debug)]
pub struct Stopwatch<'a, T> {
    pub timer: &'a T,
    /// Where the steps are recorded.
    pub recorder: &'a Recorder,
    /// When the operation was due (closed loop: sent), ns.
    pub due_ns: u64,
    /// The interval in which it was due.
    pub due_in: IntervalCursor,
    /// When it was sent, ns.
    pub sent_ns: u64,
    /// The part of its response that the generator caused; at a rate only.
    pub lateness: Option<Lateness<'a>>,
    /// When the client was free and the operation was due, ns: it was claimed no earlier.
    pub ready_ns: u64,
    /// Whether it counts.
    pub counted: bool,
}

impl<'a, T: Timer> Stopwatch<'a, T> {
    /// A stopwatch before the first operation.
    pub fn new(timer: &'a T, recorder: &'a Recorder) -> Self {
        let due_in = IntervalCursor::default();
        Self { timer, recorder, due_ns: 0, due_in, sent_ns: 0, lateness: None, ready_ns: 0, counted: false }
    }

    /// Now, ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.timer.now_ns()
    }

    /// Records the operation, or a part of it that began at `sent` and has the due time of the whole.
    #[expect(clippy::inline_always, reason = "see `Recorder::step`")]
    #[inline(always)]
    pub fn step(&self, id: StepId, status: Status, sent: u64, done: u64) {
        self.record(id, status, Times { due: self.due_ns, sent, done }, self.lateness.as_ref());
    }

    /// Records an operation of several attempts, the first sent when the operation was and the last at `retried`.
    #[cold]
    pub fn record_retried(&self, id: StepId, status: Status, retried: u64, done: u64) {
        if self.counted {
            let times = Times { due: self.due_ns, sent: self.sent_ns, done };
            let lateness = self.lateness.as_ref();
            self.recorder
                .record_retried(Step { id, status, times, lateness, interval: self.due_in.interval() }, retried);
        }
    }

    /// Records a step outside the operation, which was due when it began.
    #[inline]
    pub fn beside(&self, id: StepId, status: Status, sent: u64, done: u64) {
        self.record(id, status, Times { due: sent, sent, done }, None);
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn record(&self, id: StepId, status: Status, times: Times, lateness: Option<&Lateness<'_>>) {
        if self.counted {
            self.recorder.step(Step { id, status, times, lateness, interval: self.due_in.interval() });
        }
    }

    /// Records an attempt that is retried.
    #[cold]
    pub fn attempt(&self, id: StepId, status: Status, sent: u64, done: u64) {
        if self.counted {
            self.recorder.attempt(id, status, Times { due: self.due_ns, sent, done });
        }
    }
}
