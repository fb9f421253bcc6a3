//! The kinds of operations of `mixed`: drawn by weight, in runs of one kind.
//!
//! Source: Cassandra's `SampledOpDistribution.java`. The tool draws runs for each thread from an unseeded generator. Here
//! the kind of an operation is a pure function of its index: the operations are cut into blocks, and a block's runs
//! depend on its number alone.

use crate::distribution::{Distribution, Spec};
use crate::random::{JavaRandom, mix_seed};
use crate::settings::Command;

const KINDS: u64 = 0x6d69_7865;
const CLUSTERING: u64 = 0x636c_7573;
/// Runs of a block, on average. The last run of a block is cut, so runs are shorter by a few per cent than `clustering=`.
const RUNS: u64 = 16;
/// Blocks of long runs are no longer than this, so the cost of a block is bounded.
const BLOCK_MAX: u64 = 1 << 16;

/// The kinds of operations. One per client: it remembers the block of its last operation.
#[derive(Clone, Debug)]
pub struct Mixture {
    /// Kinds with the sum of the weights up to and including the kind, as a share.
    shares: Vec<(Command, f64)>,
    clustering: Distribution,
    block: u64,
    seed: u64,
    current: Option<u64>,
    /// The first operation after each run of the current block, counted from the start of the block, and its kind.
    runs: Vec<(u64, Command)>,
}

impl Mixture {
    /// A mixture of kinds with weights; `clustering` is the length of a run.
    ///
    /// # Errors
    /// No weight is positive, or the distribution has no sampler.
    pub fn new(weights: &[(Command, f64)], clustering: &Spec, seed: u64) -> Result<Self, String> {
        let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if sum.is_nan() || sum <= 0.0 {
            return Err("Must specify at least one command with a non-zero ratio".to_owned());
        }
        let mut total = 0.0;
        let shares = weights
            .iter()
            .filter(|(_, weight)| *weight > 0.0)
            .map(|(command, weight)| {
                total += weight / sum;
                (*command, total)
            })
            .collect();
        let clustering = clustering.sampler()?;
        let average = u64::try_from(clustering.average()).unwrap_or(1).max(1);
        let block = average.saturating_mul(RUNS).min(BLOCK_MAX);
        Ok(Self { shares, clustering, block, seed, current: None, runs: Vec::new() })
    }

    /// The kind of the operation at `index`.
    ///
    /// Cost: a comparison within the block of the last operation; otherwise the draws of a block, about 16 runs.
    #[inline]
    pub fn kind_at(&mut self, index: u64) -> Command {
        if let [(command, _)] = self.shares[..] {
            return command;
        }
        let block = index / self.block;
        if self.current != Some(block) {
            self.draw_block(block);
        }
        let place = index % self.block;
        let run = self.runs.partition_point(|(end, _)| *end <= place);
        self.runs[run.min(self.runs.len() - 1)].1
    }

    fn draw_block(&mut self, block: u64) {
        let mut kinds = JavaRandom::new(mix_seed(self.seed, block, KINDS));
        self.clustering.seed(mix_seed(self.seed, block, CLUSTERING));
        self.runs.clear();
        let mut end = 0;
        while end < self.block {
            let share = kinds.next_double();
            let kind = self.shares.partition_point(|(_, total)| *total <= share).min(self.shares.len() - 1);
            end += u64::try_from(self.clustering.next()).unwrap_or(1).max(1);
            self.runs.push((end, self.shares[kind].0));
        }
        self.current = Some(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::parse_spec;

    fn mixture(weights: &[(Command, f64)], clustering: &str) -> Mixture {
        Mixture::new(weights, &parse_spec(clustering).unwrap(), 42).unwrap()
    }

    #[test]
    fn shares_follow_the_weights() {
        let mut mixture = mixture(&[(Command::Write, 1.0), (Command::Read, 3.0)], "gaussian(1..10)");
        let reads = (0..200_000).filter(|index| mixture.kind_at(*index) == Command::Read).count();
        assert!((reads as f64 / 200_000.0 - 0.75).abs() < 0.01, "{reads}");
    }

    #[test]
    fn kinds_depend_on_the_index_alone() {
        let weights = [(Command::Write, 1.0), (Command::Read, 2.0), (Command::CounterRead, 0.5)];
        let (mut forwards, mut sparse) = (mixture(&weights, "uniform(1..7)"), mixture(&weights, "uniform(1..7)"));
        let kinds: Vec<Command> = (0..5_000).map(|index| forwards.kind_at(index)).collect();
        for index in (0..5_000).rev().step_by(7) {
            assert_eq!(sparse.kind_at(index), kinds[index as usize], "{index}");
        }
    }

    #[test]
    fn runs_have_their_length() {
        let mut mixture = mixture(&[(Command::Write, 1.0), (Command::Read, 1.0)], "fixed(10)");
        let kinds: Vec<Command> = (0..10_000).map(|index| mixture.kind_at(index)).collect();
        assert!(kinds.chunks(10).all(|run| run.iter().all(|kind| *kind == run[0])));
    }

    #[test]
    fn single_kind_needs_no_draw() {
        let mut mixture = mixture(&[(Command::Write, 0.0), (Command::Read, 1.0)], "gaussian(1..10)");
        assert_eq!(mixture.kind_at(u64::MAX), Command::Read);
        assert!(Mixture::new(&[(Command::Read, 0.0)], &parse_spec("fixed(1)").unwrap(), 0).is_err());
    }
}
