//! A tree of losers, which finds the lowest entry of many sorted sequences with one comparison per level (Knuth, TAOCP
//! vol. 3, 5.4.1).

/// Marks the end of a sequence. No row has such an entry: the low bits of this value are higher than the place of any
/// row and the number of any sequence.
pub const END: u128 = u128::MAX;

/// A tournament between the first entries of sequences.
#[derive(Debug)]
pub struct Tournament {
    /// The current entry of each sequence. The number of entries is a power of two.
    entries: Vec<u128>,
    /// The sequence that lost at each inner node; at index 0, the sequence that won.
    losers: Vec<u32>,
}

impl Tournament {
    /// Starts a tournament between sequences that begin with these entries ([`END`] for an empty sequence).
    pub fn new(mut entries: Vec<u128>) -> Self {
        let size = entries.len().max(1).next_power_of_two();
        entries.resize(size, END);
        let mut winners = vec![0u32; 2 * size];
        let mut losers = vec![0u32; size];
        for (sequence, leaf) in winners[size..].iter_mut().enumerate() {
            *leaf = sequence as u32;
        }
        for node in (1..size).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = entries[left as usize] <= entries[right as usize];
            (winners[node], losers[node]) = if left_wins { (left, right) } else { (right, left) };
        }
        losers[0] = winners[1];
        Self { entries, losers }
    }

    /// The lowest entry and its sequence; [`END`] when all sequences have ended.
    #[inline]
    pub fn least_entry(&self) -> (usize, u128) {
        let sequence = self.losers[0] as usize;
        (sequence, self.entries[sequence])
    }

    /// Replaces the lowest entry with the next entry of its sequence.
    #[inline]
    pub fn replace_least(&mut self, entry: u128) {
        let mut winner = self.losers[0];
        let mut best = entry;
        self.entries[winner as usize] = entry;
        let mut node = (self.entries.len() + winner as usize) >> 1;
        while node > 0 {
            let loser = self.losers[node];
            let other = self.entries[loser as usize];
            if other < best {
                self.losers[node] = winner;
                (winner, best) = (loser, other);
            }
            node /= 2;
        }
        self.losers[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorted_sequences_come_out_as_one(mut lists in proptest::collection::vec(proptest::collection::vec(0u128..50, 0..20), 0..12)) {
            let mut expected: Vec<u128> = lists.concat();
            expected.sort_unstable();
            for list in &mut lists {
                list.sort_unstable();
            }
            let mut rest: Vec<_> = lists.iter().map(|list| list.iter().copied()).collect();
            let mut tournament = Tournament::new(rest.iter_mut().map(|list| list.next().unwrap_or(END)).collect());
            let mut got = Vec::new();
            while let (sequence, entry) = tournament.least_entry() && entry != END {
                got.push(entry);
                tournament.replace_least(rest[sequence].next().unwrap_or(END));
            }
            prop_assert_eq!(got, expected);
        }
    }
}
