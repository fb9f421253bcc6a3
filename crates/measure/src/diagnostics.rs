//! Notes about a trial: conclusions about the engine, the clients and the system that follow from its figures.

use loadstone_load::Status;

use crate::observer::Closed;
use loadstone_wire::error::count_noun;
use loadstone_wire::event::Note;

// These are the thresholds of the judge's checks with the same names (python/loadstone/judge/settings.py). A test
// compares them.
/// `generator-limited`, `client-limited`: share of operations that may be more than 1 ms late.
const LATE_SHARE: f64 = 0.001;
/// `generator-limited`: share of time for which an executor may be busy, or share of the processors that the engine may
/// use.
const CPU_SHARE: f64 = 0.9;
/// `generator-limited`: share of an embedded operation's time that the engine may account for.
const DRIVER_SHARE: f64 = 0.1;
/// `rate-not-held`: share of due operations that may have no answer by the cut-off.
const CENSORED_SHARE: f64 = 0.001;
/// `carried-over`: time into the window at which the last operation of the warm-up may complete, as a share of the
/// window.
const CARRIED_SHARE: f64 = 0.1;
/// `stalled`: minimum service time of the slowest operation, in ns and as a share of the window.
const SLOWEST_NS: u64 = 1_000_000_000;
const SLOWEST_SHARE: f64 = 0.05;
/// Pauses of the engine shorter than this share of the window do not explain why the rate was not reached.
const HELD_SHARE: f64 = 0.05;

/// The notes of a trial, except `generator-limited` and `stalled`, which the judge decides if the lab runs the trial.
pub fn notes(closed: &Closed<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(client_limited(closed));
    notes.extend(rate_not_held(closed));
    notes.extend(note_carried(closed));
    notes.extend(note_errors(closed));
    notes.extend(closed.notes.iter().cloned());
    notes.extend(note_unanswered(closed));
    notes.extend(note_unclosed(closed));
    notes.extend(servers_down(closed));
    notes.extend(note_clock(closed));
    if cfg!(debug_assertions) {
        notes.push(create_note(
            "debug-build",
            "this load generator is a debug build: its figures are invalid",
            "run make",
        ));
    }
    notes
}

fn create_note(name: &str, message: impl Into<String>, hint: &str) -> Note {
    Note { name: name.to_owned(), message: message.into(), hint: hint.to_owned() }
}

/// The notes that a front end without the lab prints if the engine was the bottleneck. The formulas are from the
/// judge's check with the same name (`python/loadstone/judge/checks/rate.py`). `spins`: `spin.sleep` is set, or cannot
/// be set.
pub fn generator_limited(closed: &Closed<'_>, spins: bool) -> Vec<Note> {
    let totals = closed.moment.totals;
    if totals.operations == 0 {
        return Vec::new();
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let mut notes = Vec::new();
    let mut add = |message, hint| notes.push(create_note("generator-limited", message, hint));
    let late = totals.late_generator as f64 / totals.operations as f64;
    if late > LATE_SHARE {
        add(
            format!(
                "{:.2} % of the operations were sent more than 1 ms late because of the load generator",
                late * 100.0
            ),
            choose_late_hint(find_pause(closed).is_some(), spins),
        );
    }
    if closed.embedded {
        let clients = closed.moment.recorders.iter().map(|recorder| recorder.flights.len() as u64).sum();
        let each_ns = operation_ns(closed.window.length_ns, clients, processors, totals.operations);
        let share = closed.driver_ns / each_ns;
        if !closed.open && share > DRIVER_SHARE {
            add(
                format!(
                    "{:.0} % of an operation's time is the load generator's own ({:.0} ns of {each_ns:.0} ns)",
                    share.min(1.0) * 100.0,
                    closed.driver_ns
                ),
                "compare service times, not throughput, or use larger values",
            );
        }
        return notes;
    }
    let executors = closed.threads.iter().filter(|thread| thread.clients > 0);
    if let Some(busiest) = executors.max_by(|a, b| a.busy().total_cmp(&b.busy())) {
        if busiest.busy() > CPU_SHARE {
            add(
                format!(
                    "{}, which serves {}, was busy for {:.0} % of the time",
                    busiest.name,
                    count_noun(busiest.clients, "client"),
                    busiest.busy() * 100.0
                ),
                if busiest.clients > CLIENTS_PER_EXECUTOR {
                    "use more executors (-p executors=N), or a host with more processors"
                } else {
                    "use a host with more processors, or stop other programs on this one"
                },
            );
        }
    } else {
        let available_ns = (closed.window.length_ns * processors).max(1);
        let share = closed.cpu_ns.iter().sum::<u64>() as f64 / available_ns as f64;
        if share > CPU_SHARE {
            add(
                format!("the load generator used {:.0} % of the processors", share * 100.0),
                "use a host with more processors, or stop other programs on this one",
            );
        }
    }
    notes
}

/// The hint for operations that were sent late.
fn choose_late_hint(is_paused: bool, spins: bool) -> &'static str {
    match (is_paused, spins) {
        (true, _) => {
            "use an idle host, or a host with more processors: the load generator was ready to run, but had no processor"
        }
        (_, true) => "lower the rate, or run fewer clients",
        _ => "lower the rate, run fewer clients, or let idle clients spin: -p spin.sleep=true",
    }
}

