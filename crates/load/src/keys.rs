//! Chooses the record that an operation touches, and writes its key.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fnv::fnv;
use crate::random::Draws;
use crate::refusal::{Refusal, check_range};
use crate::zipf::{GrowingZipfian, ScrambledZipfian, THETA, TrueZipfian};

/// After this many draws that hit no existing record, the last draw is folded into the existing range, so that a range
/// with one remaining record cannot hang the run.
const REDRAWS: u64 = 64;
/// YCSB redraws without limit, and with its zipfian the redraws decide which keys are hot: if the range has room for a
/// hundred times the records, one draw in a hundred hits. The permitted number of redraws grows with the room, up to
/// this limit.
const REDRAWS_MAX: u64 = 10_000;

/// How record numbers become keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InsertOrder {
    /// `user` + FNV hash of the number: neighbouring numbers are scattered.
    #[default]
    Hashed,
    /// `user` followed by the number.
    Ordered,
}

/// How requests choose records. Names and defaults are from YCSB's `requestdistribution`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum KeyDistribution {
    /// Every record is equally likely.
    Uniform,
    /// Records in order, starting again at the first record after the last.
    Sequential,
    /// YCSB's scrambled zipfian: 10^10 ranks are hashed onto the records, regardless of their number.
    Zipfian,
    /// Zipfian over recency: the most recently inserted record is the hottest.
    Latest,
    /// A given share of the operations accesses a given share of the records.
    Hotspot {
        /// Share of the records that are hot.
        data_fraction: f64,
        /// Share of the operations that access these records.
        operation_fraction: f64,
    },
    /// Exponential distribution over recency.
    Exponential {
        /// Percentage of the operations that access the records in `fraction`.
        percentile: f64,
        /// Share of the records that these operations access.
        fraction: f64,
    },
    /// An exact zipfian: rank r of the actual records has weight r^−θ.
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

    /// Refuses parameters outside their ranges.
    pub fn check_distribution(&self) -> Result<(), Refusal> {
        match *self {
            Self::Hotspot { data_fraction, operation_fraction } => {
                check_range("work.keys.data_fraction", data_fraction, 0.0, 1.0)?;
                check_range("work.keys.operation_fraction", operation_fraction, 0.0, 1.0)
            }
            Self::Exponential { percentile, fraction } => {
                if !(percentile > 0.0 && percentile < 100.0) {
                    return Err(Refusal::for_value("work.keys.percentile", "above 0 and below 100", percentile));
                }
                check_range("work.keys.fraction", fraction, 1e-9, 1e9)
            }
            Self::TrueZipfian { theta } => check_range("work.keys.theta", theta, 0.01, 10.0),
            Self::Uniform | Self::Sequential | Self::Zipfian | Self::Latest => Ok(()),
        }
    }
}

/// The records that exist when an operation is sent: numbers `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing {
    /// The lowest number that is not deleted.
    pub first: u64,
    /// The highest number that was certainly inserted.
    pub last: u64,
}

