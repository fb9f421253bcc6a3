//! The two random generators of cassandra-stress: `java.util.Random`, and the xorshift generator of `FasterRandom`.
//!
//! Sources: the specification of `java.util.Random`; Cassandra's `FasterRandom.java` and `MurmurHash.java`.

use loadstone_load::random::mix_bits;

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;
const TWO_POW_MINUS_53: f64 = 1.0 / (1_u64 << 53) as f64;

/// `java.util.Random`: a linear congruential generator with 48 bits. Only the low 48 bits of a seed have an effect.
#[derive(Clone, Debug)]
pub struct JavaRandom {
    state: u64,
    /// The second value of the polar method; a new seed drops it.
    gaussian: Option<f64>,
}

impl JavaRandom {
    /// Equals `new Random(seed)`.
    #[must_use]
    pub const fn new(seed: i64) -> Self {
        Self { state: (seed as u64 ^ MULTIPLIER) & MASK, gaussian: None }
    }

    /// Equals `setSeed`.
    #[inline]
    pub const fn seed(&mut self, seed: i64) {
        *self = Self::new(seed);
    }

    #[inline]
    fn bits(&mut self, count: u32) -> u32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        (self.state >> (48 - count)) as u32
    }

    /// Skips the given number of steps. `nextDouble` and `nextLong` take two steps each.
    pub fn skip(&mut self, steps: u64) {
        // Affine maps are composed by repeated squaring.
        let (mut factor, mut addend, mut left) = (MULTIPLIER, 0xB_u64, steps);
        while left > 0 {
            if left & 1 == 1 {
                self.state = self.state.wrapping_mul(factor).wrapping_add(addend) & MASK;
            }
            addend = addend.wrapping_mul(factor).wrapping_add(addend) & MASK;
            factor = factor.wrapping_mul(factor) & MASK;
            left >>= 1;
        }
        self.gaussian = None;
    }

    /// Equals `nextDouble`: 53 bits, in [0, 1).
    #[inline]
    pub fn next_double(&mut self) -> f64 {
        let high = u64::from(self.bits(26)) << 27;
        (high + u64::from(self.bits(27))) as f64 * TWO_POW_MINUS_53
    }

    /// Equals `nextLong`, with at most 2⁴⁸ different values.
    #[inline]
    pub fn next_long(&mut self) -> i64 {
        let high = i64::from(self.bits(32) as i32) << 32;
        high.wrapping_add(i64::from(self.bits(32) as i32))
    }

    /// Equals `nextGaussian`: the polar method with fdlibm's logarithm (`StrictMath`).
    #[inline]
    pub fn next_gaussian(&mut self) -> f64 {
        if let Some(value) = self.gaussian.take() {
            return value;
        }
        loop {
            let first = 2.0 * self.next_double() - 1.0;
            let second = 2.0 * self.next_double() - 1.0;
            let square = first * first + second * second;
            if square < 1.0 && square != 0.0 {
                let factor = (-2.0 * strict_log(square) / square).sqrt();
                self.gaussian = Some(second * factor);
                return first * factor;
            }
        }
    }
}

/// Cassandra's `FasterRandom`: xorshift with *arithmetic* right shifts, reseeded at every 32nd draw.
#[derive(Clone, Debug)]
pub struct FasterRandom {
    state: i64,
    draws: u32,
}

impl FasterRandom {
    /// Equals `new FasterRandom()` followed by `setSeed(seed)`.
    #[must_use]
    pub fn new(seed: i64) -> Self {
        Self { state: JavaRandom::new(seed).next_long(), draws: 0 }
    }

    /// Equals `setSeed`.
    #[inline]
    pub fn seed(&mut self, seed: i64) {
        *self = Self::new(seed);
    }

    /// Equals `nextLong`.
    #[inline]
    pub fn next_long(&mut self) -> i64 {
        self.draws += 1;
        if self.draws == 32 {
            self.seed(self.state);
        }
        let mut x = self.state;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.state = x;
        x.wrapping_mul(2_685_821_657_736_338_717)
    }
}

