//! Tests of slots and redirections, with nodes that answer according to a script.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::AtomicUsize;
use std::thread;

use loadstone_load::Row;

use super::super::RedisSession;
use super::*;
use crate::options::Options;
use crate::session::{Connection as _, Session as _};

/// The check value of the CRC, and slots as reported by `CLUSTER KEYSLOT` of Redis 7.0.
#[test]
fn slots_equal_those_of_redis() {
    assert_eq!(slot_of(b"123456789"), 0x31C3);
    assert_eq!((slot_of(b"foo"), slot_of(b"bar"), slot_of(b"hello")), (12_182, 5_061, 866));
    assert_eq!(slot_of(b"{foo}.bar"), slot_of(b"foo"));
    assert_eq!(slot_of(b"a{}b{foo}"), slot_of(b"a{}b{foo}"), "an empty tag does not count as a tag");
    assert_ne!(slot_of(b"a{}b{foo}"), slot_of(b"foo"));
}

#[test]
fn redirections_are_read() {
    let expected = Redirection::Moved(3_999, "127.0.0.1".to_owned(), 6_381);
    assert_eq!(read_redirection(b"MOVED 3999 127.0.0.1:6381"), Some(expected));
    assert_eq!(read_redirection(b"MOVED 1 ::1:7000"), Some(Redirection::Moved(1, "::1".to_owned(), 7_000)));
    assert_eq!(read_redirection(b"ASK 1 :7000"), Some(Redirection::Ask(String::new(), 7_000)));
    for other in [&b"ERR MOVED 1 a:1"[..], b"MOVED 16384 a:1", b"MOVED x a:1", b"MOVED 1 a", b"MOVED 1 a:x", b"\xFF"] {
        assert_eq!(read_redirection(other), None);
    }
}

#[test]
fn slots_are_read_with_replicas() {
    let text = b"*2\r\n*4\r\n:0\r\n:8191\r\n*3\r\n$9\r\n127.0.0.1\r\n:7001\r\n$2\r\nid\r\n*3\r\n$1\r\nr\r\n:7002\r\n$1\r\nx\r\n\
        *3\r\n:8192\r\n:16383\r\n*4\r\n$-1\r\n:7003\r\n$2\r\nid\r\n*0\r\n";
    let ranges = read_slots(Replies::new(text), "seed").unwrap();
    let range = |slots, host: &str, port| Range { slots, host: host.to_owned(), port };
    assert_eq!(ranges, [range(0..=8_191, "127.0.0.1", 7_001), range(8_192..=16_383, "seed", 7_003)]);
    assert!(read_slots(Replies::new(b"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n"), "").is_err());
    assert!(read_slots(Replies::new(b"-ERR This instance has cluster support disabled\r\n"), "").is_err());
}

/// A node that listens on a port.
struct Scripted {
    port: u16,
    requests: Arc<AtomicUsize>,
}

/// Answers each request on every connection. `answer` receives the text of the request and its number.
fn serve(listener: TcpListener, answer: impl Fn(&str, usize) -> String + Clone + Send + 'static) -> Scripted {
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer, count) = (stream.unwrap(), answer.clone(), Arc::clone(&count));
            thread::spawn(move || {
                // The buffer is longer than any request here.
                let mut request = [0; 4_096];
                while let Ok(read @ 1..) = stream.read(&mut request) {
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    let reply = answer(&String::from_utf8_lossy(&request[..read]), number);
                    if stream.write_all(reply.as_bytes()).is_err() {
                        break;
                    }
                }
            });
        }
    });
    Scripted { port, requests }
}

fn bind() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A cluster in which all slots belong to the node on this port.
fn cluster_at(port: u16) -> Arc<Cluster> {
    let properties = [("redis.port", port.to_string()), ("redis.cluster", "true".to_owned())];
    let properties = properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = Arc::new(Settings::read(&Options { properties, ..Options::default() }).unwrap());
    Cluster::new(&settings, &[Range { slots: 0..=SLOTS - 1, host: "127.0.0.1".to_owned(), port }]).unwrap()
}

/// Runs a test with one session of a cluster.
fn run(cluster: &Arc<Cluster>, test: impl AsyncFnOnce(RedisSession)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let session = RedisSession::new(Arc::clone(cluster), &cluster.settings);
    tokio::task::LocalSet::new().block_on(&runtime, test(session));
}

async fn update(session: &mut RedisSession) -> Status {
    let mut row = Row::default();
    row.push_field(b"field0", b"value");
    session.update(b"hello", &row).await
}

fn done() -> String {
    "+OK\r\n".to_owned()
}

