//! What the engine reports against itself and about the run.

use loadstone_load::Status;

use crate::event::Note;
use crate::observer::Closed;

/// More than this share of operations over 1 ms late is a verdict, not an accident.
const LATE_SHARE: f64 = 0.001;
/// A thread of the engine that is at work for more than this share of the time has none left to be on time.
const BUSY_SHARE: f64 = 0.9;
/// More than this share of an embedded operation's time being ours distorts the comparison.
const DRIVER_SHARE: f64 = 0.1;
/// A rate of which more than this share was not answered was not held.
const CENSORED_SHARE: f64 = 0.001;
/// A warm-up that lasts for more than this share of the window into it was too short, or the system hung.
const CARRIED_SHARE: f64 = 0.1;
/// Pauses of the engine below this share of the window do not explain why a rate was not held.
const HELD_SHARE: f64 = 0.05;

/// The notes of a trial.
pub fn notes(closed: &Closed<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(generator_limited(closed));
    notes.extend(client_limited(closed));
    notes.extend(rate_not_held(closed));
    notes.extend(carried(closed));
    notes.extend(errors(closed));
    notes.extend(unanswered(closed));
    notes.extend(unclosed(closed));
    notes.extend(clock(closed));
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
    let late = totals.late_generator as f64 / totals.operations.max(1) as f64;
    if late > LATE_SHARE {
        return Some(note(
            "generator-limited",
            format!("{:.2} % of the operations were sent more than 1 ms late although a client was idle", late * 100.0),
            "run fewer clients per engine, use more engines, or set spin.sleep=true",
        ));
    }
    if totals.operations == 0 {
        return None;
    }
    let executors = closed.threads.iter().filter(|thread| thread.clients > 0);
    let busiest = executors.max_by(|a, b| a.busy().total_cmp(&b.busy()));
    if let Some(busiest) = busiest.filter(|busiest| !closed.embedded && busiest.busy() > BUSY_SHARE) {
        return Some(note(
            "generator-limited",
            format!(
                "{}, which serves {} clients, was busy for {:.0} % of the time",
                busiest.name,
                busiest.clients,
                busiest.busy() * 100.0
            ),
            "use more executors or engines, or a host with more processors",
        ));
    }
    // In the closed loop each worker is busy all the time, so its time per operation is the store's and ours.
    let each = closed.window.length_ns as f64 * closed.moment.recorders.len() as f64 / totals.operations as f64;
    let share = closed.driver_ns / each.max(1.0);
    (closed.embedded && !closed.open && share > DRIVER_SHARE).then(|| {
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
    let late = totals.late_client as f64 / totals.operations.max(1) as f64;
    (late > LATE_SHARE).then(|| {
        note(
            "client-limited",
            format!("{:.2} % of the operations waited over 1 ms because all clients were busy", late * 100.0),
            "the response time includes that wait; use more clients to see the store's own limit",
        )
    })
}

fn rate_not_held(closed: &Closed<'_>) -> Option<Note> {
    let due = closed.due.filter(|&due| due > 0)?;
    let censored = closed.censored.unanswered + closed.censored.unsent;
    let share = censored as f64 / due as f64;
    (share > CENSORED_SHARE).then(|| {
        note(
            "rate-not-held",
            format!(
                "{censored} of {due} operations that were due ({:.2} %) had no answer in time{}",
                share * 100.0,
                held(closed)
            ),
            "the latencies depend on how long was measured: lower the rate, or add clients",
        )
    })
}

/// That the engine itself was held up, if it was: then the rate may not be to blame.
fn held(closed: &Closed<'_>) -> String {
    let held_ns = closed.threads.iter().map(|thread| thread.held_ns).max().unwrap_or_default();
    if (held_ns as f64) < HELD_SHARE * closed.window.length_ns as f64 {
        return String::new();
    }
    format!("; the engine itself could not run for up to {:.3} s, which may be the reason", held_ns as f64 / 1e9)
}

fn carried(closed: &Closed<'_>) -> Option<Note> {
    let carried = &closed.carried;
    let all = carried.ended + carried.unanswered + carried.unsent;
    let window_ns = closed.window.length_ns;
    (all > 0 && window_ns > 0 && carried.ns_max as f64 > CARRIED_SHARE * window_ns as f64).then(|| {
        note(
            "carried-over",
            format!(
                "{all} operations of the warm-up had not ended when the window began; the last took {:.3} s of the window's \
                 {:.3} s",
                carried.ns_max as f64 / 1e9,
                window_ns as f64 / 1e9
            ),
            "their latencies are not in the report, and others waited for them: use a longer warm-up, or a lower rate",
        )
    })
}

fn errors(closed: &Closed<'_>) -> Option<Note> {
    let failed = closed.latencies.iter().filter(|((_, status), _)| status.is_failure());
    let failed: u64 = failed.map(|(_, latencies)| latencies[0].count()).sum();
    if failed == 0 {
        return None;
    }
    let mut messages = closed.moment.failures.messages();
    let first = messages.find(|(_, status, _)| status.is_failure() && *status != Status::NotYet);
    let first = first.map(|(_, _, message)| format!(", the first: {message}")).unwrap_or_default();
    Some(note("errors", format!("{failed} steps failed{first}"), "see the counts by operation and status"))
}

fn unanswered(closed: &Closed<'_>) -> Option<Note> {
    let left = closed.censored.unanswered + closed.carried.unanswered;
    (left > 0).then(|| {
        note(
            "hung",
            format!("{left} operations had no answer when the engine stopped waiting"),
            "look at the system: it stopped answering",
        )
    })
}

fn unclosed(closed: &Closed<'_>) -> Option<Note> {
    let left: u64 = closed.moment.failures.unclosed().map(|(_, clients)| clients).sum();
    (left > 0).then(|| {
        note(
            "unclosed",
            format!("{left} clients did not close: writes that were still held there may be lost"),
            "see the message of CLEANUP; the system must be there until the load has ended",
        )
    })
}

fn clock(closed: &Closed<'_>) -> Option<Note> {
    closed.clock.filter(|clock| clock.jumps > 0).map(|_| {
        note(
            "clock",
            "the processor's counter and the kernel's clock parted during the run: its times are wrong",
            "was the machine suspended or moved? Measure again",
        )
    })
}
