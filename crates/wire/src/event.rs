//! Events: in `trial` mode, the engine writes them to stdout, one JSON object per line.

mod outcome;
mod summary;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::merge_fields_of;
use crate::merge_rule::{Merge, add_known, merge_fields};

pub use crate::spec::work::Sections;
pub use crate::spec::work::records::{KeyRanges, Missed, Unsettled};
pub use crate::spec::work::sort::{SortSummary, Sorted, Validation};
pub use crate::spec::work::statements::{MissingRows, StatementRows};
pub use outcome::{Latencies, Outcome, Readings, censor_outcomes, encode, outcomes};
pub use summary::{Borders, Carried, Clock, Executor, Pauses, Summary};

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// The store is open, and every session is connected.
    Ready(Ready),
    /// One interval of the measured window.
    Interval(Interval),
    /// An observation for the judge.
    Note(Note),
    /// The result of the trial; always the last event.
    Summary(Box<Summary>),
}

/// The store is open, and every session is connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Version of this format: 2.
    pub events: u32,
    /// The engine's version.
    pub engine: String,
    /// The engine's process id.
    pub pid: u32,
    /// The store's name.
    pub store: String,
    /// The event that acknowledged writes survive: `none`, `interval` (writes survive, except for the most recent
    /// ones), `os`, `device`, or `unknown`.
    pub durability: String,
    /// How the store provides this guarantee.
    pub how: String,
    /// Facts about the store: version, cache, compression, directory …
    pub facts: BTreeMap<String, String>,
    /// Number of clients of this segment.
    pub clients: u64,
    /// The driver's own cost, ns per operation, measured on the null store just before the trial.
    pub driver_ns: f64,
    /// Time for opening the store and connecting, seconds. It is not part of any measured time.
    pub connect_seconds: f64,
}

impl Merge for Ready {
    fn merge(&mut self, other: Self) {
        self.clients.merge(other.clients);
        self.driver_ns = self.driver_ns.max(other.driver_ns);
        self.connect_seconds = self.connect_seconds.max(other.connect_seconds);
    }
}

/// An observation for the judge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// A short name in the style of the judge's check names.
    pub name: String,
    /// One sentence with the figures.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

/// One interval of the window. An operation belongs to the interval in which it was due (closed loop: sent), so
/// recordings may be added later: see [`Interval::earlier`]. The last interval is reported when all clients have
/// stopped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The number k of the interval, from 0: it begins at k × the interval's length after the start of measuring.
    pub k: u64,
    /// Start of the interval, ns after the start of measuring.
    pub start_ns: u64,
    /// Length of the interval, ns; the last interval may be shorter.
    pub length_ns: u64,
    /// Time at which this event was written, ns since the Unix epoch.
    pub unix_ns: u64,
    /// Number of operations due in the interval; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The operations recorded in the interval so far.
    #[serde(flatten)]
    pub additions: Additions,
    /// Recordings added to earlier intervals since the last event.
    pub earlier: Vec<Earlier>,
    /// Operations that were sent but have not finished.
    pub in_flight: u64,
    /// Operations sent more than 1 ms late because the load generator was late, since the last event.
    pub late_generator: u64,
    /// Operations sent more than 1 ms late because all clients were busy, since the last event.
    pub late_client: u64,
    /// CPU time of the engine since the last event, ns: user time, then system time.
    pub cpu_ns: [u64; 2],
    /// Resident memory of the engine, bytes.
    pub memory_bytes: u64,
    /// Progress of a sort's stage; for sorts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sorted: Option<Sorted>,
}

impl Merge for Interval {
    fn merge(&mut self, other: Self) {
        self.due = add_known(self.due, other.due);
        for more in other.earlier {
            match self.earlier.iter_mut().find(|earlier| earlier.k == more.k) {
                Some(earlier) => earlier.additions.merge(more.additions),
                None => self.earlier.push(more),
            }
        }
        merge_fields!(self, other: additions, in_flight, late_generator, late_client, cpu_ns, memory_bytes, sorted);
    }
}

/// The operations recorded in an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Additions {
    /// Operations that succeeded during the interval, whenever they were due.
    pub completed: u64,
    /// Operations that finished during the interval, whatever their outcome.
    pub ended: u64,
    /// Operations due in the interval that succeeded, within the deadline if there is one.
    pub good: u64,
    /// Operations due in the interval that succeeded after the deadline.
    pub late: u64,
    /// Operations due in the interval that failed.
    pub failed: u64,
    /// Reads, due in the interval, of records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Outcomes of the operations due in the interval.
    pub outcomes: Vec<Outcome>,
}

// Outcomes are appended, since each contains histograms: see `crate::merge_events::add_outcomes`.
merge_fields_of!(Additions: completed, ended, good, late, failed, not_yet, outcomes);

/// Recordings added to an earlier interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// The number of the earlier interval.
    pub k: u64,
    /// The recordings added.
    #[serde(flatten)]
    pub additions: Additions,
}
