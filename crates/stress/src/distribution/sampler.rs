//! Draws values from distributions, and calculates their quantiles.

use super::Spec;
use super::erf::inverse_error_function;
use crate::random::JavaRandom;

/// Size of the table q in the algorithm of Ahrens & Dieter: Σ (ln 2)ʲ/j! for j = 1, 2 …, until the sum reaches 1 in
/// double precision.
const EXPONENTIAL_QUANTILES: usize = 16;

/// A distribution with its generator. The seed determines all draws.
///
/// A draw takes constant time on average, and does not allocate memory. `gaussian` uses the polar method (for two
/// values, 1.27 pairs of uniform numbers on average). `exp` uses algorithm SA (Ahrens & Dieter, "Computer methods for
/// sampling from the exponential and normal distributions", CACM 15 (10), 1972), which needs 2.44 uniform numbers on
/// average and no logarithm. `extreme` needs one uniform number, a logarithm and a power. `qextreme` adds a second
/// uniform number and a binary search among its quanta.
#[derive(Clone, Debug)]
pub struct Distribution {
    law: Law,
    random: JavaRandom,
}

#[derive(Clone, Debug)]
enum Law {
    Fixed(i64),
    Uniform {
        min: i64,
        max: i64,
        upper: f64,
    },
    Gaussian {
        min: i64,
        max: i64,
        mean: f64,
        stdev: f64,
    },
    Exponential {
        min: i64,
        delta: i64,
        mean: f64,
        quantiles: [f64; EXPONENTIAL_QUANTILES],
    },
    Extreme {
        min: i64,
        delta: i64,
        inverse_shape: f64,
        scale: f64,
    },
    /// `bounds` has one entry more than there are quanta. `within` chooses a value inside a quantum.
    Quantized {
        extreme: Box<Distribution>,
        bounds: Vec<i64>,
        within: JavaRandom,
    },
    Sequence {
        start: i64,
        count: i64,
        next: i64,
    },
    Inverse {
        inner: Box<Distribution>,
        min: i64,
        max: i64,
    },
    /// The cumulative share of each preset, and its value.
    Presets(Vec<(f64, f64)>),
}

impl Distribution {
    pub(super) fn new(spec: &Spec) -> Result<Self, String> {
        let refuse = |reason: &str| Err(format!("cannot draw from {spec}: {reason}"));
        let law = match *spec {
            Spec::Fixed { value } => Law::Fixed(value),
            Spec::Uniform { min, max } => {
                let upper = max.wrapping_add(1) as f64;
                if min as f64 >= upper {
                    return refuse("its range is reversed");
                }
                Law::Uniform { min, max, upper }
            }
            Spec::Gaussian { min, max, mean, stdev } => {
                if min > max {
                    return refuse("its range is reversed");
                }
                if stdev.is_nan() || stdev <= 0.0 || mean.is_nan() {
                    return refuse("its standard deviation is not positive");
                }
                Law::Gaussian { min, max, mean, stdev }
            }
            Spec::Exponential { min, max, mean } => {
                if min > max {
                    return refuse("its range is reversed");
                }
                if mean.is_nan() || mean <= 0.0 {
                    return refuse("its range has only two values");
                }
                Law::Exponential { min, delta: max.wrapping_sub(min), mean, quantiles: exponential_quantiles() }
            }
            Spec::Extreme { min, max, shape, scale } => {
                if min > max || scale.is_nan() || scale <= 0.0 {
                    return refuse("its range is reversed");
                }
                Law::Extreme { min, delta: max.wrapping_sub(min), inverse_shape: 1.0 / shape, scale }
            }
            Spec::QuantizedExtreme { min, max, shape, scale, quantas } => {
                if quantas == 0 {
                    return refuse("it has no quanta");
                }
                let extreme = Self::new(&Spec::Extreme { min, max, shape, scale })?;
                let mut bounds: Vec<i64> =
                    (0..=quantas).map(|quantum| extreme.quantile(f64::from(quantum) / f64::from(quantas))).collect();
                bounds[0] = extreme.min();
                bounds[quantas as usize] = extreme.max().wrapping_add(1);
                Law::Quantized { extreme: Box::new(extreme), bounds, within: JavaRandom::new(0) }
            }
            Spec::Sequence { start, end } => {
                let Some(count) = end.checked_sub(start).and_then(|count| count.checked_add(1)) else {
                    return refuse("it has more than 2^63 values");
                };
                if count < 1 {
                    return refuse("its range is reversed");
                }
                Law::Sequence { start, count, next: 0 }
            }
            Spec::Presets(ref presets) => {
                let total: f64 = presets.iter().map(|preset| preset.percent).sum();
                let mut sum = 0.0;
                let mut cumulate = |percent: f64| {
                    sum += percent;
                    sum / total
                };
                Law::Presets(presets.iter().map(|preset| (cumulate(preset.percent), preset.value)).collect())
            }
            Spec::Inverse(ref inner) => {
                let inner = Self::new(inner)?;
                Law::Inverse { min: inner.min(), max: inner.max(), inner: Box::new(inner) }
            }
        };
        Ok(Self { law, random: JavaRandom::new(0) })
    }

