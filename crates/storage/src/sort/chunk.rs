//! Rows in memory, sorted by 16-byte entries that each contain a key and the place of its row.
//!
//! An entry is a single 128-bit number: the 80 bits of the key, followed by 48 bits for the row's place. So comparing
//! two numbers compares the whole keys, and no row is touched before it is gathered. Sorting entries and gathering the
//! rows once costs a third as much as sorting the rows themselves. The standard library's `sort_unstable` sorts groups
//! of entries faster than the radix sort of the crate `rdst` (`make bench` compares them), and needs no additional
//! memory.

use std::ops::Range;
use std::sync::Mutex;

use crate::fs::{ALIGNMENT, AlignedBuffer};
use crate::sort::SortError;
use crate::sort::checksum::Checksum;
use crate::sort::files::Files;
use crate::sort::input::{Input, Piece, PieceReader};
use crate::sort::parallel::run_threads;
use crate::sort::progress::Progress;
use crate::sort::rows::{KEY_BYTES, ROW_BYTES};
use crate::sort::splitters::Splitters;
use crate::sort::spool::Spool;
use crate::sort::tournament::{END, Tournament};

/// Number of bits of an entry below its key.
const PLACE_BITS: u32 = 128 - 8 * KEY_BYTES as u32;
/// Rows begin at multiples of this many bytes, because pieces begin at page boundaries.
const PLACE_UNIT: usize = 4;
/// Number of rows copied together: enough that their cache misses overlap.
const BATCH: usize = 256;

/// The entry for a row. `place` is chosen by the caller and determines the order of equal keys.
#[inline]
pub fn entry(row: &[u8; ROW_BYTES], place: u64) -> u128 {
    let mut head = [0; 16];
    head.copy_from_slice(&row[..16]);
    u128::from_be_bytes(head) >> PLACE_BITS << PLACE_BITS | u128::from(place)
}

fn place(entry: u128) -> usize {
    (entry & ((1 << PLACE_BITS) - 1)) as usize
}

/// Rows in memory, as sorted lists of entries.
#[derive(Debug)]
pub struct Chunk {
    rows: AlignedBuffer,
    entries: AlignedBuffer,
    lists: Vec<Range<usize>>,
}

/// The rows that one segment keeps when several segments read the same rows.
#[derive(Debug)]
pub struct Own<'a> {
    bounds: Vec<u128>,
    segment: (u64, u64),
    counted: &'a [Piece],
}

impl<'a> Own<'a> {
    /// The rows of this segment's parts, and the pieces that count towards its checksum.
    pub fn new(splitters: &Splitters, segment: (u64, u64), counted: &'a [Piece]) -> Self {
        Self { bounds: splitters.bounds().collect(), segment, counted }
    }

    fn is_own(&self, entry: u128) -> bool {
        let part = self.bounds.partition_point(|&bound| bound <= entry);
        part as u64 % self.segment.1 == self.segment.0
    }

    fn counts(&self, piece: Piece) -> bool {
        self.counted.binary_search(&piece).is_ok()
    }
}

/// Pieces that are sorted together, with their place in the chunk.
struct Group<'a> {
    pieces: &'a [Piece],
    rows: &'a mut [u8],
    /// The start of `rows` in the chunk.
    at: usize,
    entries: &'a mut [u128],
    /// The range of the chunk's entries whose rows are kept.
    list: &'a mut Range<usize>,
}

impl Chunk {
    /// A chunk with room for this many bytes of rows.
    pub fn new(bytes: usize) -> Result<Self, SortError> {
        let rows = AlignedBuffer::new(bytes)?;
        let entries = AlignedBuffer::new(rows.len() / ROW_BYTES * size_of::<u128>())?;
        Ok(Self { rows, entries, lists: Vec::new() })
    }

    /// Bytes of memory per byte of rows.
    pub const OVERHEAD: f64 = 1.0 + size_of::<u128>() as f64 / ROW_BYTES as f64;

