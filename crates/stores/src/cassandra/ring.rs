//! Finds the nodes that store a key, from the ring of tokens and the keyspace's replication.

use std::net::SocketAddr;

use loadstone_session::Placement;

use super::murmur3;

/// A node of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The address at which clients connect to the node.
    pub address: SocketAddr,
    /// The node's data centre.
    pub dc: String,
    /// The node's rack.
    pub rack: String,
    /// The ends of the node's token ranges.
    pub tokens: Vec<i64>,
}

/// The replication of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replication {
    /// This number of copies, on consecutive nodes of the ring.
    Simple(usize),
    /// This number of copies in each data centre.
    Network(Vec<(String, usize)>),
    /// An unknown strategy.
    Other(String),
}

impl Replication {
    /// Parses the map in `system_schema.keyspaces`.
    pub fn from_pairs(pairs: &[(String, String)]) -> Self {
        let class = pairs.iter().find(|(name, _)| name == "class").map_or("", |(_, class)| class.as_str());
        // Transient replicas (3/1) also count as copies.
        let copies = |text: &str| text.split('/').next().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        match class.rsplit('.').next().unwrap_or_default() {
            "SimpleStrategy" => {
                let factor = pairs.iter().find(|(name, _)| name == "replication_factor");
                Self::Simple(factor.map_or(1, |(_, text)| copies(text)))
            }
            "NetworkTopologyStrategy" => Self::Network(
                pairs.iter().filter(|(name, _)| name != "class").map(|(dc, text)| (dc.clone(), copies(text))).collect(),
            ),
            other => Self::Other(other.to_owned()),
        }
    }

    /// The class name of the strategy, as in CQL.
    pub fn class(&self) -> &str {
        match self {
            Self::Simple(_) => "SimpleStrategy",
            Self::Network(_) => "NetworkTopologyStrategy",
            Self::Other(name) => name,
        }
    }

    /// Total number of copies of a record in all data centres; `None` if the strategy is unknown.
    pub fn copies(&self) -> Option<usize> {
        match self {
            Self::Simple(copies) => Some(*copies),
            Self::Network(dcs) => Some(dcs.iter().map(|(_, copies)| copies).sum()),
            Self::Other(_) => None,
        }
    }

    /// Number of copies that must acknowledge a write at a consistency level; `None` if this number is unknown.
    pub fn count_acknowledged(&self, level: &str, local_dc: &str) -> Option<usize> {
        let quorum = |copies: usize| copies / 2 + 1;
        let local = match self {
            Self::Network(dcs) => dcs.iter().find(|(dc, _)| dc == local_dc).map(|(_, copies)| *copies),
            _ => self.copies(),
        };
        match level {
            // A hint stored at the coordinator is enough.
            "ANY" => Some(0),
            "ONE" | "LOCAL_ONE" => Some(1),
            "TWO" => Some(2),
            "THREE" => Some(3),
            "QUORUM" => self.copies().map(quorum),
            "LOCAL_QUORUM" => local.map(quorum),
            "EACH_QUORUM" => match self {
                Self::Network(dcs) => Some(dcs.iter().map(|(_, copies)| quorum(*copies)).sum()),
                _ => self.copies().map(quorum),
            },
            "ALL" => self.copies(),
            _ => None,
        }
    }

    /// The number of copies in a data centre with `NetworkTopologyStrategy`; 0 with any other strategy.
    fn project(&self, dc: &str) -> usize {
        match self {
            Self::Simple(_) | Self::Other(_) => 0,
            Self::Network(dcs) => dcs.iter().find(|(name, _)| name == dc).map_or(0, |(_, copies)| *copies),
        }
    }
}

/// The ring: token ranges, and the nodes that store each range. Empty if the replication is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// The end of each range in ascending order, with the nodes that store the range.
    ranges: Vec<(i64, Vec<usize>)>,
}

impl Ring {
    /// Builds the ring of these nodes. Replicas are represented by their indexes in `nodes`.
    pub fn new(nodes: &[Node], replication: &Replication) -> Self {
        if matches!(replication, Replication::Other(_)) {
            return Self::default();
        }
        let mut ends: Vec<(i64, usize)> = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            ends.extend(node.tokens.iter().map(|token| (*token, number)));
        }
        ends.sort_unstable();
        let walk = |start: usize| {
            let order = ends[start..].iter().chain(&ends[..start]).map(|(_, number)| *number);
            replicas(order, nodes, replication)
        };
        Self { ranges: (0..ends.len()).map(|start| (ends[start].0, walk(start))).collect() }
    }

    /// The placement of the keys; `None` if the replication is unknown.
    pub fn placement(&self) -> Option<Placement> {
        // Tokens begin at -2^63.
        fn order(token: i64) -> u64 {
            token.cast_unsigned() ^ 1 << 63
        }
        // A part begins after the end of the previous part. Beyond the last token, the ring starts again.
        let firsts = std::iter::once(0).chain(self.ranges.iter().map(|(end, _)| order(*end).saturating_add(1)));
        let owners = self.ranges.iter().chain(self.ranges.first()).map(|(_, nodes)| nodes.clone());
        Placement::new(|key| order(murmur3::token(key)), 1 << 64, firsts.zip(owners))
    }

    /// The nodes that store a token, first replica first.
    #[inline]
    pub fn replicas(&self, token: i64) -> &[usize] {
        let at = self.ranges.partition_point(|(end, _)| *end < token);
        // Beyond the last token, the ring starts again.
        self.ranges.get(at).or(self.ranges.first()).map_or(&[], |(_, nodes)| nodes)
    }
}

