//! The borders between the parts of the output, computed from a sample of the keys.
//!
//! Equal splits of the key space, as record-setting sorts use, are suitable only for uniform keys. A sample also suits
//! skewed keys.

use crate::sort::rows::KEY_BYTES;

/// A key.
pub type Key = [u8; KEY_BYTES];

/// Ascending keys. Part p contains the keys from splitter p - 1 up to, but excluding, splitter p, so equal keys are in
/// the same part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splitters(Vec<Key>);

impl Splitters {
    /// Computes the splitters for `parts` parts of about equal size from a sample.
    pub fn from_sample(mut sample: Vec<Key>, parts: usize) -> Self {
        sample.sort_unstable();
        let at = |part: usize| sample.get(sample.len() * part / parts).copied().unwrap_or([0xFF; KEY_BYTES]);
        Self((1..parts).map(at).collect())
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.0.len() + 1
    }

    /// The borders between parts, each represented by the lowest possible entry of the part above it.
    pub fn bounds(&self) -> impl Iterator<Item = u128> + '_ {
        self.0.iter().map(|key| {
            let mut bytes = [0; 16];
            bytes[..KEY_BYTES].copy_from_slice(key);
            u128::from_be_bytes(bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        let mut key = [0; KEY_BYTES];
        key[..4].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn skewed_sample_gives_balanced_parts() {
        // Nine tenths of the keys are in a millionth of the key space.
        let sample: Vec<Key> = (0..9_000).chain((0..1_000).map(|i| i * 4_000_000)).map(key).collect();
        let splitters = Splitters::from_sample(sample.clone(), 7);
        let mut sizes = [0; 7];
        for key in sample {
            let part = splitters.0.partition_point(|splitter| *splitter <= key);
            sizes[part] += 1;
        }
        assert!(sizes.iter().all(|&size| (1_400..1_460).contains(&size)), "{sizes:?}");
    }

    #[test]
    fn nothing_and_equal_keys_have_splitters_too() {
        assert_eq!(Splitters::from_sample(Vec::new(), 3).parts(), 3);
        assert_eq!(Splitters::from_sample(vec![key(5); 100], 3), Splitters(vec![key(5); 2]));
    }
}
