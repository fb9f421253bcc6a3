//! YCSB's time series: points written as fields, and queries whose clauses the bindings receive as field names.

use loadstone_load::time_series::{SeriesOperation, SeriesWorkload};
use loadstone_load::{Kind, Row, Status, StepId, Wanted};
use loadstone_stores::{Rows, Session};

use super::inserts::insert;
use super::records::{close, verify, worse};
use super::{Actor, Outcome, Stopwatch, Task};
use crate::clock::Timer;

/// One client's operations on time series.
#[derive(Debug)]
pub struct Series<'a, S, W> {
    task: &'a Task<W>,
    session: &'a mut S,
    row: Row,
    rows: Rows,
    unsent: bool,
}

impl<'a, S: Session, W: SeriesWorkload> Series<'a, S, W> {
    /// An actor for a client with this session.
    pub fn new(task: &'a Task<W>, session: &'a mut S) -> Self {
        Self { task, session, row: Row::default(), rows: Rows::default(), unsent: false }
    }

    fn verify<T: Timer>(&self, operation: &SeriesOperation, watch: &Stopwatch<'_, T>) -> Status {
        if !self.task.workload.verifies() {
            return Status::Ok;
        }
        verify(self.task, watch, &operation.key, || self.task.workload.verify(operation, &self.row))
    }
}

impl<S: Session, W: SeriesWorkload> Actor for Series<'_, S, W> {
    type Operation = SeriesOperation;

    async fn perform<T: Timer>(&mut self, operation: &SeriesOperation, watch: &Stopwatch<'_, T>) -> Outcome {
        let SeriesOperation { kind, key, row, clauses, .. } = operation;
        let (status, rows) = match kind {
            Kind::Insert => {
                let (outcome, _, unsent) = insert(self.task, self.session, watch, (operation.index, key, row)).await;
                self.unsent = unsent;
                return outcome;
            }
            Kind::Read => (self.session.read(key, Wanted::Names(clauses), &mut self.row).await, 1),
            Kind::Update => (self.session.update(key, row).await, 1),
            Kind::Scan => {
                let (count, wanted) = (operation.scan_count, Wanted::Names(clauses));
                (self.session.scan(key, count, wanted, &mut self.rows).await, self.rows.len() as u64)
            }
            Kind::Delete => (self.session.delete(key).await, 1),
            // Not in any mix.
            Kind::ReadModifyWrite | Kind::Verify | Kind::Cleanup => (Status::NotImplemented, 0),
        };
        let done_ns = watch.now_ns();
        if !status.is_ok() {
            self.row.clear();
            let message = self.session.last_error();
            self.unsent = self.session.unsent();
            self.task.failures.keep(kind.step(), status, || message);
        }
        watch.step(kind.step(), status, watch.sent_ns, done_ns);
        let status = if *kind == Kind::Read { worse(status, self.verify(operation, watch)) } else { status };
        let bytes = if *kind == Kind::Read { self.row.bytes().len() } else { row.bytes().len() };
        Outcome { status, done_ns, rows, bytes: bytes as u64 }
    }

    fn unsent(&self) -> bool {
        self.unsent
    }

    async fn pause(&mut self) {
        self.session.pause().await;
    }

    async fn close(&mut self) -> (StepId, Status) {
        close(self.task, self.session).await
    }
}