    /// The number of pieces that fit in memory, counted from the first piece.
    pub fn room_for(&self, pieces: &[Piece]) -> usize {
        let mut used = 0;
        let fits = |piece: &&Piece| {
            used += piece.room();
            used <= self.rows.len()
        };
        pieces.iter().take_while(fits).count()
    }

    /// Reads these pieces, which must fit in memory, and sorts each group of pieces into a separate list. There are
    /// several workers per processor, so that one worker reads while another sorts. If several segments read the same
    /// pieces, each segment keeps only its own rows. Returns the checksum of the rows; with `own`, of the pieces that
    /// `own` counts.
    pub fn fill_chunk(
        &mut self,
        pieces: &[Piece],
        (files, input): (&dyn Files, &Input),
        own: Option<&Own<'_>>,
        workers: usize,
        progress: &Progress,
    ) -> Result<Checksum, SortError> {
        let group = pieces.len().div_ceil(4 * workers).clamp(1, 16);
        let (mut rows, mut entries, mut at, mut first) = (&mut self.rows[..], self.entries.as_u128(), 0, 0);
        self.lists.clear();
        self.lists.resize(pieces.len().div_ceil(group), 0..0);
        let mut groups = Vec::new();
        for (pieces, list) in pieces.chunks(group).zip(&mut self.lists) {
            let bytes = pieces.iter().map(Piece::room).sum();
            let count = pieces.iter().map(|piece| piece.rows as usize).sum();
            let (own_rows, own_entries);
            (own_rows, rows) = rows.split_at_mut(bytes);
            (own_entries, entries) = entries.split_at_mut(count);
            *list = first..first + count;
            groups.push(Group { pieces, rows: own_rows, at, entries: own_entries, list });
            at += bytes;
            first += count;
        }
        // The last group is taken first; the order does not matter.
        let groups = Mutex::new(groups);
        let work = || -> Result<Checksum, SortError> {
            let mut reader = PieceReader::new(files, input);
            let mut sum = Checksum::default();
            loop {
                let next = groups.lock().map_or(None, |mut groups| groups.pop());
                let Some(group) = next else { return Ok(sum) };
                sort_group(group, own, (&mut reader, &mut sum), progress)?;
            }
        };
        let sums = run_threads(0..workers, "internal error: a sorting thread panicked", |_| work())?;
        Ok(sums.into_iter().sum())
    }

    /// For each part, the range of entries in each list that belongs to the part.
    pub fn parts(&mut self, splitters: &Splitters) -> Vec<Vec<Range<usize>>> {
        let entries = &*self.entries.as_u128();
        let mut from: Vec<usize> = self.lists.iter().map(|list| list.start).collect();
        let mut parts = Vec::with_capacity(splitters.parts());
        for bound in splitters.bounds().map(Some).chain([None]) {
            let ranges = self.lists.iter().zip(&mut from).map(|(list, from)| {
                let rest = &entries[*from..list.end];
                let end = *from + bound.map_or(rest.len(), |bound| rest.partition_point(|&entry| entry < bound));
                std::mem::replace(from, end)..end
            });
            parts.push(ranges.collect());
        }
        parts
    }

    /// Returns the entries and the rows, from which several threads can gather at the same time.
    pub fn sort_parts(&mut self) -> Sorted<'_> {
        Sorted { entries: self.entries.as_u128(), rows: &self.rows }
    }
}

