//! The single-line messages of a run.

use crate::compat::Compat;
use crate::number::format_double;
use crate::settings::{RunLength, Settings, StressCommand};

/// The kinds of operations: `WRITE`, or `[WRITE, READ]` for several kinds.
fn describe_operations(settings: &Settings) -> String {
    match settings.command.command {
        StressCommand::Mixed => {
            let labels: Vec<String> = settings.command.ratios.iter().map(|(command, _)| command.label()).collect();
            format!("[{}]", labels.join(", "))
        }
        StressCommand::User => {
            let user = settings.command.user.iter().flat_map(|user| &user.operations);
            let names: Vec<&str> = user.filter(|(_, weight)| *weight > 0.0).map(|(name, _)| name.as_str()).collect();
            format!("[{}]", names.join(", "))
        }
        command => command.label(),
    }
}

/// The line `Running WRITE with 20 threads for 200000 iteration`.
#[must_use]
pub fn render_running(settings: &Settings, threads: u32) -> String {
    let length = match settings.command.length {
        RunLength::Duration { amount, unit } => format!("{amount} {}", unit.name().to_lowercase()),
        RunLength::Count(count) => format!("for {count} iteration"),
        RunLength::Uncertainty { target, .. } => format!("until stderr of mean < {}", format_double(target)),
    };
    format!("Running {} with {threads} threads {length}\n", describe_operations(settings))
}

/// The line `Warming up WRITE with 50000 iterations...`, for one kind of operation; empty without a warm-up.
#[must_use]
pub fn render_warmup(settings: &Settings, label: &str) -> String {
    match settings.warmup_operations() {
        0 => String::new(),
        count => format!("Warming up {label} with {count} iterations...\n"),
    }
}

/// The warning that the tool prints before the first step if the length of a step depends on its standard error.
pub const UNEVEN_STEPS: &str = "WARNING: uncertainty mode (err<) results in uneven workload between thread \
    runs, so should be used for high level analysis only\n";

/// The lines that the tool prints before a step of auto mode.
#[must_use]
pub fn render_steps_header(threads: u32) -> String {
    format!("\nRunning with {threads} threadCount\n")
}

/// The line `Operation x10 on key(s) [306b]: Error executing: (Exception): text`, followed by an empty line.
///
/// `tries` is the number of tries that failed with an error, so 0 means that the first try returned wrong data. `error`
/// has the class and the text of the error; `None` means that the values read differ from the values written.
#[must_use]
pub fn render_failed_operation(tries: u32, key: &[u8], error: Option<(&str, &str)>) -> String {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let reason = match error {
        Some((class, text)) => format!("Error executing: ({class}): {text}"),
        None => "Data returned was not validated".to_owned(),
    };
    format!("Operation x{tries} on key(s) [{key}]: {reason}\n\n")
}

/// The type of latency in a histogram of the HDR log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Service time: from sending an operation to its answer.
    Service,
    /// Response time: from an operation's due time to its answer; only with a rate.
    Response,
    /// Wait: from an operation's due time until it is sent; only with a rate.
    Wait,
}

/// The tag of a histogram in the HDR log: `WRITE-st`, `-rt` or `-wt`.
#[must_use]
pub fn histogram_tag(name: &str, timing: Timing) -> String {
    let suffix = match timing {
        Timing::Service => "st",
        Timing::Response => "rt",
        Timing::Wait => "wt",
    };
    format!("{name}-{suffix}")
}

/// Whether the tool of this generation prints the settings block.
pub(super) const fn has_settings_block(compat: Compat) -> bool {
    !matches!(compat, Compat::V3_0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse_settings as settings;

    #[test]
    fn lines_match_the_tool() {
        for (line, expected) in [
            ("write n=200000", "Running WRITE with 20 threads for 200000 iteration\n"),
            ("read duration=5m", "Running READ with 20 threads 5 minutes\n"),
            ("counter_write err<0.02", "Running COUNTER_WRITE with 20 threads until stderr of mean < 0.02\n"),
            ("mixed ratio(read=1,write=2) n=5", "Running [WRITE, READ] with 20 threads for 5 iteration\n"),
        ] {
            assert_eq!(render_running(&settings(line), 20), expected);
        }
    }

    #[test]
    fn warmup_counts_contact_points() {
        let warmup = |line: &str| render_warmup(&settings(line), &StressCommand::Write.label());
        assert_eq!(warmup("write n=200000"), "Warming up WRITE with 50000 iterations...\n");
        assert_eq!(warmup("write n=99 -node a,b,c"), "Warming up WRITE with 72 iterations...\n");
        assert_eq!(warmup("write duration=1m -node a,b,c"), "Warming up WRITE with 150000 iterations...\n");
        assert_eq!(warmup("write n=3"), "");
        assert_eq!(warmup("write n=100 no-warmup"), "");
    }

    #[test]
    fn failed_operation_names_its_key() {
        assert_eq!(
            render_failed_operation(0, b"624OK6866", None),
            "Operation x0 on key(s) [3632344f4b36383636]: Data returned was not validated\n\n"
        );
        assert_eq!(
            render_failed_operation(10, b"0", Some(("UnavailableException", "Not enough replicas"))),
            "Operation x10 on key(s) [30]: Error executing: (UnavailableException): Not enough replicas\n\n"
        );
    }

    #[test]
    fn histograms_have_tags() {
        assert_eq!(histogram_tag("WRITE", Timing::Service), "WRITE-st");
        assert_eq!(histogram_tag("READ", Timing::Response), "READ-rt");
        assert_eq!(histogram_tag("READ", Timing::Wait), "READ-wt");
    }
}
