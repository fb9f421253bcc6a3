//! The timing loop. There is exactly one.
//!
//! A client takes the next index, fills its operation, waits until it is due, reads the clock, performs it, reads the
//! clock again, and writes both readings on its worker's tape. Nothing in it allocates or locks; the store may.

use loadstone_load::pace::{Cursor, Pace};
use loadstone_load::random::{Draws, Purpose};
use loadstone_load::{Check, Kind, Operation, Row, Status, Workload};
use loadstone_stores::{Rows, Session};

use crate::clock::Timer;
use crate::course::{Acks, Claim, Course};
use crate::sink::Times;
use crate::tape::Tape;

/// What a failed insert leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InsertPolicy {
    /// Further attempts after the first.
    pub retries: u64,
    /// Mean sleep before a further attempt, ns; each is drawn from 0.8 to 1.2 times it, as YCSB does.
    pub interval_ns: u64,
    /// Whether an insert that failed for good stops the trial.
    pub stop: bool,
}

/// What the clients of a trial have in common.
#[derive(Debug)]
pub struct Common<'a, W> {
    /// What is done.
    pub workload: &'a W,
    /// What is next.
    pub course: &'a Course,
    /// When it is due; `None`: closed loop.
    pub pace: Option<&'a Pace>,
    /// ns on the clients' clock at which the trial starts.
    pub start_ns: u64,
    /// Inserts of the run phase under way; `None` if there are none.
    pub acks: Option<&'a Acks>,
    /// What a failed insert leads to.
    pub inserts: InsertPolicy,
    /// Seed of the trial.
    pub seed: u64,
}

/// One client: loops until the course ends, then closes its session.
pub async fn drive<T: Timer, S: Session, W: Workload>(common: &Common<'_, W>, timer: &T, session: &mut S, tape: &Tape) {
    let course = common.course;
    let mut operation = Operation::default();
    let (row, rows) = (Row::default(), Rows::default());
    let mut client = Client { common, timer, session: &mut *session, tape, row, rows, words: None };
    let mut cursor = Cursor::default();
    let mut free = timer.now_ns();
    while let Some(Claim { index, measured }) = course.claim() {
        common.workload.fill(index, &mut operation);
        let due = match common.pace {
            None => None,
            Some(pace) => {
                let due = common.start_ns.saturating_add(pace.due_ns(index, &mut cursor));
                if course.beyond_end(due) {
                    course.reach_end();
                    break;
                }
                if due > free {
                    timer.until(due, || course.stopped()).await;
                    if course.interrupted() {
                        break;
                    }
                }
                Some(due)
            }
        };
        free = client.perform(&mut operation, measured, due, free).await;
        timer.turn().await;
    }
    let sent = timer.now_ns();
    let status = session.cleanup().await;
    tape.step(Kind::Cleanup, status, Times { due: sent, sent, done: timer.now_ns() });
    if !status.is_ok() {
        course.count_unclosed(status);
        course.keep_words(Kind::Cleanup, status, || session.last_error());
    }
}

struct Client<'a, T, S, W> {
    common: &'a Common<'a, W>,
    timer: &'a T,
    session: &'a mut S,
    tape: &'a Tape,
    row: Row,
    rows: Rows,
    /// Of the last failure.
    words: Option<String>,
}

