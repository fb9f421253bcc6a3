//! A segment `k/n` is the k-th of n equal shares of a trial.
//!
//! Shares are stripes (index mod n), so the rate of each segment is always 1/n of the whole, and segments need not
//! communicate to know their shares.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The share `k` of `n`; an undivided run is `0/1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// The number of this share, from 0.
    pub k: u64,
    /// The number of shares.
    pub n: u64,
}

impl Default for Segment {
    fn default() -> Self {
        Self { k: 0, n: 1 }
    }
}

impl Segment {
    /// Parses `k/n`. Error messages have one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(k, n)| Some(Self { k: k.parse().ok()?, n: n.parse().ok()? }));
        match parsed {
            Some(segment) if segment.k < segment.n => Ok(segment),
            _ => Err(format!("segment must be k/n with 0 <= k < n, got \"{text}\"")),
        }
    }

    /// The index, in the whole trial, of this segment's `step`-th operation.
    #[inline]
    pub const fn global_index(self, step: u64) -> u64 {
        step.saturating_mul(self.n).saturating_add(self.k)
    }

    /// The number of items in this segment if there are `total` items.
    #[inline]
    pub const fn share_of_total(self, total: u64) -> u64 {
        total / self.n + (total % self.n > self.k) as u64
    }

    /// Whether the item with this `index` in the whole trial belongs to this segment.
    #[inline]
    pub const fn has_index(self, index: u64) -> bool {
        index % self.n == self.k
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_partition_any_total() {
        for (total, n) in [(0, 3), (1, 3), (10, 3), (1_000, 7), (6, 6)] {
            let mut indices: Vec<u64> = (0..n)
                .flat_map(|k| {
                    let segment = Segment { k, n };
                    (0..segment.share_of_total(total)).map(move |step| segment.global_index(step))
                })
                .collect();
            indices.sort_unstable();
            assert_eq!(indices, (0..total).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_form_wanted() {
        assert_eq!(Segment::parse("1/4"), Ok(Segment { k: 1, n: 4 }));
        for bad in ["4/4", "1", "a/b", "1/0", "-1/2", ""] {
            assert!(Segment::parse(bad).unwrap_err().contains("k/n"), "{bad}");
        }
    }
}
