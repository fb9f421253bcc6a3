//! Statements whose values come from generators of columns: the generator `columns` of a `TrialSpec`.
//!
//! Both user profiles of cassandra-stress and the lab's statements are translated to it. The types of the columns are the
//! server's, so a spec becomes a [`Plan`] when the tables exist.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compat::Compat;
use crate::cql::{CqlType, quote};
use crate::distribution::{RatioSpec, Spec};
use crate::partition::{Column, Layout, PartitionGenerator, Place, mean};
use crate::population::{Population, Selection, Share};
use crate::settings::Order;
use crate::spec::Invalid;
use crate::value::ValueSpecs;

/// Statements with values from generators of columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColumnsSpec {
    /// The generation of cassandra-stress whose data are written: `3.0`, `3.11`, `4` or `5`.
    #[serde(default)]
    pub compat: Compat,
    /// Statements that are executed once, before the clients connect. What exists already is left as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<String>,
    /// The tables of the operations.
    pub tables: Vec<TableSpec>,
    /// The operations.
    pub operations: Vec<OperationSpec>,
    /// How many operations of one name follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clustering: Option<Spec>,
    /// The numbers of the partitions, in the order in which operations take them.
    pub population: Selection,
    /// This process takes a part of a sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The range of numbers that `-insert revisit=` gives; since 4.0 it determines the seeds.
    #[serde(default = "default_revisit")]
    pub revisit: Spec,
    /// In how many operations a partition is written.
    #[serde(default = "default_visits")]
    pub visits: u32,
    /// The order of the rows of a partition.
    #[serde(default = "default_order")]
    pub order: Order,
    /// Parts into which each token range of the ring is split.
    #[serde(default = "default_visits")]
    pub split_factor: u32,
    /// Whether the text of a statement is sent with each execution.
    #[serde(default)]
    pub unprepared: bool,
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
    /// Its name in this spec.
    pub name: String,
    /// Its keyspace.
    pub keyspace: String,
    /// Its name in the keyspace.
    pub table: String,
    /// The distributions of its columns; columns that are not listed have the tool's defaults.
    #[serde(default)]
    pub columns: Vec<ColumnSpec>,
    /// How rows are written.
    #[serde(default)]
    pub insert: InsertSpec,
}

impl TableSpec {
    /// Its name with its keyspace, as in statements.
    pub fn full_name(&self) -> String {
        format!("{}.{}", quote(&self.keyspace), quote(&self.table))
    }
}

/// The distributions of a column. `None`: the tool's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// The column's name.
    pub name: String,
    /// Length of a text in characters, of a blob in bytes, of a collection in elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Spec>,
    /// The numbers from which values are made: a range of N numbers gives N different values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<Spec>,
    /// Values of a clustering column for each value of the column before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Spec>,
}

/// How rows are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsertSpec {
    /// Partitions of an operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Spec>,
    /// The share of a partition's rows that an operation writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<RatioSpec>,
    /// The share of a row's columns that have a value; the remaining columns are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_population: Option<RatioSpec>,
    /// How the rows of an operation are sent if they are several.
    #[serde(default)]
    pub batch: BatchType,
    /// Appended to the statement: `IF body = NULL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The type of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BatchType {
    /// All rows are written or none.
    #[default]
    Logged,
    /// One request.
    Unlogged,
    /// Increments.
    Counter,
}

impl BatchType {
    /// Its name in CQL, in any case. The tool requires upper case, and ends with a stack trace otherwise.
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
    /// Its name in the figures.
    pub name: String,
    /// How often it occurs, relative to the sum of all weights.
    pub weight: f64,
    /// The name of its table.
    pub table: String,
    /// Its work.
    pub work: OperationWork,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OperationWork {
    /// Writes rows of partitions.
    Insert,
    /// Reads a partition, and compares it with the written rows.
    Validate,
    /// Executes a statement.
    Query {
        /// Its text, with a `?` for each value.
        cql: String,
        /// Where its values come from.
        #[serde(default)]
        fields: Fields,
        /// Whether its rows are compared with the written ones.
        #[serde(default)]
        validates: bool,
    },
    /// Reads the beginning of a token range.
    TokenRange {
        /// The columns that are selected.
        columns: String,
        /// Rows that are read, at most.
        page_rows: u32,
    },
}

/// The rows from which the values of a query come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fields {
    /// All from one row.
    Samerow,
    /// Each from another row of the partition, at random.
    #[default]
    Multirow,
}

