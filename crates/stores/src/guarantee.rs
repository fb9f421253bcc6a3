//! What a store guarantees, printed beside every result so that engines compare alike.

use crate::options::Durability;

/// What a store guarantees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The durability that acknowledged writes really have: what was asked for, or stronger.
    pub durability: Durability,
    /// How that is done, in the store's own terms (`WAL, no sync`).
    pub how: String,
    /// Version, cache, compression, directory …: name and value.
    pub facts: Vec<(String, String)>,
}

impl Guarantee {
    /// A guarantee without facts.
    pub fn new(durability: Durability, how: impl Into<String>) -> Self {
        Self { durability, how: how.into(), facts: Vec::new() }
    }

    /// Adds a fact.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<String>) -> Self {
        self.facts.push((name.to_owned(), value.into()));
        self
    }
}