/// Natural logarithm of a positive, normal number, as in fdlibm (`__ieee754_log`, error below 1 ulp).
///
/// Java defines `StrictMath.log` by fdlibm; the platform's logarithm may differ in the last bit.
/// Constants and evaluation order: Sun Microsystems, `e_log.c`, 1993.
fn strict_log(x: f64) -> f64 {
    const LN2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LO: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    const LG1: f64 = f64::from_bits(0x3fe5_5555_5555_5593);
    const LG2: f64 = f64::from_bits(0x3fd9_9999_9997_fa04);
    const LG3: f64 = f64::from_bits(0x3fd2_4924_9422_9359);
    const LG4: f64 = f64::from_bits(0x3fcc_71c5_1d8e_78af);
    const LG5: f64 = f64::from_bits(0x3fc7_4664_96cb_03de);
    const LG6: f64 = f64::from_bits(0x3fc3_9a09_d078_c69f);
    const LG7: f64 = f64::from_bits(0x3fc2_f112_df3e_5244);
    let bits = x.to_bits();
    let mut high = (bits >> 32) as i32;
    let mut exponent = (high >> 20) - 1023;
    high &= 0x000f_ffff;
    // 1 if the mantissa is at least √2, so that it must be halved.
    let halve = (high + 0x9_5f64) & 0x10_0000;
    exponent += halve >> 20;
    let mantissa = f64::from_bits((u64::from((high | (halve ^ 0x3ff0_0000)) as u32) << 32) | (bits & 0xffff_ffff));
    let f = mantissa - 1.0;
    let k = f64::from(exponent);
    if (0x000f_ffff & (2 + high)) < 3 {
        // |f| < 2⁻²⁰
        if f == 0.0 {
            return if exponent == 0 { 0.0 } else { k * LN2_HI + k * LN2_LO };
        }
        let r = f * f * (0.5 - (1.0 / 3.0) * f);
        return if exponent == 0 { f - r } else { k * LN2_HI - ((r - k * LN2_LO) - f) };
    }
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (LG2 + w * (LG4 + w * LG6));
    let odd = z * (LG1 + w * (LG3 + w * (LG5 + w * LG7)));
    let r = odd + even;
    if ((high - 0x6_147a) | (0x6_b851 - high)) > 0 {
        let half_square = 0.5 * f * f;
        if exponent == 0 {
            f - (half_square - s * (half_square + r))
        } else {
            k * LN2_HI - ((half_square - (s * (half_square + r) + k * LN2_LO)) - f)
        }
    } else if exponent == 0 {
        f - s * (f - r)
    } else {
        k * LN2_HI - ((s * (f - r) - k * LN2_LO) - f)
    }
}

/// The salt of a column: the first 64 bits of MurmurHash3-x64-128 of `text`, with seed 0.
///
/// Cassandra's variant sign-extends the bytes after the last full block, which affects names outside ASCII.
#[must_use]
pub fn hash_salt(text: &str) -> i64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let bytes = text.as_bytes();
    let (mut h1, mut h2) = (0_u64, 0_u64);
    let mut blocks = bytes.chunks_exact(16);
    for block in &mut blocks {
        let word = |at: usize| block[at..at + 8].iter().rev().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        h1 ^= word(0).wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= word(8).wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let tail = blocks.remainder();
    let word = |range: &[u8]| {
        range
            .iter()
            .enumerate()
            .fold(0_u64, |word, (place, &byte)| word ^ ((i64::from(byte as i8) as u64) << (8 * place)))
    };
    if tail.len() > 8 {
        h2 ^= word(&tail[8..]).wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    }
    if !tail.is_empty() {
        h1 ^= word(&tail[..tail.len().min(8)]).wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    }
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (finish(h1).wrapping_add(finish(h2))) as i64
}

const fn finish(mut k: u64) -> u64 {
    k = (k ^ (k >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    k = (k ^ (k >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

/// A seed for [`JavaRandom`] that is a pure function of (`seed`, `index`, `purpose`). The mixing function is from
/// `SplitMix64` (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
#[must_use]
pub const fn mix_seed(seed: u64, index: u64, purpose: u64) -> i64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let start = mix_bits(seed ^ purpose.wrapping_mul(GOLDEN));
    mix_bits(start.wrapping_add(index.wrapping_mul(GOLDEN))) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn java_random_matches_the_jdk() {
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_long(), -5_025_562_857_975_149_833);
        random.seed(42);
        assert_eq!(random.next_double().to_bits(), 0.727_563_680_032_868_1_f64.to_bits());
        random.seed(42);
        assert_eq!(random.next_gaussian().to_bits(), 1.141_905_315_473_054_7_f64.to_bits());
        assert_eq!(random.next_gaussian().to_bits(), 0.919_407_948_982_787_9_f64.to_bits());
    }

    #[test]
    fn faster_random_reseeds_at_its_32nd_draw() {
        let mut random = FasterRandom::new(!42);
        let draws: Vec<u64> = (0..33).map(|_| random.next_long() as u64).collect();
        assert_eq!(draws[..3], [0xd8ef_6c59_ea68_a129, 0xf3e6_56c4_7c12_8f35, 0x7c55_28b0_c340_b739]);
        assert_eq!(draws[32], 0xb4d0_8912_effe_f261);
    }

    #[test]
    fn salts_match_the_tool() {
        for (text, salt) in [
            ("randomstrkey", 0xa8a4_28ba_262b_a82e_u64),
            ("randomstrC0", 0x5225_6dd1_006d_8ea3),
            ("randomstrC1", 0x2730_3b73_5dc1_0166),
            ("randomstrC2", 0xc2ef_824f_403e_9cf1),
            ("randomstrC3", 0xf783_d0a7_2657_2ea8),
            ("randomstrC4", 0xfb6e_81dd_dff8_0411),
        ] {
            assert_eq!(hash_salt(text) as u64, salt, "{text}");
        }
    }
}
