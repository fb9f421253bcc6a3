//! The native protocol at the byte level: requests and answers in versions 3 to 5 (Apache Cassandra's
//! `native_protocol_v5.spec` and its predecessors).

/// Length of a frame's header in bytes: version, flags, stream (2), opcode, length (4).
pub const HEADER: usize = 9;
/// Maximum length of an answer, which is the protocol's limit.
pub const BODY_MAX: usize = 256 << 20;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Cassandra 2.1 and later.
    V3 = 3,
    /// Cassandra 2.2 and later, and ScyllaDB.
    V4 = 4,
    /// Cassandra 4.0 and later. Frames are sent in checksummed segments, and the columns of rows have an id.
    V5 = 5,
}

impl Version {
    /// The version with this number, if it is supported.
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::V3, Self::V4, Self::V5].into_iter().find(|version| *version as u8 == number)
    }

    /// The version that precedes this one.
    pub fn previous(self) -> Option<Self> {
        Self::from_number(self as u8 - 1)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", *self as u8)
    }
}

const RESPONSE: u8 = 0x80;
/// The flag of a frame with a compressed body (protocols 3 and 4).
pub const COMPRESSED: u8 = 0x01;
/// The flag of a request to be traced, and of an answer that begins with the id of a trace.
pub const TRACING: u8 = 0x02;
const CUSTOM_PAYLOAD: u8 = 0x04;
const WARNING: u8 = 0x08;

/// The opcodes of frames.
pub mod opcode {
    pub const ERROR: u8 = 0x00;
    pub const STARTUP: u8 = 0x01;
    pub const READY: u8 = 0x02;
    pub const AUTHENTICATE: u8 = 0x03;
    pub const OPTIONS: u8 = 0x05;
    pub const SUPPORTED: u8 = 0x06;
    pub const QUERY: u8 = 0x07;
    pub const RESULT: u8 = 0x08;
    pub const PREPARE: u8 = 0x09;
    pub const EXECUTE: u8 = 0x0A;
    pub const REGISTER: u8 = 0x0B;
    pub const EVENT: u8 = 0x0C;
    pub const BATCH: u8 = 0x0D;
    pub const AUTH_CHALLENGE: u8 = 0x0E;
    pub const AUTH_RESPONSE: u8 = 0x0F;
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// The variable fields of a request's header.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub flags: u8,
    pub stream: u16,
    pub opcode: u8,
}

/// Appends a frame: writes a header and the output of `body`, and then sets the body's length.
#[inline]
pub fn frame(out: &mut Vec<u8>, version: Version, head: Head, body: impl FnOnce(&mut Vec<u8>)) {
    let Head { flags, stream, opcode } = head;
    let [high, low] = stream.to_be_bytes();
    out.extend_from_slice(&[version as u8, flags, high, low, opcode, 0, 0, 0, 0]);
    let start = out.len();
    body(out);
    let len = (out.len() - start) as u32;
    out[start - 4..start].copy_from_slice(&len.to_be_bytes());
}

/// Appends a `[string]`, truncated to the maximum length.
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    let len = text.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(len as u16).to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..len]);
}

/// Appends a `[bytes]`, a `[value]` or a `[long string]`; all three have the same format.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends the flags of a request's parameters. They take four bytes in protocol 5, and one byte in earlier versions.
#[inline]
pub fn put_flags(out: &mut Vec<u8>, version: Version, flags: u8) {
    if version >= Version::V5 {
        out.extend_from_slice(&[0; 3]);
    }
    out.push(flags);
}

/// The header of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub flags: u8,
    /// The stream of the request that is answered; negative if the message answers no request.
    pub stream: i16,
    pub opcode: u8,
    /// Length of the body in bytes.
    pub len: usize,
}

