//! Records a client's writes in the ledger.

use loadstone_load::Status;
use loadstone_load::ledger::{Exception, Ledger, Pen, State};
use loadstone_stores::Session;

use crate::mapping::Mapping;

/// One client's access to the ledger.
#[derive(Debug)]
pub struct LedgerWriter<'a> {
    pub ledger: &'a Ledger<Mapping>,
    /// The pen of the client's worker.
    pub pen: Pen<'a>,
}

impl LedgerWriter<'_> {
    /// Notes the write with this number after its last attempt; it was claimed no earlier than `ready_ns`.
    #[inline]
    pub fn write(&self, number: u64, state: State, ready_ns: u64, how: Exception) {
        // Before the bits: to a reader, an acknowledged write without an exception is a fast one.
        if state != State::Acknowledged || how.done.saturating_sub(ready_ns) > self.ledger.slow_ns() {
            self.ledger.except(how);
        }
        self.pen.note(number, state);
    }
}

/// What is known of a write after an attempt that ended with this status. A write that the store neither acknowledged nor
/// refused may have been done, or may still be; a batch may never be sent.
#[inline]
pub fn state<S: Session>(session: &S, status: Status) -> State {
    match status {
        Status::Ok => State::Acknowledged,
        _ if session.refused(status) => State::Refused,
        _ => State::Maybe,
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::simulation::{Scripted, SimTimer};

    #[test]
    fn only_acknowledged_writes_must_be_present_and_only_refused_ones_absent() {
        let session = Scripted::new(&SimTimer::default(), &(Rc::new(|_: &[u8]| (0u64, Status::Ok)) as _));
        for status in Status::ALL {
            let expected = match status {
                Status::Ok => State::Acknowledged,
                Scripted::REFUSAL => State::Refused,
                _ => State::Maybe,
            };
            assert_eq!(state(&session, status), expected, "{}", status.name());
        }
    }
}
