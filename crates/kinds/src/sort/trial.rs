//! Runs a stage of a sort as a trial with a start, intervals and a summary.
//!
//! A stage that fails keeps the scratch directory, because other segments may still be using it. The program that runs
//! the stages finishes with `abandon`. If that program was killed, the `prepare` of the next job removes the remains.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use loadstone_storage::fs::{Location, Scheme};
use loadstone_storage::sort::job::Job;
use loadstone_storage::sort::progress::Done;
use loadstone_storage::sort::scratch::Owner;
use loadstone_storage::sort::validate::Verdict;

use super::{Ended, Places, SortError, run_stage};
use loadstone_measure::clock::unix_ns;
use loadstone_measure::control::{Control, End, TrialFailure, receive_start};
use loadstone_measure::event_printer::{EventPrinter, PROFILE};
use loadstone_measure::usage;
use loadstone_wire::error::EngineError;
use loadstone_wire::event::{self, Event, Sections, SortSummary, Sorted, Validation};
use loadstone_wire::spec::{SortSpec, TrialSpec};

/// Maximum delay before a stop is noticed.
const EVERY: Duration = Duration::from_millis(50);

/// The guarantee that the output has when it is renamed to its final name, and the reason.
fn describe_guarantee(job: &Job) -> (&'static str, &'static str) {
    let location = job.output.as_deref().map(Location::parse);
    if matches!(location, Some(Ok(Location { scheme: Scheme::Hdfs, .. }))) {
        return ("os", "only the last block of each file is synced before the output gets its name, as in Hadoop");
    }
    ("device", "all files and their directory are flushed before the output gets its name")
}

/// Runs the stage of a spec.
pub fn run_trial(
    spec: &TrialSpec,
    work: &SortSpec,
    controls: &Receiver<Control>,
    printer: &mut EventPrinter,
) -> Result<End, EngineError> {
    let connecting = Instant::now();
    // The parent process is the lab, which starts one engine per stage.
    let places = Places::for_owner(&work.job, Owner::process(std::os::unix::process::parent_id()))?;
    let (durability, how) = describe_guarantee(&work.job);
    printer.print_event(&Event::Ready(event::Ready {
        events: 2,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        store: "files".to_owned(),
        durability: durability.to_owned(),
        how: how.to_owned(),
        facts: [("stage".to_owned(), work.stage.name().to_owned())].into(),
        clients: work.job.threads,
        driver_ns: 0.0,
        connect_seconds: connecting.elapsed().as_secs_f64(),
    }));
    let early = wait_for_start(spec, controls);
    let mut stage = Watched::new(spec);
    let (ended, early) = if let Some(end) = early {
        (None, Some(end))
    } else {
        let (ended, early) = run_stage((&places, &work.job), work.stage, spec.segment, EVERY, |done| {
            stage.print_intervals(done, printer);
            controls.try_iter().find_map(Control::find_end)
        });
        (Some(ended), early)
    };
    let end = match (&ended, early) {
        (Some(Ended { outcome: Err(error), .. }), early) if !error.stopped || early.is_none() => {
            let hint = error.hint.as_ref().map(|hint| format!(" (hint: {hint})")).unwrap_or_default();
            End::Failed(TrialFailure::Sort(format!("{error}{hint}")))
        }
        // A stage that had finished when it was requested to stop still reports the request.
        (_, early) => early.unwrap_or(End::Done),
    };
    let done = ended.as_ref().map(|ended| ended.done).unwrap_or_default();
    stage.print_last_interval(done, printer);
    if let Some(SortError { message, hint, .. }) = ended.as_ref().and_then(find_warning) {
        let hint = hint.clone().unwrap_or_default();
        printer.print_event(&Event::Note(event::Note {
            name: "incomplete".to_owned(),
            message: message.clone(),
            hint,
        }));
    }
    printer.print_event(&Event::Summary(Box::new(stage.build_summary(&end, work, ended.as_ref()))));
    Ok(end)
}

fn find_warning(ended: &Ended) -> Option<&SortError> {
    ended.outcome.as_ref().ok()?.warning.as_ref()
}

/// Waits for `start_at` if the spec requests it, and then until that time. If the trial ends earlier, returns the end.
fn wait_for_start(spec: &TrialSpec, controls: &Receiver<Control>) -> Option<End> {
    if !spec.wait_for_start {
        return None;
    }
    let ahead = match receive_start(controls) {
        Ok(ahead) => ahead,
        Err(end) => return Some(end),
    };
    let start = Instant::now() + Duration::from_nanos(ahead);
    loop {
        match controls.recv_timeout(start.saturating_duration_since(Instant::now())) {
            Ok(control) => {
                if let Some(end) = control.find_end() {
                    return Some(end);
                }
            }
            Err(RecvTimeoutError::Timeout) => return None,
            // No sender remains that could stop the trial.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(start.saturating_duration_since(Instant::now()));
                return None;
            }
        }
    }
}

