//! The formats in which a trial is recorded. A spec lists them.

use loadstone_load::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A format in which operations are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "sink", rename_all = "snake_case", deny_unknown_fields)]
pub enum Sink {
    /// HDR histograms in ns with three significant digits: Loadstone's own format.
    HdrNs,
    /// HDR histograms in µs (`measurementtype=hdrhistogram`).
    YcsbHdrUs,
    /// Buckets of 1 ms (`measurementtype=histogram`).
    YcsbHistogram {
        /// Number of buckets.
        buckets: usize,
    },
    /// Means over time (`measurementtype=timeseries`).
    YcsbSeries {
        /// Length of a time unit, ms.
        granularity_ms: u64,
    },
    /// One line for every operation (`measurementtype=raw`).
    YcsbRaw,
}

/// Maximum number of 1 ms buckets, which is more than any operation needs.
const BUCKETS_MAX: usize = 10_000_000;

impl Sink {
    /// Refuses parameters outside their ranges.
    pub fn check(&self) -> Result<(), Refusal> {
        match *self {
            Self::YcsbHistogram { buckets } if buckets > BUCKETS_MAX => {
                Err(Refusal::for_value("sinks.buckets", &format!("at most {BUCKETS_MAX}"), buckets))
            }
            Self::YcsbSeries { granularity_ms: 0 } => Err(Refusal::for_value("sinks.granularity_ms", "at least 1", 0)),
            _ => Ok(()),
        }
    }
}
