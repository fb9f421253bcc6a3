//! What a client tells the ledger of its writes.

use loadstone_load::Status;
use loadstone_load::ledger::{Exception, Ledger, Pen, SLOW_NS, State};

use crate::mapping::Mapping;

/// One client's way to the ledger.
#[derive(Debug)]
pub struct Notes<'a> {
    /// The ledger.
    pub ledger: &'a Ledger<Mapping>,
    /// The pen of the client's worker.
    pub pen: Pen<'a>,
}

impl Notes<'_> {
    /// Notes the write of this number after its last attempt; it was claimed no earlier than `ready_ns`.
    #[inline]
    pub fn write(&self, number: u64, ready_ns: u64, how: Exception) {
        let state = how.status.map_or(State::Maybe, state);
        // Before the bits: a reader takes an acknowledged write without an exception for a fast one.
        if state != State::Acknowledged || how.done.saturating_sub(ready_ns) > SLOW_NS {
            self.ledger.except(how);
        }
        self.pen.note(number, state);
    }
}

/// What a status says of a write. A batch may never be sent, and no store says yet which of its failures are refusals:
/// whatever is not acknowledged may have been done.
fn state(status: Status) -> State {
    if status == Status::Ok { State::Acknowledged } else { State::Maybe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_store_called_done_must_be_there_afterwards() {
        for status in Status::ALL {
            let expected = if status == Status::Ok { State::Acknowledged } else { State::Maybe };
            assert_eq!(state(status), expected, "{}", status.name());
        }
    }
}
