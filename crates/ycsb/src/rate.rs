//! The properties that set the rate: `target`, `rate.ramp`, `rate.steps` and `arrival`.

use loadstone_load::pace::{Arrival, PaceSpec, RatePiece};

use super::properties::Properties;
use loadstone_wire::error::EngineError;

/// The property that sets the rate.
pub fn property(properties: &Properties) -> &'static str {
    let set = |name: &&str| properties.trim_value(name).is_some();
    ["rate.ramp", "rate.steps"].into_iter().find(set).unwrap_or("target")
}

/// Determines when operations are sent.
pub fn pace(properties: &Properties) -> Result<PaceSpec, EngineError> {
    let arrival = match properties.text("arrival", "uniform").as_str() {
        "uniform" => Arrival::Uniform,
        "poisson" => Arrival::Poisson,
        other => return Err(properties.invalid_value("arrival", "uniform or poisson", other)),
    };
    let set: Vec<&str> =
        ["rate.ramp", "rate.steps"].into_iter().filter(|name| properties.trim_value(name).is_some()).collect();
    let target = properties.parse_real("target", 0.0)?;
    if set.len() + usize::from(target != 0.0) > 1 {
        return Err(
            EngineError::usage("target, rate.ramp and rate.steps are mutually exclusive").hint("keep one of them")
        );
    }
    let parts = |name: &str, text: &str, expected: &str, count: usize| -> Result<Vec<f64>, EngineError> {
        let numbers: Vec<f64> = text.split(':').filter_map(|n| n.trim().parse().ok()).collect();
        if numbers.len() == count && text.split(':').count() == count {
            Ok(numbers)
        } else {
            Err(properties.invalid_value(name, expected, text))
        }
    };
    if let Some(text) = properties.trim_value("rate.ramp") {
        let ramp = parts("rate.ramp", text, "FROM:TO:SECONDS", 3)?;
        let rate = vec![RatePiece { from: ramp[0], to: ramp[1], seconds: ramp[2] }];
        return Ok(PaceSpec::Open { rate, arrival });
    }
    if let Some(text) = properties.trim_value("rate.steps") {
        let mut rate = Vec::new();
        for step in text.split(',') {
            let step = parts("rate.steps", step, "RATE:SECONDS,RATE:SECONDS", 2)?;
            rate.push(RatePiece { from: step[0], to: step[0], seconds: step[1] });
        }
        return Ok(PaceSpec::Open { rate, arrival });
    }
    Ok(if target == 0.0 {
        PaceSpec::Closed
    } else {
        PaceSpec::Open { rate: vec![RatePiece { from: target, to: target, seconds: 0.0 }], arrival }
    })
}
