//! Statements of a query language.

use loadstone_load::Refusal;
use loadstone_stress::spec::StressSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::WorkRules;
use crate::merge::Merge;
use crate::spec::TrialSpec;

/// Statements, and the generator of their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "snake_case")]
pub enum StatementsSpec {
    /// The predefined operations of cassandra-stress.
    Stress(StressSpec),
}

/// Statements name their tables.
impl WorkRules for StatementsSpec {
    fn validate(&self, _spec: &TrialSpec) -> Result<(), Refusal> {
        let Self::Stress(stress) = self;
        stress.check().map_err(|invalid| {
            let message = format!("{{work.{}}}: {}", invalid.field, invalid.reason);
            Refusal::new(message, format!("change {{work.{}}}", invalid.field))
        })
    }
}

/// Reads that found no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRows {
    /// Their number.
    pub reads: u64,
    /// The number, in the population, of one of the rows.
    pub number: i64,
}

impl Merge for MissingRows {
    fn merge(&mut self, other: Self) {
        self.reads.merge(other.reads);
    }
}
