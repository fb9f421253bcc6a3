//! Operations with several attempts.

use loadstone_load::random::{Draws, Purpose};
use loadstone_load::{Status, StepId};
use loadstone_session::Connection;

use loadstone_measure::actor::Stopwatch;
use loadstone_measure::borders::seconds_ns;
use loadstone_measure::clock::Timer;
use loadstone_measure::control::TrialFailure;
use loadstone_measure::task::Task;
use loadstone_wire::spec::{Phase, TrialSpec};

/// How a failed operation is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RetryPolicy {
    /// Maximum number of attempts after the first.
    pub retries: u64,
    /// Mean sleep before a retry, ns. Each sleep is drawn between 0.8 and 1.2 times this mean, as in YCSB.
    pub interval_ns: u64,
    /// Whether an operation whose last attempt failed stops the trial.
    pub stop: bool,
}

impl RetryPolicy {
    /// The retry policy of a trial. A load must be complete unless the spec states otherwise.
    pub fn from_spec(spec: &TrialSpec) -> Self {
        Self {
            retries: spec.inserts.retries,
            interval_ns: seconds_ns(spec.inserts.retry_seconds),
            stop: spec.phase == Phase::Load && !spec.inserts.keep_going,
        }
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
pub async fn retry<T: Timer, S: Connection, W>(
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
    let mut unsent = session.unsent();
    let mut message = session.last_error();
    task.failures.keep(step, status, || message.clone());
    let mut draws = Draws::new(task.seed, index, Purpose::Retry);
    let (mut left, mut halted) = (policy.retries, false);
    let mut attempts = 1;
    while !status.is_ok() && left > 0 {
        left -= 1;
        // With a rate, a pause would delay all later operations.
        if task.pace.is_none() {
            session.pause().await;
        }
        let sleep = policy.interval_ns as f64 * (0.8 + 0.4 * draws.next_f64());
        let wake = watch.now_ns().saturating_add(sleep as u64);
        watch.timer.until(wake, || task.scheduler.is_over(watch.now_ns())).await;
        if task.scheduler.is_over(watch.now_ns()) {
            halted = true;
            break;
        }
        watch.attempt(step, status, sent, done);
        sent = watch.now_ns();
        attempts += 1;
        status = attempt(session).await;
        done = watch.now_ns();
        if !status.is_ok() {
            unsent &= session.unsent();
            message = session.last_error();
            task.failures.keep(step, status, || message.clone());
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
