//! TeraGen's rows, which are identical to gensort's rows. A row is a pure function of its number.
//!
//! A row has 100 bytes: a key of 10 bytes, `00 11`, the row's number as 32 hexadecimal digits, `88 99 AA BB`, 12 filler
//! digits of 4 bytes each, and `CC DD EE FF`. The key and the filler come from a 128-bit random number. The random
//! numbers are a linear congruential sequence, whose n-th element is found in O(log n), so any range of rows can be
//! generated alone (Chris Nyberg, gensort, `rand16.c`; Hadoop's `Random16` and `GenSort`).

/// Bytes of a row.
pub const ROW_BYTES: usize = 100;
/// Bytes of a row's key, which comes first.
pub const KEY_BYTES: usize = 10;

const MULTIPLIER: u128 = 0x2360_ED05_1FC6_5DA4_4385_DF64_9FCC_F645;
const INCREMENT: u128 = 0x4A69_6D47_7261_7952_4950_2020_2020_2001;
const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// `n` steps of the sequence, combined into one: x → factor · x + term.
#[derive(Clone, Copy, Debug)]
struct Leap {
    factor: u128,
    term: u128,
}

impl Leap {
    const NONE: Self = Self { factor: 1, term: 0 };
    const STEP: Self = Self { factor: MULTIPLIER, term: INCREMENT };

    fn from(self, x: u128) -> u128 {
        self.factor.wrapping_mul(x).wrapping_add(self.term)
    }

    /// Combines this leap with the leap `next`, which is made after it.
    fn then(self, next: Self) -> Self {
        Self { factor: next.factor.wrapping_mul(self.factor), term: next.from(self.term) }
    }

    fn steps(mut n: u128) -> Self {
        let (mut leap, mut power) = (Self::NONE, Self::STEP);
        while n > 0 {
            if n & 1 == 1 {
                leap = leap.then(power);
            }
            power = power.then(power);
            n >>= 1;
        }
        leap
    }
}

/// Rows in order of their numbers, starting at any number.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The number of the next row.
    number: u64,
    /// The random number of the next row.
    random: u128,
}

impl Rows {
    /// The rows from this number on.
    pub fn from(number: u64) -> Self {
        Self { number, random: Leap::steps(u128::from(number) + 1).from(0) }
    }

    /// Fills `buffer` with the next rows.
    ///
    /// # Panics
    /// If the length of `buffer` is not a whole number of rows.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        let (rows, rest) = buffer.as_chunks_mut::<ROW_BYTES>();
        assert!(rest.is_empty(), "a buffer for rows holds whole rows");
        for row in rows {
            write_row(row, self.number, self.random);
            self.number += 1;
            self.random = Leap::STEP.from(self.random);
        }
    }
}

fn write_row(row: &mut [u8; ROW_BYTES], number: u64, random: u128) {
    row[..10].copy_from_slice(&random.to_be_bytes()[..10]);
    row[10..12].copy_from_slice(&[0x00, 0x11]);
    row[12..28].copy_from_slice(b"0000000000000000");
    row[28..44].copy_from_slice(&hex(number));
    row[44..48].copy_from_slice(&[0x88, 0x99, 0xAA, 0xBB]);
    for (digit, group) in row[48..96].as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *group = [HEX[(random >> (44 - 4 * digit)) as usize & 0xF]; 4];
    }
    row[96..].copy_from_slice(&[0xCC, 0xDD, 0xEE, 0xFF]);
}

fn hex(number: u64) -> [u8; 16] {
    std::array::from_fn(|digit| HEX[(number >> (60 - 4 * digit)) as usize & 0xF])
}

/// Finds differences between a row and the row that TeraGen generates for the same row number.
///
/// For each byte i of a row number, the table contains the leaps of 0 to 255 times 256^i steps. So computing the random
/// number of any row takes eight products instead of a hundred.
#[derive(Debug)]
pub struct RowCheck {
    leaps: Vec<[Leap; 256]>,
}

impl Default for RowCheck {
    fn default() -> Self {
        let mut unit = Leap::STEP;
        let leaps = (0..8).map(|_| {
            let mut table = [Leap::NONE; 256];
            for i in 1..256 {
                table[i] = table[i - 1].then(unit);
            }
            unit = table[255].then(unit);
            table
        });
        Self { leaps: leaps.collect() }
    }
}

impl RowCheck {
    /// The offset of the first byte that differs; `None` if the row is correct.
    pub fn difference(&self, row: &[u8; ROW_BYTES]) -> Option<usize> {
        let mut number = 0u64;
        for (place, &digit) in row[12..44].iter().enumerate() {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return Some(12 + place),
            };
            if place < 16 && value != 0 {
                return Some(12 + place);
            }
            number = number << 4 | u64::from(value);
        }
        let mut random = INCREMENT;
        for (table, byte) in self.leaps.iter().zip(number.to_le_bytes()) {
            if byte != 0 {
                random = table[usize::from(byte)].from(random);
            }
        }
        let mut expected = [0; ROW_BYTES];
        write_row(&mut expected, number, random);
        if *row == expected { None } else { row.iter().zip(&expected).position(|(got, expected)| got != expected) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(number: u64) -> [u8; ROW_BYTES] {
        let mut row = [0; ROW_BYTES];
        Rows::from(number).fill(&mut row);
        row
    }

    #[test]
    fn the_first_row_is_gensorts() {
        let first = row(0);
        assert_eq!(&first[..10], b"JimGrayRIP");
        assert_eq!(&first[12..44], b"00000000000000000000000000000000");
        assert_eq!(&first[48..96], b"222200002222000022220000222200002222000000001111");
    }

    proptest! {
        #[test]
        fn rows_generated_alone_are_those_of_the_sequence(from in 0u64..1 << 40, count in 1usize..50) {
            let mut together = vec![0; count * ROW_BYTES];
            Rows::from(from).fill(&mut together);
            for (i, got) in together.as_chunks::<ROW_BYTES>().0.iter().enumerate() {
                prop_assert_eq!(*got, row(from + i as u64));
            }
        }

        #[test]
        fn a_flipped_bit_is_found(number: u64, bit in 0usize..800) {
            let check = RowCheck::default();
            let mut row = row(number.min(u64::MAX - 1));
            prop_assert_eq!(check.difference(&row), None);
            row[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check.difference(&row).is_some());
        }
    }
}