impl Existing {
    /// Draws until an existing record is hit, at most `redraws` times. After that, folds the last draw into the
    /// existing range.
    #[expect(clippy::inline_always, reason = "a call on the hot path")]
    #[inline(always)]
    fn draw_existing(self, redraws: u64, mut draw: impl FnMut() -> Option<u64>) -> u64 {
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

/// The range from which a chooser draws: YCSB's `insertstart` and `insertcount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// Number of the first record.
    pub start: u64,
    /// Number of records.
    pub count: u64,
    /// Room for records that the run itself inserts. YCSB adds twice the expected number, for `zipfian` only.
    pub growth: u64,
}

/// Chooses records.
#[derive(Clone, Debug)]
pub enum Chooser {
    /// See [`KeyDistribution::Uniform`].
    Uniform(KeyRange),
    /// See [`KeyDistribution::Sequential`].
    Sequential(KeyRange),
    /// See [`KeyDistribution::Zipfian`]: the range, the ranks, and the maximum number of redraws.
    Zipfian(KeyRange, ScrambledZipfian, u64),
    /// See [`KeyDistribution::Latest`].
    Latest(GrowingZipfian),
    /// See [`KeyDistribution::Hotspot`]: the range, the number of hot records, and the share of operations.
    Hotspot(KeyRange, u64, f64),
    /// See [`KeyDistribution::Exponential`]: number of records per unit of the exponential distribution.
    Exponential(f64),
    /// See [`KeyDistribution::TrueZipfian`].
    TrueZipfian(KeyRange, TrueZipfian),
}

impl Chooser {
    /// A chooser over `range`; `records` is YCSB's `recordcount`.
    pub fn new(distribution: &KeyDistribution, range: KeyRange, records: u64) -> Self {
        let range = KeyRange { count: range.count.max(1), ..range };
        match *distribution {
            KeyDistribution::Uniform => Self::Uniform(range),
            KeyDistribution::Sequential => Self::Sequential(range),
            // The end of YCSB's range is inclusive, so the modulus is one more than the number of records, and a draw
            // of the extra record is repeated. The choice of hot keys depends on this.
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

    /// A zipfian over a range. The maximum number of redraws allows for records that are still to be inserted, but not
    /// for records that were already deleted.
    pub fn zipfian(range: KeyRange, zipfian: ScrambledZipfian) -> Self {
        Self::Zipfian(range, zipfian, (REDRAWS * (1 + range.growth / range.count.max(1))).min(REDRAWS_MAX))
    }

    /// Chooses a record number within `existing`. `turn` is the number of earlier choices.
    #[expect(clippy::inline_always, reason = "a call on the hot path")]
    #[inline(always)]
    pub fn choose_key(&self, turn: u64, existing: Existing, draws: &mut Draws) -> u64 {
        // Each distribution has a separate loop. With the choice inside a single loop, the constants of one
        // distribution (two powers for `latest`) would be computed before the loop for all distributions.
        match self {
            Self::Uniform(range) => {
                existing.draw_existing(REDRAWS, || Some(range.start + draws.draw_below(range.count)))
            }
            // A redraw would give the same record.
            Self::Sequential(range) => existing.draw_existing(1, || Some(range.start + turn % range.count)),
            Self::Zipfian(range, zipfian, redraws) => {
                existing.draw_existing(*redraws, || Some(range.start + zipfian.next_item(draws)))
            }
            Self::Latest(zipfian) => {
                let ranks = zipfian.latest_distribution(existing.last);
                existing.draw_existing(REDRAWS, || Some(existing.last - ranks.next_item(draws)))
            }
            Self::Hotspot(range, hot, share) => {
                let cold = range.count - (*hot).min(range.count);
                existing.draw_existing(REDRAWS, || {
                    let number = if (draws.next_f64() < *share && *hot > 0) || cold == 0 {
                        draws.draw_below(*hot)
                    } else {
                        hot + draws.draw_below(cold)
                    };
                    Some(range.start + number)
                })
            }
            Self::Exponential(scale) => {
                existing.draw_existing(REDRAWS, || existing.last.checked_sub((draws.draw_exponential() * scale) as u64))
            }
            Self::TrueZipfian(range, zipfian) => {
                existing.draw_existing(REDRAWS, || Some(range.start + zipfian.next_item(draws)))
            }
        }
    }
}

/// Writes the key of a record: `user`, then the number or its hash, with leading zeros up to `zero_padding` digits.
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

/// The smallest number with [`LONG_DIGITS`] digits. Only one hash in a thousand is smaller.
const LONG: u64 = 10_000_000_000_000_000;
const LONG_DIGITS: usize = 17;
/// Eight zeros as ASCII text.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Writes the key of a number of at least [`LONG_DIGITS`] digits in one piece, assembled in registers.
#[inline]
fn write_long_key(out: &mut Vec<u8>, number: u64) {
    let (high, low) = (number / LONG, number % LONG);
    let groups = [high, low / 100_000_000, low % 100_000_000].map(count_digits);
    // The number of leading zeros is four to seven, because `high` has at most four digits and is not 0.
    let zeros = groups[0].trailing_zeros() & !7;
    let [a, b, c] = groups.map(|word| word + ZEROS);
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

/// The eight decimal digits of a number below 10^8, one per byte, the first in the lowest byte. Separates all groups
/// of four digits at once, then all groups of two, then the single digits, by multiplications that are exact for
/// numbers this small.
#[inline]
const fn count_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

#[cfg(test)]
mod tests;
