//! Performs the operations on YCSB's records: reads, updates, inserts, scans, deletes and read-modify-writes.

use std::sync::atomic::Ordering;

use loadstone_load::ledger::{Exception, WriteState};
use loadstone_load::{Check, Kind, Operation, RecordWorkload, Row, Status, StepId};
use loadstone_session::{Rows, Session};

use super::Records;
use super::inserts::{Inserted, retry_insert};
use super::ledger::{LedgerWriter, write_state};
use loadstone_measure::actor::{Actor, Outcome, Stopwatch};
use loadstone_measure::clock::Timer;
use loadstone_measure::task::Task;

/// Performs one client's operations on records.
#[derive(Debug)]
pub struct RecordActor<'a, S, W> {
    task: &'a Task<Records<W>>,
    session: &'a mut S,
    row: Row,
    rows: Rows,
    writer: Option<LedgerWriter<'a>>,
    /// Names of the fields.
    names: &'a [String],
    verifies: bool,
    /// Whether the last operation failed without being sent.
    unsent: bool,
}

impl<'a, S: Session, W: RecordWorkload> RecordActor<'a, S, W> {
    /// Creates an actor for a client with this session.
    pub fn new(task: &'a Task<Records<W>>, session: &'a mut S, worker: usize) -> Self {
        let writer = task.work.ledger.as_ref().map(|ledger| LedgerWriter { ledger, pen: ledger.create_pen(worker) });
        let (names, verifies) = (task.work.workload.field_names(), task.work.workload.has_read_checks());
        Self { task, session, row: Row::default(), rows: Rows::default(), writer, names, verifies, unsent: false }
    }

    /// Records the outcome of the session's last operation in the ledger if the operation was a write.
    #[inline]
    fn note_write<T: Timer>(&self, index: u64, status: Status, watch: &Stopwatch<'_, T>, times: (u64, u64)) {
        if self.writer.is_some() {
            self.note_as(write_state(self.session, status), index, status, watch, times);
        }
    }

    /// Records the known state of a write whose first attempt was sent at `sent`, with the status that the store
    /// returned for the last attempt.
    #[inline]
    fn note_as<T: Timer>(
        &self,
        state: WriteState,
        index: u64,
        status: Status,
        watch: &Stopwatch<'_, T>,
        (sent, done): (u64, u64),
    ) {
        if let Some(writer) = &self.writer
            && let Some(number) = self.task.work.workload.write_number(index)
        {
            let retried = state == WriteState::Retried;
            writer.note_write(
                number,
                state,
                watch.ready_ns,
                Exception { index, sent, done, status: Some(status), retried },
            );
        }
    }

    #[inline]
    async fn insert_record<T: Timer>(&mut self, operation: &Operation, watch: &Stopwatch<'_, T>) -> Outcome {
        let known = match &self.task.work.inserts {
            None => None,
            Some(log) => self.task.work.workload.insert_number(operation.record).map(|number| (log, number)),
        };
        if let Some((log, number)) = known {
            log.begin_insert(number);
        }
        let record = (operation.index, &operation.key[..], &operation.row);
        let policy = (&self.task.work.insert_policy, self.writer.is_some());
        let (outcome, state, unsent) = retry_insert(self.task, policy, self.session, watch, record).await;
        self.unsent = unsent;
        if let Some((log, number)) = known {
            log.end_insert(number, outcome.status, outcome.done_ns);
        }
        if let Some(state) = state {
            self.note_as(state, operation.index, outcome.status, watch, (watch.sent_ns, outcome.done_ns));
        }
        outcome
    }

    /// Records a read that has been answered, and returns the status with which the read counts. This function does not
    /// perform the read itself, because its future would then keep the arguments in memory.
    #[inline]
    fn was_read<T: Timer>(&mut self, operation: &Operation, watch: &Stopwatch<'_, T>, answer: (Status, u64)) -> Status {
        let (mut status, done) = answer;
        if !status.is_ok() {
            self.row.clear_fields();
            status = self.judge_status(Kind::Read, operation, status, watch.sent_ns);
        }
        watch.record_step(Kind::Read.step(), status, watch.sent_ns, done);
        status
    }

