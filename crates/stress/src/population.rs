//! The partitions that operations visit: `-pop` and `-insert revisit=`.
//!
//! Source: Cassandra's `SeedManager.java`. The tool draws seeds from a single counter or from an unseeded generator,
//! for all threads. Here, the partition number of an operation is a pure function of the operation's index. Runs are
//! therefore repeatable, and segments share a population without communicating.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compat::Compat;
use crate::distribution::{Distribution, Spec};
use crate::random::mix_seed;

const NUMBER: u64 = 0x6e75_6d62;
const LOOKBACK: u64 = 0x6c6f_6f6b;

/// How the numbers of partitions are chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// All numbers of the range, in order.
    Sequence {
        /// The first number.
        first: i64,
        /// The last number.
        last: i64,
        /// Whether the sequence starts again after its end.
        wrap: bool,
        /// The distance by which reads lag behind writes (`read-lookback=`).
        read_lookback: Option<Spec>,
    },
    /// Independent random draws.
    Distribution(Spec),
}

/// A share of a sequence: the k-th of n equal parts, counted from 0 (`segment=k/n`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// The number of the share, from 0.
    pub part: u64,
    /// The number of shares.
    pub parts: u64,
}

/// The partitions of one run.
#[derive(Clone, Debug)]
pub struct Population {
    law: SelectionLaw,
    multiplier: i64,
    seed: u64,
}

#[derive(Clone, Debug)]
enum SelectionLaw {
    Sequence {
        first: i64,
        count: u64,
        wrap: bool,
        lookback: Option<Distribution>,
    },
    /// `counts` is true for a sequence and for an inverted sequence: the operation's index selects the number.
    Distribution {
        distribution: Distribution,
        counts: bool,
    },
}

impl Population {
    /// A population. `seed` determines the draws of a distribution and of `read-lookback`, but not the order of a
    /// sequence. A share of a sequence is contiguous; a share of a distribution is the whole distribution.
    ///
    /// # Errors
    /// The range is reversed or empty, the share is invalid or empty, a distribution has no sampler, the lookback can
    /// exceed the sequence, or `revisit` has no valid range.
    pub fn new(
        selection: &Selection,
        revisit: &Spec,
        compat: Compat,
        share: Option<Share>,
        seed: u64,
    ) -> Result<Self, String> {
        let multiplier = seed_multiplier(revisit, compat)?;
        let law = match selection {
            Selection::Sequence { first, last, wrap, read_lookback } => {
                let total = (i128::from(*last) - i128::from(*first) + 1).max(0) as u128;
                let Ok(total) = u64::try_from(total) else { return Err("seq= has more than 2^64 numbers".to_owned()) };
                if total == 0 {
                    return Err(format!("seq={first}..{last} is empty: its start is greater than its end"));
                }
                let (skipped, count) = share.map_or(Ok((0, total)), |share| cut_share(total, share))?;
                let lookback = read_lookback.as_ref().map(Spec::sampler).transpose()?;
                if let Some(lookback) = &lookback
                    && i128::from(lookback.max()) > i128::from(*first) + i128::from(total)
                {
                    return Err(format!(
                        "Invalid lookback distribution; max value is {}, but series only ranges from 0 to {}",
                        lookback.max(),
                        i128::from(*first) + i128::from(total)
                    ));
                }
                SelectionLaw::Sequence { first: first.wrapping_add(skipped as i64), count, wrap: *wrap, lookback }
            }
            Selection::Distribution(spec) => {
                SelectionLaw::Distribution { distribution: spec.sampler()?, counts: is_sequence(spec) }
            }
        };
        Ok(Self { law, multiplier, seed })
    }

    /// The partition number of the operation at `index`; `None` after the end of a sequence without `wrap`.
    #[inline]
    pub fn number_at(&mut self, index: u64) -> Option<i64> {
        match &mut self.law {
            SelectionLaw::Sequence { first, count, wrap, .. } => {
                if index < *count {
                    Some(first.wrapping_add(index as i64))
                } else if *wrap {
                    Some(first.wrapping_add((index % *count) as i64))
                } else {
                    None
                }
            }
            SelectionLaw::Distribution { distribution, counts } => {
                distribution.seed(if *counts { index as i64 } else { mix_seed(self.seed, index, NUMBER) });
                Some(distribution.next())
            }
        }
    }

