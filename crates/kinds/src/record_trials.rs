//! Trials on records. Their targets are the stores themselves.

use loadstone_load::core::CoreSpec;
use loadstone_measure::control::End;
use loadstone_measure::trial;
use loadstone_wire::error::EngineError;

use crate::records::{Records, RecordsOf};
use crate::stores::Trial;

/// Runs a trial on records.
pub fn run_trial(records: &CoreSpec, to_run: Trial<'_>) -> Result<End, EngineError> {
    let Trial { spec, stores, controls, observer } = to_run;
    let work = Records::new(RecordsOf::new(records, spec.phase, spec.seed, spec.run)?);
    trial::run_trial(spec, work, stores.find_records(&spec.store.name)?, controls, observer)
}
