//! Queries the garbage collections in this process during the window, on separate threads.
//!
//! When a JVM exits (through `System.exit` in a binding), every thread that is in Java or returns to it blocks forever.
//! The conductor's thread must not be one of these threads, because it prints the results so far.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use loadstone_session::Collections;
use loadstone_session::erased::OpenStore;

/// Maximum time to wait for an answer. A full collection may delay the querying thread by seconds.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Interval between checks for a lost store while waiting for the answer.
const CHECK: Duration = Duration::from_millis(1);

/// An answer that may never arrive.
#[derive(Debug)]
pub struct Asked(Receiver<Vec<Collections>>);

impl Asked {
    /// Sends the query. Returns `None` if the system cannot start another thread.
    pub fn send_request(store: &Arc<dyn OpenStore>) -> Option<Self> {
        let (answer, answers) = channel();
        let store = Arc::clone(store);
        let body = move || {
            let collections = store.collections();
            // This reference is dropped before the answer is sent, because the trial can close the store only if no
            // other reference is left.
            drop(store);
            let _ = answer.send(collections);
        };
        std::thread::Builder::new().name("collections".to_owned()).spawn(body).ok().map(|_| Self(answers))
    }

    /// Waits for the answer; `None` if it does not arrive in time, or if the store is lost first.
    fn wait_for_answer(&self, store: &dyn OpenStore) -> Option<Vec<Collections>> {
        let start = Instant::now();
        loop {
            match self.0.recv_timeout(CHECK) {
                Ok(collections) => return Some(collections),
                Err(RecvTimeoutError::Timeout) if store.describe_loss().is_none() && start.elapsed() < ANSWER_MAX => {}
                Err(_) => return None,
            }
        }
    }
}

/// The activity of each collector since the query `before`; empty if either answer is missing.
pub fn collections_since(before: Option<Asked>, store: &Arc<dyn OpenStore>) -> Vec<Collections> {
    let Some(before) = before.and_then(|before| before.wait_for_answer(&**store)) else { return Vec::new() };
    let now = Asked::send_request(store).and_then(|now| now.wait_for_answer(&**store)).unwrap_or_default();
    subtract_collections(now, &before)
}

fn subtract_collections(mut now: Vec<Collections>, before: &[Collections]) -> Vec<Collections> {
    for collector in &mut now {
        if let Some(earlier) = before.iter().find(|earlier| earlier.collector == collector.collector) {
            collector.count = collector.count.saturating_sub(earlier.count);
            collector.time_ms = collector.time_ms.saturating_sub(earlier.time_ms);
        }
    }
    now
}
