//! Tests with a fake server that answers in pages.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::super::answer::UNPREPARED;
use super::super::cluster::Cluster;
use super::super::ring::{Node, Replication};
use super::super::settings::Settings;
use super::super::sharding::Extensions;
use super::super::topology::Latest;
use super::super::wire::{HEADER, Head, Version, frame, opcode};
use super::*;
use crate::options::Options;
use crate::session::Connection;

/// A cluster whose only node listens at `contact`.
fn cluster(contact: std::net::SocketAddr) -> Arc<Cluster> {
    Arc::new(cluster_of(&[contact]))
}

/// A cluster whose nodes listen at these addresses.
pub fn cluster_of(addresses: &[std::net::SocketAddr]) -> Cluster {
    let properties = [("hosts".to_owned(), "127.0.0.1".to_owned())].into_iter().collect();
    let options = Options { properties, table: "usertable".to_owned(), clients: 1, ..Options::default() };
    let node = |address: &std::net::SocketAddr| Node {
        address: *address,
        dc: String::new(),
        rack: String::new(),
        tokens: Vec::new(),
    };
    Cluster {
        encryption: None,
        extensions: Extensions::default(),
        has_tablets: false,
        settings: Settings::from_options(&options).unwrap(),
        topology: Latest::new(addresses.iter().map(node).collect(), None, crate::reconnect::Reconnect::default()),
        local_dc: String::new(),
        allowed: Vec::new(),
        replication: Replication::Simple(1),
        durable_writes: true,
        compaction: String::new(),
        commit_log: None,
        version: String::new(),
        contact: addresses[0],
        protocol: Version::V4,
    }
}

/// The answer to PREPARE.
pub const PREPARED: &[u8] = b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01\0\0\0\x00\0\x01k\0\x01t\0\x04y_id\0\x0D\
    \0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x04y_id\0\x0D";

/// Serves a connection: each EXECUTE receives the next element of `answers`. Returns the bodies of the executions.
async fn serve(stream: &mut TcpStream, answers: &[(u8, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut executed = Vec::new();
    while executed.len() < answers.len() {
        let mut header = [0; HEADER];
        stream.read_exact(&mut header).await.unwrap();
        let mut body = vec![0; u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize];
        stream.read_exact(&mut body).await.unwrap();
        let (opcode, answer) = match header[4] {
            opcode::STARTUP => (opcode::READY, Vec::new()),
            opcode::PREPARE => (opcode::RESULT, PREPARED.to_vec()),
            _ => {
                executed.push(body);
                answers[executed.len() - 1].clone()
            }
        };
        let mut out = Vec::new();
        let head = Head { flags: 0, stream: u16::from_be_bytes([header[2], header[3]]), opcode };
        frame(&mut out, Version::V4, head, |out| out.extend_from_slice(&answer));
        out[0] |= 0x80;
        stream.write_all(&out).await.unwrap();
    }
    executed
}

/// A page of rows with one column and without metadata. With `more`, further pages follow.
fn page(keys: &[&str], more: Option<&str>) -> Vec<u8> {
    let mut out = b"\0\0\0\x02\0\0\0".to_vec();
    out.push(if more.is_some() { 0x06 } else { 0x04 });
    out.extend_from_slice(b"\0\0\0\x01");
    if let Some(state) = more {
        put_bytes(&mut out, state.as_bytes());
    }
    out.extend_from_slice(&(keys.len() as u32).to_be_bytes());
    for key in keys {
        put_bytes(&mut out, key.as_bytes());
    }
    out
}

/// Scans `count` rows with these answers. Returns the status, the keys, the last message and the bodies of the
/// executions.
fn scan(count: usize, pages: &[Vec<u8>]) -> (Status, Vec<String>, Option<String>, Vec<Vec<u8>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let pages: Vec<_> = pages.iter().map(|page| (opcode::RESULT, page.clone())).collect();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = Client::new(cluster(listener.local_addr().unwrap()));
        let serving =
            tokio::task::spawn_local(async move { serve(&mut listener.accept().await.unwrap().0, &pages).await });
        client.connect().await.unwrap();
        let mut rows = Rows::default();
        let status = client.scan(b"a", count, Projection::All, &mut rows).await;
        let keys = rows.iter().map(|(key, _)| String::from_utf8(key.to_vec()).unwrap()).collect();
        // If the client does not request every page, the server waits for the missing request.
        let executed = tokio::time::timeout(Duration::from_secs(10), serving).await.expect("every page").unwrap();
        (status, keys, client.last_error(), executed)
    })
}

