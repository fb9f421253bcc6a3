//! Replies in Redis's protocol (RESP 2), parsed in the buffer in which they were received.

use std::str;

/// A reply, or the head of an array of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// `+OK`
    Simple(&'a [u8]),
    /// `-ERR …`
    Error(&'a [u8]),
    /// `:1`
    Integer(i64),
    /// A string with a value.
    Bulk(&'a [u8]),
    /// A missing value.
    Nil,
    /// The head of an array with this number of replies.
    Array(usize),
}

/// The bytes are not a valid reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The offset of the invalid bytes.
    pub at: usize,
}

/// Iterates over replies.
#[derive(Clone, Copy, Debug)]
pub struct Replies<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Replies<'a> {
    /// Starts at the first byte.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::from(bytes, 0)
    }

    /// Starts at the position that an earlier iteration reached.
    #[inline]
    pub fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// The current position.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next reply; `None` if it is incomplete, in which case the position does not change.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Reply<'a>>, Malformed> {
        let start = self.at;
        let Some(&kind) = self.bytes.get(start) else { return Ok(None) };
        let Some(len) = self.bytes[start..].iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let malformed = Malformed { at: start };
        let line = self.bytes[start + 1..start + len].strip_suffix(b"\r").ok_or(malformed)?;
        let after = start + len + 1;
        let reply = match kind {
            b'+' => Reply::Simple(line),
            b'-' => Reply::Error(line),
            b':' => Reply::Integer(number(line).ok_or(malformed)?),
            b'*' | b'$' => {
                let count = number(line).ok_or(malformed)?;
                match (kind, usize::try_from(count)) {
                    (_, Err(_)) if count == -1 => Reply::Nil,
                    (_, Err(_)) => return Err(malformed),
                    (b'*', Ok(count)) => Reply::Array(count),
                    (_, Ok(len)) => {
                        let end = after.checked_add(len).and_then(|end| end.checked_add(2)).ok_or(malformed)?;
                        let Some(value) = self.bytes.get(after..end) else { return Ok(None) };
                        self.at = end;
                        return value.strip_suffix(b"\r\n").map(|value| Some(Reply::Bulk(value))).ok_or(malformed);
                    }
                }
            }
            _ => return Err(malformed),
        };
        self.at = after;
        Ok(Some(reply))
    }

    /// Skips a whole reply, including its elements; returns `false` if it is incomplete.
    #[inline]
    pub fn skip(&mut self) -> Result<bool, Malformed> {
        let start = self.at;
        let mut left = 1;
        while left > 0 {
            match self.next()? {
                Some(Reply::Array(count)) => left += count,
                Some(_) => {}
                None => {
                    self.at = start;
                    return Ok(false);
                }
            }
            left -= 1;
        }
        Ok(true)
    }
}

#[inline]
fn number(line: &[u8]) -> Option<i64> {
    if let [digit @ b'0'..=b'9'] = line {
        return Some(i64::from(digit - b'0'));
    }
    str::from_utf8(line).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[u8] =
        b"+OK\r\n-ERR no\r\n:-12\r\n$4\r\na\r\nb\r\n$0\r\n\r\n$-1\r\n*-1\r\n*2\r\n$1\r\nx\r\n*1\r\n:3\r\n";

    #[test]
    fn every_kind_is_read() {
        let mut replies = Replies::new(ALL);
        let mut read = Vec::new();
        while let Some(reply) = replies.next().unwrap() {
            read.push(reply);
        }
        assert_eq!(
            read,
            [
                Reply::Simple(b"OK"),
                Reply::Error(b"ERR no"),
                Reply::Integer(-12),
                Reply::Bulk(b"a\r\nb"),
                Reply::Bulk(b""),
                Reply::Nil,
                Reply::Nil,
                Reply::Array(2),
                Reply::Bulk(b"x"),
                Reply::Array(1),
                Reply::Integer(3),
            ]
        );
        assert_eq!(replies.position(), ALL.len());
    }

    #[test]
    fn a_partial_reply_is_not_consumed() {
        let mut whole = 0;
        for end in 0..ALL.len() {
            let mut replies = Replies::new(&ALL[..end]);
            let mut passed = 0;
            while replies.skip().unwrap() {
                passed += 1;
            }
            assert!(replies.position() <= end && passed >= whole && passed < 8, "{end}");
            whole = passed;
            // The remaining bytes complete the replies.
            let mut rest = Replies::from(ALL, replies.position());
            while rest.skip().unwrap() {
                passed += 1;
            }
            assert_eq!((passed, rest.position()), (8, ALL.len()));
        }
    }

    #[test]
    fn an_invalid_reply_is_refused() {
        for bytes in
            [&b"HTTP/1.1 400\r\n"[..], b"+OK\n", b":x\r\n", b"$-2\r\n", b"$1\r\nabcd", b"$99999999999999999999\r\n"]
        {
            assert_eq!(Replies::new(bytes).next(), Err(Malformed { at: 0 }), "{}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(Replies::new(b"$9223372036854775807\r\nx").next(), Ok(None));
    }
}