/// The replicas of a range. They are found by walking round the ring from the end of the range.
fn replicas(order: impl Iterator<Item = usize>, nodes: &[Node], replication: &Replication) -> Vec<usize> {
    let mut chosen: Vec<usize> = Vec::new();
    // Nodes in a rack that already has a copy are skipped while there are racks without a copy.
    let mut passed: Vec<usize> = Vec::new();
    for number in order {
        if chosen.contains(&number) || passed.contains(&number) {
            continue;
        }
        let node = &nodes[number];
        if let Replication::Simple(copies) = replication {
            if chosen.len() < *copies {
                chosen.push(number);
            }
            continue;
        }
        let here = |numbers: &[usize]| numbers.iter().filter(|&&n| nodes[n].dc == node.dc).count();
        if here(&chosen) >= replication.project(&node.dc) {
            continue;
        }
        if chosen.iter().any(|&n| nodes[n].dc == node.dc && nodes[n].rack == node.rack) {
            passed.push(number);
        } else {
            chosen.push(number);
        }
    }
    for number in passed {
        let dc = &nodes[number].dc;
        if chosen.iter().filter(|&&n| nodes[n].dc == *dc).count() < replication.project(dc) {
            chosen.push(number);
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(places: &[(&str, &str, i64)]) -> Vec<Node> {
        let address = |number: usize| SocketAddr::from(([127, 0, 0, number as u8], 9042));
        let node = |(number, (dc, rack, token)): (usize, &(&str, &str, i64))| Node {
            address: address(number),
            dc: (*dc).to_owned(),
            rack: (*rack).to_owned(),
            tokens: vec![*token],
        };
        places.iter().enumerate().map(node).collect()
    }

    #[test]
    fn simple_replicas_follow_each_other() {
        let nodes = nodes(&[("a", "1", -100), ("a", "1", 0), ("a", "1", 100)]);
        let ring = Ring::new(&nodes, &Replication::Simple(2));
        assert_eq!(ring.placement().unwrap().shares.len(), 3);
        assert_eq!(ring.replicas(-100), [0, 1]);
        assert_eq!(ring.replicas(-99), [1, 2]);
        assert_eq!(ring.replicas(101), [0, 1], "round the ring");
        assert_eq!(Ring::new(&nodes, &Replication::Simple(5)).replicas(0).len(), 3, "no more than there are nodes");
    }

    #[test]
    fn racks_and_data_centres_are_spread_over() {
        let nodes = nodes(&[("a", "1", 0), ("a", "1", 10), ("b", "1", 20), ("a", "2", 30)]);
        let ring = Ring::new(&nodes, &Replication::Network(vec![("a".to_owned(), 2), ("b".to_owned(), 1)]));
        assert_eq!(ring.replicas(0), [0, 2, 3]);
        let three = Ring::new(&nodes, &Replication::Network(vec![("a".to_owned(), 3)]));
        assert_eq!(three.replicas(0), [0, 3, 1], "a rack twice, once there is no other");
    }

    #[test]
    fn acknowledged_copies_follow_from_the_level() {
        let pairs = |text: &str| -> Vec<(String, String)> {
            text.split(' ').map(|p| p.split_once('=').unwrap()).map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
        };
        let simple =
            Replication::from_pairs(&pairs("class=org.apache.cassandra.locator.SimpleStrategy replication_factor=3"));
        assert_eq!(simple, Replication::Simple(3));
        assert_eq!(simple.count_acknowledged("QUORUM", "a"), Some(2));
        let network = Replication::from_pairs(&pairs("class=NetworkTopologyStrategy a=3 b=2"));
        assert_eq!((network.copies(), network.class()), (Some(5), "NetworkTopologyStrategy"));
        assert_eq!(network.count_acknowledged("LOCAL_QUORUM", "a"), Some(2));
        assert_eq!(network.count_acknowledged("EACH_QUORUM", "a"), Some(4));
        assert_eq!(Replication::from_pairs(&pairs("class=EverywhereStrategy")).copies(), None);
    }
}
