//! The error messages of failures, and the number of clients that did not close.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::{Status, StepId};

/// The failures of a trial. All its clients share this value.
#[derive(Debug)]
pub struct Failures {
    /// The first message for each step and status.
    messages: Box<[[OnceLock<String>; Status::COUNT]]>,
    /// Number of clients that did not close, by status.
    unclosed: [AtomicU64; Status::COUNT],
}

impl Failures {
    /// Creates a record without failures for a workload with the given number of steps.
    pub fn new(steps: usize) -> Self {
        Self {
            messages: (0..steps).map(|_| std::array::from_fn(|_| OnceLock::new())).collect(),
            unclosed: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Stores the error message of the first failure of a step with a given status.
    pub fn keep_message(&self, step: StepId, status: Status, message: impl FnOnce() -> Option<String>) {
        let cell = &self.messages[usize::from(step.0)][status as usize];
        if cell.get().is_none()
            && let Some(message) = message()
        {
            cell.get_or_init(|| message);
        }
    }

    /// The stored message, if there is one.
    pub fn message(&self, step: StepId, status: Status) -> Option<&str> {
        self.messages[usize::from(step.0)][status as usize].get().map(String::as_str)
    }

    /// All stored messages.
    pub fn messages(&self) -> impl Iterator<Item = (StepId, Status, &str)> {
        self.messages.iter().enumerate().flat_map(|(step, cells)| {
            let counters = Status::ALL.into_iter().zip(cells);
            counters.filter_map(move |(status, cell)| Some((StepId(step as u16), status, cell.get()?.as_str())))
        })
    }

    /// Counts a client whose session did not close.
    pub fn count_unclosed(&self, status: Status) {
        self.unclosed[status as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Number of clients that did not close, by the status of the attempt. YCSB's report does not contain this count.
    pub fn list_unclosed(&self) -> impl Iterator<Item = (Status, u64)> {
        let counts = self.unclosed.iter().map(|count| count.load(Ordering::Relaxed));
        Status::ALL.into_iter().zip(counts).filter(|&(_, count)| count > 0)
    }
}
