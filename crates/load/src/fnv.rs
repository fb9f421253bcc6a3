//! YCSB's hash: it scatters keys, and the ranks of its zipfian.

const PRIME: u64 = 0x0000_0100_0000_01b3;

/// YCSB's hash of a record number: FNV-1a over its 8 bytes, least significant first, then `Math.abs`.
///
/// A byte of zero only multiplies by the prime, so the four high bytes of a number below 2^32 are one multiplication. It
/// stops at four: telling more lengths apart would mispredict on a zipfian's ranks, which are of every length.
#[inline]
pub const fn fnv(number: u64) -> u64 {
    let low = bytes(0xcbf2_9ce4_8422_2325, number);
    let hash = if number >> 32 == 0 { low.wrapping_mul(PRIME.wrapping_pow(4)) } else { bytes(low, number >> 32) };
    (hash as i64).unsigned_abs()
}

/// Hashes the four low bytes of `rest`.
#[inline]
const fn bytes(mut hash: u64, mut rest: u64) -> u64 {
    let mut byte = 0;
    while byte < 4 {
        hash = (hash ^ (rest & 0xff)).wrapping_mul(PRIME);
        rest >>= 8;
        byte += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_eight_bytes_one_by_one() {
        let one_by_one = |number: u64| {
            let hash = number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
            (hash as i64).unsigned_abs()
        };
        for bits in 0..64 {
            for near in [(1u64 << bits) - 1, 1 << bits, (1 << bits) + 1, 0x9e37_79b9_7f4a_7c15 >> bits] {
                assert_eq!(fnv(near), one_by_one(near), "{near}");
            }
        }
    }
}
