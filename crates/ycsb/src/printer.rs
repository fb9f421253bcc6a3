//! Prints a run in YCSB's format (banner, status lines, report), and additional information on stderr.

use std::fmt::Write as _;

use loadstone_load::{Kind, Status};

use super::args::redact_passwords;
use super::config::Reporting;
use super::hdr_file;
use super::measure::{Metric, add_censored, metrics};
use super::report::{self, Overall};
use super::report_files::ReportFiles;
use super::status::{Progress, StatusLine, local_time};
use super::translate::Translated;
use loadstone_measure::clock::unix_ns;
use loadstone_measure::control::{End, TrialFailure};
use loadstone_measure::diagnostics;
use loadstone_measure::failures::Failures;
use loadstone_measure::observer::{Closed, Interval, Moment, Observer, OpenedTrial};
use loadstone_measure::recorder::reader::Totals;
use loadstone_session::Guarantee;
use loadstone_wire::error::{EngineError, count_noun};
use loadstone_wire::event::Note;
use loadstone_wire::output::{print_err, print_out};
use loadstone_wire::sink::Sink;
use loadstone_wire::spec::{Phase, TrialSpec};

/// Observes a run and prints it.
#[derive(Debug)]
pub struct Printer<'a> {
    spec: &'a TrialSpec,
    reporting: &'a Reporting,
    tolerated: f64,
    strict: bool,
    files: ReportFiles,
    status: StatusLine,
    hdr_files: Option<hdr_file::HdrFiles>,
    /// The first error while writing output, if there was one.
    write_error: Option<EngineError>,
    totals: Totals,
    /// Number of operations without an answer.
    unanswered: u64,
    /// Whether there were operations to perform, but none finished in the window.
    none_ended: bool,
    warnings: Vec<String>,
    /// The note `rate-not-held`, if too many due operations were not answered in time.
    rate_not_held: Option<Note>,
    /// Number of clients that failed to close.
    unclosed: u64,
}

impl<'a> Printer<'a> {
    /// Creates a printer, and prints YCSB's banner.
    pub fn new(translated: &'a Translated, arguments: &[String], files: ReportFiles) -> Self {
        let reporting = &translated.reporting;
        print_err(&format!(
            "Command line: ycsb {}\nLoadstone {}\n\n",
            redact_passwords(arguments),
            env!("CARGO_PKG_VERSION")
        ));
        print_err("Loading workload...\n");
        Self {
            spec: &translated.spec,
            reporting,
            tolerated: translated.tolerated,
            strict: translated.strict,
            files,
            status: StatusLine::default(),
            hdr_files: reporting.hdr_files.as_ref().map(|prefix| hdr_file::HdrFiles::new(prefix)),
            write_error: None,
            totals: Totals::default(),
            unanswered: 0,
            none_ended: false,
            warnings: Vec::new(),
            rate_not_held: None,
            unclosed: 0,
        }
    }

    /// Prints a status line. `interval` is `None` before the first interval.
    fn status_line(&mut self, moment: &Moment<'_>, interval: Option<&Interval<'_>>) {
        let metrics = metrics(moment.recorders, self.reporting);
        if let (Some(files), Some(interval)) = (&mut self.hdr_files, interval) {
            files.interval(&metrics, interval);
        }
        if self.reporting.status_seconds.is_none() {
            return;
        }
        let progress = Progress {
            elapsed_ns: interval.map_or(0, |interval| interval.start_ns + interval.length_ns),
            interval_ns: interval.map_or(0, |interval| interval.length_ns),
            done: moment.totals.operations,
            of: moment.operations,
        };
        let line = self.status.next(&local_time(unix_ns() / 1_000_000), progress, &metrics, self.reporting);
        print_err(&format!("{line}\n"));
        if self.reporting.sinks.iter().any(|sink| matches!(sink, Sink::YcsbSeries { .. })) {
            print_out(&format!("{line}\n"));
        }
    }

