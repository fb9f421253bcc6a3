//! Identifies the write that made a value, by fixed-width text at the start of the value. Any store's text column can
//! contain this text.
//!
//! `R00000000002a9f31c0de` consists of the phase (`L` load, `R` run), the index of the write in this phase, and a check
//! over seed, key, field, index and run. A value of another record, field or seed has a different check. The run
//! affects only the second half of the check of run writes, so values of the load stay valid, and values of an earlier
//! run are recognized. The check does not cover the filler after it, which
//! [`CoreRun::expect_value`](crate::core::CoreRun::expect_value) regenerates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::mix_bits;

const INDEX_DIGITS: usize = 12;
const CHECK_DIGITS: usize = 8;
/// Length of this text, bytes.
pub const LEN: usize = 1 + INDEX_DIGITS + CHECK_DIGITS;

/// The phase of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Records are inserted.
    Load,
    /// The workload runs on the loaded records.
    Run,
}

/// The write that made a value. Load writes sort before run writes.
#[allow(missing_docs, reason = "the field's name explains it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    pub phase: Phase,
    /// The index of the write in its phase; below 2^48.
    pub index: u64,
}

impl Version {
    /// The write of the run at `index`.
    pub const fn from_run(index: u64) -> Self {
        Self { phase: Phase::Run, index }
    }

    /// The write of the load at `index`.
    pub const fn from_load(index: u64) -> Self {
        Self { phase: Phase::Load, index }
    }

    /// Parses the version in a value, and its check, which may be wrong; `None` if the value does not begin like a
    /// version.
    pub fn parse(value: &[u8]) -> Option<(Self, u32)> {
        let (mark, rest) = value.split_first()?;
        let phase = match mark {
            b'L' => Phase::Load,
            b'R' => Phase::Run,
            _ => return None,
        };
        let (index, rest) = rest.split_at_checked(INDEX_DIGITS)?;
        let (check, _) = rest.split_at_checked(CHECK_DIGITS)?;
        Some((Self { phase, index: parse_hex(index)? }, parse_hex(check)? as u32))
    }
}

/// Distinguishes the values of runs with the same seed. The default is for a run without a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMark {
    /// A mask (XOR) for the second half of the check.
    tag: u32,
    /// A mask (XOR) for the filler.
    pub(crate) turn: u32,
}

impl RunMark {
    /// The mark of the run with the given number.
    pub const fn new(run: Option<u64>) -> Self {
        let Some(run) = run else { return Self { tag: 0, turn: 0 } };
        let bits = mix_bits(mix_bits(run));
        // Zero is reserved for runs without a number. The lowest bit of a turn affects its first letter.
        let tag = bits as u32 & 0xffff;
        Self { tag: if tag == 0 { 1 } else { tag }, turn: (bits >> 32) as u32 | 1 }
    }
}

/// The write that is named by a value with a correct check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A write of the load, or of this run.
    Own(Version),
    /// A write of another run with this seed.
    OtherRun(Version),
}

/// The part of a version that is the same for all fields of a record.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    state: u64,
    tag: u32,
}

impl Stamp {
    /// The stamp of the record with this key, in a run without a number.
    #[inline]
    pub fn new(seed: u64, key: &[u8]) -> Self {
        Self { state: extend_hash(mix_bits(seed), key), tag: 0 }
    }

    /// The stamp of this record in the given run.
    #[inline]
    #[must_use]
    pub const fn with_run(self, run: RunMark) -> Self {
        Self { tag: run.tag, ..self }
    }

    /// Creates the mark with which the given write to this record labels its values.
    #[inline]
    pub fn mark_version(self, version: Version) -> Mark {
        let mut text = [0; 1 + INDEX_DIGITS];
        text[0] = if version.phase == Phase::Load { b'L' } else { b'R' };
        text[1..5].copy_from_slice(&format_hex((version.index >> 32) as u32)[4..]);
        text[5..].copy_from_slice(&format_hex(version.index as u32));
        let run = version.phase == Phase::Run;
        let tag = if run { self.tag } else { 0 };
        Mark { text, state: mix_bits(self.state ^ (version.index << 1 | u64::from(run))), tag }
    }

    /// The origin of a value of this record's `field`; `None` if the check in the value is wrong.
    #[inline]
    pub fn read_origin(self, value: &[u8], field: &[u8]) -> Option<Origin> {
        let (version, check) = Version::parse(value)?;
        match check ^ self.mark_version(version).check_digits(FieldHash::new(field)) {
            0 => Some(Origin::Own(version)),
            other if other >> 16 == 0 && version.phase == Phase::Run => Some(Origin::OtherRun(version)),
            _ => None,
        }
    }
}

/// Writes the versions into the fields of one write.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    text: [u8; 1 + INDEX_DIGITS],
    state: u64,
    tag: u32,
}

impl Mark {
    #[inline]
    fn check_digits(&self, field: FieldHash) -> u32 {
        (mix_bits(self.state ^ field.0) >> 32) as u32 ^ self.tag
    }

    /// Overwrites the start of a value. A value that is too short remains unchanged; specs with such values are
    /// refused.
    #[inline(never)]
    pub fn write_mark(&self, value: &mut [u8], field: FieldHash) {
        if let Some(start) = value.first_chunk_mut::<LEN>() {
            start[..self.text.len()].copy_from_slice(&self.text);
            start[self.text.len()..].copy_from_slice(&format_hex(self.check_digits(field)));
        }
    }
}

