//! The nodes of a cluster, which can change during a trial.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::ring::{Node, Replication, Ring};
use super::sharding::Sharding;
use crate::reconnect::{self, Reconnect};
use crate::session::ServerEvent;

/// The nodes of a cluster at one instant.
#[derive(Clone, Debug)]
pub struct Topology {
    pub nodes: Vec<Node>,
    /// The reachability of each node, which all executors share.
    pub reach: Vec<Arc<reconnect::Node>>,
    /// The shards of each node; `None` if they are unknown, or if the node has no shards.
    pub shardings: Vec<Option<Sharding>>,
    /// Determines the replicas of each key.
    pub ring: Ring,
}

/// The latest topology and the events of the nodes.
#[derive(Debug)]
pub struct Latest {
    current: Mutex<Arc<Topology>>,
    version: AtomicU64,
    events: Mutex<Vec<ServerEvent>>,
    reconnect: Reconnect,
    /// The replication from which the ring is computed; `None` if tokens are not Cassandra's Murmur3 hashes.
    replication: Option<Replication>,
}

impl Latest {
    /// Creates the topology of these nodes.
    pub fn new(nodes: Vec<Node>, replication: Option<Replication>, reconnect: Reconnect) -> Self {
        let empty = Topology { nodes: Vec::new(), reach: Vec::new(), shardings: Vec::new(), ring: Ring::default() };
        let latest = Self {
            current: Mutex::new(Arc::new(empty)),
            version: AtomicU64::new(0),
            events: Mutex::default(),
            reconnect,
            replication,
        };
        latest.replace(nodes);
        latest
    }

