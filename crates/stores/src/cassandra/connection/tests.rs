//! Tests with a fake server. Each test determines the server's answers and their timing.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use super::super::wire::{Version, opcode};
use super::*;
use crate::certificates::Authority;
use crate::tls::tests::{Files, acceptor, issue};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// The server's end of the connection.
struct Server(Box<dyn Duplex>);

impl Server {
    /// The next request that is not a probe: its stream and body.
    async fn request(&mut self) -> (u16, Vec<u8>) {
        loop {
            let (code, stream, body) = self.any_request().await;
            if code != opcode::OPTIONS {
                return (stream, body);
            }
            self.answer(stream, &[]).await;
        }
    }

    async fn any_request(&mut self) -> (u8, u16, Vec<u8>) {
        let mut header = [0; HEADER];
        self.0.read_exact(&mut header).await.unwrap();
        let len = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let mut body = vec![0; len as usize];
        self.0.read_exact(&mut body).await.unwrap();
        (header[4], u16::from_be_bytes([header[2], header[3]]), body)
    }

    async fn answer(&mut self, stream: u16, body: &[u8]) {
        let mut out = Vec::new();
        let head = Head { flags: 0, stream, opcode: opcode::RESULT };
        frame(&mut out, Version::V4, head, |out| out.extend_from_slice(body));
        out[0] |= 0x80;
        self.0.write_all(&out).await.unwrap();
        self.0.flush().await.unwrap();
    }
}

fn run_on_executor(test: impl AsyncFnOnce(Connection, Server)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (connection, accepted) = both(Connection::open(address, Version::V4, 64, None), listener.accept()).await;
        test(connection.unwrap(), Server(Box::new(accepted.unwrap().0))).await;
    });
}

/// Runs both futures to completion.
async fn both<A: Future, B: Future>(left: A, right: B) -> (A::Output, B::Output) {
    let (mut left, mut right) = (pin!(left), pin!(right));
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(output) = left.as_mut().poll(context)
        {
            first = Some(output);
        }
        if second.is_none()
            && let Poll::Ready(output) = right.as_mut().poll(context)
        {
            second = Some(output);
        }
        match (first.take(), second.take()) {
            (Some(left), Some(right)) => Poll::Ready((left, right)),
            (left, right) => {
                (first, second) = (left, right);
                Poll::Pending
            }
        }
    })
    .await
}

/// Sends a request with this body and returns the body of the answer.
async fn ask(connection: &Connection, body: &[u8]) -> Result<Vec<u8>, Failure> {
    let slot = Rc::new(Slot::default());
    connection.ask(&slot, 0, opcode::QUERY, |out| out.extend_from_slice(body)).await?;
    Ok(slot.bytes().clone())
}

#[test]
fn answers_belong_to_their_requests_in_any_order() {
    run_on_executor(async |connection, mut server| {
        let serve = async {
            let (first, second) = (server.request().await, server.request().await);
            server.answer(second.0, &second.1).await;
            server.answer(first.0, &first.1).await;
        };
        let requests = both(ask(&connection, b"one"), ask(&connection, b"two"));
        let ((left, right), ()) = both(requests, serve).await;
        assert_eq!((left.unwrap(), right.unwrap()), (b"one".to_vec(), b"two".to_vec()));
    });
}

async fn echo_large_body(connection: &Connection, server: &mut Server) {
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let serve = async {
        let (stream, body) = server.request().await;
        server.answer(stream, &body).await;
    };
    let (answer, ()) = both(ask(connection, &large), serve).await;
    assert!(answer.unwrap() == large);
}

#[test]
fn large_requests_and_answers_are_whole() {
    run_on_executor(async |connection, mut server| echo_large_body(&connection, &mut server).await);
}

#[test]
fn encrypted_requests_and_answers_are_whole() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    let (tls, acceptor) = (files.trust_authority(&authority), acceptor(&issue(&authority, &["127.0.0.1"]), None));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accept = async { acceptor.accept(listener.accept().await.unwrap().0).await.unwrap() };
        let (connection, accepted) = both(Connection::open(address, Version::V4, 64, Some(&tls)), accept).await;
        let (connection, mut server) = (connection.unwrap(), Server(Box::new(accepted)));
        assert!(connection.encryption().unwrap().starts_with("TLS 1.3"));
        for _ in 0..3 {
            echo_large_body(&connection, &mut server).await;
            let (answer, ()) = both(ask(&connection, b"small"), async {
                let (stream, body) = server.request().await;
                server.answer(stream, &body).await;
            })
            .await;
            assert_eq!(answer.unwrap(), b"small");
        }
    });
}

#[test]
fn the_answer_to_an_abandoned_request_is_dropped() {
    run_on_executor(async |connection, mut server| {
        let late = async {
            let stream = server.request().await.0;
            (0..SWEEPS).for_each(|_| connection.sweep(Duration::from_secs(12)));
            connection.sweep(Duration::from_secs(12));
            stream
        };
        let (failed, late) = both(ask(&connection, b"slow"), late).await;
        assert_eq!(failed.unwrap_err().status, Status::Timeout);
        // The client sends another request, and the late answer arrives before this request's answer.
        let serve = async {
            let next = server.request().await;
            assert_ne!(next.0, late, "the stream is still in use");
            server.answer(late, b"late").await;
            server.answer(next.0, &next.1).await;
            let again = server.request().await;
            assert!(again.0 <= late.max(next.0) + 1, "streams are reused, including the probe's stream");
            server.answer(again.0, &again.1).await;
        };
        let ask_twice = async { (ask(&connection, b"next").await, ask(&connection, b"again").await) };
        let (answers, ()) = both(ask_twice, serve).await;
        assert_eq!((answers.0.unwrap(), answers.1.unwrap()), (b"next".to_vec(), b"again".to_vec()));
    });
}

