//! A record's fields in one flat buffer, in the form in which YCSB's key-value bindings store them:
//! repeated [int32 big-endian name length][name][int32 big-endian value length][value].
//!
//! Keeping the stored form in memory means that an insert hands its bytes to a key-value engine as they are, and a
//! read walks them without building a map.

use thiserror::Error;

/// A stored record that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a record of this workload: byte {at} of {len} starts no field")]
pub struct RowError {
    /// Where reading stopped.
    pub at: usize,
    /// The record's length in bytes.
    pub len: usize,
}

/// Which fields of a stored record are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// All of them.
    All,
    /// The one of this name.
    One(&'a [u8]),
    /// Those of these names.
    Names(&'a [String]),
}

/// Fields with names and values.
#[derive(Clone, Default)]
pub struct Row {
    /// The fields, then what longer rows have left: bytes that are written anyway need not be zeroed for each row again.
    buffer: Vec<u8>,
    len: usize,
}

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Row").field(&self.bytes()).finish()
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Row {}

impl Row {
    /// Forgets the fields, keeps the buffer.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a field.
    #[inline]
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_with(name, value.len(), |out| out.copy_from_slice(value));
    }

    /// Adds a field whose value, of `len` bytes, is written by `fill` in place.
    #[inline]
    pub fn push_with(&mut self, name: &[u8], len: usize, fill: impl FnOnce(&mut [u8])) {
        let (head, value) = self.more(8 + name.len() + len).split_at_mut(8 + name.len());
        head[..4].copy_from_slice(&(name.len() as u32).to_be_bytes());
        head[4..4 + name.len()].copy_from_slice(name);
        head[4 + name.len()..].copy_from_slice(&(len as u32).to_be_bytes());
        fill(value);
    }

    /// The next `len` bytes, to be written: what they hold is an older row's.
    #[inline]
    fn more(&mut self, len: usize) -> &mut [u8] {
        let (start, end) = (self.len, self.len + len);
        if end > self.buffer.len() {
            self.buffer.resize(end, 0);
        }
        self.len = end;
        &mut self.buffer[start..end]
    }

    /// The stored form.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The fields, in order. Only well-formed bytes get into a row, so the iterator ends only at the end.
    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        Fields { bytes: self.bytes(), at: 0 }
    }

    /// The value of a field.
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields().flatten().find(|&(n, _)| n == name).map(|(_, value)| value)
    }

    /// Adds the wanted fields of a stored record. Adds nothing on error.
    #[inline]
    pub fn read(&mut self, stored: &[u8], wanted: Wanted<'_>) -> Result<(), RowError> {
        let before = self.len;
        for field in (Fields { bytes: stored, at: 0 }) {
            let (name, value) = field.inspect_err(|_| self.len = before)?;
            let take = match wanted {
                Wanted::All => false,
                Wanted::One(one) => one == name,
                Wanted::Names(names) => names.iter().any(|n| n.as_bytes() == name),
            };
            if take {
                self.push(name, value);
            }
        }
        if matches!(wanted, Wanted::All) {
            self.more(stored.len()).copy_from_slice(stored);
        }
        Ok(())
    }

    /// Writes into `out` the stored record `old` with this row's fields merged in: known names are replaced where
    /// they stand, new ones appended. `out` is cleared first.
    #[inline]
    pub fn merge_into(&self, old: &[u8], out: &mut Vec<u8>) -> Result<(), RowError> {
        out.clear();
        for field in (Fields { bytes: old, at: 0 }) {
            let (name, value) = field?;
            push_field(out, name, self.get(name).unwrap_or(value));
        }
        for (name, value) in self.fields().flatten() {
            let known = Fields { bytes: old, at: 0 }.flatten().any(|(n, _)| n == name);
            if !known {
                push_field(out, name, value);
            }
        }
        Ok(())
    }
}

#[inline]
fn push_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(8 + name.len() + value.len());
    out.extend_from_slice(&(name.len() as u32).to_be_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Walks stored fields; after an error it ends.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    fn part(&mut self) -> Option<&'a [u8]> {
        let head = self.bytes.get(self.at..self.at.checked_add(4)?)?;
        let len = u32::from_be_bytes(head.try_into().ok()?) as usize;
        let start = self.at + 4;
        let part = self.bytes.get(start..start.checked_add(len)?)?;
        self.at = start + len;
        Some(part)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), RowError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        if start >= self.bytes.len() {
            return None;
        }
        let field = self.part().and_then(|name| Some((name, self.part()?)));
        Some(field.ok_or_else(|| {
            self.at = self.bytes.len();
            RowError { at: start, len: self.bytes.len() }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(fields: &[(&str, &str)]) -> Row {
        let mut row = Row::default();
        for (name, value) in fields {
            row.push(name.as_bytes(), value.as_bytes());
        }
        row
    }

    #[test]
    fn the_stored_form_is_ycsbs() {
        assert_eq!(row(&[("f", "ab")]).bytes(), b"\0\0\0\x01f\0\0\0\x02ab");
    }

    #[test]
    fn merging_replaces_in_place_and_appends_new_names() {
        let mut out = Vec::new();
        row(&[("b", "B"), ("ü", "new")]).merge_into(row(&[("a", "1"), ("b", "22")]).bytes(), &mut out).unwrap();
        assert_eq!(out, row(&[("a", "1"), ("b", "B"), ("ü", "new")]).bytes());
    }

    #[test]
    fn a_shorter_row_has_nothing_of_a_longer_one_before_it() {
        let mut used = row(&[("a", "a long value"), ("b", "another")]);
        used.clear();
        assert!(used.is_empty() && used.fields().next().is_none());
        used.push(b"c", b"3");
        assert_eq!(used, row(&[("c", "3")]));
        assert_eq!(format!("{used:?}"), format!("{:?}", row(&[("c", "3")])));
    }

    #[test]
    fn reading_one_field_leaves_the_others() {
        let mut read = Row::default();
        read.read(row(&[("a", "1"), ("b", "22")]).bytes(), Wanted::One(b"b")).unwrap();
        assert_eq!(read, row(&[("b", "22")]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(stored in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut read = Row::default();
            match read.read(&stored, Wanted::All) {
                Ok(()) => prop_assert_eq!(read.bytes(), &stored[..]),
                Err(error) => prop_assert!(read.is_empty() && error.at < error.len),
            }
            let mut out = Vec::new();
            let _ = row(&[("x", "y")]).merge_into(&stored, &mut out);
        }

        #[test]
        fn what_is_pushed_comes_back(fields in proptest::collection::vec((".{0,12}", ".{0,40}"), 0..12)) {
            let mut pushed = Row::default();
            for (name, value) in &fields {
                pushed.push(name.as_bytes(), value.as_bytes());
            }
            let back: Vec<_> = pushed.fields().map(|field| {
                let (name, value) = field.unwrap();
                (String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap())
            }).collect();
            prop_assert_eq!(back, fields);
        }
    }
}
