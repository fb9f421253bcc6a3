//! Counts and histograms of operations, by step and status.

use std::collections::BTreeMap;

use loadstone_load::histogram::Reading;
use loadstone_load::{Status, StepId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::histogram::encode;

/// Service times, response times, and lower bounds of the response times, for one step and status. The last two exist
/// only with a rate.
pub type Latencies = [Reading; 3];
/// Latencies by step and status.
pub type Readings = BTreeMap<(StepId, Status), Latencies>;

/// The operations of one step with one status, and their histograms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// The operation: READ, UPDATE …
    pub operation: String,
    /// The status: OK, `NOT_FOUND` …; in a summary, also `CENSORED`, for operations whose completion was not observed,
    /// with lower bounds of their latencies.
    pub status: String,
    /// Number of operations.
    pub count: u64,
    /// Histogram of done − sent, ns, as HDR histogram V2 (compressed form) in base64. `CENSORED`: only operations that
    /// were sent.
    pub service: String,
    /// Histogram of done − due, ns; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// Histogram of done − due minus the generator's own lateness: the system's response time lies between this value
    /// and `response`; with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_lower: Option<String>,
    /// Exact sum of done − sent, ns; in summaries only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_ns_sum: Option<u64>,
    /// Exact sum of done − due, ns; in summaries only, and with a rate only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns_sum: Option<u64>,
}

impl Outcome {
    /// Creates an outcome without sums. `open`: whether to include response times.
    fn new(operation: &str, status: &str, count: u64, [service, response, lower]: &Latencies, open: bool) -> Self {
        Self {
            operation: operation.to_owned(),
            status: status.to_owned(),
            count,
            service: encode(service),
            response: open.then(|| encode(response)),
            response_lower: open.then(|| encode(lower)),
            service_ns_sum: None,
            response_ns_sum: None,
        }
    }
}

/// A sum in ns, limited to the largest number that an event can contain: 584 years.
fn sum_ns(reading: &Reading) -> u64 {
    u64::try_from(reading.sum()).unwrap_or(u64::MAX)
}

/// Converts readings to outcomes, with the names of their steps. `summed`: whether to include exact sums.
pub fn outcomes(latencies: &Readings, steps: &[&str], summed: bool) -> Vec<Outcome> {
    let outcome = |((step, status), latencies): (&(StepId, Status), &Latencies)| {
        let [service, response, _] = latencies;
        let open = response.count() > 0;
        Outcome {
            service_ns_sum: summed.then(|| sum_ns(service)),
            response_ns_sum: (summed && open).then(|| sum_ns(response)),
            ..Outcome::new(steps[usize::from(step.0)], status.name(), service.count(), latencies, open)
        }
    };
    latencies.iter().map(outcome).collect()
}

/// The outcomes of operations whose completion was not observed.
pub fn censor_outcomes(bounds: &BTreeMap<StepId, Latencies>, steps: &[&str], open: bool) -> Vec<Outcome> {
    let outcome = |(step, latencies): (&StepId, &Latencies)| {
        Outcome::new(steps[usize::from(step.0)], "CENSORED", latencies[1].count(), latencies, open)
    };
    bounds.iter().map(outcome).collect()
}
