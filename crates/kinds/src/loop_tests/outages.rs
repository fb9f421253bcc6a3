//! Compares the effects of outages with the predictions of a much simpler simulation: a queue with several servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use loadstone_load::random::{Draws, Purpose};
use proptest::prelude::*;

use super::*;

const SERVICE_NS: u64 = 300_000;

/// A server that is unavailable between two times.
#[derive(Clone, Copy, Debug)]
struct Outage {
    from_ns: u64,
    to_ns: u64,
    /// Whether the server refuses connections; otherwise it accepts requests without answering.
    refuses: bool,
    timeout_ns: u64,
}

impl Outage {
    /// The duration of an attempt sent at `ns`, and its status.
    fn simulate_attempt(&self, ns: u64) -> (u64, Status) {
        let unavailable = (self.from_ns..self.to_ns).contains(&ns);
        match (unavailable, self.refuses) {
            (false, _) => (SERVICE_NS, Status::Ok),
            (true, true) => (0, Status::ServiceUnavailable),
            (true, false) if self.to_ns - ns + SERVICE_NS > self.timeout_ns => (self.timeout_ns, Status::Timeout),
            (true, false) => (self.to_ns - ns + SERVICE_NS, Status::Ok),
        }
    }
}

#[derive(Clone, Debug)]
struct Scenario {
    rate: u32,
    clients: usize,
    segment: Segment,
    outage: Outage,
    retries: u64,
    retry_ns: u64,
    window_ns: u64,
}

/// Predicted or measured response and service times by status, and counts of operations.
#[derive(Debug, Default, PartialEq)]
struct Outcomes {
    response: BTreeMap<Status, Vec<u64>>,
    service: BTreeMap<Status, Vec<u64>>,
    unsent: u64,
    unreached: u64,
    retried: u64,
}

impl Scenario {
    /// Predicts the outcomes of the operations in the order of their due times. Each operation is performed by the
    /// client that becomes free first.
    fn predict_outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let mut free: BinaryHeap<_> = (0..self.clients).map(|_| Reverse(0u64)).collect();
        let cutoff_ns = self.window_ns + self.window_ns / 10;
        for index in (self.segment.k..).step_by(self.segment.n as usize) {
            let due = (u128::from(index) * 1_000_000_000 / u128::from(self.rate)) as u64;
            if due >= self.window_ns {
                return outcomes;
            }
            let Reverse(idle) = free.pop().unwrap();
            let sent = due.max(idle);
            if sent >= cutoff_ns {
                outcomes.unsent += 1;
                free.push(Reverse(idle));
                continue;
            }
            let (mut now, mut draws, mut attempts) = (sent, Draws::new(1, index, Purpose::Retry), Vec::new());
            loop {
                let (takes, status) = self.outage.simulate_attempt(now);
                now += takes;
                attempts.push((takes, status));
                if status == Status::Ok || attempts.len() as u64 > self.retries {
                    break;
                }
                now += (self.retry_ns as f64 * (0.8 + 0.4 * draws.next_f64())) as u64;
            }
            let status = attempts.last().unwrap().1;
            outcomes.response.entry(status).or_default().push(now - due);
            outcomes.service.entry(status).or_default().push(now - sent);
            outcomes.retried += attempts.len() as u64 - 1;
            outcomes.unreached += u64::from(attempts.iter().all(|&(takes, _)| takes == 0));
            free.push(Reverse(now));
        }
        outcomes
    }

    fn measure_outcomes(&self) -> (Simulated<CoreRun>, u64) {
        let timer = SimTimer::default();
        let (clock, outage) = (timer.clone(), self.outage);
        let script: Script = Rc::new(move |_| outage.simulate_attempt(clock.now_ns()));
        let pace = constant_rate(f64::from(self.rate));
        let inserts = CoreRun::new(core_spec(Mix { insert: 1.0, ..Mix::default() }, 1_000_000), 1).unwrap();
        let setting = Setting {
            segment: self.segment,
            executor: true,
            window_ns: self.window_ns,
            insert_policy: RetryPolicy { retries: self.retries, interval_ns: self.retry_ns, stop: false, delays: None },
            ..Setting::new(Some(&pace), self.clients)
        };
        let run = run_in(&timer, inserts, &setting, &script);
        let due = run.borders.count_due(&pace, self.segment, 0, self.window_ns);
        (run, due)
    }
}

fn build_histograms(by_status: &BTreeMap<Status, Vec<u64>>) -> BTreeMap<Status, Reading> {
    by_status.iter().map(|(&status, values)| (status, collect_reading(values.iter().copied()))).collect()
}

