//! Events: what the engine writes to stdout in `trial` mode, one JSON object a line.

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use loadstone_load::meter::Reading;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tape::Readings;

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// The store is open, every session connected.
    Ready(Ready),
    /// One interval of the measured window.
    Interval(Interval),
    /// Something that the judge should know.
    Note(Note),
    /// The end; always the last event.
    Summary(Summary),
}

/// The store is open, every session connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Version of this format: 1.
    pub events: u32,
    /// The engine's version.
    pub engine: String,
    /// Its process.
    pub pid: u32,
    /// The store's name.
    pub store: String,
    /// What writes survive: what was asked for, or stronger.
    pub durability: String,
    /// How.
    pub how: String,
    /// Version, cache, compression, directory …
    pub facts: BTreeMap<String, String>,
    /// Clients of this segment.
    pub clients: u64,
    /// The driver's own cost, ns per operation, measured on the null store just before.
    pub driver_ns: f64,
    /// Seconds it took to open and connect; not part of any measured time.
    pub connect_seconds: f64,
}

/// Histograms of one kind of operation with one outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// READ, UPDATE …
    pub operation: String,
    /// OK, `NOT_FOUND` …
    pub status: String,
    /// How many.
    pub count: u64,
    /// done − sent in ns: HDR histogram V2 (compressed form), base64.
    pub service: String,
    /// done − due in ns; with a rate only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

/// One interval. The last one of a trial may be shorter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its start, ns after the start of measuring.
    pub start_ns: u64,
    /// Its length, ns.
    pub length_ns: u64,
    /// Its end on the wall clock, ns since the Unix epoch.
    pub unix_ns: u64,
    /// Measured operations done in it.
    pub operations: u64,
    /// Of these, the ones that ended well.
    pub succeeded: u64,
    /// Reads in it of records whose insert or delete was under way: neither success nor failure.
    pub not_yet: u64,
    /// Operations sent and not yet done at its end.
    pub in_flight: u64,
    /// Operations over 1 ms late though a client was free.
    pub late_generator: u64,
    /// Operations over 1 ms late because all clients were busy.
    pub late_client: u64,
    /// CPU time of the engine in it, ns: user, then system.
    pub cpu_ns: [u64; 2],
    /// Resident memory of the engine, bytes.
    pub memory_bytes: u64,
    /// Outcomes with at least one operation in it.
    pub outcomes: Vec<Outcome>,
}

/// Something that the judge should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// A short name, as the judge's checks have.
    pub name: String,
    /// One sentence with the figures.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// The end of a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// How it ended: `done`, `stopped` (by control line or signal), `lease` (the lab went away) or `failed`.
    pub end: String,
    /// Why, when it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `release` or `debug`; results of a debug build are invalid.
    pub profile: String,
    /// Start of measuring on the wall clock, ns since the Unix epoch.
    pub start_unix_ns: u64,
    /// From the start of measuring to the end of the last measured operation; to the end of the time where one got no
    /// answer, or nothing was due, ns.
    pub measured_ns: u64,
    /// Measured operations done, whatever their outcome.
    pub operations: u64,
    /// Of these, the ones that ended well.
    pub succeeded: u64,
    /// Reads of records whose insert or delete was under way: neither success nor failure.
    pub not_yet: u64,
    /// Operations done while warming up.
    pub warmup_operations: u64,
    /// Operations sent and never done.
    pub in_flight: u64,
    /// Operations due before the end and never sent.
    pub unsent: u64,
    /// Operations over 1 ms late though a client was free.
    pub late_generator: u64,
    /// Operations over 1 ms late because all clients were busy.
    pub late_client: u64,
    /// Wait while all clients were busy, ns, as in [`Outcome::service`]; with a rate only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_client: Option<String>,
    /// Wait while a client was free, ns; with a rate only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_generator: Option<String>,
    /// CPU time of the engine while measuring, ns: user, then system.
    pub cpu_ns: [u64; 2],
    /// Peak resident memory of the engine, bytes.
    pub memory_bytes_max: u64,
    /// Bytes that the engine read from and wrote to devices while measuring, as the kernel counts them.
    pub device_bytes: [u64; 2],
    /// What garbage collectors within the engine's process did while measuring; absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<Collection>,
    /// Seconds the store took to become idle afterwards, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_seconds: Option<f64>,
    /// Outcomes of the whole measured window.
    pub outcomes: Vec<Outcome>,
    /// First words of each kind of failure, by `OPERATION STATUS`.
    pub words: BTreeMap<String, String>,
}

/// What a garbage collector within the engine's process did while measuring.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Collection {
    /// Its name, as the JVM gives it.
    pub collector: String,
    /// How often it ran.
    pub count: u64,
    /// What that took, ms.
    pub time_ms: u64,
}

/// A histogram in the standard form: HDR V2, zlib, base64.
pub fn encode(reading: &Reading) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and our bounds are within what the format holds.
    let _ = V2DeflateSerializer::new().serialize(&reading.histogram(), &mut bytes);
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Outcomes of service readings and, with a rate, response readings.
pub fn outcomes(service: &Readings, response: &Readings) -> Vec<Outcome> {
    service
        .iter()
        .map(|((kind, status), reading)| Outcome {
            operation: kind.name().to_owned(),
            status: status.name().to_owned(),
            count: reading.count(),
            service: encode(reading),
            response: response.get(&(*kind, *status)).map(encode),
        })
        .collect()
}
