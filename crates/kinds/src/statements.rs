//! Statements of a query language, with either of the two generators of values.

use loadstone_measure::control::End;
use loadstone_measure::trial;
use loadstone_wire::error::EngineError;
use loadstone_wire::spec::StatementsSpec;

use crate::stores::Trial;
use crate::stress::StressWork;

/// Runs a trial of statements.
pub fn run_trial(statements: &StatementsSpec, to_run: Trial<'_>) -> Result<End, EngineError> {
    let Trial { spec, stores, controls, observer } = to_run;
    let name = &spec.store.name;
    let target = stores.statements.iter().find(|target| target.name == name).ok_or_else(|| {
        let names: Vec<&str> = stores.statements.iter().map(|target| target.name).collect();
        EngineError::usage(format!("the store \"{name}\" has no statements"))
            .hint(format!("a store with statements is {}", names.join(", ")))
    })?;
    let stress = match statements {
        StatementsSpec::Stress(stress) => stress,
        StatementsSpec::Columns(columns) => return (target.columns)(spec, columns, controls, observer),
    };
    let work = StressWork::new(stress, spec.seed, spec.until.operations)?;
    // One engine creates the tables for all engines.
    let definitions: &[String] = if spec.segment.k == 0 { &stress.definitions } else { &[] };
    trial::run_trial(spec, work, &*(target.stress)(definitions), controls, observer)
}
