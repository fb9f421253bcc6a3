//! The kind of the operation at each index, from seeded shuffles with exact quotas.
//!
//! YCSB draws the kind of each operation at random. Two runs of one workload therefore have different numbers of
//! inserts, and the number of inserts before operation i can only be found by counting. Here, operations are dealt from
//! decks that contain each kind in proportion, so a division and a table lookup give the number of earlier inserts.
//!
//! The number of operations of a kind differs by less than one from its proportional share at certain borders: the end
//! of each deck, points about 100 operations apart, and the planned end of the run. Between borders the order is
//! random, as if cards were drawn from about 100 without replacement (standard deviation of the count: at most 2.5).
//! This preserves some of the bursts in YCSB's random kinds; with counts that were exact at every index, reads and
//! updates would alternate.

use crate::divisor::Divisor;
use crate::kind::Kind;
use crate::random::{Draws, Purpose};

/// Approximate number of cards in all shuffles, of 1 byte each. They fit into the L2 cache, except for the largest
/// decks.
const CARDS: usize = 1 << 16;
/// Size of the smallest deck, and distance between borders in larger decks.
const DECK_MIN: usize = 100;
/// Size of the largest deck: `before` counts to 65,535.
const DECK_MAX: usize = 50_000;
/// A number that no deck has, because a deck has at least 100 operations.
const NO_BLOCK: u64 = u64::MAX;

/// The sequence of the kinds of operation.
#[derive(Debug)]
pub struct KindSequence {
    seed: u64,
    deck: Divisor,
    shuffles: u64,
    /// The deck in which the run ends. Its shuffle, which is the last one, has a border at the end of the run.
    /// [`NO_BLOCK`] if no end is planned.
    last: u64,
    kinds: Vec<Kind>,
    quota: [u64; Kind::COUNT],
    /// For each counted kind, the number of its cards before each position of each shuffle.
    before: [Vec<u16>; Kind::COUNT],
}

/// The position of an operation in the sequence.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    block: u64,
    /// The index of the card among the cards of all shuffles.
    card: usize,
}

/// The deck of the last position, and the sequence to which it belongs: seed, deck size and end determine the shuffles.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeckCursor {
    seed: u64,
    last: u64,
    /// The size of the deck; 0 before the first position.
    deck: u64,
    /// Index of the operation on the deck's first card.
    from: u64,
    block: u64,
    /// The index of the first card among the cards of all shuffles.
    card: usize,
}

impl KindSequence {
    /// A kind with a positive weight occurs at least once in this number of operations.
    pub const RAREST: usize = DECK_MAX;

    /// A sequence for the given `weights`, in the order in which kinds are chosen, that counts the kinds in `counted`.
    /// The weights are proportions ≥ 0 that need not sum to 1. Quotas are also exact before index `end`, where the run
    /// ends. `None` if no weight is positive.
    pub fn new(seed: u64, weights: &[(Kind, f64)], counted: &[Kind], end: Option<u64>) -> Option<Self> {
        let total: f64 = weights.iter().map(|&(_, w)| w.max(0.0)).sum();
        if !(total > 0.0 && total.is_finite()) {
            return None;
        }
        let shares: Vec<(Kind, f64)> = weights.iter().map(|&(k, w)| (k, w.max(0.0) / total)).collect();
        let deck = deck_size(&shares);
        let counts = calculate_quotas(&shares, deck);
        let mut quota = [0; Kind::COUNT];
        for &(kind, n) in &counts {
            quota[kind as usize] += n as u64;
        }
        let spread = spread_evenly(&counts, deck);
        let parts = deck / DECK_MIN;
        let mut borders: Vec<usize> = (1..=parts).map(|part| part * deck / parts).collect();
        let shuffles = (CARDS / deck).max(4);
        let mut kinds = Vec::with_capacity((shuffles + 1) * deck);
        let mut deal = |borders: &[usize], shuffle: usize| {
            let first = kinds.len();
            kinds.extend_from_slice(&spread);
            let mut draws = Draws::new(seed, shuffle as u64, Purpose::KindSequence);
            let mut start = first;
            for border in borders {
                let part = &mut kinds[start..first + border];
                // Before the shuffle, the cards of a part are sorted by kind, in the order of `weights`. So the order
                // in which `spread_evenly` arranged them does not affect the shuffle.
                part.sort_by_key(|kind| counts.iter().position(|(other, _)| other == kind));
                draws.shuffle_items(part);
                start = first + border;
            }
        };
        (0..shuffles).for_each(|shuffle| deal(&borders, shuffle));
        let divisor = Divisor::new(deck as u64);
        let last = end.map_or(NO_BLOCK, |end| {
            let (block, rest) = divisor.divide(end);
            let place = borders.partition_point(|&border| border < rest as usize);
            borders.insert(place, rest as usize);
            deal(&borders, shuffles);
            block
        });
        let mut before: [Vec<u16>; Kind::COUNT] = Default::default();
        for &kind in counted.iter().filter(|&&k| quota[k as usize] > 0) {
            before[kind as usize] = running_counts(&kinds, deck, kind);
        }
        Some(Self { seed, deck: divisor, shuffles: shuffles as u64, last, kinds, quota, before })
    }

