//! The connections of an executor (or of a single client), and the choice of a connection for each operation.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadstone_load::Status;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Notify, OnceCell};
use tokio::time::{Instant, timeout, timeout_at};

use super::cluster::{Cluster, unreachable};
use super::connection::SWEEPS;
use super::lines::{Line, Lines, Route};
use super::login::{Entry, Link};
use super::texts::Texts;
use crate::error::{ConnectError, EngineError, Failure, TlsFault};
use crate::reconnect::FAILURE_PAUSE;

/// Maximum number of consecutive connections that may lead to shards that need no connection, per shard of the node. If
/// a server assigns connections to shards at random, 1 in 3,000 searches for a connection to a given shard fails.
const MISSES_MAX: usize = 8;

/// Number of pools whose connections are swept at once. Operations may run before the next pools are swept.
const SWEPT_AT_ONCE: usize = 64;

/// The key of a set of pools: a store and an executor.
type Place = (usize, Id);

thread_local! {
    static EXECUTORS: RefCell<Vec<(Place, Weak<Executor>)>> = const { RefCell::new(Vec::new()) };
}

/// The pools of an executor, and their shared state.
#[derive(Debug, Default)]
struct Executor {
    texts: Texts,
    pools: RefCell<Vec<Weak<Pool>>>,
    sweeping: Cell<bool>,
}

impl Executor {
    fn find(cluster: &Arc<Cluster>) -> Rc<Self> {
        let place = (Arc::as_ptr(cluster).addr(), Handle::current().id());
        EXECUTORS.with_borrow_mut(|executors| {
            executors.retain(|(_, executor)| executor.strong_count() > 0);
            let existing = executors.iter().find(|(own, _)| *own == place).and_then(|(_, own)| own.upgrade());
            existing.unwrap_or_else(|| {
                let executor = Rc::default();
                executors.push((place, Rc::downgrade(&executor)));
                executor
            })
        })
    }
}

/// Connections to the nodes of the local data centre.
#[derive(Debug)]
pub struct Pool {
    cluster: Arc<Cluster>,
    executor: Rc<Executor>,
    lines: RefCell<Rc<Lines>>,
    turn: Cell<usize>,
    stamped: Cell<i64>,
    opened: OnceCell<()>,
    /// Notifies waiters that a line was opened or an attempt failed.
    tried: Notify,
}

impl Pool {
    /// The pool of this executor. If each client has separate connections, this is a new pool.
    pub fn find(cluster: &Arc<Cluster>) -> Rc<Self> {
        let executor = Executor::find(cluster);
        let mut pools = executor.pools.borrow_mut();
        if !cluster.settings.per_client
            && let Some(pool) = pools.iter().find_map(Weak::upgrade)
        {
            return pool;
        }
        let pool = Rc::new(Self {
            lines: RefCell::new(Rc::new(Lines::new(cluster, &[]))),
            cluster: Arc::clone(cluster),
            executor: Rc::clone(&executor),
            turn: Cell::default(),
            stamped: Cell::default(),
            opened: OnceCell::new(),
            tried: Notify::new(),
        });
        pools.push(Rc::downgrade(&pool));
        pool
    }

    /// The texts of the executor's statements.
    #[inline]
    pub fn texts(&self) -> &Texts {
        &self.executor.texts
    }

    /// The lines, updated if nodes have joined or left.
    #[inline]
    fn lines(&self) -> Rc<Lines> {
        let lines = Rc::clone(&self.lines.borrow());
        if lines.version == self.cluster.topology.version() { lines } else { self.follow(&lines) }
    }

    #[cold]
    fn follow(&self, before: &Lines) -> Rc<Lines> {
        let lines = Rc::new(Lines::new(&self.cluster, &before.all));
        *self.lines.borrow_mut() = Rc::clone(&lines);
        lines
    }

