//! Which kind of operation stands at which index: taken from seeded shuffles with exact quotas.
//!
//! YCSB draws each kind at random, so two runs of one workload do not do the same number of inserts, and nothing says
//! how many inserts come before operation i without counting them. Here every `deck` consecutive operations hold each
//! kind exactly in proportion, in shuffled order, and "inserts before i" is a division and a table look-up.

use crate::divisor::Divisor;
use crate::operation::Kind;
use crate::random::{Draws, Purpose};

/// All shuffles together hold about this many cards (1 byte each): they stay in the L2 cache, but for the largest deck.
const CARDS: usize = 1 << 16;
/// Decks are as small as the proportions allow. Those that fit none are rounded in the third; where that would leave a
/// kind without a card, in the last, which holds one of every kind (`before` counts to 65,535).
const DECKS: [usize; 4] = [100, 1_000, 10_000, 50_000];

/// The kind of the operation at each index.
#[derive(Debug)]
pub struct KindSequence {
    seed: u64,
    deck: Divisor,
    shuffles: u64,
    kinds: Vec<Kind>,
    quota: [u64; Kind::COUNT],
    /// For the kinds that are counted: how many of it stand before each position of each shuffle.
    before: [Vec<u16>; Kind::COUNT],
}

/// Where an operation stands in the sequence.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    block: u64,
    /// Among the cards of all shuffles.
    card: usize,
}

/// The deck of the last position, and which sequence it belongs to: seed and size of deck decide how many shuffles there are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    seed: u64,
    /// 0 before the first position.
    deck: u64,
    /// Index of its first card.
    from: u64,
    block: u64,
    /// Of the first, among the cards of all shuffles.
    card: usize,
}

impl KindSequence {
    /// Each kind occurs at least once in this many operations.
    pub const RAREST: usize = DECKS[3];

    /// A sequence with these `weights` (proportions ≥ 0 that need not sum to 1, in order of choice), counting `counted` kinds.
    /// `None` when no weight is positive.
    pub fn new(seed: u64, weights: &[(Kind, f64)], counted: &[Kind]) -> Option<Self> {
        let total: f64 = weights.iter().map(|&(_, w)| w.max(0.0)).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let shares: Vec<(Kind, f64)> = weights.iter().map(|&(k, w)| (k, w.max(0.0) / total)).collect();
        let fits = |d: usize| {
            shares
                .iter()
                .map(|&(_, s)| (s, s * d as f64))
                .all(|(s, n)| (n - n.round()).abs() < 1e-6 && (s <= 0.0 || n.round() >= 1.0))
        };
        let rare = shares.iter().any(|&(_, s)| s > 0.0 && s * (DECKS[2] as f64) < 1.0);
        let rounded = if rare { DECKS[3] } else { DECKS[2] };
        let deck = DECKS.into_iter().find(|&d| fits(d)).unwrap_or(rounded);
        let one = quotas(&shares, deck);
        let mut quota = [0; Kind::COUNT];
        for &(kind, n) in &one {
            quota[kind as usize] += n as u64;
        }
        let shuffles = (CARDS / deck).max(4);
        let mut kinds = Vec::with_capacity(shuffles * deck);
        for shuffle in 0..shuffles {
            let start = kinds.len();
            for &(kind, n) in &one {
                kinds.extend(std::iter::repeat_n(kind, n));
            }
            Draws::at(seed, shuffle as u64, Purpose::KindSequence).shuffle(&mut kinds[start..]);
        }
        let mut before: [Vec<u16>; Kind::COUNT] = Default::default();
        for &kind in counted.iter().filter(|&&k| quota[k as usize] > 0) {
            before[kind as usize] = running_counts(&kinds, deck, kind);
        }
        Some(Self { seed, deck: Divisor::new(deck as u64), shuffles: shuffles as u64, kinds, quota, before })
    }

    /// Where the operation at `index` stands: a caller with several questions about it looks this up once.
    #[inline]
    pub fn position(&self, index: u64) -> Position {
        let (block, at) = self.deck.divide(index);
        let shuffle = Draws::at(self.seed, block, Purpose::KindSequence).below(self.shuffles);
        Position { block, card: (shuffle * self.deck.get() + at) as usize }
    }

