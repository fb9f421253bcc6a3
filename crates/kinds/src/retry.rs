//! Operations with several attempts.

use loadstone_load::random::{Draws, Purpose};
use loadstone_load::{Status, StepId};
use loadstone_session::Connection;

use loadstone_measure::actor::Stopwatch;
use loadstone_measure::borders::seconds_ns;
use loadstone_measure::clock::Timer;
use loadstone_measure::control::TrialFailure;
use loadstone_measure::task::Task;
use loadstone_stress::settings::DelayPolicy;
use loadstone_wire::spec::{DelaySpec, Phase, TrialSpec};

/// How a failed operation is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryPolicy {
    /// Maximum number of attempts after the first.
    pub retries: u64,
    /// Mean sleep before a retry, ns; with delays, the minimum.
    pub interval_ns: u64,
    /// Whether an operation whose last attempt failed stops the trial.
    pub stop: bool,
    /// How the sleeps grow; if absent, they do not.
    pub delays: Option<DelaySpec>,
}

impl RetryPolicy {
    /// The retry policy of a trial. A load must be complete unless the spec states otherwise.
    pub fn from_spec(spec: &TrialSpec) -> Self {
        Self {
            retries: spec.inserts.retries,
            interval_ns: seconds_ns(spec.inserts.retry_seconds),
            stop: spec.phase == Phase::Load && !spec.inserts.keep_going,
            delays: spec.inserts.delays,
        }
    }

    /// The sleep before retry number `retry`, counted from 0, in ns. `draw` is uniform between 0 and 1.
    ///
    /// Without delays, the sleep is 0.8 to 1.2 times the mean, as in YCSB. With delays, it is computed as in ScyllaDB's
    /// fork of cassandra-stress (`SettingsErrors.nextDelay`).
    fn sleep_ns(&self, retry: u64, draw: f64) -> u64 {
        let min_ns = self.interval_ns as f64;
        let Some(DelaySpec { policy, seconds_max }) = self.delays else {
            return (min_ns * (0.8 + 0.4 * draw)) as u64;
        };
        let max_ns = seconds_ns(seconds_max) as f64;
        let delay_ns = match policy {
            DelayPolicy::Constant => min_ns,
            DelayPolicy::Linear => min_ns + (max_ns - min_ns) * retry as f64 / (self.retries as f64 + 1.0),
            DelayPolicy::Exponential => min_ns * 2_f64.powi(retry.min(1_000) as i32),
        };
        (delay_ns * (0.75 + 0.5 * draw)).clamp(min_ns, max_ns.max(min_ns)) as u64
    }
}

/// An operation that is retried.
#[derive(Clone, Copy, Debug)]
pub struct Retried<'a> {
    pub index: u64,
    pub step: StepId,
    /// The name of the operation in an error message, such as `insert`.
    pub name: &'static str,
    pub key: &'a [u8],
}

/// Retries an operation whose first attempt returned `status` at `done`, and records it. `attempt` makes another
/// attempt. Returns the status and the end of the last attempt, and whether no attempt was sent because no server could
/// be reached.
#[cold]
pub async fn retry_operation<T: Timer, S: Connection, W>(
    task: &Task<W>,
    policy: &RetryPolicy,
    session: &mut S,
    watch: &Stopwatch<'_, T>,
    operation: Retried<'_>,
    (mut status, mut done): (Status, u64),
    mut attempt: impl AsyncFnMut(&mut S) -> Status,
) -> (Status, u64, bool) {
    let Retried { index, step, name, key } = operation;
    let mut sent = watch.sent_ns;
    let mut unsent = session.is_unsent();
    let mut message = session.last_error();
    task.failures.keep_message(step, status, || message.clone());
    let mut draws = Draws::new(task.seed, index, Purpose::Retry);
    let (mut left, mut halted) = (policy.retries, false);
    let mut attempts = 1_u32;
    while !status.is_ok() && left > 0 {
        left -= 1;
        // With a rate, a pause would delay all later operations.
        if task.pace.is_none() {
            session.pause().await;
        }
        let sleep_ns = policy.sleep_ns(u64::from(attempts - 1), draws.next_f64());
        let wake = watch.now_ns().saturating_add(sleep_ns);
        watch.timer.wait_until(wake, || task.scheduler.is_over(watch.now_ns())).await;
        if task.scheduler.is_over(watch.now_ns()) {
            halted = true;
            break;
        }
        watch.record_attempt(step, status, sent, done);
        sent = watch.now_ns();
        attempts += 1;
        status = attempt(session).await;
        done = watch.now_ns();
        if !status.is_ok() {
            unsent &= session.is_unsent();
            message = session.last_error();
            task.failures.keep_message(step, status, || message.clone());
        }
    }
    watch.record_retried(step, status, sent, done);
    if !status.is_ok() && policy.stop && !halted {
        task.scheduler.halt_because(|| {
            let message = message.as_deref().or(task.failures.message(step, status)).unwrap_or("no message").to_owned();
            let key = String::from_utf8_lossy(key).into_owned();
            TrialFailure::Operation { operation: name, key, status, message, attempts }
        });
    }
    (status, done, unsent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The shortest and the longest sleep before each of four retries, ms.
    fn sleeps_ms(policy: Option<DelayPolicy>, min_ms: u64, max_ms: u64) -> [(u64, u64); 4] {
        let delays = policy.map(|policy| DelaySpec { policy, seconds_max: max_ms as f64 / 1e3 });
        let policy = RetryPolicy { retries: 4, interval_ns: min_ms * MS, stop: false, delays };
        [0, 1, 2, 3].map(|retry| (policy.sleep_ns(retry, 0.0) / MS, policy.sleep_ns(retry, 1.0) / MS))
    }

    #[test]
    fn sleeps_grow_as_in_the_fork() {
        assert_eq!(sleeps_ms(None, 100, 0), [(80, 120); 4]);
        assert_eq!(sleeps_ms(Some(DelayPolicy::Constant), 100, 1_000), [(100, 125); 4]);
        assert_eq!(sleeps_ms(Some(DelayPolicy::Constant), 100, 110), [(100, 110); 4]);
        // Five tries: steps of a fifth of the range.
        let linear = [(100, 125), (225, 375), (375, 625), (525, 875)];
        assert_eq!(sleeps_ms(Some(DelayPolicy::Linear), 100, 1_100), linear);
        let exponential = [(100, 125), (150, 250), (300, 500), (600, 600)];
        assert_eq!(sleeps_ms(Some(DelayPolicy::Exponential), 100, 600), exponential);
    }

    #[test]
    fn late_retries_keep_the_maximum() {
        let delays = Some(DelaySpec { policy: DelayPolicy::Exponential, seconds_max: 2.0 });
        let policy = RetryPolicy { retries: u64::MAX, interval_ns: MS, stop: false, delays };
        assert_eq!(policy.sleep_ns(u64::MAX, 0.0), 2_000 * MS);
    }
}