#[test]
fn moved_slots_are_cached_and_asked_ones_not() {
    let ((own, own_port), (other, other_port)) = (bind(), bind());
    let own = serve(own, move |request, number| match number {
        0 => format!("-MOVED 866 127.0.0.1:{other_port}\r\n"),
        _ if request.starts_with("*1\r\n$6\r\nASKING\r\n*4\r\n$5\r\nHMSET") => "+OK\r\n+OK\r\n".to_owned(),
        _ => format!("-ERR got {}\r\n", request.escape_debug()),
    });
    let other = serve(other, move |_, number| match number {
        // A missing host means the host of this node.
        1 => format!("-ASK 866 :{own_port}\r\n"),
        _ => done(),
    });
    let cluster = cluster_at(own.port);
    run(&cluster, async |mut session| {
        for step in ["moved", "asked", "neither"] {
            assert_eq!(update(&mut session).await, Status::Ok, "{step}: {:?}", session.last_error());
        }
    });
    assert_eq!(cluster.members().len(), 2);
    let requests = [own, other].map(|node| node.requests.load(Ordering::Relaxed));
    assert_eq!(requests, [2, 3]);
}

#[test]
fn endless_redirections_end_as_refusals() {
    for kind in ["MOVED", "ASK"] {
        let (listener, port) = bind();
        let node = serve(listener, move |request, _| {
            let asking = if request.contains("ASKING") { "+OK\r\n" } else { "" };
            format!("{asking}-{kind} 866 127.0.0.1:{port}\r\n")
        });
        run(&cluster_at(port), async |mut session| {
            let status = update(&mut session).await;
            assert_eq!((status, session.is_refusal(status)), (Status::ServiceUnavailable, true), "{kind}");
            assert_eq!(session.last_error().unwrap(), "redis redirected a request more than 5 times");
        });
        assert_eq!(node.requests.load(Ordering::Relaxed), 6, "{kind}");
    }
}

#[test]
fn reply_to_the_last_redirection_counts() {
    let (listener, port) = bind();
    let node =
        serve(listener, move |_, number| if number < 5 { format!("-MOVED 866 127.0.0.1:{port}\r\n") } else { done() });
    run(&cluster_at(port), async |mut session| {
        assert_eq!(update(&mut session).await, Status::Ok, "{:?}", session.last_error());
    });
    assert_eq!(node.requests.load(Ordering::Relaxed), 6);
}

#[test]
fn refusals_of_a_cluster_are_not_repeated() {
    for answer in ["CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys request during rehashing of slot"] {
        let (listener, port) = bind();
        let node = serve(listener, move |_, _| format!("-{answer}\r\n"));
        run(&cluster_at(port), async |mut session| {
            let status = update(&mut session).await;
            assert_eq!((status, session.is_refusal(status)), (Status::ServiceUnavailable, true), "{answer}");
            assert!(!session.is_unsent());
        });
        assert_eq!(node.requests.load(Ordering::Relaxed), 1, "{answer}");
    }
}

#[test]
fn redirection_to_a_closed_port_is_refused() {
    let ((listener, port), (closed, closed_port)) = (bind(), bind());
    drop(closed);
    serve(listener, move |_, _| format!("-MOVED 866 127.0.0.1:{closed_port}\r\n"));
    run(&cluster_at(port), async |mut session| {
        let status = update(&mut session).await;
        assert_eq!((status, session.is_refusal(status)), (Status::ServiceUnavailable, true));
        assert!(session.last_error().unwrap().contains("cannot connect to 127.0.0.1"));
    });
}

#[test]
fn other_nodes_know_slots_of_dead_node() {
    let ((dead, dead_port), (other, other_port)) = (bind(), bind());
    let slots = format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:{other_port}\r\n");
    serve(other, move |request, _| if request.contains("SLOTS") { slots.clone() } else { done() });
    drop(dead);
    let cluster = cluster_at(dead_port);
    cluster.find_member("127.0.0.1", other_port).unwrap();
    run(&cluster, async |mut session| {
        assert_eq!(update(&mut session).await, Status::ServiceUnavailable);
        while update(&mut session).await != Status::Ok {
            session.pause().await;
        }
    });
    assert_eq!(cluster.find_owner(b"hello"), 1);
}

#[test]
fn members_are_found_once_and_limited() {
    let cluster = cluster_at(1);
    for port in 1..=MEMBERS_MAX as u16 {
        assert_eq!(cluster.find_member("127.0.0.1", port), Ok(usize::from(port) - 1));
        assert_eq!(cluster.find_member("127.0.0.1", port), Ok(usize::from(port) - 1));
    }
    let failure = cluster.find_member("127.0.0.1", 2_000).unwrap_err();
    assert!(failure.message.contains("more than 1000 nodes"), "{}", failure.message);
}