/// A table as the server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSchema {
    /// Its columns, in any order.
    pub columns: Vec<SchemaColumn>,
}

/// A column as the server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaColumn {
    /// Its name.
    pub name: String,
    /// `partition_key`, `clustering`, `static` or `regular`.
    pub role: String,
    /// The place within the key.
    pub position: i32,
    /// Its type; user-defined types as tuples.
    pub kind: String,
    /// Whether its values are written as a whole.
    pub is_frozen: bool,
}

/// A spec whose columns have types.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The columns of each table.
    pub layouts: Vec<Layout>,
    /// The operations with a weight.
    pub operations: Vec<PlannedOperation>,
}

/// An operation on a table.
#[derive(Clone, Debug)]
pub struct PlannedOperation {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: f64,
    /// The place of its table.
    pub table: usize,
    /// Its work.
    pub work: OperationWork,
    /// The text of its statement.
    pub text: String,
    /// Whether it writes.
    pub writes: bool,
    /// Where the value of each marker comes from; known once the server has prepared the statement.
    pub markers: Vec<Place>,
    /// The columns of its rows that are compared.
    pub results: Vec<Option<Place>>,
    /// The conditions of a query that is validated: a column, an operator, and the marker of the value.
    pub conditions: Vec<Condition>,
}

/// `column OPERATOR ?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column.
    pub place: Place,
    /// `=`, `<`, `>`, `<=` or `>=`.
    pub operator: Operator,
    /// The number of the marker.
    pub marker: usize,
}

/// How a column is compared with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the operators")]
pub enum Operator {
    Equal,
    Less,
    Greater,
    AtMost,
    AtLeast,
}

