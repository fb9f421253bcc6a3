//! Zipfian draws: YCSB's generators with their quirks, and a true zipfian.
//!
//! YCSB follows Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994. Its *scrambled*
//! variant always draws ranks from 10^10 items with a hard-coded zeta, regardless of the record count, and hashes them
//! onto the records. Its hottest key therefore gets 3.78 % of the requests, whereas it would get 12.94 % with
//! zipf(0.99) over 1,000 keys. Results are comparable with YCSB's only with the same quirks; [`TrueZipfian`] is an
//! exact zipfian.

use crate::divisor::Divisor;
use crate::fnv::fnv;
use crate::random::{Draws, mix_bits};

/// YCSB's exponent.
pub const THETA: f64 = 0.99;
/// Number of terms of zeta that are summed directly; for further terms, the Euler–Maclaurin formula is exact to 1e-12.
const SUMMED: u64 = 128;

/// Σ i^−θ for i = 1..n; in O(1) for large n by the Euler–Maclaurin formula (Knuth, TAOCP 1.2.11.2).
pub fn zeta(n: u64, theta: f64) -> f64 {
    let sum = |to: u64| (1..=to).map(|i| (i as f64).powf(-theta)).sum::<f64>();
    if n <= SUMMED {
        return sum(n);
    }
    let tail = Tail::new(theta);
    sum(SUMMED) + tail.value_at(n as f64) - tail.value_at(SUMMED as f64)
}

/// The terms that one end of the sum Σ i^−θ, θ ≠ 1, contributes to the Euler–Maclaurin formula.
#[derive(Clone, Copy, Debug)]
struct Tail {
    theta: f64,
}

impl Tail {
    const fn new(theta: f64) -> Self {
        Self { theta }
    }

    fn value_at(self, x: f64) -> f64 {
        let power = x.powf(-self.theta);
        x * power / (1.0 - self.theta) + power / 2.0 - self.theta * power / (12.0 * x)
            + self.theta * (self.theta + 1.0) * (self.theta + 2.0) * power / (720.0 * x * x * x)
    }
}

/// Gray's generator over ranks `0..items`; rank 0 is the most frequent.
#[derive(Clone, Copy, Debug)]
pub struct Zipfian {
    items: f64,
    zetan: f64,
    eta: f64,
    second: f64,
}

impl Zipfian {
    /// A generator over `items` ≥ 1 ranks with YCSB's exponent.
    pub fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(items, THETA))
    }

    /// A generator with a known zeta.
    fn with_zeta(items: u64, zetan: f64) -> Self {
        let second = second_constant();
        Self { items: items as f64, zetan, eta: eta_dividend(items) / (1.0 - second / zetan), second }
    }

    /// The rank at quantile `u` in `[0, 1)`.
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let uz = u * self.zetan;
        if uz < 1.0 {
            return 0;
        }
        if uz < self.second {
            return 1;
        }
        // Converts to a signed integer first, because this is faster than a conversion to an unsigned integer.
        (self.items * hundredth_power(self.eta * u - self.eta + 1.0)) as i64 as u64
    }
}

/// The sum of the weights of ranks 0 and 1.
fn second_constant() -> f64 {
    1.0 + 0.5f64.powf(THETA)
}

/// The part of Gray's eta that is independent of zeta.
fn eta_dividend(items: u64) -> f64 {
    1.0 - (2.0 / items as f64).powf(1.0 - THETA)
}

/// x^α for α = 1 ÷ (1 − θ). YCSB computes α = 99.99999999999991 and calls `Math.pow`. The difference from x^100 is a
/// factor of 1 + 9e-14·|ln x|, far below the resolution of a draw with 53 bits, and eight multiplications cost a
/// quarter of a `pow`.
#[inline]
fn hundredth_power(x: f64) -> f64 {
    let x4 = x * x * (x * x);
    let x16 = x4 * x4 * (x4 * x4);
    let x32 = x16 * x16;
    x32 * x32 * x32 * x4
}

