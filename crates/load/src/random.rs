//! Random numbers as a pure function of (seed, index, purpose).
//!
//! An operation must be the same on any client, so no generator has a state that a thread could advance: every
//! operation opens a separate short stream at its index. The mixing function is `SplitMix64` (Steele, Lea & Flood,
//! "Fast splittable pseudorandom number generators", OOPSLA 2014), whose finaliser passes `BigCrush`. Opening a stream
//! costs two multiplications, and each draw costs two more.

/// The purpose of a stream of draws. It makes, for example, the choice of an operation's key independent of its value
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The kinds of operation at the positions of a deck.
    KindSequence = 0x6465_616c,
    /// The record that an operation touches, and the number of records that a scan reads.
    Key = 0x6b65_7973,
    /// Value bytes and the choice of fields.
    Value = 0x7661_6c75,
    /// Gaps between arrivals.
    Arrival = 0x6172_7269,
    /// Sleeps between retries.
    Retry = 0x7265_7472,
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `SplitMix64` finaliser: a bijection on 64 bits that passes avalanche tests.
#[inline]
#[must_use]
pub const fn mix_bits(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The streams of one purpose under one seed, for callers that open many of them: half of the work is done only once.
#[derive(Clone, Copy, Debug)]
pub struct Streams(u64);

impl Streams {
    /// The streams of `purpose` under `seed`.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64, purpose: Purpose) -> Self {
        // There are two rounds of mixing, so that equal differences of seeds or indices do not give shifted copies of a
        // stream.
        Self(mix_bits(seed ^ (purpose as u64).wrapping_mul(GOLDEN)))
    }

    /// The stream at `index`.
    #[inline]
    #[must_use]
    pub const fn stream(self, index: u64) -> Draws {
        Draws(mix_bits(self.0.wrapping_add(index.wrapping_mul(GOLDEN))))
    }
}

/// A stream of random draws.
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The stream of `purpose` for the operation (or block, or table) at `index` under `seed`.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64, index: u64, purpose: Purpose) -> Self {
        Streams::new(seed, purpose).stream(index)
    }

    /// Draws 64 uniform bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix_bits(self.0)
    }

    /// Draws a uniform number in `[0, 1)`, with 53 random bits like `ThreadLocalRandom.nextDouble`.
    #[inline]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Draws a uniform number in `[0, n)`; 0 for `n` = 0. Uses a multiplication (Lemire 2019) without the rejection
    /// step: the bias is below n ÷ 2^64, far too small to be visible in a run.
    #[inline]
    pub fn draw_below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Draws from the exponential distribution with mean 1.
    #[inline]
    pub fn draw_exponential(&mut self) -> f64 {
        // 1 − u is in (0, 1], so the logarithm is finite.
        -(1.0 - self.next_f64()).ln()
    }

    /// Draws from the standard normal distribution (Box & Muller 1958). The second value of the pair is discarded,
    /// because this is called only once per 1,024 operations.
    pub fn draw_normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.next_f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.next_f64()).cos()
    }

    /// Draws from the gamma distribution with the given shape (≥ 1) and scale 1 (Marsaglia & Tsang, ACM TOMS 26(3),
    /// 2000).
    pub fn draw_gamma(&mut self, shape: f64) -> f64 {
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.draw_normal();
            let v = (1.0 + c * x).powi(3);
            if v <= 0.0 {
                continue;
            }
            let u = 1.0 - self.next_f64();
            if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }

    /// Shuffles `items` (Fisher & Yates).
    pub fn shuffle_items<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.draw_below(i as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_only_on_their_place() {
        let stream = |seed, index, purpose| Draws::new(seed, index, purpose).next_u64();
        assert_eq!(stream(7, 3, Purpose::Key), stream(7, 3, Purpose::Key));
        assert_ne!(stream(7, 3, Purpose::Key), stream(7, 4, Purpose::Key));
        assert_ne!(stream(7, 3, Purpose::Key), stream(8, 3, Purpose::Key));
        assert_ne!(stream(7, 3, Purpose::Key), stream(7, 3, Purpose::Value));
    }

    /// For 100 cells and 10^6 draws across indices, chi-square with 99 degrees of freedom stays below its 1 − 10^-6
    /// quantile.
    #[test]
    fn draws_across_indices_are_uniform() {
        let mut cells = [0u32; 100];
        for index in 0..1_000_000 {
            cells[Draws::new(1, index, Purpose::Key).draw_below(100) as usize] += 1;
        }
        let chi: f64 = cells.iter().map(|&n| (f64::from(n) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi < 175.0, "chi-square {chi}");
    }

    #[test]
    fn gamma_has_its_mean_and_variance() {
        let draws: Vec<f64> = (0..20_000).map(|i| Draws::new(5, i, Purpose::Arrival).draw_gamma(1024.0)).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let variance = draws.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / 20_000.0;
        // The standard error of the mean is sqrt(1024 / 20000) = 0.23; the standard error of the variance is about 1024
        // × sqrt(2 / 20000) = 10.
        assert!((mean - 1024.0).abs() < 1.2, "mean {mean}");
        assert!((variance - 1024.0).abs() < 55.0, "variance {variance}");
    }
}
