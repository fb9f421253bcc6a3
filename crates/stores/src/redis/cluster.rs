//! The nodes of a Redis Cluster, and the node to which each slot belongs. A single server is a cluster of one node.
//!
//! <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use loadstone_load::Status;
use loadstone_session::Placement;

use super::connection::Connection;
use super::failure::{self, expect_array, expect_integer};
use super::reply::{Replies, Reply};
use super::request::Request;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::{EngineError, Failure};
use crate::reconnect::Node;
use crate::remote::Server;
use crate::session::ConnectionAttempts;

const SLOTS: usize = 16_384;
/// The maximum number of nodes that the specification recommends.
const MEMBERS_MAX: usize = 1_000;
/// The pause between two requests for the slots while nodes are failing. It is short enough that a promoted replica is
/// used within a second.
const REFRESH_PAUSE: Duration = Duration::from_millis(250);

/// A node to which slots belong.
#[derive(Debug)]
pub struct Member {
    /// The store's settings, with the address of this node.
    pub settings: Arc<Settings>,
    pub node: Arc<Node>,
}

/// The nodes of a cluster, shared by all sessions of a store.
#[derive(Debug)]
pub struct Cluster {
    settings: Arc<Settings>,
    members: RwLock<Vec<Arc<Member>>>,
    /// The number of the member to which each slot belongs; empty for a single server.
    owners: Box<[AtomicU16]>,
    refreshing: AtomicBool,
}

/// A range of slots and the address of the node to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    slots: std::ops::RangeInclusive<usize>,
    host: String,
    port: u16,
}

/// A reply that refers to a different node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirection {
    /// The slot belongs to a different node from now on.
    Moved(usize, String, u16),
    /// The key may be on a different node, which is importing its slot. This applies only to the current request.
    Ask(String, u16),
}

impl Cluster {
    /// Creates a cluster with the nodes in these ranges, or with a single server.
    pub fn new(settings: &Arc<Settings>, ranges: &[Range]) -> Result<Arc<Self>, Failure> {
        let owners = if settings.cluster { SLOTS } else { 0 };
        let cluster = Self {
            settings: Arc::clone(settings),
            members: RwLock::default(),
            owners: (0..owners).map(|_| AtomicU16::new(0)).collect(),
            refreshing: AtomicBool::new(false),
        };
        if settings.cluster {
            cluster.learn(ranges)?;
        } else {
            cluster.add_member(settings.server.clone())?;
        }
        Ok(Arc::new(cluster))
    }

    /// The number of the member at the server's address. If the address is new, the member is added.
    fn add_member(&self, server: Server) -> Result<usize, Failure> {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let is_same = |member: &Arc<Member>| member.settings.server.is_at(server.host(), server.port());
        // Another session may have added the member in the meantime.
        if let Some(known) = members.iter().position(is_same) {
            return Ok(known);
        }
        if members.len() == MEMBERS_MAX {
            let message = format!("redis lists more than {MEMBERS_MAX} nodes; the last node is {server}");
            return Err(Failure::new(Status::UnexpectedState, message));
        }
        let node = Node::new(self.settings.reconnect);
        let settings = Arc::new(Settings { server, ..(*self.settings).clone() });
        members.push(Arc::new(Member { settings, node }));
        Ok(members.len() - 1)
    }

    /// Whether keys are distributed over slots.
    #[inline]
    pub fn has_slots(&self) -> bool {
        !self.owners.is_empty()
    }

    /// The number of the member to which a key belongs.
    #[inline]
    pub fn find_owner(&self, key: &[u8]) -> usize {
        if self.owners.is_empty() { 0 } else { usize::from(self.owners[slot_of(key)].load(Ordering::Relaxed)) }
    }

    /// The placement of the keys; `None` for a single server.
    pub fn placement(&self) -> Option<Placement> {
        let owners = self.owners.iter().map(|owner| vec![usize::from(owner.load(Ordering::Relaxed))]);
        Placement::new(|key| slot_of(key) as u64, SLOTS as u128, (0..).zip(owners))
    }

    /// All members.
    pub fn members(&self) -> Vec<Arc<Member>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of the member at an address. If the address is new, the member is added.
    fn find_member(&self, host: &str, port: u16) -> Result<usize, Failure> {
        let is_known = |member: &Arc<Member>| member.settings.server.is_at(host, port);
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = members.iter().position(is_known) {
            return Ok(known);
        }
        drop(members);
        let unknown = |error: EngineError| Failure::new(Status::ServiceUnavailable, error.message);
        self.add_member(Server::find(host, port, "redis.host").map_err(unknown)?)
    }

