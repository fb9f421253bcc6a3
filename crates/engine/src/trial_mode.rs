//! `loadstone-engine trial`: a TrialSpec and control lines in, events out.
//!
//! With `lease_ms`, stdin is a lease. The lab writes a line now and then; when stdin closes, or stays silent for longer than
//! the lease, the load stops by itself, so a lab that dies cannot leave a fleet of engines hammering a system. A spec
//! without it runs to its end even if stdin closes: `… --print-spec | loadstone-engine trial`.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use loadstone_load::Status;
use loadstone_load::meter::{Grid, Reading};
use serde::Deserialize;

use crate::borders::NEVER;
use crate::control::{Control, End, Stop, TrialFailure};
use crate::diagnostics;
use crate::dispatch;
use crate::error::EngineError;
use crate::event::{self, Collection, Event, Ready, Summary, encode, outcomes};
use crate::kinds::sort;
use crate::observer::{Closed, Interval, Moment, Observer, Opened};
use crate::recorder::Waits;
use crate::recorder::reader::{Additions, Totals};
use crate::spec::{TrialSpec, WorkSpec};
use crate::usage;

/// A control line.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlLine {
    /// Start the load at this Unix time, ns.
    StartAt(u64),
    /// End it now.
    Stop,
    /// A heartbeat; any other line counts as one, too.
    Heartbeat,
}

/// Runs a trial from stdin to stdout. Returns the exit code.
pub fn main(signals: &Sender<Control>, controls: &Receiver<Control>) -> Result<u8, EngineError> {
    let mut first = String::new();
    let read = std::io::stdin().lock().read_line(&mut first);
    read.map_err(|error| EngineError::usage(format!("cannot read the TrialSpec from stdin: {error}")))?;
    if first.trim().is_empty() {
        return Err(EngineError::usage("no TrialSpec on stdin")
            .hint("write one as a line of JSON; loadstone-engine ycsb run null … --print-spec prints one"));
    }
    let spec = TrialSpec::parse(&first)?;
    match spec.lease_ms {
        Some(lease_ms) => watch_lease(Duration::from_millis(lease_ms), signals.clone()),
        None => read_controls(signals.clone(), None),
    }
    let mut printer = EventPrinter::new(std::io::stdout());
    let end = match &spec.work {
        WorkSpec::Sort(work) => sort::trial::run(&spec, work, controls, &mut printer)?,
        _ => dispatch::run(&spec, controls, &mut printer)?,
    };
    if end == End::Failed(TrialFailure::NoStart) {
        return Err(EngineError::failed(TrialFailure::NoStart.to_string())
            .hint("keep stdin open, and write {\"start_at\": UNIX_NS} to it; or leave wait_for_start out"));
    }
    Ok(end.code())
}

/// Reads control lines on a separate thread; every line counts as a heartbeat.
fn read_controls(controls: Sender<Control>, alive: Option<Sender<()>>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = alive.as_ref().map(|alive| alive.send(()));
            let control = match serde_json::from_str::<ControlLine>(&line) {
                Ok(ControlLine::StartAt(ns)) => Control::StartAt(ns),
                Ok(ControlLine::Stop) => Control::Stop(Stop::ControlLine),
                Ok(ControlLine::Heartbeat) | Err(_) => continue,
            };
            let _ = controls.send(control);
        }
        // Dropping `alive` tells the watcher of the lease, for which this is the end anyhow.
        if alive.is_none() {
            let _ = controls.send(Control::StdinClosed);
        }
    });
}

/// Ends the load when no heartbeat comes for the length of the lease, or stdin is closed.
fn watch_lease(lease: Duration, controls: Sender<Control>) {
    let (alive, heartbeats) = channel::<()>();
    read_controls(controls.clone(), Some(alive));
    std::thread::spawn(move || {
        loop {
            let lost = match heartbeats.recv_timeout(lease) {
                Ok(()) => continue,
                Err(RecvTimeoutError::Timeout) => format!("no heartbeat for {} ms", lease.as_millis()),
                Err(RecvTimeoutError::Disconnected) => "stdin closed".to_owned(),
            };
            let _ = controls.send(Control::LeaseLost(lost));
            return;
        }
    });
}