    /// The same, for a caller that asks for many indices near each other: a deck is found once.
    #[inline]
    pub fn position_near(&self, index: u64, cursor: &mut Cursor) -> Position {
        let deck = self.deck.get();
        if index.wrapping_sub(cursor.from) >= deck || (cursor.seed, cursor.deck) != (self.seed, deck) {
            let first = index - self.deck.remainder(index);
            let Position { block, card } = self.position(first);
            *cursor = Cursor { seed: self.seed, deck, from: first, block, card };
        }
        Position { block: cursor.block, card: cursor.card + (index - cursor.from) as usize }
    }

    /// The kind of the operation at a position.
    #[inline]
    pub fn kind_at(&self, position: Position) -> Kind {
        self.kinds[position.card]
    }

    /// The kind of the operation at `index`.
    #[inline]
    pub fn kind(&self, index: u64) -> Kind {
        self.kind_at(self.position(index))
    }

    /// How many operations of a counted `kind` have an index below `index`.
    #[inline]
    pub fn before(&self, kind: Kind, index: u64) -> u64 {
        self.before_at(kind, self.position(index))
    }

    /// How many operations of a counted `kind` stand before a position.
    #[inline]
    pub fn before_at(&self, kind: Kind, position: Position) -> u64 {
        let quota = self.quota[kind as usize];
        if quota == 0 {
            return 0;
        }
        position.block * quota + u64::from(self.before[kind as usize][position.card])
    }

    /// How many operations of any of the counted `kinds` stand before a position.
    #[inline]
    pub fn before_any(&self, kinds: &[Kind], position: Position) -> u64 {
        kinds.iter().map(|&kind| self.before_at(kind, position)).sum()
    }

    /// The index of the `nth` (from 0) operation of any of the counted `kinds`; `None` if none of them occurs.
    pub fn index_of_any(&self, kinds: &[Kind], nth: u64) -> Option<u64> {
        let quota: u64 = kinds.iter().map(|&kind| self.quota[kind as usize]).sum();
        let start = nth.checked_div(quota)?.checked_mul(self.deck.get())?;
        // Binary search: the last position with at most `nth` of these kinds before it.
        let (mut low, mut high) = (start, start + self.deck.get() - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.before_any(kinds, self.position(middle)) <= nth { low = middle } else { high = middle - 1 }
        }
        Some(low)
    }

    /// Whether any operation is of this `kind`.
    #[inline]
    pub fn includes(&self, kind: Kind) -> bool {
        self.quota[kind as usize] > 0
    }

