//! Prints a run in TestDFSIO's format: first Hadoop's block, then further figures under a separate heading.

use std::time::Duration;

use loadstone_load::histogram::Reading;
use loadstone_load::{Status, StepId};
use loadstone_storage::file_operations::{Action, FileStep, FilesWork};
use loadstone_storage::store::{NO_EFFECT, WITHOUT_URING};

use super::args::Test;
use super::report::{IntervalBytes, MB_PER_SECOND};
use super::{Results, report};
use loadstone_measure::clock::unix_ns;
use loadstone_measure::control::End;
use loadstone_measure::diagnostics;
use loadstone_measure::observer::{Closed, Interval, Moment, Observer, OpenedTrial};
use loadstone_wire::error::EngineError;
use loadstone_wire::files::FilesSummary;
use loadstone_wire::output::{print_err, print_out};
use loadstone_wire::spec::{TrialSpec, WorkSpec};

/// Observes a run and prints it.
#[derive(Debug)]
pub struct Printer<'a> {
    test: Test,
    spec: &'a TrialSpec,
    uri: String,
    files: Option<FilesSummary>,
    /// The lines in Loadstone's part of the report.
    lines: Vec<(String, String)>,
    warnings: Vec<String>,
    unanswered: u64,
    clients: u64,
    /// Mean size of a buffer, bytes.
    buffer_bytes: f64,
    intervals: Vec<IntervalBytes>,
}

impl<'a> Printer<'a> {
    /// A printer for a run on files below `uri`.
    pub fn new(test: Test, spec: &'a TrialSpec, uri: String) -> Self {
        let buffer_bytes = match &spec.work {
            WorkSpec::Files(work) => FilesWork::new(work.clone(), spec.seed)
                .map_or(0.0, |files| files.bytes_of_file() as f64 / files.parts() as f64),
            _ => 0.0,
        };
        let (lines, warnings, intervals) = (Vec::new(), Vec::new(), Vec::new());
        Self { test, spec, uri, files: None, lines, warnings, unanswered: 0, clients: 0, buffer_bytes, intervals }
    }

    /// Whether a property of the store is true.
    fn is_set(&self, property: &str) -> bool {
        self.spec.store.properties.get(property).is_some_and(|value| value == "true")
    }

    /// How to delete the files that a test wrote and leaves behind; `None` for other tests.
    fn remaining_files(&self) -> Option<String> {
        let writes = matches!(self.test, Test::Work(Action::Write | Action::Append, _));
        let uri = self.uri.trim_end_matches('/');
        writes.then(|| format!("the files are still in {uri}/io_data: delete them with `loadstone dfsio -clean {uri}`"))
    }

