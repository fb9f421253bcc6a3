//! Sends the statements of an operation, and counts their rows.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadstone_load::{Status, StepId};
use loadstone_session::statements::{Cells, Statement, Statements, Values};
use loadstone_stress::columns::{ConditionRead, OperationWork};

use super::{ColumnsOperation, ColumnsWork};
use crate::statement_actor::{Identity, StatementState, StatementWork};

impl StatementWork for ColumnsWork {
    fn state(&self) -> &StatementState {
        &self.state
    }

    fn statements(&self) -> &Arc<[Statement]> {
        &self.statements
    }

    fn identify_operation(&self, operation: &ColumnsOperation) -> Identity {
        let ColumnsOperation { index, operation, number, .. } = *operation;
        Identity { index, step: StepId(operation as u16), name: self.operations[operation].name, number }
    }

    fn key<'a>(&self, operation: &'a ColumnsOperation) -> Cow<'a, [u8]> {
        operation.number.to_string().into_bytes().into()
    }

    /// If a batch of an insert fails, the next attempt continues with this batch.
    // Only one client performs an operation, and nothing else borrows its state.
    #[allow(clippy::await_holding_refcell_ref)]
    async fn send_operation<S: Statements>(
        &self,
        session: &mut S,
        operation: &ColumnsOperation,
        cells: &mut Cells,
    ) -> Status {
        let ColumnsOperation { operation: at, values, state, .. } = operation;
        let (at, prepared) = (*at, &self.operations[*at]);
        if prepared.operation.work != OperationWork::Insert {
            if let Some(read) = &prepared.operation.condition_read {
                return send_conditional(session, at, values, read, &mut state.borrow_mut().batch, cells).await;
            }
            let status = session.execute(at, values, cells).await;
            if status.is_ok() && values.page.is_some() {
                let state = &mut *state.borrow_mut();
                state.partitions = state.scans[at].advance_scan(cells);
            }
            return status;
        }
        let mut state = state.borrow_mut();
        while state.batch_rows > 0 {
            let rows = &state.batch[..state.batch_rows];
            let status = match rows {
                [(_, values)] => session.execute(at, values, cells).await,
                rows => session.execute_batch(prepared.batch, rows).await,
            };
            if !status.is_ok() {
                return status;
            }
            self.fill_batch(at, &mut state);
        }
        Status::Ok
    }

    fn compare_cells(&self, operation: &ColumnsOperation, cells: &Cells) -> Result<(), (Status, String)> {
        let validates = match self.operations[operation.operation].operation.work {
            OperationWork::Validate => true,
            OperationWork::Query { validates, .. } => validates,
            _ => false,
        };
        if validates { self.validate_cells(operation, cells) } else { Ok(()) }
    }

    fn measure_operation(&self, operation: &ColumnsOperation, cells: &Cells, counts: bool) -> (u64, u64) {
        let planned = &self.operations[operation.operation].operation;
        let (rows, partitions, bytes) = match planned.work {
            OperationWork::Insert => {
                let state = operation.state.borrow();
                let values = state.batch.first().map_or(0, |(_, values)| values.as_bytes().len());
                (state.rows, state.partitions, values as u64 * state.rows)
            }
            OperationWork::TokenRange { .. } => {
                (cells.rows() as u64, operation.state.borrow().partitions, cells.bytes() as u64)
            }
            _ if planned.writes => (1, 1, operation.values.as_bytes().len() as u64),
            _ => {
                let rows = cells.rows() as u64;
                (rows, rows.min(1), cells.bytes() as u64)
            }
        };
        if counts && let Some(counts) = self.counts.0.get(operation.operation) {
            counts.0.fetch_add(rows, Ordering::Relaxed);
            counts.1.fetch_add(partitions, Ordering::Relaxed);
        }
        (rows, bytes)
    }
}

/// Reads the columns in the conditions, then executes the statement with the values read, as cassandra-stress does
/// (`CASQuery.java`).
async fn send_conditional<S: Statements>(
    session: &mut S,
    statement: usize,
    values: &Values,
    read: &ConditionRead,
    buffers: &mut [(usize, Values)],
    cells: &mut Cells,
) -> Status {
    let [(read_statement, keys), (_, bound), ..] = buffers else { return Status::Error };
    let status = session.execute(*read_statement, keys, cells).await;
    if !status.is_ok() {
        return status;
    }
    bound.clear();
    bound.timestamp_us = values.timestamp_us;
    for marker in 0..values.len() {
        let value = match read.markers.iter().position(|place| *place == marker) {
            Some(column) if cells.rows() > 0 => cells.get(0, column),
            Some(_) => None,
            None => values.get(marker),
        };
        match value {
            Some(value) => bound.push(value),
            None => bound.push_null(),
        }
    }
    session.execute(statement, bound, cells).await
}
