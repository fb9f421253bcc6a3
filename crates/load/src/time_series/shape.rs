//! The form in which points are sent to the store: rows, query clauses, and the keys of deletes.

use std::fmt::{self, Write};

use super::SeriesOperation;
use super::layout::{Point, SeriesLayout};
use super::spec::{TimeSeriesSpec, ValueType};
use super::words::{self, Words};
use crate::java;
use crate::operation::Check;
use crate::random::{Draws, Purpose};
use crate::row::Row;

/// Floating-point values are below this limit.
const FLOATS_END: f64 = 100_000.0;

/// The state that both phases have in common.
#[derive(Debug)]
pub(super) struct SeriesShape {
    pub(super) spec: TimeSeriesSpec,
    pub(super) seed: u64,
    pub(super) layout: SeriesLayout,
    keys: Words,
    values: Words,
    tag_names: Vec<String>,
    /// The fields of a row, in the order of their names.
    cells: Vec<Cell>,
    /// The names of these fields.
    pub(super) names: Vec<String>,
    /// The clauses that are the same in all queries.
    fixed_clauses: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Cell {
    Tag(usize),
    Timestamp,
    Value,
}

impl SeriesShape {
    pub(super) fn new(spec: TimeSeriesSpec, seed: u64) -> Result<Self, String> {
        spec.check_data()?;
        let layout = SeriesLayout::new(&spec).ok_or("sparsity leaves no point")?;
        let tag_words = Words::new(spec.tag_key_length);
        let tag_names: Vec<String> = (0..spec.tag_count as u64).map(|tag| tag_words.word(tag)).collect();
        let mut fields: Vec<(String, Cell)> =
            tag_names.iter().enumerate().map(|(tag, name)| (name.clone(), Cell::Tag(tag))).collect();
        fields.push((spec.timestamp_key.clone(), Cell::Timestamp));
        fields.push((spec.value_key.clone(), Cell::Value));
        // Sorts in the order of Java's `TreeMap`, in which bindings receive the fields.
        fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
        let (names, cells) = fields.into_iter().unzip();
        let pair = &spec.tag_pair_delimiter;
        let mut fixed_clauses = Vec::new();
        if let Some(by) = &spec.group_by {
            fixed_clauses.push(format!("{}{pair}{}", spec.group_by_key, by.function));
        }
        if let Some(down) = &spec.downsampling {
            fixed_clauses.push(format!("{}{pair}{}{}", spec.downsampling_key, down.function, down.interval));
        }
        Ok(Self {
            keys: Words::new(spec.key_length),
            values: Words::new(spec.tag_value_length),
            layout,
            tag_names,
            cells,
            names,
            fixed_clauses,
            spec,
            seed,
        })
    }

    /// Writes the metric as the key.
    #[inline]
    pub(super) fn set_key(&self, operation: &mut SeriesOperation, point: Point) {
        operation.series = point.series;
        operation.key.clear();
        operation.key.resize(self.keys.length(), 0);
        words::fill_letters(self.layout.key(point.series), &mut operation.key);
    }

    /// Writes the point and its tags as a row.
    #[inline]
    pub(super) fn write_row(&self, operation: &mut SeriesOperation, point: Point) {
        let row = &mut operation.row;
        row.clear_fields();
        for (name, cell) in self.names.iter().zip(&self.cells) {
            match *cell {
                Cell::Tag(tag) => {
                    let value = self.layout.tag_value(point.series, tag);
                    row.push_with(name.as_bytes(), self.values.length(), |out| words::fill_letters(value, out));
                }
                Cell::Timestamp => row.push_field(name.as_bytes(), &point.timestamp.to_be_bytes()),
                Cell::Value => row.push_field(name.as_bytes(), &self.generate_value(point, operation.index)),
            }
        }
    }

    #[inline]
    fn generate_value(&self, point: Point, index: u64) -> [u8; 8] {
        if self.spec.integrity {
            return self.integrity_value(point).to_be_bytes();
        }
        let mut draws = Draws::new(self.seed, index, Purpose::Value);
        let whole = match self.spec.value_type {
            ValueType::Integers => true,
            ValueType::Floats => false,
            ValueType::MixedNumbers => draws.draw_below(2) == 0,
        };
        if whole {
            i64::from(draws.next_u64() as i32).to_be_bytes()
        } else {
            (draws.next_f64() * FLOATS_END).to_be_bytes()
        }
    }