/// YCSB's scrambled zipfian over `0..items`.
#[derive(Clone, Copy, Debug)]
pub struct ScrambledZipfian {
    inner: Zipfian,
    items: Divisor,
}

impl ScrambledZipfian {
    const INNER_ITEMS: u64 = 10_000_000_001;
    /// YCSB's constant for 10^10 items.
    const INNER_ZETA: f64 = 26.469_028_201_783_02;

    /// A generator that scatters ranks over `items` ≥ 1 places.
    pub fn new(items: u64) -> Self {
        Self { inner: Zipfian::with_zeta(Self::INNER_ITEMS, Self::INNER_ZETA), items: Divisor::new(items) }
    }

    /// Draws the next place.
    #[inline]
    pub fn next_item(&self, draws: &mut Draws) -> u64 {
        self.items.remainder(fnv(self.inner.rank(draws.next_f64())))
    }
}

/// YCSB's `latest`: a zipfian over a number of items that grows as the run inserts records.
#[derive(Clone, Copy, Debug)]
pub struct GrowingZipfian {
    /// The dividend of eta, which keeps its initial value in YCSB's growing generator.
    eta: f64,
    second: f64,
    /// zeta up to `SUMMED` minus the formula's value there, so that zeta(n) costs only one power.
    offset: f64,
    tail: Tail,
}

impl GrowingZipfian {
    /// A generator that starts with `items` ≥ 1.
    pub fn new(items: u64) -> Self {
        let tail = Tail::new(THETA);
        let offset = zeta(SUMMED, THETA) - tail.value_at(SUMMED as f64);
        Self { eta: eta_dividend(items.max(1)), second: second_constant(), offset, tail }
    }

    /// The zipfian over the current number of items.
    #[inline]
    pub fn latest_distribution(&self, items: u64) -> LatestDistribution {
        let items = items.max(1);
        let zetan = if items <= SUMMED { zeta(items, THETA) } else { self.offset + self.tail.value_at(items as f64) };
        let eta = self.eta / (1.0 - self.second / zetan);
        LatestDistribution {
            zipfian: Zipfian { items: items as f64, zetan, eta, second: self.second },
            last: items - 1,
        }
    }
}

/// A [`GrowingZipfian`] at a fixed size.
#[derive(Clone, Copy, Debug)]
pub struct LatestDistribution {
    zipfian: Zipfian,
    last: u64,
}

impl LatestDistribution {
    /// Draws a rank in `0..items`.
    #[inline]
    pub fn next_item(&self, draws: &mut Draws) -> u64 {
        self.zipfian.rank(draws.next_f64()).min(self.last)
    }
}

/// An exact zipf(θ) over `0..items` for any θ > 0, scattered by a bijection.
///
/// Rejection-inversion: Hörmann & Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996.
#[derive(Clone, Copy, Debug)]
pub struct TrueZipfian {
    items: u64,
    theta: f64,
    from: f64,
    to: f64,
    squeeze: f64,
    bits: u32,
}

impl TrueZipfian {
    /// A generator over `items` ≥ 1 places with exponent `theta` > 0.
    pub fn new(items: u64, theta: f64) -> Self {
        let items = items.max(1);
        let mut zipf = Self { items, theta, from: 0.0, to: 0.0, squeeze: 0.0, bits: 0 };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(items as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.height(2.0));
        // The number of bits is even, so that the Feistel network has equal halves.
        zipf.bits = (64 - (items - 1).leading_zeros()).next_multiple_of(2).max(2);
        zipf
    }

    fn height(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// ∫ x^−θ, in a form that is continuous at θ = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.theta) * log;
        log * if scaled.abs() > 1e-8 { scaled.exp_m1() / scaled } else { 1.0 + scaled / 2.0 }
    }

    fn inverse(&self, y: f64) -> f64 {
        let scaled = (y * (1.0 - self.theta)).max(-1.0);
        (y * if scaled.abs() > 1e-8 { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 }).exp()
    }

