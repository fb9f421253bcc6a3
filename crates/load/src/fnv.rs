//! YCSB's hash: it scatters keys, and the ranks of its zipfian.

/// YCSB's hash of a record number: FNV-1a over its 8 bytes, least significant first, then `Math.abs`.
#[inline]
pub const fn fnv(number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut rest = number;
    let mut byte = 0;
    while byte < 8 {
        hash = (hash ^ (rest & 0xff)).wrapping_mul(0x0000_0100_0000_01b3);
        rest >>= 8;
        byte += 1;
    }
    (hash as i64).unsigned_abs()
}
