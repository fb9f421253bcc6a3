//! Tests that a write counts as refused only if nothing was written, with a scripted server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::*;
use crate::options::Options;
use crate::session::Connection as _;

const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
const DONE: &str = ":1\r\n";

/// A server that answers each request with the next of these answers, and then closes the connection.
fn server(answers: &'static [&'static str]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The buffer is far longer than any request here.
        let mut request = [0; 4096];
        for answer in answers {
            let read = stream.read(&mut request).unwrap();
            assert!(read > 0, "the client closed the connection");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    port
}

/// The outcome of an operation on a server that sends these answers, and whether it is a refusal.
fn end_operation(
    pipeline: bool,
    answers: &'static [&'static str],
    write: &impl AsyncFn(&mut RedisSession) -> Status,
) -> (Status, bool) {
    let properties = [("redis.port", server(answers).to_string()), ("redis.pipeline", pipeline.to_string())];
    let properties = properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let settings = Settings::read(&Options { properties, ..Options::default() }).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let settings = Arc::new(settings);
        let mut session = RedisSession::new(Cluster::new(&settings, &[]).unwrap(), &settings);
        let status = write(&mut session).await;
        (status, session.is_refusal(status))
    })
}

fn row() -> Row {
    let mut row = Row::default();
    row.push_field(b"field0", b"value");
    row
}

async fn insert(session: &mut RedisSession) -> Status {
    session.insert(b"key", &row()).await
}

async fn update(session: &mut RedisSession) -> Status {
    session.update(b"key", &row()).await
}

async fn delete(session: &mut RedisSession) -> Status {
    session.delete(b"key").await
}

#[test]
fn refused_update_was_not_executed() {
    assert_eq!(end_operation(false, &[OOM], &update), (Status::NoSpace, true));
    assert_eq!(end_operation(false, &["-ERR scripted\r\n"], &update), (Status::Error, false));
    assert_eq!(end_operation(false, &[""], &update), (Status::ServiceUnavailable, false), "it was sent");
    assert_eq!(end_operation(false, &["-OO"], &update), (Status::ServiceUnavailable, false), "half an answer");
}

#[test]
fn partial_insert_or_delete_is_no_refusal() {
    for (first, write) in [("+OK\r\n", true), (DONE, false)] {
        let both = async |session: &mut RedisSession| {
            if write { insert(session).await } else { delete(session).await }
        };
        let answers: &'static [&'static str] = Box::leak(Box::new([first, OOM]));
        assert_eq!(end_operation(false, &[OOM], &both), (Status::NoSpace, true), "the second command is not sent");
        assert_eq!(end_operation(false, answers, &both), (Status::NoSpace, false), "the first command was executed");
        let together: &'static str = Box::leak(answers.concat().into_boxed_str());
        assert_eq!(end_operation(true, Box::leak(Box::new([together])), &both), (Status::NoSpace, false));
    }
    assert_eq!(end_operation(true, &["-OOM a\r\n-OOM b\r\n"], &insert), (Status::NoSpace, true), "both were refused");
    assert_eq!(end_operation(true, &["-OOM a\r\n-OOM b\r\n"], &delete), (Status::NoSpace, true));
    assert_eq!(end_operation(true, &["-OOM a\r\n:1\r\n"], &insert), (Status::NoSpace, false), "the index was written");
}

#[test]
fn what_was_never_sent_was_not_done() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let options = Options { properties: [("redis.port".to_owned(), port.to_string())].into(), ..Options::default() };
    let settings = Arc::new(Settings::read(&options).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let mut session = RedisSession::new(Cluster::new(&settings, &[]).unwrap(), &settings);
    let status = tokio::task::LocalSet::new().block_on(&runtime, insert(&mut session));
    assert_eq!((status, session.is_refusal(status)), (Status::ServiceUnavailable, true));
    // The record has been written, but there is no connection for the second command.
    let closing = end_operation(false, &["+OK\r\n"], &insert);
    assert_eq!(closing, (Status::ServiceUnavailable, false));
}