    /// Prints the results, appends Hadoop's block to a file, and returns the exit code.
    pub fn print_report(self, end: &End, wall: Duration, mut results: Results) -> Result<u8, EngineError> {
        let remaining = self.remaining_files();
        let files = self.files.unwrap_or_default();
        let expected = match &self.spec.work {
            WorkSpec::Files(work) => work.files,
            _ => 0,
        };
        let not_started = report::count_unstarted(&files, expected);
        // If other files have Loadstone's mark, a file without the mark was damaged or replaced.
        let replaced = if files.foreign < files.done { files.foreign } else { 0 };
        let complete = files.done == expected && replaced == 0 && *end == End::Done;
        if complete {
            let date = report::java_date(unix_ns() / 1_000_000_000);
            let block = report::render_hadoop(self.test.name(), &date, &files, wall);
            print_out(&block);
            results.append_block(&block)?;
        }
        print_out(&format!("----- Loadstone ----- : {}\n", self.test.name()));
        for (name, value) in report::aggregate_rows(&files, expected).into_iter().chain(self.lines) {
            print_out(&format!("{name:>61}: {value}\n"));
        }
        for wrong in &files.wrong {
            print_err(&format!(
                "warning: {} at byte {}: found {:#04x}, expected {:#04x}\n",
                wrong.file, wrong.offset, wrong.actual, wrong.expected
            ));
        }
        for warning in &self.warnings {
            print_err(&format!("warning: {warning}\n"));
        }
        if files.foreign > 0 && replaced == 0 {
            print_err("warning: no content was verified: Loadstone did not write these files\n");
            print_err("hint: add --no-verify if that is intended, or write the files with `loadstone dfsio -write`\n");
        }
        match end {
            End::Done => {}
            End::Stopped(who) => {
                print_err(&format!("the test was stopped: {}\n", who.reason()));
                print_err(
                    "hint: run the test again for Hadoop's block; the figures above cover only completed files\n",
                );
                return Ok(end.code());
            }
            End::Lease(why) => return Err(EngineError::failed(format!("the test was stopped: {why}"))),
            End::Failed(why) => {
                let hint = remaining.unwrap_or_else(|| "see the warnings above".to_owned());
                return Err(EngineError::failed(format!("the test failed: {why}")).hint(hint));
            }
        }
        if !complete || self.unanswered > 0 {
            if replaced > 0 {
                let path = files.foreign_file.as_deref().unwrap_or_default();
                let message = format!(
                    "{replaced} of {expected} files lack Loadstone's mark, unlike other files, and are unverified: {path}"
                );
                return Err(EngineError::failed(message)
                    .hint("write them again: they were damaged or replaced after the test that wrote them"));
            }
            let mut message = format!("{} of {expected} files failed", files.failed + files.unfinished);
            if not_started > 0 {
                message = format!("{message}, {not_started} were not started");
            }
            let remaining = remaining.map(|hint| format!("; {hint}")).unwrap_or_default();
            return Err(EngineError::failed(format!("{message}, so there are no results in Hadoop's format"))
                .hint(format!("see the warnings above{remaining}")));
        }
        Ok(0)
    }
}

impl Observer for Printer<'_> {
    fn report_ready(&mut self, opened: &OpenedTrial<'_>) {
        self.clients = opened.clients;
        print_err(&format!(
            "Loadstone {}: {} on {}, {} clients, seed {}\n",
            env!("CARGO_PKG_VERSION"),
            self.test.name(),
            self.uri,
            opened.clients,
            self.spec.seed
        ));
        let facts = opened.guarantee.facts.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>();
        print_err(&format!("durability of writes: {}; {}\n", opened.guarantee.how, facts.join(", ")));
        if let Some((_, why)) = opened.guarantee.facts.iter().find(|(name, _)| name == WITHOUT_URING) {
            print_err(&format!("warning: io_uring is not available ({why}): pread and pwrite are used\n"));
        }
        let without_effect =
            |name: &str| opened.guarantee.facts.iter().any(|fact| fact.0 == name && fact.1 == NO_EFFECT);
        for (option, _) in
            [("--direct", "o_direct"), ("--cold", "cold")].iter().filter(|(_, name)| without_effect(name))
        {
            print_err(&format!(
                "warning: {option} has no effect: {} is on tmpfs, which has no device\n\
                 hint: use a directory on a device\n",
                self.uri
            ));
        }
    }

    fn report_interval(&mut self, moment: &Moment<'_>, interval: &Interval<'_>) {
        for (number, more) in interval.earlier {
            if let Some(interval) = self.intervals.get_mut(*number as usize) {
                interval.bytes += more.completed as f64 * self.buffer_bytes;
            }
        }
        self.intervals.push(IntervalBytes {
            start: interval.start_ns as f64 / 1e9,
            seconds: interval.length_ns.max(1) as f64 / 1e9,
            bytes: interval.additions.completed as f64 * self.buffer_bytes,
            busy: moment.totals.in_flight == self.clients,
        });
    }

    fn report_end(&mut self, closed: &Closed<'_>) {
        self.files.clone_from(&closed.sections.files);
        self.unanswered = closed.censored.unanswered;
        for ((step, status), [service, ..]) in closed.latencies {
            self.lines.push((latency_name(*step, *status), format_latency(service)));
        }
        if let Some((line, warning)) = report::summarize_throughput(&self.intervals).filter(|_| self.buffer_bytes > 0.0)
        {
            self.lines.push((format!("{MB_PER_SECOND} in a second, lowest and median"), line));
            self.warnings.extend(warning);
        }
        let cpu_seconds = (closed.cpu_ns[0] + closed.cpu_ns[1]) as f64 / 1e9;
        self.lines.push(("CPU of this process, s".to_owned(), format!("{cpu_seconds:.2}")));
        if closed.embedded {
            let [read, written] = closed.device_bytes;
            // For buffered writes, the kernel counts the pages that become dirty, not writes to a device (proc(5),
            // `write_bytes`).
            let name = if self.is_set("file.direct") {
                "bytes read from, written to devices"
            } else {
                "bytes read from devices, of pages dirtied"
            };
            self.lines.push((name.to_owned(), format!("{read}, {written}")));
            let bytes = closed.sections.files.as_ref().map_or(0, |files| files.bytes + files.lost_bytes);
            let reads = matches!(self.test, Test::Work(Action::Read, _));
            if reads && bytes > 0 && read < bytes / 10 * 9 {
                let hint = if self.is_set("file.cold") || self.is_set("file.direct") {
                    "use a directory on a device: on tmpfs --cold and --direct have no effect"
                } else {
                    "use --cold or --direct to measure the device"
                };
                self.warnings.push(format!(
                    "{:.0} % of the bytes read came from the page cache: {hint}",
                    (1.0 - read as f64 / bytes as f64) * 100.0
                ));
            }
        }
        let failures = closed.moment.failures.messages().map(|(step, status, message)| {
            let count = closed.latencies.get(&(step, status)).map_or(0, |[service, ..]| service.count());
            (format!("{count} {}", FileStep::NAMES[usize::from(step.0)]), status, message)
        });
        let failures = group_by_cause(failures);
        // The note about the total number of failures is redundant if their causes are listed.
        let notes = diagnostics::notes(closed).into_iter().filter(|note| note.name != "errors" || failures.is_empty());
        self.warnings
            .extend(failures.iter().cloned().chain(notes.map(|note| format!("{}; {}", note.message, note.hint))));
    }
}

