//! Formats numbers as Java's `String.format` does in the C locale.

pub use loadstone_load::java::number::{format_decimals, format_double};

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
