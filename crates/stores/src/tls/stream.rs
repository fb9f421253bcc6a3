//! Connections that are either plain or encrypted.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::Tls;
use super::verification::explain;
use crate::error::Failure;
use crate::remote;

/// A connection that is either plain or encrypted.
#[derive(Debug)]
pub enum Stream {
    /// Not encrypted.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Encrypts a connection if the store is configured for TLS.
    pub async fn new(stream: TcpStream, tls: Option<&Tls>, host: &str, place: &str) -> Result<Self, Failure> {
        match tls {
            None => Ok(Self::Plain(stream)),
            Some(tls) => tls.connect(stream, host, place).await.map(|stream| Self::Tls(Box::new(stream))),
        }
    }

    /// The TLS version and the cipher suite; `None` without TLS.
    pub fn encryption(&self) -> Option<String> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(stream) => Some(encryption(stream.get_ref().1)),
        }
    }

    /// A line that explains the end of an encrypted connection, if the error comes from TLS. Since TLS 1.3, a server
    /// may refuse a client's certificate only after the handshake (RFC 8446, appendix E.1.2).
    pub fn explain(&self, error: &io::Error, place: &str) -> Option<String> {
        let of_tls = error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
        (of_tls && matches!(self, Self::Tls(_))).then(|| explain(error, place).1)
    }

    /// Whether the connection is still open. A plain connection with unread bytes also counts as closed, because a
    /// server sends nothing without a request. On an encrypted connection, unread bytes may be messages of TLS itself,
    /// such as session tickets.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Plain(stream) => remote::is_open(stream),
            Self::Tls(_) => !remote::is_ended(self),
        }
    }
}

/// The TLS version and the cipher suite of a session.
pub fn encryption(session: &rustls::ClientConnection) -> String {
    let version = session.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
    let suite = session.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
    let suite = suite.unwrap_or("unknown").replace("TLS13_", "TLS_");
    format!("{}, {suite}", version.replace("TLSv1_", "TLS 1."))
}

/// Evaluates an expression with the plain or the encrypted stream.
macro_rules! either {
    ($connection:expr, $stream:ident => $use:expr) => {
        match $connection {
            Self::Plain($stream) => $use,
            Self::Tls($stream) => $use,
        }
    };
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        either!(self, stream => stream.as_raw_fd())
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}
