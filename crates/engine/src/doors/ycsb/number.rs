//! Numbers as the texts that Java makes of them, because scripts compare YCSB's lines byte by byte.

/// `Double.toString`.
#[must_use]
pub fn double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    let (digits, exponent) = shortest(value.abs());
    match exponent {
        0..=6 => {
            let whole = exponent as usize + 1;
            let padded = format!("{digits:0<width$}", width = whole + 1);
            let (whole, fraction) = padded.split_at(whole);
            format!("{sign}{whole}.{fraction}")
        }
        -3..=-1 => format!("{sign}0.{}{}", &"00"[..(-exponent - 1) as usize], digits.trim_end_matches('0')),
        _ => {
            let (first, rest) = digits.split_at(1);
            format!("{sign}{first}.{rest}E{exponent}")
        }
    }
}

/// The fewest decimal digits, two at least, that identify `value` (finite, not negative), and the power of ten of the
/// first of them.
fn shortest(value: f64) -> (String, i32) {
    let mut text = format!("{value:e}");
    if !text.contains('.') {
        // Of all two-digit decimals that identify the value Java takes the nearest: 4.9E-324, not 5.0E-324.
        text = format!("{value:.1e}");
    }
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// `new DecimalFormat("#.##").format`
#[must_use]
pub fn decimal(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let shortest = value.to_string();
    match shortest.split_once('.') {
        Some((_, fraction)) if fraction.len() > 2 => {
            format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => shortest,
    }
}

/// `String.format("%.2f", …)`
#[must_use]
pub fn fixed2(value: f64) -> String {
    if !value.is_finite() {
        return double(value);
    }
    let shortest = value.to_string();
    let (whole, fraction) = shortest.split_once('.').unwrap_or((&shortest, ""));
    if fraction.len() <= 2 {
        return format!("{whole}.{fraction:0<2}");
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let up = u64::from(fraction.as_bytes()[2] >= b'5');
    // A double with a third decimal is below 2^51, so its hundredths fit.
    let hundredths = format!("{}{}", whole.trim_start_matches('-'), &fraction[..2]).parse().unwrap_or(0u64) + up;
    format!("{sign}{}.{:02}", hundredths / 100, hundredths % 100)
}
