//! Auto mode: its steps, the condition that ends it, and the table at the end.

use super::results::Summary;
use super::rows::{Interval, render_header, render_row};
use crate::compat::Compat;
use crate::number::format_decimals;

/// The number of clients in the next step: doubled if below 16, otherwise multiplied by 1.5 and truncated.
#[must_use]
pub const fn next_threads(threads: u32) -> u32 {
    if threads < 16 { threads.saturating_mul(2) } else { threads.saturating_add(threads / 2) }
}

/// The mean relative gain over the last `count` steps; `None` if there are fewer steps.
#[must_use]
pub fn average_improvement(rates: &[f64], count: usize) -> Option<f64> {
    let steps = rates.get(rates.len().checked_sub(count + 1)?..)?;
    Some(steps.windows(2).map(|pair| (pair[1] - pair[0]) / pair[0]).sum::<f64>() / count as f64)
}

/// Whether the tool stops `auto`: the last three steps gained nothing, or the last five gained less than `target` (−1
/// without `err<`).
#[must_use]
pub fn is_saturated(rates: &[f64], target: f64) -> bool {
    average_improvement(rates, 3).is_some_and(|gain| gain < 0.0)
        || average_improvement(rates, 5).is_some_and(|gain| gain < target)
}

/// The line that the tool prints after each step except the first.
#[must_use]
pub fn render_improvement(earlier_threads: u32, rates: &[f64]) -> String {
    let gain = average_improvement(rates, 1).unwrap_or(f64::NAN);
    format!("Improvement over {earlier_threads} threadCount: {}%\n", format_decimals(100.0 * gain, 0))
}

/// The table at the end. For each step, identified by its number of clients, it has a row for each kind of operation
/// and a row for all kinds. `uncertainty` is the relative standard error at the end of the step.
#[must_use]
pub fn render_auto_table(steps: &[(u32, Summary, f64)], compat: Compat) -> String {
    let names: Vec<String> = steps.iter().map(|(threads, ..)| format!("{threads} threadCount")).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let mut text = render_header(&format!("{:>width$}, ", "id"), compat);
    for (name, (_, summary, uncertainty)) in names.iter().zip(steps) {
        let mut kinds: Vec<_> = summary.kinds.iter().collect();
        kinds.sort_by(|a, b| a.0.cmp(&b.0));
        let kinds = kinds.into_iter().map(|(kind, figures)| (kind.as_str(), figures));
        for (kind, figures) in kinds.chain([("total", &summary.total)]) {
            let interval = Interval {
                name: kind.to_owned(),
                figures: *figures,
                total_operations: figures.operations,
                run_time_ms: summary.run_time_ms,
            };
            text.push_str(&render_row(&format!("{name:>width$}, "), &interval, &summary.garbage, *uncertainty, compat));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rows::{Figures, Garbage};
    use super::*;

    #[test]
    fn steps_match_the_tool() {
        let steps: Vec<u32> = std::iter::successors(Some(4), |threads| Some(next_threads(*threads))).take(13).collect();
        assert_eq!(steps, [4, 8, 16, 24, 36, 54, 81, 121, 181, 271, 406, 609, 913]);
    }

    /// Source: `Command.java` of 4.0-alpha2.
    #[test]
    fn reads_have_no_pause_between_steps() {
        use crate::settings::Command::{CounterRead, CounterWrite, Mixed, Read, Write};
        let pauses = [Read, Write, Mixed, CounterWrite, CounterRead].map(crate::settings::Command::updates);
        assert_eq!(pauses, [false, true, true, true, false]);
    }

    #[test]
    fn saturation_needs_three_steps_without_gain() {
        assert!(!is_saturated(&[100.0, 90.0, 80.0], -1.0));
        assert!(is_saturated(&[100.0, 90.0, 80.0, 70.0], -1.0));
        assert!(!is_saturated(&[100.0, 110.0, 120.0, 130.0], -1.0));
        assert!(is_saturated(&[100.0, 101.0, 102.0, 103.0, 104.0, 105.0], 0.02));
        assert_eq!(render_improvement(4, &[100.0, 137.0]), "Improvement over 4 threadCount: 37%\n");
    }

    #[test]
    fn table_has_a_prefix_of_its_width() {
        let figures = Figures { operations: 10, seconds: 1.0, ..Figures::default() };
        let summary = Summary {
            total: figures,
            kinds: vec![("WRITE".to_owned(), figures)],
            garbage: Garbage::default(),
            run_time_ms: 1_000,
        };
        let table = render_auto_table(&[(4, summary.clone(), 0.0), (16, summary, 0.0)], Compat::V4);
        let starts: Vec<&str> = table.lines().map(|line| &line[..22]).collect();
        assert_eq!(
            starts,
            [
                "            id, type  ",
                " 4 threadCount, WRITE,",
                " 4 threadCount, total,",
                "16 threadCount, WRITE,",
                "16 threadCount, total,",
            ]
        );
    }
}
