//! The error of an operation ([`Failure`]), and any other error ([`EngineError`]).

use loadstone_load::{Refusal, Status};
use thiserror::Error;

/// An error to be shown to the user: `message` states the error and where it occurred; `hint` gives the next step.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct EngineError {
    /// One line, without a full stop.
    pub message: String,
    /// One line.
    pub hint: Option<String>,
    /// The type of the error.
    pub kind: ErrorKind,
}

/// The type of an error, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The command is right, but something else failed.
    Failed = 1,
    /// The command is wrong.
    Usage = 2,
    /// A check could not read all of its input.
    Unread = 3,
}

impl EngineError {
    /// An error that is not due to the command.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, kind: ErrorKind::Failed }
    }

    /// An error in the command.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, ..Self::failed(message) }
    }

    /// Adds a next step to the error.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the command is wrong.
    pub fn is_usage(&self) -> bool {
        self.kind == ErrorKind::Usage
    }

    /// The exit code of the process.
    pub fn exit(&self) -> u8 {
        self.kind as u8
    }
}

/// The message and the hint name the fields of a spec by their paths.
impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { message, hint } = refusal.rename_fields(str::to_owned);
        Self::usage(message).hint(hint)
    }
}

/// The operating system's messages for a full device.
pub const FULL_DEVICE: [&str; 2] = ["No space left on device", "Disk quota exceeded"];

/// An operation that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {message}", status.name())]
pub struct Failure {
    /// The status under which the operation is counted.
    pub status: Status,
    /// One line: the store's own message, or a description of the connection fault.
    pub message: String,
    /// For a write: whether it was certainly refused, so that nothing was or will be written.
    pub refused: bool,
    /// If the operation failed because the client could not connect: the reason for this.
    pub connect: Option<ConnectError>,
}

/// The reason why a client could not connect to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// This process cannot open any more files.
    FilesExhausted,
    /// This host has no free local port.
    PortsExhausted,
    /// The server has reached its maximum number of clients.
    ClientsExhausted,
    /// The server has no database with this name.
    NoDatabase,
    /// The server requires a password, but none is set.
    NoPassword,
    /// The server is a standby although a primary is requested, or a primary although a standby is requested.
    ServerRole,
    /// The connection cannot be encrypted, or the server requires encryption.
    Tls(TlsFault),
    /// The server does not answer, or another error occurred.
    Other,
}

/// The reason why an encrypted connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFault {
    /// The server's certificate is not signed by the CA.
    Issuer,
    /// The certificate is for a different name.
    Name,
    /// The certificate has expired, or is not valid yet.
    Time,
    /// The server does not speak TLS.
    Plain,
    /// The server closed the connection in the handshake: it does not speak TLS, or it is down.
    Closed,
    /// The server accepts only TLS.
    Required,
    /// The server requires a client certificate, or refuses the client's certificate.
    ClientCertificate,
    /// Anything else.
    Other,
}

impl ConnectError {
    /// Derives the reason from an error of the operating system.
    pub fn from_io(error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => Self::FilesExhausted,
            Some(libc::EADDRNOTAVAIL) => Self::PortsExhausted,
            _ => Self::Other,
        }
    }
}

impl Failure {
    /// A failure with its status. A write that fails this way may nevertheless have been executed.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), refused: false, connect: None }
    }

    /// Marks the failure as a failure to connect.
    #[must_use]
    pub fn connecting(self, why: ConnectError) -> Self {
        Self { connect: Some(why), ..self }
    }

    /// Marks the failure as a refusal: certainly nothing was or will be written.
    #[must_use]
    pub fn refusal(self) -> Self {
        Self { refused: true, ..self }
    }

    /// Marks the failure as unresolved: something may have been written, even if the last step was refused.
    #[must_use]
    pub fn mark_unresolved(self) -> Self {
        Self { refused: false, ..self }
    }

    /// Creates a failure from the error message of an interface that reports only text (RocksDB's C API, Cassandra's
    /// server errors). A full device is recognized by the operating system's message.
    pub fn from_text(message: impl Into<String>) -> Self {
        let message = message.into();
        let full = FULL_DEVICE.iter().any(|text| message.contains(text));
        Self::new(if full { Status::NoSpace } else { Status::Error }, message)
    }
}