    /// Updates the record that was just read, and records both steps as one read-modify-write.
    #[inline]
    async fn modify_write<T: Timer>(
        &mut self,
        operation: &Operation,
        watch: &Stopwatch<'_, T>,
        (read, read_done): (Status, u64),
    ) -> Outcome {
        let bytes = self.row.bytes().len() + operation.row.bytes().len();
        let mut written = self.session.update(&operation.key, &operation.row).await;
        let done = watch.now_ns();
        self.note_write(operation.index, written, watch, (read_done, done));
        let read_unsent = std::mem::take(&mut self.unsent);
        if !written.is_ok() {
            written = self.judge_status(Kind::Update, operation, written, watch.sent_ns);
            self.unsent &= read_unsent;
        }
        let status = worse_status(read, written);
        watch.record_step(Kind::Update.step(), written, read_done, done);
        watch.record_step(Kind::ReadModifyWrite.step(), status, watch.sent_ns, done);
        let status = worse_status(status, self.verify_read(operation, read, watch));
        Outcome { status, done_ns: done, rows: 1, bytes: bytes as u64 }
    }

    /// The status with which a failed step counts. Also stores the message of the failure, unless this status is
    /// `NOT_YET`.
    #[cold]
    fn judge_status(&mut self, step: Kind, operation: &Operation, status: Status, sent: u64) -> Status {
        if status == Status::NotFound && (self.may_precede_insert(operation, sent) || self.may_follow_delete(operation))
        {
            return Status::NotYet;
        }
        self.unsent = self.session.is_unsent();
        // The message is taken even if it is not stored: if it remained in the session, it would be reported for a
        // later failure.
        let message = self.session.last_error();
        self.task.failures.keep_message(step.step(), status, || message);
        status
    }

    /// Whether the operation may have been sent before the insert of the record was done.
    fn may_precede_insert(&self, operation: &Operation, sent: u64) -> bool {
        let Task { scheduler, work, .. } = self.task;
        let Records { workload, inserts, misses, .. } = work;
        let (Some(log), Some(number)) = (inserts, workload.insert_number(operation.record)) else { return false };
        match workload.index_of_insert(number) {
            Some(index) if scheduler.segment().has_index(index) => log.state_at(number, sent) == Inserted::Unknown,
            // This engine does not know the state of the inserts of other segments.
            other => {
                if let Some(index) = other {
                    misses.add_miss(index, sent);
                }
                true
            }
        }
    }

    /// Whether the delete of the record may have overtaken the operation, which was delayed after choosing its record.
    fn may_follow_delete(&self, operation: &Operation) -> bool {
        let delete = self.task.work.workload.index_of_delete(operation.record);
        operation.kind != Kind::Delete && delete.is_some_and(|index| self.task.scheduler.may_have_begun(index))
    }

    /// Compares the fields read with the fields written.
    #[inline]
    fn verify_read<T: Timer>(&self, operation: &Operation, read: Status, watch: &Stopwatch<'_, T>) -> Status {
        if self.verifies { self.verify_now(operation, read, watch) } else { Status::Ok }
    }

    #[inline(never)]
    fn verify_now<T: Timer>(&self, operation: &Operation, read: Status, watch: &Stopwatch<'_, T>) -> Status {
        // A record whose insert or delete was in progress cannot be checked.
        if read == Status::NotYet {
            return Status::Ok;
        }
        if self.task.work.workload.is_value_compared(operation.index) && read.is_ok() {
            self.task.work.compared.fetch_add(1, Ordering::Relaxed);
        }
        time_verification(self.task, watch, &operation.key, || {
            self.task.work.workload.verify_read(operation, &self.row)
        })
    }
}