/// The note that a front end without the lab prints if one operation took a large part of the window. The lab reads the
/// time series instead (`python/loadstone/judge/checks/stalled.py`).
pub fn note_slowest(closed: &Closed<'_>) -> Option<Note> {
    let slowest_ns = closed.latencies.values().map(|[service, ..]| service.to_histogram().max()).max()?;
    let share = slowest_ns as f64 / closed.window.length_ns.max(1) as f64;
    (slowest_ns >= SLOWEST_NS && share >= SLOWEST_SHARE).then(|| {
        create_note(
            "stalled",
            format!(
                "the slowest operation took {:.3} s, {:.0} % of the measurement",
                slowest_ns as f64 / 1e9,
                share.min(1.0) * 100.0
            ),
            "the system may have stopped: see its log, and the throughput over time",
        )
    })
}

/// The time that one client needs for one operation, ns. If there are more clients than processors, only one client per
/// processor is working: the remaining clients wait for a processor rather than for the store.
fn operation_ns(window_ns: u64, clients: u64, processors: u64, operations: u64) -> f64 {
    (window_ns as f64 * clients.min(processors) as f64 / operations as f64).max(1.0)
}

/// A note on server events, in seconds of the window: when the cluster considered a server down, when a server did not
/// respond to the load generator, and other events.
fn servers_down(closed: &Closed<'_>) -> Option<Note> {
    let second = |unix_ns: u64| (unix_ns as f64 - closed.start_unix_ns as f64) / 1e9;
    let mut parts = Vec::new();
    for (at, report) in closed.server_events.iter().enumerate() {
        let (server, event, from) = (&report.server, report.event.as_str(), second(report.unix_ns));
        let end_of =
            |name| closed.server_events[at..].iter().find(|other| other.server == *server && other.event == name);
        let until =
            |name| end_of(name).map_or("the end of the run".to_owned(), |end| format!("{:.1} s", second(end.unix_ns)));
        match event {
            "down" => parts.push(format!("{server} was considered down from {from:.1} s to {}", until("up"))),
            // The first attempt to connect usually succeeds if only the connection was lost.
            "unusable" if end_of("usable").is_none_or(|end| end.unix_ns - report.unix_ns > UNUSABLE_NS_MIN) => {
                parts.push(format!("no usable connection to {server} from {from:.1} s to {}", until("usable")));
            }
            "up" | "usable" | "unusable" => {}
            _ if server.is_empty() => parts.push(format!("{event} at {from:.1} s")),
            _ => parts.push(format!("{server}: {event} at {from:.1} s")),
        }
    }
    // Many events of one type are no more informative than the first few.
    let more = parts.len().saturating_sub(EVENTS_SHOWN);
    parts.truncate(EVENTS_SHOWN);
    let more = if more > 0 { format!("; {more} more events") } else { String::new() };
    let hint = "times are relative to the start of the measurement; see the logs of the servers for the cause";
    (!parts.is_empty()).then(|| create_note("server-events", format!("{}{more}", parts.join("; ")), hint))
}

