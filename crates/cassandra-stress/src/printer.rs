//! Prints a run in the format of cassandra-stress: rows for each interval, and the HDR log.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use loadstone_kinds::columns::OperationCounts;
use loadstone_load::StepId;
use loadstone_load::histogram::Reading;
use loadstone_measure::clock::{Clock, Monotonic, unix_ns};
use loadstone_measure::control::{End, TrialFailure};
use loadstone_measure::diagnostics;
use loadstone_measure::observer::{Closed, Interval, Moment, Observer, OpenedTrial};
use loadstone_measure::recorder::reader::{IntervalAdditions, Readings};
use loadstone_stress::output::{
    Figures, Interval as Row, Summary, Timing, Uncertainty, histogram_tag, render_failed_operation, render_header,
    render_interval,
};
use loadstone_stress::settings::{Limit, LogLevel, RateSettings, RunLength, Settings};
use loadstone_stress::spec::Command;
use loadstone_wire::error::{EngineError, count_noun};
use loadstone_wire::event::{MissingRows, Note, encode};
use loadstone_wire::output::print_err;

use super::garbage::ClusterCollections;
use super::log::Log;
use super::rename_properties;

/// The name of each step's operation, and the operations' row counts.
#[derive(Debug)]
pub struct Names {
    /// The name of each operation, and whether a failed operation still counts as one row and one partition (writes).
    kinds: Vec<(String, bool)>,
    /// The row and partition counts so far for the operations of user profiles.
    pub counts: Arc<OperationCounts>,
    is_counted: bool,
}

impl Names {
    /// The names of a command's operations.
    pub fn new(settings: &Settings) -> Self {
        match &settings.command.user {
            Some(user) => {
                let operations = user.operations.iter().filter(|(_, weight)| *weight > 0.0);
                let names: Vec<_> = operations.map(|(name, _)| (name.clone(), false)).collect();
                Self { counts: Arc::new(OperationCounts::new(names.len())), kinds: names, is_counted: true }
            }
            None => Self {
                kinds: Command::ALL.iter().map(|command| (command.name().to_owned(), command.is_write())).collect(),
                counts: Arc::default(),
                is_counted: false,
            },
        }
    }

    fn name(&self, operation: usize) -> &str {
        self.kinds.get(operation).map_or("", |(name, _)| name)
    }

    /// The operation that a step belongs to; `None` for the end of a session.
    fn operation_of(&self, step: StepId) -> Option<usize> {
        (usize::from(step.0) < self.kinds.len()).then_some(usize::from(step.0))
    }

    /// The operations that occurred. Only the operations of user profiles are sorted by name.
    fn operations(&self, readings: &Readings) -> Vec<usize> {
        let mut operations: Vec<usize> = readings.keys().filter_map(|(step, _)| self.operation_of(*step)).collect();
        operations.sort_unstable();
        operations.dedup();
        if self.is_counted {
            operations.sort_by(|a, b| self.name(*a).cmp(self.name(*b)));
        }
        operations
    }
}

/// The result of a step.
#[derive(Debug)]
pub struct StepResult {
    /// The figures of the step.
    pub summary: Summary,
    /// The relative standard error of the rate.
    pub uncertainty: f64,
    /// Number of operations that failed.
    pub failed: u64,
    /// Number of operations without an answer.
    pub unanswered: u64,
    /// Reads that found no row.
    pub missing: Option<MissingRows>,
}

/// Observes a run and prints it.
#[derive(Debug)]
pub struct Printer<'a> {
    settings: &'a Settings,
    log: &'a mut Log,
    hdr: Option<&'a mut HdrLog>,
    collections: &'a mut ClusterCollections,
    uncertainty: Uncertainty,
    /// Number of operations since the start, by the operation's index.
    counts: BTreeMap<usize, u64>,
    names: Names,
    /// The row and partition counts for each operation at the end of the last interval.
    earlier: Vec<(u64, u64)>,
    step: Option<StepResult>,
    notes: Vec<String>,
    satisfied: bool,
    /// Time at which the header was last printed, ms since the start of the run.
    header_ms: u64,
}

