//! A record's fields in one flat buffer, in the form in which YCSB's key-value bindings store them: repeated [int32
//! big-endian name length][name][int32 big-endian value length][value].
//!
//! Because a row has the same form in memory, an insert can pass the bytes to a key-value engine unchanged, and a read
//! can iterate over the stored bytes without building a map.

use thiserror::Error;

/// The error for a stored record that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a record of this workload: no field starts at byte {at} of {len}")]
pub struct RowError {
    /// The position of the byte at which reading stopped.
    pub at: usize,
    /// The record's length in bytes.
    pub len: usize,
}

/// The fields to read from a stored record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Projection<'a> {
    /// All fields.
    All,
    /// The field with this name.
    One(&'a [u8]),
    /// The fields with these names.
    Names(&'a [String]),
}

/// The bytes before every value of a field: the field's name in the stored form.
#[derive(Clone, Debug)]
pub struct Head {
    /// At least [`HEAD`] bytes; a shorter head is padded with zeros.
    bytes: Vec<u8>,
    len: usize,
}

/// Heads are copied in this size, which few heads exceed: copying a known length takes two instructions, copying any
/// other length takes a call.
const HEAD: usize = 16;

impl Head {
    /// The head of the field with this name.
    pub fn new(name: &[u8]) -> Self {
        let mut bytes = (name.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(name);
        let len = bytes.len();
        bytes.resize(len.max(HEAD), 0);
        Self { bytes, len }
    }

    /// The field's name.
    #[inline]
    pub fn name(&self) -> &[u8] {
        &self.bytes[4..self.len]
    }
}

/// The heads of a record whose fields have equal lengths: the layout of the row is computed once instead of once per
/// value.
#[derive(Clone, Debug)]
pub struct EqualHeads {
    /// For each field, its name and the length of its value, padded with zeros.
    blocks: Vec<[u8; HEAD]>,
    /// Number of bytes used in a block.
    head: usize,
    /// Length of a value.
    value: usize,
}

impl EqualHeads {
    /// The heads of fields with these names, in the order of the record. Each field's value has `value` bytes. `None`
    /// if the heads differ in length, or if a block and a value do not form a field.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>, value: usize) -> Option<Self> {
        let heads: Vec<Vec<u8>> = names
            .map(|name| {
                let (name_len, value_len) = ((name.len() as u32).to_be_bytes(), (value as u32).to_be_bytes());
                [&name_len, name.as_bytes(), &value_len].concat()
            })
            .collect();
        let head = heads.first()?.len();
        if head > HEAD || head + value < HEAD || heads.iter().any(|other| other.len() != head) {
            return None;
        }
        let block = |bytes: &Vec<u8>| std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0));
        Some(Self { blocks: heads.iter().map(block).collect(), head, value })
    }

    /// Length of each value.
    #[inline]
    pub fn value_len(&self) -> usize {
        self.value
    }
}

/// The fields of a record, with names and values.
#[derive(Clone, Default)]
pub struct Row {
    /// The fields from `start` on, followed by remains of longer rows: bytes that will be overwritten need not be
    /// zeroed for each row.
    buffer: Vec<u8>,
    /// The first byte of the buffer whose address is a multiple of [`ALIGNMENT`]. Without this alignment, the length of
    /// the command's path would determine how many memory writes cross a cache line boundary, which can cost 7 % of a
    /// load.
    start: usize,
    len: usize,
}

