//! Formats numbers as Java does, because scripts compare YCSB's lines byte by byte.
//!
//! The functions were compared with real JDKs in an English locale. They agree with JDK 17 on 9 million throughputs
//! (1000·n/ms), means (sum/n), decimals, eighths and small fractions. [`format_double`] also agrees with JDK 25 on
//! random bits. JDKs before 19 differ for about 0.3 % of all doubles because of bug JDK-4511638: one digit too many, or
//! a last digit that is off by one. This affects many integers above 2^53, subnormals, and some powers of two below
//! 10^-7. None of these is a count, time or rate that YCSB prints.

/// Formats like `Double.toString`: `100.0`, `0.001`, `1.0E-4`, `1.0E7`, `NaN`, `-Infinity`, `-0.0`.
///
/// The notation is plain from 10^-3 to below 10^7, and scientific otherwise, with at least one digit after the decimal
/// point. It has the fewest digits that identify the value. JDK 17 and older write 10^23 as `9.999999999999999E22` and
/// 2^-44 as `5.6843418860808015E-14`; this function writes `1.0E23` and `5.684341886080802E-14`, as JDK 19 does.
#[must_use]
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}Infinity");
    }
    let (digits, exponent) = shortest_digits(value.abs());
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

/// The fewest decimal digits, at least two, that identify `value` (which is finite and not negative), and the power of
/// ten of the first digit.
fn shortest_digits(value: f64) -> (String, i32) {
    let fewest = format!("{value:e}");
    // Among all decimals with this number of digits, but at least two (4.9E-324 rather than 5.0E-324), Java takes the
    // nearest. In a tie, Java takes the even decimal, whereas Rust takes the upper one. At a power of two, the nearest
    // decimal may belong to another double.
    let digits = fewest.find('e').map_or(1, |end| end.saturating_sub(2).max(1));
    let nearest = format!("{value:.digits$e}");
    let text = if nearest.parse() == Ok(value) { nearest } else { fewest };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// The digits of [`format_double`] without an exponent: the whole part, and the digits after the decimal point
/// (possibly none, and without trailing zeros).
fn plain_digits(value: f64) -> (String, String) {
    let (digits, exponent) = shortest_digits(value);
    let text = if exponent < 0 {
        "0".repeat(exponent.unsigned_abs() as usize) + &digits
    } else {
        format!("{digits:0<width$}", width = exponent as usize + 1)
    };
    let (whole, fraction) = text.split_at(exponent.max(0) as usize + 1);
    (whole.to_owned(), fraction.trim_end_matches('0').to_owned())
}

/// Formats like `new DecimalFormat("#.##").format` in an English locale: `1545.1`, `0.5`, `12`, `-0`, `NaN` (JDK 8
/// printed U+FFFD), `∞`. There are at most two digits after the decimal point, rounded half-even from the exact binary
/// value: `1.005` is `1`, and `0.125` is `0.12`.
///
/// Source: `java.text.DigitList.shouldRoundUp`, which rounds the digits of [`format_double`], but knows on which side
/// of a tie they are. Digits that `format_double` has dropped are therefore not restored: 79897317443380.125 is
/// `79897317443380.12`.
#[must_use]
pub fn format_decimal(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}∞");
    }
    let (whole, fraction) = plain_digits(value.abs());
    match fraction.len() {
        0 => format!("{sign}{whole}"),
        1 | 2 => format!("{sign}{whole}.{fraction}"),
        _ => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// `String.format("%.2f", …)` for two decimals: `1449.75`, `1.00`, `-0.00`, `NaN`, `Infinity`.
///
/// Unlike C, this rounds the decimal digits of [`format_double`], half up: `1.005` is `1.01` (`Formatter`'s default
/// `RoundingMode.HALF_UP`, applied in `jdk.internal.math.FormattedFloatingDecimal`).
#[must_use]
pub fn format_decimals(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return format_double(value);
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (mut whole, mut fraction) = plain_digits(value.abs());
    if fraction.len() > decimals {
        // There are at most 17 digits, and more than `decimals` of them after the point, so the rounded number fits.
        let number: u64 = format!("{whole}{}", &fraction[..decimals]).parse().unwrap_or(0);
        let number = number + u64::from(fraction.as_bytes()[decimals] >= b'5');
        whole = format!("{number:0width$}", width = decimals + 1);
        fraction = whole.split_off(whole.len() - decimals);
    }
    if decimals == 0 { sign.to_owned() + &whole } else { format!("{sign}{whole}.{fraction:0<decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values, and the results of `Double.toString`, `DecimalFormat("#.##")` and `String.format("%.2f")` in JDK
    /// 17.0.15.
    const JDK_17: &[(f64, &str, &str, &str)] = &[
        (0.0, "0.0", "0", "0.00"),
        (-0.0, "-0.0", "-0", "-0.00"),
        (1.0, "1.0", "1", "1.00"),
        (100.0, "100.0", "100", "100.00"),
        (0.5, "0.5", "0.5", "0.50"),
        (0.05, "0.05", "0.05", "0.05"),
        (0.005, "0.005", "0.01", "0.01"),
        (0.004_999_999_999_999_999, "0.004999999999999999", "0", "0.00"),
        (0.015, "0.015", "0.01", "0.02"),
        (0.025, "0.025", "0.03", "0.03"),
        (0.045, "0.045", "0.04", "0.05"),
        (0.055, "0.055", "0.06", "0.06"),
        (0.125, "0.125", "0.12", "0.13"),
        (0.375, "0.375", "0.38", "0.38"),
        (0.625, "0.625", "0.62", "0.63"),
        (-0.125, "-0.125", "-0.12", "-0.13"),
        (0.995, "0.995", "0.99", "1.00"),
        (0.996, "0.996", "1", "1.00"),
        (1.005, "1.005", "1", "1.01"),
        (-1.005, "-1.005", "-1", "-1.01"),
        (2.675, "2.675", "2.67", "2.68"),
        (99.995, "99.995", "100", "100.00"),
        (999.995, "999.995", "1000", "1000.00"),
        (292.78, "292.78", "292.78", "292.78"),
        (1292.785, "1292.785", "1292.79", "1292.79"),
        (1449.75, "1449.75", "1449.75", "1449.75"),
        (1545.1, "1545.1", "1545.1", "1545.10"),
        (1920.735, "1920.735", "1920.73", "1920.74"),
        (123_456.7, "123456.7", "123456.7", "123456.70"),
        (0.001, "0.001", "0", "0.00"),
        (0.002, "0.002", "0", "0.00"),
        (-0.001, "-0.001", "-0", "-0.00"),
        (9.999e-4, "9.999E-4", "0", "0.00"),
        (1e-5, "1.0E-5", "0", "0.00"),
        (1.192_092_9e-7, "1.1920929E-7", "0", "0.00"),
        (9_999_999.999, "9999999.999", "10000000", "10000000.00"),
        (1e7, "1.0E7", "10000000", "10000000.00"),
        (12_345_678.9, "1.23456789E7", "12345678.9", "12345678.90"),
        // Ties between two shortest representations: Java takes the even digit.
        (24_897.0 + 5170.0 / 16384.0, "24897.315551757812", "24897.32", "24897.32"),
        (79_897_317_443_380.0 + 0.125, "7.989731744338012E13", "79897317443380.12", "79897317443380.12"),
        (1e15 + 0.125, "1.0000000000000001E15", "1000000000000000.1", "1000000000000000.10"),
        (4_503_599_627_370_495.5, "4.5035996273704955E15", "4503599627370495.5", "4503599627370495.50"),
        (9_007_199_254_740_992.0, "9.007199254740992E15", "9007199254740992", "9007199254740992.00"),
        (1e22, "1.0E22", "10000000000000000000000", "10000000000000000000000.00"),
        (9_223_372_036_854_775_807.0, "9.223372036854776E18", "9223372036854776000", "9223372036854776000.00"),
        (f64::MIN_POSITIVE, "2.2250738585072014E-308", "0", "0.00"),
        (5e-324, "4.9E-324", "0", "0.00"),
        (f64::NAN, "NaN", "NaN", "NaN"),
        (f64::INFINITY, "Infinity", "∞", "Infinity"),
        (f64::NEG_INFINITY, "-Infinity", "-∞", "-Infinity"),
    ];

    #[test]
    fn numbers_are_formatted_as_by_java_17() {
        for &(value, text, pattern, fixed) in JDK_17 {
            assert_eq!(format_double(value), text);
            assert_eq!(format_decimal(value), pattern, "decimal({text})");
            assert_eq!(format_decimals(value, 2), fixed, "format_decimals({text}, 2)");
        }
    }

    /// Compares numbers with values from real YCSB reports.
    #[test]
    fn values_of_reports_keep_their_digits() {
        for text in ["3013863.7733574444", "0.16544125012521285", "328.83919763235775", "42.810810810810814"] {
            assert_eq!(text.parse().map(format_double), Ok(text.to_owned()));
        }
        assert_eq!(format_double(f64::MAX), "1.7976931348623157E308");
    }

    #[test]
    fn differing_numbers_follow_jdk_19() {
        assert_eq!(format_double(1e23), "1.0E23");
        assert_eq!(format_double(2f64.powi(-44)), "5.684341886080802E-14");
        assert_eq!(format_double(1e-323), "9.9E-324");
        assert_eq!(format_double(531_914_256_453_911_490.0), "5.319142564539115E17");
    }

    #[test]
    fn every_text_reads_back_as_the_same_double() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..100_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let value = f64::from_bits(state);
            if value.is_finite() {
                assert_eq!(format_double(value).parse(), Ok(value));
            }
        }
    }
}
