//! The rows of an input, divided into pieces that can be read independently.

use std::collections::{BTreeMap, BTreeSet};

use crate::fs::{ALIGNMENT, FileKind};
use crate::sort::SortError;
use crate::sort::files::{Files, ReadAt, join, read_exactly};
use crate::sort::progress::Progress;
use crate::sort::rows::{ROW_BYTES, RowCheck};

/// Number of rows that fills whole blocks of 4,096 bytes. A row whose number is a multiple of this begins at an offset
/// that direct I/O accepts.
pub const ALIGNED_ROWS: u64 = 1_024;

/// A file of an input.
#[derive(Debug)]
pub struct InputFile {
    /// The file's absolute path.
    pub path: String,
    /// Number of rows.
    pub rows: u64,
}

/// A range of consecutive rows in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The index of the file.
    pub file: usize,
    /// The number of the first row.
    pub row: u64,
    /// Number of rows.
    pub rows: u64,
}

impl Piece {
    /// The length of the piece in bytes.
    pub fn bytes(&self) -> usize {
        self.rows as usize * ROW_BYTES
    }

    /// The length of a buffer for the piece, rounded up to whole blocks.
    pub fn room(&self) -> usize {
        self.bytes().next_multiple_of(ALIGNMENT)
    }
}

/// The files of an input, in order of their names.
#[derive(Debug)]
pub struct Input {
    /// The directory.
    pub path: String,
    /// The files.
    pub files: Vec<InputFile>,
    /// Whether the job that wrote the files left its completion mark.
    pub success: bool,
    /// If set, each row that is read is compared with the row that TeraGen generates.
    pub check: Option<RowCheck>,
}

/// The description of a row that [`RowCheck`] finds to be wrong.
pub const DIFFERS: &str = "it differs from the row that TeraGen generates";

/// The mark of a complete output (`FileOutputCommitter.SUCCEEDED_FILE_NAME`).
pub const SUCCESS: &str = "_SUCCESS";

/// The prefix of a part's file name, and the part's number: `part-r-` and 7 for `part-r-00007`; `None` for other names.
fn parse_number(path: &str) -> Option<(&str, u64)> {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let digits = name.strip_prefix("part-")?.rsplit('-').next()?;
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    Some((&name[..name.len() - digits.len()], number))
}

impl Input {
    /// Lists the files in a directory. As in Hadoop, files with names that begin with `_` or `.` are ignored.
    pub fn list(files: &dyn Files, path: &str) -> Result<Self, SortError> {
        let Some(entries) = files.list_files(path)? else {
            return Err(SortError::usage(format!("there is no directory {path}"))
                .hint("give a directory of rows, such as `teragen ROWS DIRECTORY` writes"));
        };
        let mut inputs = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.name().starts_with(['_', '.'])) {
            let path = join(path, entry.name());
            match entry.kind {
                FileKind::File => {}
                FileKind::Directory => {
                    return Err(SortError::usage(format!("{path} is a directory within the input"))
                        .hint("give the directory that holds the files"));
                }
                // A pipe or a device has length 0, so its rows would be ignored silently.
                FileKind::Other => {
                    return Err(SortError::usage(format!("{path} is not a regular file"))
                        .hint("remove it, or replace it with a file"));
                }
            }
            let rest = entry.bytes % ROW_BYTES as u64;
            if rest != 0 {
                return Err(SortError::new(format!(
                    "{path} is truncated: its last row begins at offset {} and has {rest} of {ROW_BYTES} bytes",
                    entry.bytes - rest
                ))
                .hint("rows have 100 bytes each: write or copy the file again"));
            }
            inputs.push(InputFile { path, rows: entry.bytes / ROW_BYTES as u64 });
        }
        let success = entries.iter().any(|entry| entry.name() == SUCCESS);
        Ok(Self { path: path.to_owned(), files: inputs, success, check: None })
    }

    /// Refuses an output with missing parts. Returns a warning if the job that wrote it may not have finished.
    ///
    /// Parts are numbered from 0 and may be empty. If the last parts are missing, only the number of rows and the
    /// checksum show it.
    pub fn complete(&self) -> Result<Option<SortError>, SortError> {
        if self.files.is_empty() {
            return Err(SortError::new(format!("there are no parts in {}", self.path))
                .hint("give the directory that teragen or terasort wrote"));
        }
        let mut kinds = BTreeMap::<&str, BTreeSet<u64>>::new();
        for (kind, number) in self.files.iter().filter_map(|file| parse_number(&file.path)) {
            kinds.entry(kind).or_default().insert(number);
        }
        for (kind, numbers) in &kinds {
            let missing = (0..).zip(numbers).find(|(expected, number)| expected != *number);
            if let (Some((first, _)), Some(last)) = (missing, numbers.last()) {
                return Err(SortError::new(format!(
                    "{} is incomplete: {kind}{first:05} is missing, but {kind}{last:05} is present",
                    self.path
                ))
                .hint("copy the missing parts, or run the job again"));
            }
        }
        let doubtful = !self.success && !kinds.is_empty();
        Ok(doubtful.then(|| {
            SortError::new(format!("{} has no {SUCCESS}: the job that wrote it may not have finished", self.path))
                .hint("compare the number of rows and the checksum with the input's")
        }))
    }

    /// Total number of rows in all files.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// Divides the rows into pieces of at most `rows_max` rows, in order.
    pub fn pieces(&self, rows_max: u64) -> Vec<Piece> {
        let of_file = |(file, rows): (usize, u64)| {
            (0..rows.div_ceil(rows_max)).map(move |i| {
                let row = i * rows_max;
                Piece { file, row, rows: rows_max.min(rows - row) }
            })
        };
        self.files.iter().map(|file| file.rows).enumerate().flat_map(of_file).collect()
    }

    /// The pieces for segment k of n.
    pub fn share(&self, rows_max: u64, (k, n): (u64, u64)) -> Vec<Piece> {
        let mut pieces = self.pieces(rows_max);
        let at = |k: u64| (pieces.len() as u128 * u128::from(k) / u128::from(n)) as usize;
        let (from, to) = (at(k), at(k + 1));
        pieces.truncate(to);
        pieces.split_off(from)
    }
}

