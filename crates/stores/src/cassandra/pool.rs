//! The connections of an executor (or of one client), and which of them an operation takes.

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
use super::statements::Statements;
use crate::deadline::NAP;
use crate::error::{ConnectError, Failure, StoreError};
use crate::reconnect::Node;

/// A place for a connection to a node.
#[derive(Debug)]
struct Line {
    address: SocketAddr,
    node: Arc<Node>,
    link: RefCell<Option<Rc<Link>>>,
    /// The node's generation when the connection was opened.
    generation: Cell<u64>,
    /// The node's losses when the connection was last known to be open.
    losses: Cell<u64>,
    opening: Cell<bool>,
    /// Why the last attempt failed.
    failure: RefCell<Option<Failure>>,
}

/// Connections to the nodes of the local data centre.
#[derive(Debug)]
pub struct Pool {
    cluster: Arc<Cluster>,
    lines: Vec<Line>,
    /// For each node of the cluster the first of its lines; none for those of other data centres.
    first: Vec<Option<usize>>,
    turn: Cell<usize>,
    stamped: Cell<i64>,
    opened: OnceCell<()>,
    /// A line was opened, or an attempt failed.
    tried: Notify,
    pub statements: Statements,
}

impl Pool {
    /// One without connections.
    pub fn new(cluster: Arc<Cluster>) -> Rc<Self> {
        let mut lines = Vec::new();
        let mut first = Vec::new();
        for (node, reach) in cluster.nodes.iter().zip(&cluster.reach) {
            let local = node.dc == cluster.local_dc;
            first.push(local.then_some(lines.len()));
            for _ in 0..if local { cluster.settings.connections } else { 0 } {
                lines.push(Line {
                    address: node.address,
                    node: Arc::clone(reach),
                    link: RefCell::default(),
                    generation: Cell::default(),
                    losses: Cell::default(),
                    opening: Cell::default(),
                    failure: RefCell::default(),
                });
            }
        }
        Rc::new(Self {
            cluster,
            lines,
            first,
            turn: Cell::default(),
            stamped: Cell::default(),
            opened: OnceCell::new(),
            tried: Notify::new(),
            statements: Statements::default(),
        })
    }

    /// Tries all nodes; fails if none can be reached. What was opened once stays so.
    pub async fn open(self: &Rc<Self>) -> Result<(), StoreError> {
        self.opened
            .get_or_try_init(async || {
                tokio::task::spawn_local(sweep(Rc::downgrade(self), self.cluster.settings.request_timeout));
                for line in 0..self.lines.len() {
                    self.revive(line);
                }
                // A node that refused another executor is not waited for.
                let tried = |line: &Line| {
                    line.link.borrow().is_some() || line.failure.borrow().is_some() || line.node.refusal().is_some()
                };
                while !self.lines.iter().all(tried) {
                    let _ = timeout(NAP, self.tried.notified()).await;
                }
                if self.lines.iter().any(|line| line.link.borrow().is_some()) {
                    return Ok(());
                }
                Err(unreachable(&self.lines[0].why()))
            })
            .await
            .map(|&()| ())
    }

    /// A connection for a key: to a node that has it, if one can be asked. An operation fails at once while every node refuses
    /// connections. While one may yet answer, it waits for an attempt, for the limit of a request at most.
    #[inline]
    pub async fn link(self: &Rc<Self>, key: &[u8]) -> Result<Rc<Link>, Failure> {
        if let [line] = self.lines.as_slice()
            && let Some(link) = line.live()
        {
            return Ok(link);
        }
        let replicas = if self.lines.len() > 1 { self.cluster.ring.replicas(murmur3::token(key)) } else { &[] };
        let turn = self.turn.replace(self.turn.get().wrapping_add(1));
        if let Some(link) = self.live(replicas, turn) {
            return Ok(link);
        }
        self.wait_for_link(replicas, turn).await
    }

