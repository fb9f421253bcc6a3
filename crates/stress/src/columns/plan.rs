//! Operations on tables, based on the server's descriptions of these tables.

use std::collections::BTreeMap;

use super::statement::{insert_text, parse_condition_columns, parse_conditions, qualify};
use super::{
    BatchType, ColumnSpec, ColumnsSpec, Fields, InsertSpec, OperationWork, Part, SpecFault, TableSpec, invalid,
};
use crate::cql::{CqlType, quote};
use crate::distribution::{RatioSpec, Spec};
use crate::partition::{Column, ColumnPlace, PartitionGenerator, PartitionLayout};
use crate::spec::Invalid;
use crate::value::ValueSpecs;

/// Maximum number of rows in a batch: the protocol counts the statements of a batch in 16 bits.
pub const BATCH_ROWS_MAX: usize = 65_535;
/// Maximum number of rows in a partition whose rows are compared.
const VALIDATED_ROWS_MAX: f64 = 1e6;

/// A table as described by the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSchema {
    /// The columns of the table, in any order.
    pub columns: Vec<SchemaColumn>,
}

/// A column as described by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaColumn {
    /// The column's name.
    pub name: String,
    /// `partition_key`, `clustering`, `static` or `regular`.
    pub role: String,
    /// The column's position within the partition key or the clustering key; −1 for other columns.
    pub position: i32,
    /// The column's type. User-defined types are represented as tuples.
    pub kind: String,
    /// Whether a value can only be written as a whole.
    pub is_frozen: bool,
}

/// A spec whose columns have known types.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The columns of each table.
    pub layouts: Vec<PartitionLayout>,
    /// The operations with a positive weight.
    pub operations: Vec<PlannedOperation>,
}

/// An operation on a table.
#[derive(Clone, Debug)]
pub struct PlannedOperation {
    /// The operation's name.
    pub name: String,
    /// The operation's weight.
    pub weight: f64,
    /// The index of the operation's table.
    pub table: usize,
    /// The work that the operation does.
    pub work: OperationWork,
    /// The text of the operation's statement.
    pub text: String,
    /// Whether the statement writes.
    pub writes: bool,
    /// The source of the value for each marker; known once the server has prepared the statement.
    pub markers: Vec<ColumnPlace>,
    /// For each result column, the table's column with the same name, if any; empty if rows are not compared.
    pub results: Vec<Option<ColumnPlace>>,
    /// The conditions of a validated query: a column, an operator, and the marker of the value.
    pub conditions: Vec<Condition>,
    /// The read of the columns that `IF` compares with a `?`; known once the server has prepared the statement.
    pub condition_read: Option<ConditionRead>,
}

/// The read before a conditional write. The conditions of the write use the values that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionRead {
    /// The text of the statement that reads the columns.
    pub text: String,
    /// The columns of the primary key, which supply the values for the statement's markers.
    pub keys: Vec<ColumnPlace>,
    /// For each column read, the index of the marker that receives its value in the write.
    pub markers: Vec<usize>,
}

/// A condition of the form `column OPERATOR ?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column that is compared.
    pub place: ColumnPlace,
    /// `=`, `<`, `>`, `<=` or `>=`.
    pub operator: Operator,
    /// The index of the marker.
    pub marker: usize,
}

