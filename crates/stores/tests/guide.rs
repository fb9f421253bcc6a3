//! The guide to writing a store links to two examples, which must compile and work.

#[allow(dead_code, reason = "its main")]
#[path = "../examples/embedded.rs"]
mod embedded;
#[allow(dead_code, reason = "its main")]
#[path = "../examples/networked.rs"]
mod networked;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::{Connection, Durability, Options, Rows, Session, Store};

fn row(fields: &[(&str, &str)]) -> Row {
    let mut row = Row::default();
    for (name, value) in fields {
        row.push_field(name.as_bytes(), value.as_bytes());
    }
    row
}

#[test]
fn the_guide_links_to_the_examples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/guides/writing-a-store.md")).unwrap();
    for example in ["embedded", "networked"] {
        assert!(guide.contains(&format!("](../../crates/stores/examples/{example}.rs)")), "{example}");
    }
}

/// The requirements that both examples must meet.
async fn check_session<S: Session>(session: &mut S, scans: bool) {
    let mut read = Row::default();
    assert_eq!(session.read(b"user1", Projection::All, &mut read).await, Status::NotFound);
    assert_eq!(session.update(b"user1", &row(&[("a", "1")])).await, Status::NotFound);
    assert_eq!(session.insert(b"user1", &row(&[("a", "1"), ("b", "line\r\nline")])).await, Status::Ok);
    assert_eq!(session.update(b"user1", &row(&[("a", "changed")])).await, Status::Ok);
    assert_eq!(session.read(b"user1", Projection::All, &mut read).await, Status::Ok);
    assert_eq!(read, row(&[("a", "changed"), ("b", "line\r\nline")]));
    assert_eq!(session.read(b"user1", Projection::One(b"a"), &mut read).await, Status::Ok);
    assert_eq!(read, row(&[("a", "changed")]));
    let mut rows = Rows::default();
    let scanned = session.scan(b"u", 10, Projection::All, &mut rows).await;
    assert_eq!((scanned, rows.len()), if scans { (Status::Ok, 1) } else { (Status::NotImplemented, 0) });
    assert_eq!(session.delete(b"user1").await, Status::Ok);
    assert_eq!(session.delete(b"user1").await, Status::Ok);
    assert_eq!(session.read(b"user1", Projection::All, &mut read).await, Status::NotFound);
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    runtime.expect("an executor").block_on(test);
}

#[test]
fn the_embedded_example_works() {
    let store = embedded::Memory::open(&Options { create: true, ..Options::default() }).unwrap();
    let mut session = store.session().unwrap();
    run(check_session(&mut session, true));
    drop(session);
    assert_eq!(store.guarantee().durability, Durability::None);
    store.close().unwrap();
    assert!(embedded::Memory::open(&Options::default()).unwrap_err().hint.is_some());
}

#[test]
fn the_networked_example_works() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let serving = std::thread::spawn(move || serve(&server.accept().unwrap().0));
    let properties = [("memcached.address".to_owned(), address)].into();
    let store = networked::Memcached::open(&Options { properties, ..Options::default() }).unwrap();
    run(async {
        let mut session = store.session().unwrap();
        session.connect().await.unwrap();
        check_session(&mut session, false).await;
        assert_eq!(session.insert(b"quit", &row(&[])).await, Status::Error);
        assert_eq!(session.last_error().as_deref(), Some("memcached answers: SERVER_ERROR bye"));
        serving.join().unwrap();
        // The server has exited: every request must return a status, and none may panic.
        let mut read = Row::default();
        assert_eq!(session.read(b"user1", Projection::All, &mut read).await, Status::ServiceUnavailable);
        assert_eq!(session.delete(b"user1").await, Status::ServiceUnavailable);
        assert!(session.last_error().is_some());
        assert!(store.session().unwrap().connect().await.unwrap_err().hint.is_some());
    });
}

/// Serves one connection with the part of memcached that the example needs. Setting the key `quit` stops the server.
fn serve(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut table: HashMap<String, Vec<u8>> = HashMap::new();
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|len| len > 0) {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let answer = match arguments[..] {
            ["set", key, "0", "0", len] => {
                let mut value = vec![0; len.parse::<usize>().expect("a length") + 2];
                reader.read_exact(&mut value).expect("a value");
                assert!(value.ends_with(b"\r\n"));
                value.truncate(value.len() - 2);
                table.insert(key.to_owned(), value);
                if key == "quit" { b"SERVER_ERROR bye\r\n".to_vec() } else { b"STORED\r\n".to_vec() }
            }
            ["get", key] => table.get(key).map_or(b"END\r\n".to_vec(), |value| {
                let head = format!("VALUE {key} 0 {}\r\n", value.len());
                [head.as_bytes(), value, b"\r\nEND\r\n"].concat()
            }),
            ["delete", key] if table.remove(key).is_some() => b"DELETED\r\n".to_vec(),
            ["delete", _] => b"NOT_FOUND\r\n".to_vec(),
            _ => panic!("{line}"),
        };
        let mut writer = stream;
        writer.write_all(&answer).expect("a client");
        if answer.starts_with(b"SERVER_ERROR") {
            return;
        }
        line.clear();
    }
}