    /// The position of the operation at `index`, for callers that need several facts about it.
    #[inline]
    pub fn position(&self, index: u64) -> Position {
        let (block, at) = self.deck.divide(index);
        let shuffle = if self.last == block {
            self.shuffles
        } else {
            Draws::new(self.seed, block, Purpose::KindSequence).draw_below(self.shuffles)
        };
        Position { block, card: (shuffle * self.deck.get() + at) as usize }
    }

    /// [`Self::position`] for callers that visit many neighbouring indices: each deck is looked up only once.
    #[inline]
    pub fn position_near(&self, index: u64, cursor: &mut DeckCursor) -> Position {
        let deck = self.deck.get();
        if index.wrapping_sub(cursor.from) >= deck
            || (cursor.seed, cursor.deck, cursor.last) != (self.seed, deck, self.last)
        {
            let first = index - self.deck.remainder(index);
            let Position { block, card } = self.position(first);
            *cursor = DeckCursor { seed: self.seed, last: self.last, deck, from: first, block, card };
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

    /// The number of operations of a counted `kind` before `index`.
    #[inline]
    pub fn count_before(&self, kind: Kind, index: u64) -> u64 {
        self.before_at(kind, self.position(index))
    }

    /// The number of operations of a counted `kind` before a position.
    #[inline]
    pub fn before_at(&self, kind: Kind, position: Position) -> u64 {
        let quota = self.quota[kind as usize];
        if quota == 0 {
            return 0;
        }
        position.block * quota + u64::from(self.before[kind as usize][position.card])
    }

    /// The number of operations of any of the counted `kinds` before a position.
    #[inline]
    pub fn before_any(&self, kinds: &[Kind], position: Position) -> u64 {
        kinds.iter().map(|&kind| self.before_at(kind, position)).sum()
    }

    /// The index of the `nth` (from 0) operation with any of the counted `kinds`; `None` if none of these kinds occurs.
    pub fn index_of_any(&self, kinds: &[Kind], nth: u64) -> Option<u64> {
        let quota: u64 = kinds.iter().map(|&kind| self.quota[kind as usize]).sum();
        let start = nth.checked_div(quota)?.checked_mul(self.deck.get())?;
        // Binary search for the last position with at most `nth` operations of these kinds before it.
        let (mut low, mut high) = (start, start + self.deck.get() - 1);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.before_any(kinds, self.position(middle)) <= nth { low = middle } else { high = middle - 1 }
        }
        Some(low)
    }

    /// Whether there are operations of this `kind`.
    #[inline]
    pub fn has_kind(&self, kind: Kind) -> bool {
        self.quota[kind as usize] > 0
    }

    /// The index of the `nth` (from 0) operation of a counted `kind`; `None` if that kind never occurs.
    pub fn index_of(&self, kind: Kind, nth: u64) -> Option<u64> {
        self.index_of_any(&[kind], nth)
    }
}

/// The size of the smallest deck in which all shares are whole numbers of cards. If there is none, the size with the
/// smallest rounding error. A share too small for any deck gets one card in the largest deck.
fn deck_size(shares: &[(Kind, f64)]) -> usize {
    let shares = || shares.iter().map(|&(_, share)| share).filter(|&share| share > 0.0);
    let error = |deck: usize| {
        let cards = |share: f64| share * deck as f64;
        if shares().any(|share| cards(share).round() < 1.0) {
            return f64::INFINITY;
        }
        shares().map(|share| (cards(share) - cards(share).round()).abs() / deck as f64).fold(0.0, f64::max)
    };
    // Shares are quotients of floating-point numbers, with errors of about 10^-16.
    let exact = (DECK_MIN..=DECK_MAX).find(|&deck| error(deck) < 1e-14);
    let nearest = || (DECK_MIN..=DECK_MAX).min_by(|&a, &b| error(a).total_cmp(&error(b)));
    exact.or_else(nearest).filter(|&deck| error(deck).is_finite()).unwrap_or(DECK_MAX)
}

/// Arranges the cards of a deck so that the number of cards of each kind before any position is within one card of its
/// proportional share. The nth card of a kind with q cards is dealt from floor(n·deck ÷ q) to below ceil((n + 1)·deck ÷
/// q). Among the possible cards, the one with the earliest end is dealt first (Baruah et al. 1996, "Proportionate
/// progress").
fn spread_evenly(quotas: &[(Kind, usize)], deck: usize) -> Vec<Kind> {
    let mut dealt = vec![0; quotas.len()];
    (0..deck)
        .filter_map(|place| {
            let ready = |&i: &usize| dealt[i] < quotas[i].1 && dealt[i] * deck / quotas[i].1 <= place;
            let next =
                (0..quotas.len()).filter(ready).min_by_key(|&i| ((dealt[i] + 1) * deck).div_ceil(quotas[i].1))?;
            dealt[next] += 1;
            Some(quotas[next].0)
        })
        .collect()
}

/// Whole numbers that sum to `deck` and differ least from `shares` (Hamilton's method of largest remainders), except
/// that every positive share gets at least 1.
fn calculate_quotas(shares: &[(Kind, f64)], deck: usize) -> Vec<(Kind, usize)> {
    let mut out: Vec<(Kind, usize)> =
        shares.iter().map(|&(k, s)| (k, (s * deck as f64 + 1e-9).floor() as usize)).collect();
    let mut missing = deck.saturating_sub(out.iter().map(|&(_, n)| n).sum());
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let fraction = |i: usize| shares[i].1 * deck as f64 - (shares[i].1 * deck as f64 + 1e-9).floor();
    order.sort_by(|&a, &b| fraction(b).total_cmp(&fraction(a)));
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
            let most = (0..out.len()).max_by_key(|&other| out[other].1).unwrap_or(i);
            out[most].1 -= 1;
            out[i].1 = 1;
        }
    }
    out
}

