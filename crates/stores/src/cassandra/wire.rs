//! The native protocol's bytes, version 4 (Apache Cassandra's `native_protocol_v4.spec`): requests and answers.

/// Bytes of a frame's header: version, flags, stream (2), opcode, length (4).
pub const HEADER: usize = 9;
/// The longest answer: the protocol's limit.
pub const BODY_MAX: usize = 256 << 20;

const VERSION: u8 = 0x04;
const RESPONSE: u8 = 0x80;
/// The flag of a request that asks to be traced, and of an answer that begins with the trace's id.
pub const TRACING: u8 = 0x02;
const WARNING: u8 = 0x08;

/// What a frame is.
pub mod opcode {
    pub const ERROR: u8 = 0x00;
    pub const STARTUP: u8 = 0x01;
    pub const READY: u8 = 0x02;
    pub const AUTHENTICATE: u8 = 0x03;
    pub const QUERY: u8 = 0x07;
    pub const RESULT: u8 = 0x08;
    pub const PREPARE: u8 = 0x09;
    pub const EXECUTE: u8 = 0x0A;
    pub const AUTH_CHALLENGE: u8 = 0x0E;
    pub const AUTH_RESPONSE: u8 = 0x0F;
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// Appends a frame: its header, what `body` writes, and then the body's length.
#[inline]
pub fn frame(out: &mut Vec<u8>, flags: u8, stream: u16, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let [high, low] = stream.to_be_bytes();
    out.extend_from_slice(&[VERSION, flags, high, low, opcode, 0, 0, 0, 0]);
    let start = out.len();
    body(out);
    let len = (out.len() - start) as u32;
    out[start - 4..start].copy_from_slice(&len.to_be_bytes());
}

/// Appends a `[string]`, as long as one can be.
pub fn put_string(out: &mut Vec<u8>, text: &str) {
    let len = text.len().min(usize::from(u16::MAX));
    out.extend_from_slice(&(len as u16).to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..len]);
}

/// Appends `[bytes]`, or a `[value]`, or a `[long string]`: all three are the same.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The header of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub flags: u8,
    /// The request that it answers; below 0: none.
    pub stream: i16,
    pub opcode: u8,
    /// Bytes of its body.
    pub len: usize,
}

impl Header {
    /// Reads one; the error says why it is not valid.
    #[inline]
    pub fn read(bytes: [u8; HEADER]) -> Result<Self, String> {
        let [version, flags, high, low, opcode, a, b, c, d] = bytes;
        let len = u32::from_be_bytes([a, b, c, d]) as usize;
        if version != VERSION | RESPONSE {
            return Err(format!("it answers in version {} of the native protocol, not 4", version & !RESPONSE));
        }
        if len > BODY_MAX {
            return Err(format!("it answers with a frame of {len} bytes"));
        }
        Ok(Self { flags, stream: i16::from_be_bytes([high, low]), opcode, len })
    }
}

/// An answer ended before what it must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short;

/// The body of an answer, read from its front.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    /// The body behind what flags put in front of it: a trace's id, warnings.
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
        Ok(body)
    }

    /// The next bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Short> {
        let (front, rest) = self.0.split_at_checked(len).ok_or(Short)?;
        self.0 = rest;
        Ok(front)
    }

    /// A `[short]`.
    #[inline]
    pub fn short(&mut self) -> Result<u16, Short> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// An `[int]`.
    #[inline]
    pub fn int(&mut self) -> Result<i32, Short> {
        let bytes = self.take(4)?;
        Ok(i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A `[string]` or `[short bytes]`.
    pub fn string(&mut self) -> Result<&'a [u8], Short> {
        let len = self.short()?;
        self.take(usize::from(len))
    }

    /// `[bytes]`; `None` is null.
    #[inline]
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, Short> {
        let len = self.int()?;
        if len < 0 { Ok(None) } else { self.take(len as usize).map(Some) }
    }

    /// An `[option]`: a column's type, of which only the length matters here.
    pub fn skip_type(&mut self) -> Result<(), Short> {
        match self.short()? {
            0x0000 => self.string().map(|_| ()),
            0x0020 | 0x0022 => self.skip_type(),
            0x0021 => self.skip_type().and_then(|()| self.skip_type()),
            0x0030 => {
                self.string()?;
                self.string()?;
                for _ in 0..self.short()? {
                    self.string()?;
                    self.skip_type()?;
                }
                Ok(())
            }
            0x0031 => {
                for _ in 0..self.short()? {
                    self.skip_type()?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_says_how_long_it_is() {
        let mut out = b"before".to_vec();
        frame(&mut out, TRACING, 0x0102, opcode::QUERY, |out| put_bytes(out, b"ab"));
        assert_eq!(out, b"before\x04\x02\x01\x02\x07\0\0\0\x06\0\0\0\x02ab");
    }

    #[test]
    fn headers_are_read_or_refused() {
        let header = Header::read([0x84, 0, 0xFF, 0xFF, 0x0C, 0, 0, 1, 0]).unwrap();
        assert_eq!(header, Header { flags: 0, stream: -1, opcode: 0x0C, len: 256 });
        assert!(Header::read([0x83, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err().contains("version 3"));
        assert!(Header::read([0x84, 0, 0, 0, 0, 0xFF, 0, 0, 0]).is_err());
        assert!(Header::read(*b"HTTP/1.1 ").is_err());
    }

    #[test]
    fn bodies_that_end_early_are_errors() {
        let mut body = Body(b"\0\x02ab\xFF\xFF\xFF\xFF\0\0\0\x05abc");
        assert_eq!(body.string(), Ok(&b"ab"[..]));
        assert_eq!(body.bytes(), Ok(None));
        assert_eq!(body.bytes(), Err(Short));
        assert_eq!(Body::behind(WARNING, b"\0\x01\0\x02wwrest").unwrap().0, b"rest");
    }
}
