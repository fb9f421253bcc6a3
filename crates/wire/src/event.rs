//! Events: the output of the engine in `trial` mode on stdout, one JSON object per line.

mod outcome;
mod summary;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::merge::{Merge, add_known, merge_fields};
use crate::merge_fields_of;

pub use crate::spec::work::Sections;
pub use crate::spec::work::records::{Missed, Unsettled};
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
    /// The end; always the last event.
    Summary(Box<Summary>),
}

/// The store is open, and every session is connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Version of this format: 2.
    pub events: u32,
    /// The engine's version.
    pub engine: String,
    /// Its process id.
    pub pid: u32,
    /// The store's name.
    pub store: String,
    /// The event that acknowledged writes survive: `none`, `interval` (all but the most recent writes), `os`, `device`,
    /// or `unknown`.
    pub durability: String,
    /// How the store guarantees that.
    pub how: String,
    /// Version, cache, compression, directory …
    pub facts: BTreeMap<String, String>,
    /// Clients of this segment.
    pub clients: u64,
    /// The driver's own cost, ns per operation, measured on the null store just before the trial.
    pub driver_ns: f64,
    /// Time to open the store and connect, seconds; not part of any measured time.
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
    /// A short name, like the names of the judge's checks.
    pub name: String,
    /// One sentence with the figures.
    pub message: String,
    /// A remedy.
    pub hint: String,
}

/// One interval of the window. Operations belong to the interval in which they were due (closed loop: sent), so more may
/// be added later: see [`Interval::earlier`]. The last interval is reported when all clients have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its number, from 0: it begins at k × the interval's length after the start of measuring.
    pub k: u64,
    /// Its start, ns after the start of measuring.
    pub start_ns: u64,
    /// Its length, ns; the last interval may be shorter.
    pub length_ns: u64,
    /// When this was written, ns since the Unix epoch.
    pub unix_ns: u64,
    /// Operations due in it; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The recordings in it so far.
    #[serde(flatten)]
    pub additions: Additions,
    /// Recordings added to earlier intervals since the last event.
    pub earlier: Vec<Earlier>,
    /// Operations sent and not yet done.
    pub in_flight: u64,
    /// Operations sent over 1 ms late although a client was idle, since the last event.
    pub late_generator: u64,
    /// Operations over 1 ms late because all clients were busy, since the last event.
    pub late_client: u64,
    /// CPU time of the engine since the last event, ns: user, then system.
    pub cpu_ns: [u64; 2],
    /// Resident memory of the engine, bytes.
    pub memory_bytes: u64,
    /// Progress of a stage of a sort; sorts only.
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

/// The recordings of an interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Additions {
    /// Operations that succeeded during the interval, whenever they were due.
    pub completed: u64,
    /// Operations that ended during the interval, whatever their outcome.
    pub ended: u64,
    /// Operations due in it that succeeded, within the deadline if there is one.
    pub good: u64,
    /// Operations due in it that succeeded after the deadline.
    pub late: u64,
    /// Operations due in it that failed.
    pub failed: u64,
    /// Reads due in it of records whose insert or delete was in progress: neither success nor failure.
    pub not_yet: u64,
    /// Outcomes of operations due in it.
    pub outcomes: Vec<Outcome>,
}

// Outcomes are appended, since each contains histograms: see `crate::merge_events::add_outcomes`.
merge_fields_of!(Additions: completed, ended, good, late, failed, not_yet, outcomes);

/// Recordings added to an earlier interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Earlier {
    /// The interval's number.
    pub k: u64,
    /// The recordings added.
    #[serde(flatten)]
    pub additions: Additions,
}