/// The operator that compares a column with a value.
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
    /// Whether the condition holds if comparing the column's value with the marker's value gives `order`.
    pub fn has_match(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Less => order.is_lt(),
            Self::Greater => order.is_gt(),
            Self::AtMost => order.is_le(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

impl ColumnsSpec {
    /// Plans a spec for the server's tables. `schemas` has the same order as the tables in the spec.
    ///
    /// # Errors
    /// A table or a column of the spec does not exist, values of a column's type cannot be generated, or a logged batch
    /// could have too many rows.
    pub fn plan(&self, schemas: &[TableSchema]) -> Result<Plan, SpecFault> {
        let layouts = self.tables.iter().zip(schemas).map(|(table, schema)| layout(table, schema));
        let layouts: Vec<PartitionLayout> = layouts.collect::<Result<_, _>>()?;
        let mut operations = Vec::new();
        for operation in self.operations.iter().filter(|operation| operation.weight > 0.0) {
            let fault = |invalid| SpecFault { part: Part::Operation(operation.name.clone()), invalid };
            let at = self.table_of(operation).map_err(fault)?;
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
                OperationWork::TokenRange { columns, .. } => {
                    let keys: Vec<String> = layout.key.iter().map(|column| quote(&column.name)).collect();
                    let keys = keys.join(", ");
                    let columns = match columns.trim() {
                        "" | "*" => all_names(layout).join(", "),
                        columns => columns.to_owned(),
                    };
                    let text = format!(
                        "SELECT token({keys}), {columns} FROM {} WHERE token({keys}) > ? AND token({keys}) <= ?",
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
                condition_read: None,
            });
        }
        self.check_rows(&layouts, &operations)?;
        Ok(Plan { layouts, operations })
    }

    /// Refuses logged batches with more rows than the protocol allows.
    fn check_rows(&self, layouts: &[PartitionLayout], operations: &[PlannedOperation]) -> Result<(), SpecFault> {
        for operation in operations.iter().filter(|operation| operation.work == OperationWork::Insert) {
            let invalid = |field, reason: String| SpecFault {
                part: Part::Operation(operation.name.clone()),
                invalid: invalid(field, reason),
            };
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
}

/// The name and type of a statement's marker or result column, as described by the server.
pub type Described = (String, String);

impl Plan {
    /// Sets the sources of an operation's values. `markers` and `results` are the names and types of the statement's
    /// markers and result columns.
    ///
    /// # Errors
    /// A marker does not match a column of the table, a condition after `IF` is not supported, or the rows cannot be
    /// compared.
    pub fn bind(
        &mut self,
        spec: &ColumnsSpec,
        at: usize,
        markers: &[Described],
        results: &[Described],
    ) -> Result<(), SpecFault> {
        let operation = &mut self.operations[at];
        let layout = &self.layouts[operation.table];
        let fault = |reason: String| SpecFault {
            part: Part::Operation(operation.name.clone()),
            invalid: invalid("operations", format!("{}: {reason}", operation.name)),
        };
        let refuse = |reason: String| Err(fault(reason));
        if matches!(operation.work, OperationWork::TokenRange { .. }) {
            return Ok(());
        }
        let mut places = Vec::new();
        for (name, kind) in markers {
            let Some(place) = layout.place(name) else {
                return refuse(format!(
                    "a ? is for {name}, which is not a column of the table; write its value in the statement"
                ));
            };
            let column = layout.column(place);
            let is_same = CqlType::parse(kind).is_ok_and(|kind| kind == column.kind);
            if !is_same {
                return refuse(format!("a ? for {name} has the type {kind}, but the column has {}", column.kind));
            }
            places.push(place);
        }
        let condition_read = match operation.work {
            OperationWork::Query { fields, .. } => {
                match read_conditions(&operation.text, fields, layout, markers, &spec.tables[operation.table]) {
                    Ok(read) => read,
                    Err(reason) => return refuse(reason),
                }
            }
            _ => None,
        };
        let (validates, is_query) = match operation.work {
            OperationWork::Validate => (true, false),
            OperationWork::Query { validates, .. } => (validates, true),
            _ => (false, false),
        };
        let mut conditions = Vec::new();
        let mut columns = Vec::new();
        if validates {
            if operation.writes {
                return refuse("validate: true applies only to SELECT".to_owned());
            }
            if let Some(reason) = find_unrepeatable(layout, &spec.tables[operation.table].insert) {
                return refuse(format!("rows cannot be compared: {reason}"));
            }
            let (_, rows, _) = layout.row_counts().map_err(fault)?;
            if rows > VALIDATED_ROWS_MAX {
                return refuse(format!(
                    "rows cannot be compared: a partition has up to {rows:.0} rows; the limit is {VALIDATED_ROWS_MAX}"
                ));
            }
            columns.extend(results.iter().map(|(name, _)| layout.place(name)));
            let missing = layout.clustering.iter().enumerate().find(|(at, column)| {
                let is_bound = places.contains(&ColumnPlace::Clustering(*at));
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
        operation.condition_read = condition_read;
        Ok(())
    }

    /// Creates a generator for each table.
    ///
    /// # Errors
    /// A distribution has no sampler.
    pub fn generators(&self, spec: &ColumnsSpec) -> Result<Vec<PartitionGenerator>, Invalid> {
        let generator = |layout| PartitionGenerator::new(layout, spec.compat, spec.order);
        let generators: Result<_, String> = self.layouts.iter().map(generator).collect();
        generators.map_err(|reason| invalid("tables", reason))
    }
}

/// The read for the columns whose conditions contain a `?`; `None` if there are no such columns.
fn read_conditions(
    text: &str,
    fields: Fields,
    layout: &PartitionLayout,
    markers: &[Described],
    table: &TableSpec,
) -> Result<Option<ConditionRead>, String> {
    let columns = parse_condition_columns(text)?;
    if columns.is_empty() {
        return Ok(None);
    }
    if fields != Fields::Samerow {
        return Err("a condition with a ? needs fields: samerow".to_owned());
    }
    let mut values = Vec::new();
    for column in &columns {
        // The last marker of a column belongs to the condition; an earlier marker may belong to an assignment.
        let marker = markers.iter().rposition(|(name, _)| name == column);
        values.push(marker.ok_or_else(|| format!("the condition of {column} has no ?"))?);
    }
    let keys = (0..layout.key.len()).map(ColumnPlace::Key);
    let keys: Vec<ColumnPlace> = keys.chain((0..layout.clustering.len()).map(ColumnPlace::Clustering)).collect();
    let columns: Vec<String> = columns.iter().map(|column| quote(column)).collect();
    let conditions: Vec<String> =
        keys.iter().map(|place| format!("{} = ?", quote(&layout.column(*place).name))).collect();
    let text = format!("SELECT {} FROM {} WHERE {}", columns.join(", "), table.full_name(), conditions.join(" AND "));
    Ok(Some(ConditionRead { text, keys, markers: values }))
}

/// The reason why the rows of a table are not a function of the partition; `None` if they are.
fn find_unrepeatable(layout: &PartitionLayout, insert: &InsertSpec) -> Option<String> {
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
        return Some("each write of a list or counter adds to its value; use a frozen list".to_owned());
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

fn all_names(layout: &PartitionLayout) -> Vec<String> {
    layout.key.iter().chain(&layout.clustering).chain(&layout.values).map(|column| quote(&column.name)).collect()
}

/// The columns of a table in the order in which the tool's statements list them: the key, then the remaining columns by
/// name.
fn layout(table: &TableSpec, schema: &TableSchema) -> Result<PartitionLayout, SpecFault> {
    let name = table.full_name();
    let refuse = |part: Part, reason: String| SpecFault { part, invalid: invalid("tables", reason) };
    let place = || Part::Table(table.name.clone());
    if schema.columns.is_empty() {
        return Err(refuse(place(), format!("there is no table {name}; define it, or create it first")));
    }
    let mut specs: BTreeMap<&str, &ColumnSpec> =
        table.columns.iter().map(|column| (column.name.as_str(), column)).collect();
    let mut layout = PartitionLayout::default();
    let mut sorted: Vec<&SchemaColumn> = schema.columns.iter().collect();
    sorted.sort_by(|a, b| (a.position, &a.name).cmp(&(b.position, &b.name)));
    for column in sorted {
        let kind = CqlType::parse(&column.kind)
            .map_err(|reason| refuse(place(), format!("column {} of {name}: {reason}", column.name)))?;
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
                // Adding the same elements to a set or a map again does not change it.
                layout.accumulates |=
                    kind == CqlType::Counter || (matches!(kind, CqlType::List(_)) && !column.is_frozen);
                &mut layout.values
            }
        };
        role.push(Column { name: column.name.clone(), kind, specs });
    }
    match specs.keys().next() {
        Some(missing) => {
            let part = Part::Column(table.name.clone(), (*missing).to_owned());
            Err(refuse(part, format!("{name} has no column {missing}")))
        }
        None => Ok(layout),
    }
}

#[cfg(test)]
mod tests;
