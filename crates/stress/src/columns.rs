//! Statements with values from column generators: the generator `columns` of a `TrialSpec`.
//!
//! The user profiles of cassandra-stress and the lab's statements are both translated to this generator. The server
//! determines the types of the columns, so a spec becomes a [`Plan`] only when the tables exist.

mod plan;
mod statement;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compat::Compat;
use crate::cql::quote;
use crate::distribution::{RatioSpec, Spec};
use crate::partition::mean;
use crate::population::{Population, Selection, Share};
use crate::settings::Order;
use crate::spec::Invalid;

pub use plan::{
    BATCH_ROWS_MAX, Condition, ConditionRead, Described, Operator, Plan, PlannedOperation, SchemaColumn, TableSchema,
};

/// Statements with values from column generators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColumnsSpec {
    /// The generation of cassandra-stress whose data is written: `3.0`, `3.11`, `4` or `5`.
    #[serde(default)]
    pub compat: Compat,
    /// Statements that are executed once, before the clients connect. Objects that already exist remain unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<String>,
    /// The tables on which operations work.
    pub tables: Vec<TableSpec>,
    /// The operations.
    pub operations: Vec<OperationSpec>,
    /// The number of consecutive operations with the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering: Option<Spec>,
    /// The numbers of the partitions, in the order in which operations use them.
    pub population: Selection,
    /// The part of a sequence that this process takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The range of numbers in `-insert revisit=`; since 4.0 it determines the seeds.
    #[serde(default = "default_revisit")]
    pub revisit: Spec,
    /// The number of operations in which a partition is written.
    #[serde(default = "default_visits")]
    pub visits: u32,
    /// The order of the rows of a partition.
    #[serde(default = "default_order")]
    pub order: Order,
    /// The number of parts into which each token range of the ring is split.
    #[serde(default = "default_visits")]
    pub split_factor: u32,
    /// Whether the text of a statement is sent with every execution.
    #[serde(default)]
    pub unprepared: bool,
    /// Whether cassandra-stress may have written the rows, and omitted the last rows of a partition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written_by_tool: bool,
}

fn default_revisit() -> Spec {
    Spec::Uniform { min: 1, max: 1_000_000 }
}

const fn default_visits() -> u32 {
    1
}

const fn default_order() -> Order {
    Order::Arbitrary
}

/// A table, and how its rows are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// The name of the table in this spec.
    pub name: String,
    /// The keyspace of the table.
    pub keyspace: String,
    /// The name of the table in its keyspace.
    pub table: String,
    /// The distributions of the columns. Columns that are not listed have the tool's defaults.
    #[serde(default)]
    pub columns: Vec<ColumnSpec>,
    /// How rows are written.
    #[serde(default)]
    pub insert: InsertSpec,
}

impl TableSpec {
    /// The name of the table with its keyspace, as used in statements.
    pub fn full_name(&self) -> String {
        format!("{}.{}", quote(&self.keyspace), quote(&self.table))
    }
}

/// The distributions of a column. `None` represents the tool's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// The column's name.
    pub name: String,
    /// Length of a text in characters, of a blob in bytes, or of a collection in elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Spec>,
    /// The numbers from which values are generated: a range of N numbers gives N different values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Spec>,
    /// Number of values of a clustering column for each value of the preceding column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Spec>,
}

/// How rows are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertSpec {
    /// Number of partitions per operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Spec>,
    /// The share of a partition's rows that an operation writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<RatioSpec>,
    /// The share of a row's columns that have values; the remaining columns are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_population: Option<RatioSpec>,
    /// How the rows of an operation are sent if there are several.
    #[serde(default)]
    pub batch: BatchType,
    /// A condition that is appended to the statement: `IF body = NULL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The type of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchType {
    /// All rows are written, or none.
    #[default]
    Logged,
    /// The rows are sent in one request.
    Unlogged,
    /// The rows are increments of counters.
    Counter,
}

