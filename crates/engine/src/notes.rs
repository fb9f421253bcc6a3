//! What the engine says against itself and about the run (DESIGN: "the engine accuses itself").

use crate::event::Note;
use crate::observer::Closed;
use crate::tape::merge;

/// More than this share of operations over 1 ms late is a verdict, not an accident.
const LATE_SHARE: f64 = 0.001;
/// An engine that takes more of the processors than this has none left to be on time.
const CPU_SHARE: f64 = 0.9;
/// More than this share of an embedded operation's time being ours distorts the comparison.
const DRIVER_SHARE: f64 = 0.1;

/// The notes of a trial.
pub fn of(closed: &Closed<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(generator_limited(closed));
    notes.extend(client_limited(closed));
    notes.extend(unsent(closed));
    notes.extend(errors(closed));
    notes.extend(hung(closed));
    if cfg!(debug_assertions) {
        notes.push(note("debug-build", "this engine is a debug build: its figures are invalid", "run make"));
    }
    notes
}

fn note(name: &str, message: impl Into<String>, hint: &str) -> Note {
    Note { name: name.to_owned(), message: message.into(), hint: hint.to_owned() }
}

fn generator_limited(closed: &Closed<'_>) -> Option<Note> {
    let totals = closed.moment.totals;
    let late = totals.late_generator as f64 / totals.measured.max(1) as f64;
    if late > LATE_SHARE {
        return Some(note(
            "generator-limited",
            format!("{:.2} % of the operations went out over 1 ms late though a client was free", late * 100.0),
            "run fewer clients per engine, use more engines, or set spin.sleep=true",
        ));
    }
    if totals.measured == 0 {
        return None;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let cpu = closed.cpu_ns.iter().sum::<u64>() as f64 / (closed.window_ns.max(1) as f64 * processors);
    if !closed.embedded && cpu > CPU_SHARE {
        return Some(note(
            "generator-limited",
            format!("the engine used {:.0} % of the processors", cpu * 100.0),
            "use more engines, or a host with more processors",
        ));
    }
    // In the closed loop each worker is busy all the time, so its time per operation is the store's and ours.
    let each = closed.measured_ns as f64 * closed.moment.tapes.len() as f64 / totals.measured.max(1) as f64;
    let share = closed.driver_ns / each.max(1.0);
    (closed.embedded && !closed.open && totals.measured > 0 && share > DRIVER_SHARE).then(|| {
        note(
            "generator-limited",
            format!(
                "{:.0} % of an operation's time is ours ({:.0} ns of {each:.0} ns)",
                share.min(1.0) * 100.0,
                closed.driver_ns
            ),
            "compare service times, not throughput, or use larger values",
        )
    })
}

fn client_limited(closed: &Closed<'_>) -> Option<Note> {
    let totals = closed.moment.totals;
    let late = totals.late_client as f64 / totals.measured.max(1) as f64;
    (late > LATE_SHARE).then(|| {
        note(
            "client-limited",
            format!("{:.2} % of the operations waited over 1 ms because all clients were busy", late * 100.0),
            "the response time includes that wait; use more clients to see the store's own limit",
        )
    })
}

fn unsent(closed: &Closed<'_>) -> Option<Note> {
    (closed.unsent > 0).then(|| {
        note(
            "unsent",
            format!("{} operations were due before the end and never sent", closed.unsent),
            "the store does not hold this rate: lower it, or add clients",
        )
    })
}

fn errors(closed: &Closed<'_>) -> Option<Note> {
    let service = merge(closed.moment.tapes.iter().filter_map(|tape| tape.service.as_ref()));
    let failed: u64 = service.iter().filter(|((_, s), _)| s.is_failure()).map(|(_, r)| r.count()).sum();
    if failed == 0 {
        return None;
    }
    let first = service
        .keys()
        .filter(|(_, status)| status.is_failure())
        .find_map(|&(kind, status)| closed.moment.course.words(kind, status));
    let words = first.map(|words| format!(", the first: {words}")).unwrap_or_default();
    Some(note("errors", format!("{failed} steps failed{words}"), "see the counts by operation and status"))
}

fn hung(closed: &Closed<'_>) -> Option<Note> {
    let left = closed.moment.totals.in_flight;
    (left > 0).then(|| {
        note(
            "hung",
            format!("{left} operations got no answer and are in no histogram"),
            "look at the system: it stopped answering",
        )
    })
}