fn sort_group(
    group: Group<'_>,
    own: Option<&Own<'_>>,
    (reader, sum): (&mut PieceReader<'_>, &mut Checksum),
    progress: &Progress,
) -> Result<(), SortError> {
    let Group { pieces, rows, at, entries, list } = group;
    // Number of entries so far, and end of the rows that are kept.
    let (mut count, mut end) = (0, 0_usize);
    for &piece in pieces {
        // Each piece is read into the memory directly after the rows kept so far, because touching new memory is slow.
        let start = end.next_multiple_of(ALIGNMENT);
        let read = &mut rows[start..start + piece.room()];
        reader.read(piece, read, progress)?;
        let read = &read[..piece.bytes()];
        if own.is_none_or(|own| own.counts(piece)) {
            sum.add_rows(read);
        }
        if let Some(own) = own {
            end = start;
            for from in (start..start + piece.bytes()).step_by(ROW_BYTES) {
                let Some(row) = rows[from..].first_chunk() else { break };
                let entry = entry(row, ((at + end) / PLACE_UNIT) as u64);
                if own.is_own(entry) {
                    rows.copy_within(from..from + ROW_BYTES, end);
                    entries[count] = entry;
                    count += 1;
                    end += ROW_BYTES;
                }
            }
        } else {
            let place = |i: usize| ((at + start + i * ROW_BYTES) / PLACE_UNIT) as u64;
            for (i, (to, row)) in entries[count..].iter_mut().zip(read.as_chunks::<ROW_BYTES>().0).enumerate() {
                *to = entry(row, place(i));
            }
            count += piece.rows as usize;
            end = start + piece.bytes();
        }
    }
    list.end = list.start + count;
    entries[..count].sort_unstable();
    progress.rows(count as u64);
    Ok(())
}

/// A chunk whose lists are sorted.
#[derive(Clone, Copy, Debug)]
pub struct Sorted<'a> {
    entries: &'a [u128],
    rows: &'a [u8],
}

impl Sorted<'_> {
    /// Passes the places of the rows in these ranges to `take`, in sorted order and in batches.
    fn sort_group(
        &self,
        ranges: &[Range<usize>],
        mut take: impl FnMut(&[usize]) -> Result<(), SortError>,
    ) -> Result<(), SortError> {
        let mut rest: Vec<&[u128]> = ranges.iter().map(|range| &self.entries[range.clone()]).collect();
        rest.retain(|list| !list.is_empty());
        let mut tournament = Tournament::new(rest.iter().map(|list| list[0]).collect());
        let mut batch = [0; BATCH];
        loop {
            let mut count = 0;
            while count < BATCH {
                let (list, least) = tournament.least_entry();
                if least == END {
                    break;
                }
                batch[count] = place(least) * PLACE_UNIT;
                count += 1;
                let own = &rest[list][1..];
                rest[list] = own;
                tournament.replace_least(own.first().copied().unwrap_or(END));
            }
            if count == 0 {
                return Ok(());
            }
            take(&batch[..count])?;
        }
    }

    /// Appends the rows in these ranges to a file, in sorted order.
    pub fn gather_rows(
        &self,
        ranges: &[Range<usize>],
        to: &mut Spool<'_>,
        sum: Option<&mut Checksum>,
    ) -> Result<(), SortError> {
        let mut sum = sum;
        self.sort_group(ranges, |mut places| {
            while !places.is_empty() {
                let room = to.rows(places.len())?;
                let (now, later) = places.split_at(room.len() / ROW_BYTES);
                self.copy_rows(now, room);
                if let Some(sum) = sum.as_deref_mut() {
                    sum.add_rows(room);
                }
                places = later;
            }
            Ok(())
        })
    }

    /// Fills a buffer with the rows in these ranges, in sorted order. The buffer must have exactly the length of the
    /// rows.
    pub fn gather_into(&self, ranges: &[Range<usize>], mut to: &mut [u8]) -> Result<(), SortError> {
        self.sort_group(ranges, |places| {
            let (now, later) = std::mem::take(&mut to).split_at_mut(places.len() * ROW_BYTES);
            self.copy_rows(places, now);
            to = later;
            Ok(())
        })
    }

    fn copy_rows(&self, places: &[usize], to: &mut [u8]) {
        for (&place, to) in places.iter().zip(to.as_chunks_mut::<ROW_BYTES>().0) {
            to.copy_from_slice(&self.rows[place..place + ROW_BYTES]);
        }
    }
}
