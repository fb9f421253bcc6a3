//! The places for connections to the nodes and shards of a cluster, and the order in which an operation tries them.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use loadstone_load::Status;

use super::cluster::Cluster;
use super::login::Link;
use super::murmur3;
use super::topology::Topology;
use crate::error::{ConnectError, Failure};
use crate::reconnect::Node;

/// A place for a connection to a node. It may be empty.
#[derive(Debug)]
pub struct Line {
    pub address: SocketAddr,
    pub node: Arc<Node>,
    /// The shard to which the connection leads; `None` if the node has no shards.
    pub shard: Option<u16>,
    /// Number of consecutive new connections to the node that were of no use, because each line to their shard already
    /// had a connection. All lines to the node share this count.
    pub misses: Rc<Cell<usize>>,
    pub link: RefCell<Option<Rc<Link>>>,
    /// The node's generation at the time when the connection was opened.
    pub generation: Cell<u64>,
    /// The node's number of losses at the time when the connection was last known to be open.
    pub losses: Cell<u64>,
    pub opening: Cell<bool>,
    /// The failure of the last attempt to connect.
    pub failure: RefCell<Option<Failure>>,
}

/// The lines to the nodes of the local data centre, for one version of the topology.
#[derive(Debug)]
pub struct Lines {
    pub topology: Arc<Topology>,
    pub version: u64,
    pub all: Vec<Rc<Line>>,
    /// The lines to each node of the cluster, sorted by shard; none for nodes that the client does not contact.
    pub nodes: Vec<Range<usize>>,
    /// The number of lines to each shard, or to each node without shards.
    pub per_shard: usize,
}

/// The nodes that store a key, and the key's token.
#[derive(Clone, Copy, Default)]
pub struct Route<'a> {
    pub replicas: &'a [usize],
    pub token: i64,
}

impl Lines {
    /// Creates lines to the nodes of the current topology. Existing lines to nodes that remain in the topology are
    /// reused.
    pub fn new(cluster: &Cluster, before: &[Rc<Line>]) -> Self {
        let (topology, version) = cluster.topology.current();
        let (mut lines, mut nodes) = (Vec::new(), Vec::new());
        let per_shard = cluster.connections();
        for (at, node) in topology.nodes.iter().enumerate() {
            let start = lines.len();
            let own = || before.iter().filter(|line| line.address == node.address);
            let misses = own().next().map_or_else(Rc::default, |line| Rc::clone(&line.misses));
            // If each client has separate connections, a connection to each shard would be too many.
            let shards: Vec<Option<u16>> = match topology.shardings[at] {
                _ if !cluster.uses(node) => Vec::new(),
                Some(sharding) if !cluster.settings.per_client => (0..sharding.shards).map(Some).collect(),
                _ => vec![None],
            };
            for shard in shards {
                let mut reusable = own().filter(|line| line.shard == shard);
                let create = || Rc::new(Line::new(node.address, &topology.reach[at], shard, &misses));
                lines.extend((0..per_shard).map(|_| reusable.next().map_or_else(create, Rc::clone)));
            }
            nodes.push(start..lines.len());
        }
        Self { topology, version, all: lines, nodes, per_shard }
    }
}

impl Lines {
    #[inline]
    pub fn route(&self, key: Option<&[u8]>) -> Route<'_> {
        match key {
            Some(key) if self.all.len() > 1 => {
                let token = murmur3::token(key);
                Route { replicas: self.topology.ring.replicas(token), token }
            }
            _ => Route::default(),
        }
    }

    /// The lines in the order in which an operation tries them: first the replicas, starting with a different replica
    /// each time, and then all nodes. At each replica, the lines to the token's shard come first.
    pub fn order<'a>(&'a self, route: Route<'a>, turn: usize) -> impl Iterator<Item = &'a Rc<Line>> {
        let Route { replicas, token } = route;
        let per_shard = self.per_shard;
        let to_replicas = (0..replicas.len()).flat_map(move |at| {
            let node = replicas[(at + turn) % replicas.len()];
            let Range { start, end } = self.nodes[node];
            let len = end - start;
            // A node whose shards share one line has no lines to a particular shard.
            let sharding = self.topology.shardings[node].filter(|_| len > per_shard);
            let first = sharding.map_or(0, |sharding| sharding.shard_of(token) * per_shard);
            let turn = turn / replicas.len();
            (0..len)
                .map(move |n| start + if n < per_shard { first + (n + turn) % per_shard } else { (first + n) % len })
        });
        to_replicas.chain((0..self.all.len()).map(move |at| (at + turn) % self.all.len())).map(|at| &self.all[at])
    }

    /// The line for a connection to a shard, preferably `line`. `None` if each line to the shard has a connection.
    pub fn find_place(&self, line: &Rc<Line>, shard: u16) -> Option<Rc<Line>> {
        let is_for = |other: &Rc<Line>| other.address == line.address && other.shard.is_none_or(|own| own == shard);
        let mut places = std::iter::once(line).chain(self.all.iter().filter(|other| other.live().is_none()));
        places.find(|other| is_for(other)).cloned()
    }
}

