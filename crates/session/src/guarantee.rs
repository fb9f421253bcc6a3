//! The guarantee of a store, printed with every result so that comparisons are fair.

use crate::options::Durability;

/// How much is known about the durability: the level, only the interval at which the log is written, or nothing.
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
    /// The actual durability of acknowledged writes: at least the requested level, unless a server's own settings
    /// determine the durability.
    pub durability: Durability,
    known: Known,
    loss_ns_max: Option<u64>,
    /// How the store achieves this durability, in the store's own terms (`WAL, no sync`).
    pub how: String,
    /// Facts such as version, cache, compression and directory, as pairs of name and value.
    pub facts: Vec<(String, String)>,
}

impl Guarantee {
    /// A guarantee without facts.
    pub fn new(durability: Durability, how: impl Into<String>) -> Self {
        let loss_ns_max = Some(if durability == Durability::None { u64::MAX } else { 0 });
        Self { durability, known: Known::default(), loss_ns_max, how: how.into(), facts: Vec::new() }
    }

    /// A guarantee of a store whose writes reach the log at intervals: when the process is killed, only the most
    /// recent writes may be lost.
    pub fn periodic(how: impl Into<String>) -> Self {
        Self { known: Known::Interval, loss_ns_max: None, ..Self::new(Durability::None, how) }
    }

    /// A guarantee of unknown durability, because the servers do not report their settings.
    pub fn unknown(how: impl Into<String>) -> Self {
        Self { known: Known::Nothing, loss_ns_max: None, ..Self::new(Durability::None, how) }
    }

    /// The event that acknowledged writes survive, as named in results: `none`, `interval`, `os`, `device` or
    /// `unknown`.
    pub fn survives(&self) -> &'static str {
        match self.known {
            Known::Durability => self.durability.name(),
            Known::Interval => "interval",
            Known::Nothing => "unknown",
        }
    }

    /// Maximum age, in ns, of an acknowledged write that may be lost when the process is killed: 0 if no write is lost,
    /// `u64::MAX` if all may be lost, `None` if the store states no bound.
    pub fn loss_ns_max(&self) -> Option<u64> {
        self.loss_ns_max
    }

    /// Sets the value that `loss_ns_max` returns.
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
