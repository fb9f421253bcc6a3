//! TeraValidate's checksum: the sum of the rows' CRC32s, which does not depend on the order of the rows.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::str::FromStr;

use crate::sort::rows::ROW_BYTES;

/// A 128-bit sum of CRC32s, like Hadoop's `Unsigned16`. It is printed in lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u128);

impl Checksum {
    /// Adds the CRC32s of whole rows.
    pub fn add_rows(&mut self, rows: &[u8]) {
        for row in rows.as_chunks::<ROW_BYTES>().0 {
            self.0 += u128::from(crc32fast::hash(row));
        }
    }
}

impl Sum for Checksum {
    fn sum<I: Iterator<Item = Self>>(sums: I) -> Self {
        sums.fold(Self::default(), |mut all, sum| {
            all += sum;
            all
        })
    }
}

impl AddAssign for Checksum {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

impl FromStr for Checksum {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::rows::Rows;

    /// Hadoop 3.4.2 prints the same checksum for the million rows that it generates.
    #[test]
    fn a_million_rows_have_hadoops_checksum() {
        let (mut rows, mut sum) = (Rows::from(0), Checksum::default());
        let mut buffer = vec![0; 1_000 * ROW_BYTES];
        for _ in 0..1_000 {
            rows.fill(&mut buffer);
            sum.add_rows(&buffer);
        }
        assert_eq!(sum.to_string(), "7a27e2d0d55de");
    }
}