    fn learn(&self, ranges: &[Range]) -> Result<(), Failure> {
        for Range { slots, host, port } in ranges {
            let owner = self.find_member(host, *port)? as u16;
            for slot in slots.clone() {
                self.owners[slot].store(owner, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Follows a member's redirection. Returns the number of the next member, and whether ASKING must be sent first.
    pub fn follow(&self, from: usize, redirection: &Redirection) -> Result<(usize, bool), Failure> {
        let find = |host: &str, port| {
            if host.is_empty() {
                // In the specification, an empty host means "The same endpoint with the new port".
                let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
                let own = members[from].settings.server.host().to_owned();
                drop(members);
                return self.find_member(&own, port);
            }
            self.find_member(host, port)
        };
        match redirection {
            Redirection::Moved(slot, host, port) => {
                let owner = find(host, *port)?;
                self.owners[*slot].store(owner as u16, Ordering::Relaxed);
                Ok((owner, false))
            }
            Redirection::Ask(host, port) => Ok((find(host, *port)?, true)),
        }
    }

    /// After a failure, asks another member for the slots, because a replica may have been promoted. Does nothing if a
    /// request for the slots is already in progress.
    pub fn refresh(self: &Arc<Self>, failed: usize) {
        if !self.has_slots() || self.refreshing.swap(true, Ordering::Relaxed) {
            return;
        }
        let refreshing = Refreshing(Arc::clone(self));
        tokio::task::spawn_local(async move {
            tokio::time::sleep(REFRESH_PAUSE).await;
            let cluster = &refreshing.0;
            for (number, member) in cluster.members().iter().enumerate() {
                if number != failed
                    && let Ok(ranges) = ask_slots(&member.settings).await
                    && cluster.learn(&ranges).is_ok()
                {
                    break;
                }
            }
        });
    }

    /// The attempts to connect to all members.
    pub fn attempts(&self) -> ConnectionAttempts {
        let attempts = self.members().into_iter().map(|member| member.node.attempts());
        attempts.fold(ConnectionAttempts::default(), ConnectionAttempts::plus)
    }
}

/// Marks a refresh in progress. The mark is removed when the task ends, even if the task's executor ends first.
struct Refreshing(Arc<Cluster>);

impl Drop for Refreshing {
    fn drop(&mut self) {
        self.0.refreshing.store(false, Ordering::Relaxed);
    }
}

/// Asks a node for the slots of its cluster.
pub async fn ask_slots(settings: &Settings) -> Result<Vec<Range>, Failure> {
    let mut deadline = Deadline::new(settings.timeout);
    let mut connection = Connection::open(settings, &mut deadline).await?;
    let mut request = Request::default();
    request.command(&[b"CLUSTER", b"SLOTS"]);
    connection.exchange(&request, settings, &mut deadline).await?;
    read_slots(connection.replies(), settings.server.host())
}

/// Reads the reply of `host` to `CLUSTER SLOTS`. Each range lists its first and last slot, its master, and its
/// replicas.
fn read_slots(mut replies: Replies<'_>, host: &str) -> Result<Vec<Range>, Failure> {
    let mut ranges = Vec::new();
    for _ in 0..expect_array(&mut replies)? {
        let parts = expect_array(&mut replies)?;
        let (first, last) = (expect_integer(&mut replies)? as usize, expect_integer(&mut replies)? as usize);
        let fields = expect_array(&mut replies)?;
        let host = match replies.next()? {
            // A node that does not know its own address sends a null or empty host; "?" means a missing host name.
            Some(Reply::Nil | Reply::Bulk(b"" | b"?")) => host.to_owned(),
            Some(Reply::Bulk(host)) => String::from_utf8_lossy(host).into_owned(),
            other => return Err(failure::reply_failure(other)),
        };
        let port = expect_integer(&mut replies)? as u16;
        for _ in 0..(fields.saturating_sub(2) + parts.saturating_sub(3)) {
            replies.skip()?;
        }
        if first > last || last >= SLOTS {
            return Err(failure::reply_failure(Some(Reply::Integer(last as i64))));
        }
        ranges.push(Range { slots: first..=last, host, port });
    }
    Ok(ranges)
}

/// Parses an error reply that is a redirection, such as `MOVED 3999 127.0.0.1:6381`.
pub fn read_redirection(error: &[u8]) -> Option<Redirection> {
    let text = std::str::from_utf8(error).ok()?;
    let mut parts = text.split(' ');
    let (kind, slot, place) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let (host, port) = place.rsplit_once(':')?;
    let (host, port) = (host.to_owned(), port.parse().ok()?);
    match kind {
        "MOVED" if slot < SLOTS => Some(Redirection::Moved(slot, host, port)),
        "ASK" => Some(Redirection::Ask(host, port)),
        _ => None,
    }
}

/// The slot of a key: the CRC-16 (XMODEM) of the key or of its hash tag.
fn slot_of(key: &[u8]) -> usize {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let tag = &key[open + 1..];
        tag.iter().position(|&byte| byte == b'}').filter(|&len| len > 0).map(|len| &tag[..len])
    });
    let crc =
        tag.unwrap_or(key).iter().fold(0u16, |crc, byte| (crc << 8) ^ CRC16[usize::from((crc >> 8) as u8 ^ byte)]);
    usize::from(crc) % SLOTS
}

const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
