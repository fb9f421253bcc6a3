//! The guarantee of a store, printed with every result so that comparisons are fair.

use crate::options::Durability;

/// The known part of the durability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Durability,
    Interval,
    Nothing,
}

/// The guarantee of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The actual durability of acknowledged writes: the requested level, or a stronger one.
    pub durability: Durability,
    known: Known,
    loss_ns_max: Option<u64>,
    /// The mechanism, in the store's own terms (`WAL, no sync`).
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

    /// Writes reach the log at intervals: the end of the process may lose the most recent writes only.
    pub fn periodic(how: impl Into<String>) -> Self {
        Self { known: Known::Interval, loss_ns_max: None, ..Self::new(Durability::None, how) }
    }

    /// The servers did not report their guarantee.
    pub fn unknown(how: impl Into<String>) -> Self {
        Self { known: Known::Nothing, loss_ns_max: None, ..Self::new(Durability::None, how) }
    }

    /// The name in results of the event that acknowledged writes survive: `none`, `interval`, `os`, `device` or
    /// `unknown`.
    pub fn survives(&self) -> &'static str {
        match self.known {
            Known::Durability => self.durability.name(),
            Known::Interval => "interval",
            Known::Nothing => "unknown",
        }
    }

    /// Age, at the end of a killed process, of the oldest acknowledged write that it may lose, ns: 0 if it loses none,
    /// `u64::MAX` if it may lose all, `None` if the store states no bound.
    pub fn loss_ns_max(&self) -> Option<u64> {
        self.loss_ns_max
    }

    /// Sets that bound.
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