/// Groups failures by cause. Each line has one cause and the steps that failed.
fn group_by_cause<'a>(failures: impl Iterator<Item = (String, Status, &'a str)>) -> Vec<String> {
    let mut causes: Vec<(Status, &str, Vec<String>)> = Vec::new();
    for (steps, status, message) in failures {
        match causes.iter_mut().find(|cause| (cause.0, cause.1) == (status, message)) {
            Some((.., all)) => all.push(steps),
            None => causes.push((status, message, vec![steps])),
        }
    }
    causes
        .into_iter()
        .map(|(status, message, steps)| format!("{} failed with {}: {message}", steps.join(", "), status.name()))
        .collect()
}

fn latency_name(step: StepId, status: Status) -> String {
    let name = FileStep::NAMES[usize::from(step.0)];
    let outcome = if status.is_ok() { String::new() } else { format!(" {}", status.name()) };
    format!("{name}{outcome}: count, ms p50, p99, max")
}

fn format_latency(service: &Reading) -> String {
    let histogram = service.to_histogram();
    let ms = |ns: u64| ns as f64 / 1e6;
    format!(
        "{}, {:.3}, {:.3}, {:.3}",
        service.count(),
        ms(histogram.value_at_quantile(0.5)),
        ms(histogram.value_at_quantile(0.99)),
        ms(histogram.max())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_grouped_by_cause() {
        let failures = [
            ("1 OPEN", Status::Error, "no such directory"),
            ("2 WRITE", Status::NoSpace, "no space left"),
            ("1 SYNC", Status::NoSpace, "no space left"),
        ];
        let lines = group_by_cause(failures.into_iter().map(|(steps, status, text)| (steps.to_owned(), status, text)));
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!(*first, "1 OPEN failed with ERROR: no such directory");
        assert!(second.starts_with("2 WRITE, 1 SYNC failed with ") && second.ends_with(": no space left"), "{second}");
    }
}