impl<T: Timer, S: Session, W: Workload> Client<'_, T, S, W> {
    /// Performs an operation; returns when the client is free again.
    #[inline]
    async fn perform(&mut self, operation: &mut Operation, measured: bool, due: Option<u64>, free: u64) -> u64 {
        let (common, tape) = (self.common, self.tape);
        let insert = if operation.kind == Kind::Insert { common.workload.insert_of(operation) } else { None };
        if let (Some(acks), Some(number)) = (common.acks, insert) {
            acks.begin(number);
        }
        tape.sends();
        let sent = self.timer.now_ns();
        let due_ns = due.unwrap_or(sent);
        if due.is_some() && measured {
            tape.waits(due_ns, free, sent);
        }
        let mut status = self.ask(operation).await;
        let mut done = self.timer.now_ns();
        let first = if operation.kind == Kind::ReadModifyWrite { Kind::Read } else { operation.kind };
        if !status.is_ok() {
            self.row.clear();
            status = self.judge(first, operation, status, sent);
        }
        if let (Some(acks), Some(number)) = (common.acks, insert) {
            acks.done(number, done);
        }
        if measured {
            tape.step(first, status, Times { due: due_ns, sent, done });
        }
        let mut ok = status.is_ok();
        let mut failed = status.is_failure();
        match operation.kind {
            Kind::ReadModifyWrite => {
                let written = self.session.update(&operation.key, &operation.row).await;
                let read_done = done;
                done = self.timer.now_ns();
                let written =
                    if written.is_ok() { written } else { self.judge(Kind::Update, operation, written, sent) };
                ok &= written.is_ok();
                failed |= written.is_failure();
                if measured {
                    tape.step(Kind::Update, written, Times { due: due_ns, sent: read_done, done });
                    // YCSB counts the pair as done whatever became of its halves; the halves tell.
                    tape.step(Kind::ReadModifyWrite, Status::Ok, Times { due: due_ns, sent, done });
                }
                failed |= !self.verify(operation, status, measured);
            }
            Kind::Read => failed |= !self.verify(operation, status, measured),
            Kind::Insert if !ok => {
                (ok, done) = self.retry(operation, status, measured, due_ns, done).await;
                failed = !ok;
            }
            _ => {}
        }
        tape.finishes(measured, ok && !failed, !ok && !failed, done);
        if failed {
            self.session.rest().await;
            return self.timer.now_ns();
        }
        done
    }

    #[inline]
    async fn ask(&mut self, operation: &Operation) -> Status {
        let wanted = operation.selection.wanted(self.common.workload.field_names());
        let session = &mut *self.session;
        match operation.kind {
            Kind::Read | Kind::ReadModifyWrite => session.read(&operation.key, wanted, &mut self.row).await,
            Kind::Update => session.update(&operation.key, &operation.row).await,
            Kind::Insert => session.insert(&operation.key, &operation.row).await,
            Kind::Scan => session.scan(&operation.key, operation.scan_count, wanted, &mut self.rows).await,
            Kind::Delete => session.delete(&operation.key).await,
            // Not dealt: they are measured steps, not operations.
            Kind::Verify | Kind::Cleanup => Status::NotImplemented,
        }
    }

    /// What a failed step counts as; keeps its words.
    #[cold]
    fn judge(&mut self, step: Kind, operation: &Operation, status: Status, sent: u64) -> Status {
        if status == Status::NotFound && (self.precedes_insert(operation, sent) || self.meets_delete(operation)) {
            return Status::NotYet;
        }
        self.keep_words(step, status);
        status
    }

    /// Whether the record's insert was still under way when the operation was sent.
    fn precedes_insert(&self, operation: &Operation, sent: u64) -> bool {
        let Common { workload, course, acks, .. } = self.common;
        let (Some(acks), Some(number)) = (acks, workload.insert_number(operation.record)) else { return false };
        // Another segment's inserts are out of sight: they get the benefit of the doubt.
        let own = workload.index_of_insert(number).is_some_and(|index| course.segment().owns(index));
        !own || !acks.before(number, sent)
    }

    /// Whether the record's delete overtook the operation, which was held up after its choice.
    fn meets_delete(&self, operation: &Operation) -> bool {
        let delete = self.common.workload.index_of_delete(operation.record);
        operation.kind != Kind::Delete && delete.is_some_and(|index| self.common.course.may_have_begun(index))
    }

    /// Takes a failure's words, wanted or not: left in the session they would pass for those of the next failure that
    /// has none of its own.
    #[cold]
    fn keep_words(&mut self, step: Kind, status: Status) {
        self.words = self.session.last_error();
        self.common.course.keep_words(step, status, || self.words.clone());
    }

    #[inline]
    fn verify(&mut self, operation: &Operation, read: Status, measured: bool) -> bool {
        // There is nothing to check in a record that is still being inserted.
        if !self.common.workload.verifies() || read == Status::NotYet {
            return true;
        }
        let sent = self.timer.now_ns();
        let status = match self.common.workload.verify(operation, &self.row) {
            Some(Check::Wrong) => Status::UnexpectedState,
            Some(Check::Empty) => Status::Error,
            Some(Check::Right) | None => Status::Ok,
        };
        if measured {
            self.tape.step(Kind::Verify, status, Times { due: sent, sent, done: self.timer.now_ns() });
        }
        if status == Status::UnexpectedState {
            let key = || Some(format!("the record with key {} is not what was written", text(&operation.key)));
            self.common.course.keep_words(Kind::Verify, status, key);
        }
        status.is_ok()
    }

    /// Further attempts of an insert that failed.
    #[cold]
    async fn retry(
        &mut self,
        operation: &Operation,
        mut status: Status,
        measured: bool,
        due: u64,
        mut done: u64,
    ) -> (bool, u64) {
        let policy = self.common.inserts;
        let mut draws = Draws::at(self.common.seed, operation.index, Purpose::Retry);
        for _ in 0..policy.retries {
            self.session.rest().await;
            let sleep = policy.interval_ns as f64 * (0.8 + 0.4 * draws.next_f64());
            let wake = self.timer.now_ns().saturating_add(sleep as u64);
            self.timer.until(wake, || self.common.course.stopped()).await;
            if self.common.course.stopped() {
                return (false, done);
            }
            let sent = self.timer.now_ns();
            status = self.session.insert(&operation.key, &operation.row).await;
            done = self.timer.now_ns();
            if measured {
                self.tape.step(Kind::Insert, status, Times { due, sent, done });
            }
            if status.is_ok() {
                return (true, done);
            }
            self.keep_words(Kind::Insert, status);
        }
        if policy.stop {
            self.common.course.interrupt_because(|| {
                let words =
                    self.words.as_deref().or(self.common.course.words(Kind::Insert, status)).unwrap_or("no words");
                format!("insert of {} failed with {}: {words}", text(&operation.key), status.name())
            });
        }
        (false, done)
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

#[cfg(test)]
mod tests;
