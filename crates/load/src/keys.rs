//! Which record an operation touches, and the text of its key.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fnv::fnv;
use crate::random::Draws;
use crate::zipf::{GrowingZipfian, ScrambledZipfian, THETA, TrueZipfian};

/// After this many draws outside the records that exist, the draw is folded into them instead: a range with one record
/// left must not hang the run.
const REDRAWS: u64 = 64;
/// YCSB draws without end, and for its zipfian that decides which keys are hot: with room for a hundred times the records,
/// one draw in a hundred hits. As many more draws are made, up to this many.
const REDRAWS_MAX: u64 = 10_000;

/// How keys follow from record numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InsertOrder {
    /// `user` + FNV hash of the number: neighbours scatter.
    #[default]
    Hashed,
    /// `user` + the number.
    Ordered,
}

/// How requests choose records; the names and defaults are YCSB's `requestdistribution`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum KeyDistribution {
    /// Every record alike.
    Uniform,
    /// One after the other, round and round.
    Sequential,
    /// YCSB's scrambled zipfian: 10^10 ranks hashed onto the records, whatever their number.
    Zipfian,
    /// Zipfian over recency: the last inserted record is the hottest.
    Latest,
    /// A share of the operations goes to a share of the records.
    Hotspot {
        /// Share of the records that is hot.
        data_fraction: f64,
        /// Share of the operations that goes there.
        operation_fraction: f64,
    },
    /// Exponential over recency.
    Exponential {
        /// This share, in percent, of the operations …
        percentile: f64,
        /// … goes to this share of the records.
        fraction: f64,
    },
    /// A zipfian that is one: rank r of the actual records has weight r^−θ.
    TrueZipfian {
        /// The exponent θ.
        theta: f64,
    },
}

impl KeyDistribution {
    /// The true zipfian with YCSB's exponent.
    pub const fn true_zipfian() -> Self {
        Self::TrueZipfian { theta: THETA }
    }
}

/// The records that exist for an operation: numbers `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing {
    /// The lowest number not deleted.
    pub first: u64,
    /// The highest number surely inserted.
    pub last: u64,
}

impl Existing {
    /// Draws until a record that exists comes, at most `redraws` times; then the last draw is folded into them.
    #[inline]
    fn draw(self, redraws: u64, mut draw: impl FnMut() -> Option<u64>) -> u64 {
        let mut number = 0;
        for _ in 0..redraws {
            match draw() {
                Some(n) if n >= self.first && n <= self.last => return n,
                Some(n) => number = n,
                None => {}
            }
        }
        self.first + number % (self.last.saturating_sub(self.first) + 1)
    }
}

/// The range a chooser draws from: what YCSB calls insertstart and insertcount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First record number.
    pub start: u64,
    /// How many records.
    pub count: u64,
    /// Room for records that the run itself will insert; YCSB adds twice the expected number, for `zipfian` only.
    pub growth: u64,
}

/// Chooses records.
#[derive(Clone, Debug)]
pub enum Chooser {
    /// See [`KeyDistribution::Uniform`].
    Uniform(Range),
    /// See [`KeyDistribution::Sequential`].
    Sequential(Range),
    /// See [`KeyDistribution::Zipfian`]: the range, the ranks, how often to draw again.
    Zipfian(Range, ScrambledZipfian, u64),
    /// See [`KeyDistribution::Latest`].
    Latest(GrowingZipfian),
    /// See [`KeyDistribution::Hotspot`]: the range, how many records are hot, the share of operations.
    Hotspot(Range, u64, f64),
    /// See [`KeyDistribution::Exponential`]: records per unit of the exponential.
    Exponential(f64),
    /// See [`KeyDistribution::TrueZipfian`].
    TrueZipfian(Range, TrueZipfian),
}

