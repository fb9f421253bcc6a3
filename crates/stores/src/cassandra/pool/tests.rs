//! Tests with fake nodes. Nodes that encrypt connections have separate certificates.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::client::Client;
use super::super::records::tests::{PREPARED, cluster_of};
use super::super::wire::{HEADER, Head, Version, frame, opcode};
use super::*;
use crate::certificates::Authority;
use crate::tls::tests::{Files, acceptor, issue};

/// Answers STARTUP and PREPARE on a connection, and counts both.
async fn count_requests(mut socket: TcpStream, counts: Rc<[Cell<usize>; 2]>) -> std::io::Result<()> {
    loop {
        let mut header = [0; HEADER];
        socket.read_exact(&mut header).await?;
        let len = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        socket.read_exact(&mut vec![0; len as usize]).await?;
        let (count, opcode, body) = match header[4] {
            opcode::STARTUP => (&counts[0], opcode::READY, &[][..]),
            _ => (&counts[1], opcode::RESULT, PREPARED),
        };
        count.set(count.get() + 1);
        let mut out = Vec::new();
        let head = Head { flags: 0, stream: u16::from_be_bytes([header[2], header[3]]), opcode };
        frame(&mut out, Version::V4, head, |out| out.extend_from_slice(body));
        out[0] |= 0x80;
        socket.write_all(&out).await?;
    }
}

#[test]
fn many_connections_prepare_a_statement_once() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut cluster = cluster_of(&[listener.local_addr().unwrap()]);
        cluster.settings.per_client = true;
        let cluster = Arc::new(cluster);
        let counts = Rc::<[Cell<usize>; 2]>::default();
        let served = Rc::clone(&counts);
        tokio::task::spawn_local(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(count_requests(socket, Rc::clone(&served)));
            }
        });
        let connect = || {
            let mut client = Client::new(Arc::clone(&cluster));
            tokio::task::spawn_local(async move {
                client.register(std::iter::once("SELECT * FROM k.t WHERE y_id = ?"));
                client.open().await.map(|()| client)
            })
        };
        let connecting: Vec<_> = (0..3).map(|_| connect()).collect();
        let mut clients = Vec::new();
        for client in connecting {
            clients.push(client.await.unwrap().unwrap());
        }
        let requests = || counts.each_ref().map(Cell::get);
        assert_eq!(requests(), [3, 1]);
        // A node that was unreachable may have forgotten its statements.
        let node = Arc::clone(&cluster.topology.current().0.reach[0]);
        node.lose_connection(node.generation());
        for expected in [[4, 2], [5, 2]] {
            clients.push(connect().await.unwrap().unwrap());
            assert_eq!(requests(), expected);
        }
    });
}

/// Answers STARTUP on each connection. Without an acceptor, connections are not encrypted.
async fn serve(listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let acceptor = acceptor.clone();
        tokio::task::spawn_local(async move {
            match acceptor {
                None => log_in(socket).await,
                Some(acceptor) => match acceptor.accept(socket).await {
                    Ok(stream) => log_in(stream).await,
                    // The client has refused the certificate.
                    Err(_) => Ok(()),
                },
            }
        });
    }
}

async fn log_in(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).await?;
    let mut out = Vec::new();
    let head = Head { flags: 0, stream: u16::from_be_bytes([header[2], header[3]]), opcode: opcode::READY };
    frame(&mut out, Version::V4, head, |_| ());
    out[0] |= 0x80;
    stream.write_all(&out).await?;
    stream.flush().await?;
    // Wait until the client closes the connection.
    stream.read_to_end(&mut Vec::new()).await.map(drop)
}

/// Opens a pool of connections to two nodes, of which the second has this acceptor.
fn open(authority: &Authority, second: Option<TlsAcceptor>) -> Result<(), EngineError> {
    let (files, first) = (Files::new(), acceptor(&issue(authority, &["127.0.0.1"]), None));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut addresses = Vec::new();
        for acceptor in [Some(first), second] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push(listener.local_addr().unwrap());
            tokio::task::spawn_local(serve(listener, acceptor));
        }
        let mut cluster = cluster_of(&addresses);
        cluster.settings.tls = Some(files.trust_authority(authority));
        let pool = Pool::find(&Arc::new(cluster));
        let opened = pool.open().await;
        if opened.is_ok() {
            assert!(pool.lines().all.iter().all(|line| line.live().is_some()));
        }
        opened.map_err(|error| {
            let (message, second) = (error.message.clone(), addresses[1].to_string());
            assert!(message.contains(&second) && !message.contains('\n') && error.hint.is_some(), "{error}");
            EngineError::failed(message.replace(&second, "NODE")).hint(error.hint.unwrap_or_default())
        })
    })
}

#[test]
fn every_node_is_encrypted_and_verified() {
    let authority = Authority::new("CA").unwrap();
    open(&authority, Some(acceptor(&issue(&authority, &["127.0.0.1"]), None))).unwrap();
}

#[test]
fn one_untrusted_node_is_refused() {
    let (authority, other) = (Authority::new("CA").unwrap(), Authority::new("CA").unwrap());
    let expired = authority.issue("server", &["127.0.0.1".to_owned()], 2020).unwrap();
    for (second, message, hint) in [
        (Some(issue(&other, &["127.0.0.1"])), "the certificate of NODE is not signed by the CA", "cassandra.tls.ca"),
        (
            Some(issue(&authority, &["db2"])),
            "the certificate of NODE is for db2, not for 127.0.0.1",
            "cassandra.tls.name",
        ),
        (Some(expired), "the certificate of NODE expired ", "renew the certificate"),
        (None, "NODE does not respond with TLS", "omit cassandra.useSSL=true"),
    ] {
        let error = open(&authority, second.map(|pair| acceptor(&pair, None))).unwrap_err();
        assert!(error.message.starts_with(message), "{error}");
        assert!(error.hint.as_ref().is_some_and(|text| text.contains(hint)), "{error}");
    }
}

#[test]
fn a_node_that_closes_connections_is_down() {
    let (authority, files) = (Authority::new("CA").unwrap(), Files::new());
    for encrypted in [false, true] {
        let first = encrypted.then(|| acceptor(&issue(&authority, &["127.0.0.1"]), None));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let up = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let down = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut cluster = cluster_of(&[up.local_addr().unwrap(), down.local_addr().unwrap()]);
            cluster.settings.tls = encrypted.then(|| files.trust_authority(&authority));
            tokio::task::spawn_local(serve(up, first));
            tokio::task::spawn_local(async move {
                while let Ok((mut socket, _)) = down.accept().await {
                    // Unread bytes would make the kernel reset the connection.
                    let _ = socket.read(&mut [0; 4_096]).await;
                }
            });
            let pool = Pool::find(&Arc::new(cluster));
            pool.open().await.unwrap();
            assert_eq!(pool.lines().all.iter().filter(|line| line.live().is_some()).count(), 1, "{encrypted}");
        });
    }
}
