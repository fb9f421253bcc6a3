//! When operations are due: arithmetic on their index, never read off a timer.
//!
//! Arrivals are a unit-rate process (the i-th arrives when i, or for Poisson a sum of i exponentials, operations should
//! have been sent) put through the inverse of the rate's integral. That time change makes a Poisson process of any
//! ramp or staircase (Çinlar 1975, "Introduction to Stochastic Processes", ch. 4.7), and the due time of operation i
//! needs no other operation's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::random::{Draws, Purpose};

/// How clients are driven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub enum PaceSpec {
    /// Each client sends its next operation when the last is done.
    Closed,
    /// Operations are due by a rate, whether or not clients are free.
    Open {
        /// The rate over time: pieces one after the other; the last one goes on for ever.
        rate: Vec<RatePiece>,
        /// How arrivals are spaced.
        arrival: Arrival,
    },
}

/// A stretch of time in which the rate is constant or moves linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePiece {
    /// Operations per second, of the whole trial, at its start.
    pub from: f64,
    /// Operations per second at its end.
    pub to: f64,
    /// How long, seconds; the last piece goes on at `to` after it.
    pub seconds: f64,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Evenly.
    #[default]
    Uniform,
    /// With exponential gaps, as independent users arrive.
    Poisson,
}

/// Fractions of an operation are counted in units of 2^−20.
const FRACTION_BITS: u32 = 20;
/// Rates are counted in millionths of an operation per second.
const MICRO: u128 = 1_000_000;
const NS: u128 = 1_000_000_000;

/// The rate over time, in whole numbers.
#[derive(Clone, Debug)]
struct Piece {
    /// When it starts, ns from the trial's start.
    start_ns: u128,
    /// Operations due before it, in fractions.
    before: u128,
    /// Rate at its start and end, in millionths.
    from: u128,
    to: u128,
    /// Its length, ns; `None` for the last.
    ns: Option<u128>,
}

impl Piece {
    /// Time from this piece's start until `units` fractions of an operation are due in it, ns.
    fn time_of(&self, units: u128) -> u128 {
        let flat = |rate: u128| (units * NS * MICRO / rate.max(1)) >> FRACTION_BITS;
        let Some(length) = self.ns.filter(|_| self.from != self.to) else { return flat(self.from) };
        // units = from·t + (to − from)·t² / (2·length): the positive root, written so that nothing is subtracted from
        // nearly itself: t = 2·units / (from + sqrt(from² + 2·(to − from)·units / length)).
        let (from, to) = (self.from as f64 / MICRO as f64, self.to as f64 / MICRO as f64);
        let amount = units as f64 / f64::from(1u32 << FRACTION_BITS);
        let seconds = length as f64 / NS as f64;
        let root = (from * from + 2.0 * (to - from) * amount / seconds).max(0.0).sqrt();
        (2.0 * amount / (from + root).max(1e-12) * NS as f64) as u128
    }

    /// Fractions of an operation due until `t` ns into this piece.
    fn units_until(&self, t: u128) -> u128 {
        match self.ns {
            Some(length) if self.from != self.to => {
                let (from, to, t, length) = (self.from as i128, self.to as i128, t as i128, length as i128);
                // from·t + (to − from)·t²/(2·length), in millionths × ns.
                let area = from * t + (to - from) * t / length * t / 2 + (to - from) * t % length * t / length / 2;
                (((area as f64) / (NS * MICRO) as f64) * f64::from(1u32 << FRACTION_BITS)) as u128
            }
            _ => ((self.from * t) << FRACTION_BITS) / (NS * MICRO),
        }
    }
}

/// Due times.
#[derive(Clone, Debug)]
pub struct Pace {
    pieces: Vec<Piece>,
    poisson: Option<Poisson>,
}

impl Pace {
    /// The pace of a spec; `None` for the closed loop. Errors are one line for the user.
    pub fn new(spec: &PaceSpec, seed: u64) -> Result<Option<Self>, String> {
        let PaceSpec::Open { rate, arrival } = spec else { return Ok(None) };
        let (mut start_ns, mut before) = (0u128, 0u128);
        let mut pieces = Vec::new();
        for (i, piece) in rate.iter().enumerate() {
            let fine = |r: f64| r.is_finite() && (0.0..=1e9).contains(&r);
            if !(fine(piece.from) && fine(piece.to)) {
                return Err("a rate must be between 0 and 1,000,000,000 operations per second".to_owned());
            }
            if !(0.0..=1e9).contains(&piece.seconds) {
                return Err("a rate must last between 0 and 1,000,000,000 seconds".to_owned());
            }
            let micro = |r: f64| (r * MICRO as f64).round() as u128;
            let ns = (piece.seconds * NS as f64) as u128;
            let made = Piece { start_ns, before, from: micro(piece.from), to: micro(piece.to), ns: Some(ns) };
            if ns > 0 {
                before += made.units_until(ns);
                start_ns += ns;
                pieces.push(made);
            }
            if i + 1 == rate.len() {
                if piece.to <= 0.0 {
                    return Err("the last rate must be above 0 operations per second".to_owned());
                }
                pieces.push(Piece { start_ns, before, from: micro(piece.to), to: micro(piece.to), ns: None });
            }
        }
        if pieces.is_empty() {
            return Err("a rate needs at least one piece".to_owned());
        }
        let poisson = (*arrival == Arrival::Poisson).then(|| Poisson::new(seed));
        Ok(Some(Self { pieces, poisson }))
    }