    /// Draws a rank; 0 is the most frequent.
    pub fn rank(&self, draws: &mut Draws) -> u64 {
        loop {
            let u = self.to + draws.next_f64() * (self.from - self.to);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.items as f64);
            if k - x <= self.squeeze || u >= self.integral(k + 0.5) - self.height(k) {
                return k as u64 - 1;
            }
        }
    }

    /// Draws the next place: a rank, scattered over the items.
    pub fn next_item(&self, draws: &mut Draws) -> u64 {
        let rank = self.rank(draws);
        self.scatter_rank(rank)
    }

    /// A bijection on `0..items`: a four-round Feistel network, repeated until the result is in the range (Black &
    /// Rogaway 2002).
    fn scatter_rank(&self, rank: u64) -> u64 {
        let half = self.bits / 2;
        let mask = (1u64 << half) - 1;
        let mut place = rank;
        loop {
            let (mut left, mut right) = (place >> half, place & mask);
            for round in 1..=4u64 {
                (left, right) = (right, left ^ (mix_bits(right ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & mask));
            }
            place = left << half | right;
            if place < self.items {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-11 * b.abs()
    }

    /// Compares internal values with the values of YCSB's generator, as printed by YCSB.
    #[test]
    fn internals_are_ycsbs() {
        for (n, zetan, eta) in [
            (10, 2.956_107_516_510_363_6, 0.032_489_973_618_745_19),
            (100, 5.294_568_831_377_164, 0.053_579_742_993_047_15),
            (1_000, 7.728_953_217_284_729, 0.074_806_086_707_898_05),
            (1_000_000, 15.391_849_746_037_371, 0.136_291_333_409_310_1),
        ] {
            let zipfian = Zipfian::new(n);
            assert!(is_close(zipfian.zetan, zetan), "{n}: {} {zetan}", zipfian.zetan);
            assert!((zipfian.eta - eta).abs() < 1e-10, "{n}: {} {eta}", zipfian.eta);
        }
    }

    #[test]
    fn ranks_of_quantiles_are_ycsbs() {
        let inner = ScrambledZipfian::new(1).inner;
        for (u, rank) in [
            (0.03, 0),
            (0.0378, 1),
            (0.0567, 1),
            (0.06, 2),
            (0.1, 6),
            (0.25, 296),
            (0.5, 134_552),
            (0.75, 42_924_421),
            (0.9, 1_170_869_537),
            (0.99, 8_086_205_587),
            (0.999_999, 9_999_787_803),
        ] {
            assert_eq!(inner.rank(u), rank, "u = {u}");
        }
    }

    #[test]
    fn hot_places_are_ycsbs() {
        let places = |items| (0..10).map(|rank| fnv(rank) % items).collect::<Vec<_>>();
        assert_eq!(places(1_001), [144, 610, 213, 679, 10, 545, 942, 476, 436, 902]);
        assert_eq!(
            places(1_000_001),
            [801_320, 216_074, 971_811, 386_565, 464_295, 49_540, 293_804, 879_050, 407_915, 822_670]
        );
    }

    #[test]
    fn true_zipfian_has_the_shares_of_the_law() {
        let zipfian = TrueZipfian::new(1_000, 0.99);
        let mut counts = [0u32; 1_000];
        for index in 0..1_000_000 {
            counts[zipfian.rank(&mut Draws::new(9, index, Purpose::Key)) as usize] += 1;
        }
        for (rank, share) in [(0, 0.129_4), (1, 0.065_15), (2, 0.043_6), (99, 0.001_355)] {
            let got = f64::from(counts[rank]) / 1e6;
            let error = 4.0 * (share * (1.0 - share) / 1e6f64).sqrt() + 1e-4;
            assert!((got - share).abs() < error, "rank {rank}: {got} against {share}");
        }
    }

    #[test]
    fn scattering_is_a_bijection() {
        for items in [1, 2, 3, 10, 1_000, 1_025] {
            let zipfian = TrueZipfian::new(items, 1.2);
            let mut ranks: Vec<u64> = (0..items).map(|rank| zipfian.scatter_rank(rank)).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, (0..items).collect::<Vec<_>>());
        }
    }
}