    /// A number that changes whenever the topology changes.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The topology and its version.
    pub fn current(&self) -> (Arc<Topology>, u64) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&current), self.version())
    }

    /// The shards of a node, if they are known.
    pub fn find_sharding(&self, address: SocketAddr) -> Option<Sharding> {
        let (topology, _) = self.current();
        let at = topology.nodes.iter().position(|node| node.address == address)?;
        topology.shardings[at]
    }

    /// Updates the shards of a node. Returns whether they have changed.
    pub fn update_sharding(&self, address: SocketAddr, sharding: Option<Sharding>) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = current.nodes.iter().position(|node| node.address == address) else { return false };
        if current.shardings[at] == sharding {
            return false;
        }
        let mut topology = Topology::clone(&current);
        topology.shardings[at] = sharding;
        *current = Arc::new(topology);
        self.version.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Replaces the nodes if they have changed. Nodes that remain keep their reachability and their shards.
    pub fn replace(&self, nodes: Vec<Node>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.nodes == nodes {
            return;
        }
        let known = |node: &Node| current.nodes.iter().position(|own| own.address == node.address);
        let reach = nodes.iter().map(|node| match known(node) {
            Some(at) => Arc::clone(&current.reach[at]),
            None => reconnect::Node::new(self.reconnect),
        });
        let reach = reach.collect();
        let shardings = nodes.iter().map(|node| known(node).and_then(|at| current.shardings[at])).collect();
        let ring = self.replication.as_ref().map_or_else(Ring::default, |replication| Ring::new(&nodes, replication));
        *current = Arc::new(Topology { nodes, reach, shardings, ring });
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Records an event at the current time, unless it repeats the server's latest event: several nodes report the same
    /// change, possibly with the client's own observations in between.
    pub fn record(&self, server: String, event: impl Into<String>) {
        let event = event.into();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let is_similar = |known: &&ServerEvent| REPORTED.contains(&&*known.event) == REPORTED.contains(&&*event);
        let mut own = events.iter().rev().filter(|known| known.server == server && !server.is_empty());
        let is_repeated = own.find(is_similar).is_some_and(|known| known.event == event);
        if !is_repeated {
            push_event(&mut events, server, event);
        }
    }

    /// Counts a node's usable connections, over all executors, and records when the last one became unusable, and when
    /// one became usable again.
    pub fn count_usable(&self, node: &reconnect::Node, address: SocketAddr, is_usable: bool) {
        // The lock keeps the events of several executors in the order of the counts.
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let before = node.usable.load(Ordering::Relaxed);
        let count = if is_usable { before + 1 } else { before.saturating_sub(1) };
        node.usable.store(count, Ordering::Relaxed);
        let server = address.to_string();
        if !is_usable && before == 1 {
            push_event(&mut events, server, UNUSABLE.to_owned());
        } else if is_usable && before == 0 {
            let mut own = events.iter().rev().filter(|known| known.server == server);
            let latest = own.find(|known| known.event == USABLE || known.event == UNUSABLE);
            // The first connection is not an event.
            if latest.is_some_and(|known| known.event == UNUSABLE) {
                push_event(&mut events, server, USABLE.to_owned());
            }
        }
    }

    /// The events recorded so far.
    pub fn events(&self) -> Vec<ServerEvent> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Events that several nodes report.
const REPORTED: [&str; 5] = ["up", "down", "joined", "left", "moved"];
/// The client's observations of a node: whether it has an open connection on which the node responds.
const USABLE: &str = "usable";
const UNUSABLE: &str = "unusable";
/// Limits memory use if a cluster changes continually.
const EVENTS_MAX: usize = 10_000;

/// Adds an event at the current time.
fn push_event(events: &mut Vec<ServerEvent>, server: String, event: String) {
    let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    if events.len() < EVENTS_MAX {
        events.push(ServerEvent { unix_ns, server, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(port: u16, tokens: &[i64]) -> Node {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Node { address, dc: "dc".to_owned(), rack: "rack".to_owned(), tokens: tokens.to_vec() }
    }

    #[test]
    fn usability_is_counted_over_all_connections() {
        let latest = Latest::new(vec![node(1, &[]), node(2, &[])], None, Reconnect::default());
        let (topology, _) = latest.current();
        let count = |at: usize, is_usable| {
            latest.count_usable(&topology.reach[at], topology.nodes[at].address, is_usable);
        };
        for (at, is_usable) in
            [(0, true), (1, true), (0, true), (0, false), (1, false), (0, false), (0, true), (0, true)]
        {
            count(at, is_usable);
        }
        let events: Vec<_> = latest.events().into_iter().map(|event| (event.server, event.event)).collect();
        let names = [("127.0.0.1:2", UNUSABLE), ("127.0.0.1:1", UNUSABLE), ("127.0.0.1:1", USABLE)];
        assert_eq!(events, names.map(|(server, event)| (server.to_owned(), event.to_owned())));
    }

    #[test]
    fn observations_between_reports_do_not_repeat_them() {
        let latest = Latest::new(vec![node(1, &[])], None, Reconnect::default());
        for event in ["down", "control connection lost", "down", "up", UNUSABLE, "up", "down"] {
            latest.record("a".to_owned(), event);
        }
        let events: Vec<_> = latest.events().into_iter().map(|event| event.event).collect();
        assert_eq!(events, ["down", "control connection lost", "up", UNUSABLE, "down"]);
    }

    #[test]
    fn nodes_that_stay_keep_their_reachability() {
        let latest =
            Latest::new(vec![node(1, &[5]), node(2, &[9])], Some(Replication::Simple(1)), Reconnect::default());
        let (before, version) = latest.current();
        assert_eq!(before.ring.replicas(7), [1]);
        latest.replace(before.nodes.clone());
        assert_eq!(latest.version(), version, "nothing has changed");
        latest.replace(vec![node(3, &[7]), node(1, &[5])]);
        let (after, next) = latest.current();
        assert!(next > version);
        assert!(Arc::ptr_eq(&after.reach[1], &before.reach[0]) && !Arc::ptr_eq(&after.reach[0], &before.reach[1]));
        assert_eq!((after.ring.replicas(7), after.ring.replicas(8)), (&[0][..], &[1][..]));
    }
}
