//! Auto mode: its steps, the condition that ends it, and the table at the end.

use super::results::Summary;
use super::rows::{Interval, render_header, render_row};
use crate::compat::Compat;
use crate::number::{format_decimals, group_thousands};

/// The number of clients in the next step: doubled if below 16, otherwise multiplied by 1.5 and truncated.
#[must_use]
pub const fn next_threads(threads: u32) -> u32 {
    if threads < 16 { threads.saturating_mul(2) } else { threads.saturating_add(threads / 2) }
}

/// The mean of the last `count` relative gains; `None` if `rates` has `count` or fewer rates.
#[must_use]
pub fn average_improvement(rates: &[f64], count: usize) -> Option<f64> {
    let steps = rates.get(rates.len().checked_sub(count + 1)?..)?;
    Some(steps.windows(2).map(|pair| (pair[1] - pair[0]) / pair[0]).sum::<f64>() / count as f64)
}

/// The share of the highest throughput at which the lab's search, too, considers a system saturated.
const PLATEAU: f64 = 0.95;
/// Number of steps without a gain after which `auto` ends.
const STEPS: usize = 3;

/// Whether `auto` ends: the highest throughput of the steps before the last three is at least 95 % of the highest
/// throughput of all steps.
///
/// The tool ends `auto` if the mean of the last three relative gains is negative. This mean is positive on a plateau
/// with noise (from 100 to 150 and back is a gain of 8 %), and one slow step makes it negative below saturation.
#[must_use]
pub fn is_saturated(rates: &[f64]) -> bool {
    let highest = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    rates.len() > STEPS && highest(&rates[..rates.len() - STEPS]) >= PLATEAU * highest(rates)
}

/// The line about the smallest number of clients with at least 95 % of the highest throughput. `rates` has a rate for
/// each number of clients in `threads`. `None` if there are fewer than two steps, or if all rates are 0.
#[must_use]
pub fn render_saturation(threads: &[u32], rates: &[f64]) -> Option<String> {
    let highest = rates.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    let (at, highest) = highest.filter(|(_, rate)| *rate > 0.0)?;
    let knee = rates.iter().position(|rate| *rate >= PLATEAU * highest)?;
    let (last, knee_rate) = (rates.len() - 1, rates[knee]);
    let rate = |rate: f64| group_thousands(&format_decimals(rate, 0));
    let text = match knee {
        _ if last == 0 => return None,
        knee if knee == last => {
            format!("the throughput still grew at {} clients, to {} op/s", threads[last], rate(highest))
        }
        _ => format!(
            "{} clients reached {} op/s, {} % of the highest throughput ({} op/s with {} clients)",
            threads[knee],
            rate(knee_rate),
            format_decimals(100.0 * knee_rate / highest, 0),
            rate(highest),
            threads[at]
        ),
    };
    Some(format!("note: {text}; each number of clients ran only once; for repeats, use `search:` in an experiment\n"))
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
        use crate::settings::StressCommand::{CounterRead, CounterWrite, Mixed, Read, Write};
        let pauses = [Read, Write, Mixed, CounterWrite, CounterRead].map(crate::settings::StressCommand::is_update);
        assert_eq!(pauses, [false, true, true, true, false]);
    }

    #[test]
    fn saturation_needs_three_steps_without_gain() {
        assert!(!is_saturated(&[100.0, 90.0, 80.0]));
        assert!(is_saturated(&[100.0, 90.0, 80.0, 70.0]));
        assert!(!is_saturated(&[100.0, 110.0, 120.0, 130.0]));
        assert_eq!(render_improvement(4, &[100.0, 137.0]), "Improvement over 4 threadCount: 37%\n");
    }

    /// The tool ends `auto` after the first of these series of rates, but not after the other two.
    #[test]
    fn noise_neither_ends_nor_prolongs_auto() {
        // One slow step while the throughput still grows.
        assert!(!is_saturated(&[100.0, 110.0, 121.0, 60.0]));
        let tool = |rates: &[f64]| average_improvement(rates, 3).unwrap() < 0.0;
        assert!(tool(&[100.0, 110.0, 121.0, 60.0]));
        for plateau in [&[100.0, 70.0, 101.0, 100.5][..], &[50.0, 100.0, 101.0, 102.0, 103.0]] {
            assert!(is_saturated(plateau) && !tool(plateau), "{plateau:?}");
        }
    }

    #[test]
    fn saturation_names_the_smallest_number_of_clients() {
        let line = |rates: &[f64]| render_saturation(&[4, 8, 16, 24][..rates.len()], rates);
        let knee = line(&[40_000.0, 61_000.0, 60_000.0, 62_000.0]).unwrap();
        assert!(
            knee.starts_with(
                "note: 8 clients reached 61,000 op/s, 98 % of the highest throughput (62,000 op/s with 24 clients);"
            ),
            "{knee}"
        );
        assert!(line(&[40.0, 80.0]).unwrap().starts_with("note: the throughput still grew at 8 clients, to 80 op/s;"));
        assert_eq!((line(&[40.0]), line(&[0.0, 0.0])), (None, None));
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