/// The size of a cache line.
const ALIGNMENT: usize = 64;

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
    /// Removes the fields, but keeps the memory of the buffer.
    #[inline]
    pub fn clear_fields(&mut self) {
        self.len = 0;
    }

    /// Adds a field.
    #[inline]
    pub fn push_field(&mut self, name: &[u8], value: &[u8]) {
        self.push_with(name, value.len(), |out| out.copy_from_slice(value));
    }

    /// Adds a field whose value has `len` bytes, which `fill` writes in place.
    #[inline]
    pub fn push_with(&mut self, name: &[u8], len: usize, fill: impl FnOnce(&mut [u8])) {
        let (head, value) = self.append_bytes(8 + name.len() + len).split_at_mut(8 + name.len());
        head[..4].copy_from_slice(&(name.len() as u32).to_be_bytes());
        head[4..4 + name.len()].copy_from_slice(name);
        head[4 + name.len()..].copy_from_slice(&(len as u32).to_be_bytes());
        fill(value);
    }

    /// [`Self::push_with`] for a field whose name is known in advance.
    #[inline]
    pub fn push_after(&mut self, head: &Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let before = self.len;
        self.len = before + head.len + 4 + len;
        let field = &mut self.reserve_field()[before..];
        match (field.first_chunk_mut::<HEAD>(), head.bytes.first_chunk::<HEAD>()) {
            // The bytes after a short head are overwritten by the value, or are outside the row.
            (Some(to), Some(from)) if head.len <= HEAD => *to = *from,
            _ => field[..head.len].copy_from_slice(&head.bytes[..head.len]),
        }
        let field = &mut field[head.len..];
        field[..4].copy_from_slice(&(len as u32).to_be_bytes());
        fill(&mut field[4..4 + len]);
    }

    /// Sets the fields of the row to the fields of `heads`, and returns the values to be written, which still contain
    /// bytes of an older row. A field exists only once the iterator has reached it.
    #[inline]
    pub fn set_heads<'a>(&'a mut self, heads: &'a EqualHeads) -> impl ExactSizeIterator<Item = &'a mut [u8]> {
        let field = heads.head + heads.value;
        self.len = heads.blocks.len() * field;
        let len = self.len;
        self.reserve_field()[..len].chunks_exact_mut(field).zip(&heads.blocks).map(|(field, head)| {
            // The bytes after the head belong to the value.
            if let Some(to) = field.first_chunk_mut() {
                *to = *head;
            }
            &mut field[heads.head..]
        })
    }

    /// The bytes from the start of the row to the end of the buffer: the row and at least one further head.
    #[inline]
    fn reserve_field(&mut self) -> &mut [u8] {
        if self.start + self.len + HEAD > self.buffer.len() {
            self.grow_buffer();
        }
        &mut self.buffer[self.start..]
    }

    #[cold]
    fn grow_buffer(&mut self) {
        let used = &self.buffer[self.start..];
        let size = (self.len + HEAD).max(2 * used.len());
        let mut buffer = vec![0; size + ALIGNMENT];
        let start = buffer.as_ptr().align_offset(ALIGNMENT);
        buffer[start..start + used.len()].copy_from_slice(used);
        (self.buffer, self.start) = (buffer, start);
    }

    /// The next `len` bytes, to be written; they still contain bytes of an older row.
    #[inline]
    fn append_bytes(&mut self, len: usize) -> &mut [u8] {
        let (before, end) = (self.len, self.len + len);
        self.len = end;
        &mut self.reserve_field()[before..end]
    }

    /// The row in the stored form.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.start + self.len]
    }

    /// Whether the row has no fields.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The fields, in order. A row contains only well-formed bytes, so the iterator stops only at the end of the row.
    #[inline]
    pub fn fields(&self) -> Fields<'_> {
        Fields { bytes: self.bytes(), at: 0 }
    }

    /// The value of a field.
    pub fn find_field(&self, name: &[u8]) -> Option<&[u8]> {
        self.fields().flatten().find(|&(n, _)| n == name).map(|(_, value)| value)
    }

    /// Adds the selected fields of a stored record. On error, nothing is added.
    #[inline]
    pub fn decode_fields(&mut self, stored: &[u8], projection: Projection<'_>) -> Result<(), RowError> {
        if matches!(projection, Projection::All) {
            for field in (Fields { bytes: stored, at: 0 }) {
                field?;
            }
            self.append_bytes(stored.len()).copy_from_slice(stored);
            return Ok(());
        }
        let before = self.len;
        for field in (Fields { bytes: stored, at: 0 }) {
            let (name, value) = field.inspect_err(|_| self.len = before)?;
            let take = match projection {
                Projection::All => true,
                Projection::One(one) => one == name,
                Projection::Names(names) => names.iter().any(|n| n.as_bytes() == name),
            };
            if take {
                self.push_field(name, value);
            }
        }
        Ok(())
    }

    /// Writes to `out` the stored record `old`, merged with this row's fields: existing names are replaced in place,
    /// and new names are appended. `out` is cleared first.
    #[inline]
    pub fn merge_into(&self, old: &[u8], out: &mut Vec<u8>) -> Result<(), RowError> {
        out.clear();
        for field in (Fields { bytes: old, at: 0 }) {
            let (name, value) = field?;
            push_field(out, name, self.find_field(name).unwrap_or(value));
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

/// Iterates over stored fields; stops after an error.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    #[inline]
    fn next_part(&mut self) -> Option<&'a [u8]> {
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
        let field = self.next_part().and_then(|name| Some((name, self.next_part()?)));
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

    fn create_row(fields: &[(&str, &str)]) -> Row {
        let mut row = Row::default();
        for (name, value) in fields {
            row.push_field(name.as_bytes(), value.as_bytes());
        }
        row
    }

    #[test]
    fn the_stored_form_is_ycsbs() {
        assert_eq!(create_row(&[("f", "ab")]).bytes(), b"\0\0\0\x01f\0\0\0\x02ab");
    }

    #[test]
    fn known_heads_make_the_same_row() {
        // A block has 16 bytes: 12 bytes of a name's head, or 8 bytes of a name followed by a length.
        for name in ["", "f", "field0", "fieldfie", "fieldfieldfi", "fieldfieldfie", "a name that is much longer"] {
            for len in [0, 1, 7, 100] {
                let value = vec![b'v'; len];
                let (mut pushed, mut after, mut set) =
                    (Row::default(), create_row(&[("x", "older")]), create_row(&[("x", "older")]));
                after.clear_fields();
                for name in [name, name] {
                    pushed.push_field(name.as_bytes(), &value);
                    after.push_after(&Head::new(name.as_bytes()), len, |out| out.copy_from_slice(&value));
                }
                assert_eq!((&after, Head::new(name.as_bytes()).name()), (&pushed, name.as_bytes()));
                let Some(heads) = EqualHeads::new([name, name].into_iter(), len) else {
                    assert!(name.len() > 8 || name.len() + len < 8, "{name} {len}");
                    continue;
                };
                set.set_heads(&heads).for_each(|out| out.copy_from_slice(&value));
                assert_eq!((&set, heads.value_len()), (&pushed, len));
            }
        }
        assert!(EqualHeads::new(["field9", "field10"].into_iter(), 100).is_none());
        assert!(EqualHeads::new(std::iter::empty(), 100).is_none());
    }

    #[test]
    fn merging_replaces_in_place_and_appends_new_names() {
        let mut out = Vec::new();
        create_row(&[("b", "B"), ("ü", "new")])
            .merge_into(create_row(&[("a", "1"), ("b", "22")]).bytes(), &mut out)
            .unwrap();
        assert_eq!(out, create_row(&[("a", "1"), ("b", "B"), ("ü", "new")]).bytes());
    }

    #[test]
    fn row_keeps_no_fields_of_its_predecessor() {
        let mut used = create_row(&[("a", "a long value"), ("b", "another")]);
        used.clear_fields();
        assert!(used.is_empty() && used.fields().next().is_none());
        used.push_field(b"c", b"3");
        assert_eq!(used, create_row(&[("c", "3")]));
        assert_eq!(format!("{used:?}"), format!("{:?}", create_row(&[("c", "3")])));
    }

    #[test]
    fn reading_one_field_leaves_the_others() {
        let mut read = Row::default();
        read.decode_fields(create_row(&[("a", "1"), ("b", "22")]).bytes(), Projection::One(b"b")).unwrap();
        assert_eq!(read, create_row(&[("b", "22")]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(stored in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut read = Row::default();
            match read.decode_fields(&stored, Projection::All) {
                Ok(()) => prop_assert_eq!(read.bytes(), &stored[..]),
                Err(error) => prop_assert!(read.is_empty() && error.at < error.len),
            }
            let mut out = Vec::new();
            let _ = create_row(&[("x", "y")]).merge_into(&stored, &mut out);
        }

        #[test]
        fn what_is_pushed_comes_back(fields in proptest::collection::vec((".{0,12}", ".{0,40}"), 0..12)) {
            let mut pushed = Row::default();
            for (name, value) in &fields {
                pushed.push_field(name.as_bytes(), value.as_bytes());
            }
            let back: Vec<_> = pushed.fields().map(|field| {
                let (name, value) = field.unwrap();
                (String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap())
            }).collect();
            prop_assert_eq!(back, fields);
        }
    }
}
