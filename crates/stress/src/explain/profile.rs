//! Describes user profiles.

use super::{
    describe_errors, describe_length, describe_population, describe_rate, describe_truncation, describe_warmup,
};
use crate::columns::{BatchType, ColumnsSpec, Fields, OperationSpec, OperationWork, TableSpec};
use crate::distribution::Spec;
use crate::number::format_count;
use crate::partition::mean;
use crate::settings::Settings;

/// Describes a run of user profiles: tables, operations, rows and batches. One fact per line.
#[must_use]
pub fn explain_profiles(settings: &Settings, spec: &ColumnsSpec) -> String {
    let mut lines = vec![describe_length(settings)];
    if spec.definitions.is_empty() {
        lines.push("Schema: nothing is created; the tables must exist.".to_owned());
    } else {
        lines.push("Schema: executed on every start; existing objects remain unchanged:".to_owned());
        lines.extend(
            spec.definitions.iter().map(|text| format!("  {}", text.split_whitespace().collect::<Vec<_>>().join(" "))),
        );
    }
    let statements: Vec<String> = spec.tables.iter().map(|table| format!("TRUNCATE {}", table.full_name())).collect();
    lines.extend(describe_truncation(settings, &statements));
    for table in &spec.tables {
        lines.extend(describe_table(table));
    }
    let total: f64 = spec.operations.iter().map(|operation| operation.weight).sum();
    lines.push(format!("Operations at {}:", settings.level()));
    for operation in &spec.operations {
        let table = spec.tables.iter().find(|table| table.name == operation.table);
        lines.push(format!(
            "  {} {:.0} %: {}",
            operation.name,
            100.0 * operation.weight / total,
            table.map_or_else(String::new, |table| describe_operation(operation, table, spec.visits))
        ));
    }
    if let (Some(clustering), true) = (&spec.clustering, spec.operations.len() > 1) {
        lines.push(format!("  Consecutive operations with the same name: {}.", describe(clustering)));
    }
    let generation = if settings.compat.multiplies_seeds() { "4.0 and later" } else { "3.x" };
    lines.push(format!("Data: as in cassandra-stress {generation}, generated for the server's column types."));
    lines.push(describe_population(settings));
    lines.extend(describe_warmup(settings));
    lines.push(describe_rate(settings));
    lines.push(describe_errors(settings));
    lines.extend(settings.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    lines.join("\n") + "\n"
}

fn describe(spec: &Spec) -> String {
    match (spec, spec.range()) {
        (Spec::Fixed { value }, _) => format_count(*value),
        (_, Ok((min, max))) => {
            let mean = mean(Some(spec)).unwrap_or_default();
            format!("{} to {}, {mean:.1} on average", format_count(min), format_count(max))
        }
        (_, Err(reason)) => reason,
    }
}

fn describe_table(table: &TableSpec) -> Vec<String> {
    let mut lines = vec![format!("Table {}.{}:", table.keyspace, table.table)];
    for column in &table.columns {
        let parts = [
            column.population.as_ref().map(|spec| format!("generated from the numbers {}", describe(spec))),
            column.size.as_ref().map(|spec| format!("size {}", describe(spec))),
            column
                .cluster
                .as_ref()
                .map(|spec| format!("{} values for each value of the preceding column", describe(spec))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        lines.push(format!("  {}: {}", column.name, parts.join("; ")));
    }
    lines.push(
        "  Columns that are not listed: 10^11 different values; texts and blobs of 4 to 8 characters or bytes."
            .to_owned(),
    );
    lines
}

fn describe_operation(operation: &OperationSpec, table: &TableSpec, visits: u32) -> String {
    match &operation.work {
        OperationWork::Insert => {
            let insert = &table.insert;
            let partitions = match &insert.partitions {
                None | Some(Spec::Fixed { value: 1 }) => "1 partition".to_owned(),
                Some(spec) => format!("{} partitions", describe(spec)),
            };
            let share = insert.select.as_ref().map_or_else(
                || "all rows".to_owned(),
                |ratio| format!("a random part of the rows ({} of {})", describe(&ratio.distribution), ratio.divisor),
            );
            let share = if visits > 1 { format!("{share} of one of {visits} parts of the partition") } else { share };
            let batch = match insert.batch {
                BatchType::Logged => "a logged batch",
                BatchType::Unlogged => "an unlogged batch",
                BatchType::Counter => "a counter batch",
            };
            let condition = insert.condition.as_ref().map_or_else(String::new, |text| format!(", {text}"));
            format!("writes {share} of {partitions}{condition}; several rows are sent as {batch}")
        }
        OperationWork::Validate => "reads a partition and compares it with the rows written".to_owned(),
        OperationWork::Query { cql, fields, validates } => {
            let source = match fields {
                Fields::Samerow => "values from one row",
                Fields::Multirow => "values from several rows of one partition",
            };
            let checks =
                if *validates { "; rows are compared with the rows written" } else { "; rows are not compared" };
            format!("{cql} ({source}{checks})")
        }
        OperationWork::TokenRange { columns, page_rows } => {
            format!("reads {columns} of a token range, {} rows at a time", format_count(i64::from(*page_rows)))
        }
    }
}