    /// The index of the `nth` (from 0) operation of a counted `kind`; `None` if that kind never occurs.
    pub fn index_of(&self, kind: Kind, nth: u64) -> Option<u64> {
        let quota = self.quota[kind as usize];
        let block = nth.checked_div(quota)?;
        let start = block * self.deck.get();
        // Binary search: `before` grows by at most one from position to position.
        let (mut low, mut high) = (start, start + self.deck.get() - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.before(kind, middle) <= nth {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Some(low)
    }
}

/// Whole numbers that sum to `deck` and stray least from `shares` (Hamilton's largest remainders), but that no positive
/// share is rounded to nothing.
fn quotas(shares: &[(Kind, f64)], deck: usize) -> Vec<(Kind, usize)> {
    let mut out: Vec<(Kind, usize)> =
        shares.iter().map(|&(k, s)| (k, (s * deck as f64 + 1e-9).floor() as usize)).collect();
    let mut missing = deck.saturating_sub(out.iter().map(|&(_, n)| n).sum());
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let rest = |i: usize| shares[i].1 * deck as f64 - (shares[i].1 * deck as f64 + 1e-9).floor();
    order.sort_by(|&a, &b| rest(b).total_cmp(&rest(a)));
    for i in order {
        if missing == 0 {
            break;
        }
        if shares[i].1 > 0.0 {
            out[i].1 += 1;
            missing -= 1;
        }
    }
    for i in 0..out.len() {
        if out[i].1 == 0 && shares[i].1 > 0.0 {
            let most = (0..out.len()).max_by_key(|&each| out[each].1).unwrap_or(i);
            out[most].1 -= 1;
            out[i].1 = 1;
        }
    }
    out
}

fn running_counts(kinds: &[Kind], deck: usize, kind: Kind) -> Vec<u16> {
    let mut seen = 0u16;
    kinds
        .iter()
        .enumerate()
        .map(|(position, &k)| {
            if position % deck == 0 {
                seen = 0;
            }
            let before = seen;
            seen += u16::from(k == kind);
            before
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload_d() -> KindSequence {
        KindSequence::new(42, &[(Kind::Read, 0.95), (Kind::Insert, 0.05)], &[Kind::Insert]).unwrap()
    }

    #[test]
    fn a_position_is_the_same_with_a_cursor_of_any_sequence() {
        let weights = [(Kind::Read, 0.5), (Kind::Update, 0.5)];
        let thousands = [(Kind::Read, 0.999), (Kind::Update, 0.001)];
        let sequences =
            [(1, &weights), (2, &weights), (1, &thousands)].map(|(seed, w)| KindSequence::new(seed, w, &[]).unwrap());
        let mut cursor = Cursor::default();
        for index in [0, 1, 99, 100, 99, 5, 1_000, 100_000_007, 3, u64::MAX, 0] {
            for sequence in &sequences {
                let (near, alone) = (sequence.position_near(index, &mut cursor), sequence.position(index));
                assert_eq!((near.block, near.card), (alone.block, alone.card), "{index}");
            }
        }
    }

    #[test]
    fn every_deck_holds_the_exact_quota() {
        let sequence = workload_d();
        for block in 0..50 {
            let inserts = (0..100).filter(|i| sequence.kind(block * 100 + i) == Kind::Insert).count();
            assert_eq!(inserts, 5);
        }
    }

    #[test]
    fn inserts_before_an_index_equal_a_count() {
        let sequence = workload_d();
        let mut seen = 0;
        for index in 0..20_000 {
            assert_eq!(sequence.before(Kind::Insert, index), seen, "index {index}");
            if sequence.kind(index) == Kind::Insert {
                assert_eq!(sequence.index_of(Kind::Insert, seen), Some(index));
                seen += 1;
            }
        }
    }

    #[test]
    fn odd_proportions_are_rounded_to_a_ten_thousandth() {
        let third = KindSequence::new(1, &[(Kind::Read, 2.0), (Kind::Update, 1.0)], &[]).unwrap();
        let updates = (0..10_000).filter(|&i| third.kind(i) == Kind::Update).count();
        assert_eq!(updates, 3_333);
        assert!(KindSequence::new(1, &[(Kind::Read, 0.0)], &[]).is_none());
        assert!(KindSequence::new(1, &[(Kind::Read, f64::NAN)], &[]).is_none());
    }

    #[test]
    fn rare_kinds_occur() {
        for (share, among, occurrences) in [(0.000_04, 100_000, 4), (0.000_14, 100_000, 14), (1e-9, 100_000, 2)] {
            let sequence =
                KindSequence::new(1, &[(Kind::Read, 1.0 - share), (Kind::Insert, share)], &[Kind::Insert]).unwrap();
            let inserts = (0..among).filter(|&i| sequence.kind(i) == Kind::Insert).count();
            assert_eq!((inserts, sequence.before(Kind::Insert, among)), (occurrences, occurrences as u64), "{share}");
        }
    }

    #[test]
    fn the_order_differs_between_decks_and_seeds() {
        let kinds = |seed, block: u64| {
            let kinds = KindSequence::new(seed, &[(Kind::Read, 0.5), (Kind::Update, 0.5)], &[]).unwrap();
            (0..100).map(|i| kinds.kind(block * 100 + i)).collect::<Vec<_>>()
        };
        assert_ne!(kinds(1, 0), kinds(1, 1));
        assert_ne!(kinds(1, 0), kinds(2, 0));
    }
}