impl Header {
    /// Reads a header. An error states why the header is invalid.
    #[inline]
    pub fn read(bytes: [u8; HEADER], version: Version) -> Result<Self, String> {
        let [own, flags, high, low, opcode, a, b, c, d] = bytes;
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        // A server that does not support a version answers with its own version.
        if own != version as u8 | RESPONSE && (opcode != opcode::ERROR || own & RESPONSE == 0) {
            return Err(format!("the answer has version {} of the native protocol, not {version}", own & !RESPONSE));
        }
        if len > BODY_MAX {
            return Err(format!("a frame of {len} bytes is too long"));
        }
        Ok(Self { flags, stream: i16::from_be_bytes([high, low]), opcode, len })
    }
}

/// An answer is shorter than its content requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

/// The body of an answer, which is read from front to back.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    /// Skips the parts in front of the body that the flags announce: a trace's id, warnings, a custom payload.
    #[inline]
    pub fn behind(flags: u8, bytes: &'a [u8]) -> Result<Self, Short> {
        let mut body = Self(bytes);
        if flags & TRACING != 0 {
            body.take(16)?;
        }
        if flags & WARNING != 0 {
            for _ in 0..body.short()? {
                body.string()?;
            }
        }
        if flags & CUSTOM_PAYLOAD != 0 {
            for _ in 0..body.short()? {
                body.string()?;
                body.bytes()?;
            }
        }
        Ok(body)
    }

    /// Reads the next bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Short> {
        let (front, rest) = self.0.split_at_checked(len).ok_or(Short)?;
        self.0 = rest;
        Ok(front)
    }

    /// Reads the next bytes as an array.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Short)?;
        self.0 = rest;
        Ok(*front)
    }

    /// Reads a `[short]`.
    #[inline]
    pub fn short(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads an `[int]`.
    #[inline]
    pub fn int(&mut self) -> Result<i32, Short> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a `[string]` or a `[short bytes]`.
    pub fn string(&mut self) -> Result<&'a [u8], Short> {
        let len = self.short()?;
        self.take(usize::from(len))
    }

    /// Reads a `[bytes]`; `None` if it is null.
    #[inline]
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, Short> {
        let len = self.int()?;
        if len < 0 { Ok(None) } else { self.take(len as usize).map(Some) }
    }

    /// Reads a `[string]` as text.
    pub fn text(&mut self) -> Result<String, Short> {
        self.string().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_how_long_it_is() {
        let mut out = b"before".to_vec();
        let head = Head { flags: TRACING, stream: 0x0102, opcode: opcode::QUERY };
        frame(&mut out, Version::V4, head, |out| put_bytes(out, b"ab"));
        assert_eq!(out, b"before\x04\x02\x01\x02\x07\0\0\0\x06\0\0\0\x02ab");
    }

    #[test]
    fn headers_are_read_or_refused() {
        let read = |bytes| Header::read(bytes, Version::V4);
        let header = read([0x84, 0, 0xFF, 0xFF, 0x0C, 0, 0, 1, 0]).unwrap();
        assert_eq!(header, Header { flags: 0, stream: -1, opcode: 0x0C, len: 256 });
        assert!(read([0x83, 0, 0, 0, 8, 0, 0, 0, 0]).unwrap_err().contains("version 3"));
        assert!(read([0x83, 0, 0, 0, opcode::ERROR, 0, 0, 0, 0]).is_ok(), "a refusal of the version");
        assert!(read([0x84, 0, 0, 0, 0, 0xFF, 0, 0, 0]).is_err());
        assert!(read(*b"HTTP/1.1 ").is_err());
    }

    #[test]
    fn bodies_that_end_early_are_errors() {
        let mut body = Body(b"\0\x02ab\xFF\xFF\xFF\xFF\0\0\0\x05abc");
        assert_eq!(body.string(), Ok(&b"ab"[..]));
        assert_eq!(body.bytes(), Ok(None));
        assert_eq!(body.bytes(), Err(Short));
        assert_eq!(Body::behind(WARNING, b"\0\x01\0\x02wwrest").unwrap().0, b"rest");
        assert_eq!(Body::behind(CUSTOM_PAYLOAD, b"\0\x01\0\x01k\0\0\0\x01vrest").unwrap().0, b"rest");
    }
}
