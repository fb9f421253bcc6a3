//! Division by a number that is fixed before a loop, but unknown to the compiler.

use std::hint::select_unpredictable;

/// A divisor with its precomputed reciprocal.
///
/// The quotient is calculated as a multiplication by the reciprocal, rounded down. It is at most 1 too small, which the
/// remainder reveals, so the corrected result is exact, at a third of the latency of a division.
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    by: u64,
    /// (2^64 − 1) ÷ `by`.
    reciprocal: u64,
}

impl Divisor {
    /// Divides by `by`, or by 1 if `by` is 0.
    pub const fn new(by: u64) -> Self {
        let by = if by == 0 { 1 } else { by };
        Self { by, reciprocal: u64::MAX / by }
    }

    /// The divisor itself.
    #[inline]
    pub const fn get(self) -> u64 {
        self.by
    }

    /// Returns quotient and remainder.
    #[inline]
    pub fn divide(self, n: u64) -> (u64, u64) {
        let quotient = ((u128::from(n) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = n - quotient * self.by;
        // This condition is unpredictable, so a branch would often be mispredicted.
        let short = remainder >= self.by;
        (quotient + u64::from(short), select_unpredictable(short, remainder.wrapping_sub(self.by), remainder))
    }

    /// The remainder.
    #[inline]
    pub fn remainder(self, n: u64) -> u64 {
        self.divide(n).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_the_range_are_divided_exactly() {
        let ends = [1, 2, 3, 10, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX];
        for by in ends {
            for n in ends.into_iter().chain([0]) {
                assert_eq!(Divisor::new(by).divide(n), (n / by, n % by), "{n} / {by}");
            }
        }
        assert_eq!(Divisor::new(0).divide(5), (5, 0));
    }

    proptest! {
        #[test]
        fn it_divides_as_a_division(n: u64, by in 1u64.., shift in 0u32..64, factor: u64) {
            let divisor = Divisor::new((by >> shift).max(1));
            let by = divisor.get();
            // A quotient that is off by one would be detected at multiples and their neighbours.
            let multiple = factor.wrapping_mul(by);
            for n in [n, multiple, multiple.wrapping_sub(1), multiple.wrapping_add(1)] {
                prop_assert_eq!(divisor.divide(n), (n / by, n % by));
            }
        }
    }
}
