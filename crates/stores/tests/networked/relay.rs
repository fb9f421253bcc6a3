//! A relay between a store and its server, which breaks connections and delays answers on command.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A relay. Its threads end when the test's process ends.
pub struct Relay {
    pub address: SocketAddr,
    links: Arc<Mutex<Vec<TcpStream>>>,
    holds: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay to a server.
    pub fn to(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (links, holds) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (own, own_holds) = (Arc::clone(&links), Arc::clone(&holds));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.expect("a client");
                let server = TcpStream::connect(&server).expect("the server");
                let (to_server, to_client) = (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
                own.lock().expect("no panic").push(client.try_clone().expect("a copy"));
                let own_holds = Arc::clone(&own_holds);
                std::thread::spawn(move || pump_bytes(client, to_server, &AtomicBool::new(false)));
                std::thread::spawn(move || pump_bytes(server, to_client, &own_holds));
            }
        });
        Self { address, links, holds }
    }

    /// Breaks every connection.
    pub fn cut_connections(&self) {
        for link in self.links.lock().expect("no panic").drain(..) {
            let _ = link.shutdown(Shutdown::Both);
        }
    }

    /// Starts or stops delaying answers.
    pub fn hold_bytes(&self, holds: bool) {
        self.holds.store(holds, Ordering::SeqCst);
    }
}

fn pump_bytes(mut from: TcpStream, mut to: TcpStream, holds: &AtomicBool) {
    let mut bytes = [0; 16 << 10];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        while holds.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if to.write_all(&bytes[..len]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
