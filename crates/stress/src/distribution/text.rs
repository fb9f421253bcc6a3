//! The text form of a distribution: `[~]NAME(ARGUMENTS)`.

use super::{Preset, RatioSpec, Spec};

/// Quanta are stored in memory. With too many of them, the tool fails when it allocates their array.
const QUANTAS_MAX: u32 = 1_000_000;
const PRESETS_MAX: usize = 1_000;
/// Doubles represent all whole numbers up to this value.
const VALUE_MAX: f64 = 9e15;

/// Parses a distribution, as `OptionDistribution.get` does.
///
/// # Errors
/// The tool's message.
pub fn parse_spec(text: &str) -> Result<Spec, String> {
    let malformed = || format!("Illegal distribution specification: {text}");
    let (inverse, rest) = text.strip_prefix('~').map_or((false, text), |rest| (true, rest));
    let (name, rest) = rest.split_once('(').ok_or_else(malformed)?;
    let arguments = rest.strip_suffix(')').filter(|list| !list.is_empty()).ok_or_else(malformed)?;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) || arguments.contains(['\n', '\r']) {
        return Err(malformed());
    }
    let parts: Vec<&str> = arguments.split(',').filter(|part| !part.is_empty()).collect();
    let spec = match name.to_ascii_lowercase().as_str() {
        "fixed" => parse_fixed(&parts)?,
        "uniform" => parse_uniform(&parts)?,
        "gaussian" | "gauss" | "normal" | "norm" => parse_gaussian(&parts)?,
        "exp" => parse_exponential(&parts)?,
        "extreme" | "extr" => parse_extreme(&parts)?,
        "qextreme" | "qextr" => parse_quantized(&parts)?,
        "seq" => parse_sequence(&parts)?,
        "presets" => parse_presets(&parts)?,
        _ => return Err(format!("Illegal distribution type: {name}")),
    };
    Ok(if inverse { Spec::Inverse(Box::new(spec)) } else { spec })
}

/// Parses `DIST/N`. Returns `None` if the text does not have this form.
///
/// # Errors
/// The tool's message about the distribution or the number.
pub fn parse_ratio(text: &str) -> Result<Option<RatioSpec>, String> {
    let Some((spec, divisor)) = text.rsplit_once('/') else { return Ok(None) };
    let digits = divisor.strip_suffix(['k', 'K', 'm', 'M', 'b', 'B']).unwrap_or(divisor);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    let divisor = parse_count(divisor)? as f64;
    Ok(Some(RatioSpec { distribution: parse_spec(spec)?, divisor }))
}

/// Parses an integer with an optional `k` (10³), `m` (10⁶) or `b` (10⁹), in upper or lower case.
///
/// # Errors
/// The tool's message. A product above 2⁶³ − 1 is also an error, although it wraps around in the tool.
pub fn parse_count(text: &str) -> Result<i64, String> {
    let trimmed = text.trim_matches(|c: char| c <= ' ');
    let (digits, factor) = match trimmed.bytes().last().map(|last| last.to_ascii_lowercase()) {
        Some(b'k') => (&trimmed[..trimmed.len() - 1], 1_000),
        Some(b'm') => (&trimmed[..trimmed.len() - 1], 1_000_000),
        Some(b'b') => (&trimmed[..trimmed.len() - 1], 1_000_000_000),
        _ => (trimmed, 1),
    };
    parse_integer::<i64>(digits)?.checked_mul(factor).ok_or_else(|| format!("For input string: \"{text}\""))
}

/// Parses an integer as `Long.parseLong` and `Integer.parseInt` do.
pub(crate) fn parse_integer<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("For input string: \"{text}\""))
}

/// Splits at two or more dots, as Java's `split("\\.\\.+")` does.
pub(crate) fn split_range(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once("..")?;
    let rest = rest.trim_start_matches('.');
    Some((first, rest.split_once("..").map_or(rest, |(second, _)| second)))
}

/// Formats a list as Java does, `[a, b]`, in a message.
fn refuse_text(name: &str, parts: &[&str]) -> String {
    format!("Invalid parameter list for {name} distribution: [{}]", parts.join(", "))
}

fn parse_bounds(text: &str) -> Option<(i64, i64)> {
    let (min, max) = split_range(text)?;
    Some((parse_count(min).ok()?, parse_count(max).ok()?))
}