impl BatchType {
    /// Parses the CQL name of a batch type, ignoring case. The tool exits with a stack trace if the name is not in
    /// upper case.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_uppercase().as_str() {
            "LOGGED" => Some(Self::Logged),
            "UNLOGGED" => Some(Self::Unlogged),
            "COUNTER" => Some(Self::Counter),
            _ => None,
        }
    }
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationSpec {
    /// The operation's name in the figures.
    pub name: String,
    /// The frequency of the operation, relative to the sum of all weights.
    pub weight: f64,
    /// The name of the operation's table.
    pub table: String,
    /// The work that it does.
    pub work: OperationWork,
}

/// The work that an operation does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationWork {
    /// Writes rows in partitions.
    Insert,
    /// Reads a partition, and compares it with the rows written.
    Validate,
    /// Executes a statement.
    Query {
        /// The text of the statement, with a `?` for each value.
        cql: String,
        /// The rows that supply the values.
        #[serde(default)]
        fields: Fields,
        /// Whether the rows read are compared with the rows written.
        #[serde(default)]
        validates: bool,
    },
    /// Reads a page of a token range. The client's next operations read the remaining pages of the range.
    TokenRange {
        /// The columns that are selected.
        columns: String,
        /// Maximum number of rows per page.
        page_rows: u32,
    },
}

/// The rows that supply the values of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fields {
    /// All values from one row.
    Samerow,
    /// Each value from another row of the partition, chosen at random.
    #[default]
    Multirow,
}

/// An error in a spec that can be detected only with the server's descriptions of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFault {
    /// The invalid part.
    pub part: Part,
    /// The field and the reason.
    pub invalid: Invalid,
}

/// A part of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The table with this name.
    Table(String),
    /// The column with this name, in the table with this name.
    Column(String, String),
    /// The operation with this name.
    Operation(String),
}

/// Maximum weight; a larger weight would make all other weights negligible.
const WEIGHT_MAX: f64 = 1e9;
fn invalid(field: &'static str, reason: impl Into<String>) -> Invalid {
    Invalid { field, reason: reason.into() }
}

impl ColumnsSpec {
    /// Refuses a spec that cannot be run on any server.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn check(&self) -> Result<(), Invalid> {
        let total: f64 = self.operations.iter().map(|operation| operation.weight).sum();
        if self.operations.iter().any(|operation| !(0.0..=WEIGHT_MAX).contains(&operation.weight)) || total <= 0.0 {
            let reason = format!("must have weights of at most {WEIGHT_MAX}, at least one of them above 0");
            return Err(invalid("operations", reason));
        }
        for (at, operation) in self.operations.iter().enumerate() {
            if self.operations[..at].iter().any(|other| other.name == operation.name) {
                return Err(invalid("operations", format!("two operations are named {}", operation.name)));
            }
            self.table_of(operation)?;
        }
        for table in &self.tables {
            for column in &table.columns {
                for spec in [&column.size, &column.population, &column.cluster].into_iter().flatten() {
                    spec.sampler().map_err(|reason| invalid("tables", format!("column {}: {reason}", column.name)))?;
                }
            }
        }
        if self.visits == 0 {
            return Err(invalid("visits", "must be at least 1"));
        }
        self.population(0).map(drop)
    }

    /// The population of partitions from which operations choose.
    pub fn population(&self, seed: u64) -> Result<Population, Invalid> {
        Population::new(&self.population, &self.revisit, self.compat, self.share, seed)
            .map_err(|reason| invalid("population", reason))
    }

    fn table_of(&self, operation: &OperationSpec) -> Result<usize, Invalid> {
        let place = self.tables.iter().position(|table| table.name == operation.table);
        place.ok_or_else(|| invalid("operations", format!("{}: there is no table {}", operation.name, operation.table)))
    }

    /// The mean number of partitions per operation.
    pub fn partitions_per_operation(&self) -> f64 {
        let mut total = (0.0, 0.0);
        for operation in &self.operations {
            let table = self.tables.iter().find(|table| table.name == operation.table);
            let partitions = match (&operation.work, table) {
                (OperationWork::Insert, Some(table)) => mean(table.insert.partitions.as_ref()).unwrap_or(1.0),
                _ => 1.0,
            };
            total = (total.0 + operation.weight * partitions, total.1 + operation.weight);
        }
        total.0 / total.1
    }
}