impl Operator {
    /// Whether a column whose value has this order to the marker's satisfies the condition.
    pub fn accepts(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Less => order.is_lt(),
            Self::Greater => order.is_gt(),
            Self::AtMost => order.is_le(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// Larger weights would hide the smaller ones.
const WEIGHT_MAX: f64 = 1e9;
/// A batch counts its rows in 16 bits.
pub const BATCH_ROWS_MAX: usize = 65_535;

/// Rows of a partition that are compared.
const VALIDATED_ROWS_MAX: f64 = 1e6;

fn invalid(field: &'static str, reason: impl Into<String>) -> Invalid {
    Invalid { field, reason: reason.into() }
}

impl ColumnsSpec {
    /// Refuses what cannot be run on any server.
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

    /// The numbers of partitions.
    pub fn population(&self, seed: u64) -> Result<Population, Invalid> {
        Population::new(&self.population, &self.revisit, self.compat, self.share, seed)
            .map_err(|reason| invalid("population", reason))
    }

    fn table_of(&self, operation: &OperationSpec) -> Result<usize, Invalid> {
        let place = self.tables.iter().position(|table| table.name == operation.table);
        place.ok_or_else(|| invalid("operations", format!("{}: there is no table {}", operation.name, operation.table)))
    }

    /// The plan of a spec for the server's tables, in the order of the spec's.
    ///
    /// # Errors
    /// A column of the spec is missing, or its type cannot be generated.
    pub fn plan(&self, schemas: &[TableSchema]) -> Result<Plan, Invalid> {
        let layouts = self.tables.iter().zip(schemas).map(|(table, schema)| layout(table, schema));
        let layouts: Vec<Layout> = layouts.collect::<Result<_, _>>()?;
        let mut operations = Vec::new();
        for operation in self.operations.iter().filter(|operation| operation.weight > 0.0) {
            let at = self.table_of(operation)?;
            let (table, layout) = (&self.tables[at], &layouts[at]);
            let (text, writes) = match &operation.work {
                OperationWork::Insert => (insert_text(table, layout, &schemas[at]), true),
                OperationWork::Validate => {
                    let keys: Vec<String> =
                        layout.key.iter().map(|column| format!("{} = ?", quote(&column.name))).collect();
                    (format!("SELECT * FROM {} WHERE {}", table.full_name(), keys.join(" AND ")), false)
                }
                OperationWork::Query { cql, .. } => {
                    let text = qualify(cql, &table.keyspace);
                    let writes = !text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select"));
                    (text, writes)
                }
                OperationWork::TokenRange { columns, page_rows } => {
                    let keys: Vec<String> = layout.key.iter().map(|column| quote(&column.name)).collect();
                    let keys = keys.join(", ");
                    let columns = match columns.trim() {
                        "" | "*" => all_names(layout).join(", "),
                        columns => columns.to_owned(),
                    };
                    let text = format!(
                        "SELECT token({keys}), {columns} FROM {} WHERE token({keys}) > ? AND token({keys}) <= ? LIMIT {page_rows}",
                        table.full_name()
                    );
                    (text, false)
                }
            };
            operations.push(PlannedOperation {
                name: operation.name.clone(),
                weight: operation.weight,
                table: at,
                work: operation.work.clone(),
                text,
                writes,
                markers: Vec::new(),
                results: Vec::new(),
                conditions: Vec::new(),
            });
        }
        self.check_rows(&layouts, &operations)?;
        Ok(Plan { layouts, operations })
    }

    /// Refuses batches that no server takes.
    fn check_rows(&self, layouts: &[Layout], operations: &[PlannedOperation]) -> Result<(), Invalid> {
        for operation in operations.iter().filter(|operation| operation.work == OperationWork::Insert) {
            let (insert, layout) = (&self.tables[operation.table].insert, &layouts[operation.table]);
            let (_, rows, _) = layout.row_counts().map_err(|reason| invalid("tables", reason))?;
            let partitions = insert.partitions.as_ref().map_or(Ok(1), |spec| spec.range().map(|range| range.1));
            let partitions = partitions.map_err(|reason| invalid("tables", reason))? as f64;
            let share = insert
                .select
                .as_ref()
                .map_or(Ok(1.0), |ratio| ratio.distribution.range().map(|range| ratio.share(range.1 as f64)));
            let share = share.map_err(|reason| invalid("tables", reason))?;
            let rows = (rows * partitions * share / f64::from(self.visits)).max(1.0);
            if insert.batch == BatchType::Logged && rows > BATCH_ROWS_MAX as f64 {
                let reason = format!(
                    "{}: an operation writes up to {rows:.0} rows, and a logged batch has at most {BATCH_ROWS_MAX}; use \
                     batchtype: UNLOGGED, a smaller select:, or -insert visits=",
                    operation.name
                );
                return Err(invalid("operations", reason));
            }
        }
        Ok(())
    }

    /// The mean number of partitions that an operation takes from the population.
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

/// A statement's marker or column, as the server describes it.
pub type Described = (String, String);

impl Plan {
    /// Sets the sources of an operation's values: `markers` and `results` are the names and types of its markers, and of the columns
    /// of its rows.
    ///
    /// # Errors
    /// A marker is not a column of the table, or rows cannot be compared.
    pub fn bind(
        &mut self,
        spec: &ColumnsSpec,
        at: usize,
        markers: &[Described],
        results: &[Described],
    ) -> Result<(), Invalid> {
        let operation = &mut self.operations[at];
        let layout = &self.layouts[operation.table];
        let refuse = |reason: String| Err(invalid("operations", format!("{}: {reason}", operation.name)));
        if matches!(operation.work, OperationWork::TokenRange { .. }) {
            return Ok(());
        }
        let mut places = Vec::new();
        for (name, kind) in markers {
            let Some(place) = layout.place(name) else {
                return refuse(format!(
                    "the value of a ? is {name}, which is not a column of the table; write its value in the text"
                ));
            };
            let column = layout.column(place);
            let is_same = CqlType::parse(kind).is_ok_and(|kind| kind == column.kind);
            if !is_same {
                return refuse(format!("a ? for {name} has the type {kind}, and the column has {}", column.kind));
            }
            places.push(place);
        }
        if has_condition(&operation.text)
            && matches!(operation.work, OperationWork::Query { .. })
            && operation.text.contains('?')
        {
            let after_if = split_at_word(&operation.text, "IF").map(|(_, rest)| rest);
            if after_if.is_some_and(|rest| rest.contains('?')) {
                return refuse(
                    "a condition with a ? is not supported; write IF EXISTS, IF NOT EXISTS or IF column = VALUE"
                        .to_owned(),
                );
            }
        }
        let (validates, is_query) = match operation.work {
            OperationWork::Validate => (true, false),
            OperationWork::Query { validates, .. } => (validates, true),
            _ => (false, false),
        };
        let mut conditions = Vec::new();
        let mut columns = Vec::new();
        if validates {
            if operation.writes {
                return refuse("validate: true is for SELECT".to_owned());
            }
            if let Some(reason) = find_unrepeatable(layout, &spec.tables[operation.table].insert) {
                return refuse(format!("rows cannot be compared: {reason}"));
            }
            let (_, rows, _) = layout.row_counts().map_err(|reason| invalid("tables", reason))?;
            if rows > VALIDATED_ROWS_MAX {
                return refuse(format!(
                    "rows cannot be compared: a partition has up to {rows:.0}, the limit is {VALIDATED_ROWS_MAX}"
                ));
            }
            columns.extend(results.iter().map(|(name, _)| layout.place(name)));
            let missing = layout.clustering.iter().enumerate().find(|(at, column)| {
                let is_bound = places.contains(&Place::Clustering(*at));
                !is_bound && !results.iter().any(|(name, _)| *name == column.name)
            });
            if let Some((_, column)) = missing {
                return refuse(format!("rows cannot be compared without {}; select it as well", column.name));
            }
            match parse_conditions(&operation.text, layout, &places) {
                Some(parsed) => conditions = parsed,
                None if is_query => {
                    return refuse(
                        "rows cannot be compared: the query must be SELECT … WHERE column = ? AND …, with =, <, >, <= or >=".to_owned(),
                    );
                }
                None => {}
            }
        }
        let operation = &mut self.operations[at];
        (operation.markers, operation.results, operation.conditions) = (places, columns, conditions);
        Ok(())
    }

    /// A generator for each table.
    ///
    /// # Errors
    /// A distribution has no sampler.
    pub fn generators(&self, spec: &ColumnsSpec) -> Result<Vec<PartitionGenerator>, Invalid> {
        let generator = |layout| PartitionGenerator::new(layout, spec.compat, spec.order);
        let generators: Result<_, String> = self.layouts.iter().map(generator).collect();
        generators.map_err(|reason| invalid("tables", reason))
    }
}

/// Why the rows of a table are not a function of the partition.
fn find_unrepeatable(layout: &Layout, insert: &InsertSpec) -> Option<String> {
    let is_full = |ratio: &Option<RatioSpec>| {
        ratio
            .as_ref()
            .is_none_or(|ratio| ratio.distribution.range().is_ok_and(|range| ratio.share(range.0 as f64) >= 1.0))
    };
    if !is_full(&insert.select) {
        return Some("select: writes a random part of the rows".to_owned());
    }
    if !insert.row_population.as_ref().is_none_or(|ratio| ratio.distribution.is_fixed()) {
        return Some("row-population: leaves random columns empty".to_owned());
    }
    if layout.accumulates {
        return Some("each write of a list, set, map or counter adds to its value; use frozen collections".to_owned());
    }
    let columns = layout.key.iter().chain(&layout.clustering).chain(&layout.values);
    for Column { name, kind, specs } in columns {
        let specs = [specs.size.as_ref(), specs.population.as_ref(), specs.cluster.as_ref()];
        if specs.iter().flatten().any(|spec| matches!(spec, Spec::QuantizedExtreme { .. })) {
            return Some(format!("{name}: the tool's qextreme is not reproducible"));
        }
        if kind.is_collection() && !specs[0].is_some_and(Spec::is_fixed) {
            return Some(format!("{name}: the tool's collections have a random length; give it size: fixed(N)"));
        }
        if *kind == CqlType::TimeUuid && specs[2].is_some_and(|spec| !spec.is_fixed()) {
            return Some(format!(
                "{name}: the tool's timeuuid columns have a random number of values; give it cluster: fixed(N)"
            ));
        }
    }
    None
}

fn all_names(layout: &Layout) -> Vec<String> {
    layout.key.iter().chain(&layout.clustering).chain(&layout.values).map(|column| quote(&column.name)).collect()
}

/// The columns of a table in the order of the tool's statements: the key, then the remaining columns by name.
fn layout(table: &TableSpec, schema: &TableSchema) -> Result<Layout, Invalid> {
    let name = table.full_name();
    if schema.columns.is_empty() {
        return Err(invalid("tables", format!("there is no table {name}; add table_definition:, or create it")));
    }
    let mut specs: BTreeMap<&str, &ColumnSpec> =
        table.columns.iter().map(|column| (column.name.as_str(), column)).collect();
    let mut layout = Layout::default();
    let mut sorted: Vec<&SchemaColumn> = schema.columns.iter().collect();
    sorted.sort_by(|a, b| (a.position, &a.name).cmp(&(b.position, &b.name)));
    for column in sorted {
        let kind = CqlType::parse(&column.kind)
            .map_err(|reason| invalid("tables", format!("column {} of {name}: {reason}", column.name)))?;
        let spec = specs.remove(column.name.as_str());
        let specs = spec.map_or_else(ValueSpecs::default, |spec| ValueSpecs {
            size: spec.size.clone(),
            population: spec.population.clone(),
            cluster: spec.cluster.clone(),
        });
        if column.role == "static" {
            layout.statics.push(layout.values.len());
        }
        let role = match column.role.as_str() {
            "partition_key" => &mut layout.key,
            "clustering" => &mut layout.clustering,
            _ => {
                layout.accumulates |= kind == CqlType::Counter || (kind.is_collection() && !column.is_frozen);
                &mut layout.values
            }
        };
        role.push(Column { name: column.name.clone(), kind, specs });
    }
    match specs.keys().next() {
        Some(missing) => Err(invalid("tables", format!("{name} has no column {missing}; correct columnspec:"))),
        None => Ok(layout),
    }
}

/// The statement that writes a row, as the tool makes it. Maps, which the tool refuses, grow like its sets.
fn insert_text(table: &TableSpec, layout: &Layout, schema: &TableSchema) -> String {
    let keys: Vec<String> = layout.key.iter().chain(&layout.clustering).map(|column| quote(&column.name)).collect();
    let condition = table.insert.condition.as_ref().map_or_else(String::new, |condition| format!(" {condition}"));
    if layout.values.is_empty() {
        let markers = vec!["?"; keys.len()].join(", ");
        return format!("INSERT INTO {} ({}) values({markers}){condition}", table.full_name(), keys.join(", "));
    }
    let assignments: Vec<String> = layout
        .values
        .iter()
        .map(|column| {
            let name = quote(&column.name);
            let is_frozen = schema.columns.iter().any(|other| other.name == column.name && other.is_frozen);
            let grows = column.kind == CqlType::Counter || (column.kind.is_collection() && !is_frozen);
            if grows { format!("{name} = {name} + ?") } else { format!("{name} = ?") }
        })
        .collect();
    let keys: Vec<String> = keys.iter().map(|name| format!("{name} = ?")).collect();
    format!("UPDATE {} SET {} WHERE {}{condition}", table.full_name(), assignments.join(","), keys.join(" AND "))
}

/// The tokens of a statement, with their places.
fn tokens(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += 1;
                }
                at = (at + 1).min(bytes.len());
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] >= 0x80)
                {
                    at += 1;
                }
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'<' | b'>' if bytes.get(at + 1) == Some(&b'=') => at += 2,
            _ => at += 1,
        }
        tokens.push((start, &text[start..at]));
    }
    tokens
}