/// Compares a trial with its prediction.
fn check_scenario(scenario: &Scenario) {
    let expected = scenario.predict_outcomes();
    let (run, due) = scenario.measure_outcomes();
    for (which, expected) in [&expected.service, &expected.response].into_iter().enumerate() {
        let all = run.all_readings().into_iter().map(|((_, status), latencies)| (status, latencies[which].clone()));
        assert_eq!(all.collect::<BTreeMap<_, _>>(), build_histograms(expected), "{scenario:?}");
    }
    let totals = run.totals();
    let counts = (due - totals.operations, totals.unreached, run.count_retried());
    assert_eq!(counts, (expected.unsent, expected.unreached, expected.retried), "{scenario:?}");
    assert_eq!(totals.pauses, [0, 0], "at a rate, no client pauses");
}

fn any_scenario() -> impl Strategy<Value = Scenario> {
    let outage = (0u64..1_500, 1u64..1_500, any::<bool>(), 5u64..400);
    (1u32..1_500, 1usize..40, (1u64..4, 0u64..4), outage, 0u64..3, 0u64..50).prop_map(
        |(rate, clients, (n, k), (from, length, refuses, timeout), retries, retry)| Scenario {
            rate,
            clients,
            segment: Segment { k: k % n, n },
            outage: Outage { from_ns: from * MS, to_ns: (from + length) * MS, refuses, timeout_ns: timeout * MS },
            retries,
            // This is not a round number, so that no two events of different clients coincide.
            retry_ns: retry * 1_000_003,
            window_ns: 2_000 * MS,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn outage_matches_plain_simulation(scenario in any_scenario()) {
        check_scenario(&scenario);
    }
}

fn outage_scenario(refuses: bool, clients: usize) -> Scenario {
    let outage = Outage { from_ns: 500 * MS, to_ns: 1_500 * MS, refuses, timeout_ns: 200 * MS };
    Scenario {
        rate: 1_000,
        clients,
        segment: Segment::default(),
        outage,
        retries: 0,
        retry_ns: 0,
        window_ns: 3_000 * MS,
    }
}

#[test]
fn failures_in_refusals_do_not_depend_on_clients() {
    for clients in [1, 4, 32, 256] {
        let (run, due) = outage_scenario(true, clients).measure_outcomes();
        let totals = run.totals();
        assert_eq!((due, totals.count_failed(), totals.unreached), (3_000, 1_000, 1_000), "{clients} clients");
        let failed = &run.service_readings()[&(Kind::Insert, Status::ServiceUnavailable)];
        assert_eq!(failed.sum(), 0, "they fail at the instant at which they are due");
        assert_eq!(totals.late_client, 0);
    }
}

/// Rate × timeout = 200 clients are needed, so that no operation waits for the timeout of another operation.
#[test]
fn silence_is_client_limited_below_rate_times_timeout() {
    for (clients, limited) in [(4, true), (199, true), (201, false)] {
        let run = outage_scenario(false, clients).measure_outcomes().0;
        assert_eq!(run.has_note("client-limited"), limited, "{clients} clients");
    }
}

#[test]
fn retried_operation_lasts_from_its_first_attempt() {
    // One attempt in three has no answer within 100 ms.
    let attempts = std::cell::Cell::new(0u64);
    let script: Script = Rc::new(move |_| {
        attempts.set(attempts.get() + 1);
        if attempts.get().is_multiple_of(3) { (100 * MS, Status::Timeout) } else { (MS, Status::Ok) }
    });
    let pace = constant_rate(5.0);
    let insert_policy = RetryPolicy { retries: 3, interval_ns: 0, stop: false, delays: None };
    for (pace, rests) in [(None, Scripted::REST_NS), (Some(&pace), 0)] {
        let load = CoreLoad::new(core_spec(Mix::default(), 20), 1);
        let run = run_workload(load, &Setting { insert_policy, ..Setting::new(pace, 1) }, &script);
        let ok = &run.service_readings()[&(Kind::Insert, Status::Ok)];
        let slow = ok.bucket_ranges().filter(|&(low, ..)| low > 100 * MS).map(|(.., n)| n).sum::<u64>();
        assert_eq!((ok.count(), slow, run.count_retried()), (20, slow, slow), "each is one operation");
        assert!(slow >= 9, "{slow}");
        assert_eq!(ok.sum(), u128::from(20 * MS + slow * (100 * MS + rests)));
        assert_eq!(run.totals().retried[Status::Timeout as usize], slow);
    }
}

#[test]
fn overloaded_store_is_not_a_late_generator() {
    // Each operation takes 4 ms. Four clients are offered four times the load that they can handle, and the timer wakes
    // late.
    let script: Script = Rc::new(|_| (4 * MS, Status::Ok));
    let pace = constant_rate(4_000.0);
    let setting = Setting { window_ns: 2_000 * MS, late_ns: 60_000, executor: true, ..Setting::new(Some(&pace), 4) };
    let run = run_workload(read_only_run(1_000_000), &setting, &script);
    assert!(run.has_note("client-limited") && !run.has_note("generator-limited"));
    assert_eq!(run.totals().late_generator, 0);
}