    fn keep_failures(&mut self, metrics: &[Metric], closed: &Closed<'_>) {
        let failures = closed.moment.failures;
        for metric in metrics {
            for (status, count) in metric.returns.iter().filter(|(status, _)| status.is_failure()) {
                let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == metric.name) else { continue };
                self.warnings.push(failure_text(failures, kind, *status, *count));
            }
        }
        for (status, count) in failures.list_unclosed() {
            self.unclosed += count;
            self.warnings.push(failure_text(failures, Kind::Cleanup, status, count));
        }
    }

    /// The exit code. If it is not 0, prints the reason first.
    pub fn exit_code(mut self, end: &End) -> Result<u8, EngineError> {
        if let Some(error) = self.write_error.take() {
            return Err(error);
        }
        for warning in &self.warnings {
            print_err(&format!("warning: {warning}\n"));
        }
        if let Some(note) = &self.rate_not_held {
            print_err(&format!("warning: the rate was not held: {}\nhint: {}\n", note.message, note.hint));
        }
        let what = if self.spec.phase == Phase::Load { "load" } else { "run" };
        match end {
            End::Failed(why) => {
                let total = self.spec.until.operations.unwrap_or(0);
                let loaded = self.totals.succeeded;
                let hint = match why {
                    TrialFailure::Operation { status: Status::NoSpace, .. } => {
                        "make room on the device, or choose another"
                    }
                    TrialFailure::Operation { .. } => {
                        "set core_workload_insertion_retry_limit to retry, or \
                         core_workload_insertion_keep_going_on_error=true to continue"
                    }
                    _ => "see the messages above; the report covers the operations before the failure",
                };
                let message = format!("the {what} stopped after {loaded} of {total}: {why}");
                return Err(EngineError::failed(message).hint(hint));
            }
            End::Stopped(who) => print_err(&format!("the {what} was stopped: {}\n", who.reason())),
            End::Lease(why) => print_err(&format!("the {what} was stopped: {why}\n")),
            End::Done => {}
        }
        let hung = self.unanswered;
        if hung > 0 && end.code() == 0 {
            return Err(EngineError::failed(format!(
                "no answer to {} of this {what}, which the results do not count",
                count_noun(hung, "operation")
            ))
            .hint("check the system: it stopped answering"));
        }
        if self.none_ended && end.code() == 0 {
            return Err(EngineError::failed(format!("no operation of this {what} finished in the measured time"))
                .hint("measure for longer, or check the system: it may have stopped answering"));
        }
        let failed = self.totals.count_failed();
        if failed as f64 > self.tolerated * self.totals.operations as f64 && end.code() == 0 {
            return Err(EngineError::failed(format!("{} of this {what} failed", count_noun(failed, "operation")))
                .hint(
                    "see their counts in the report; failures.tolerated=SHARE sets the share of failures to accept",
                ));
        }
        // A store that buffers writes sends them only when it is closed, after it has answered OK.
        if self.unclosed as f64 > self.tolerated * self.spec.clients as f64 && end.code() == 0 {
            let (ending, pronoun) = if self.unclosed == 1 { ("", "it") } else { ("s", "they") };
            return Err(EngineError::failed(format!(
                "{} client{ending} of this {what} did not close: writes that {pronoun} buffered may be lost",
                self.unclosed
            ))
            .hint(
                "see the store's message in the warning above; failures.tolerated=SHARE sets the share of failures to accept",
            ));
        }
        // YCSB's scripts set targets that no store reaches, and rely on status 0.
        if self.strict && self.rate_not_held.is_some() && end.code() == 0 {
            return Err(EngineError::failed(format!("the {what} did not hold its rate"))
                .hint("lower `target`, or omit -strict to accept this"));
        }
        Ok(end.code())
    }
}

