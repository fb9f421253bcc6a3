//! How often a store tries to connect to a node that refuses connections, and what happens to operations until an
//! attempt succeeds.
//!
//! All sessions of an engine share one [`Node`] for each server. So even if a thousand clients lose their connections,
//! they make only one attempt at a time, and the number of operations that fail does not depend on the number of
//! clients.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loadstone_load::Status;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::about::{Property, setting};
use crate::error::{ConnectError, EngineError, Failure};
use crate::options::Options;
use crate::session::ConnectionAttempts;

/// A property of all networked stores that use Loadstone's own client.
pub const RECONNECT: Property = setting("reconnect");
const HINT: &str = "write reconnect=constant(500ms), or reconnect=exponential(1s,60s) as most drivers do";
/// Each delay is drawn from this range around its nominal length, as in Cassandra's Java driver
/// (`ExponentialReconnectionPolicy`), so that different engines do not make attempts at the same time.
const JITTER: f64 = 0.15;
const DEFAULT: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(86_400);
/// The pause of a client in a closed loop after an operation for which no server could be reached.
pub const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// The delays between attempts to connect to a node that refuses connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconnect {
    /// A constant delay.
    Constant(Duration),
    /// The delay begins with the first value, and is doubled after each failed attempt, up to the second value.
    Exponential(Duration, Duration),
}

impl Default for Reconnect {
    fn default() -> Self {
        Self::Constant(DEFAULT)
    }
}

impl fmt::Display for Reconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(delay) => write!(f, "constant({} ms)", delay.as_millis()),
            Self::Exponential(first, max) => write!(f, "exponential({} ms, {} ms)", first.as_millis(), max.as_millis()),
        }
    }
}

impl Reconnect {
    /// Reads the property `reconnect`.
    pub fn read(options: &Options) -> Result<Self, EngineError> {
        let Some(text) = options.get(RECONNECT.name) else { return Ok(Self::default()) };
        let refused = || {
            EngineError::usage(format!("reconnect must be constant(DELAY) or exponential(FIRST,MAX), got \"{text}\""))
                .hint(HINT)
        };
        let (name, arguments) =
            text.trim().strip_suffix(')').and_then(|text| text.split_once('(')).ok_or_else(refused)?;
        let delays: Option<Vec<Duration>> = arguments.split(',').map(parse_delay).collect();
        match (name.trim(), delays.as_deref()) {
            ("constant", Some(&[delay])) => Ok(Self::Constant(delay)),
            ("exponential", Some(&[first, max])) if first <= max => Ok(Self::Exponential(first, max)),
            _ => Err(refused()),
        }
    }

    /// The delay after this number of consecutive failed attempts, not counting the first, after which there is no
    /// delay; `random` is between 0 and 1.
    fn delay(self, failures: u32, random: f64) -> Duration {
        let nominal = match self {
            Self::Constant(delay) => delay,
            Self::Exponential(first, max) => first.saturating_mul(1 << failures.saturating_sub(1).min(30)).min(max),
        };
        nominal.mul_f64(1.0 - JITTER + 2.0 * JITTER * random)
    }
}

/// Parses a positive duration such as `500ms`, `1s` or `2m`.
fn parse_delay(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit_ms) = [("ms", 1), ("s", 1_000), ("m", 60_000)]
        .into_iter()
        .find_map(|(unit, ms)| text.strip_suffix(unit).map(|number| (number, ms)))?;
    let delay = Duration::from_millis(number.trim().parse::<u64>().ok()?.checked_mul(unit_ms)?);
    (!delay.is_zero() && delay <= LONGEST).then_some(delay)
}

#[derive(Clone, Debug)]
enum Reach {
    /// The last attempt succeeded.
    Up,
    /// A connection broke, or a single attempt failed, or the last attempt timed out.
    Unknown,
    /// The last attempts failed, most recently with this failure.
    Down(Failure),
}

#[derive(Debug)]
struct State {
    reach: Reach,
    generation: u64,
    /// Number of consecutive failed attempts.
    failures: u32,
    next: Instant,
    attempting: bool,
    /// Whether a background task makes attempts until the node is up.
    probing: bool,
}