/// Reads pieces of an input, and keeps the last file open for the next piece.
pub struct PieceReader<'a> {
    files: &'a dyn Files,
    input: &'a Input,
    open: Option<(usize, Box<dyn ReadAt>)>,
}

impl<'a> PieceReader<'a> {
    /// Creates a reader without an open file.
    pub fn new(files: &'a dyn Files, input: &'a Input) -> Self {
        Self { files, input, open: None }
    }

    /// Fills the buffer with the rows of the piece. The buffer's length must be [`Piece::room`].
    pub fn read(&mut self, piece: Piece, buffer: &mut [u8], progress: &Progress) -> Result<(), SortError> {
        let path = &self.input.files[piece.file].path;
        let mut file = match self.open.take() {
            Some((number, file)) if number == piece.file => file,
            _ => self.files.open_file(path)?,
        };
        read_exactly(&mut *file, path, buffer, piece.row * ROW_BYTES as u64, piece.bytes())?;
        self.open = Some((piece.file, file));
        if let Some(check) = &self.input.check {
            self.verify(check, piece, &buffer[..piece.bytes()])?;
        }
        progress.read(piece.bytes())
    }

    fn verify(&self, check: &RowCheck, piece: Piece, bytes: &[u8]) -> Result<(), SortError> {
        for (number, row) in (piece.row..).zip(bytes.as_chunks::<ROW_BYTES>().0) {
            if let Some(place) = check.difference(row) {
                let path = &self.input.files[piece.file].path;
                let offset = number * ROW_BYTES as u64 + place as u64;
                return Err(SortError::new(format!("{path}: row {number} (offset {offset}): {DIFFERS}"))
                    .hint("generate or copy the file again; without --verify, rows of any content are sorted"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_together_have_every_row_once() {
        let file = |rows| InputFile { path: String::new(), rows };
        let input =
            Input { path: String::new(), files: vec![file(2_500), file(0), file(10)], success: true, check: None };
        for n in [1, 2, 7] {
            let pieces: Vec<Piece> = (0..n).flat_map(|k| input.share(1_024, (k, n))).collect();
            assert_eq!(pieces, input.pieces(1_024));
            assert_eq!(pieces.iter().map(|piece| piece.rows).sum::<u64>(), input.rows());
        }
    }
    #[test]
    fn parts_are_complete_when_their_numbers_are() {
        let check_names = |names: &[&str], success| {
            let file = |name: &&str| InputFile { path: format!("/out/{name}"), rows: 0 };
            Input { path: "/out".to_owned(), files: names.iter().map(file).collect(), success, check: None }.complete()
        };
        for names in [&["part-r-00000"][..], &["part-m-00000", "part-r-00000", "part-r-00001"], &["mine", "part-x"]] {
            assert_eq!(check_names(names, true), Ok(None), "{names:?}");
        }
        let many: Vec<String> = (0..100_002).map(|number| format!("part-{number:05}")).collect();
        assert_eq!(check_names(&many.iter().map(String::as_str).collect::<Vec<_>>(), true), Ok(None));
        assert!(check_names(&[], true).unwrap_err().message.contains("no parts in /out"));
        for (names, missing) in [
            (&["part-r-00001"][..], "part-r-00000 is missing"),
            (&["part-r-00000", "part-r-00002"], "part-r-00001 is missing"),
            (&["part-00000", "part-00001", "part-00004"], "part-00002 is missing, but part-00004 is present"),
        ] {
            let error = check_names(names, true).unwrap_err();
            assert!(error.message.contains(missing) && error.hint.is_some(), "{error}");
        }
        assert!(check_names(&["part-r-00000"], false).unwrap().unwrap().message.contains("no _SUCCESS"));
        assert_eq!(check_names(&["mine"], false), Ok(None), "files that were collected by hand have no mark");
    }
}
