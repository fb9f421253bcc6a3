//! `loadstone-engine trial` reads a TrialSpec and control lines, and prints events.
//!
//! With `lease_ms`, stdin is a lease. The lab writes a line regularly. When stdin closes, or is silent for longer than
//! the lease, the load stops automatically, so that a killed lab cannot leave a fleet of engines loading a system.
//! Without `lease_ms`, a trial runs to its end even if stdin closes, as in `… --print-spec | loadstone-engine trial`.

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use loadstone_kinds::sort;
use loadstone_measure::control::{Control, End, Stop, TrialFailure};
use loadstone_measure::event_printer::EventPrinter;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::{TrialSpec, WorkSpec};
use serde::Deserialize;

/// The help text.
pub const USAGE: &str = "\
usage: loadstone trial <SPEC

Runs one trial: reads its TrialSpec from standard input as one line of JSON, and writes events to standard output, each as one
line of JSON. To create and run a first spec, use --print-spec:

  loadstone ycsb run null -p recordcount=1000 -p operationcount=1000 --print-spec | loadstone trial

The formats are in docs/reference/schemas: trial-spec.json, event.json and control.json. exit status: 0 done, 1 failed, 2 the
spec is refused, 130 stopped by a signal
";

/// A control line.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlLine {
    /// Start the load at this time, ns since the Unix epoch.
    StartAt(u64),
    /// Stop the trial now.
    Stop,
    /// A heartbeat; any other line also counts as one.
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
        WorkSpec::Sort(work) => sort::trial::run_trial(&spec, work, controls, &mut printer)?,
        _ => loadstone_registry::run(&spec, controls, &mut printer)?,
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
        // Dropping `alive` notifies the watcher of the lease, which treats this as the end of the lease.
        if alive.is_none() {
            let _ = controls.send(Control::StdinClosed);
        }
    });
}

/// Stops the load when no heartbeat arrives for the length of the lease, or when stdin is closed.
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