/// The state of a server, shared by all sessions of an engine.
#[derive(Debug)]
pub struct Node {
    reconnect: Reconnect,
    random: RandomState,
    state: Mutex<State>,
    changed: Notify,
    losses: AtomicU64,
    /// The value of `losses` when a session last confirmed that its connection was open.
    confirmed: AtomicU64,
    attempted: AtomicU64,
    failed: AtomicU64,
    /// The number of usable connections, if the store counts them.
    pub usable: AtomicU64,
}

impl Node {
    /// Creates a node that is assumed to be up.
    pub fn new(reconnect: Reconnect) -> Arc<Self> {
        let state = State {
            reach: Reach::Up,
            generation: 0,
            failures: 0,
            next: Instant::now(),
            attempting: false,
            probing: false,
        };
        Arc::new(Self {
            reconnect,
            random: RandomState::new(),
            state: Mutex::new(state),
            changed: Notify::new(),
            losses: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            attempted: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            usable: AtomicU64::new(0),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that changes whenever a connection breaks or an attempt fails. A session must then check whether its
    /// own connection is still open.
    #[inline]
    pub fn losses(&self) -> u64 {
        self.losses.load(Ordering::Relaxed)
    }

    /// The number of attempts so far.
    pub fn attempts(&self) -> ConnectionAttempts {
        ConnectionAttempts {
            attempted: self.attempted.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// Number of times that the node has become reachable again. Each connection belongs to the generation in which it
    /// was opened.
    pub fn generation(&self) -> u64 {
        self.state().generation
    }

    /// Records that a connection of this generation broke. A single attempt to connect may then be made immediately. If
    /// the generation is older than the current one, the connection broke in an outage that has already ended.
    #[cold]
    pub fn lose_connection(&self, generation: u64) {
        self.losses.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        if matches!(state.reach, Reach::Up) && state.generation == generation {
            state.reach = Reach::Unknown;
            state.next = Instant::now();
        }
    }

    /// Records that a session's connection was still open when the node's number of losses had this value. The node is
    /// then reachable, even though attempts to connect have failed.
    #[cold]
    pub fn confirm_connection(&self, losses: u64) {
        self.confirmed.store(losses, Ordering::Relaxed);
    }

    /// The failure of the last attempt, while the node refuses connections and no session has an open connection.
    /// Operations then fail immediately with this failure. While other clients are served, the operations of a client
    /// without a connection must not fail quickly: this client would use up operations that connected clients could
    /// execute.
    pub fn refusal(&self) -> Option<Failure> {
        match &self.state().reach {
            Reach::Down(failure) if self.confirmed.load(Ordering::Relaxed) != self.losses() => Some(failure.clone()),
            Reach::Up | Reach::Unknown | Reach::Down(_) => None,
        }
    }

    /// Waits until an attempt may be made: immediately while the node is up, otherwise one attempt at a time, with the
    /// delays of the policy.
    pub async fn wait_for_turn(&self) -> Turn<'_> {
        loop {
            // The notification is requested before the check, so that a change after the check is not missed.
            let changed = self.changed.notified();
            let next = match self.take_turn() {
                Ok(turn) => return turn,
                Err(next) => next,
            };
            match next {
                Some(next) => drop(timeout_at(next, changed).await),
                None => changed.await,
            }
        }
    }

    /// Returns a turn, or the time of the next turn; `None` means that an attempt is in flight.
    fn take_turn(&self) -> Result<Turn<'_>, Option<Instant>> {
        let mut state = self.state();
        let exclusive = !matches!(state.reach, Reach::Up);
        if exclusive {
            if state.attempting {
                return Err(None);
            }
            if Instant::now() < state.next {
                return Err(Some(state.next));
            }
            state.attempting = true;
        }
        self.attempted.fetch_add(1, Ordering::Relaxed);
        Ok(Turn { node: self, exclusive, ended: false })
    }

    /// Opens a connection for a session. While the node refuses connections, this fails immediately, and a background
    /// task continues the attempts. While it is unknown whether the node responds, the session waits for an attempt,
    /// but for at most `limit`.
    #[cold]
    pub async fn connect<C, F>(self: &Arc<Self>, open: F, limit: Duration) -> Result<C, Failure>
    where
        C: 'static,
        F: AsyncFn() -> Result<C, Failure> + 'static,
    {
        let end = Instant::now() + limit;
        loop {
            // The notification is requested before the check, so that a change after the check is not missed.
            let changed = self.changed.notified();
            if let Some(refusal) = self.refusal() {
                self.probe(open);
                return Err(refusal);
            }
            match self.take_turn() {
                Ok(turn) => {
                    let in_time = async || timeout_at(end, open()).await.unwrap_or_else(|_| Err(new_timeout(limit)));
                    let opened = turn.attempt(in_time).await;
                    if opened.is_err() {
                        self.probe(open);
                    }
                    return opened;
                }
                Err(next) => {
                    let until = next.map_or(end, |next| next.min(end));
                    if timeout_at(until, changed).await.is_err() && Instant::now() >= end {
                        return Err(new_timeout(limit));
                    }
                }
            }
        }
    }

    /// Makes attempts in the background until the node is up, unless a task is already doing so.
    fn probe<C, F>(self: &Arc<Self>, open: F)
    where
        C: 'static,
        F: AsyncFn() -> Result<C, Failure> + 'static,
    {
        if std::mem::replace(&mut self.state().probing, true) {
            return;
        }
        let probing = Probing(Arc::clone(self));
        tokio::task::spawn_local(async move {
            while !probing.end_if_up() {
                let turn = probing.0.wait_for_turn().await;
                if turn.exclusive {
                    drop(turn.attempt(&open).await);
                }
            }
        });
    }
}

fn new_timeout(limit: Duration) -> Failure {
    let message = format!("no connection within {} ms", limit.as_millis());
    Failure::new(Status::Timeout, message).connecting(ConnectError::Other)
}

/// Marks the node as being probed. The mark is removed when the task ends, even if the task's executor ends first.
struct Probing(Arc<Node>);

impl Probing {
    /// Whether the node is up. The decision and the change of the flag are a single step, so that a node that is lost
    /// immediately afterwards gets a new task.
    fn end_if_up(&self) -> bool {
        let mut state = self.0.state();
        state.probing = !matches!(state.reach, Reach::Up);
        !state.probing
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.state().probing = false;
    }
}

/// The right to make one attempt. An attempt that is dropped has neither succeeded nor failed.
#[derive(Debug)]
pub struct Turn<'a> {
    node: &'a Node,
    exclusive: bool,
    ended: bool,
}

impl Turn<'_> {
    /// Makes the attempt. If the attempt fails, no operation was sent to the node.
    pub async fn attempt<C>(self, open: impl AsyncFn() -> Result<C, Failure>) -> Result<C, Failure> {
        let opened = open().await.map_err(|failure| match failure.connect {
            Some(_) => failure,
            None => failure.connecting(ConnectError::Other),
        });
        self.end(opened.as_ref().map(|_| ()));
        opened
    }

    fn end(mut self, outcome: Result<(), &Failure>) {
        self.ended = true;
        let node = self.node;
        let mut state = node.state();
        match outcome {
            Ok(()) => {
                state.generation += u64::from(!matches!(state.reach, Reach::Up));
                state.reach = Reach::Up;
                state.failures = 0;
            }
            Err(failure) => {
                node.failed.fetch_add(1, Ordering::Relaxed);
                node.losses.fetch_add(1, Ordering::Relaxed);
                state.failures = state.failures.saturating_add(1);
                let random = node.random.hash_one(node.attempted.load(Ordering::Relaxed)) as f64 / u64::MAX as f64;
                // A single handshake may fail even though the node is up. So the second attempt follows immediately,
                // and operations wait for it.
                let first = state.failures == 1;
                let delay = node.reconnect.delay(state.failures - 1, random);
                state.next = Instant::now() + if first { Duration::ZERO } else { delay };
                // A node that times out has refused nothing, and may still answer.
                let silent = failure.status == Status::Timeout;
                state.reach = if first || silent { Reach::Unknown } else { Reach::Down(failure.clone()) };
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.exclusive {
            self.node.state().attempting = false;
        }
        if self.exclusive || self.ended {
            self.node.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests;
