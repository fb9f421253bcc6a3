//! The lengths of field values.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::Draws;
use crate::refusal::Refusal;
use crate::zipf::Zipfian;

/// The length of a field's value, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "lowercase", deny_unknown_fields)]
pub enum Length {
    /// A fixed length.
    Constant {
        /// The length, bytes.
        bytes: usize,
    },
    /// Uniform between two lengths, both inclusive.
    Uniform {
        /// Shortest length, bytes.
        min: usize,
        /// Longest length, bytes.
        max: usize,
    },
    /// Zipfian between two lengths; the shortest is the most frequent.
    Zipfian {
        /// Shortest length, bytes.
        min: usize,
        /// Longest length, bytes.
        max: usize,
    },
    /// From a file of counts: `counts[i]` values of `(i + 1) × block` bytes, including YCSB's off-by-one error.
    Histogram {
        /// Bytes per step.
        block: usize,
        /// The weight of each step.
        counts: Vec<u64>,
    },
}

/// Maximum size of a block, bytes. Larger values belong in a file system.
const BLOCK_MAX: usize = 1 << 30;
/// A limit that prevents an overflow of the histogram's sum.
const COUNT_MAX: u64 = 1 << 48;

impl Length {
    /// Refuses lengths that cannot be drawn. `field` is the path of the length in the spec.
    pub fn check_length(&self, field: &str) -> Result<(), Refusal> {
        match self {
            Self::Constant { .. } => Ok(()),
            Self::Uniform { min, max } | Self::Zipfian { min, max } => {
                if min > max {
                    let message = format!("{{{field}.min}} {min} is above {{{field}.max}} {max}");
                    return Err(Refusal::new(message, format!("raise {{{field}.max}}")));
                }
                if i64::try_from(*max).is_err() {
                    return Err(Refusal::for_value(&format!("{field}.max"), &format!("at most {}", i64::MAX), max));
                }
                Ok(())
            }
            Self::Histogram { block, counts } => {
                if *block == 0 || *block > BLOCK_MAX {
                    return Err(Refusal::for_value(&format!("{field}.block"), &format!("1 to {BLOCK_MAX}"), block));
                }
                if let Some(count) = counts.iter().find(|&&count| count >= COUNT_MAX) {
                    return Err(Refusal::for_value(&format!("{field}.counts"), &format!("below {COUNT_MAX}"), count));
                }
                if counts.iter().all(|&count| count == 0) {
                    let hint = format!("set at least one of {{{field}.counts}} above 0");
                    return Err(Refusal::new(format!("{{{field}.counts}} has no count above 0"), hint));
                }
                Ok(())
            }
        }
    }
}

/// Draws lengths.
#[derive(Clone, Debug)]
pub enum Lengths {
    /// A fixed number of bytes.
    Constant(usize),
    /// Uniform from the first to the second length, inclusive.
    Uniform(usize, usize),
    /// A minimum length, and the zipfian whose draws are added to it.
    Zipfian(usize, Zipfian),
    /// The block size, the counts, and their sum.
    Histogram(usize, Vec<u64>, u64),
}

impl Lengths {
    /// A generator of lengths.
    pub fn new(length: &Length) -> Self {
        match *length {
            Length::Constant { bytes } => Self::Constant(bytes),
            Length::Uniform { min, max } => Self::Uniform(min, max.max(min)),
            Length::Zipfian { min, max } => Self::Zipfian(min, Zipfian::new((max.max(min) - min + 1) as u64)),
            Length::Histogram { block, ref counts } => Self::Histogram(block, counts.clone(), counts.iter().sum()),
        }
    }

    /// The longest possible length, bytes.
    pub fn longest(length: &Length) -> usize {
        match length {
            Length::Constant { bytes } => *bytes,
            Length::Uniform { min, max } | Length::Zipfian { min, max } => *max.max(min),
            Length::Histogram { block, counts } => block.saturating_mul(counts.len()),
        }
    }

    /// The shortest possible length, bytes.
    pub fn shortest(length: &Length) -> usize {
        match length {
            Length::Constant { bytes } => *bytes,
            Length::Uniform { min, .. } | Length::Zipfian { min, .. } => *min,
            // The last count is never drawn, so a single count gives length 0; see `next_length`.
            Length::Histogram { block, counts } => {
                if counts.len() > 1 {
                    *block
                } else {
                    0
                }
            }
        }
    }

    /// The mean length, bytes, calculated as in YCSB's `ConstantOccupancyWorkload`.
    pub fn mean(length: &Length) -> f64 {
        match length {
            Length::Constant { bytes } => *bytes as f64,
            Length::Uniform { min, max } => f64::midpoint(*min as f64, *max as f64),
            Length::Zipfian { min, max } => {
                let weight = |i: usize| ((i - min + 1) as f64).powf(-crate::zipf::THETA);
                let total: f64 = (*min..=*max).map(weight).sum();
                (*min..=*max).map(|i| i as f64 * weight(i)).sum::<f64>() / total
            }
            Length::Histogram { block, counts } => {
                let total: u64 = counts.iter().sum();
                // As in YCSB, blocks are numbered from 0 in the mean, but from 1 in draws.
                let sum: f64 = counts.iter().enumerate().map(|(i, &c)| c as f64 * (i * block) as f64).sum();
                sum / total.max(1) as f64
            }
        }
    }

    /// Draws the next length, bytes.
    #[inline]
    pub fn next_length(&self, draws: &mut Draws) -> usize {
        if let Self::Constant(bytes) = self { *bytes } else { self.draw_length(draws) }
    }

    fn draw_length(&self, draws: &mut Draws) -> usize {
        match self {
            Self::Constant(bytes) => *bytes,
            Self::Uniform(min, max) => min + draws.draw_below((max - min + 1) as u64) as usize,
            Self::Zipfian(min, zipfian) => min + zipfian.rank(draws.next_f64()) as usize,
            Self::Histogram(block, counts, total) => {
                // YCSB subtracts first, then tests for ≤ 0, and never tests the last count.
                let mut rest = i128::from(draws.draw_below(*total));
                for (i, &count) in counts.iter().enumerate().take(counts.len().saturating_sub(1)) {
                    rest -= i128::from(count);
                    if rest <= 0 {
                        return (i + 1) * block;
                    }
                }
                counts.len().saturating_sub(1) * block
            }
        }
    }
}

#[cfg(test)]
mod tests;
