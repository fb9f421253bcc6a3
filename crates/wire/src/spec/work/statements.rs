//! Statements of a query language.

use std::collections::BTreeMap;

use loadstone_load::Refusal;
use loadstone_stress::columns::ColumnsSpec;
use loadstone_stress::spec::StressSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::WorkRules;
use crate::merge::Merge;
use crate::spec::TrialSpec;

/// Statements, and the generator of their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "snake_case")]
pub enum StatementsSpec {
    /// The predefined operations of cassandra-stress.
    Stress(StressSpec),
    /// Statements of any form; their values come from generators of columns.
    Columns(ColumnsSpec),
}

/// Statements name their tables.
impl WorkRules for StatementsSpec {
    fn validate(&self, _spec: &TrialSpec) -> Result<(), Refusal> {
        let checked = match self {
            Self::Stress(stress) => stress.check(),
            Self::Columns(columns) => columns.check(),
        };
        checked.map_err(|invalid| {
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
    /// The number, in the population, of one of the missing rows.
    pub number: i64,
}

impl Merge for MissingRows {
    fn merge(&mut self, other: Self) {
        self.reads.merge(other.reads);
    }
}

/// The rows that a statement wrote or read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatementRows {
    /// Rows.
    pub rows: u64,
    /// Number of partitions with at least one of these rows.
    pub partitions: u64,
}

impl Merge for StatementRows {
    fn merge(&mut self, other: Self) {
        self.rows.merge(other.rows);
        self.partitions.merge(other.partitions);
    }
}

impl Merge for BTreeMap<String, StatementRows> {
    fn merge(&mut self, other: Self) {
        for (name, rows) in other {
            self.entry(name).or_default().merge(rows);
        }
    }
}
