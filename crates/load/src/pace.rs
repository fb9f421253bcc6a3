//! The due times of operations, calculated from their index and independent of any timer.
//!
//! Arrivals form a process with unit rate, transformed by the inverse of the rate's integral. In the unit-rate process,
//! operation i arrives when i operations should have been sent; for Poisson arrivals, i is replaced by a sum of i
//! exponentials. This change of time gives a Poisson process for any ramp or staircase (Çinlar 1975, "Introduction to
//! Stochastic Processes", ch. 4.7), and the due time of operation i depends on no other operation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use poisson::{Block, Poisson};

mod poisson;

/// When clients send their operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
pub enum PaceSpec {
    /// Each client sends its next operation when its last one has finished.
    Closed,
    /// Operations become due at a given rate, whether or not clients are free.
    Open {
        /// The rate over time, in consecutive pieces. The last one continues without end.
        rate: Vec<RatePiece>,
        /// How arrivals are spaced.
        arrival: Arrival,
    },
}

/// A period in which the rate is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatePiece {
    /// Rate at the start of the piece, operations per second of the whole trial.
    pub from: f64,
    /// Rate at the end of the piece, operations per second.
    pub to: f64,
    /// Length of the piece, seconds. After the last piece the rate remains at `to`.
    pub seconds: f64,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Evenly spaced.
    #[default]
    Uniform,
    /// With exponential gaps, like the arrivals of independent users.
    Poisson,
}

/// Fractions of an operation are counted in units of 2^−20.
const FRACTION_BITS: u32 = 20;
/// Rates are counted in millionths of an operation per second.
const MICRO: u128 = 1_000_000;
const NS: u128 = 1_000_000_000;

/// A piece of the rate over time, in whole numbers.
#[derive(Clone, Debug)]
struct ScaledPiece {
    /// Start of the piece, ns after the start of the trial.
    start_ns: u128,
    /// Number of operations due before this piece, in units of 2^−20.
    before: u128,
    /// Rate at the start and at the end of the piece, in millionths of an operation per second.
    from: u128,
    to: u128,
    /// Length of the piece, ns; `None` for the last piece.
    ns: Option<u128>,
}

impl ScaledPiece {
    /// Time from the start of this piece until `units` · 2^−20 operations are due in it, ns.
    fn time_of(&self, units: u128) -> u128 {
        let flat = |rate: u128| (units * NS * MICRO / rate.max(1)) >> FRACTION_BITS;
        let Some(length) = self.ns.filter(|_| self.from != self.to) else { return flat(self.from) };
        // Solves units = from·t + (to − from)·t² / (2·length) for the positive root, in a form that avoids
        // cancellation: t = 2·units / (from + sqrt(from² + 2·(to − from)·units / length)).
        let (from, to) = (self.from as f64 / MICRO as f64, self.to as f64 / MICRO as f64);
        let amount = units as f64 / f64::from(1u32 << FRACTION_BITS);
        let seconds = length as f64 / NS as f64;
        let root = (from * from + 2.0 * (to - from) * amount / seconds).max(0.0).sqrt();
        (2.0 * amount / (from + root).max(1e-12) * NS as f64) as u128
    }

    /// Number of operations due in the first `t` ns of this piece, in units of 2^−20.
    fn units_until(&self, t: u128) -> u128 {
        match self.ns {
            Some(length) if self.from != self.to => {
                let (from, to, t, length) = (self.from as i128, self.to as i128, t as i128, length as i128);
                // from·t + (to − from)·t²/(2·length), in units of millionths × ns.
                let area = from * t + (to - from) * t / length * t / 2 + (to - from) * t % length * t / length / 2;
                (((area as f64) / (NS * MICRO) as f64) * f64::from(1u32 << FRACTION_BITS)) as u128
            }
            _ => {
                let (whole, rest) = (self.from * t / (NS * MICRO), self.from * t % (NS * MICRO));
                (whole << FRACTION_BITS) + (rest << FRACTION_BITS) / (NS * MICRO)
            }
        }
    }
}

/// The due times of all operations.
#[derive(Clone, Debug)]
pub struct Pace {
    pieces: Vec<ScaledPiece>,
    poisson: Option<Poisson>,
}

impl Pace {
    /// The pace of a spec; `None` for the closed loop. Error messages have one line.
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
            let built = ScaledPiece { start_ns, before, from: micro(piece.from), to: micro(piece.to), ns: Some(ns) };
            if ns > 0 {
                before += built.units_until(ns);
                start_ns += ns;
                pieces.push(built);
            }
            if i + 1 == rate.len() {
                if piece.to <= 0.0 {
                    return Err("the last rate must be above 0 operations per second".to_owned());
                }
                pieces.push(ScaledPiece { start_ns, before, from: micro(piece.to), to: micro(piece.to), ns: None });
            }
        }
        if pieces.is_empty() {
            return Err("a rate needs at least one piece".to_owned());
        }
        let poisson = (*arrival == Arrival::Poisson).then(|| Poisson::new(seed));
        Ok(Some(Self { pieces, poisson }))
    }

    /// The time at which the operation at `index` is due, ns after the start of the trial. `cursor` caches the caller's
    /// last lookup and affects only the speed.
    #[inline]
    pub fn due_ns(&self, index: u64, cursor: &mut PaceCursor) -> u64 {
        let units = match &self.poisson {
            None => u128::from(index) << FRACTION_BITS,
            Some(poisson) => poisson.due_units(index, &mut cursor.block),
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

    /// The first index that is due at or after `ns`.
    pub fn first_due_at(&self, ns: u64) -> u64 {
        let mut cursor = PaceCursor::default();
        let mut before = |index: u64| self.due_ns(index, &mut cursor) < ns;
        if !before(0) {
            return 0;
        }
        // Searches outwards from the expected index. The sums of a Poisson process are computed only up to the
        // requested index, so the search needs hardly more of them than the load itself.
        let guess = self.expected_operations(ns);
        let (mut low, mut high) = (0, u64::MAX);
        let mut step = 1;
        if before(guess) {
            low = guess;
            while high == u64::MAX {
                let next = guess.saturating_add(step);
                if next == u64::MAX {
                    return next;
                }
                if before(next) {
                    low = next;
                    step = step.saturating_mul(2);
                } else {
                    high = next;
                }
            }
        } else {
            high = guess;
            while low == 0 && step < guess {
                let next = guess - step;
                if before(next) {
                    low = next;
                } else {
                    high = next;
                    step = step.saturating_mul(2);
                }
            }
        }
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// The number of operations expected to be due before `ns`, calculated from the rate alone.
    fn expected_operations(&self, ns: u64) -> u64 {
        let ns = u128::from(ns);
        let piece = self.pieces.iter().rev().find(|piece| piece.start_ns <= ns).unwrap_or(&self.pieces[0]);
        let units = piece.before + piece.units_until(ns.saturating_sub(piece.start_ns));
        u64::try_from(units >> FRACTION_BITS).unwrap_or(u64::MAX)
    }
}

/// A caller's state between lookups.
#[derive(Clone, Debug, Default)]
pub struct PaceCursor {
    piece: usize,
    /// The block of the last lookup.
    block: Option<(u64, Block)>,
}

#[cfg(test)]
mod tests;