/// The number of clients that one executor serves by default.
const CLIENTS_PER_EXECUTOR: u64 = 32;

/// A note mentions a time without a usable connection only if it is longer than this, ns.
const UNUSABLE_NS_MIN: u64 = 100_000_000;

/// Maximum number of server events in a note.
const EVENTS_SHOWN: usize = 8;

fn client_limited(closed: &Closed<'_>) -> Option<Note> {
    let totals = closed.moment.totals;
    let late = totals.late_client as f64 / totals.operations.max(1) as f64;
    (late > LATE_SHARE).then(|| {
        create_note(
            "client-limited",
            format!("{:.2} % of the operations waited over 1 ms because all clients were busy", late * 100.0),
            "the response time includes that wait; use more clients to see the store's own limit",
        )
    })
}

fn rate_not_held(closed: &Closed<'_>) -> Option<Note> {
    let due = closed.due.filter(|&due| due > 0)?;
    // With a limit on operations, every operation is eventually sent, however late.
    let late = closed.censored.unanswered + closed.censored.unsent + closed.moment.totals.overdue;
    let share = late as f64 / due as f64;
    (share > CENSORED_SHARE).then(|| {
        create_note(
            "rate-not-held",
            format!(
                "{late} of {due} operations that were due ({:.2} %) had no answer by the cut-off, a tenth of the window \
                 (at most 5 s) after its end{}",
                share * 100.0,
                pause_clause(closed)
            ),
            "lower the rate, or add clients: the latencies depend on the length of the measurement",
        )
    })
}

/// The longest total pause of any thread of the engine, if it is long enough to explain late operations.
fn find_pause(closed: &Closed<'_>) -> Option<u64> {
    let held_ns = closed.threads.iter().map(|thread| thread.held_ns).max()?;
    is_long_pause(held_ns, closed.window.length_ns).then_some(held_ns)
}

fn is_long_pause(held_ns: u64, window_ns: u64) -> bool {
    held_ns > 0 && held_ns as f64 >= HELD_SHARE * window_ns as f64
}

/// A clause about pauses of the engine, to be appended to a message: the pauses, rather than the system, may be the
/// reason for the problem.
fn pause_clause(closed: &Closed<'_>) -> String {
    find_pause(closed).map_or_else(String::new, |held_ns| {
        format!(
            "; the load generator itself could not run for up to {:.3} s, which may be the reason",
            held_ns as f64 / 1e9
        )
    })
}

fn note_carried(closed: &Closed<'_>) -> Option<Note> {
    let carried = &closed.carried;
    let all = carried.ended + carried.unanswered + carried.unsent;
    let window_ns = closed.window.length_ns;
    (all > 0 && window_ns > 0 && carried.ns_max as f64 > CARRIED_SHARE * window_ns as f64).then(|| {
        create_note(
            "carried-over",
            format!(
                "{} of the warm-up had not completed when the window began; the last of them completed {}{:.3} s into \
                 the window of {:.3} s",
                count_noun(all, "operation"),
                if carried.ended < all { "at least " } else { "" },
                carried.ns_max as f64 / 1e9,
                window_ns as f64 / 1e9
            ),
            "the report excludes them, but measured operations waited for them: use a longer warm-up, or a lower rate",
        )
    })
}

