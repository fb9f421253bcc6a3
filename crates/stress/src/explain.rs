//! Describes a run (`--explain`), and explains why a read found no row.

mod profile;

use std::collections::BTreeSet;

pub use profile::explain_profiles;

use crate::distribution::Spec;
use crate::number::format_count;
use crate::population::{Population, Selection};
use crate::settings::{DelayPolicy, Limit, RateSettings, RunLength, Settings, StressCommand, Truncate};
use crate::statements::{operation_statement, schema_statements, table_of, truncate_statements};

/// Describes a run in words: statements, rows, batches, partitions, and the rows that its reads need. One fact per
/// line.
#[must_use]
pub fn explain(settings: &Settings) -> String {
    let mut lines = vec![describe_length(settings)];
    lines.extend(describe_schema(settings));
    lines.extend(describe_truncation(settings, &truncate_statements(settings)));
    lines.extend(describe_operations(settings));
    lines.push(describe_data(settings));
    lines.push(describe_population(settings));
    lines.extend(describe_reads(settings));
    lines.extend(describe_warmup(settings));
    lines.push(describe_rate(settings));
    lines.push(describe_errors(settings));
    lines.extend(settings.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    lines.join("\n") + "\n"
}

/// Explains why a read found no row: `seed 760110 was never written; the write covered 1..380,212; use -pop
/// seq=1..380212`.
///
/// `written` is the range of numbers whose writes were acknowledged; `None` if there were none. The result is `None`
/// for a number within this range, because its row was lost or deleted.
#[must_use]
pub fn explain_missing_row(number: i64, written: Option<(i64, i64)>) -> Option<String> {
    match written {
        None => Some(format!("seed {number} was never written; nothing was written; run cassandra-stress write first")),
        Some((first, last)) if (first..=last).contains(&number) => None,
        Some((first, last)) => Some(format!(
            "seed {number} was never written; the write covered {}..{}; use -pop seq={first}..{last}",
            format_count(first),
            format_count(last)
        )),
    }
}

fn has_writes(settings: &Settings) -> bool {
    settings
        .operations()
        .iter()
        .any(|(command, _)| matches!(command, StressCommand::Write | StressCommand::CounterWrite))
}

fn describe_length(settings: &Settings) -> String {
    let name = settings.command.command.name();
    match settings.command.length {
        RunLength::Count(0) if settings.command.command.creates_schema() || settings.command.user.is_some() => {
            format!("{name}: creates the schema and performs no operation.")
        }
        RunLength::Count(0) => format!("{name}: performs no operation."),
        RunLength::Count(count) => format!("{name}: {} operations, each on one partition.", format_count(count)),
        RunLength::Duration { amount, unit } => {
            let unit = unit.name().to_lowercase();
            let unit = if amount == 1 { unit.trim_end_matches('s') } else { unit.as_str() };
            format!("{name}: operations for {} {unit}, each on one partition.", format_count(amount))
        }
        RunLength::Uncertainty { target, min, max } => format!(
            "{name}: operations until the relative standard error of the rate is below {target}, \
             after {min} to {max} intervals of {} ms.",
            settings.interval_ms()
        ),
    }
}

fn describe_schema(settings: &Settings) -> Vec<String> {
    let keyspace = &settings.schema.keyspace;
    if !settings.command.command.creates_schema() {
        let tables: BTreeSet<&str> = settings.operations().iter().map(|(command, _)| table_of(*command)).collect();
        let tables: Vec<String> = tables.iter().map(|table| format!("{keyspace}.{table}")).collect();
        return vec![format!("Schema: nothing is created; {} must exist.", tables.join(" and "))];
    }
    let statements = schema_statements(settings);
    let mut lines = vec![format!("Schema: created if missing, in keyspace {keyspace}:")];
    lines.extend(statements.iter().map(|text| format!("  {}", text.replace('\n', " ").trim())));
    if settings.schema.compression.is_none() {
        lines.push("  The tables are not compressed; -schema compression=LZ4Compressor compresses them.".to_owned());
    }
    lines
}

fn describe_truncation(settings: &Settings, statements: &[String]) -> Option<String> {
    let time = match settings.command.truncate {
        Truncate::Never => return None,
        Truncate::Once => "After the warm-up",
        Truncate::Always => "Before each step",
    };
    Some(format!("{time}: {}.", statements.join("; ")))
}

fn describe_operations(settings: &Settings) -> Vec<String> {
    let operations = settings.operations();
    let sum: f64 = operations.iter().map(|(_, weight)| weight).sum();
    let prepared = if settings.mode.prepared { "prepared" } else { "not prepared" };
    let mut lines = vec![format!(
        "Statements ({prepared}, at {}; one row of one partition each, without batches):",
        settings.level()
    )];
    for (command, weight) in &operations {
        let share = if operations.len() > 1 { format!(" {:.0} %", 100.0 * weight / sum) } else { String::new() };
        lines.push(format!("  {}{share}: {}", command.name(), operation_statement(settings, *command)));
    }
    if settings.command.clustering.is_some() {
        lines.push("  The order of the operations is random; clustering= is ignored.".to_owned());
    }
    lines
}

fn describe_spec(spec: &Spec) -> String {
    match (spec, spec.range()) {
        (Spec::Fixed { value }, _) => format_count(*value),
        (_, Ok((min, max))) => format!("{} to {}", format_count(min), format_count(max)),
        (_, Err(reason)) => reason,
    }
}

fn describe_data(settings: &Settings) -> String {
    let columns = settings.columns.names.len();
    let generation = if settings.compat.multiplies_seeds() { "4.0 and later" } else { "3.x" };
    let nulls = match &settings.insert.row_population_ratio.distribution {
        spec if spec.is_fixed() => {
            let share = settings.insert.row_population_ratio.share(spec.range().map_or(0.0, |range| range.0 as f64));
            let nulls = (1..=columns).filter(|column| *column as f64 / columns as f64 > share).count();
            if nulls > 0 { format!(", the last {nulls} null (tombstones)") } else { String::new() }
        }
        _ => ", some of them null (tombstones)".to_owned(),
    };
    let counters =
        settings.operations().iter().all(|(command, _)| table_of(*command) == crate::statements::COUNTER_TABLE);
    if counters {
        return format!(
            "Rows: a key of {} bytes and {columns} counters, incremented by {}; keys of cassandra-stress {generation}.",
            settings.command.key_bytes, settings.command.add.text
        );
    }
    format!(
        "Rows: a key of {} bytes and {columns} values of {} bytes{nulls}; the data of cassandra-stress {generation}.",
        settings.command.key_bytes,
        describe_spec(&settings.columns.size)
    )
}

fn population_of(settings: &Settings) -> Option<Population> {
    let population = &settings.population;
    Population::new(&population.selection, &settings.insert.revisit, settings.compat, population.share, 0).ok()
}

fn describe_population(settings: &Settings) -> String {
    let Some(population) = population_of(settings) else { return "Partitions: none.".to_owned() };
    let (first, last) = population.range();
    let range = format!("{}..{}", format_count(first), format_count(last));
    let Selection::Sequence { wrap, .. } = &settings.population.selection else {
        let Selection::Distribution(spec) = &settings.population.selection else { return String::new() };
        return format!("Partitions: numbers drawn from {range} ({spec}).");
    };
    let length = population.length().unwrap_or(1);
    let share = settings
        .population
        .share
        .map_or_else(String::new, |share| format!(" (share {} of {}, counted from 0)", share.part, share.parts));
    let count = settings.command.length.count();
    let rounds = match u64::try_from(count) {
        Ok(count) if count < length => format!("; the run reaches the first {}", format_count(count)),
        Ok(count) if count == length => ", each once".to_owned(),
        Ok(count) if *wrap => format!(", {:.1} times each", count as f64 / length as f64),
        Err(_) if *wrap => ", again from the start after the last".to_owned(),
        _ => "; the run ends with the last of them".to_owned(),
    };
    format!("Partitions: numbers {range}{share} in order{rounds}.")
}

fn describe_reads(settings: &Settings) -> Vec<String> {
    let reads: Vec<StressCommand> = settings
        .operations()
        .iter()
        .map(|(command, _)| *command)
        .filter(|command| matches!(command, StressCommand::Read | StressCommand::CounterRead))
        .collect();
    let (Some(population), false) = (population_of(settings), reads.is_empty()) else { return Vec::new() };
    if let Selection::Sequence { read_lookback: Some(spec), .. } = &settings.population.selection {
        return vec![format!("Reads: numbers written {} operations before.", describe_spec(spec))];
    }
    let (first, last) = population.range();
    let writer = if reads.contains(&StressCommand::Read) { "write" } else { "counter_write" };
    let outcome = if settings.errors.skip_read_validation {
        "answers are not compared"
    } else if settings.errors.ignore {
        "a read of a missing row is an error"
    } else {
        "a read of a missing row ends the run"
    };
    let count = i128::from(last) - i128::from(first) + 1;
    let mut lines = vec![format!(
        "Rows to be read: all of {}..{} must have been written before; {outcome}. To write them: {writer} n={count} -pop seq={first}..{last}",
        format_count(first),
        format_count(last)
    )];
    if has_writes(settings) {
        lines.push("  Writes of this run take their partitions from the same numbers.".to_owned());
    }
    lines
}

fn describe_warmup(settings: &Settings) -> Option<String> {
    match settings.warmup_operations() {
        0 => None,
        count => {
            let user = settings.command.user.as_ref();
            let user = user.map(|user| user.operations.iter().filter(|(_, weight)| *weight > 0.0).count());
            let kinds = user.unwrap_or_else(|| settings.operations().len()) as u64;
            let effect = if has_writes(settings) { "; it writes to the tables" } else { "" };
            Some(format!(
                "Warm-up: {} operations before the run, not counted and without a rate limit{effect}.",
                format_count(count.saturating_mul(kinds))
            ))
        }
    }
}

fn describe_rate(settings: &Settings) -> String {
    match settings.rate {
        RateSettings::Steps { auto, min_threads, max_threads } => format!(
            "Clients: steps from {min_threads} to {max_threads}{}, each a whole run, as fast as the answers arrive.",
            if auto { " until the throughput no longer grows" } else { "" }
        ),
        RateSettings::Threads { threads, limit } => {
            let rate = match limit {
                Limit::None => "as fast as the answers arrive".to_owned(),
                Limit::Throttle(rate) => {
                    format!("at most {} partitions per second; service time is the printed latency", format_count(rate))
                }
                Limit::Fixed(rate) => {
                    format!("{} partitions per second; response time is the printed latency", format_count(rate))
                }
            };
            format!("Clients: {threads}, one operation in flight each, {rate}.")
        }
    }
}

fn describe_errors(settings: &Settings) -> String {
    let errors = &settings.errors;
    let outcome = if errors.ignore { "is counted as an error" } else { "ends the run" };
    let pause_ms = errors.pause_ms();
    let tries = match (errors.tries, errors.delay_policy) {
        (1, _) => "1 try".to_owned(),
        (tries, _) if !errors.has_delays() => format!("{tries} tries, on average {pause_ms} ms apart"),
        (tries, DelayPolicy::Constant) => format!("{tries} tries, at least {pause_ms} ms apart"),
        (tries, policy) => {
            format!("{tries} tries, {pause_ms} to {} ms apart ({} growth)", errors.max_delay_ms, policy.name())
        }
    };
    format!("Errors: an operation has {tries}; a failed operation {outcome}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{CommandLineRequest, parse};

    fn explain_line(line: &str) -> String {
        match parse(&line.split(' ').collect::<Vec<_>>()).unwrap() {
            CommandLineRequest::Run(settings) => explain(&settings),
            CommandLineRequest::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn write_is_explained() {
        assert_eq!(
            explain_line("write n=200000 cl=QUORUM -rate threads=20 throttle=500/s -col n=fixed(1) -node a,b,c"),
            "\
write: 200,000 operations, each on one partition.
Schema: created if missing, in keyspace keyspace1:
  CREATE KEYSPACE IF NOT EXISTS \"keyspace1\" WITH replication = {'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor' : '1'} AND durable_writes = true;
  USE \"keyspace1\"
  CREATE TABLE IF NOT EXISTS standard1 (key blob PRIMARY KEY  , \"C0\" blob) WITH compression = {};
  CREATE TABLE IF NOT EXISTS counter1 (key blob PRIMARY KEY  , \"C0\" counter) WITH compression = {};
  The tables are not compressed; -schema compression=LZ4Compressor compresses them.
Statements (prepared, at QUORUM; one row of one partition each, without batches):
  write: UPDATE \"standard1\" SET \"C0\" = ? WHERE KEY=?
Rows: a key of 10 bytes and 1 values of 34 bytes; the data of cassandra-stress 4.0 and later.
Partitions: numbers 1..200,000 in order, each once.
Warm-up: 150,000 operations before the run, not counted and without a rate limit; it writes to the tables.
Clients: 20, one operation in flight each, at most 500 partitions per second; service time is the printed latency.
Errors: an operation has 10 tries, on average 50 ms apart; a failed operation ends the run.
"
        );
    }

    #[test]
    fn read_names_the_rows_it_needs() {
        let text = explain_line("read duration=10m cl=LOCAL_ONE -rate threads=20 -compat 3.0");
        for line in [
            "read: operations for 10 minutes, each on one partition.\n",
            "Schema: nothing is created; keyspace1.standard1 must exist.\n",
            "Rows to be read: all of 1..1,000,000 must have been written before; a read of a missing row ends the run. To write them: write n=1000000 -pop seq=1..1000000\n",
            "the data of cassandra-stress 3.x.\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
    }

    #[test]
    fn mixture_has_shares() {
        let text = explain_line(
            "mixed ratio(write=1,read=3) n=1000 -pop seq=1..100 -insert row-population-ratio=fixed(40)/100",
        );
        for line in [
            "  write 25 %: UPDATE",
            "  read 75 %: SELECT",
            "Partitions: numbers 1..100 in order, 10.0 times each.\n",
            "clustering= is ignored",
            "the last 3 null (tombstones)",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn every_command_states_its_truncation() {
        for line in ["write n=8", "read n=8", "mixed n=8"] {
            let text = explain_line(&format!("{line} truncate=once"));
            assert!(text.contains("After the warm-up: TRUNCATE keyspace1.standard1"), "{text}");
        }
        let text = explain_line("read n=0");
        assert!(text.starts_with("read: performs no operation.\nSchema: nothing is created;"), "{text}");
    }

    #[test]
    fn shares_and_ends_are_explained() {
        let text = explain_line("write duration=1m -pop seq=1..100 no-wrap segment=1/4 -rate threads=1");
        assert!(text.contains("Partitions: numbers 26..50 (share 1 of 4, counted from 0) in order; the run ends with the last of them.\n"), "{text}");
    }

    #[test]
    fn pauses_and_levels_are_those_of_the_run() {
        let text = explain_line("counter_read duration=1h cl=SERIAL -errors retries=1 min-delay-ms=5 max-delay-ms=9");
        for line in [
            "counter_read: operations for 1 hour, each on one partition.\n",
            "Statements (prepared, at LOCAL_ONE;",
            "Errors: an operation has 2 tries, at least 5 ms apart; a failed operation ends the run.\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let text = explain_line("write n=5 -errors delay-policy=linear min-delay-ms=5 max-delay-ms=9");
        assert!(text.contains("an operation has 10 tries, 5 to 9 ms apart (linear growth);"), "{text}");
        let text = explain_line("write n=5 -errors retries=0 -compat 5");
        assert!(text.contains("Errors: an operation has 1 try; "), "{text}");
    }

    #[test]
    fn missing_row_names_the_written_range() {
        assert_eq!(
            explain_missing_row(760_110, Some((1, 380_212))).unwrap(),
            "seed 760110 was never written; the write covered 1..380,212; use -pop seq=1..380212"
        );
        assert_eq!(explain_missing_row(5, Some((1, 10))), None);
        assert!(explain_missing_row(5, None).unwrap().contains("nothing was written"));
    }
}
