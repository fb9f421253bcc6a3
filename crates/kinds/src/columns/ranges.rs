//! The token ranges that token-range queries read, page by page.
//!
//! Source: Cassandra's `TokenRangeQuery.java`. An operation reads one page. The client continues with the next page of
//! the same range, and takes the next range after the last page.

use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_load::Segment;
use loadstone_session::statements::{Cells, PageRequest};

/// The ranges of a ring. The clients of a trial take the ranges in order, and start again after the last range.
#[derive(Debug)]
pub struct TokenRanges {
    ranges: Vec<(i64, i64)>,
    started: AtomicU64,
    segment: Segment,
}

impl TokenRanges {
    /// The ranges between the tokens of a ring, each split into `factor` parts.
    pub fn new(tokens: &[i64], factor: u32) -> Self {
        Self { ranges: split_ring(tokens, factor), started: AtomicU64::new(0), segment: Segment::default() }
    }

    /// Starts a trial. The segments of a trial share the ranges.
    pub fn restart_ranges(&mut self, segment: Segment) {
        (self.started, self.segment) = (AtomicU64::new(0), segment);
    }

    fn take_range(&self) -> (i64, i64) {
        let step = self.started.fetch_add(1, Ordering::Relaxed);
        self.ranges[(self.segment.global_index(step) % self.ranges.len() as u64) as usize]
    }
}

/// The position of a client in the ranges of one query.
#[derive(Debug, Default)]
pub struct Scan {
    /// The open range `(from, to]`; `None` before the first range, and after the last page of a range.
    range: Option<(i64, i64)>,
    /// The paging state at the end of the last page.
    state: Vec<u8>,
    /// The token of the last row.
    token: Option<[u8; 8]>,
}

impl Scan {
    /// Returns the open range or, if there is none, the next range, and the request for its next page of `rows` rows.
    pub fn request_page(&mut self, ranges: &TokenRanges, rows: u32) -> ((i64, i64), PageRequest) {
        let range = *self.range.get_or_insert_with(|| {
            self.state.clear();
            self.token = None;
            ranges.take_range()
        });
        (range, PageRequest { rows, state: self.state.clone() })
    }

    /// Advances to the end of a page, whose first column is the token. Returns the number of partitions that begin in
    /// the page.
    pub fn advance_scan(&mut self, cells: &Cells) -> u64 {
        let mut partitions = 0;
        for row in 0..cells.rows() {
            let token = cells.get(row, 0).and_then(|token| token.try_into().ok());
            partitions += u64::from(token != self.token);
            self.token = token;
        }
        match &cells.more {
            Some(state) => self.state.clone_from(state),
            None => self.range = None,
        }
        partitions
    }
}

/// The ranges between the tokens of a ring, each split into `factor` parts: `(from, to]`.
fn split_ring(tokens: &[i64], factor: u32) -> Vec<(i64, i64)> {
    let mut borders: Vec<i64> = tokens.to_vec();
    borders.extend([i64::MIN, i64::MAX]);
    borders.sort_unstable();
    borders.dedup();
    let mut ranges = Vec::new();
    for pair in borders.windows(2) {
        let width = i128::from(pair[1]) - i128::from(pair[0]);
        let border = |part: u32| (i128::from(pair[0]) + width * i128::from(part) / i128::from(factor)) as i64;
        ranges.extend((0..factor).map(|part| (border(part), border(part + 1))).filter(|(from, to)| from < to));
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of rows with the given tokens.
    fn page_of_tokens(tokens: &[i64], more: Option<&[u8]>) -> Cells {
        let mut cells = Cells::default();
        cells.clear(1);
        for token in tokens {
            cells.push(Some(&token.to_be_bytes()));
        }
        cells.more = more.map(<[u8]>::to_vec);
        cells
    }

    #[test]
    fn ranges_are_read_to_their_last_page() {
        let ranges = TokenRanges::new(&[0], 1);
        let mut scan = Scan::default();
        let first = (i64::MIN, 0);
        assert_eq!(scan.request_page(&ranges, 2), (first, PageRequest { rows: 2, state: Vec::new() }));
        // After a failed operation, the same page is requested again.
        assert_eq!(scan.request_page(&ranges, 2), (first, PageRequest { rows: 2, state: Vec::new() }));
        assert_eq!(scan.advance_scan(&page_of_tokens(&[-5, -4], Some(b"a"))), 2);
        assert_eq!(scan.request_page(&ranges, 2), (first, PageRequest { rows: 2, state: b"a".to_vec() }));
        // A partition that spans two pages is counted once.
        assert_eq!(scan.advance_scan(&page_of_tokens(&[-4, -3], Some(b"b"))), 1);
        assert_eq!(scan.advance_scan(&page_of_tokens(&[], None)), 0);
        assert_eq!(scan.request_page(&ranges, 2), ((0, i64::MAX), PageRequest { rows: 2, state: Vec::new() }));
        assert_eq!(scan.advance_scan(&page_of_tokens(&[7], None)), 1);
        assert_eq!(scan.request_page(&ranges, 2).0, first, "again from the start");
    }

    #[test]
    fn segments_share_the_ranges() {
        let take_all = |n| {
            let mut all: Vec<_> = (0..n)
                .flat_map(|k| {
                    let mut ranges = TokenRanges::new(&[0], 6);
                    ranges.restart_ranges(Segment { k, n });
                    (0..12 / n).map(|_| ranges.take_range()).collect::<Vec<_>>()
                })
                .collect();
            all.sort_unstable();
            all
        };
        assert_eq!(take_all(3), take_all(1));
        assert_eq!(take_all(1), split_ring(&[0], 6));
    }

    #[test]
    fn token_ranges_cover_the_ring_once() {
        for (tokens, factor) in [(&[][..], 1), (&[5, -7, i64::MAX][..], 3), (&[0][..], 1_000)] {
            let ranges = split_ring(tokens, factor);
            assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (i64::MIN, i64::MAX));
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
        assert_eq!(split_ring(&[0], 1_000).len(), 2_000);
    }
}