/// A stage that is being monitored.
struct Watched {
    start: Instant,
    start_unix_ns: u64,
    interval: Duration,
    /// The number of the current interval.
    number: u64,
    first_cpu_ns: [u64; 2],
    cpu_ns: [u64; 2],
    device_bytes: [u64; 2],
}

impl Watched {
    fn new(spec: &TrialSpec) -> Self {
        let cpu_ns = usage::cpu_ns();
        Self {
            start: Instant::now(),
            start_unix_ns: unix_ns(),
            interval: Duration::from_millis(spec.interval_ms),
            number: 0,
            first_cpu_ns: cpu_ns,
            cpu_ns,
            device_bytes: usage::device_bytes(),
        }
    }

    /// Prints the intervals that are complete.
    fn print_intervals(&mut self, done: Done, printer: &mut EventPrinter) {
        while self.start.elapsed() >= self.interval * (self.number as u32 + 1) {
            self.print_interval(self.interval, done, printer);
        }
    }

    fn print_interval(&mut self, length: Duration, done: Done, printer: &mut EventPrinter) {
        let cpu = usage::cpu_ns();
        let start = self.interval * self.number as u32;
        printer.print_event(&Event::Interval(event::Interval {
            k: self.number,
            start_ns: start.as_nanos() as u64,
            length_ns: length.as_nanos() as u64,
            unix_ns: unix_ns(),
            cpu_ns: usage::subtract_times(cpu, self.cpu_ns),
            memory_bytes: usage::memory(),
            sorted: Some(sort_result(done)),
            ..event::Interval::default()
        }));
        self.cpu_ns = cpu;
        self.number += 1;
    }

    /// Prints the remaining intervals.
    fn print_last_interval(&mut self, done: Done, printer: &mut EventPrinter) {
        self.print_intervals(done, printer);
        let rest = self.start.elapsed().saturating_sub(self.interval * self.number as u32);
        self.print_interval(rest, done, printer);
    }

    fn build_summary(&self, end: &End, work: &SortSpec, ended: Option<&Ended>) -> event::Summary {
        let (name, reason) = end.name_and_reason();
        let done = ended.map(|ended| ended.done).unwrap_or_default();
        let took = ended.map(|ended| ended.took).unwrap_or_default();
        let outcome = ended.and_then(|ended| ended.outcome.as_ref().ok());
        event::Summary {
            end: name.to_owned(),
            reason,
            profile: PROFILE.to_owned(),
            start_unix_ns: self.start_unix_ns,
            borders: event::Borders { interval_ns: self.interval.as_nanos() as u64, ..event::Borders::default() },
            measured_ns: took.as_nanos() as u64,
            rows: done.rows,
            bytes: done.read + done.written,
            cpu_ns: usage::subtract_times(usage::cpu_ns(), self.first_cpu_ns),
            memory_bytes_max: usage::memory_max(),
            device_bytes: usage::subtract_times(usage::device_bytes(), self.device_bytes),
            clock: event::Clock { source: "kernel".to_owned(), ..event::Clock::default() },
            sections: Sections {
                sort: Some(SortSummary {
                    stage: work.stage.name().to_owned(),
                    sorted: sort_result(done),
                    seconds: took.as_secs_f64(),
                    checksum: outcome.and_then(|outcome| outcome.checksum.clone()),
                    validation: outcome.and_then(|outcome| outcome.verdict.as_ref()).map(describe_validation),
                }),
                ..Sections::default()
            },
            ..event::Summary::default()
        }
    }
}

fn sort_result(done: Done) -> Sorted {
    Sorted { rows: done.rows, bytes_read: done.read, bytes_written: done.written }
}

fn describe_validation(verdict: &Verdict) -> Validation {
    Validation {
        rows: verdict.rows,
        parts: verdict.parts,
        duplicates: verdict.duplicates,
        faults: verdict.faults.count,
        first_faults: verdict.faults.first.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_on_hdfs_is_not_called_durable() {
        for (output, durability) in
            [("/data/sorted", "device"), ("file:///data/sorted", "device"), ("hdfs://h:1/s", "os")]
        {
            let job = Job { output: Some(output.to_owned()), ..Job::default() };
            assert_eq!(describe_guarantee(&job).0, durability);
        }
    }
}
