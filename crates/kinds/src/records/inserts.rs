//! Inserts with their attempts, and the log of acknowledged inserts in the run phase.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use loadstone_load::ledger::WriteState;
use loadstone_load::{Kind, Row, Status};
use loadstone_session::Session;

use super::ledger::write_state;
use crate::retry::{Retried, RetryPolicy, retry_operation};
use loadstone_measure::actor::{Outcome, Stopwatch};
use loadstone_measure::clock::Timer;
use loadstone_measure::task::Task;

/// Inserts a record with as many attempts as the policy allows. The attempts are one operation, from the start of the
/// first attempt to the end of the last. Also returns the known state of the record for the ledger: `Refused` only if
/// every attempt was refused. The last value is `true` if no attempt was sent because no server could be reached.
#[inline]
pub async fn retry_insert<T: Timer, S: Session, W>(
    task: &Task<W>,
    (policy, in_ledger): (&RetryPolicy, bool),
    session: &mut S,
    watch: &Stopwatch<'_, T>,
    (index, key, row): (u64, &[u8], &Row),
) -> (Outcome, Option<WriteState>, bool) {
    let mut status = session.insert(key, row).await;
    let mut done = watch.now_ns();
    let mut known = in_ledger.then(|| write_state(session, status));
    let mut unsent = false;
    if status.is_ok() {
        watch.record_step(Kind::Insert.step(), status, watch.sent_ns, done);
    } else {
        let operation = Retried { index, step: Kind::Insert.step(), name: "insert", key };
        let attempt = async |session: &mut S| {
            let status = session.insert(key, row).await;
            known = known.map(|earlier| earlier.combine_with(write_state(session, status)));
            status
        };
        // The future is boxed, because its state would use 400 B of each client's memory for the few inserts that fail.
        let retried = Box::pin(retry_operation(task, policy, session, watch, operation, (status, done), attempt));
        (status, done, unsent) = retried.await;
    }
    (Outcome { status, done_ns: done, rows: 1, bytes: row.bytes().len() as u64 }, known, unsent)
}

/// The known state of an insert in the run phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The insert was acknowledged by the given time, so its record must exist.
    Acknowledged,
    /// The insert was in progress, failed, or has an unknown outcome, so its record may or may not exist.
    Unknown,
}

/// The times at which recent inserts of the run phase finished, and the inserts that failed.
///
/// A read that finds no record is a failure of the store only if the insert of the record had been acknowledged before
/// the read was sent. The log costs two memory writes per insert, and only reads that find no record read it.
#[derive(Debug)]
pub struct InsertLog {
    slots: Vec<InsertSlot>,
    /// The numbers of the inserts that were not acknowledged.
    failed: Mutex<BTreeSet<u64>>,
}

/// The last insert that used a slot.
#[derive(Debug)]
struct InsertSlot {
    /// The number of the insert; `u64::MAX` before the first insert.
    number: AtomicU64,
    /// Time at which the insert finished, whatever its status, ns; `u64::MAX` while the insert is in progress.
    done_ns: AtomicU64,
}

/// Number of slots, which is far more than the number of inserts that clients have in progress. YCSB's window is 2^20.
const SLOTS: usize = 1 << 16;

impl Default for InsertLog {
    fn default() -> Self {
        let empty = || InsertSlot { number: AtomicU64::new(u64::MAX), done_ns: AtomicU64::new(u64::MAX) };
        let mut slots = Vec::with_capacity(SLOTS);
        slots.resize_with(SLOTS, empty);
        Self { slots, failed: Mutex::default() }
    }
}

impl InsertLog {
    /// Notes that the insert `number` begins.
    #[inline]
    pub fn begin_insert(&self, number: u64) {
        let slot = self.slot(number);
        slot.done_ns.store(u64::MAX, Ordering::Relaxed);
        slot.number.store(number, Ordering::Release);
    }

