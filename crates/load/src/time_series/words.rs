//! YCSB's names of metrics, tags and tag values: base-52 numbers written with letters.

use std::fmt;

const LETTERS: [u8; 52] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Maximum number of letters of a number, because 52^12 is above 2^64.
const DIGITS_MAX: usize = 12;

/// Words of one length. Word 0 consists of `A` only. The last letter changes fastest, from `A` to `Z`, then from `a` to
/// `z`. The numerical order of words is the order of their bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    length: usize,
}

impl Words {
    pub(super) const fn new(length: usize) -> Self {
        Self { length }
    }

    /// The number of different words.
    pub(super) fn count(self) -> u64 {
        (LETTERS.len() as u64).saturating_pow(u32::try_from(self.length).unwrap_or(u32::MAX))
    }

    /// The length of a word in bytes.
    pub(super) const fn length(self) -> usize {
        self.length
    }

    /// Appends word `number`.
    #[inline]
    pub(super) fn write_word(self, number: u64, out: &mut impl fmt::Write) -> fmt::Result {
        let mut digits = [0; DIGITS_MAX];
        let digits = &mut digits[..self.length.min(DIGITS_MAX)];
        fill_letters(number, digits);
        for _ in digits.len()..self.length {
            out.write_char('A')?;
        }
        out.write_str(std::str::from_utf8(digits).map_err(|_| fmt::Error)?)
    }

    /// Returns word `number` as a string.
    pub(super) fn word(self, number: u64) -> String {
        let mut out = String::with_capacity(self.length);
        // Writing to a string cannot fail.
        let _ = self.write_word(number, &mut out);
        out
    }

    /// The number of a word; `None` if the text is not a word.
    #[inline]
    pub(super) fn parse_word(self, word: &[u8]) -> Option<u64> {
        if word.len() != self.length {
            return None;
        }
        word.iter().try_fold(0u64, |number, &letter| {
            let digit = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                _ => return None,
            };
            number.checked_mul(52)?.checked_add(u64::from(digit))
        })
    }
}

/// Writes word `number` of the words that are as long as `out`.
#[inline]
pub(super) fn fill_letters(number: u64, out: &mut [u8]) {
    let (mut rest, mut end) = (number, out.len());
    while rest > 0 && end > 0 {
        end -= 1;
        out[end] = LETTERS[(rest % 52) as usize];
        rest /= 52;
    }
    out[..end].fill(b'A');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares words with words printed by YCSB's generator.
    #[test]
    fn words_are_ycsbs() {
        let vocabulary = Words::new(8);
        for (number, word) in [
            (0, "AAAAAAAA"),
            (1, "AAAAAAAB"),
            (9, "AAAAAAAJ"),
            (25, "AAAAAAAZ"),
            (26, "AAAAAAAa"),
            (51, "AAAAAAAz"),
            (52, "AAAAAABA"),
        ] {
            assert_eq!(vocabulary.word(number), word);
            assert_eq!(vocabulary.parse_word(word.as_bytes()), Some(number));
        }
        assert_eq!(vocabulary.parse_word(b"AAAAAAA1"), None);
        assert_eq!(vocabulary.parse_word(b"AAAAAAA"), None);
    }

    #[test]
    fn short_words_run_out() {
        let long = Words::new(100);
        assert_eq!(long.word(53), format!("{}BB", "A".repeat(98)));
        assert_eq!(long.parse_word(long.word(u64::MAX).as_bytes()), Some(u64::MAX));
        assert_eq!(long.count(), u64::MAX);
        assert_eq!(Words::new(2).count(), 2_704);
    }
}