    /// The value that YCSB writes under `dataintegrity`: the hash of the tags' names and values in order, XOR the
    /// timestamp.
    #[inline]
    fn integrity_value(&self, point: Point) -> i64 {
        let mut hash = 0;
        for (tag, name) in self.tag_names.iter().enumerate() {
            hash = java::hash_ascii(hash, name.as_bytes());
            let mut text = Hash(hash);
            // Writing to a hash cannot fail.
            let _ = self.values.write_word(self.layout.tag_value(point.series, tag), &mut text);
            hash = text.0;
        }
        i64::from(hash) ^ point.timestamp
    }

    /// Whether `read` is exactly `point`: complete, and without anything else.
    pub(super) fn check_read(&self, point: Point, read: &Row) -> Check {
        if read.is_empty() {
            return Check::Empty;
        }
        let mut points = 0;
        for (name, value) in read.fields().flatten() {
            let right = match self.names.iter().position(|n| n.as_bytes() == name).map(|field| self.cells[field]) {
                Some(Cell::Tag(tag)) => self.values.parse_word(value) == Some(self.layout.tag_value(point.series, tag)),
                Some(Cell::Timestamp) => value == point.timestamp.to_be_bytes(),
                Some(Cell::Value) => value == self.integrity_value(point).to_be_bytes(),
                None => false,
            };
            if !right {
                return Check::Wrong;
            }
            points += 1;
        }
        if points == self.cells.len() { Check::Right } else { Check::Wrong }
    }

    /// Writes the clauses of a query for `point` into reused buffers.
    #[inline]
    pub(super) fn fill_operation(&self, operation: &mut SeriesOperation, point: Point, draws: &mut Draws) {
        let clauses = &mut operation.clauses;
        let tags = self.tag_names.len();
        clauses.resize_with(tags + 1 + self.fixed_clauses.len(), String::new);
        // Writing to a string cannot fail.
        for (tag, clause) in clauses[..tags].iter_mut().enumerate() {
            clause.clear();
            let _ = self.write_tag(clause, point, tag);
        }
        clauses[tags].clear();
        let _ = self.write_time(&mut clauses[tags], point, draws);
        for (clause, fixed) in clauses[tags + 1..].iter_mut().zip(&self.fixed_clauses) {
            clause.clone_from(fixed);
        }
    }

    /// Writes the key of a delete: metric, tags and time in one string.
    #[inline]
    pub(super) fn set_delete_key(&self, operation: &mut SeriesOperation, point: Point, draws: &mut Draws) {
        self.set_key(operation, point);
        // Writing to a vector cannot fail.
        let _ = self.write_delete(&mut Bytes(&mut operation.key), point, draws);
    }

    fn write_delete(&self, out: &mut impl Write, point: Point, draws: &mut Draws) -> fmt::Result {
        for tag in 0..self.tag_names.len() {
            out.write_str(&self.spec.delete_delimiter)?;
            self.write_tag(out, point, tag)?;
        }
        out.write_str(&self.spec.delete_delimiter)?;
        self.write_time(out, point, draws)
    }

    fn write_tag(&self, out: &mut impl Write, point: Point, tag: usize) -> fmt::Result {
        out.write_str(&self.tag_names[tag])?;
        if self.spec.group_by.as_ref().is_some_and(|by| by.tags[tag]) {
            return Ok(());
        }
        out.write_str(&self.spec.tag_pair_delimiter)?;
        self.values.write_word(self.layout.tag_value(point.series, tag), out)
    }

    fn write_time(&self, out: &mut impl Write, point: Point, draws: &mut Draws) -> fmt::Result {
        let spec = &self.spec;
        write!(out, "{}{}{}", spec.timestamp_key, spec.tag_pair_delimiter, point.timestamp)?;
        if spec.query_span == 0 {
            return Ok(());
        }
        let span = if spec.query_random_span {
            spec.interval * draws.draw_below(spec.query_span / spec.interval)
        } else {
            spec.query_span
        };
        write!(out, "{}{}", spec.query_span_delimiter, point.timestamp.saturating_add_unsigned(span))
    }
}

/// The bytes of a key, to which text can be appended.
struct Bytes<'a>(&'a mut Vec<u8>);

impl Write for Bytes<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Java's hash of the text that was written so far.
struct Hash(i32);

impl Write for Hash {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = java::hash_ascii(self.0, text.as_bytes());
        Ok(())
    }
}