impl Chooser {
    /// A chooser over `range`; `records` is YCSB's recordcount.
    pub fn new(distribution: &KeyDistribution, range: Range, records: u64) -> Self {
        let range = Range { count: range.count.max(1), ..range };
        match *distribution {
            KeyDistribution::Uniform => Self::Uniform(range),
            KeyDistribution::Sequential => Self::Sequential(range),
            // YCSB's range end is inclusive, so the modulus is one more than there are records; the one past the end
            // is drawn again. Hot keys depend on it.
            KeyDistribution::Zipfian => Self::zipfian(range, ScrambledZipfian::new(range.count + range.growth + 1)),
            KeyDistribution::Latest => Self::Latest(GrowingZipfian::new(records)),
            KeyDistribution::Hotspot { data_fraction, operation_fraction } => {
                Self::Hotspot(range, (range.count as f64 * data_fraction) as u64, operation_fraction)
            }
            KeyDistribution::Exponential { percentile, fraction } => {
                Self::Exponential(records as f64 * fraction / -(1.0 - percentile / 100.0).ln())
            }
            KeyDistribution::TrueZipfian { theta } => {
                Self::TrueZipfian(range, TrueZipfian::new(range.count + range.growth, theta))
            }
        }
    }

    /// A zipfian over a range. Records that deletes have taken from it are not waited for: only what is still to be inserted
    /// is room.
    pub fn zipfian(range: Range, zipfian: ScrambledZipfian) -> Self {
        Self::Zipfian(range, zipfian, (REDRAWS * (1 + range.growth / range.count.max(1))).min(REDRAWS_MAX))
    }

    /// A record number within `existing`. `turn` counts the choices made before this one.
    #[inline]
    pub fn choose(&self, turn: u64, existing: Existing, draws: &mut Draws) -> u64 {
        // One loop for each distribution, not one with the choice inside: what is the same for all draws of one
        // distribution (two powers for `latest`) must not be computed ahead of the loop for the others as well.
        match self {
            Self::Uniform(range) => existing.draw(REDRAWS, || Some(range.start + draws.below(range.count))),
            // Drawn again it would be the same.
            Self::Sequential(range) => existing.draw(1, || Some(range.start + turn % range.count)),
            Self::Zipfian(range, zipfian, redraws) => {
                existing.draw(*redraws, || Some(range.start + zipfian.next(draws)))
            }
            Self::Latest(zipfian) => {
                let ranks = zipfian.over(existing.last);
                existing.draw(REDRAWS, || Some(existing.last - ranks.next(draws)))
            }
            Self::Hotspot(range, hot, share) => {
                let cold = range.count - (*hot).min(range.count);
                existing.draw(REDRAWS, || {
                    let number = if (draws.next_f64() < *share && *hot > 0) || cold == 0 {
                        draws.below(*hot)
                    } else {
                        hot + draws.below(cold)
                    };
                    Some(range.start + number)
                })
            }
            Self::Exponential(scale) => {
                existing.draw(REDRAWS, || existing.last.checked_sub((draws.exponential() * scale) as u64))
            }
            Self::TrueZipfian(range, zipfian) => existing.draw(REDRAWS, || Some(range.start + zipfian.next(draws))),
        }
    }
}

/// Writes the key of a record: `user`, zeros up to `zero_padding` digits, the number or its hash.
#[inline]
pub fn write_key(out: &mut Vec<u8>, number: u64, order: InsertOrder, zero_padding: usize) {
    let number = match order {
        InsertOrder::Hashed => fnv(number),
        InsertOrder::Ordered => number,
    };
    if number >= LONG && zero_padding <= LONG_DIGITS {
        write_long_key(out, number);
        return;
    }
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number).as_bytes();
    out.clear();
    out.extend_from_slice(b"user");
    for _ in digits.len()..zero_padding {
        out.push(b'0');
    }
    out.extend_from_slice(digits);
}

/// The least number of [`LONG_DIGITS`] digits. Only one hash in a thousand is less.
const LONG: u64 = 10_000_000_000_000_000;
const LONG_DIGITS: usize = 17;
/// Eight zeros as text.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The key of a number of at least [`LONG_DIGITS`] digits: put together in registers and written in one piece.
#[inline]
fn write_long_key(out: &mut Vec<u8>, number: u64) {
    let (high, low) = (number / LONG, number % LONG);
    let words = [high, low / 100_000_000, low % 100_000_000].map(digits);
    // The zeros that it begins with: four to seven, as `high` has at most four digits and is not 0.
    let zeros = words[0].trailing_zeros() & !7;
    let [a, b, c] = words.map(|word| word + ZEROS);
    let joined = |word: u64, next: u64| (word >> zeros | next << (64 - zeros)).to_le_bytes();
    let mut text = [0; 4 + 24];
    text[..4].copy_from_slice(b"user");
    text[4..12].copy_from_slice(&joined(a, b));
    text[12..20].copy_from_slice(&joined(b, c));
    text[20..].copy_from_slice(&(c >> zeros).to_le_bytes());
    out.clear();
    out.extend_from_slice(&text);
    out.truncate(text.len() - zeros as usize / 8);
}