/// How long a slow lab may take to read the last events.
const FLUSH: Duration = Duration::from_secs(5);

/// Prints events, one line each, flushed at once, on a separate thread: a lab that does not read must not block the
/// conductor, which watches the lease and the end of the trial.
#[derive(Debug)]
pub struct EventPrinter {
    lines: Option<Sender<String>>,
    written: Receiver<()>,
    steps: &'static [&'static str],
    last: Totals,
    cpu: [u64; 2],
}

impl EventPrinter {
    /// A printer that writes to `out`.
    pub fn new(mut out: impl Write + Send + 'static) -> Self {
        let (lines, to_write) = channel::<String>();
        let (done, written) = channel();
        std::thread::spawn(move || {
            for line in to_write {
                // A lab that died also closes stdin, which ends the load.
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    break;
                }
            }
            let _ = done.send(());
        });
        Self { lines: Some(lines), written, steps: &[], last: Totals::default(), cpu: [0; 2] }
    }

    /// Prints an event.
    pub fn print(&mut self, event: &Event) {
        if let (Some(lines), Ok(line)) = (&self.lines, serde_json::to_string(event)) {
            let _ = lines.send(line);
        }
    }
}

impl Drop for EventPrinter {
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.written.recv_timeout(FLUSH);
    }
}

impl Observer for EventPrinter {
    fn ready(&mut self, opened: &Opened<'_>) {
        let guarantee = opened.guarantee;
        self.steps = opened.steps;
        self.print(&Event::Ready(Ready {
            events: 2,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            store: opened.spec.store.name.clone(),
            durability: guarantee.survives().to_owned(),
            how: guarantee.how.clone(),
            facts: guarantee.facts.iter().cloned().collect(),
            clients: opened.clients,
            driver_ns: opened.driver_ns,
            connect_seconds: opened.connect.as_secs_f64(),
        }));
        for note in opened.notes {
            self.print(&Event::Note(note.clone()));
        }
    }

    fn started(&mut self, _moment: &Moment<'_>) {
        self.cpu = usage::cpu_ns();
    }

    fn interval(&mut self, moment: &Moment<'_>, interval: &Interval<'_>) {
        let totals = moment.totals;
        let cpu = usage::cpu_ns();
        let earlier = interval.earlier.iter();
        self.print(&Event::Interval(event::Interval {
            k: interval.number,
            start_ns: interval.start_ns,
            length_ns: interval.length_ns,
            unix_ns: crate::clock::unix_ns(),
            due: interval.due,
            additions: additions(interval.additions, self.steps),
            earlier: earlier
                .map(|(k, more)| event::Earlier { k: *k, additions: additions(more, self.steps) })
                .collect(),
            in_flight: totals.in_flight,
            late_generator: totals.late_generator - self.last.late_generator,
            late_client: totals.late_client - self.last.late_client,
            cpu_ns: [cpu[0].saturating_sub(self.cpu[0]), cpu[1].saturating_sub(self.cpu[1])],
            memory_bytes: usage::memory(),
            sorted: None,
        }));
        (self.last, self.cpu) = (totals, cpu);
    }

    fn end(&mut self, closed: &Closed<'_>) {
        for note in diagnostics::notes(closed) {
            self.print(&Event::Note(note));
        }
        let summary = summary(closed, self.steps);
        self.print(&Event::Summary(Box::new(summary)));
    }
}

fn additions(additions: &Additions, steps: &[&str]) -> event::Additions {
    let [good, late, failed, not_yet] = additions.counts;
    event::Additions {
        completed: additions.completed,
        ended: additions.ended,
        good,
        late,
        failed,
        not_yet,
        outcomes: outcomes(&additions.latencies, steps, false),
    }
}

