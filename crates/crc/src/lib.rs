//! The part of the crate `crc` 3.4 that hdfs-native uses, under the same names, but with the processor's CRC
//! instructions.
//!
//! HDFS has a CRC for every 512 bytes. With the lookup tables of `crc`, these CRCs took a third of the CPU time of a
//! client that reads, so `Cargo.toml` replaces `crc` with this crate.

use std::marker::PhantomData;

use crc_fast::CrcAlgorithm;

/// CRC-32C (Castagnoli; RFC 3720, B.4).
pub const CRC_32_ISCSI: CrcAlgorithm = CrcAlgorithm::Crc32Iscsi;
/// The CRC-32 of gzip (RFC 1952, 8).
pub const CRC_32_ISO_HDLC: CrcAlgorithm = CrcAlgorithm::Crc32IsoHdlc;

/// The size of the lookup tables in the crate `crc`; ignored here.
#[derive(Clone, Copy, Debug)]
pub struct Table<const LANES: usize>;

/// Computes checksums.
#[derive(Clone, Copy, Debug)]
pub struct Crc<W, T> {
    algorithm: CrcAlgorithm,
    of: PhantomData<(W, T)>,
}

impl<T> Crc<u32, T> {
    /// A CRC with this algorithm.
    pub const fn new(algorithm: &'static CrcAlgorithm) -> Self {
        Self { algorithm: *algorithm, of: PhantomData }
    }

    /// The checksum of `bytes`.
    pub fn checksum(&self, bytes: &[u8]) -> u32 {
        // Both algorithms produce 32 bits.
        crc_fast::checksum(self.algorithm, bytes) as u32
    }

    /// A digest for bytes that arrive in parts.
    pub fn digest(&self) -> Digest {
        Digest(crc_fast::Digest::new(self.algorithm))
    }
}

/// An incremental checksum.
#[derive(Clone, Copy, Debug)]
pub struct Digest(crc_fast::Digest);

impl Digest {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes.
    pub fn finalize(self) -> u32 {
        self.0.finalize() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
    const CRC32C: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISCSI);

    /// Compares with the check values of the catalogue of parametrised CRC algorithms (Cook), and of RFC 3720, B.4.
    #[test]
    fn checksums_equal_those_of_the_specifications() {
        assert_eq!((CRC32.checksum(b"123456789"), CRC32C.checksum(b"123456789")), (0xcbf4_3926, 0xe306_9283));
        assert_eq!((CRC32C.checksum(&[0; 32]), CRC32C.checksum(&[0xff; 32])), (0x8a91_36aa, 0x62a8_ab43));
        assert_eq!((CRC32.checksum(b""), CRC32C.checksum(b"")), (0, 0));
    }

    #[test]
    fn bytes_may_come_in_parts() {
        let bytes: Vec<u8> = (0..1_000_u32).map(|n| (n * 31 % 251) as u8).collect();
        for crc in [CRC32, CRC32C] {
            for at in [0, 1, 511, 999, 1_000] {
                let mut digest = crc.digest();
                digest.update(&bytes[..at]);
                digest.update(&bytes[at..]);
                assert_eq!(digest.finalize(), crc.checksum(&bytes));
            }
        }
    }
}