    #[cold]
    async fn wait_for_link(self: &Rc<Self>, replicas: &[usize], turn: usize) -> Result<Rc<Link>, Failure> {
        let limit = self.cluster.settings.request_timeout;
        let end = Instant::now() + limit;
        loop {
            let tried = self.tried.notified();
            if let Some(link) = self.live(replicas, turn) {
                return Ok(link);
            }
            if self.lines.iter().all(|line| line.node.refusal().is_some()) {
                // Of the node that the operation would have been sent to.
                let first = self.order(replicas, turn).next().unwrap_or(0);
                return Err(self.lines[first].why());
            }
            if timeout_at(end, tried).await.is_err() {
                let message = format!("no connection to any node within {} ms", limit.as_millis());
                return Err(Failure::new(Status::Timeout, message).connecting(ConnectError::Other));
            }
        }
    }

    /// The lines in the order in which an operation tries them: to the replicas, beginning with another each time, then
    /// to all nodes.
    fn order<'a>(&'a self, replicas: &'a [usize], turn: usize) -> impl Iterator<Item = usize> + 'a {
        let each = self.cluster.settings.connections;
        let to_replicas = (0..replicas.len()).flat_map(move |at| {
            let first = self.first[replicas[(at + turn) % replicas.len()]];
            first.into_iter().flat_map(move |first| (0..each).map(move |n| first + (n + turn / replicas.len()) % each))
        });
        to_replicas.chain((0..self.lines.len()).map(move |at| (at + turn) % self.lines.len()))
    }

    #[inline]
    fn live(self: &Rc<Self>, replicas: &[usize], turn: usize) -> Option<Rc<Link>> {
        self.order(replicas, turn).find_map(|line| {
            let link = self.lines[line].live();
            if link.is_none() {
                self.revive(line);
            }
            link
        })
    }

    /// Begins to connect, unless that is under way.
    #[cold]
    fn revive(self: &Rc<Self>, line: usize) {
        let place = &self.lines[line];
        if !place.opening.replace(true) {
            if place.link.take().is_some() {
                place.node.lose_connection(place.generation.get());
            }
            tokio::task::spawn_local(revive(Rc::downgrade(self), Arc::clone(&self.cluster), line));
        }
    }

    /// µs since 1970, later than all before: the time of a write, given by the client as YCSB's driver does, so that a
    /// record's writes are in the client's order whichever nodes take them.
    #[inline]
    pub fn stamp(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
        let stamp = now.max(self.stamped.get() + 1);
        self.stamped.set(stamp);
        stamp
    }
}

impl Line {
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
    fn why(&self) -> Failure {
        let closed = || {
            let message = format!("{} has closed the connection", self.address);
            Failure::new(Status::ServiceUnavailable, message).connecting(ConnectError::Other)
        };
        self.node.refusal().or_else(|| self.failure.borrow().clone()).unwrap_or_else(closed)
    }
}

/// Connects until it succeeds, or until the connection is no longer needed.
async fn revive(pool: Weak<Pool>, cluster: Arc<Cluster>, number: usize) {
    loop {
        let Some((address, node)) = pool.upgrade().map(|pool| {
            let line = &pool.lines[number];
            (line.address, Arc::clone(&line.node))
        }) else {
            return;
        };
        let opened = node.wait_for_turn().await.attempt(async || Link::open(address, &cluster.settings).await).await;
        let Some(pool) = pool.upgrade() else { return };
        let place = &pool.lines[number];
        let open = opened.is_ok();
        match opened {
            Ok(link) => {
                place.generation.set(node.generation());
                *place.link.borrow_mut() = Some(Rc::new(link));
                *place.failure.borrow_mut() = None;
                place.opening.set(false);
            }
            Err(failure) => *place.failure.borrow_mut() = Some(failure),
        }
        pool.tried.notify_waiters();
        if open {
            return;
        }
    }
}

/// Has the connections give up what has waited too long.
async fn sweep(pool: Weak<Pool>, timeout: Duration) {
    let step = (timeout / SWEEPS).max(Duration::from_millis(1));
    loop {
        tokio::time::sleep(step).await;
        let Some(pool) = pool.upgrade() else { return };
        for link in pool.lines.iter().filter_map(Line::live) {
            link.connection().sweep(timeout);
        }
    }
}
