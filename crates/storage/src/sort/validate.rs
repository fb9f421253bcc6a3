//! TeraValidate's checks: the order within and across parts, and the checksum. As in valsort, duplicate keys are
//! counted as well. If TeraGen generated the rows, each row is compared with the row that TeraGen generates for the
//! same row number: the checksum shows that a bit has flipped, and the comparison shows where.

use std::fmt;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use crate::fs::AlignedBuffer;
use crate::sort::SortError;
use crate::sort::checksum::Checksum;
use crate::sort::files::Files;
use crate::sort::input::{DIFFERS, Input, Piece, PieceReader};
use crate::sort::parallel::run_threads;
use crate::sort::progress::Progress;
use crate::sort::rows::{KEY_BYTES, ROW_BYTES, RowCheck};
use crate::sort::splitters::Key;

/// Maximum number of faults that are described. All faults are counted.
const DESCRIBED: usize = 10;
/// Number of rows that are read to decide whether TeraGen generated the input.
const LOOKED_AT: u64 = 100;

/// A faulty row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFault {
    /// The path of the file.
    pub file: String,
    /// The number of the row in the file.
    pub row: u64,
    /// The offset of the row in the file, in bytes.
    pub offset: u64,
    /// A description of the fault.
    pub what: String,
}

impl fmt::Display for RowFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: row {} (offset {}): {}", self.file, self.row, self.offset, self.what)
    }
}

/// The number of faults, with descriptions of the first faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// The number of faults.
    pub count: u64,
    /// The first faults.
    pub first: Vec<RowFault>,
}

impl Faults {
    fn add_fault(&mut self, fault: impl FnOnce() -> RowFault) {
        self.count += 1;
        if self.first.len() < DESCRIBED {
            self.first.push(fault());
        }
    }

    fn add_faults(&mut self, other: Self) {
        self.count += other.count;
        let room = DESCRIBED.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
    }
}

/// The results for consecutive rows of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowSpan {
    file: usize,
    row: u64,
    rows: u64,
    first: Key,
    last: Key,
    checksum: String,
    duplicates: u64,
    faults: Faults,
}

/// The results for all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Number of rows.
    pub rows: u64,
    /// Number of files.
    pub parts: u64,
    /// The checksum in TeraValidate's format.
    pub checksum: String,
    /// Number of rows with the same key as the preceding row.
    pub duplicates: u64,
    /// Rows that are out of order, or that differ from TeraGen's rows.
    pub faults: Faults,
}

/// Checks pieces of an input on several threads.
pub fn check_pieces(
    (files, input): (&dyn Files, &Input),
    pieces: &[Piece],
    workers: usize,
    progress: &Progress,
) -> Result<Vec<RowSpan>, SortError> {
    let check = is_from_teragen(files, input, progress)?.then(RowCheck::default);
    let next = Mutex::new(pieces.iter());
    let room = pieces.iter().map(Piece::room).max().unwrap_or_default();
    let work = || -> Result<Vec<RowSpan>, SortError> {
        let (mut buffer, mut reader, mut spans) =
            (AlignedBuffer::new(room)?, PieceReader::new(files, input), Vec::new());
        loop {
            let piece = next.lock().map_or(None, |mut next| next.next().copied());
            let Some(piece) = piece else { return Ok(spans) };
            reader.read(piece, &mut buffer[..piece.room()], progress)?;
            let path = &input.files[piece.file].path;
            spans.extend(span(piece, &buffer[..piece.bytes()], path, check.as_ref()));
            progress.rows(piece.rows);
        }
    };
    let spans = run_threads(0..workers, "internal error: a validating thread panicked", |_| work())?;
    Ok(spans.into_iter().flatten().collect())
}

/// Whether TeraGen generated any of the first rows. One such row is enough, because the remaining rows may be damaged.
fn is_from_teragen(files: &dyn Files, input: &Input, progress: &Progress) -> Result<bool, SortError> {
    let Some(file) = input.files.iter().position(|file| file.rows > 0) else { return Ok(false) };
    let piece = Piece { file, row: 0, rows: input.files[file].rows.min(LOOKED_AT) };
    let mut buffer = AlignedBuffer::new(piece.room())?;
    let room = piece.room();
    PieceReader::new(files, input).read(piece, &mut buffer[..room], progress)?;
    let check = RowCheck::default();
    Ok(buffer[..piece.bytes()].as_chunks::<ROW_BYTES>().0.iter().any(|row| check.difference(row).is_none()))
}

fn key(row: &[u8; ROW_BYTES]) -> Key {
    let mut key = [0; KEY_BYTES];
    key.copy_from_slice(&row[..KEY_BYTES]);
    key
}

fn order_fault(file: &str, row: u64, key: &Key, before: &Key) -> RowFault {
    let hex = |key: &Key| key.map(|byte| format!("{byte:02x}")).concat();
    let what = format!("its key {} is less than {}, the key of the preceding row", hex(key), hex(before));
    RowFault { file: file.to_owned(), row, offset: row * ROW_BYTES as u64, what }
}

fn span(piece: Piece, bytes: &[u8], path: &str, check: Option<&RowCheck>) -> Option<RowSpan> {
    let rows = bytes.as_chunks::<ROW_BYTES>().0;
    let first = key(rows.first()?);
    let mut sum = Checksum::default();
    sum.add_rows(bytes);
    let (mut duplicates, mut faults, mut last) = (0, Faults::default(), first);
    for (number, row) in (piece.row..).zip(rows) {
        let key = key(row);
        if number > piece.row {
            duplicates += u64::from(key == last);
            if key < last {
                faults.add_fault(|| order_fault(path, number, &key, &last));
            }
        }
        if let Some(place) = check.and_then(|check| check.difference(row)) {
            let offset = number * ROW_BYTES as u64 + place as u64;
            let what = DIFFERS.to_owned();
            faults.add_fault(|| RowFault { file: path.to_owned(), row: number, offset, what });
        }
        last = key;
    }
    let checksum = sum.to_string();
    Some(RowSpan { file: piece.file, row: piece.row, rows: piece.rows, first, last, checksum, duplicates, faults })
}

/// Combines the results of all spans of an input.
pub fn fold_spans(input: &Input, mut spans: Vec<RowSpan>) -> Result<Verdict, SortError> {
    spans.sort_unstable_by_key(|span| (span.file, span.row));
    let mut verdict = Verdict { parts: input.files.len() as u64, ..Verdict::default() };
    let (mut sum, mut last) = (Checksum::default(), None::<Key>);
    for span in spans {
        if let Some(last) = last {
            verdict.duplicates += u64::from(span.first == last);
            if span.first < last {
                verdict.faults.add_fault(|| order_fault(&input.files[span.file].path, span.row, &span.first, &last));
            }
        }
        sum += span
            .checksum
            .parse()
            .map_err(|error| SortError::new(format!("\"{}\" is not a checksum: {error}", span.checksum)))?;
        verdict.rows += span.rows;
        verdict.duplicates += span.duplicates;
        verdict.faults.add_faults(span.faults);
        last = Some(span.last);
    }
    if verdict.rows != input.rows() {
        return Err(SortError::new(format!("{} of {} rows were checked", verdict.rows, input.rows()))
            .hint("run the stage \"validate\" for every segment"));
    }
    verdict.checksum = sum.to_string();
    Ok(verdict)
}