impl<'a> Printer<'a> {
    /// Creates a printer.
    pub fn new(
        settings: &'a Settings,
        names: Names,
        (log, hdr): (&'a mut Log, Option<&'a mut HdrLog>),
        collections: &'a mut ClusterCollections,
    ) -> Self {
        Self {
            earlier: vec![(0, 0); names.kinds.len()],
            names,
            settings,
            log,
            hdr,
            collections,
            uncertainty: Uncertainty::default(),
            counts: BTreeMap::new(),
            step: None,
            notes: Vec::new(),
            satisfied: false,
            header_ms: 0,
        }
    }

    /// Prints the operation that ended the run, if any, and the notes. Returns the step's result.
    pub fn finish_step(self, end: &End) -> Result<StepResult, EngineError> {
        if let End::Failed(TrialFailure::Operation { key, status, message, attempts, .. }) = end {
            let error = (*attempts > 0).then_some((status.name(), message.as_str()));
            self.log.print_text(&render_failed_operation(*attempts, key.as_bytes(), error));
        }
        for note in &self.notes {
            print_err(note);
        }
        self.step.ok_or_else(|| EngineError::failed("the run ended before the measurement started"))
    }

    /// The index of the histogram to print: response times with `fixed=`, otherwise service times.
    fn choose_time(&self) -> usize {
        match self.settings.rate {
            RateSettings::Threads { limit: Limit::Fixed(_), .. } => 1,
            _ => 0,
        }
    }

    /// The figures of one operation, or of all operations. `earlier`: the row and partition counts to subtract.
    fn calculate_figures(
        &self,
        readings: &Readings,
        operation: Option<usize>,
        seconds: f64,
        earlier: &[(u64, u64)],
    ) -> Figures {
        let mut latencies = Reading::default();
        let (mut operations, mut errors, mut rows, mut partitions) = (0, 0, 0, 0);
        for ((step, status), all) in readings {
            let own = self.names.operation_of(*step).filter(|own| operation.is_none_or(|operation| operation == *own));
            let Some(own) = own else { continue };
            let count = all[0].count();
            operations += count;
            errors += if status.is_ok() { 0 } else { count };
            if !self.names.is_counted {
                rows += if status.is_ok() || self.names.kinds[own].1 { count } else { 0 };
                partitions = rows;
            }
            latencies.merge_reading(&all[self.choose_time()]);
        }
        if self.names.is_counted {
            for (own, earlier) in
                earlier.iter().enumerate().filter(|(own, _)| operation.is_none_or(|operation| operation == *own))
            {
                let now = self.names.counts.read_counts(own);
                rows += now.0.saturating_sub(earlier.0);
                partitions += now.1.saturating_sub(earlier.1);
            }
        }
        let histogram = latencies.to_histogram();
        let ms = |ns: f64| ns / 1e6;
        let at =
            |quantile: f64| if histogram.is_empty() { 0.0 } else { ms(histogram.value_at_quantile(quantile) as f64) };
        Figures {
            operations,
            partitions,
            rows,
            errors,
            seconds,
            mean_ms: if histogram.is_empty() { 0.0 } else { ms(histogram.mean()) },
            median_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: at(1.0),
        }
    }
}

impl Printer<'_> {
    /// A line for each operation and failure status: the number of failures and the first message. If replicas were
    /// unavailable, the line includes the note about servers that the cluster considered down.
    fn describe_failures(&self, closed: &Closed<'_>, notes: &mut Vec<Note>) -> Vec<String> {
        let down = notes.iter().position(|note| note.name == "server-events");
        let mut uses_down = false;
        let mut lines = Vec::new();
        for (step, status, message) in closed.moment.failures.messages() {
            let Some(own) = self.names.operation_of(step) else { continue };
            let count = closed.latencies.get(&(step, status)).map_or(0, |latencies| latencies[0].count());
            // A status without failed operations occurred only in attempts that were retried.
            let count = if count > 0 { format!(", {}", count_noun(count, "operation")) } else { String::new() };
            let cause = match down {
                Some(at) if message.starts_with("Unavailable: ") => {
                    uses_down = true;
                    format!("; {}", notes[at].message)
                }
                _ => String::new(),
            };
            lines.push(format!("{}: {}{count}: {message}{cause}\n", self.names.name(own), status.name()));
        }
        if let Some(at) = down.filter(|_| uses_down) {
            notes.remove(at);
        }
        lines
    }
}