    /// Makes the following draws depend on `seed` alone.
    ///
    /// The tool chooses `qextreme`'s values within their quanta with an unseeded generator. Here they are repeatable.
    #[inline]
    pub fn seed(&mut self, seed: i64) {
        match &mut self.law {
            Law::Fixed(_) => {}
            Law::Sequence { next, .. } => *next = seed,
            Law::Inverse { inner, .. } => inner.seed(seed),
            Law::Quantized { extreme, within, .. } => {
                extreme.seed(seed);
                within.seed(!seed);
            }
            _ => self.random.seed(seed),
        }
    }

    /// The next value: the sample, truncated to an integer and limited to the range.
    ///
    /// A sequence that was seeded with a negative number gives values below its start, as in the tool
    /// (CASSANDRA-12490).
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    #[inline]
    pub fn next(&mut self) -> i64 {
        match &mut self.law {
            Law::Fixed(value) => *value,
            Law::Uniform { min, max, upper } => bound(*min, *max, draw_uniform(&mut self.random, *min, *upper)),
            Law::Gaussian { min, max, mean, stdev } => bound(*min, *max, *mean + *stdev * self.random.next_gaussian()),
            Law::Exponential { min, delta, mean, quantiles } => {
                offset(*min, *delta, draw_exponential(&mut self.random, *mean, quantiles))
            }
            Law::Extreme { min, delta, inverse_shape, scale } => {
                offset(*min, *delta, extreme_quantile(self.random.next_double(), *inverse_shape, *scale))
            }
            Law::Quantized { extreme, bounds, within } => {
                let quantum = usize::try_from(find_quantum(bounds, extreme.next())).unwrap_or(0).min(bounds.len() - 2);
                let width = bounds[quantum + 1].wrapping_sub(bounds[quantum]);
                bounds[quantum].wrapping_add((within.next_double() * width as f64) as i64)
            }
            Law::Sequence { start, count, next } => {
                let place = *next;
                *next = place.wrapping_add(1);
                start.wrapping_add(place % *count)
            }
            Law::Inverse { inner, min, max } => max.wrapping_sub(inner.next().wrapping_sub(*min)),
            Law::Presets(presets) => {
                let value = find_preset(presets, self.random.next_double());
                // 2.5 represents 2 or 3, equally often.
                let up = self.random.next_double() < value.fract();
                value as i64 + i64::from(up)
            }
        }
    }

    /// Skips values, without generating them for `fixed`, `uniform` and `seq`.
    pub fn skip(&mut self, count: u64) {
        match &mut self.law {
            Law::Fixed(_) => {}
            // Each value has 53 bits, and therefore takes two steps.
            Law::Uniform { .. } => self.random.skip(count.wrapping_mul(2)),
            Law::Sequence { next, .. } => *next = next.wrapping_add(count as i64),
            _ => {
                for _ in 0..count {
                    self.next();
                }
            }
        }
    }

    /// The next value, not truncated to an integer.
    #[inline]
    pub fn next_double(&mut self) -> f64 {
        match &mut self.law {
            Law::Uniform { min, max, upper } => {
                clamp(draw_uniform(&mut self.random, *min, *upper), *min as f64, *max as f64)
            }
            Law::Gaussian { min, max, mean, stdev } => {
                clamp(*mean + *stdev * self.random.next_gaussian(), *min as f64, *max as f64)
            }
            Law::Exponential { min, delta, mean, quantiles } => {
                *min as f64 + clamp(draw_exponential(&mut self.random, *mean, quantiles), 0.0, *delta as f64)
            }
            Law::Extreme { min, delta, inverse_shape, scale } => {
                let sample = extreme_quantile(self.random.next_double(), *inverse_shape, *scale);
                *min as f64 + clamp(sample, 0.0, *delta as f64)
            }
            Law::Inverse { inner, min, max } => *max as f64 - (inner.next_double() - *min as f64),
            Law::Fixed(_) | Law::Quantized { .. } | Law::Sequence { .. } | Law::Presets(_) => self.next() as f64,
        }
    }