/// How this engine was built.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// The summary of a trial.
fn summary(closed: &Closed<'_>, steps: &[&str]) -> Summary {
    let totals = closed.moment.totals;
    let borders = closed.moment.borders;
    let wait = |grid: fn(&Waits) -> &Grid| {
        let mut reading = Reading::default();
        for waits in closed.moment.recorders.iter().filter_map(|recorder| recorder.waits.as_ref()) {
            reading.add(grid(waits));
        }
        closed.open.then(|| encode(&reading))
    };
    let (end, reason) = closed.end.name_and_reason();
    let since_first = |ns: u64| (ns != NEVER).then(|| ns.saturating_sub(borders.first_ns));
    let mut all = outcomes(closed.latencies, steps, true);
    all.extend(event::censored(&closed.censored, steps, closed.open));
    Summary {
        end: end.to_owned(),
        reason,
        profile: PROFILE.to_owned(),
        start_unix_ns: closed.start_unix_ns,
        borders: event::Borders {
            warmup_ns: borders.first_ns - borders.start_ns,
            window_ns: since_first(borders.end_ns),
            cutoff_ns: since_first(borders.cutoff_ns),
            interval_ns: borders.interval_ns,
        },
        measured_ns: closed.window.length_ns,
        completed: closed.window.completed,
        due: closed.due,
        operations: totals.operations,
        succeeded: totals.succeeded,
        not_yet: totals.not_yet,
        retried: totals.retried.iter().sum(),
        retried_by_status: Status::ALL
            .into_iter()
            .zip(totals.retried)
            .filter(|&(_, count)| count > 0)
            .map(|(status, count)| (status.name().to_owned(), count))
            .collect(),
        unreached: totals.unreached,
        overdue: totals.overdue,
        pauses: event::Pauses { count: totals.pauses[0], ns_sum: totals.pauses[1] },
        connection_attempts: closed
            .connection_attempts
            .map(|attempts| event::ConnectionAttempts { attempted: attempts.attempted, failed: attempts.failed }),
        rows: totals.rows,
        bytes: totals.bytes,
        warmup_operations: totals.warmup,
        carried: closed.carried.clone(),
        in_flight: closed.censored.unanswered,
        unsent: closed.censored.unsent,
        unclosed: closed.moment.failures.unclosed().map(|(_, clients)| clients).sum(),
        late_generator: totals.late_generator,
        late_client: totals.late_client,
        wait_client: wait(|waits| &waits.client),
        wait_generator: wait(|waits| &waits.generator),
        executors: closed
            .threads
            .iter()
            .map(|thread| event::Executor {
                name: thread.name.clone(),
                clients: thread.clients,
                cpu_ns: thread.cpu_ns,
                wall_ns: thread.wall_ns,
                busy: thread.busy(),
                lag: encode(&thread.lag),
                held_ns: thread.held_ns,
            })
            .collect(),
        clock: event::Clock {
            source: if closed.clock.is_some() { "tsc" } else { "kernel" }.to_owned(),
            drift_ppm: closed.clock.map_or(0.0, |clock| clock.drift_ppm),
            offset_ns_max: closed.clock.map_or(0, |clock| clock.offset_ns_max),
            jumps: closed.clock.map_or(0, |clock| clock.jumps),
            reversals: crate::clock::reversals(),
        },
        cpu_ns: closed.cpu_ns,
        memory_bytes_max: usage::memory_max(),
        device_bytes: closed.device_bytes,
        collections: closed
            .collections
            .iter()
            .map(|each| Collection { collector: each.collector.clone(), count: each.count, time_ms: each.time_ms })
            .collect(),
        settle_seconds: closed.settle.map(|settle| settle.as_secs_f64()),
        saturated_values: closed.latencies.values().flatten().map(Reading::saturated).sum(),
        outcomes: all,
        words: closed
            .moment
            .failures
            .messages()
            .map(|(step, status, message)| {
                (format!("{} {}", steps[usize::from(step.0)], status.name()), message.to_owned())
            })
            .collect(),
        sections: closed.sections.clone(),
    }
}