impl Observer for Printer<'_> {
    fn report_ready(&mut self, opened: &OpenedTrial<'_>) {
        for note in opened.notes {
            print_err(&format!("warning: {}\nhint: {}\n", note.message, note.hint));
        }
        self.log.print_text(&render_header("", self.settings.compat));
    }

    fn begin_window(&mut self, moment: &Moment<'_>) {
        self.collections.begin_interval();
        if let Some(hdr) = &mut self.hdr {
            hdr.write_header(moment.borders.first_ns);
        }
    }

    fn report_interval(&mut self, _moment: &Moment<'_>, interval: &Interval<'_>) {
        let mut new = IntervalAdditions::default();
        new.merge_additions(interval.additions);
        for (_, more) in interval.earlier {
            new.merge_additions(more);
        }
        let garbage = self.collections.read_interval();
        let seconds = interval.length_ns as f64 / 1e9;
        let run_time_ms = (interval.start_ns + interval.length_ns) / 1_000_000;
        let mut kinds = Vec::new();
        let earlier = std::mem::take(&mut self.earlier);
        for operation in self.names.operations(&new.latencies) {
            let figures = self.calculate_figures(&new.latencies, Some(operation), seconds, &earlier);
            let count = self.counts.entry(operation).or_default();
            *count += figures.operations;
            let name = self.names.name(operation).to_owned();
            kinds.push(Row { name, figures, total_operations: *count, run_time_ms });
        }
        if let Some(hdr) = &mut self.hdr {
            hdr.write_interval(&self.names, &new.latencies, interval);
        }
        let figures = self.calculate_figures(&new.latencies, None, seconds, &earlier);
        self.earlier = (0..earlier.len()).map(|operation| self.names.counts.read_counts(operation)).collect();
        if figures.operations == 0 {
            return;
        }
        // The tool subtracts the largest latency from the interval, although a latency may be longer than the interval.
        let net = figures.net_row_rate();
        self.uncertainty.update(if net > 0.0 { net } else { figures.row_rate() });
        let total_operations = self.counts.values().sum();
        let total = Row { name: "total".to_owned(), figures, total_operations, run_time_ms };
        let uncertainty = self.uncertainty.value();
        let start_ms = interval.start_ns / 1_000_000;
        if let Some((_, frequency_ms)) = &self.settings.extras.header_frequency
            && start_ms > self.header_ms
            && start_ms - self.header_ms >= *frequency_ms
        {
            self.header_ms = start_ms;
            self.log.print_text(&render_header("", self.settings.compat));
        }
        let text = render_interval(&kinds, &total, &garbage, uncertainty, self.settings.compat);
        self.log.print_text(&text);
        if let RunLength::Uncertainty { target, min, max } = self.settings.command.length {
            self.satisfied = self.uncertainty.is_reached(target, min.max(0) as u32, max.max(0) as u32);
        }
    }

    fn is_satisfied(&self) -> bool {
        self.satisfied
    }

    fn report_end(&mut self, closed: &Closed<'_>) {
        // As in the tool, counts are divided by the time until the last operation has finished.
        let first_ns = closed.moment.borders.first_ns;
        let length_ns = closed.window.length_ns.max(closed.moment.totals.last_done_ns.saturating_sub(first_ns));
        let seconds = length_ns as f64 / 1e9;
        let none = vec![(0, 0); self.earlier.len()];
        self.collections.read_interval();
        let figures = |operation| self.calculate_figures(closed.latencies, operation, seconds, &none);
        let kinds = self.names.operations(closed.latencies).into_iter();
        let summary = Summary {
            total: figures(None),
            kinds: kinds.map(|own| (self.names.name(own).to_owned(), figures(Some(own)))).collect(),
            garbage: self.collections.total(),
            run_time_ms: length_ns / 1_000_000,
        };
        let mut notes: Vec<Note> = diagnostics::generator_limited(closed, true);
        notes.extend(diagnostics::note_slowest(closed));
        notes.extend(diagnostics::notes(closed));
        let is_quiet = self.settings.log.level == LogLevel::Minimal && self.settings.errors.ignore;
        self.notes = if is_quiet { Vec::new() } else { self.describe_failures(closed, &mut notes) };
        self.notes.extend(
            notes
                .iter()
                .map(|note| format!("note: {}: {} ({})\n", note.name, note.message, rename_properties(&note.hint))),
        );
        self.step = Some(StepResult {
            summary,
            uncertainty: self.uncertainty.value(),
            failed: closed.moment.totals.count_failed(),
            unanswered: closed.censored.unanswered + closed.carried.unanswered,
            missing: closed.sections.missing_rows,
        });
    }
}