    /// The partition number of the read at `index`, while the first `written` numbers of the sequence have been
    /// acknowledged.
    ///
    /// Without `read-lookback`, the result is the same as for [`Self::number_at`]. Otherwise, the result's position in
    /// the sequence, counted from 0, is `written` − draw, but at most `written` − 1; if `written` is smaller than the
    /// draw, the position is draw mod `written`. The result is `None` if no number has been acknowledged yet. In this
    /// case, the tool of 4.x omits the multiplier, and reads keys that were never written.
    #[inline]
    pub fn read_number_at(&mut self, index: u64, written: u64) -> Option<i64> {
        let SelectionLaw::Sequence { first, count, lookback: Some(lookback), .. } = &mut self.law else {
            return self.number_at(index);
        };
        let written = i64::try_from(written.min(*count)).unwrap_or(i64::MAX);
        if written == 0 {
            return None;
        }
        lookback.seed(mix_seed(self.seed, index, LOOKBACK));
        let draw = lookback.next();
        let place = written.checked_sub(draw).filter(|place| *place >= 0);
        let place = place.unwrap_or_else(|| draw.rem_euclid(written)).min(written - 1);
        Some(first.wrapping_add(place))
    }

    /// The seed of a partition: its number, which 4.0 and later multiply (CASSANDRA-12744).
    #[inline]
    #[must_use]
    pub fn seed_of(&self, number: i64) -> i64 {
        number.wrapping_mul(self.multiplier)
    }

    /// The number of operations after which a sequence ends or starts again; `None` for a distribution.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match &self.law {
            SelectionLaw::Sequence { count, .. } => Some(*count),
            SelectionLaw::Distribution { .. } => None,
        }
    }

    /// The minimum and maximum number.
    #[must_use]
    pub fn range(&self) -> (i64, i64) {
        match &self.law {
            SelectionLaw::Sequence { first, count, .. } => (*first, first.wrapping_add((*count - 1) as i64)),
            SelectionLaw::Distribution { distribution, .. } => {
                let (a, b) = (distribution.min(), distribution.max());
                (a.min(b), a.max(b))
            }
        }
    }
}

/// The factor by which all numbers are multiplied: 1 up to 3.11; since 4.0 it is 1 + round(10^(22 − log₁₀ size)), where
/// size is the size of the range of `revisit`.
///
/// For a range of at most 1,084 values, the factor overflows, as in the tool, and every partition has the same key:
/// see [`is_single_partition`].
///
/// # Errors
/// As in the tool: the range has a negative start or more than 2³¹ − 1 values.
pub fn seed_multiplier(revisit: &Spec, compat: Compat) -> Result<i64, String> {
    let (min, max) = revisit.range()?;
    let size = i128::from(max) - i128::from(min) + 1;
    if min < 0 || size > i128::from(i32::MAX) {
        return Err("sample range is invalid".to_owned());
    }
    if !compat.multiplies_seeds() {
        return Ok(1);
    }
    // Rounds like Java's `Math.round`: half up, and saturating.
    let factor = (10_f64.powf(22.0 - (size as f64).log10()) + 0.5).floor() as i64;
    Ok(factor.wrapping_add(1))
}

/// Whether all numbers have the same seed because the multiplier overflowed.
#[must_use]
pub fn is_single_partition(multiplier: i64) -> bool {
    multiplier == i64::MIN
}

fn is_sequence(spec: &Spec) -> bool {
    match spec {
        Spec::Sequence { .. } => true,
        Spec::Inverse(inner) => is_sequence(inner),
        _ => false,
    }
}

