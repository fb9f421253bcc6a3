//! The operation that a client has in flight. The conductor reads it while the trial runs and at its end.

use std::sync::atomic::{AtomicU64, Ordering};

/// The operation that a client has claimed but not finished, if there is one.
#[derive(Debug)]
pub struct Flight {
    index: AtomicU64,
    /// Time at which the operation was due (closed loop: sent), ns, combined with the bit [`SENT`] once the operation
    /// has been sent, and the bit [`WARM_UP`] if the operation is not counted; [`NOTHING`] if there is no operation.
    due: AtomicU64,
    /// Time at which the client's last counted operation finished, ns; 0 if there is none yet.
    last_done: AtomicU64,
}

const SENT: u64 = 1 << 63;
const WARM_UP: u64 = 1 << 62;
const NOTHING: u64 = u64::MAX;

/// An operation that a client has not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The operation's index in the whole trial.
    pub index: u64,
    /// Time at which the operation was due (closed loop: sent), ns.
    pub due_ns: u64,
    /// Whether the operation was sent.
    pub sent: bool,
    /// Whether the operation is counted: operations of the warm-up are not.
    pub counted: bool,
}

impl Default for Flight {
    fn default() -> Self {
        Self { index: AtomicU64::new(0), due: AtomicU64::new(NOTHING), last_done: AtomicU64::new(0) }
    }
}

impl Flight {
    /// The client has claimed an operation.
    #[inline]
    pub fn take_operation(&self, index: u64, due_ns: u64, counted: bool) {
        self.index.store(index, Ordering::Relaxed);
        self.due.store(due_ns | if counted { 0 } else { WARM_UP }, Ordering::Relaxed);
    }

    /// The client sends the operation.
    #[inline]
    pub fn send_operation(&self, index: u64, due_ns: u64, counted: bool) {
        self.take_operation(index, due_ns | SENT, counted);
    }

    /// The operation, which is counted, has finished.
    #[inline]
    pub fn end_operation(&self, done_ns: u64) {
        // The operations of a client finish one after the other.
        self.last_done.store(done_ns, Ordering::Relaxed);
        self.end_of_warm_up();
    }

    /// The operation, which is not counted, has finished.
    #[inline]
    pub fn end_of_warm_up(&self) {
        self.due.store(NOTHING, Ordering::Relaxed);
    }

    pub(super) fn last_done_ns(&self) -> u64 {
        self.last_done.load(Ordering::Relaxed)
    }

    pub(super) fn list_unfinished(&self) -> Option<Unfinished> {
        let due = self.due.load(Ordering::Relaxed);
        let index = self.index.load(Ordering::Relaxed);
        (due != NOTHING).then_some(Unfinished {
            index,
            due_ns: due & !(SENT | WARM_UP),
            sent: due & SENT != 0,
            counted: due & WARM_UP == 0,
        })
    }
}