fn note_errors(closed: &Closed<'_>) -> Option<Note> {
    let failed = closed.latencies.iter().filter(|((_, status), _)| status.is_failure());
    let failed: u64 = failed.map(|(_, latencies)| latencies[0].count()).sum();
    let retried: u64 = closed.moment.totals.retried.iter().sum();
    if failed + retried == 0 {
        return None;
    }
    let mut messages = closed.moment.failures.messages();
    let first = messages.find(|(_, status, _)| status.is_failure() && *status != Status::NotYet);
    let first = first.map(|(_, _, message)| format!(", the first: {message}")).unwrap_or_default();
    let verb = if retried == 1 { "was" } else { "were" };
    let attempts = count_noun(retried, "failed attempt");
    let retried = if retried > 0 { format!(", and {attempts} {verb} retried") } else { String::new() };
    let steps = if failed == 1 { "step" } else { "steps" };
    let message = format!("{failed} {steps} failed{retried}{first}");
    Some(create_note("errors", message, "see the counts by operation and status"))
}

fn note_unanswered(closed: &Closed<'_>) -> Option<Note> {
    let left = closed.censored.unanswered + closed.carried.unanswered;
    (left > 0).then(|| {
        create_note(
            "hung",
            format!("{} had no answer when the load generator stopped waiting", count_noun(left, "operation")),
            "check the system: it stopped answering",
        )
    })
}

fn note_unclosed(closed: &Closed<'_>) -> Option<Note> {
    let left: u64 = closed.moment.failures.list_unclosed().map(|(_, clients)| clients).sum();
    (left > 0).then(|| {
        create_note(
            "unclosed",
            format!("{} did not close: buffered writes may be lost", count_noun(left, "client")),
            "see the message of CLEANUP, and keep the system running until the load has ended",
        )
    })
}

fn note_clock(closed: &Closed<'_>) -> Option<Note> {
    closed.clock.filter(|clock| clock.jumps > 0).map(|_| {
        create_note(
            "clock",
            "the processor's counter and the kernel's clock diverged during the run: its times are wrong",
            "measure again on a machine that is not suspended or migrated during the trial",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The judge's thresholds for a check.
    fn judge_thresholds(check: &str) -> serde_json::Value {
        let settings = include_str!("../../../python/loadstone/judge/settings.py");
        let line = settings.lines().find_map(|line| line.trim().strip_prefix(&format!("\"{check}\": ")));
        serde_json::from_str(line.expect("a line of DEFAULTS").trim_end_matches(',')).expect("names and numbers")
    }

    #[test]
    fn thresholds_are_those_of_the_judge() {
        for (check, name, threshold) in [
            ("generator-limited", "late", LATE_SHARE),
            ("generator-limited", "cpu", CPU_SHARE),
            ("generator-limited", "driver", DRIVER_SHARE),
            ("client-limited", "late", LATE_SHARE),
            ("rate-not-held", "censored", CENSORED_SHARE),
            ("carried-over", "share", CARRIED_SHARE),
            ("stalled", "seconds", SLOWEST_NS as f64 / 1e9),
            ("stalled", "share", SLOWEST_SHARE),
        ] {
            assert_eq!(judge_thresholds(check)[name].as_f64(), Some(threshold), "{check}: {name}");
        }
        let rate = include_str!("../../../python/loadstone/judge/checks/rate.py");
        assert!(rate.contains(&format!("\nHELD_SHARE = {HELD_SHARE}\n")));
    }

    #[test]
    fn hint_names_the_cause_of_lateness() {
        assert!(is_long_pause(50, 1_000) && !is_long_pause(49, 1_000) && !is_long_pause(0, 0));
        for spins in [false, true] {
            assert!(choose_late_hint(true, spins).starts_with("use an idle host"));
            assert_eq!(choose_late_hint(false, spins).contains("spin.sleep"), !spins);
        }
    }

    /// Uses the same cases as the judge's test of this check (`tests/support/judge_cases_generator.py`).
    #[test]
    fn only_one_client_per_processor_is_working() {
        let window_ns = 100_000_000_000;
        assert!((operation_ns(window_ns, 10, 64, 100_000) - 10_000_000.0).abs() < 1e-3);
        assert!((operation_ns(window_ns, 10, 4, 100_000) - 4_000_000.0).abs() < 1e-3);
    }
}