/// The start and the length of a share.
fn cut_share(total: u64, share: Share) -> Result<(u64, u64), String> {
    let Share { part, parts } = share;
    if part >= parts {
        return Err(format!(
            "segment={part}/{parts}: segments are counted from 0, so the first number must be less than the second"
        ));
    }
    let border = |part: u64| (u128::from(total) * u128::from(part) / u128::from(parts)) as u64;
    let (start, end) = (border(part), border(part + 1));
    if start == end {
        return Err(format!(
            "segment={part}/{parts} of {total} numbers is empty: there are fewer numbers than segments"
        ));
    }
    Ok((start, end - start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::parse_spec;

    fn revisit(text: &str) -> Spec {
        parse_spec(text).unwrap()
    }

    fn sequence(first: i64, last: i64, wrap: bool) -> Selection {
        Selection::Sequence { first, last, wrap, read_lookback: None }
    }

    fn population(selection: &Selection, share: Option<Share>) -> Population {
        Population::new(selection, &revisit("uniform(1..1M)"), Compat::V4, share, 42).unwrap()
    }

    #[test]
    fn multipliers_match_the_tool() {
        let multiplier = |text: &str, compat| seed_multiplier(&revisit(text), compat).unwrap();
        assert_eq!(multiplier("uniform(1..1M)", Compat::V4), 10_000_000_000_000_001);
        assert_eq!(multiplier("uniform(1..1M)", Compat::V3_11), 1);
        assert!(is_single_partition(multiplier("uniform(1..1084)", Compat::V4)));
        assert!(!is_single_partition(multiplier("uniform(1..1085)", Compat::V5)));
        assert!(seed_multiplier(&revisit("uniform(-1..10)"), Compat::V3_0).is_err());
        assert!(seed_multiplier(&revisit("uniform(1..3b)"), Compat::V4).is_err());
    }

    #[test]
    fn sequence_wraps_or_ends() {
        let mut wrapping = population(&sequence(5, 7, true), None);
        let numbers: Vec<_> = (0..5).map(|index| wrapping.number_at(index).unwrap()).collect();
        assert_eq!(numbers, [5, 6, 7, 5, 6]);
        let mut ending = population(&sequence(5, 7, false), None);
        assert_eq!((ending.number_at(2), ending.number_at(3)), (Some(7), None));
    }

    #[test]
    fn shares_cover_a_sequence_once() {
        for parts in [1, 2, 3, 7, 10] {
            let mut numbers = Vec::new();
            for part in 0..parts {
                let mut share = population(&sequence(1, 10, false), Some(Share { part, parts }));
                numbers.extend((0..).map_while(|index| share.number_at(index)));
            }
            assert_eq!(numbers, (1..=10).collect::<Vec<_>>(), "{parts} parts");
        }
        let empty = Population::new(
            &sequence(1, 2, true),
            &revisit("uniform(1..1M)"),
            Compat::V4,
            Some(Share { part: 0, parts: 3 }),
            0,
        );
        assert!(empty.is_err());
    }

    #[test]
    fn draws_depend_on_the_index_alone() {
        let selection = Selection::Distribution(parse_spec("gaussian(1..1M)").unwrap());
        let (mut forwards, mut backwards) = (population(&selection, None), population(&selection, None));
        let first: Vec<_> = (0..100).map(|index| forwards.number_at(index)).collect();
        let mut second: Vec<_> = (0..100).rev().map(|index| backwards.number_at(index)).collect();
        second.reverse();
        assert_eq!(first, second);
        assert!(first.iter().all(|number| (1..=1_000_000).contains(&number.unwrap())));
    }

    #[test]
    fn gaussian_draws_have_its_moments() {
        let mut population = population(&Selection::Distribution(parse_spec("gaussian(1..1M)").unwrap()), None);
        let numbers: Vec<f64> = (0..200_000).map(|index| population.number_at(index).unwrap() as f64).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let deviation =
            (numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / numbers.len() as f64).sqrt();
        // 99.7 % of the draws are inside the range; the remaining draws are at its bounds.
        assert!((mean - 500_000.0).abs() < 2_000.0, "{mean}");
        assert!((deviation - 166_000.0).abs() < 2_000.0, "{deviation}");
    }

    #[test]
    fn sequence_as_distribution_counts_operations() {
        let mut population = population(&Selection::Distribution(parse_spec("seq(11..13)").unwrap()), None);
        let numbers: Vec<_> = (0..5).map(|index| population.number_at(index).unwrap()).collect();
        assert_eq!(numbers, [11, 12, 13, 11, 12]);
    }

    #[test]
    fn lookback_reads_written_numbers_only() {
        let selection = Selection::Sequence {
            first: 100,
            last: 1_099,
            wrap: true,
            read_lookback: Some(parse_spec("exp(0..500)").unwrap()),
        };
        let mut population = population(&selection, None);
        assert_eq!(population.read_number_at(0, 0), None);
        for written in [1, 2, 10, 499, 1_000, 5_000] {
            for index in 0..200 {
                let number = population.read_number_at(index, written).unwrap();
                assert!((100..100 + written.min(1_000) as i64).contains(&number), "{number} of {written}");
            }
        }
    }

    #[test]
    fn reversed_sequence_is_refused() {
        let result = Population::new(&sequence(5, 1, true), &revisit("uniform(1..1M)"), Compat::V4, None, 0);
        assert!(result.unwrap_err().contains("seq=5..1"));
    }
}
