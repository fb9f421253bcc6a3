//! Reads that missed an insert of another segment. Only the other segment's ledger shows whether the insert had been
//! acknowledged; see `loadstone ledger --events`.

use std::sync::{Mutex, PoisonError};

use loadstone_wire::event::{Missed, Unsettled};

/// Maximum number of stored reads; further reads are only counted.
const KEPT: usize = 1 << 16;

/// The missed reads of a trial. Their times are on the clients' clock.
#[derive(Debug, Default)]
pub struct Misses(Mutex<Unsettled>);

impl Misses {
    /// Adds a read that was sent at `sent_ns` and missed the insert at `index`.
    #[cold]
    pub fn add(&self, index: u64, sent_ns: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.count += 1;
        if all.first.len() < KEPT {
            all.first.push(Missed { index, sent_unix_ns: sent_ns });
        }
    }

    /// All missed reads; `to_unix_ns` added to an instant gives the time since the Unix epoch.
    pub fn list_unsettled(&self, to_unix_ns: u64) -> Unsettled {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for miss in &mut all.first {
            miss.sent_unix_ns = miss.sent_unix_ns.wrapping_add(to_unix_ns);
        }
        all
    }
}
