//! The connections of an executor (or of a single client), and the choice of a connection for each operation.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadstone_load::Status;
use tokio::sync::{Notify, OnceCell};
use tokio::time::{Instant, timeout, timeout_at};

use super::cluster::{Cluster, unreachable};
use super::connection::SWEEPS;
use super::login::Link;
use super::murmur3;
use super::texts::Texts;
use super::topology::Topology;
use crate::deadline::NAP;
use crate::error::{ConnectError, EngineError, Failure};
use crate::reconnect::Node;

/// A place for a connection to a node. It may be empty.
#[derive(Debug)]
struct Line {
    address: SocketAddr,
    node: Arc<Node>,
    link: RefCell<Option<Rc<Link>>>,
    /// The node's generation at the time when the connection was opened.
    generation: Cell<u64>,
    /// The node's number of losses at the time when the connection was last known to be open.
    losses: Cell<u64>,
    opening: Cell<bool>,
    /// The failure of the last attempt to connect.
    failure: RefCell<Option<Failure>>,
}

/// The lines to the nodes of the local data centre, for one version of the topology.
#[derive(Debug)]
struct Lines {
    topology: Arc<Topology>,
    version: u64,
    all: Vec<Rc<Line>>,
    /// The index of the first line to each node of the cluster; `None` for nodes in other data centres.
    first: Vec<Option<usize>>,
}

impl Lines {
    /// Creates lines to the nodes of the current topology. Existing lines to nodes that are still in it are reused.
    fn new(cluster: &Cluster, before: &[Rc<Line>]) -> Self {
        let (topology, version) = cluster.topology.current();
        let (mut lines, mut first) = (Vec::new(), Vec::new());
        for (node, reach) in topology.nodes.iter().zip(&topology.reach) {
            let local = node.dc == cluster.local_dc;
            first.push(local.then_some(lines.len()));
            let mut reusable = before.iter().filter(|line| line.address == node.address);
            for _ in 0..if local { cluster.settings.connections } else { 0 } {
                lines.push(reusable.next().map_or_else(|| Rc::new(Line::new(node.address, reach)), Rc::clone));
            }
        }
        Self { topology, version, all: lines, first }
    }
}

/// Connections to the nodes of the local data centre.
#[derive(Debug)]
pub struct Pool {
    cluster: Arc<Cluster>,
    lines: RefCell<Rc<Lines>>,
    turn: Cell<usize>,
    stamped: Cell<i64>,
    opened: OnceCell<()>,
    /// Notifies waiters that a line was opened or an attempt failed.
    tried: Notify,
    pub texts: Texts,
}