/// Parses a decimal number as `Double.parseDouble` does; hexadecimal numbers are refused.
fn parse_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c <= ' ');
    match text.trim_start_matches(['+', '-']) {
        "NaN" => return Some(f64::NAN),
        "Infinity" => return Some(if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY }),
        _ => {}
    }
    let digits = text.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(text);
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')) {
        return None;
    }
    digits.parse().ok()
}

fn parse_fixed(parts: &[&str]) -> Result<Spec, String> {
    let [value] = parts else { return Err(refuse_text("fixed", parts)) };
    parse_count(value).map(|value| Spec::Fixed { value }).map_err(|_| refuse_text("fixed", parts))
}

fn parse_uniform(parts: &[&str]) -> Result<Spec, String> {
    let bounds = if parts.len() == 1 { parse_bounds(parts[0]) } else { None };
    match bounds {
        Some((min, max)) if min == max => Ok(Spec::Fixed { value: min }),
        Some((min, max)) => Ok(Spec::Uniform { min, max }),
        None => Err(refuse_text("uniform", parts)),
    }
}

fn parse_gaussian(parts: &[&str]) -> Result<Spec, String> {
    if parts.is_empty() || parts.len() > 3 {
        return Err(refuse_text("gaussian", parts));
    }
    // The message names another distribution, as in the tool.
    let spec = || {
        let (min, max) = parse_bounds(parts[0])?;
        let (mean, stdev) = if parts.len() == 3 {
            (parse_double(parts[1])?, parse_double(parts[2])?)
        } else {
            let stdevs_to_edge = parts.get(1).map_or(Some(3.0), |text| parse_double(text))?;
            (min.wrapping_add(max) as f64 / 2.0, max.wrapping_sub(min) as f64 / 2.0 / stdevs_to_edge)
        };
        Some(if min == max { Spec::Fixed { value: min } } else { Spec::Gaussian { min, max, mean, stdev } })
    };
    spec().ok_or_else(|| refuse_text("uniform", parts))
}

/// The quantile at the upper bound. All values of the range must be possible; the square root keeps the skew moderate.
fn bound_quantile(min: i64, max: i64) -> f64 {
    1.0 - (1.0 / max.wrapping_sub(min) as f64).sqrt()
}

fn parse_exponential(parts: &[&str]) -> Result<Spec, String> {
    let [range] = parts else { return Err(refuse_text("gaussian", parts)) };
    let (min, max) = parse_bounds(range).ok_or_else(|| refuse_text("uniform", parts))?;
    if min == max {
        return Ok(Spec::Fixed { value: min });
    }
    // The negative of ln 1 is −0, so the mean of a range of two values is −∞, as in the tool.
    let bound = -(1.0 - bound_quantile(min, max)).ln();
    Ok(Spec::Exponential { min, max, mean: max.wrapping_sub(min) as f64 / bound })
}

/// Parses the shape, and calculates the scale.
fn parse_shape(min: i64, max: i64, text: &str) -> Option<(f64, f64)> {
    let shape = parse_double(text)?;
    if shape <= 0.0 {
        return None;
    }
    let quantile = bound_quantile(min, max);
    let bound = if quantile == 0.0 { 0.0 } else { (-(1.0 - quantile).ln()).powf(1.0 / shape) };
    Some((shape, max.wrapping_sub(min) as f64 / bound))
}

/// Parses shares and values: `70:1`, `20:2.5k`.
fn parse_presets(parts: &[&str]) -> Result<Spec, String> {
    let preset = |part: &&str| {
        let (percent, value) = part.split_once(':')?;
        let (digits, factor) = match value.trim().bytes().last()?.to_ascii_lowercase() {
            b'k' => (&value[..value.trim_end().len() - 1], 1e3),
            b'm' => (&value[..value.trim_end().len() - 1], 1e6),
            _ => (value, 1.0),
        };
        let preset = Preset { percent: parse_double(percent)?, value: parse_double(digits)? * factor };
        let is_valid = preset.percent > 0.0 && preset.percent <= 1e9 && (0.0..=VALUE_MAX).contains(&preset.value);
        is_valid.then_some(preset)
    };
    let presets: Option<Vec<Preset>> = parts.iter().map(preset).collect();
    presets.filter(|presets| !presets.is_empty() && presets.len() <= PRESETS_MAX).map(Spec::Presets).ok_or_else(|| {
        format!("{}: write PERCENT:VALUE, as in presets(70:1, 20:2.5, 10:3.5)", refuse_text("presets", parts))
    })
}