fn running_counts(kinds: &[Kind], deck: usize, kind: Kind) -> Vec<u16> {
    let mut count = 0u16;
    kinds
        .iter()
        .enumerate()
        .map(|(position, &k)| {
            if position % deck == 0 {
                count = 0;
            }
            let before = count;
            count += u16::from(k == kind);
            before
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload_d() -> KindSequence {
        KindSequence::new(42, &[(Kind::Read, 0.95), (Kind::Insert, 0.05)], &[Kind::Insert], None).unwrap()
    }

    #[test]
    fn position_does_not_depend_on_the_cursor() {
        let weights = [(Kind::Read, 0.5), (Kind::Update, 0.5)];
        let thousands = [(Kind::Read, 0.999), (Kind::Update, 0.001)];
        let sequences = [(1, &weights), (2, &weights), (1, &thousands)]
            .map(|(seed, w)| KindSequence::new(seed, w, &[], None).unwrap());
        let mut cursor = DeckCursor::default();
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
        let mut count = 0;
        for index in 0..20_000 {
            assert_eq!(sequence.count_before(Kind::Insert, index), count, "index {index}");
            if sequence.kind(index) == Kind::Insert {
                assert_eq!(sequence.index_of(Kind::Insert, count), Some(index));
                count += 1;
            }
        }
    }

    /// YCSB's core workloads, and mixes with default proportions, without a common scale, and with a rare kind.
    const MIXES: [&[(Kind, f64)]; 7] = [
        &[(Kind::Read, 0.95), (Kind::Update, 0.05)],
        &[(Kind::Read, 1.0), (Kind::Update, 0.05)],
        &[(Kind::Read, 2.0), (Kind::Update, 1.0)],
        &[(Kind::Read, 0.5), (Kind::Update, 0.5)],
        &[(Kind::Read, 0.5), (Kind::Update, 0.3), (Kind::Insert, 0.15), (Kind::Scan, 0.1), (Kind::Delete, 0.07)],
        &[(Kind::Read, 0.999), (Kind::Insert, 0.000_5), (Kind::Delete, 0.000_5)],
        &[(Kind::Read, 0.333_333), (Kind::Update, 0.666_667)],
    ];

    #[test]
    fn quotas_are_exact_for_every_length() {
        for weights in MIXES {
            let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
            for seed in 1..3 {
                for end in (0..130).chain([999, 1_000, 1_050, 10_000, 12_345, 100_003]) {
                    let sequence = KindSequence::new(seed, weights, &[], Some(end)).unwrap();
                    for &(kind, weight) in weights {
                        let expected = end as f64 * weight / total;
                        let count = (0..end).filter(|&index| sequence.kind(index) == kind).count();
                        assert!((count as f64 - expected).abs() < 1.0 + 1e-6, "{kind:?} {weights:?} {end}: {count}");
                    }
                }
            }
        }
    }

    #[test]
    fn unplanned_ends_stray_by_part_of_a_deck() {
        for weights in MIXES {
            let total: f64 = weights.iter().map(|&(_, weight)| weight).sum();
            let sequence = KindSequence::new(7, weights, &[], None).unwrap();
            let mut counts = [0u64; Kind::COUNT];
            for index in 0..100_000u64 {
                for &(kind, weight) in weights {
                    let share = weight / total;
                    let deviation = (counts[kind as usize] as f64 - index as f64 * share).abs();
                    // A part contains up to 199 cards.
                    assert!(deviation < 2.0 + 199.0 * share * (1.0 - share), "{kind:?} {weights:?} {index}");
                }
                counts[sequence.kind(index) as usize] += 1;
            }
        }
    }

    #[test]
    fn proportions_without_a_sum_are_refused() {
        assert!(KindSequence::new(1, &[(Kind::Read, 0.0)], &[], None).is_none());
        assert!(KindSequence::new(1, &[(Kind::Read, f64::NAN)], &[], None).is_none());
    }

    #[test]
    fn rare_kinds_occur() {
        for (share, among, occurrences) in [(0.000_04, 100_000, 4), (0.000_14, 100_000, 14), (1e-9, 100_000, 2)] {
            let sequence =
                KindSequence::new(1, &[(Kind::Read, 1.0 - share), (Kind::Insert, share)], &[Kind::Insert], None)
                    .unwrap();
            let inserts = (0..among).filter(|&i| sequence.kind(i) == Kind::Insert).count();
            assert_eq!(
                (inserts, sequence.count_before(Kind::Insert, among)),
                (occurrences, occurrences as u64),
                "{share}"
            );
        }
    }

    #[test]
    fn the_order_differs_between_decks_and_seeds() {
        let kinds = |seed, block: u64| {
            let kinds = KindSequence::new(seed, &[(Kind::Read, 0.5), (Kind::Update, 0.5)], &[], None).unwrap();
            (0..100).map(|i| kinds.kind(block * 100 + i)).collect::<Vec<_>>()
        };
        assert_ne!(kinds(1, 0), kinds(1, 1));
        assert_ne!(kinds(1, 0), kinds(2, 0));
    }
}
