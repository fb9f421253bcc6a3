//! Performs operations: the part of the timing loop that depends on the type of the operations.

use loadstone_load::{Status, StepId};

use crate::borders::IntervalCursor;
use crate::clock::Timer;
use crate::lateness::Lateness;
use crate::recorder::{Recorder, StepRecord};
use crate::sink::StepTimes;

/// The result of a whole operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The worst status of the operation's steps.
    pub status: Status,
    /// Time at which the answer arrived, ns.
    pub done_ns: u64,
    /// Number of records read or written.
    pub rows: u64,
    /// Number of bytes read or written.
    pub bytes: u64,
}

/// Performs operations, one at a time.
#[allow(async_fn_in_trait)]
pub trait Actor {
    /// The type of the actor's operations.
    type Operation: Default;

    /// Performs an operation. Called right after the clock is read for `watch.sent_ns`.
    async fn perform_operation<T: Timer>(&mut self, operation: &Self::Operation, watch: &Stopwatch<'_, T>) -> Outcome;

    /// Called before a counted operation is performed, with the interval in which it was due. Only with a rate.
    fn begin_operation(&self, _operation: &Self::Operation, _interval: u64) {}

    /// Called after a counted operation, with the operation's status and response time. Only with a rate.
    fn finish_operation(&self, _operation: &Self::Operation, _interval: u64, _status: Status, _response_ns: u64) {}

    /// Whether the last operation failed without being sent, because no server could be reached.
    fn is_unsent(&self) -> bool;

    /// Pauses after a failed operation in a closed loop, before the next operation. The pause is not part of any
    /// latency.
    async fn pause(&mut self);

    /// Closes the session. Returns the step under which the close is recorded, and its status.
    async fn close(&mut self) -> (StepId, Status);
}

/// Reads the clock for one operation, and records its steps.
///
/// A client uses one stopwatch for all its operations, because most fields do not change between them.
#[derive(Debug)]
pub struct Stopwatch<'a, T> {
    pub timer: &'a T,
    /// The recorder of the steps.
    pub recorder: &'a Recorder,
    /// Time at which the operation was due (closed loop: sent), ns.
    pub due_ns: u64,
    /// The interval in which the operation was due.
    pub due_in: IntervalCursor,
    /// Time at which the operation was sent, ns.
    pub sent_ns: u64,
    /// The part of the response time that the generator caused; with a rate only.
    pub lateness: Option<Lateness<'a>>,
    /// Time at which the client was free and the operation was due, ns. In a closed loop, the operation was not claimed
    /// before this time.
    pub ready_ns: u64,
    /// Whether the operation is counted.
    pub counted: bool,
}

impl<'a, T: Timer> Stopwatch<'a, T> {
    /// A stopwatch before the first operation.
    pub fn new(timer: &'a T, recorder: &'a Recorder) -> Self {
        let due_in = IntervalCursor::default();
        Self { timer, recorder, due_ns: 0, due_in, sent_ns: 0, lateness: None, ready_ns: 0, counted: false }
    }

    /// The current time, ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.timer.now_ns()
    }

    /// Records the operation, or a part of it that began at `sent`; a part has the due time of the whole operation.
    #[expect(clippy::inline_always, reason = "see `Recorder::record_step`")]
    #[inline(always)]
    pub fn record_step(&self, id: StepId, status: Status, sent: u64, done: u64) {
        self.record_times(id, status, StepTimes { due: self.due_ns, sent, done }, self.lateness.as_ref());
    }

    /// Records an operation with several attempts: the first was sent at `sent_ns`, the last at `retried`.
    #[cold]
    pub fn record_retried(&self, id: StepId, status: Status, retried: u64, done: u64) {
        if self.counted {
            let times = StepTimes { due: self.due_ns, sent: self.sent_ns, done };
            let lateness = self.lateness.as_ref();
            self.recorder
                .record_retried(StepRecord { id, status, times, lateness, interval: self.due_in.interval() }, retried);
        }
    }

    /// Records a step outside the operation. Its due time is the time at which it began.
    #[inline]
    pub fn record_extra(&self, id: StepId, status: Status, sent: u64, done: u64) {
        self.record_times(id, status, StepTimes { due: sent, sent, done }, None);
    }

    #[expect(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn record_times(&self, id: StepId, status: Status, times: StepTimes, lateness: Option<&Lateness<'_>>) {
        if self.counted {
            self.recorder.record_step(StepRecord { id, status, times, lateness, interval: self.due_in.interval() });
        }
    }

    /// Records an attempt that will be retried.
    #[cold]
    pub fn record_attempt(&self, id: StepId, status: Status, sent: u64, done: u64) {
        if self.counted {
            self.recorder.record_attempt(id, status, StepTimes { due: self.due_ns, sent, done });
        }
    }
}
