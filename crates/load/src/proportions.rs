//! The proportions of the kinds of operation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::kind_sequence::KindSequence;
use crate::refusal::Refusal;

/// Proportions of the kinds of operation; they need not sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
    /// `deleteproportion` (an extension).
    pub delete: f64,
}

/// Maximum proportion; larger proportions would make the smaller ones negligible.
const PROPORTION_MAX: f64 = 1e9;

impl Mix {
    /// Refuses negative proportions, numbers that are not finite, and a `run` without operations.
    pub fn check_mix(&self, run: bool) -> Result<(), Refusal> {
        let names = ["read", "update", "insert", "scan", "read_modify_write", "delete"];
        for (name, (_, weight)) in names.into_iter().zip(self.weights()) {
            if !(0.0..=PROPORTION_MAX).contains(&weight) {
                let required = format!("at least 0 and at most {PROPORTION_MAX}");
                return Err(Refusal::for_value(&format!("work.mix.{name}"), &required, weight));
            }
        }
        let is_empty = self.weights().iter().all(|&(_, weight)| weight <= 0.0);
        if run && is_empty { Err(Self::refuse_empty()) } else { Ok(()) }
    }

    /// The refusal of a run in which no kind of operation has a proportion above 0.
    pub fn refuse_empty() -> Refusal {
        Refusal::new("no operation has a proportion above 0", "set {work.mix.read}, or another proportion")
    }

    /// The weight of each kind, in the order in which kinds are chosen.
    pub fn weights(&self) -> [(Kind, f64); 6] {
        [
            (Kind::Read, self.read),
            (Kind::Update, self.update),
            (Kind::Insert, self.insert),
            (Kind::Scan, self.scan),
            (Kind::ReadModifyWrite, self.read_modify_write),
            (Kind::Delete, self.delete),
        ]
    }

    /// The smallest positive share, if it has to be rounded up: no share can be below 1 in [`KindSequence::RAREST`].
    pub fn too_rare(&self) -> Option<f64> {
        let weights = self.weights().map(|(_, weight)| weight.max(0.0));
        let total: f64 = weights.iter().sum();
        let least = weights.into_iter().filter(|&weight| weight > 0.0).map(|weight| weight / total);
        least.min_by(f64::total_cmp).filter(|&share| share * (KindSequence::RAREST as f64) < 1.0 - 1e-6)
    }
}
