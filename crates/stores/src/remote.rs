//! Code shared by the stores that reach a server by host and port.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::time::Duration;

use loadstone_load::Status;

use crate::error::{ConnectError, EngineError, Failure};
use crate::options::Options;
use crate::reconnect::FAILURE_PAUSE;

/// A server's host and port as the user wrote them, and the server's addresses. Names are resolved only once, when a
/// store is opened, because a client that reconnects must not wait for a name server.
#[derive(Clone, Debug)]
pub struct Server {
    host: String,
    port: u16,
    addresses: Vec<SocketAddr>,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Server {
    /// Resolves the host name. `property` is the property that contains the name.
    pub fn find(host: &str, port: u16, property: &str) -> Result<Self, EngineError> {
        let mut server = Self { host: host.to_owned(), port, addresses: Vec::new() };
        match (host, port).to_socket_addrs() {
            Ok(found) => server.addresses.extend(found),
            Err(error) => return Err(server.unknown(&error.to_string(), property)),
        }
        if server.addresses.is_empty() {
            return Err(server.unknown("it has no address", property));
        }
        Ok(server)
    }

    fn unknown(&self, why: &str, property: &str) -> EngineError {
        EngineError::failed(format!("cannot find the host of {self}: {why}")).hint(format!("check {property}"))
    }

    /// The host as the user wrote it.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port as the user wrote it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the user named the server by this host and port.
    pub fn is_at(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// The server's addresses, in the order in which they are tried.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// The failure for an unsuccessful attempt to connect.
pub fn unreachable(server: &Server, error: &std::io::Error) -> Failure {
    let why = ConnectError::from_io(error);
    let status = match why {
        ConnectError::FilesExhausted | ConnectError::PortsExhausted => Status::Error,
        _ if error.kind() == std::io::ErrorKind::TimedOut => Status::Timeout,
        _ => Status::ServiceUnavailable,
    };
    Failure::new(status, format!("cannot connect to {server}: {error}")).connecting(why)
}

/// How to start a system on this machine, on the requested port.
pub fn start_hint(system: &str, port: u16, default: u16) -> String {
    let set = if port == default { String::new() } else { format!(" --set port={port}") };
    format!("start it (`loadstone systems up {system}{set}`)")
}

/// The hint for a connection failure; `start` explains how to start the server.
pub fn connect_hint(failure: &Failure, start: &str) -> String {
    match failure.connect {
        Some(ConnectError::FilesExhausted) => "raise the limit with ulimit -n: each client has a connection".to_owned(),
        Some(ConnectError::PortsExhausted) => {
            "no local port is left: widen net.ipv4.ip_local_port_range, or use fewer clients".to_owned()
        }
        _ => start.to_owned(),
    }
}

/// The methods of a session's `Connection` that its [`LastFailure`] implements.
macro_rules! answer_by_last_failure {
    ($($field:ident).+) => {
        async fn pause(&mut self) {
            self.$($field).+.pause().await;
        }

        fn is_unsent(&self) -> bool {
            self.$($field).+.is_unsent()
        }

        fn last_error(&mut self) -> Option<String> {
            self.$($field).+.message()
        }

        fn is_refusal(&self, status: loadstone_load::Status) -> bool {
            self.$($field).+.is_refusal(status)
        }
    };
}
pub(crate) use answer_by_last_failure;

/// A session's last failure: its message for `last_error`, whether it was a refusal, and whether the session pauses
/// before the next operation. The pause is needed after a failed attempt to connect, because the next operation would
/// fail just as fast.
#[derive(Debug, Default)]
pub struct LastFailure {
    message: Option<String>,
    rests: bool,
    refused: bool,
    unsent: bool,
}

impl LastFailure {
    /// Returns the status of an operation, and stores a failure.
    #[inline]
    pub fn status(&mut self, result: Result<Status, Failure>) -> Status {
        result.unwrap_or_else(|failure| {
            self.rests = match failure.status {
                Status::ServiceUnavailable => true,
                Status::Error => failure.connect.is_some(),
                _ => false,
            };
            self.refused = failure.refused;
            self.unsent = failure.connect.is_some();
            self.message = Some(failure.message);
            failure.status
        })
    }

    /// Pauses once, if the last failure requires it.
    pub async fn pause(&mut self) {
        if std::mem::take(&mut self.rests) {
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
    }

    /// Whether the last operation that failed had sent nothing.
    pub fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// The session's result for `is_refusal`. A write that found no record to change has written nothing.
    pub fn is_refusal(&self, status: Status) -> bool {
        status == Status::NotFound || self.refused
    }

    /// The message of the failure, which is returned only once.
    pub fn message(&mut self) -> Option<String> {
        self.message.take()
    }
}

/// Whether the peer has neither closed the connection nor sent anything.
pub fn is_open(stream: &impl AsRawFd) -> bool {
    let mut byte = 0u8;
    // SAFETY: the descriptor is open, and the buffer has room for one byte.
    let read =
        unsafe { libc::recv(stream.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT) };
    read < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock
}

/// Whether the peer has closed the connection, possibly after bytes that have not been read.
pub fn is_ended(stream: &impl AsRawFd) -> bool {
    let mut event = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the call receives a single entry with an open descriptor.
    let ready = unsafe { libc::poll(&raw mut event, 1, 0) };
    ready != 0
}

/// Queries a server while its store is being opened, outside any executor.
pub fn asking<T>(question: impl Future<Output = Result<T, EngineError>>) -> Result<T, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| EngineError::failed(format!("cannot start an executor: {error}")))?;
    tokio::task::LocalSet::new().block_on(&runtime, question)
}

/// A time limit in milliseconds. It must be above 0, because every wait needs a limit.
pub fn milliseconds(options: &Options, name: &str, default: u64) -> Result<Duration, EngineError> {
    let Some(text) = options.get(name) else { return Ok(Duration::from_millis(default)) };
    match text.parse() {
        Ok(ms @ 1..=86_400_000) => Ok(Duration::from_millis(ms)),
        _ => Err(EngineError::usage(format!("{name} must be milliseconds from 1 to 86400000, got \"{text}\""))
            .hint(format!("the default is {default}; every wait must have a limit"))),
    }
}

/// The value of a property that must be true or false.
pub fn boolean(options: &Options, name: &str, default: bool) -> Result<bool, EngineError> {
    match options.get(name).map(str::to_ascii_lowercase).as_deref() {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(EngineError::usage(format!("{name} must be true or false, got \"{other}\""))
            .hint(format!("the default is {default}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[test]
    fn servers_are_named_as_the_user_named_them() {
        let server = Server::find("127.0.0.1", 6379, "redis.host").unwrap();
        assert_eq!((server.to_string().as_str(), server.addresses().len()), ("127.0.0.1:6379", 1));
        assert_eq!(Server::find("::1", 1, "redis.host").unwrap().to_string(), "[::1]:1");
        let error = Server::find("no-such-host.invalid", 6379, "redis.host").unwrap_err();
        assert!(error.message.starts_with("cannot find the host of no-such-host.invalid:6379: "), "{error}");
        assert_eq!(error.hint.unwrap(), "check redis.host");
    }

    #[test]
    fn start_hint_names_the_requested_port() {
        assert_eq!(start_hint("redis", 6379, 6379), "start it (`loadstone systems up redis`)");
        assert_eq!(start_hint("redis", 6399, 6379), "start it (`loadstone systems up redis --set port=6399`)");
    }

    #[test]
    fn failures_to_connect_have_their_status() {
        let server = Server::find("127.0.0.1", 1, "redis.host").unwrap();
        for (number, status) in [
            (libc::ECONNREFUSED, Status::ServiceUnavailable),
            (libc::EHOSTUNREACH, Status::ServiceUnavailable),
            (libc::ETIMEDOUT, Status::Timeout),
            (libc::EMFILE, Status::Error),
        ] {
            let failure = unreachable(&server, &std::io::Error::from_raw_os_error(number));
            assert_eq!(failure.status, status, "{failure}");
            assert!(failure.message.contains("127.0.0.1:1: "), "{failure}");
        }
    }

    #[test]
    fn failed_connection_is_followed_by_one_pause() {
        let server = Server::find("127.0.0.1", 1, "redis.host").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let waits = |last: &mut LastFailure| {
            runtime.block_on(async {
                let mut resting = std::pin::pin!(last.pause());
                std::future::poll_fn(|context| Poll::Ready(resting.as_mut().poll(context).is_pending())).await
            })
        };
        let after = |failure: Failure| {
            let (mut last, status, message) = (LastFailure::default(), failure.status, failure.message.clone());
            assert_eq!((last.status(Err(failure)), last.message(), last.message()), (status, Some(message), None));
            last
        };
        let no_server = |number| after(unreachable(&server, &std::io::Error::from_raw_os_error(number)));
        for number in [libc::ECONNREFUSED, libc::EMFILE, libc::EADDRNOTAVAIL] {
            let mut last = no_server(number);
            assert_eq!((waits(&mut last), waits(&mut last)), (true, false), "{number}");
        }
        assert!(!waits(&mut no_server(libc::ETIMEDOUT)), "it took long");
        let answer = Failure::new(Status::Error, "redis answers: ERR");
        assert!(!waits(&mut after(answer)), "an answer took a round trip");
    }

    #[test]
    fn a_refusal_is_that_of_the_last_failure() {
        let mut last = LastFailure::default();
        let failure = || Failure::new(Status::Error, "message");
        for (failure, refused) in
            [(failure(), false), (failure().refusal(), true), (failure().refusal().mark_unresolved(), false)]
        {
            let status = last.status(Err(failure));
            assert_eq!((status, last.is_refusal(status)), (Status::Error, refused));
        }
        let status = last.status(Ok(Status::NotFound));
        assert!(last.is_refusal(status), "there was nothing to update");
    }

    #[test]
    fn limits_and_switches_are_checked() {
        let with =
            |value: &str| Options { properties: [("x".to_owned(), value.to_owned())].into(), ..Options::default() };
        assert_eq!(milliseconds(&with(" 20 "), "x", 1), Ok(Duration::from_millis(20)));
        assert_eq!(milliseconds(&with(""), "x", 7), Ok(Duration::from_millis(7)));
        for bad in ["0", "-1", "2s", "1.5", "86400001"] {
            assert!(milliseconds(&with(bad), "x", 1).unwrap_err().is_usage(), "{bad}");
        }
        assert_eq!((boolean(&with("TRUE"), "x", false), boolean(&with(" "), "x", true)), (Ok(true), Ok(true)));
        assert!(boolean(&with("yes"), "x", true).unwrap_err().is_usage());
    }
}
