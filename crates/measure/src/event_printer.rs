//! Prints the events of a trial.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use loadstone_load::Status;
use loadstone_load::histogram::{Grid, Reading};
use loadstone_wire::event::{self, Event, Ready, Summary, encode, outcomes};

use crate::borders::NEVER;
use crate::diagnostics;
use crate::observer::{Closed, Interval, Moment, Observer, OpenedTrial};
use crate::recorder::Waits;
use crate::recorder::reader::{IntervalAdditions, Totals};
use crate::usage;

/// Maximum time for a slow lab to read the last events.
const FLUSH: Duration = Duration::from_secs(5);

/// Prints events, one per line, and flushes each of them at once. Runs on a separate thread, because a lab that does
/// not read must not block the conductor, which monitors the lease and the end of the trial.
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
                // A lab that has exited has also closed stdin, which ends the load.
                if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
                    break;
                }
            }
            let _ = done.send(());
        });
        Self { lines: Some(lines), written, steps: &[], last: Totals::default(), cpu: [0; 2] }
    }

    /// Prints an event.
    pub fn print_event(&mut self, event: &Event) {
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
    fn report_ready(&mut self, opened: &OpenedTrial<'_>) {
        let guarantee = opened.guarantee;
        self.steps = opened.steps;
        self.print_event(&Event::Ready(Ready {
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
            self.print_event(&Event::Note(note.clone()));
        }
    }

    fn begin_window(&mut self, _moment: &Moment<'_>) {
        self.cpu = usage::cpu_ns();
    }

    fn report_interval(&mut self, moment: &Moment<'_>, interval: &Interval<'_>) {
        let totals = moment.totals;
        let cpu = usage::cpu_ns();
        let earlier = interval.earlier.iter();
        self.print_event(&Event::Interval(event::Interval {
            k: interval.number,
            start_ns: interval.start_ns,
            length_ns: interval.length_ns,
            unix_ns: crate::clock::unix_ns(),
            due: interval.due,
            additions: event_additions(interval.additions, self.steps),
            earlier: earlier
                .map(|(k, more)| event::Earlier { k: *k, additions: event_additions(more, self.steps) })
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

    fn report_end(&mut self, closed: &Closed<'_>) {
        for note in diagnostics::notes(closed) {
            self.print_event(&Event::Note(note));
        }
        let summary = build_summary(closed, self.steps);
        self.print_event(&Event::Summary(Box::new(summary)));
    }
}

fn event_additions(additions: &IntervalAdditions, steps: &[&str]) -> event::Additions {
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

/// The build profile of this engine.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// The summary of a trial.
fn build_summary(closed: &Closed<'_>, steps: &[&str]) -> Summary {
    let totals = closed.moment.totals;
    let borders = closed.moment.borders;
    let wait = |grid: fn(&Waits) -> &Grid| {
        let mut reading = Reading::default();
        for waits in closed.moment.recorders.iter().filter_map(|recorder| recorder.waits.as_ref()) {
            reading.add_grid(grid(waits));
        }
        closed.open.then(|| encode(&reading))
    };
    let (end, reason) = closed.end.name_and_reason();
    let since_first = |ns: u64| (ns != NEVER).then(|| ns.saturating_sub(borders.first_ns));
    let mut all = outcomes(closed.latencies, steps, true);
    all.extend(event::censor_outcomes(&closed.censored.bounds, steps, closed.open));
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
        connection_attempts: closed.connection_attempts,
        server_events: closed.server_events.clone(),
        rows: totals.rows,
        bytes: totals.bytes,
        warmup_operations: totals.warmup,
        carried: closed.carried.clone(),
        in_flight: closed.censored.unanswered,
        unsent: closed.censored.unsent,
        unclosed: closed.moment.failures.list_unclosed().map(|(_, clients)| clients).sum(),
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
            reversals: crate::clock::count_reversals(),
        },
        cpu_ns: closed.cpu_ns,
        memory_bytes_max: usage::memory_max(),
        device_bytes: closed.device_bytes,
        collections: closed.collections.clone(),
        settle_seconds: closed.settle.map(|settle| settle.as_secs_f64()),
        saturated_values: closed.latencies.values().flatten().map(Reading::count_saturated).sum(),
        outcomes: all,
        messages: closed
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
