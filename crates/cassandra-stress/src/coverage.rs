//! Determines which part of the population has rows, by reading a sample of keys.

use std::collections::BTreeMap;

use loadstone_session::Options;
use loadstone_stores::cassandra::count_rows;
use loadstone_stress::explain::explain_missing_row;
use loadstone_stress::settings::{Settings, StressCommand};
use loadstone_stress::statements::table_of;
use loadstone_wire::event::MissingRows;

use super::translate;

/// Number of rows requested per round.
const ROUND: i64 = 16;

/// Explains why reads found no row, provided that the existing rows start at the beginning of the population and have
/// no gaps.
pub fn explain_coverage(settings: &Settings, options: &Options, missing: MissingRows) -> Option<String> {
    let command = settings
        .operations()
        .iter()
        .map(|(command, _)| *command)
        .find(|command| matches!(command, StressCommand::Read | StressCommand::CounterRead))?;
    let spec = translate::stress_spec(settings, BTreeMap::default()).ok()?;
    let mut generators = spec.generators(0).ok()?;
    let (first, last) = generators.population.range();
    let table = format!("\"{}\".\"{}\"", settings.schema.keyspace, table_of(command));
    let exist = |numbers: &[i64]| -> Option<Vec<bool>> {
        let mut key = Vec::new();
        let mut statements = Vec::new();
        for number in numbers {
            key.clear();
            generators.rows.append_key(generators.population.seed_of(*number), &mut key);
            let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            statements.push(format!("SELECT key FROM {table} WHERE key = 0x{hex}"));
        }
        Some(count_rows(options, &statements).ok()?.into_iter().map(|rows| rows > 0).collect())
    };
    let written = match find_end(first, last, exist) {
        Coverage::Unknown => return None,
        Coverage::Nothing if has_rows(options, &table) => {
            let reason = "the table has rows, but none of these partitions; use the write's -pop, -compat, keysize= and -insert revisit=";
            return Some(format!("{} reads found no row: {reason}", missing.reads));
        }
        Coverage::Nothing => None,
        Coverage::Through(end) => Some((first, end)),
    };
    explain_missing_row(missing.number, written).map(|reason| format!("{} reads found no row: {reason}", missing.reads))
}

/// Whether a table has any row.
fn has_rows(options: &Options, table: &str) -> bool {
    count_rows(options, &[format!("SELECT key FROM {table} LIMIT 1")])
        .is_ok_and(|rows| rows.iter().any(|rows| *rows > 0))
}

/// The numbers in the population that have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coverage {
    /// No numbers.
    Nothing,
    /// All numbers from the first to this number.
    Through(i64),
    /// Unknown, because the server does not answer, or because there are gaps.
    Unknown,
}

/// Finds the last number with a row, if the numbers with rows start at the beginning of the population.
fn find_end(first: i64, last: i64, mut exist: impl FnMut(&[i64]) -> Option<Vec<bool>>) -> Coverage {
    // The sample covers the whole range, because the rows may begin after the first number.
    let sample = (0..ROUND).map(|n| {
        (i128::from(first) + (i128::from(last) - i128::from(first)) * i128::from(n) / i128::from(ROUND - 1)) as i64
    });
    match exist(&sample.collect::<Vec<_>>()).as_deref() {
        Some([true, ..]) => {}
        Some(states) if !states.contains(&true) => return Coverage::Nothing,
        _ => return Coverage::Unknown,
    }
    let (mut low, mut high) = (first, last.saturating_add(1));
    while high - low > 1 {
        let step = ((high - low) / ROUND).max(1);
        let numbers: Vec<i64> = (1..=ROUND).map(|n| low + n * step).take_while(|number| *number < high).collect();
        let Some(states) = exist(&numbers) else { return Coverage::Unknown };
        let count = states.iter().take_while(|exists| **exists).count();
        if states[count..].iter().any(|exists| *exists) {
            return Coverage::Unknown;
        }
        if let Some(missing) = numbers.get(count) {
            high = *missing;
        }
        if let Some(present) = count.checked_sub(1).and_then(|at| numbers.get(at)) {
            low = *present;
        }
    }
    Coverage::Through(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_written_range_is_found() {
        for (first, last) in [(1, 1), (1, 2), (1, 1_000_000), (-5, 40), (1, i64::MAX - 1)] {
            for end in [first, first + 1, first + 17, last / 2, last - 1, last] {
                let end = end.clamp(first, last);
                let result = find_end(first, last, |numbers| Some(numbers.iter().map(|n| *n <= end).collect()));
                assert_eq!(result, Coverage::Through(end), "{first}..{last}");
            }
        }
    }

    #[test]
    fn gaps_and_empty_tables_are_recognised() {
        let find =
            |exists: fn(i64) -> bool| find_end(1, 100, |numbers| Some(numbers.iter().map(|n| exists(*n)).collect()));
        assert_eq!(find(|_| false), Coverage::Nothing);
        assert_eq!(find(|n| n > 50), Coverage::Unknown);
        assert_eq!(find(|n| !(20..60).contains(&n)), Coverage::Unknown);
        assert_eq!(find_end(1, 100, |_| None), Coverage::Unknown);
    }
}