fn split_at_word<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let (at, token) = tokens(text).into_iter().find(|(_, other)| other.eq_ignore_ascii_case(word))?;
    Some((&text[..at], &text[at + token.len()..]))
}

fn has_condition(text: &str) -> bool {
    split_at_word(text, "IF").is_some()
}

/// Names the keyspace of a statement's table, which a profile need not do.
fn qualify(text: &str, keyspace: &str) -> String {
    let tokens = tokens(text);
    for (at, pair) in tokens.windows(2).enumerate() {
        let is_before_table = ["FROM", "INTO", "UPDATE"].iter().any(|word| pair[0].1.eq_ignore_ascii_case(word));
        if is_before_table {
            let is_full = tokens.get(at + 2).is_some_and(|(_, word)| *word == ".");
            let (start, _) = pair[1];
            if is_full {
                break;
            }
            return format!("{}{}.{}", &text[..start], quote(keyspace), &text[start..]);
        }
    }
    text.to_owned()
}

/// The conditions of `SELECT … WHERE column = ? AND …`; `None` for a query of another form.
fn parse_conditions(text: &str, layout: &Layout, places: &[Place]) -> Option<Vec<Condition>> {
    let tokens = tokens(text);
    let start = tokens.iter().position(|(_, word)| word.eq_ignore_ascii_case("WHERE"))?;
    // A value among the selected columns would be the first marker.
    if tokens[..start].iter().any(|(_, word)| *word == "?") {
        return None;
    }
    let mut conditions = Vec::new();
    let mut rest = &tokens[start + 1..];
    loop {
        let [(_, name), (_, operator), (_, "?"), tail @ ..] = rest else { return None };
        let operator = match *operator {
            "=" => Operator::Equal,
            "<" => Operator::Less,
            ">" => Operator::Greater,
            "<=" => Operator::AtMost,
            ">=" => Operator::AtLeast,
            _ => return None,
        };
        let marker = conditions.len();
        let place = *places.get(marker)?;
        let column = layout.column(place);
        let is_same = name.trim_matches('"') == column.name || name.eq_ignore_ascii_case(&column.name);
        if !is_same {
            return None;
        }
        conditions.push(Condition { place, operator, marker });
        match tail {
            [] => return Some(conditions),
            [(_, word), next @ ..] if word.eq_ignore_ascii_case("AND") => rest = next,
            [(_, first), (_, second)]
                if first.eq_ignore_ascii_case("ALLOW") && second.eq_ignore_ascii_case("FILTERING") =>
            {
                return Some(conditions);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, role: &str, position: i32, kind: &str, is_frozen: bool) -> SchemaColumn {
        SchemaColumn { name: name.into(), role: role.into(), position, kind: kind.into(), is_frozen }
    }

    fn schema() -> TableSchema {
        TableSchema {
            columns: vec![
                column("k", "partition_key", 0, "int", false),
                column("Name", "clustering", 0, "text", false),
                column("tags", "regular", -1, "set<text>", false),
                column("fixed", "regular", -1, "list<int>", true),
                column("s", "static", -1, "int", false),
            ],
        }
    }

    fn spec(work: OperationWork) -> ColumnsSpec {
        let table = TableSpec { name: "t".into(), keyspace: "ks".into(), table: "Tab".into(), ..TableSpec::default() };
        ColumnsSpec {
            compat: Compat::V4,
            definitions: Vec::new(),
            tables: vec![table],
            operations: vec![OperationSpec { name: "op".into(), weight: 1.0, table: "t".into(), work }],
            clustering: None,
            population: Selection::Sequence { first: 1, last: 100, wrap: true, read_lookback: None },
            share: None,
            revisit: default_revisit(),
            visits: 1,
            order: Order::Arbitrary,
            split_factor: 1,
            unprepared: false,
        }
    }

    fn query(cql: &str, validates: bool) -> OperationWork {
        OperationWork::Query { cql: cql.into(), fields: Fields::Samerow, validates }
    }

    #[test]
    fn inserts_have_the_text_of_the_tool() {
        let plan = spec(OperationWork::Insert).plan(&[schema()]).unwrap();
        assert_eq!(
            plan.operations[0].text,
            "UPDATE ks.\"Tab\" SET fixed = ?,s = ?,tags = tags + ? WHERE k = ? AND \"Name\" = ?"
        );
        let mut keys = schema();
        keys.columns.truncate(2);
        let plan = spec(OperationWork::Insert).plan(&[keys]).unwrap();
        assert_eq!(plan.operations[0].text, "INSERT INTO ks.\"Tab\" (k, \"Name\") values(?, ?)");
    }

    #[test]
    fn tables_of_queries_get_their_keyspace() {
        for (text, expected) in [
            ("select * from t where a = 'from x'", "select * from ks.t where a = 'from x'"),
            ("SELECT a FROM other.t", "SELECT a FROM other.t"),
            ("UPDATE \"T\" SET a = ?", "UPDATE ks.\"T\" SET a = ?"),
            ("insert into t (a) values (?)", "insert into ks.t (a) values (?)"),
            ("delete a from t where k = ?", "delete a from ks.t where k = ?"),
        ] {
            assert_eq!(qualify(text, "ks"), expected);
        }
    }

    #[test]
    fn columns_that_do_not_exist_are_refused() {
        let mut spec = spec(OperationWork::Insert);
        spec.tables[0].columns.push(ColumnSpec { name: "missing".into(), ..ColumnSpec::default() });
        assert!(spec.plan(&[schema()]).unwrap_err().reason.contains("no column missing"));
        assert!(spec.plan(&[TableSchema::default()]).unwrap_err().reason.contains("there is no table ks.\"Tab\""));
        let mut odd = schema();
        odd.columns[2].kind = "duration".into();
        spec.tables[0].columns.clear();
        assert!(spec.plan(&[odd]).unwrap_err().reason.contains("duration"));
    }

    #[test]
    fn rows_that_do_not_repeat_are_not_validated() {
        let bind = |change: fn(&mut ColumnsSpec, &mut TableSchema), cql: &str| {
            let (mut spec, mut schema) = (spec(query(cql, true)), schema());
            schema.columns.remove(2);
            schema.columns.remove(2);
            change(&mut spec, &mut schema);
            let mut plan = spec.plan(&[schema]).unwrap();
            let described = |name: &str, kind: &str| (name.to_owned(), kind.to_owned());
            let results = [described("k", "int"), described("Name", "text"), described("s", "int")];
            let markers = [described("k", "int")];
            plan.bind(&spec, 0, &markers, &results)
                .map(|()| plan.operations[0].conditions.clone())
                .map_err(|error| error.reason)
        };
        let cql = "SELECT * FROM t WHERE k = ?";
        let whole = Condition { place: Place::Key(0), operator: Operator::Equal, marker: 0 };
        assert_eq!(bind(|_, _| {}, cql), Ok(vec![whole]));
        for (change, reason) in [
            (
                (|spec, _| spec.tables[0].insert.select = crate::distribution::parse_ratio("fixed(1)/2").unwrap())
                    as fn(&mut ColumnsSpec, &mut TableSchema),
                "select:",
            ),
            (|_, schema| schema.columns.push(column("l", "regular", -1, "list<int>", false)), "frozen"),
            (|_, schema| schema.columns.push(column("l", "regular", -1, "list<int>", true)), "size: fixed(N)"),
        ] {
            let error = bind(change, cql).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(bind(|_, _| {}, "SELECT * FROM t WHERE k = ? LIMIT 3").unwrap_err().contains("must be SELECT"));
    }

    #[test]
    fn large_logged_batches_are_refused() {
        let mut spec = spec(OperationWork::Insert);
        let cluster = crate::distribution::parse_spec("fixed(70000)").ok();
        spec.tables[0].columns.push(ColumnSpec { name: "Name".into(), cluster, ..ColumnSpec::default() });
        assert!(spec.plan(&[schema()]).unwrap_err().reason.contains("a logged batch has at most 65535"));
        spec.tables[0].insert.batch = BatchType::Unlogged;
        assert!(spec.plan(&[schema()]).is_ok());
    }
}