    /// Tries all nodes; fails if none can be reached, or if any node cannot be trusted. The opened connections stay
    /// open.
    pub async fn open(self: &Rc<Self>) -> Result<(), EngineError> {
        self.opened
            .get_or_try_init(async || {
                if !self.executor.sweeping.replace(true) {
                    let executor = Rc::downgrade(&self.executor);
                    tokio::task::spawn_local(sweep(executor, self.cluster.settings.request_timeout));
                }
                // If a node has refused a different executor, this executor does not wait for it.
                let tried = |line: &&Rc<Line>| {
                    line.link.borrow().is_some() || line.failure.borrow().is_some() || line.node.refusal().is_some()
                };
                let lines = loop {
                    // The number of lines increases when a node reports its shards.
                    let lines = self.lines();
                    let mut untried = lines.all.iter().filter(|line| !tried(line)).peekable();
                    if untried.peek().is_none() {
                        break lines;
                    }
                    untried.for_each(|line| self.revive(line));
                    let _ = timeout(FAILURE_PAUSE, self.tried.notified()).await;
                };
                // A node that cannot be trusted is an error in the configuration, unlike a node that is down.
                let mut failures = lines.all.iter().filter(|line| line.live().is_none()).map(|line| line.failure());
                if let Some(failure) = failures.find(is_untrusted) {
                    return Err(unreachable(&failure, self.cluster.settings.port));
                }
                if lines.all.iter().any(|line| line.link.borrow().is_some()) {
                    return Ok(());
                }
                Err(unreachable(&lines.all[0].failure(), self.cluster.settings.port))
            })
            .await
            .map(|&()| ())
    }

    /// Returns a connection for a key, or for a statement without a key; it leads to a replica of the key if a replica
    /// can be reached. An operation fails immediately while every node refuses connections. While a node may still
    /// respond, the operation waits for a connection attempt, but for at most the time limit of a request.
    #[inline]
    pub async fn link(self: &Rc<Self>, key: Option<&[u8]>) -> Result<Rc<Link>, Failure> {
        let lines = self.lines();
        if let [line] = lines.all.as_slice()
            && let Some(link) = line.live()
        {
            return Ok(link);
        }
        let route = lines.route(key);
        let turn = self.turn.replace(self.turn.get().wrapping_add(1));
        if let Some(link) = self.live(&lines, route, turn) {
            return Ok(link);
        }
        self.wait_for_link(key, turn).await
    }

    #[cold]
    async fn wait_for_link(self: &Rc<Self>, key: Option<&[u8]>, turn: usize) -> Result<Rc<Link>, Failure> {
        let limit = self.cluster.settings.request_timeout;
        let end = Instant::now() + limit;
        loop {
            let tried = self.tried.notified();
            let lines = self.lines();
            let route = lines.route(key);
            if let Some(link) = self.live(&lines, route, turn) {
                return Ok(link);
            }
            if lines.all.iter().all(|line| line.node.refusal().is_some()) {
                // Returns the failure of the node to which the operation would have been sent.
                let first = lines.order(route, turn).next();
                let none = || Failure::new(Status::ServiceUnavailable, "the data centre has no nodes left");
                return Err(first.map_or_else(none, |line| line.failure()));
            }
            if timeout_at(end, tried).await.is_err() {
                let message = format!("no connection to any node within {} ms", limit.as_millis());
                return Err(Failure::new(Status::Timeout, message).connecting(ConnectError::Other));
            }
        }
    }

    #[inline]
    fn live(self: &Rc<Self>, lines: &Lines, route: Route<'_>, turn: usize) -> Option<Rc<Link>> {
        let responsive = lines.order(route, turn).find_map(|line| {
            let link = line.live();
            if link.is_none() {
                self.revive(line);
            }
            link.filter(|link| link.connection().admit())
        });
        // If every node is silent, a silent node is used nevertheless.
        responsive.or_else(|| lines.order(route, turn).find_map(|line| line.live()))
    }

    /// Starts to connect, unless a connection attempt is in flight.
    #[cold]
    fn revive(self: &Rc<Self>, line: &Rc<Line>) {
        if !line.opening.replace(true) {
            if line.link.take().is_some() {
                line.node.lose_connection(line.generation.get());
            }
            tokio::task::spawn_local(revive(Rc::downgrade(self), Arc::clone(&self.cluster), Rc::downgrade(line)));
        }
    }

    /// The timestamp of a write in µs since 1970, later than all timestamps returned before. The client sets it, as in
    /// YCSB's driver, so that a record's writes are in the client's order whichever nodes receive them.
    #[inline]
    pub fn stamp(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let stamp = now.max(self.stamped.get() + 1);
        self.stamped.set(stamp);
        stamp
    }
}

