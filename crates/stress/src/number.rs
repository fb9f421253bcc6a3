//! Formats numbers as Java's `String.format` does in the C locale.

/// `%.<decimals>f`: the shortest decimal form of the number, rounded half up. C and Rust instead round the binary value
/// half to even.
///
/// Before version 19, Java does not find the shortest form of a few numbers, such as 1E23 (JDK-4511638). This bug is
/// not reproduced.
#[must_use]
pub fn format_decimals(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: isize = exponent.parse().unwrap_or(0);
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    // The digit with weight 10^-place, if the first digit has weight 10^exponent.
    let digit_at =
        |place: isize| usize::try_from(place + exponent).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
    let first = (-exponent).min(0);
    let last = decimals as isize;
    let mut rounded: Vec<u8> = (first..=last).map(digit_at).collect();
    if digit_at(last + 1) >= 5 {
        for digit in rounded.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                break;
            }
        }
        if rounded.iter().all(|digit| *digit == 0) {
            rounded.insert(0, 1);
        }
    }
    let whole = rounded.len() - decimals;
    let mut text = String::with_capacity(sign.len() + rounded.len() + 1);
    text.push_str(sign);
    text.extend(rounded[..whole].iter().map(|digit| char::from(b'0' + digit)));
    if decimals > 0 {
        text.push('.');
        text.extend(rounded[whole..].iter().map(|digit| char::from(b'0' + digit)));
    }
    text
}

/// `%,d` and `%,.<decimals>f`: inserts commas between groups of thousands.
#[must_use]
pub fn group_thousands(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.find('.').map_or((digits, ""), |point| digits.split_at(point));
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    let mut text = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + fraction
}

/// Formats like `Double.toString`: `2.0`, `0.02`, `1.0E-4`.
#[must_use]
pub fn format_double(value: f64) -> String {
    if !value.is_finite() {
        return format_decimals(value, 0);
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((mantissa, exponent)) if !mantissa.contains('.') => format!("{mantissa}.0E{exponent}"),
        _ => text,
    }
}

/// Formats an integer with commas between groups of thousands.
#[must_use]
pub fn format_count(count: impl Into<i128>) -> String {
    group_thousands(&count.into().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_java() {
        let mut count = 0;
        for line in include_str!("../fixtures/numbers.txt").lines().filter(|line| !line.starts_with('#')) {
            let (bits, expected) = line.split_once(" | ").unwrap();
            let value = f64::from_bits(bits.parse::<i64>().unwrap() as u64);
            let columns = [
                format!("{:>8}", format_decimals(value, 0)),
                format!("{:>8}", format_decimals(value, 1)),
                format!("{:>9}", format_decimals(value, 5)),
                format!("{:>8}", group_thousands(&format_decimals(value, 0))),
                group_thousands(&format_decimals(value, 1)),
                format_decimals(value, 3),
                format_decimals(value, 6),
            ];
            assert_eq!(columns.join("|"), expected);
            count += 1;
        }
        assert_eq!(count, 31);
    }

    #[test]
    fn doubles_match_java() {
        for (value, expected) in [
            (2.0, "2.0"),
            (0.02, "0.02"),
            (1e-4, "1.0E-4"),
            (1.5e-7, "1.5E-7"),
            (1e7, "1.0E7"),
            (0.0, "0.0"),
            (0.25, "0.25"),
        ] {
            assert_eq!(format_double(value), expected);
        }
    }

    #[test]
    fn thousands_are_grouped() {
        for (number, expected) in
            [("0", "0"), ("999", "999"), ("-1000", "-1,000"), ("1234567.8", "1,234,567.8"), ("NaN", "NaN")]
        {
            assert_eq!(group_thousands(number), expected);
        }
    }
}