#[test]
fn requests_under_way_fail_with_their_connection() {
    run_on_executor(async |connection, mut server| {
        let close = async {
            server.request().await;
            drop(server);
        };
        let (failed, ()) = both(ask(&connection, b"lost"), close).await;
        let failure = failed.unwrap_err();
        assert_eq!(failure.status, Status::ServiceUnavailable);
        assert!(failure.message.contains(&connection.address().to_string()), "{failure}");
        assert!(!connection.is_open());
        assert_eq!(ask(&connection, b"next").await.unwrap_err().status, Status::ServiceUnavailable);
    });
}

#[test]
fn an_invalid_answer_ends_the_connection() {
    run_on_executor(async |connection, mut server| {
        let nonsense = async {
            server.request().await;
            server.0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        };
        let (failed, ()) = both(ask(&connection, b"hello"), nonsense).await;
        let failure = failed.unwrap_err();
        assert_eq!(failure.status, Status::ServiceUnavailable);
        assert!(failure.message.contains("version 72"), "{failure}");
    });
}

#[test]
fn a_silent_connection_is_probed_until_it_answers() {
    run_on_executor(async |connection, mut server| {
        let states = record_usage(&connection);
        let sweep = || connection.sweep(Duration::from_secs(12));
        let serve = async {
            server.request().await;
            (0..SWEEPS).for_each(|_| sweep());
            assert!(connection.admit(), "the timeout has not expired");
            sweep();
            assert!(!connection.admit() && connection.is_open());
            // Only one probe is sent at a time.
            (0..SWEEPS / 2).for_each(|_| sweep());
            let (code, stream, _) = server.any_request().await;
            assert_eq!(code, opcode::OPTIONS);
            server.answer(stream, &[]).await;
        };
        let (failed, ()) = both(ask(&connection, b"anybody?"), serve).await;
        assert_eq!(failed.unwrap_err().status, Status::Timeout);
        let next = async {
            let (stream, body) = server.request().await;
            server.answer(stream, &body).await;
        };
        let (answer, ()) = both(ask(&connection, b"next"), next).await;
        assert_eq!(answer.unwrap(), b"next");
        assert!(connection.admit());
        assert_eq!(*states.borrow(), [true, false, true]);
        drop(server);
        connection.wait_for_loss().await;
        assert_eq!(*states.borrow(), [true, false, true, false]);
    });
}

/// The states that a connection reports.
fn record_usage(connection: &Connection) -> Rc<RefCell<Vec<bool>>> {
    let states = Rc::new(RefCell::new(Vec::new()));
    let own = Rc::clone(&states);
    connection.track(Box::new(move |_, is_usable| own.borrow_mut().push(is_usable)));
    states
}

#[test]
fn closed_connection_does_not_become_unusable() {
    run_on_executor(async |connection, _server| {
        let states = record_usage(&connection);
        drop(connection);
        tokio::task::yield_now().await;
        assert_eq!(*states.borrow(), [true]);
    });
}

#[test]
fn one_late_answer_is_no_silence() {
    run_on_executor(async |connection, mut server| {
        let serve = async {
            let slow = server.request().await;
            for _ in 0..=SWEEPS {
                let (stream, body) = server.request().await;
                server.answer(stream, &body).await;
            }
            slow
        };
        let quick = async {
            for _ in 0..=SWEEPS {
                assert_eq!(ask(&connection, b"quick").await.unwrap(), b"quick");
                connection.sweep(Duration::from_secs(12));
            }
        };
        let ((failed, ()), _) = both(both(ask(&connection, b"slow"), quick), serve).await;
        assert_eq!(failed.unwrap_err().status, Status::Timeout);
        assert!(connection.admit());
    });
}

#[test]
fn a_silent_connection_is_given_up() {
    run_on_executor(async |connection, mut server| {
        let silence = async {
            server.request().await;
            (0..=SWEEPS).for_each(|_| connection.sweep(Duration::from_secs(12)));
            assert!(connection.is_open(), "one late answer does not close the connection");
            (0..=2 * SWEEPS).for_each(|_| connection.sweep(Duration::from_secs(12)));
            assert!(!connection.is_open());
        };
        let (failed, ()) = both(ask(&connection, b"anybody?"), silence).await;
        assert_eq!(failed.unwrap_err().status, Status::Timeout);
    });
}

#[test]
fn server_without_executions_gets_single_requests() {
    run_on_executor(async |connection, mut server| {
        let sweep = |times: u32| (0..times).for_each(|_| connection.sweep(Duration::from_secs(12)));
        for round in 0..3 {
            let serve = async {
                let (lost, _) = server.request().await;
                sweep(SWEEPS + 1);
                assert!(!connection.admit(), "round {round}");
                let (code, probe, _) = server.any_request().await;
                assert_eq!(code, opcode::OPTIONS);
                server.answer(probe, &[]).await;
                lost
            };
            let (failed, lost) = both(ask(&connection, b"anybody?"), serve).await;
            assert_eq!(failed.unwrap_err().status, Status::Timeout);
            while !connection.admit() {
                tokio::task::yield_now().await;
            }
            assert!(!connection.admit(), "one request decides, in round {round}");
            if round == 2 {
                // An answer to any request of a client ends the silence, even if the answer is late.
                server.answer(lost, &[]).await;
                while !connection.admit() {
                    tokio::task::yield_now().await;
                }
                assert!(connection.admit() && connection.admit());
            }
        }
    });
}