impl Pool {
    /// Creates a pool without connections.
    pub fn new(cluster: Arc<Cluster>) -> Rc<Self> {
        Rc::new(Self {
            lines: RefCell::new(Rc::new(Lines::new(&cluster, &[]))),
            cluster,
            turn: Cell::default(),
            stamped: Cell::default(),
            opened: OnceCell::new(),
            tried: Notify::new(),
            texts: Texts::default(),
        })
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

    /// Tries all nodes; fails if none can be reached. The opened connections stay open.
    pub async fn open(self: &Rc<Self>) -> Result<(), EngineError> {
        self.opened
            .get_or_try_init(async || {
                tokio::task::spawn_local(sweep(Rc::downgrade(self), self.cluster.settings.request_timeout));
                let lines = &self.lines().all;
                for line in lines {
                    self.revive(line);
                }
                // If a node has refused a different executor, this executor does not wait for it.
                let tried = |line: &Rc<Line>| {
                    line.link.borrow().is_some() || line.failure.borrow().is_some() || line.node.refusal().is_some()
                };
                while !lines.iter().all(tried) {
                    let _ = timeout(NAP, self.tried.notified()).await;
                }
                if lines.iter().any(|line| line.link.borrow().is_some()) {
                    return Ok(());
                }
                Err(unreachable(&lines[0].failure()))
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
        let replicas = lines.replicas(key);
        let turn = self.turn.replace(self.turn.get().wrapping_add(1));
        if let Some(link) = self.live(&lines, replicas, turn) {
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
            let replicas = lines.replicas(key);
            if let Some(link) = self.live(&lines, replicas, turn) {
                return Ok(link);
            }
            if lines.all.iter().all(|line| line.node.refusal().is_some()) {
                // Returns the failure of the node to which the operation would have been sent.
                let first = lines.order(replicas, turn).next();
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
    fn live(self: &Rc<Self>, lines: &Lines, replicas: &[usize], turn: usize) -> Option<Rc<Link>> {
        let responsive = lines.order(replicas, turn).find_map(|line| {
            let link = line.live();
            if link.is_none() {
                self.revive(line);
            }
            link.filter(|link| link.connection().admit())
        });
        // If every node is silent, a silent node is used nevertheless.
        responsive.or_else(|| lines.order(replicas, turn).find_map(|line| line.live()))
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

    /// The time of a write in µs since 1970, later than all earlier results. The client sets it, as in YCSB's driver,
    /// so that a record's writes are in the client's order whichever nodes receive them.
    #[inline]
    pub fn stamp(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let stamp = now.max(self.stamped.get() + 1);
        self.stamped.set(stamp);
        stamp
    }
}

impl Lines {
    #[inline]
    fn replicas(&self, key: Option<&[u8]>) -> &[usize] {
        match key {
            Some(key) if self.all.len() > 1 => self.topology.ring.replicas(murmur3::token(key)),
            _ => &[],
        }
    }

    /// The lines in the order in which an operation tries them: first the replicas, starting with a different replica
    /// each time, and then all nodes.
    fn order<'a>(&'a self, replicas: &'a [usize], turn: usize) -> impl Iterator<Item = &'a Rc<Line>> {
        let nodes = self.first.iter().flatten().count().max(1);
        let per_node = self.all.len() / nodes;
        let to_replicas = (0..replicas.len()).flat_map(move |at| {
            let first = self.first[replicas[(at + turn) % replicas.len()]];
            first
                .into_iter()
                .flat_map(move |first| (0..per_node).map(move |n| first + (n + turn / replicas.len()) % per_node))
        });
        to_replicas.chain((0..self.all.len()).map(move |at| (at + turn) % self.all.len())).map(|at| &self.all[at])
    }
}

impl Line {
    fn new(address: SocketAddr, node: &Arc<Node>) -> Self {
        Self {
            address,
            node: Arc::clone(node),
            link: RefCell::default(),
            generation: Cell::default(),
            losses: Cell::default(),
            opening: Cell::default(),
            failure: RefCell::default(),
        }
    }

    #[inline]
    fn live(&self) -> Option<Rc<Link>> {
        let link = self.link.borrow().as_ref().filter(|link| link.connection().is_open()).cloned();
        let losses = self.node.losses();
        if link.is_some() && self.losses.replace(losses) != losses {
            self.node.confirm_connection(losses);
        }
        link
    }

    #[cold]
    fn failure(&self) -> Failure {
        let closed = || {
            let message = format!("{} has closed the connection", self.address);
            Failure::new(Status::ServiceUnavailable, message).connecting(ConnectError::Other)
        };
        self.node.refusal().or_else(|| self.failure.borrow().clone()).unwrap_or_else(closed)
    }
}

/// Tries to connect until it succeeds or until the connection is no longer needed.
async fn revive(pool: Weak<Pool>, cluster: Arc<Cluster>, place: Weak<Line>) {
    loop {
        let Some((address, node)) = place.upgrade().map(|line| (line.address, Arc::clone(&line.node))) else { return };
        let open = async || {
            let opened = Link::open(address, cluster.protocol, &cluster.settings).await?;
            // Statements are prepared here, so that no timed operation has to prepare them.
            if let Some(pool) = pool.upgrade() {
                opened.prepare_all(&pool.texts).await;
            }
            Ok(opened)
        };
        let opened = node.wait_for_turn().await.attempt(open).await;
        let (Some(pool), Some(line)) = (pool.upgrade(), place.upgrade()) else { return };
        let open = opened.is_ok();
        match opened {
            Ok(opened) => {
                line.generation.set(node.generation());
                *line.link.borrow_mut() = Some(Rc::new(opened));
                *line.failure.borrow_mut() = None;
                line.opening.set(false);
            }
            Err(failure) => *line.failure.borrow_mut() = Some(failure),
        }
        pool.tried.notify_waiters();
        if open {
            return;
        }
    }
}

/// Makes the connections abandon requests that have waited too long.
async fn sweep(pool: Weak<Pool>, timeout: Duration) {
    let step = (timeout / SWEEPS).max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(step).await;
        let Some(pool) = pool.upgrade() else { return };
        for link in pool.lines().all.iter().filter_map(|line| line.live()) {
            link.connection().sweep(timeout);
        }
    }
}
