//! The findings from one pass over a store: on the fields of records and rows, and on counters.

use loadstone_load::ledger::{FieldValue, Finding};
use loadstone_load::version::Phase;
use loadstone_wire::merge_fields_of;
use serde::Serialize;

/// Maximum number of listed places.
pub const LISTED: usize = 10;

/// The number of fields for each type of finding.
#[derive(Debug, Default, Serialize)]
pub struct FieldCounts {
    fine: u64,
    overlapped: u64,
    came_true: u64,
    lost: u64,
    pub phantom: u64,
    pub corrupt: u64,
    unsure: u64,
    pub other_run: u64,
    not_loaded: u64,
}

merge_fields_of!(FieldCounts: fine, overlapped, came_true, lost, phantom, corrupt, unsure, other_run, not_loaded);

/// A field whose value is not the expected one.
#[derive(Clone, Debug, Serialize)]
pub struct FieldPlace {
    key: String,
    field: String,
    /// The index of the expected write; `null`: the loaded value.
    expected: Option<u64>,
    /// The index of the write that was read; `null`: no value, a loaded value, or a value that no write of the run
    /// made.
    #[serde(rename = "shown")]
    actual: Option<u64>,
    /// The value that was read: `write`, `loaded`, `nothing`, `another run`, `unreadable` or `counter`.
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<CounterBounds>,
}

impl FieldPlace {
    fn new(key: &[u8], field: &str, what: &'static str) -> Self {
        let key = String::from_utf8_lossy(key).into_owned();
        Self { key, field: field.to_owned(), expected: None, actual: None, what, counter: None }
    }

    /// The expected value, and the value that was read.
    pub fn describe_loss(&self) -> String {
        let Self { key, field, expected, actual, what, counter } = self;
        let actual = actual.map_or_else(|| (*what).to_owned(), |index| format!("write {index}"));
        match (expected, counter) {
            (_, Some(CounterBounds { value, acknowledged, .. })) => {
                format!("the counter {key} {field} should be at least {acknowledged}, but is {value}")
            }
            (Some(expected), _) => {
                format!("{key} {field} should show write {expected} or a later one, but shows {actual}")
            }
            (None, _) => format!("{key} {field} should show its loaded value, but shows {actual}"),
        }
    }

    /// Formats a message about values that no write of the run wrote: their number, `wrong`, and the place of the
    /// first.
    pub fn describe_wrong(&self, wrong: u64) -> String {
        let Self { key, field, counter, .. } = self;
        match counter {
            Some(CounterBounds { value, possible, .. }) => format!(
                "{wrong} counters are above the sum of all increments, or were not 0 at the start of the run: {key} {field} is \
                 {value}, and the sum is {possible}"
            ),
            None => format!("{wrong} fields hold values that no write of this run made; the first is {key} {field}"),
        }
    }
}

/// A counter, and the bounds of its value: sums of increments.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CounterBounds {
    pub value: i64,
    /// The sum over all acknowledged writes.
    pub acknowledged: i64,
    /// The sum over all attempts that may have been applied.
    pub possible: i64,
}

impl CounterBounds {
    /// The conclusion from the counter's value.
    pub fn judge_counter(&self) -> Finding {
        match self.value {
            value if value < self.acknowledged => Finding::Lost(None),
            value if value > self.possible => Finding::Phantom(0),
            value if value == self.acknowledged => Finding::Fine,
            _ => Finding::CameTrue,
        }
    }
}

/// The findings from one pass over the records.
#[derive(Debug, Default)]
pub struct RecordsReading {
    pub records: u64,
    pub fields: u64,
    pub counts: FieldCounts,
    /// The first lost fields.
    pub first: Vec<FieldPlace>,
    /// The first value that no write of the run wrote.
    pub first_wrong: Option<FieldPlace>,
    /// Number of records in which a loaded value is missing.
    pub loaded: u64,
    /// Whether a loaded value is missing in the current record.
    unloaded: bool,
}

impl RecordsReading {
    /// Counts the finding on one field.
    pub fn add_finding(&mut self, finding: Finding, value: FieldValue, key: &[u8], field: &str) {
        self.unloaded |= finding == Finding::Lost(None);
        self.count_finding(finding, |expected| {
            let (actual, what) = match value {
                FieldValue::Absent => (None, "nothing"),
                FieldValue::Unreadable => (None, "unreadable"),
                FieldValue::OtherRun => (None, "another run"),
                FieldValue::Of(version) if version.phase == Phase::Load => (None, "loaded"),
                FieldValue::Of(version) => (Some(version.index), "write"),
            };
            FieldPlace { expected, actual, ..FieldPlace::new(key, field, what) }
        });
    }

    /// Counts the finding on a counter.
    pub fn add_counter(&mut self, counter: CounterBounds, key: &[u8], field: &str) {
        self.count_finding(counter.judge_counter(), |_| FieldPlace {
            counter: Some(counter),
            ..FieldPlace::new(key, field, "counter")
        });
    }

    fn count_finding(&mut self, finding: Finding, place: impl Fn(Option<u64>) -> FieldPlace) {
        self.fields += 1;
        let counts = &mut self.counts;
        let count = match finding {
            Finding::Fine => &mut counts.fine,
            Finding::Overlapped => &mut counts.overlapped,
            Finding::CameTrue => &mut counts.came_true,
            Finding::Unsure => &mut counts.unsure,
            Finding::OtherRun => &mut counts.other_run,
            Finding::NotLoaded => &mut counts.not_loaded,
            Finding::Lost(expected) => {
                if self.first.len() < LISTED {
                    self.first.push(place(expected));
                }
                &mut counts.lost
            }
            Finding::Phantom(_) | Finding::Corrupt => {
                self.first_wrong.get_or_insert_with(|| place(None));
                if finding == Finding::Corrupt { &mut counts.corrupt } else { &mut counts.phantom }
            }
        };
        *count += 1;
    }

    /// Counts the current record. Called once all fields of the record have been added.
    pub fn end_record(&mut self) {
        self.records += 1;
        self.loaded += u64::from(std::mem::take(&mut self.unloaded));
    }
}
