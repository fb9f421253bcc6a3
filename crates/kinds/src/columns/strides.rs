//! The number of partitions that operations take, and the number of consecutive operations with the same name.

use loadstone_stress::distribution::Spec;
use loadstone_stress::random::mix_seed;

/// Separates the random draws of strides from the random draws of an operation.
const STRIDE: u64 = 0x7374_7269;
const TWO_POW_MINUS_53: f64 = 1.0 / (1_u64 << 53) as f64;

/// A block of values of a distribution, which is repeated, so that the sum before any index can be calculated.
#[derive(Debug)]
pub struct Strides {
    values: Vec<u64>,
    /// The sum of the values up to and including each position.
    ends: Vec<u64>,
}

impl Strides {
    const BLOCK: u64 = 64;

    pub fn new(spec: Option<&Spec>, seed: u64) -> Result<Self, String> {
        let sampler = spec.unwrap_or(&Spec::Fixed { value: 1 }).sampler()?;
        let quantile = |at: u64| sampler.quantile((at as f64 + 0.5) / Self::BLOCK as f64).max(1) as u64;
        let mut values: Vec<u64> = (0..Self::BLOCK).map(quantile).collect();
        for at in (1..values.len()).rev() {
            values.swap(at, (mix_seed(seed, at as u64, STRIDE) as u64 % (at as u64 + 1)) as usize);
        }
        let mut sum = 0;
        let mut add = |value: &u64| {
            sum += value;
            sum
        };
        let ends = values.iter().map(&mut add).collect();
        Ok(Self { values, ends })
    }

    /// The sum of the values before `index`, and the value at `index`.
    #[inline]
    pub fn value_at(&self, index: u64) -> (u64, u64) {
        let (block, at) = (index / Self::BLOCK, (index % Self::BLOCK) as usize);
        let before = if at == 0 { 0 } else { self.ends[at - 1] };
        ((block * self.total()).wrapping_add(before), self.values[at])
    }

    /// The index of the first value for which the sum of all values up to and including it is greater than `sum`.
    #[inline]
    pub fn find_stride(&self, sum: u64) -> u64 {
        let (block, rest) = (sum / self.total(), sum % self.total());
        block * Self::BLOCK + self.ends.partition_point(|end| *end <= rest) as u64
    }

    fn total(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    pub fn max(&self) -> u64 {
        self.values.iter().copied().max().unwrap_or(1)
    }
}

/// A random number in [0, 1), determined by the seed, the index and the purpose.
#[inline]
pub fn draw_uniform(seed: u64, index: u64, purpose: u64) -> f64 {
    (mix_seed(seed, index, purpose) as u64 >> 11) as f64 * TWO_POW_MINUS_53
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadstone_stress::distribution::parse_spec;

    #[test]
    fn strides_add_up() {
        for text in ["fixed(1)", "uniform(1..50)", "gaussian(1..10)"] {
            let strides = Strides::new(Some(&parse_spec(text).unwrap()), 7).unwrap();
            let mut sum = 0;
            for index in 0..1_000 {
                let (before, value) = strides.value_at(index);
                assert_eq!(before, sum, "{text} {index}");
                assert_eq!((strides.find_stride(sum), strides.find_stride(sum + value - 1)), (index, index));
                sum += value;
            }
        }
    }
}
