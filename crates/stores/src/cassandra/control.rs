//! The control connections to two nodes, which track the nodes of a cluster during a trial
//! (`native_protocol_v5.spec`, 4.2.6, EVENT).

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::Notify;

use super::cluster::Cluster;
use super::login::{Entry, Link};
use super::wire::{Body, Short, opcode, put_string};

/// The delay before the client subscribes to the events of another node.
const RETRY: Duration = Duration::from_millis(500);
/// The delay before the system tables are read: a node is announced before they list it.
const SETTLE: Duration = Duration::from_secs(1);

/// Tracks a cluster until this value is dropped.
#[derive(Debug)]
pub struct Control {
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Starts tracking on a separate thread, because a busy executor would delay the events.
    pub fn start(cluster: &Arc<Cluster>) -> std::io::Result<Self> {
        let (stop, cluster) = (Arc::new(Notify::new()), Arc::clone(cluster));
        let stopped = Arc::clone(&stop);
        let run = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build() else {
                return;
            };
            tokio::task::LocalSet::new().block_on(&runtime, async {
                // The events of two nodes are followed, because a paused node reports nothing, not even that the other
                // nodes consider it down.
                let used = Rc::default();
                let mut first = pin!(follow(&cluster, &used, &["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"]));
                let mut second = pin!(follow(&cluster, &used, &["TOPOLOGY_CHANGE", "STATUS_CHANGE"]));
                let mut stopped = pin!(stopped.notified());
                std::future::poll_fn(|context| match stopped.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => match (first.as_mut().poll(context), second.as_mut().poll(context)) {
                        (Poll::Ready(never), _) | (_, Poll::Ready(never)) => match never {},
                        (Poll::Pending, Poll::Pending) => Poll::Pending,
                    },
                })
                .await;
            });
        };
        let thread = std::thread::Builder::new().name("cassandra control".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // The notification is stored if the thread is not waiting yet.
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The nodes that already have a control connection.
type Used = Rc<RefCell<Vec<SocketAddr>>>;

/// Connects to a node that is not `used`, and processes its events.
async fn follow(cluster: &Arc<Cluster>, used: &Used, kinds: &[&str]) -> std::convert::Infallible {
    let mut connected_before = false;
    loop {
        let (topology, _) = cluster.topology.current();
        let nodes = topology.nodes.iter().filter(|node| cluster.uses(node)).map(|node| node.address);
        for address in nodes {
            if used.borrow().contains(&address) {
                continue;
            }
            used.borrow_mut().push(address);
            let changed = Rc::new(Notify::new());
            let link = Link::open(address, cluster.protocol, &cluster.settings, Entry::Plain).await.ok();
            let Some(link) = listen(cluster, link, &changed, kinds).await else {
                used.borrow_mut().retain(|node| *node != address);
                continue;
            };
            // Events may have been missed since the last connection.
            if connected_before {
                changed.notify_one();
            }
            connected_before = true;
            let follow = async {
                loop {
                    changed.notified().await;
                    tokio::time::sleep(SETTLE).await;
                    if let Ok(nodes) = Cluster::read_nodes(&link, address, cluster.settings.port).await {
                        cluster.topology.replace(nodes);
                    }
                }
            };
            let (mut following, mut lost) = (pin!(follow), pin!(link.connection().wait_for_loss()));
            std::future::poll_fn(|context| match lost.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => following.as_mut().poll(context),
            })
            .await;
            used.borrow_mut().retain(|node| *node != address);
            cluster.topology.record(address.to_string(), "control connection lost");
            break;
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Subscribes to events of a node. Returns the connection if the node accepted.
async fn listen(cluster: &Arc<Cluster>, link: Option<Link>, changed: &Rc<Notify>, kinds: &[&str]) -> Option<Link> {
    let link = link?;
    let (own, changed) = (Arc::clone(cluster), Rc::clone(changed));
    link.connection().listen(Box::new(move |body| match Event::read(body) {
        Ok(Event::Node { address, event, topology }) => {
            own.topology.record(address.to_string(), event);
            if topology {
                changed.notify_one();
            }
        }
        Ok(Event::Schema(change)) => own.topology.record(String::new(), change),
        Err(Short) => {}
    }));
    let slot = Rc::default();
    let register = |out: &mut Vec<u8>| {
        out.extend_from_slice(&(kinds.len() as u16).to_be_bytes());
        for name in kinds {
            put_string(out, name);
        }
    };
    let request = link.connection().ask(&slot, 0, opcode::REGISTER, register);
    let agreed = tokio::time::timeout(cluster.settings.request_timeout, request).await;
    (matches!(agreed, Ok(Ok(()))) && slot.opcode() == opcode::READY).then_some(link)
}

/// An event of a cluster.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Something happened to a node. `topology` is set if the ring may have changed.
    Node { address: SocketAddr, event: &'static str, topology: bool },
    /// A keyspace, table, type or function was changed.
    Schema(String),
}

impl Event {
    /// Parses the body of EVENT.
    pub fn read(mut body: Body<'_>) -> Result<Self, Short> {
        let (kind, change) = (body.text()?, body.text()?);
        if kind == "SCHEMA_CHANGE" {
            let (target, mut name) = (body.text()?, body.text()?);
            if target != "KEYSPACE" {
                name = format!("{name}.{}", body.text()?);
            }
            return Ok(Self::Schema(format!("{} {name} {}", target.to_lowercase(), change.to_lowercase())));
        }
        let [len] = body.array()?;
        let bytes = body.take(usize::from(len))?;
        let ip = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        let ip = ip.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).map_err(|_| Short)?;
        let address = SocketAddr::new(ip, u16::try_from(body.int()?).map_err(|_| Short)?);
        let event = match change.as_str() {
            "UP" => "up",
            "DOWN" => "down",
            "NEW_NODE" => "joined",
            "REMOVED_NODE" => "left",
            "MOVED_NODE" => "moved",
            _ => return Err(Short),
        };
        Ok(Self::Node { address, event, topology: kind == "TOPOLOGY_CHANGE" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read() {
        let event = |parts: &[&str], rest: &[u8]| {
            let mut out = Vec::new();
            for part in parts {
                put_string(&mut out, part);
            }
            out.extend_from_slice(rest);
            Event::read(Body(&out))
        };
        let address = SocketAddr::from(([127, 0, 0, 2], 9_042));
        let place = b"\x04\x7F\0\0\x02\0\0\x23\x52";
        let node = |event, topology| Ok(Event::Node { address, event, topology });
        assert_eq!(event(&["STATUS_CHANGE", "DOWN"], place), node("down", false));
        assert_eq!(event(&["TOPOLOGY_CHANGE", "NEW_NODE"], place), node("joined", true));
        let table = event(&["SCHEMA_CHANGE", "UPDATED", "TABLE", "ks", "t"], b"");
        assert_eq!(table, Ok(Event::Schema("table ks.t updated".to_owned())));
        let keyspace = event(&["SCHEMA_CHANGE", "DROPPED", "KEYSPACE", "ks"], b"");
        assert_eq!(keyspace, Ok(Event::Schema("keyspace ks dropped".to_owned())));
        for len in 0..place.len() {
            assert_eq!(event(&["STATUS_CHANGE", "UP"], &place[..len]), Err(Short));
        }
    }
}
