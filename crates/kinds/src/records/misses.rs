//! Reads that did not find a record inserted by another segment. Only the ledger of the other segment shows whether the
//! insert had been acknowledged; see `loadstone ledger --events`.

use std::sync::{Mutex, PoisonError};

use loadstone_wire::event::{Missed, Unsettled};

/// Maximum number of reads that are stored; further reads are only counted.
const KEPT: usize = 1 << 16;

/// The reads of a trial that missed records of other segments. Times are on the clients' clock.
#[derive(Debug, Default)]
pub struct Misses(Mutex<Unsettled>);

impl Misses {
    /// Adds a read that was sent at `sent_ns` and did not find the record of the insert at `index`.
    #[cold]
    pub fn add_miss(&self, index: u64, sent_ns: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.count += 1;
        if all.first.len() < KEPT {
            all.first.push(Missed { index, sent_unix_ns: sent_ns });
        }
    }

    /// The reads so far. Adding `to_unix_ns` to a time gives the time since the Unix epoch.
    pub fn list_unsettled(&self, to_unix_ns: u64) -> Unsettled {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for miss in &mut all.first {
            miss.sent_unix_ns = miss.sent_unix_ns.wrapping_add(to_unix_ns);
        }
        all
    }
}