fn parse_extreme(parts: &[&str]) -> Result<Spec, String> {
    let refusal = || refuse_text("extreme (Weibull)", parts);
    let [range, shape] = parts else { return Err(refusal()) };
    let (min, max) = parse_bounds(range).ok_or_else(refusal)?;
    if min == max {
        return Ok(Spec::Fixed { value: min });
    }
    let (shape, scale) = parse_shape(min, max, shape).ok_or_else(refusal)?;
    Ok(Spec::Extreme { min, max, shape, scale })
}

fn parse_quantized(parts: &[&str]) -> Result<Spec, String> {
    let refusal = || refuse_text("quantized extreme (Weibull)", parts);
    let [range, shape, quantas] = parts else { return Err(refusal()) };
    let (min, max) = parse_bounds(range).ok_or_else(refusal)?;
    let quantas = quantas.parse().ok().filter(|quantas| *quantas <= QUANTAS_MAX).ok_or_else(refusal)?;
    if min == max {
        // With this range, other distributions have one value. For this distribution, the tool computes the scale
        // first, and fails.
        return Err(refusal());
    }
    let (shape, scale) = parse_shape(min, max, shape).ok_or_else(refusal)?;
    Ok(Spec::QuantizedExtreme { min, max, shape, scale, quantas })
}

fn parse_sequence(parts: &[&str]) -> Result<Spec, String> {
    let refusal = || refuse_text("sequence", parts);
    let [range] = parts else { return Err(refusal()) };
    let (start, end) = parse_bounds(range).ok_or_else(refusal)?;
    match start.cmp(&end) {
        std::cmp::Ordering::Less => Ok(Spec::Sequence { start, end }),
        std::cmp::Ordering::Equal => {
            Err(refuse_text("sequence", parts).replace("distribution:", "distribution (min==max):"))
        }
        std::cmp::Ordering::Greater => {
            Err(refuse_text("sequence", parts).replace("distribution:", "distribution (min>max):"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_match_the_tool() {
        for (text, message) in [
            ("foo", "Illegal distribution specification: foo"),
            ("~~exp(1..9)", "Illegal distribution specification: ~~exp(1..9)"),
            ("weibull(1..10,2)", "Illegal distribution type: weibull"),
            ("uniform(1..10,2)", "Invalid parameter list for uniform distribution: [1..10, 2]"),
            ("exp(1..1000,2)", "Invalid parameter list for gaussian distribution: [1..1000, 2]"),
            ("seq(5..1)", "Invalid parameter list for sequence distribution (min>max): [5..1]"),
        ] {
            assert_eq!(parse_spec(text).unwrap_err(), message);
        }
    }

    #[test]
    fn counts_have_suffixes() {
        assert_eq!(parse_count("10k"), Ok(10_000));
        assert_eq!(parse_count("2B"), Ok(2_000_000_000));
        assert_eq!(parse_count("-3M"), Ok(-3_000_000));
        assert!(parse_count("99999999999b").is_err());
        assert!(parse_count("k").is_err());
        assert!(parse_count("").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "\\PC{0,40}") {
            let _ = parse_spec(&text);
            let _ = parse_ratio(&text);
            let _ = parse_count(&text);
        }

        #[test]
        fn any_distribution_can_be_drawn(
            inverse in any::<bool>(),
            name in "fixed|uniform|gaussian|exp|extreme|qextreme|seq",
            min in any::<i64>(), max in any::<i64>(), small in any::<bool>(),
            first in -3.0_f64..9.0, second in 0_u32..2000,
            seed in any::<i64>(),
        ) {
            let (min, max) = if small { (min % 1000, max % 1000) } else { (min, max) };
            let arguments = match name.as_str() {
                "fixed" => min.to_string(),
                "extreme" => format!("{min}..{max},{first}"),
                "qextreme" => format!("{min}..{max},{first},{second}"),
                "gaussian" if first > 0.0 => format!("{min}..{max},{first}"),
                _ => format!("{min}..{max}"),
            };
            let text = format!("{}{name}({arguments})", if inverse { "~" } else { "" });
            if let Ok(spec) = parse_spec(&text) {
                let _ = spec.to_string();
                if let Ok(mut distribution) = spec.sampler() {
                    distribution.seed(seed);
                    for _ in 0..8 {
                        let _ = (distribution.next(), distribution.next_double());
                    }
                    let _ = (distribution.average(), distribution.min(), distribution.max());
                }
            }
        }
    }
}