/// The eight decimal digits of a number below 10^8, one a byte, the first in the lowest: all fours, then all twos, then all
/// ones are divided at once, by multiplications that are exact for numbers as small.
#[inline]
const fn digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;
    use proptest::prelude::*;

    #[test]
    fn all_fours_of_digits_are_written_as_the_standard_library_does() {
        for number in (0..10_000).flat_map(|four| [four, four * 10_000, 99_999_999 - four]) {
            assert_eq!((digits(number) + ZEROS).to_le_bytes(), format!("{number:08}").as_bytes());
        }
    }

    proptest! {
        #[test]
        fn keys_are_texts_of_numbers_with_zeros_before_them(number: u64, shift in 0u32..64, padding in 0usize..30) {
            let number = number >> shift;
            prop_assert_eq!(key(number, InsertOrder::Ordered, padding), format!("user{number:0padding$}"));
        }
    }

    #[test]
    fn the_shortest_and_longest_of_long_keys_are_right() {
        for number in [LONG - 1, LONG, LONG * 10 - 1, LONG * 10, LONG * 100, LONG * 1_000 - 1, LONG * 1_000, u64::MAX] {
            for padding in [0, 17, 18, 21] {
                assert_eq!(key(number, InsertOrder::Ordered, padding), format!("user{number:0padding$}"));
            }
        }
    }

    fn key(number: u64, order: InsertOrder, padding: usize) -> String {
        let mut out = Vec::new();
        write_key(&mut out, number, order, padding);
        String::from_utf8(out).unwrap()
    }

    /// Keys printed by YCSB 0.17.0's own classes.
    #[test]
    fn keys_are_ycsbs() {
        for (number, hashed) in [
            (0, "user6284781860667377211"),
            (1, "user8517097267634966620"),
            (2, "user1820151046732198393"),
            (9, "user9105318085603802964"),
            (100, "user879817313296471393"),
            (255, "user8064062821143829734"),
            (256, "user2056600594528442646"),
            (65_536, "user3733039891711757428"),
            (1_000_000, "user1011632231655643464"),
            (2_147_483_648, "user5860980763039959109"),
            (9_999_999_999, "user3605131173811637474"),
            (u64::MAX, "user8289690350564177859"),
        ] {
            assert_eq!(key(number, InsertOrder::Hashed, 1), hashed);
        }
        assert_eq!(key(0, InsertOrder::Hashed, 25), "user0000006284781860667377211");
        assert_eq!(key(100, InsertOrder::Hashed, 25), "user0000000879817313296471393");
        assert_eq!(key(0, InsertOrder::Ordered, 1), "user0");
        assert_eq!(key(999, InsertOrder::Ordered, 8), "user00000999");
        assert_eq!(key(123_456_789, InsertOrder::Ordered, 8), "user123456789");
        assert_eq!(key(9, InsertOrder::Ordered, 20), "user00000000000000000009");
    }

    const THOUSAND: Range = Range { start: 0, count: 1_000, growth: 0 };
    const ALL: Existing = Existing { first: 0, last: 999 };

    /// Shares over a million choices from 1,000 records.
    fn shares(distribution: &KeyDistribution) -> Vec<f64> {
        let chooser = Chooser::new(distribution, THOUSAND, 1_000);
        let mut counts = vec![0f64; 1_000];
        for index in 0..1_000_000 {
            counts[chooser.choose(index, ALL, &mut Draws::at(3, index, Purpose::Key)) as usize] += 1e-6;
        }
        counts
    }

    fn sorted(mut shares: Vec<f64>) -> Vec<f64> {
        shares.sort_by(|a, b| b.total_cmp(a));
        shares
    }

    /// Four standard errors of a share over a million draws.
    fn assert_share(got: f64, expected: f64, what: &str) {
        assert!((got - expected).abs() < 4.0 * (expected / 1e6).sqrt() + 2e-5, "{what}: {got} against {expected}");
    }

    /// The shares that 20 million draws of YCSB's own generator showed.
    #[test]
    fn zipfian_is_as_flat_as_ycsbs() {
        let by_key = shares(&KeyDistribution::Zipfian);
        assert_share(by_key[144], 0.038_58, "hottest");
        assert_share(by_key[610], 0.019_95, "second");
        let by_rank = sorted(by_key);
        assert_share(by_rank[..10].iter().sum(), 0.126, "top 10");
        assert!((by_rank[..100].iter().sum::<f64>() - 0.29).abs() < 2e-3);
    }

    #[test]
    fn the_other_distributions_are_ycsbs() {
        let uniform = shares(&KeyDistribution::Uniform);
        assert!(uniform.iter().all(|&s| (s - 0.001).abs() < 0.000_2));
        let hot = shares(&KeyDistribution::Hotspot { data_fraction: 0.2, operation_fraction: 0.8 });
        assert_share(hot[..200].iter().sum(), 0.8, "hot records");
        assert_share(hot[0], 0.004, "one hot record");
        let latest = shares(&KeyDistribution::Latest);
        assert_share(latest[999], 0.129_4, "latest, last");
        assert_share(latest[998], 0.065_1, "latest, before last");
        assert!(latest[0] == 0.0, "YCSB never chooses record 0 here");
        let exponential = shares(&KeyDistribution::Exponential { percentile: 95.0, fraction: 0.857_142_857_1 });
        let mean: f64 = exponential.iter().enumerate().map(|(n, s)| s * (999 - n) as f64).sum();
        // 286.1 less the tail that is drawn again.
        assert!((mean - 254.8).abs() < 2.0, "mean distance {mean}");
        let sequential = shares(&KeyDistribution::Sequential);
        assert!(sequential.iter().all(|&s| (s - 0.001).abs() < 1e-9));
        let zipf = sorted(shares(&KeyDistribution::true_zipfian()));
        assert_share(zipf[0], 0.129_4, "true zipfian, hottest");
        // zeta(100) / zeta(1000); Gray's approximation, which YCSB uses, puts 0.696 there.
        assert!((zipf[..100].iter().sum::<f64>() - 0.685).abs() < 2e-3);
    }

    #[test]
    fn zipfian_keeps_its_hot_keys_where_most_of_its_range_is_not_inserted_yet() {
        let range = Range { growth: 100_000, ..THOUSAND };
        let chooser = Chooser::new(&KeyDistribution::Zipfian, range, 1_000);
        // What YCSB does: it draws until a record is hit.
        let zipfian = ScrambledZipfian::new(range.count + range.growth + 1);
        let endless = |index: u64| {
            let mut draws = Draws::at(3, index, Purpose::Key);
            std::iter::repeat_with(|| zipfian.next(&mut draws)).find(|&number| number <= ALL.last)
        };
        for index in 0..2_000 {
            let chosen = chooser.choose(index, ALL, &mut Draws::at(3, index, Purpose::Key));
            assert_eq!(Some(chosen), endless(index));
        }
    }

    #[test]
    fn records_beyond_the_range_are_not_drawn_for() {
        // Deletes and inserts have moved everything that there is out of a range that was to have no growth.
        let chooser = Chooser::new(&KeyDistribution::Zipfian, THOUSAND, 1_000);
        let (moved, mut draws) = (Existing { first: 5_000, last: 5_999 }, Draws::at(3, 1, Purpose::Key));
        let mut same = draws.clone();
        assert!((5_000..6_000).contains(&chooser.choose(0, moved, &mut draws)));
        let Chooser::Zipfian(_, zipfian, _) = &chooser else { unreachable!() };
        for _ in 0..REDRAWS {
            zipfian.next(&mut same);
        }
        assert_eq!(draws.next_u64(), same.next_u64(), "as many draws as before");
    }

    #[test]
    fn a_range_with_one_record_left_does_not_hang() {
        for distribution in [KeyDistribution::Uniform, KeyDistribution::Zipfian, KeyDistribution::Sequential] {
            let chooser = Chooser::new(&distribution, THOUSAND, 1_000);
            let only = Existing { first: 777, last: 777 };
            assert_eq!(chooser.choose(0, only, &mut Draws::at(1, 1, Purpose::Key)), 777);
        }
    }
}
