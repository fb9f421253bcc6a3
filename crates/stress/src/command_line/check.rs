//! Checks whether arguments that can be parsed can also be run.

use crate::distribution::Spec;
use crate::population::{Population, is_single_partition, seed_multiplier};
use crate::settings::{Settings, StressCommand};

/// Maximum size of a row, bytes: a whole row is generated in memory.
const ROW_BYTES_MAX: i64 = 1 << 31;

/// Refuses arguments that the tool accepts before it exits with a stack trace, and warns about effects that are silent
/// in the tool.
pub(super) fn check_settings(settings: &mut Settings) -> Result<(), (String, String)> {
    let fail = |message: String, hint: &str| Err((message, hint.to_owned()));
    let range_hint = "write the smaller bound first";
    let Settings { command, population, insert, columns, compat, warnings, .. } = settings;
    let has_increments = command.command == StressCommand::CounterWrite
        || command.ratios.iter().any(|(operation, _)| *operation == StressCommand::CounterWrite);
    // Distributions that are not used are accepted unchecked, as in the tool.
    let specs = [
        ("add=", has_increments.then_some(&command.add.spec)),
        ("clustering=", command.clustering.as_ref().map(|named| &named.spec)),
        ("visits=", Some(&insert.visits)),
        ("row-population-ratio=", Some(&insert.row_population_ratio.distribution)),
    ];
    for (name, spec) in specs {
        if let Some(Err(message)) = spec.map(Spec::sampler) {
            return fail(format!("{name}: {message}"), range_hint);
        }
    }
    let multiplier = seed_multiplier(&insert.revisit, *compat)
        .map_err(|message| (message, "revisit= takes a range between 0 and 2147483646".to_owned()))?;
    if is_single_partition(multiplier) {
        warnings.push(format!(
            "-insert revisit={} has at most 1084 values: every partition has the same key, as in the tool (CASSANDRA-12744)",
            insert.revisit
        ));
    }
    let one_visit = insert.visits.is_fixed() && insert.visits.range().is_ok_and(|range| range.0 <= 1);
    let is_user = command.command == StressCommand::User;
    if !one_visit && !is_user {
        warnings.push("-insert visits= has no effect: a partition of the predefined tables is one row".to_owned());
    }
    if !is_user && (insert.partitions.is_some() || insert.select_ratio.is_some() || insert.batch_type.is_some()) {
        warnings.push(
            "-insert partitions=, select-ratio= and batchtype= have no effect: the predefined commands write one row at a time"
                .to_owned(),
        );
    }
    if let Err(message) = Population::new(&population.selection, &insert.revisit, *compat, population.share, 0) {
        let hint =
            if message.starts_with("segment=") { "the first of four segments is segment=0/4" } else { range_hint };
        return fail(message, hint);
    }
    if command.command == StressCommand::Mixed && command.ratios.iter().all(|(_, weight)| *weight <= 0.0) {
        return fail(
            "Must specify at least one command with a non-zero ratio".to_owned(),
            "write ratio(read=1,write=1)",
        );
    }
    if columns.count.as_ref().is_some_and(|count| !count.is_fixed()) {
        return fail(
            "Variable column counts are not implemented for CQL".to_owned(),
            "use -col n=fixed(N), with -insert row-population-ratio= for rows with nulls",
        );
    }
    let (least, greatest) =
        columns.size.range().map_err(|message| (format!("size=: {message}"), range_hint.to_owned()))?;
    let bytes = greatest.saturating_mul(columns.names.len().max(1) as i64).saturating_add(i64::from(command.key_bytes));
    if least < 0 || bytes > ROW_BYTES_MAX {
        return fail(
            format!("-col size= must give rows of 0 to {ROW_BYTES_MAX} bytes, got {least} to {bytes}"),
            "use smaller values",
        );
    }
    if command.consistency.ends_with("SERIAL") {
        warnings.push(format!(
            "cl={} sets only the level of conditional updates, as in the tool; all else uses the default LOCAL_ONE",
            command.consistency
        ));
    }
    let ignored = settings.list_ignored_options();
    settings.warnings.extend(ignored);
    Ok(())
}
