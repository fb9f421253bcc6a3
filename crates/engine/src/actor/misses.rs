//! Reads that found nothing where another segment inserts. Whether that insert had been acknowledged only the other segment's
//! ledger knows; see `loadstone-engine ledger --events`.

use std::sync::{Mutex, PoisonError};

use crate::event::{Missed, Unsettled};

/// How many are kept; the others are counted.
const KEPT: usize = 1 << 16;

/// Those of a trial. Their times are of the clients' clock.
#[derive(Debug, Default)]
pub struct Misses(Mutex<Unsettled>);

impl Misses {
    /// A read that was sent at `sent_ns` and missed the insert at `index`.
    #[cold]
    pub fn add(&self, index: u64, sent_ns: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.count += 1;
        if all.first.len() < KEPT {
            all.first.push(Missed { index, sent_unix_ns: sent_ns });
        }
    }

    /// All of them; `to_unix_ns` must be added to an instant for the time since the Unix epoch.
    pub fn unsettled(&self, to_unix_ns: u64) -> Unsettled {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for miss in &mut all.first {
            miss.sent_unix_ns = miss.sent_unix_ns.wrapping_add(to_unix_ns);
        }
        all
    }
}
