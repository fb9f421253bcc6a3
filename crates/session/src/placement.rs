//! The placement of keys on servers.

/// The placement of keys on servers. A key range consists of all keys with copies on the same servers: these keys
/// become unavailable together. A key range may consist of several separate intervals (parts) of the partitioner's
/// values.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Returns the partitioner's value for a key.
    partitioner: fn(&[u8]) -> u64,
    /// The first value of each part, in ascending order, and the number of the key range to which the part belongs.
    parts: Box<[(u64, u32)]>,
    /// The share of all values that each key range contains.
    pub shares: Vec<f64>,
}

impl Placement {
    /// The placement of keys whose values are below `end`. `parts` yields the first value and the servers of each part,
    /// in ascending order. `None` if the parts do not begin at 0.
    pub fn new(
        partitioner: fn(&[u8]) -> u64,
        end: u128,
        parts: impl IntoIterator<Item = (u64, Vec<usize>)>,
    ) -> Option<Self> {
        let mut servers: Vec<Vec<usize>> = Vec::new();
        let mut firsts: Vec<(u64, u32)> = Vec::new();
        for (first, mut owners) in parts {
            // Only the set of servers matters: the order in which they hold the copies does not affect availability.
            owners.sort_unstable();
            let range = servers.iter().position(|known| *known == owners).unwrap_or_else(|| {
                servers.push(owners);
                servers.len() - 1
            }) as u32;
            if firsts.last().is_none_or(|&(_, last)| last != range) {
                firsts.push((first, range));
            }
        }
        if firsts.first()?.0 != 0 {
            return None;
        }
        let mut shares = vec![0.0; servers.len()];
        for (at, &(first, range)) in firsts.iter().enumerate() {
            let next = firsts.get(at + 1).map_or(end, |&(next, _)| u128::from(next));
            shares[range as usize] += next.saturating_sub(u128::from(first)) as f64 / end as f64;
        }
        Some(Self { partitioner, parts: firsts.into(), shares })
    }

    /// The number of the key range that contains a key.
    pub fn find_range(&self, key: &[u8]) -> usize {
        let value = (self.partitioner)(key);
        let after = self.parts.partition_point(|&(first, _)| first <= value);
        self.parts[after.saturating_sub(1)].1 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_byte(key: &[u8]) -> u64 {
        u64::from(key[0])
    }

    #[test]
    fn parts_with_equal_servers_form_one_range() {
        let parts = [(0, vec![0, 1]), (64, vec![1, 0]), (128, vec![2, 0]), (160, vec![1, 0]), (240, vec![2, 1])];
        let placement = Placement::new(first_byte, 256, parts).unwrap();
        assert_eq!(placement.shares, [208.0 / 256.0, 32.0 / 256.0, 16.0 / 256.0]);
        let ranges = [0, 127, 128, 159, 160, 239, 240, 255].map(|key| placement.find_range(&[key]));
        assert_eq!(ranges, [0, 0, 1, 1, 0, 0, 2, 2]);
    }

    #[test]
    fn incomplete_parts_have_no_placement() {
        assert!(Placement::new(first_byte, 256, []).is_none());
        assert!(Placement::new(first_byte, 256, [(1, vec![0])]).is_none());
    }
}