/// Tries to connect until an attempt succeeds, or until the connection is no longer needed.
async fn revive(pool: Weak<Pool>, cluster: Arc<Cluster>, place: Weak<Line>) {
    // The connections to other shards stay open, because a server assigns the next connection to the shard with the
    // fewest connections.
    let mut surplus = Vec::new();
    loop {
        let Some(line) = place.upgrade() else { return };
        // Another line's attempt has already opened a connection to this shard.
        if line.link.borrow().as_ref().is_some_and(|link| link.connection().is_open()) {
            line.opening.set(false);
            return;
        }
        let (address, node, shard) = (line.address, Arc::clone(&line.node), line.shard);
        drop(line);
        let open = async || open_link(&cluster, address, shard.filter(|_| surplus.is_empty())).await;
        let opened = node.wait_for_turn().await.attempt(open).await;
        let (Some(pool), Some(line)) = (pool.upgrade(), place.upgrade()) else { return };
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                *line.failure.borrow_mut() = Some(failure);
                pool.tried.notify_waiters();
                continue;
            }
        };
        let extensions = *opened.extensions();
        if cluster.is_extended() && cluster.topology.update_sharding(address, extensions.sharding) {
            // The pool creates lines to the node's shards, in place of this line.
            line.opening.set(false);
            pool.tried.notify_waiters();
            return;
        }
        let target = match pool.lines().find_place(&line, extensions.shard) {
            Some(target) => {
                line.misses.set(0);
                target
            }
            None if line.misses.get() < MISSES_MAX * extensions.sharding.map_or(1, |own| usize::from(own.shards)) => {
                line.misses.set(line.misses.get() + 1);
                surplus.push(opened);
                continue;
            }
            None => {
                let event = format!("no connection to shard {}", shard.unwrap_or_default());
                cluster.topology.record(address.to_string(), event);
                Rc::clone(&line)
            }
        };
        // Statements are prepared here, so that no timed operation has to prepare them.
        opened.share_statements(pool.texts().find_statements(address));
        opened.prepare_all(pool.texts(), node.generation()).await;
        target.generation.set(node.generation());
        let (own, counted) = (Arc::clone(&cluster), Arc::clone(&node));
        let count = move |address, is_usable| own.topology.count_usable(&counted, address, is_usable);
        opened.connection().track(Box::new(count));
        *target.link.borrow_mut() = Some(Rc::new(opened));
        *target.failure.borrow_mut() = None;
        let is_own = Rc::ptr_eq(&target, &line);
        if is_own {
            line.opening.set(false);
        }
        pool.tried.notify_waiters();
        if is_own {
            return;
        }
    }
}

/// Opens a connection to a node, and to this shard if the node's port for shards can be reached.
async fn open_link(cluster: &Cluster, address: SocketAddr, shard: Option<u16>) -> Result<Link, Failure> {
    let Cluster { settings, protocol, .. } = cluster;
    if !cluster.is_extended() {
        return Link::open(address, *protocol, settings, Entry::Plain).await;
    }
    if let (Some(sharding), Some(shard)) = (cluster.topology.find_sharding(address), shard)
        && let Some(port) = sharding.port(settings.tls.is_some())
    {
        match Link::open(address, *protocol, settings, Entry::Shard { sharding, shard, port }).await {
            Err(failure) if failure.status != Status::Forbidden => {}
            decided => return decided,
        }
    }
    Link::open(address, *protocol, settings, Entry::Extended).await
}

/// Makes the connections of an executor abandon requests that have waited too long.
async fn sweep(executor: Weak<Executor>, timeout: Duration) {
    let step = (timeout / SWEEPS).max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(step).await;
        let Some(executor) = executor.upgrade() else { return };
        for at in 0.. {
            let Some(pool) = executor.pools.borrow().get(at).cloned() else { break };
            if let Some(pool) = pool.upgrade() {
                for link in pool.lines().all.iter().filter_map(|line| line.live()) {
                    link.connection().sweep(timeout);
                }
            }
            if at % SWEPT_AT_ONCE == SWEPT_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// Whether the node answered, but cannot be trusted. A node that only closes connections may be down.
fn is_untrusted(failure: &Failure) -> bool {
    match failure.connect {
        Some(ConnectError::Tls(TlsFault::Closed | TlsFault::Required)) | None => false,
        Some(ConnectError::Tls(TlsFault::ClientCertificate)) => failure.status == Status::Forbidden,
        Some(connect) => matches!(connect, ConnectError::Tls(_)),
    }
}

#[cfg(test)]
mod tests;