    /// When the operation at `index` is due, ns after the trial's start. `cursor` remembers the last look-up of the
    /// caller; it changes the speed only.
    #[inline]
    pub fn due_ns(&self, index: u64, cursor: &mut Cursor) -> u64 {
        let units = match &self.poisson {
            None => u128::from(index) << FRACTION_BITS,
            Some(poisson) => poisson.units(index, cursor),
        };
        let mut piece = &self.pieces[cursor.piece.min(self.pieces.len() - 1)];
        if units < piece.before {
            cursor.piece = 0;
            piece = &self.pieces[0];
        }
        while let Some(next) = self.pieces.get(cursor.piece + 1)
            && next.before <= units
        {
            cursor.piece += 1;
            piece = next;
        }
        u64::try_from(piece.start_ns + piece.time_of(units - piece.before)).unwrap_or(u64::MAX)
    }

    /// The first index due at or after `ns`.
    pub fn first_due_at(&self, ns: u64) -> u64 {
        let mut cursor = Cursor::default();
        let (mut low, mut high) = (0u64, 1u64);
        while self.due_ns(high, &mut cursor) < ns {
            low = high;
            high = high.saturating_mul(2);
            if high == u64::MAX {
                return high;
            }
        }
        if self.due_ns(0, &mut cursor) >= ns {
            return 0;
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.due_ns(middle, &mut cursor) < ns {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// What a caller remembers between look-ups.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    piece: usize,
    /// The block of the last look-up, how many units came before it, and its own length (0: none looked up yet).
    block: u64,
    before: u128,
    length: u128,
}

/// Arrivals in blocks: a block's length is a gamma draw, and within it the arrivals fall as sorted uniforms do, which
/// together is exactly a sum of exponentials. The falls are taken from a few patterns made in advance, so that an
/// index costs a look-up and not a thousand logarithms.
#[derive(Clone, Debug)]
struct Poisson {
    seed: u64,
    /// Patterns of `BLOCK` partial sums, each a fraction of the block in units of 2^−32.
    patterns: Vec<u32>,
}

const BLOCK: u64 = 1_024;
const PATTERNS: u64 = 32;

impl Poisson {
    fn new(seed: u64) -> Self {
        let mut patterns = Vec::with_capacity((BLOCK * PATTERNS) as usize);
        for pattern in 0..PATTERNS {
            let mut draws = Draws::at(!seed, pattern, Purpose::Arrival);
            let gaps: Vec<f64> = (0..BLOCK).map(|_| draws.exponential()).collect();
            let total: f64 = gaps.iter().sum();
            let mut sum = 0.0;
            for gap in gaps {
                patterns.push((sum / total * f64::from(u32::MAX)) as u32);
                sum += gap;
            }
        }
        Self { seed, patterns }
    }

    fn block_units(&self, block: u64) -> u128 {
        let gamma = Draws::at(self.seed, block, Purpose::Arrival).gamma(BLOCK as f64);
        (gamma * f64::from(1u32 << FRACTION_BITS)) as u128
    }

    #[inline]
    fn units(&self, index: u64, cursor: &mut Cursor) -> u128 {
        let block = index / BLOCK;
        if block < cursor.block || cursor.length == 0 {
            *cursor = Cursor { piece: cursor.piece, length: self.block_units(0), ..Cursor::default() };
        }
        while cursor.block < block {
            cursor.before += cursor.length;
            cursor.block += 1;
            cursor.length = self.block_units(cursor.block);
        }
        let pattern = Draws::at(!self.seed, block, Purpose::Deal).below(PATTERNS);
        let fraction = u128::from(self.patterns[(pattern * BLOCK + index % BLOCK) as usize]);
        cursor.before + ((cursor.length * fraction) >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: &[(f64, f64, f64)], arrival: Arrival) -> Pace {
        let rate = rate.iter().map(|&(from, to, seconds)| RatePiece { from, to, seconds }).collect();
        Pace::new(&PaceSpec::Open { rate, arrival }, 11).unwrap().unwrap()
    }

    fn due(pace: &Pace, index: u64) -> u64 {
        pace.due_ns(index, &mut Cursor::default())
    }

    #[test]
    fn a_fixed_rate_does_not_drift_in_a_century() {
        let third = pace(&[(3.0, 3.0, 0.0)], Arrival::Uniform);
        assert_eq!(due(&third, 1), 333_333_333);
        assert_eq!(due(&third, 3), 1_000_000_000);
        assert_eq!(due(&third, 9_000_000_000), 3_000_000_000_000_000_000);
        let fast = pace(&[(1e9, 1e9, 0.0)], Arrival::Uniform);
        assert_eq!(due(&fast, 123_456_789_012_345_678), 123_456_789_012_345_678);
    }

    #[test]
    fn steps_follow_each_other_without_gap() {
        let steps = pace(&[(10.0, 10.0, 2.0), (1_000.0, 1_000.0, 1.0)], Arrival::Uniform);
        assert_eq!(due(&steps, 19), 1_900_000_000);
        assert_eq!(due(&steps, 20), 2_000_000_000);
        assert_eq!(due(&steps, 21), 2_001_000_000);
        assert_eq!(due(&steps, 5_020), 7_000_000_000, "the last rate goes on");
    }

    #[test]
    fn a_ramp_sends_the_area_under_it() {
        let ramp = pace(&[(0.0, 1_000.0, 10.0)], Arrival::Uniform);
        // t² × 50 operations until t.
        assert_eq!(due(&ramp, 50) / 1_000_000, 1_000);
        assert_eq!(due(&ramp, 1_250) / 1_000_000, 5_000);
        assert_eq!(due(&ramp, 5_000) / 1_000_000, 10_000);
        assert_eq!(due(&ramp, 6_000) / 1_000_000, 11_000);
        let down = pace(&[(1_000.0, 100.0, 10.0)], Arrival::Uniform);
        assert_eq!(due(&down, 5_500) / 1_000_000, 10_000);
    }

    #[test]
    fn due_times_never_go_back_and_do_not_depend_on_the_cursor() {
        for arrival in [Arrival::Uniform, Arrival::Poisson] {
            let pace = pace(&[(100.0, 5_000.0, 3.0), (50.0, 50.0, 1.0), (2_000.0, 2_000.0, 0.0)], arrival);
            let mut walking = Cursor::default();
            let mut last = 0;
            for index in 0..20_000 {
                let now = pace.due_ns(index, &mut walking);
                assert!(now >= last, "index {index}");
                if index % 997 == 0 {
                    assert_eq!(now, due(&pace, index));
                }
                last = now;
            }
            let first = pace.first_due_at(2_500_000_000);
            assert!(due(&pace, first) >= 2_500_000_000 && due(&pace, first - 1) < 2_500_000_000);
        }
    }

    /// Gaps of a Poisson process: mean 1/λ, standard deviation 1/λ, and 63.2 % of them shorter than the mean; counts in
    /// windows of 5 s have a variance equal to their mean.
    #[test]
    fn poisson_arrivals_are_poisson() {
        let pace = pace(&[(1_000.0, 1_000.0, 0.0)], Arrival::Poisson);
        let mut cursor = Cursor::default();
        let due: Vec<f64> = (0..2_000_000).map(|i| pace.due_ns(i, &mut cursor) as f64 / 1e6).collect();
        let gaps: Vec<f64> = due.windows(2).map(|w| w[1] - w[0]).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        let short = gaps.iter().filter(|&&g| g < mean).count() as f64 / n;
        assert!((mean - 1.0).abs() < 0.004, "mean {mean}");
        assert!((deviation - 1.0).abs() < 0.02, "deviation {deviation}");
        assert!((short - 0.632_1).abs() < 0.004, "short {short}");
        let mut counts = vec![0f64; 390];
        for t in due {
            if let Some(count) = counts.get_mut((t / 5_000.0) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / 390.0;
        let dispersion = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 389.0 / mean;
        // Index of dispersion: 1 ± 4·sqrt(2/389).
        assert!((dispersion - 1.0).abs() < 0.29, "dispersion {dispersion}");
    }

    #[test]
    fn nonsense_rates_are_refused() {
        let refuse = |from, to, seconds| {
            let rate = vec![RatePiece { from, to, seconds }];
            Pace::new(&PaceSpec::Open { rate, arrival: Arrival::Uniform }, 1).unwrap_err()
        };
        assert!(refuse(f64::NAN, 1.0, 1.0).contains("rate"));
        assert!(refuse(-1.0, 1.0, 1.0).contains("rate"));
        assert!(refuse(5.0, 0.0, 1.0).contains("last rate"));
    }
}