#[test]
fn a_scan_reads_all_pages_of_the_server() {
    let pages = [page(&["a", "b"], Some("first")), page(&[], Some("second")), page(&["c", "d"], None)];
    let (status, keys, _, executed) = scan(10, &pages);
    assert_eq!((status, keys.join("")), (Status::Ok, "abcd".to_owned()));
    // The id, consistency, flags and values are followed by the number of rows and the paging state.
    let values = b"\0\x02\0\0\0\x01a\0\0\0\x04\0\0\0\x0A";
    let body = |flags: u8, rest: &[u8]| [b"\0\x02id\0\x01", &[flags][..], values, rest].concat();
    assert_eq!(executed[0], body(0x03, b""));
    assert_eq!(executed[1], body(0x0F, b"\0\0\0\x02\0\0\0\x05first"));
    assert_eq!(executed[2], body(0x0F, b"\0\0\0\x01\0\0\0\x06second"));
}

#[test]
fn a_complete_scan_requests_no_further_page() {
    let (status, keys, _, executed) = scan(2, &[page(&["a", "b"], Some("more"))]);
    assert_eq!((status, keys.len(), executed.len()), (Status::Ok, 2, 1));
}

#[test]
fn a_server_that_makes_no_progress_is_reported() {
    let (status, _, message, _) = scan(9, &[page(&["a"], Some("same")), page(&["a"], Some("same"))]);
    assert_eq!(status, Status::UnexpectedState);
    assert!(message.unwrap().contains("same page"));
}

#[test]
fn result_without_rows_is_a_protocol_error() {
    const VOID: &[u8] = b"\0\0\0\x01";
    let (status, keys, message, _) = scan(9, &[VOID.to_vec()]);
    assert_eq!((status, keys.len()), (Status::UnexpectedState, 0));
    assert!(message.unwrap().contains("without rows"));
}

/// An error from a node.
fn error(code: i32) -> (u8, Vec<u8>) {
    let mut body = code.to_be_bytes().to_vec();
    body.extend_from_slice(b"\0\x05words");
    (opcode::ERROR, body)
}

#[test]
fn a_write_is_refused_only_before_it_begins() {
    const UNAVAILABLE: i32 = 0x1000;
    const WRITE_TIMEOUT: i32 = 0x1100;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = Client::new(cluster(listener.local_addr().unwrap()));
        // An unprepared statement is prepared and sent again, but only once.
        let answers = [UNAVAILABLE, WRITE_TIMEOUT, UNPREPARED, UNPREPARED].map(error);
        let serving =
            tokio::task::spawn_local(
                async move { serve(&mut listener.accept().await.unwrap().0, &answers).await.len() },
            );
        client.connect().await.unwrap();
        let mut ended = Vec::new();
        for _ in 0..3 {
            let status = client.delete(b"key").await;
            ended.push((status, client.is_refusal(status)));
        }
        let expected = [(Status::ServiceUnavailable, true), (Status::Timeout, false), (Status::Error, true)];
        assert_eq!(ended, expected, "{:?}", client.last_error());
        assert_eq!(serving.await.unwrap(), 4);
        // The server has closed the connection and no longer listens. Once the client notices this, it sends nothing.
        let mut ended = (Status::Ok, false);
        for _ in 0..2 {
            let status = client.delete(b"key").await;
            ended = (status, client.is_refusal(status));
        }
        assert_eq!(ended, (Status::ServiceUnavailable, true));
    });
}

#[test]
fn writes_on_broken_connections_are_in_doubt() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = Client::new(cluster(listener.local_addr().unwrap()));
        // The server reads the second EXECUTE but does not answer it.
        let serving = tokio::task::spawn_local(async move {
            let mut stream = listener.accept().await.unwrap().0;
            serve(&mut stream, &[error(0x2200)]).await;
            let mut header = [0; HEADER];
            stream.read_exact(&mut header).await.unwrap();
            header[4]
        });
        client.connect().await.unwrap();
        for expected in [(Status::BadRequest, true), (Status::ServiceUnavailable, false)] {
            let status = client.delete(b"key").await;
            assert_eq!((status, client.is_refusal(status)), expected, "{:?}", client.last_error());
        }
        assert_eq!(serving.await.unwrap(), opcode::EXECUTE);
    });
}
