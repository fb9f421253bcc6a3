//! The token of a key: the first half of 128-bit Murmur3 (x64), as Cassandra computes it.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

#[inline]
fn mix_first(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline]
fn mix_second(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline]
fn finish(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

/// The tail as a little-endian number. Unlike other implementations of Murmur3, Cassandra treats the tail's bytes as
/// signed, which matters for bytes of 0x80 and above.
#[inline]
fn read_signed_tail(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |k, (at, byte)| k ^ (i64::from(*byte as i8) as u64) << (8 * at))
}

/// The position of a key on the ring.
#[inline]
pub fn token(key: &[u8]) -> i64 {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = block.split_at(8);
        let number = |half: &[u8]| half.iter().rev().fold(0u64, |k, byte| k << 8 | u64::from(*byte));
        h1 ^= mix_first(number(k1));
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_second(number(k2));
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    if tail.len() > 8 {
        h2 ^= mix_second(read_signed_tail(&tail[8..]));
    }
    if !tail.is_empty() {
        h1 ^= mix_first(read_signed_tail(&tail[..tail.len().min(8)]));
    }
    let len = key.len() as u64;
    h1 ^= len;
    h2 ^= len;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let first = finish(h1);
    let token = first.wrapping_add(finish(h2)) as i64;
    // The smallest token marks the start of the ring, so no key may have it.
    if token == i64::MIN { i64::MAX } else { token }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens that Cassandra 5.0.9 computed with `SELECT token(y_id)`.
    #[test]
    fn tokens_are_cassandras() {
        for (key, expected) in TOKENS {
            assert_eq!(token(key.as_bytes()), *expected, "{key}");
        }
    }

    const TOKENS: &[(&str, i64)] = &[
        ("user1", -1_727_604_350_198_519_072),
        ("user6284781860667377211", 4_844_203_595_558_397_365),
        ("12345678", 4_272_337_174_398_058_908),
        ("123456789", 4_360_720_697_772_133_540),
        ("0123456789abcdef", 5_467_490_433_528_156_583),
        ("größe 名前", 8_528_035_550_707_301_369),
        ("user6284781860667377211-größe-名前名前名前", 2_396_549_588_494_492_492),
        (" ", 1_797_078_159_699_801_913),
    ];
}