/// `3 x READ returned ERROR; the first: no such table`.
fn failure_text(failures: &Failures, kind: Kind, status: Status, count: u64) -> String {
    let first =
        failures.message(kind.step(), status).map(|message| format!("; the first: {message}")).unwrap_or_default();
    format!("{count} x {} returned {}{first}", kind.name(), status.name())
}

impl Observer for Printer<'_> {
    fn report_ready(&mut self, opened: &OpenedTrial<'_>) {
        let guarantee = opened.guarantee;
        let mut line = format!("Store: {}", opened.spec.store.name);
        for (name, value) in &guarantee.facts {
            let _ = write!(line, ", {name} {value}");
        }
        print_err(&format!("{line}\n"));
        let requested = opened.spec.store.durability;
        let difference = match guarantee.durability.cmp(&requested) {
            std::cmp::Ordering::Equal => String::new(),
            std::cmp::Ordering::Greater => format!(" (requested: {}; the store has no such level)", requested.name()),
            std::cmp::Ordering::Less => format!(" (requested: {}; the store does not provide it)", requested.name()),
        };
        print_err(&format!("Writes survive: {}{difference}: {}\n", survives(guarantee), guarantee.how));
        print_err(&format!("Seed: {}\n", opened.spec.seed));
        for note in opened.notes {
            print_err(&format!("warning: {}\nhint: {}\n", note.message, note.hint));
        }
        print_err("Starting test.\n");
    }

    fn begin_window(&mut self, moment: &Moment<'_>) {
        if let Some(files) = &mut self.hdr_files {
            files.begin(moment.borders.first_ns);
        }
        self.status_line(moment, None);
    }

    fn report_interval(&mut self, moment: &Moment<'_>, interval: &Interval<'_>) {
        self.status_line(moment, Some(interval));
    }

    fn report_end(&mut self, closed: &Closed<'_>) {
        let mut metrics = metrics(closed.moment.recorders, self.reporting);
        add_censored(&mut metrics, &closed.censored, self.reporting);
        let totals = closed.moment.totals;
        self.totals = totals;
        self.unanswered = closed.censored.unanswered + closed.carried.unanswered;
        let had_work = closed.moment.operations != Some(0) && closed.due != Some(0);
        self.none_ended = had_work && closed.window.completed + totals.count_failed() + totals.not_yet == 0;
        self.keep_failures(&metrics, closed);
        if let Some(files) = self.hdr_files.take() {
            self.write_error = files.finish().err();
        }
        print_out(&report::raw_announcement(&metrics, self.reporting));
        let raw = report::raw_text(&metrics, self.reporting);
        if !raw.is_empty() {
            self.write_error = self.files.write_raw(&raw).err().or(self.write_error.take());
        }
        let overall = Overall {
            measured_ns: closed.window.length_ns,
            succeeded: closed.window.completed,
            collections: closed.collections.clone(),
        };
        let lines = report::lines(&overall, &metrics, self.reporting);
        let text = report::render(&lines, self.reporting.exporter);
        self.write_error = self.files.write_report(&text).err().or(self.write_error.take());
        let mut notes = diagnostics::generator_limited(closed, self.spec.spin);
        notes.extend(diagnostics::note_slowest(closed));
        notes.extend(diagnostics::notes(closed));
        // The note `rate-not-held` is printed last, because it concerns every figure of a run with a rate.
        self.rate_not_held = notes.iter().position(|note| note.name == "rate-not-held").map(|at| notes.remove(at));
        for note in notes {
            print_err(&format!("note: {}: {} ({})\n", note.name, note.message, note.hint));
        }
    }
}

/// The event that writes survive, as stated in the banner.
fn survives(guarantee: &Guarantee) -> &'static str {
    match guarantee.survives() {
        "unknown" => "unknown",
        "interval" => "a process crash, except for the last moments (durability=interval)",
        "os" => "a process crash (durability=os)",
        "device" => "a power failure or kernel crash (durability=device)",
        _ => "nothing (durability=none)",
    }
}