impl Line {
    fn new(address: SocketAddr, node: &Arc<Node>, shard: Option<u16>, misses: &Rc<Cell<usize>>) -> Self {
        Self {
            address,
            node: Arc::clone(node),
            shard,
            misses: Rc::clone(misses),
            link: RefCell::default(),
            generation: Cell::default(),
            losses: Cell::default(),
            opening: Cell::default(),
            failure: RefCell::default(),
        }
    }

    #[inline]
    pub fn live(&self) -> Option<Rc<Link>> {
        let link = self.link.borrow().as_ref().filter(|link| link.connection().is_open()).cloned();
        let losses = self.node.losses();
        if link.is_some() && self.losses.replace(losses) != losses {
            self.node.confirm_connection(losses);
        }
        link
    }

    #[cold]
    pub fn failure(&self) -> Failure {
        let closed = || {
            let message = format!("{} has closed the connection", self.address);
            Failure::new(Status::ServiceUnavailable, message).connecting(ConnectError::Other)
        };
        self.node.refusal().or_else(|| self.failure.borrow().clone()).unwrap_or_else(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::super::sharding::tests::sharding;
    use super::*;
    use crate::reconnect::Reconnect;

    /// Lines to three nodes with four, two and no shards, with `per_shard` lines each.
    fn lines(per_shard: usize) -> Lines {
        let reach: Vec<Arc<Node>> = (0..3).map(|_| Node::new(Reconnect::default())).collect();
        let shardings = vec![Some(sharding(4)), Some(sharding(2)), None];
        let (mut all, mut nodes) = (Vec::new(), Vec::new());
        for (node, shards) in [4, 2, 1].into_iter().enumerate() {
            let start = all.len();
            let address = SocketAddr::from(([127, 0, 0, node as u8], 9042));
            for shard in 0..shards {
                let shard = (shards > 1).then_some(shard);
                let line = || Rc::new(Line::new(address, &reach[node], shard, &Rc::default()));
                all.extend((0..per_shard).map(|_| line()));
            }
            nodes.push(start..all.len());
        }
        let topology = Topology { nodes: Vec::new(), reach, shardings, ring: Ring::default() };
        Lines { topology: Arc::new(topology), version: 0, all, nodes, per_shard }
    }

    #[test]
    fn the_tokens_shard_is_tried_first() {
        for per_shard in [1, 3] {
            let lines = lines(per_shard);
            let place = |line: &Rc<Line>| lines.all.iter().position(|own| Rc::ptr_eq(own, line)).unwrap();
            for (token, shards) in [(i64::MIN, [0, 4, 6]), (-1, [1, 4, 6]), (0, [2, 5, 6]), (i64::MAX, [3, 5, 6])] {
                for turn in 0..20 {
                    let route = Route { replicas: &[0, 1, 2], token };
                    let order: Vec<usize> = lines.order(route, turn).map(place).collect();
                    // The first lines lead to the token's shard on the first replica, then to the node's other shards.
                    let node = turn % 3;
                    assert!(order[..per_shard].iter().all(|line| line / per_shard == shards[node]), "{order:?}");
                    let mut first = order[..lines.nodes[node].len()].to_vec();
                    first.sort_unstable();
                    assert!(first.into_iter().eq(lines.nodes[node].clone()), "{order:?}");
                    assert_eq!(order.len(), 2 * lines.all.len());
                }
            }
        }
    }

    #[test]
    fn requests_without_keys_use_all_lines() {
        let lines = lines(2);
        let first = |turn| {
            lines.all.iter().position(|own| Rc::ptr_eq(own, lines.order(Route::default(), turn).next().unwrap()))
        };
        assert!((0..14).all(|turn| first(turn) == Some(turn)));
    }

    #[test]
    fn connections_are_placed_by_shard() {
        let lines = lines(1);
        let place = |line: usize, shard| {
            let place = lines.find_place(&lines.all[line], shard)?;
            lines.all.iter().position(|own| Rc::ptr_eq(own, &place))
        };
        assert_eq!((place(1, 1), place(1, 3), place(1, 7)), (Some(1), Some(3), None));
        assert_eq!((place(5, 0), place(5, 1)), (Some(4), Some(5)), "on the same node");
        assert_eq!(place(6, 3), Some(6), "a node without shards");
    }
}
