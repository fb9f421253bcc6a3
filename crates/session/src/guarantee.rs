//! What a store guarantees, printed beside every result so that engines compare alike.

use crate::options::Durability;

/// Facts beside the durability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Durability,
    Interval,
    Nothing,
}

/// What a store guarantees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The durability that acknowledged writes really have: what was asked for, or stronger.
    pub durability: Durability,
    known: Known,
    loss_ns_max: Option<u64>,
    /// How that is done, in the store's own terms (`WAL, no sync`).
    pub how: String,
    /// Version, cache, compression, directory …: name and value.
    pub facts: Vec<(String, String)>,
}

impl Guarantee {
    /// A guarantee without facts.
    pub fn new(durability: Durability, how: impl Into<String>) -> Self {
        let loss_ns_max = Some(if durability == Durability::None { u64::MAX } else { 0 });
        Self { durability, known: Known::default(), loss_ns_max, how: how.into(), facts: Vec::new() }
    }

    /// Writes reach the log at intervals: the end of the process may lose those of the last moments, and no others.
    pub fn at_intervals(how: impl Into<String>) -> Self {
        Self { known: Known::Interval, loss_ns_max: None, ..Self::new(Durability::None, how) }
    }

    /// The servers did not report what they guarantee.
    pub fn unknown(how: impl Into<String>) -> Self {
        Self { known: Known::Nothing, loss_ns_max: None, ..Self::new(Durability::None, how) }
    }

    /// What acknowledged writes survive, as results name it: `none`, `interval`, `os`, `device` or `unknown`.
    pub fn survives(&self) -> &'static str {
        match self.known {
            Known::Durability => self.durability.name(),
            Known::Interval => "interval",
            Known::Nothing => "unknown",
        }
    }

    /// How long before the end of a killed process the oldest acknowledged write that it may lose was done, ns: 0 where it
    /// loses none, `u64::MAX` where it may lose all, `None` where the store states no bound.
    pub fn loss_ns_max(&self) -> Option<u64> {
        self.loss_ns_max
    }

    /// States that bound.
    #[must_use]
    pub fn losing_at_most(self, ns: u64) -> Self {
        Self { loss_ns_max: Some(ns), ..self }
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<String>) -> Self {
        self.facts.push((name.to_owned(), value.into()));
        self
    }
}