    /// The value below which a share `p` of all draws lies.
    #[must_use]
    pub fn quantile(&self, p: f64) -> i64 {
        match &self.law {
            Law::Fixed(value) => *value,
            Law::Uniform { min, max, upper } => bound(*min, *max, p * (*upper - *min as f64) + *min as f64),
            Law::Gaussian { min, max, mean, stdev } => {
                bound(*min, *max, *mean + *stdev * std::f64::consts::SQRT_2 * inverse_error_function(2.0 * p - 1.0))
            }
            Law::Exponential { min, delta, mean, .. } => {
                let sample = if p >= 1.0 { f64::INFINITY } else { -*mean * (1.0 - p).ln() };
                offset(*min, *delta, sample)
            }
            Law::Extreme { min, delta, inverse_shape, scale } => {
                offset(*min, *delta, extreme_quantile(p, *inverse_shape, *scale))
            }
            Law::Quantized { extreme, bounds, .. } => {
                let quantum = find_quantum(bounds, extreme.quantile(p));
                let quanta = bounds.len() - 1;
                let Ok(quantum) = usize::try_from(quantum) else { return bounds[0] };
                if quantum >= quanta {
                    return bounds[quanta].wrapping_sub(1);
                }
                let within = (p - quantum as f64 / quanta as f64) * quanta as f64;
                let width = bounds[quantum + 1].wrapping_sub(bounds[quantum]) as f64;
                bounds[quantum].wrapping_add((within * width) as i64)
            }
            Law::Sequence { start, count, .. } => (*start as f64 + (*count - 1) as f64 * p) as i64,
            Law::Inverse { inner, min, max } => max.wrapping_sub(inner.quantile(p).wrapping_sub(*min)),
            Law::Presets(presets) => {
                let values = presets.iter().map(|preset| preset.1);
                if p <= 0.0 {
                    values.fold(f64::INFINITY, f64::min).floor() as i64
                } else if p >= 1.0 {
                    values.fold(0.0, f64::max).ceil() as i64
                } else {
                    find_preset(presets, p).round() as i64
                }
            }
        }
    }

    /// `minValue`: the quantile of 0. For an inverse distribution, this is its greatest value.
    #[must_use]
    pub fn min(&self) -> i64 {
        self.quantile(0.0)
    }

    /// `maxValue`: the quantile of 1.
    #[must_use]
    pub fn max(&self) -> i64 {
        self.quantile(1.0)
    }

    /// The mean of the quantiles of 0, 0.02 … 1, truncated; calculated in single precision with the tool's steps.
    #[must_use]
    pub fn average(&self) -> i64 {
        let (mut sum, mut count, mut p) = (0.0, 0, 0.0_f32);
        while p <= 1.0 {
            sum += self.quantile(f64::from(p)) as f64;
            count += 1;
            p = (f64::from(p) + 0.02) as f32;
        }
        (sum / f64::from(count)) as i64
    }
}

/// The value of the preset to which a share belongs.
fn find_preset(presets: &[(f64, f64)], p: f64) -> f64 {
    let at = presets.partition_point(|(share, _)| *share <= p).min(presets.len() - 1);
    presets[at].1
}

#[inline]
fn draw_uniform(random: &mut JavaRandom, min: i64, upper: f64) -> f64 {
    let u = random.next_double();
    u * upper + (1.0 - u) * min as f64
}

#[inline]
fn draw_exponential(random: &mut JavaRandom, mean: f64, quantiles: &[f64; EXPONENTIAL_QUANTILES]) -> f64 {
    let mut a = 0.0;
    let mut u = random.next_double();
    // A generator with 53 bits returns 0 once in 2⁵³ draws, and the doubling would then never stop.
    while u < 0.5 && u > 0.0 {
        a += quantiles[0];
        u *= 2.0;
    }
    u += u - 1.0;
    if u <= quantiles[0] {
        return mean * (a + u);
    }
    let mut least = random.next_double();
    let mut place = 0;
    loop {
        place += 1;
        least = least.min(random.next_double());
        if u <= quantiles[place.min(EXPONENTIAL_QUANTILES - 1)] {
            return mean * (a + least * quantiles[0]);
        }
    }
}

fn exponential_quantiles() -> [f64; EXPONENTIAL_QUANTILES] {
    let mut table = [1.0; EXPONENTIAL_QUANTILES];
    let (mut sum, mut power, mut factorial) = (0.0, 1.0, 1.0);
    for (place, entry) in table.iter_mut().enumerate() {
        power *= std::f64::consts::LN_2;
        factorial *= (place + 1) as f64;
        sum += power / factorial;
        *entry = sum;
    }
    table[EXPONENTIAL_QUANTILES - 1] = 1.0;
    table
}

#[inline]
fn extreme_quantile(p: f64, inverse_shape: f64, scale: f64) -> f64 {
    if p <= 0.0 {
        0.0
    } else if p >= 1.0 {
        f64::INFINITY
    } else {
        scale * (-(1.0 - p).ln()).powf(inverse_shape)
    }
}

/// The index of the quantum that contains a value; −1 for the first bound itself. This is the result of Java's
/// `binarySearch` minus 1.
fn find_quantum(bounds: &[i64], value: i64) -> isize {
    match bounds.binary_search(&value) {
        Ok(place) | Err(place) => place as isize - 1,
    }
}

#[inline]
fn bound(min: i64, max: i64, sample: f64) -> i64 {
    (sample as i64).clamp(min, max)
}

#[inline]
fn offset(min: i64, delta: i64, sample: f64) -> i64 {
    // A range of more than 2⁶³ values has a negative width, as in the tool.
    min.wrapping_add((sample as i64).max(0).min(delta))
}

#[inline]
fn clamp(sample: f64, min: f64, max: f64) -> f64 {
    sample.max(min).min(max)
}
