//! Detects whether the inserts of a run would overwrite existing records. In YCSB, the inserts of every run begin at
//! recordcount.

use loadstone_load::{Operation, Projection, RecordWorkload, Row};
use loadstone_session::Session;

use loadstone_wire::event::Note;

/// Existing records that the inserts of a run overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwrites {
    /// The number of the first record.
    pub record: u64,
    /// Number of inserts of the run before a missing record that the search found.
    pub count: u64,
}

impl Overwrites {
    /// The note for the user.
    pub fn describe_overwrites(self) -> Note {
        let Self { record, count } = self;
        let end = record.saturating_add(count);
        Note {
            name: "overwrites".to_owned(),
            message: format!(
                "the inserts of this run begin at record {record}, and overwrite at least {count} existing records"
            ),
            hint: format!("set recordcount={end} to insert after them, or load the records again"),
        }
    }
}

/// Reads the records of a run's first inserts. A few dozen reads are enough, because the search doubles its steps and
/// then halves them. A read that fails counts as a record that does not exist.
pub async fn find_overwrites<S: Session, W: RecordWorkload>(workload: &W, session: &mut S) -> Option<Overwrites> {
    let (mut operation, mut row) = (Operation::default(), Row::default());
    let record = fill_insert(workload, 0, &mut operation)?;
    if !has_record(session, &operation, &mut row).await {
        return None;
    }
    // The record of insert `low` exists, and the record of insert `high` does not.
    let (mut low, mut high) = (0, 1);
    while fill_insert(workload, high, &mut operation).is_some() && has_record(session, &operation, &mut row).await {
        (low, high) = (high, high.saturating_mul(2));
    }
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        let exists =
            fill_insert(workload, middle, &mut operation).is_some() && has_record(session, &operation, &mut row).await;
        if exists { low = middle } else { high = middle }
    }
    Some(Overwrites { record, count: high })
}

/// Fills the operation of the insert with this number, and returns the number of its record.
fn fill_insert<W: RecordWorkload>(workload: &W, number: u64, operation: &mut Operation) -> Option<u64> {
    workload.fill_operation(workload.index_of_insert(number)?, operation);
    Some(operation.record)
}

/// Whether a read returns a record with fields. Some stores, such as `null`, answer every read with success.
async fn has_record<S: Session>(session: &mut S, operation: &Operation, row: &mut Row) -> bool {
    let status = session.read(&operation.key, Projection::All, row).await;
    if !status.is_ok() {
        // If the message remained in the session, it would be reported for a later failure.
        let _ = session.last_error();
    }
    status.is_ok() && !row.is_empty()
}