    /// Notes that the insert `number` finished at `ns`.
    #[inline]
    pub fn end_insert(&self, number: u64, status: Status, ns: u64) {
        if !status.is_ok() {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).insert(number);
        }
        let slot = self.slot(number);
        // If the insert `number` + 65,536 has begun in the meantime, it has taken over the slot.
        if slot.number.load(Ordering::Relaxed) == number {
            slot.done_ns.store(ns, Ordering::Release);
        }
    }

    /// The known state of insert `number` at `ns`.
    pub fn state_at(&self, number: u64, ns: u64) -> Inserted {
        let slot = self.slot(number);
        let ended = match slot.number.load(Ordering::Acquire) {
            // The insert was claimed but has not begun, so the slot is unused or still belongs to an older insert.
            u64::MAX => false,
            last if last < number => false,
            last if last > number => true,
            _ => slot.done_ns.load(Ordering::Acquire) <= ns,
        };
        // The set of failures is read after the slot, because an insert that ends writes the set before the slot.
        if ended && !self.failed.lock().unwrap_or_else(PoisonError::into_inner).contains(&number) {
            Inserted::Acknowledged
        } else {
            Inserted::Unknown
        }
    }

    fn slot(&self, number: u64) -> &InsertSlot {
        &self.slots[number as usize % SLOTS]
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use loadstone_load::Segment;

    use super::*;
    use crate::simulation::{Scripted, SimTimer};
    use loadstone_measure::borders::{Borders, NEVER};
    use loadstone_measure::failures::Failures;
    use loadstone_measure::recorder::{Recorder, RecorderShape};
    use loadstone_measure::scheduler::Scheduler;

    /// The status and the known state of an insert whose attempts end with the given statuses.
    fn record_attempts(attempts: &'static [Status]) -> (Status, WriteState) {
        let (timer, next) = (SimTimer::default(), Cell::new(0));
        let script = Rc::new(move |_: &[u8]| {
            let status = attempts[next.get()];
            next.set(next.get() + 1);
            (1u64, status)
        });
        let mut session = Scripted::new(&timer, &(script as _));
        let insert_policy =
            RetryPolicy { retries: attempts.len() as u64 - 1, interval_ns: 0, stop: false, delays: None };
        let task = Task {
            scheduler: Scheduler::new(Segment::default(), &Borders::UNLIMITED, 1),
            pace: None,
            failures: Failures::new(Kind::COUNT),
            to_unix_ns: 0,
            work: (),
            seed: 1,
        };
        let shape =
            RecorderShape { steps: Kind::COUNT, sinks: Vec::new(), open: false, deadline_ns: NEVER, to_unix_ns: 0 };
        let recorder = Recorder::new(&shape, 1);
        let watch = Stopwatch::new(&timer, &recorder);
        let ended = Cell::new(None);
        timer.run_clients(vec![Box::pin(async {
            let (outcome, known, _) =
                retry_insert(&task, (&insert_policy, true), &mut session, &watch, (0, b"key", &Row::default())).await;
            ended.set(Some((outcome.status, known)));
        })]);
        let (status, known) = ended.get().unwrap();
        (status, known.unwrap())
    }

    #[test]
    fn insert_is_refused_after_only_refused_attempts() {
        use Status::{Ok, Timeout};
        const NO: Status = Scripted::REFUSAL;
        for (attempts, known) in [
            (&[NO][..], WriteState::Refused),
            (&[NO, NO, NO], WriteState::Refused),
            (&[Timeout], WriteState::Maybe),
            (&[Timeout, NO], WriteState::Maybe),
            (&[NO, Timeout], WriteState::Maybe),
            (&[NO, Timeout, NO], WriteState::Maybe),
            (&[NO, Ok], WriteState::Acknowledged),
            (&[Timeout, Ok], WriteState::Retried),
            (&[NO, Timeout, NO, Ok], WriteState::Retried),
            (&[Ok], WriteState::Acknowledged),
        ] {
            assert_eq!(record_attempts(attempts), (*attempts.last().unwrap(), known), "{attempts:?}");
        }
    }

    #[test]
    fn only_an_acknowledged_insert_must_be_found() {
        let log = InsertLog::default();
        let later = 5 + SLOTS as u64;
        assert_eq!(log.state_at(5, u64::MAX - 1), Inserted::Unknown, "claimed, not begun");
        log.begin_insert(5);
        assert_eq!(log.state_at(5, 200), Inserted::Unknown, "in progress");
        log.end_insert(5, Status::Ok, 100);
        assert_eq!([99, 100].map(|sent| log.state_at(5, sent)), [Inserted::Unknown, Inserted::Acknowledged]);
        // The later insert uses the same slot.
        assert_eq!(log.state_at(later, 200), Inserted::Unknown, "claimed, not begun");
        log.begin_insert(later);
        assert_eq!(log.state_at(later, 200), Inserted::Unknown, "in progress");
        assert_eq!(log.state_at(5, 200), Inserted::Acknowledged, "long ago");
        log.end_insert(5, Status::Ok, 300);
        assert_eq!(
            log.state_at(later, 400),
            Inserted::Unknown,
            "the late end of the earlier insert does not count for the later insert"
        );
    }

    #[test]
    fn failed_insert_may_leave_no_record() {
        let log = InsertLog::default();
        log.begin_insert(7);
        log.end_insert(7, Status::Timeout, 100);
        assert_eq!(log.state_at(7, 1_000), Inserted::Unknown);
        log.begin_insert(7 + SLOTS as u64);
        assert_eq!(log.state_at(7, 1_000), Inserted::Unknown, "its slot now belongs to another insert");
    }
}