impl<S: Session, W: RecordWorkload> Actor for RecordActor<'_, S, W> {
    type Operation = Operation;

    #[inline]
    async fn perform_operation<T: Timer>(&mut self, operation: &Operation, watch: &Stopwatch<'_, T>) -> Outcome {
        self.unsent = false;
        let projection = operation.selection.project_fields(self.names);
        let (mut status, rows, bytes) = match operation.kind {
            // Both kinds share one call of `read`, because a second call would prevent inlining.
            Kind::Read | Kind::ReadModifyWrite => {
                let read = self.session.read(&operation.key, projection, &mut self.row).await;
                let done_ns = watch.now_ns();
                let read = self.was_read(operation, watch, (read, done_ns));
                if operation.kind == Kind::ReadModifyWrite {
                    return self.modify_write(operation, watch, (read, done_ns)).await;
                }
                let status =
                    if self.verifies { worse_status(read, self.verify_read(operation, read, watch)) } else { read };
                return Outcome { status, done_ns, rows: 1, bytes: self.row.bytes().len() as u64 };
            }
            Kind::Insert => return self.insert_record(operation, watch).await,
            Kind::Update => {
                let status = self.session.update(&operation.key, &operation.row).await;
                (status, 1, operation.row.bytes().len())
            }
            Kind::Scan => {
                let count = operation.scan_count;
                let status = self.session.scan(&operation.key, count, projection, &mut self.rows).await;
                (status, self.rows.len() as u64, 0)
            }
            Kind::Delete => (self.session.delete(&operation.key).await, 1, 0),
            // These are steps rather than operations, so no mix contains them.
            Kind::Verify | Kind::Cleanup => (Status::NotImplemented, 0, 0),
        };
        let done_ns = watch.now_ns();
        self.note_write(operation.index, status, watch, (watch.sent_ns, done_ns));
        if !status.is_ok() {
            status = self.judge_status(operation.kind, operation, status, watch.sent_ns);
        }
        watch.record_step(operation.kind.step(), status, watch.sent_ns, done_ns);
        Outcome { status, done_ns, rows, bytes: bytes as u64 }
    }

    #[inline]
    fn begin_operation(&self, operation: &Operation, interval: u64) {
        if S::MAY_PLACE_KEYS
            && let Some(ranges) = &self.task.work.ranges
        {
            ranges.count_sent(&operation.key, interval);
        }
    }

    #[inline]
    fn finish_operation(&self, operation: &Operation, interval: u64, status: Status, response_ns: u64) {
        if S::MAY_PLACE_KEYS
            && let Some(ranges) = &self.task.work.ranges
        {
            ranges.count_outcome(&operation.key, interval, status, response_ns);
        }
    }

    fn is_unsent(&self) -> bool {
        self.unsent
    }

    async fn pause(&mut self) {
        self.session.pause().await;
    }

    async fn close(&mut self) -> (StepId, Status) {
        close_session(self.task, self.session).await
    }
}

/// Closes a session. If closing fails, stores the error message.
pub async fn close_session<S: Session, W>(task: &Task<W>, session: &mut S) -> (StepId, Status) {
    let (step, status) = (Kind::Cleanup.step(), session.cleanup().await);
    if !status.is_ok() {
        task.failures.keep_message(step, status, || session.last_error());
    }
    (step, status)
}

/// Measures the time for checking a read of `key`, and records it separately from the operation.
#[inline]
pub fn time_verification<T: Timer, W>(
    task: &Task<W>,
    watch: &Stopwatch<'_, T>,
    key: &[u8],
    check: impl FnOnce() -> Option<Check>,
) -> Status {
    let (step, sent) = (Kind::Verify.step(), watch.now_ns());
    let status = match check() {
        Some(Check::Wrong) => Status::UnexpectedState,
        Some(Check::Empty) => Status::Error,
        Some(Check::Right) | None => Status::Ok,
    };
    watch.record_extra(step, status, sent, watch.now_ns());
    if status == Status::UnexpectedState {
        let message =
            || Some(format!("the record with key {} differs from the record written", String::from_utf8_lossy(key)));
        task.failures.keep_message(step, status, message);
    }
    status
}

/// The worse of two statuses. A failure is worse than a status that is not the store's fault, which is worse than
/// success.
pub fn worse_status(first: Status, second: Status) -> Status {
    let rank = |status: Status| if status.is_failure() { 2 } else { u8::from(!status.is_ok()) };
    if rank(second) > rank(first) { second } else { first }
}
