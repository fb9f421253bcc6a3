//! The rows of an input, cut into pieces that can be read on their own.

use crate::sort::SortError;
use crate::sort::arena::ALIGNMENT;
use crate::sort::files::{Files, ReadAt, join, read_exactly};
use crate::sort::progress::Progress;
use crate::sort::rows::ROW_BYTES;

/// Rows that fill whole blocks of 4,096 bytes: offsets that are multiples of this suit direct I/O.
pub const ALIGNED_ROWS: u64 = 1_024;

/// A file of an input.
#[derive(Debug)]
pub struct InputFile {
    /// Its whole path.
    pub path: String,
    /// Its rows.
    pub rows: u64,
}

/// Some rows of a file that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the file.
    pub file: usize,
    /// The first of its rows that is meant.
    pub row: u64,
    /// How many.
    pub rows: u64,
}

impl Piece {
    /// Its length.
    pub fn bytes(&self) -> usize {
        self.rows as usize * ROW_BYTES
    }

    /// The length of a buffer for it: whole blocks.
    pub fn room(&self) -> usize {
        self.bytes().next_multiple_of(ALIGNMENT)
    }
}

/// The files of an input, in the order of their names.
#[derive(Debug)]
pub struct Input {
    /// The files.
    pub files: Vec<InputFile>,
}

impl Input {
    /// The files in a directory, or one file. As in Hadoop, names that begin with `_` or `.` do not count.
    pub fn list(files: &dyn Files, path: &str) -> Result<Self, SortError> {
        let Some(entries) = files.list(path)? else {
            return Err(SortError::usage(format!("there is no directory {path}"))
                .hint("the input is a directory, such as `teragen ROWS DIRECTORY` writes"));
        };
        let mut found = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.name.starts_with(['_', '.'])) {
            let path = join(path, &entry.name);
            if entry.directory {
                return Err(SortError::usage(format!("{path} is a directory within the input"))
                    .hint("give the directory that holds the files"));
            }
            let rest = entry.bytes % ROW_BYTES as u64;
            if rest != 0 {
                return Err(SortError::new(format!(
                    "{path} is truncated: its last row begins at offset {} and has {rest} of {ROW_BYTES} bytes",
                    entry.bytes - rest
                ))
                .hint("rows are 100 bytes each: write the file again"));
            }
            found.push(InputFile { path, rows: entry.bytes / ROW_BYTES as u64 });
        }
        Ok(Self { files: found })
    }

    /// All of its rows.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.rows).sum()
    }

    /// Pieces of at most that many rows, in order.
    pub fn pieces(&self, rows_max: u64) -> Vec<Piece> {
        let of_file = |(file, rows): (usize, u64)| {
            (0..rows.div_ceil(rows_max)).map(move |i| {
                let row = i * rows_max;
                Piece { file, row, rows: rows_max.min(rows - row) }
            })
        };
        self.files.iter().map(|file| file.rows).enumerate().flat_map(of_file).collect()
    }

    /// Those of them that segment k of n has.
    pub fn share(&self, rows_max: u64, (k, n): (u64, u64)) -> Vec<Piece> {
        let mut pieces = self.pieces(rows_max);
        let at = |k: u64| (pieces.len() as u128 * u128::from(k) / u128::from(n)) as usize;
        let (from, to) = (at(k), at(k + 1));
        pieces.truncate(to);
        pieces.split_off(from)
    }
}

/// Reads pieces of an input and keeps the last file open.
pub struct PieceReader<'a> {
    files: &'a dyn Files,
    input: &'a Input,
    open: Option<(usize, Box<dyn ReadAt>)>,
}

impl<'a> PieceReader<'a> {
    /// A reader.
    pub fn new(files: &'a dyn Files, input: &'a Input) -> Self {
        Self { files, input, open: None }
    }

    /// Fills the buffer with the rows of the piece. It is as long as [`Piece::room`] says.
    pub fn read(&mut self, piece: Piece, buffer: &mut [u8], progress: &Progress) -> Result<(), SortError> {
        let path = &self.input.files[piece.file].path;
        let mut file = match self.open.take() {
            Some((number, file)) if number == piece.file => file,
            _ => self.files.open(path)?,
        };
        read_exactly(&mut *file, path, buffer, piece.row * ROW_BYTES as u64, piece.bytes())?;
        self.open = Some((piece.file, file));
        progress.read(piece.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_together_have_every_row_once() {
        let file = |rows| InputFile { path: String::new(), rows };
        let input = Input { files: vec![file(2_500), file(0), file(10)] };
        for n in [1, 2, 7] {
            let pieces: Vec<Piece> = (0..n).flat_map(|k| input.share(1_024, (k, n))).collect();
            assert_eq!(pieces, input.pieces(1_024));
            assert_eq!(pieces.iter().map(|piece| piece.rows).sum::<u64>(), input.rows());
        }
    }
}
