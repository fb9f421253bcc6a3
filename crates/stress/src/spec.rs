//! The cassandra-stress workload as a part of a `TrialSpec`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compat::Compat;
use crate::distribution::{RatioSpec, Spec};
use crate::population::{Population, Selection, Share};
use crate::row::{Increments, RowGenerator, RowShape};
use crate::settings;
use crate::statements::{statement_text, table_of};

/// The predefined operations of cassandra-stress, each on one partition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StressSpec {
    /// The generation whose data is written: `3.0`, `3.11`, `4` or `5`.
    pub compat: Compat,
    /// The keyspace of the tables `standard1` and `counter1`.
    pub keyspace: String,
    /// Statements that are executed once, before the clients connect: definitions of the keyspace and of the tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<String>,
    /// The weight of each operation.
    pub mix: BTreeMap<Command, f64>,
    /// The numbers of the partitions, in the order in which operations use them.
    pub population: Selection,
    /// The part of a sequence that this process takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The range of numbers in `-insert revisit=`; since 4.0 it determines the seeds.
    pub revisit: Spec,
    /// The length of a key, bytes.
    pub key_bytes: u64,
    /// The names of the value columns.
    pub columns: Vec<String>,
    /// The length of a value, bytes.
    pub size: Spec,
    /// The share of columns that have values.
    pub row_population_ratio: RatioSpec,
    /// The increments of counters.
    pub add: Spec,
    /// Whether reads select all columns with `*` (`-col slice`).
    #[serde(default)]
    pub selects_all: bool,
    /// Whether the values read are compared with the values written.
    pub validates: bool,
    /// The timestamp of all writes, µs since 1970; if absent, the client's clock is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_us: Option<i64>,
    /// Whether the text of a statement is sent with every execution.
    #[serde(default)]
    pub unprepared: bool,
}

loadstone_load::named_variants! {
    /// A predefined operation.
    #[derive(
        Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
    )]
    #[serde(rename_all = "snake_case")]
    pub enum Command {
        /// Reads a partition of `standard1`.
        #[default]
        Read = "READ",
        /// Writes a partition of `standard1`.
        Write = "WRITE",
        /// Reads a partition of `counter1`.
        CounterRead = "COUNTER_READ",
        /// Increments the counters of a partition of `counter1`.
        CounterWrite = "COUNTER_WRITE",
    }
}

impl Command {
    /// Whether the operation writes.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::CounterWrite)
    }
}

/// Describes an invalid part of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The name of the field.
    pub field: &'static str,
    /// The reason: the tool's message, if the tool has one.
    pub reason: String,
}

/// The generators for one client's operations. Each client gets a clone.
#[derive(Clone, Debug)]
pub struct Generators {
    /// Generates the numbers of partitions.
    pub population: Population,
    /// Generates keys and values.
    pub rows: RowGenerator,
    /// Generates the increments of counters.
    pub increments: Increments,
}

impl StressSpec {
    /// Refuses a spec that cannot be run.
    ///
    /// # Errors
    /// The first field that is invalid.
    pub fn check(&self) -> Result<(), Invalid> {
        let total: f64 = self.mix.values().sum();
        if self.mix.values().any(|weight| !(0.0..=WEIGHT_MAX).contains(weight)) || total <= 0.0 {
            let reason = format!("must have weights of at most {WEIGHT_MAX}, at least one of them above 0");
            return Err(Invalid { field: "mix", reason });
        }
        self.generators(0).map(drop)
    }

    /// The statement of an operation, including the keyspace of its table.
    pub fn statement(&self, operation: Command) -> String {
        let command = match operation {
            Command::Read => settings::StressCommand::Read,
            Command::Write => settings::StressCommand::Write,
            Command::CounterRead => settings::StressCommand::CounterRead,
            Command::CounterWrite => settings::StressCommand::CounterWrite,
        };
        let table = format!("\"{}\".\"{}\"", self.keyspace, table_of(command));
        statement_text(command, &table, &self.columns, self.selects_all, "")
    }

    /// The statement that reads the values of a row, followed by the timestamps of their writes.
    pub fn timestamp_statement(&self) -> String {
        let values = self.columns.iter().map(|name| format!("\"{name}\""));
        let stamps = self.columns.iter().map(|name| format!("WRITETIME(\"{name}\")"));
        let selected: Vec<String> = values.chain(stamps).collect();
        let table = table_of(settings::StressCommand::Write);
        format!("SELECT {} FROM \"{}\".\"{table}\" WHERE KEY=?", selected.join(","), self.keyspace)
    }

    /// The statement that reads the counters of a row.
    pub fn counter_statement(&self) -> String {
        let values: Vec<String> = self.columns.iter().map(|name| format!("\"{name}\"")).collect();
        let table = table_of(settings::StressCommand::CounterWrite);
        format!("SELECT {} FROM \"{}\".\"{table}\" WHERE KEY=?", values.join(","), self.keyspace)
    }

