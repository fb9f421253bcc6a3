//! Workload kind: statements of a query language.

use std::collections::BTreeMap;

use loadstone_load::Refusal;
use loadstone_stress::columns::ColumnsSpec;
use loadstone_stress::spec::{Command, StressSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules::WorkRules;
use crate::merge_fields_of;
use crate::merge_rule::Merge;
use crate::spec::{Phase, TrialSpec};

/// Statements, and the generator of their values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "generator", rename_all = "snake_case")]
pub enum StatementsSpec {
    /// The predefined operations of cassandra-stress.
    Stress(StressSpec),
    /// Statements of any form, with values from column generators.
    Columns(ColumnsSpec),
}

/// The statements themselves name their tables.
impl WorkRules for StatementsSpec {
    fn validate_trial(&self, spec: &TrialSpec) -> Result<(), Refusal> {
        if spec.ledger.is_some() && spec.run.is_none_or(|run| i64::try_from(run).is_err()) {
            return Err(Refusal::new(
                "a ledger of statements needs the start time on which the timestamps of writes are based",
                "set {run} to the start of the run, us since 1970",
            ));
        }
        let checked = match self {
            Self::Stress(stress) => stress.check(),
            Self::Columns(columns) => columns.check(),
        };
        checked.map_err(|invalid| {
            let message = format!("{{work.{}}}: {}", invalid.field, invalid.reason);
            Refusal::new(message, format!("change {{work.{}}}", invalid.field))
        })
    }

    /// A write is identified by its timestamp alone, because its values depend only on the partition. Counters have no
    /// timestamps: their values are compared with sums of increments.
    fn validate_ledger(&self, phase: Phase) -> Result<(), Refusal> {
        let Self::Stress(work) = self else {
            return Err(Refusal::new("a ledger of statements is for the generator stress only", "leave {ledger} out"));
        };
        let writes = |command| work.mix.get(&command).is_some_and(|weight| *weight > 0.0);
        let (rows, counters) = (writes(Command::Write), writes(Command::CounterWrite));
        if phase != Phase::Run || rows == counters {
            return Err(Refusal::new(
                "a ledger of cassandra-stress is for runs that write rows or increment counters, not both",
                "leave {ledger} out, or change {work.mix}",
            ));
        }
        if counters {
            // An increment of zero leaves no trace, and a negative one hides another increment.
            if work.add.range().is_ok_and(|(least, _)| least < 1) {
                let hint = "set {work.add} to values of at least 1";
                return Err(Refusal::new("a ledger of counters needs increments above 0", hint));
            }
            return Ok(());
        }
        if work.timestamp_us.is_some() {
            let hint = "leave {work.timestamp_us} out";
            return Err(Refusal::new("a ledger sets the timestamps of writes", hint));
        }
        if !work.row_population_ratio.is_full() {
            return Err(Refusal::new(
                "a ledger needs a value in every column: a null has no timestamp",
                "set {work.row_population_ratio} to fixed(1)/1",
            ));
        }
        Ok(())
    }
}

/// Reads that found no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRows {
    /// Number of reads that found no row.
    pub reads: u64,
    /// The number that one of the missing rows has in the population.
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
    /// Number of rows.
    pub rows: u64,
    /// Number of partitions with at least one of these rows.
    pub partitions: u64,
}

merge_fields_of!(StatementRows: rows, partitions);

impl Merge for BTreeMap<String, StatementRows> {
    fn merge(&mut self, other: Self) {
        for (name, rows) in other {
            self.entry(name).or_default().merge(rows);
        }
    }
}
