//! Tests of the choice between several servers. The servers respond according to a script.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::super::layout::Layout;
use super::*;
use crate::options::Options;

/// A server, and the number of queries that it has answered.
struct Scripted {
    port: u16,
    queries: Arc<AtomicUsize>,
}

/// <https://www.postgresql.org/docs/current/protocol-message-formats.html>
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// Starts a server that accepts any login and answers `SHOW transaction_read_only`.
fn serve(read_only: &'static str) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let queries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&queries);
    thread::spawn(move || {
        let ready = message(b'Z', b"I");
        let column = [&1_u16.to_be_bytes()[..], b"c\0", &[0; 6], &25_u32.to_be_bytes(), &[255; 6], &[0; 2]].concat();
        let row = [&1_u16.to_be_bytes()[..], &(read_only.len() as u32).to_be_bytes(), read_only.as_bytes()].concat();
        let answer = [message(b'T', &column), message(b'D', &row), message(b'C', b"SHOW\0"), ready.clone()].concat();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4_096];
            // The first message, which has no type, starts the session.
            while let Ok(read @ 1..) = stream.read(&mut request) {
                let reply = match request[0] {
                    0 => [message(b'R', &[0; 4]), ready.clone()].concat(),
                    b'Q' => {
                        assert!(request[..read].ends_with(b"SHOW transaction_read_only\0"));
                        count.fetch_add(1, Ordering::Relaxed);
                        answer.clone()
                    }
                    _ => break,
                };
                stream.write_all(&reply).unwrap();
            }
        }
    });
    Scripted { port, queries }
}

/// Connects to the first server on these ports that has this role.
fn connect(ports: &[u16], role: &str) -> Result<(), Failure> {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let url = format!("jdbc:postgresql://{}/d?user=u&targetServerType={role}", hosts.join(","));
    let properties = [("db.url".to_owned(), url), ("postgres.connecttimeout".to_owned(), "300".to_owned())].into();
    let options = Options { properties, table: "usertable".to_owned(), ..Options::default() };
    let settings = Settings::read(Layout::Columns, &options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async { Link::open(&settings).await.map(drop) })
}

fn find_closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn first_server_with_the_role_is_used() {
    for (role, expected) in [("primary", [1, 1]), ("secondary", [1, 0]), ("any", [0, 0])] {
        let (standby, primary) = (serve("on"), serve("off"));
        connect(&[find_closed_port(), standby.port, primary.port], role).unwrap();
        let queries = [&standby, &primary].map(|server| server.queries.load(Ordering::Relaxed));
        assert_eq!(queries, expected, "{role}");
    }
}

#[test]
fn silent_server_is_passed_over() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let primary = serve("off");
    connect(&[silent.local_addr().unwrap().port(), primary.port], "primary").unwrap();
    assert_eq!(primary.queries.load(Ordering::Relaxed), 1);
}

#[test]
fn missing_role_is_an_error_of_each_server() {
    let (closed, standby) = (find_closed_port(), serve("on").port);
    let failure = connect(&[closed, standby], "primary").unwrap_err();
    assert_eq!(failure.connect, Some(ConnectError::ServerRole));
    for text in [format!("127.0.0.1:{closed}: "), format!("127.0.0.1:{standby}: "), "does not allow writes".to_owned()]
    {
        assert!(failure.message.contains(&text), "{failure}");
    }
    let failure = connect(&[serve("off").port], "secondary").unwrap_err();
    assert!(failure.message.contains("is not read only"), "{failure}");
}