    /// The generators for a trial with this seed.
    ///
    /// # Errors
    /// A distribution or a range is invalid.
    pub fn generators(&self, seed: u64) -> Result<Generators, Invalid> {
        let population = Population::new(&self.population, &self.revisit, self.compat, self.share, seed);
        let shape = RowShape {
            key_bytes: usize::try_from(self.key_bytes).unwrap_or(usize::MAX),
            columns: self.columns.clone(),
            size: self.size.clone(),
            population_ratio: self.row_population_ratio.clone(),
        };
        if shape.key_bytes == 0 || shape.key_bytes > KEY_BYTES_MAX {
            let reason = format!("must be from 1 to {KEY_BYTES_MAX}, got {}", self.key_bytes);
            return Err(Invalid { field: "key_bytes", reason });
        }
        if shape.columns.is_empty() {
            return Err(Invalid { field: "columns", reason: "must have at least one name".to_owned() });
        }
        let sizes = shape.size.range().map_err(|reason| Invalid { field: "size", reason })?;
        if sizes.0 < 0 || sizes.1 > VALUE_BYTES_MAX {
            let reason = format!("must be from 0 to {VALUE_BYTES_MAX}, got {} to {}", sizes.0, sizes.1);
            return Err(Invalid { field: "size", reason });
        }
        Ok(Generators {
            population: population.map_err(|reason| Invalid { field: "population", reason })?,
            rows: RowGenerator::new(&shape).map_err(|reason| Invalid { field: "row_population_ratio", reason })?,
            increments: Increments::new(&self.add, seed).map_err(|reason| Invalid { field: "add", reason })?,
        })
    }
}

/// Maximum weight; a larger weight would make all other weights negligible.
const WEIGHT_MAX: f64 = 1e9;
/// Cassandra's limit on the length of a key.
const KEY_BYTES_MAX: usize = 65_535;
/// Maximum length of a value, bytes: the limit of a frame in the native protocol.
const VALUE_BYTES_MAX: i64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::{parse_ratio, parse_spec};

    fn ratio(text: &str) -> RatioSpec {
        parse_ratio(text).unwrap().unwrap()
    }

    fn sequence(first: i64, last: i64) -> Selection {
        Selection::Sequence { first, last, wrap: true, read_lookback: None }
    }

    fn spec() -> StressSpec {
        StressSpec {
            compat: Compat::V4,
            keyspace: "keyspace1".to_owned(),
            definitions: Vec::new(),
            mix: [(Command::Write, 1.0)].into(),
            population: sequence(1, 100),
            share: None,
            revisit: parse_spec("uniform(1..1M)").unwrap(),
            key_bytes: 10,
            columns: vec!["C0".to_owned()],
            size: parse_spec("fixed(34)").unwrap(),
            row_population_ratio: ratio("fixed(1)/1"),
            add: parse_spec("fixed(1)").unwrap(),
            selects_all: false,
            validates: true,
            timestamp_us: None,
            unprepared: false,
        }
    }

    #[test]
    fn generators_follow_from_the_texts() {
        let mut generators = spec().generators(1).unwrap();
        let number = generators.population.number_at(0).unwrap();
        let mut row = crate::row::ColumnRow::default();
        generators.rows.fill(generators.population.seed_of(number), &mut row);
        assert_eq!((number, row.columns().count(), row.values.len()), (1, 1, 34));
        let text = serde_json::to_string(&spec()).unwrap();
        assert_eq!(serde_json::from_str::<StressSpec>(&text).unwrap(), spec());
    }

    #[test]
    fn invalid_fields_are_named() {
        let refused = |change: fn(&mut StressSpec)| {
            let mut spec = spec();
            change(&mut spec);
            spec.check().unwrap_err().field
        };
        assert_eq!(refused(|spec| spec.mix.clear()), "mix");
        assert_eq!(refused(|spec| spec.mix = [(Command::Read, -1.0)].into()), "mix");
        assert_eq!(refused(|spec| spec.mix = [(Command::Read, f64::NAN)].into()), "mix");
        assert_eq!(refused(|spec| spec.population = sequence(5, 1)), "population");
        assert_eq!(refused(|spec| spec.share = Some(Share { part: 1, parts: 1 })), "population");
        assert_eq!(refused(|spec| spec.revisit = parse_spec("uniform(-1..2)").unwrap()), "population");
        assert_eq!(refused(|spec| spec.key_bytes = 0), "key_bytes");
        assert_eq!(refused(|spec| spec.key_bytes = u64::MAX), "key_bytes");
        assert_eq!(refused(|spec| spec.columns.clear()), "columns");
        assert_eq!(refused(|spec| spec.size = parse_spec("fixed(-1)").unwrap()), "size");
        assert_eq!(refused(|spec| spec.size = parse_spec("uniform(1..1B)").unwrap()), "size");
        assert_eq!(spec().check(), Ok(()));
    }
}