/// The part of the check that depends on the name of the field.
#[derive(Clone, Copy, Debug)]
pub struct FieldHash(u64);

impl FieldHash {
    /// The hash of the field with this name.
    #[inline]
    pub fn new(name: &[u8]) -> Self {
        Self(extend_hash(0, name))
    }
}

/// Hashes eight bytes per round; keys have about twenty bytes.
#[inline]
fn extend_hash(start: u64, text: &[u8]) -> u64 {
    let (chunks, rest) = text.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let state =
        chunks.iter().fold(start ^ text.len() as u64, |state, word| mix_bits(state ^ u64::from_le_bytes(*word)));
    mix_bits(state ^ u64::from_le_bytes(last))
}

/// Converts to eight lower-case hexadecimal digits at once, one per byte of a word.
#[inline]
const fn format_hex(x: u32) -> [u8; 8] {
    let mut x = x as u64;
    x = (x << 16 | x) & 0x0000_ffff_0000_ffff;
    x = (x << 8 | x) & 0x00ff_00ff_00ff_00ff;
    x = (x << 4 | x) & 0x0f0f_0f0f_0f0f_0f0f;
    // Adding 6 to a digit above 9 carries into bit 4. Letters are 39 above the characters that follow the digits.
    let letters = ((x + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    (x + 0x3030_3030_3030_3030 + letters * 39).to_be_bytes()
}

#[inline]
fn parse_hex(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0u64, |sum, &digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(sum << 4 | u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn create_value(seed: u64, key: &str, field: &str, version: Version) -> Vec<u8> {
        let mut value = vec![b'x'; LEN + 3];
        Stamp::new(seed, key.as_bytes()).mark_version(version).write_mark(&mut value, FieldHash::new(field.as_bytes()));
        value
    }

    #[test]
    fn text_begins_with_phase_and_index() {
        let text = String::from_utf8(create_value(1, "user1", "field0", Version::from_run(42))).unwrap();
        assert!(text.starts_with("R00000000002a") && text.ends_with("xxx"), "{text}");
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(create_value(1, "user1", "field0", Version::from_load(0xfeed_dead_beef)).starts_with(b"Lfeeddeadbeef"));
    }

    #[test]
    fn hexadecimal_digits_equal_the_standard_librarys() {
        for x in (0..=u16::MAX).map(u32::from).flat_map(|x| [x, x << 16, !x]) {
            assert_eq!(format_hex(x), format!("{x:08x}").as_bytes());
        }
    }

    proptest! {
        #[test]
        fn version_is_valid_in_its_own_field_only(
            seed: u64, key in "[a-z0-9]{0,30}", field in "[a-z0-9]{1,20}", index in 0u64..1 << 48, run: bool,
        ) {
            let version = if run { Version::from_run(index) } else { Version::from_load(index) };
            let value = create_value(seed, &key, &field, version);
            let read = |seed, key: &str, field: &str| Stamp::new(seed, key.as_bytes()).read_origin(&value, field.as_bytes());
            prop_assert_eq!(read(seed, &key, &field), Some(Origin::Own(version)));
            prop_assert_eq!(read(seed ^ 1, &key, &field), None);
            prop_assert_eq!(read(seed, &format!("{key}0"), &field), None);
            prop_assert_eq!(read(seed, &key, &format!("{field}0")), None);
            for at in 0..LEN {
                let mut torn = value.clone();
                torn[at] = if torn[at] == b'0' { b'1' } else { b'0' };
                let origin = Stamp::new(seed, key.as_bytes()).read_origin(&torn, field.as_bytes());
                // Only the first half of the check, 16 bits, distinguishes a torn value from a value of another run.
                prop_assert!(!matches!(origin, Some(Origin::Own(_))), "{origin:?}");
                if at >= LEN - CHECK_DIGITS / 2 {
                    prop_assert_eq!(origin, run.then_some(Origin::OtherRun(version)));
                }
            }
        }

        #[test]
        fn values_of_other_runs_are_recognized(seed: u64, index in 0u64..1 << 48, first: u64, second: u64) {
            let (run, load) = (Version::from_run(index), Version::from_load(index));
            let read = |run: RunMark, version: Version, writer: RunMark| {
                let mut value = vec![b'x'; LEN];
                let stamp = Stamp::new(seed, b"user1");
                stamp.with_run(writer).mark_version(version).write_mark(&mut value, FieldHash::new(b"field0"));
                stamp.with_run(run).read_origin(&value, b"field0")
            };
            let (first, second) = (RunMark::new(Some(first)), RunMark::new(Some(second)));
            prop_assume!(first.tag != second.tag);
            prop_assert_eq!(read(first, run, first), Some(Origin::Own(run)));
            for other in [second, RunMark::default()] {
                prop_assert_eq!(read(first, run, other), Some(Origin::OtherRun(run)));
                prop_assert_eq!(read(other, run, first), Some(Origin::OtherRun(run)));
                prop_assert_eq!(read(first, load, other), Some(Origin::Own(load)), "the load's values stay valid");
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(value in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Version::parse(&value);
            prop_assert_eq!(Stamp::new(1, b"user1").read_origin(&value, b"field0"), None);
        }
    }
}