/// The file of `-log hdrfile=`, in version 1.3 of HdrHistogram's log format. It has a line for each interval, command
/// and type of latency.
#[derive(Debug)]
pub struct HdrLog {
    path: String,
    file: File,
    open: bool,
    /// Start of the first step and of the current step, ns since the Unix epoch; 0 before the first step.
    base_ns: u64,
    step_ns: u64,
    error: Option<std::io::Error>,
}

impl HdrLog {
    /// Creates the file. `open`: whether operations have due times, and therefore also response times.
    pub fn create_file(path: &str, open: bool) -> Result<Self, EngineError> {
        let file = File::create(path);
        let file = file.map_err(|error| {
            EngineError::usage(format!("cannot write {path}: {error}"))
                .hint("-log hdrfile= names a file in a writable directory")
        })?;
        Ok(Self { path: path.to_owned(), file, open, base_ns: 0, step_ns: 0, error: None })
    }

    /// Begins a step at `first_ns` on the monotonic clock. All times are relative to the start of the first step, which
    /// follows the warm-up.
    fn write_header(&mut self, first_ns: u64) {
        self.step_ns = unix_ns().wrapping_add(first_ns).wrapping_sub(Monotonic.now_ns());
        if self.base_ns > 0 {
            return;
        }
        self.base_ns = self.step_ns;
        let start = self.base_ns as f64 / 1e9;
        self.write_text(&format!(
            "#Logging op latencies for Cassandra Stress\n#[Histogram log format version 1.3]\n\
             #[BaseTime: {start:.3} (seconds since epoch)]\n#[StartTime: {start:.3} (seconds since epoch)]\n\
             \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
        ));
    }

    fn write_text(&mut self, text: &str) {
        if self.error.is_none() {
            self.error = self.file.write_all(text.as_bytes()).err();
        }
    }

    fn write_interval(&mut self, names: &Names, readings: &Readings, interval: &Interval<'_>) {
        let start_ns = self.step_ns.saturating_sub(self.base_ns) + interval.start_ns;
        let (start, length) = (start_ns as f64 / 1e9, interval.length_ns as f64 / 1e9);
        let mut text = String::new();
        for operation in names.operations(readings) {
            let timings: &[(Timing, usize)] =
                if self.open { &[(Timing::Service, 0), (Timing::Response, 1)] } else { &[(Timing::Service, 0)] };
            for (timing, place) in timings {
                let mut reading = Reading::default();
                for ((step, _), all) in readings {
                    if names.operation_of(*step) == Some(operation) {
                        reading.merge_reading(&all[*place]);
                    }
                }
                if reading.count() > 0 {
                    let max_ms = reading.to_histogram().max() as f64 / 1e6;
                    let tag = histogram_tag(names.name(operation), *timing);
                    text.push_str(&format!("Tag={tag},{start:.3},{length:.3},{max_ms:.3},{}\n", encode(&reading)));
                }
            }
        }
        self.write_text(&text);
    }

    /// Returns the first write error, if there was one.
    pub fn finish_file(self) -> Result<(), EngineError> {
        match self.error {
            None => Ok(()),
            Some(error) => Err(EngineError::failed(format!("cannot write {}: {error}", self.path))
                .hint("the log of histograms is incomplete; free space and run again")),
        }
    }
}
