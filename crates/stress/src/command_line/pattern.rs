//! The values that an option accepts: the tool's regular expressions, which are quoted in its messages.

/// Checks the value of an option.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueCheck {
    /// A regular expression, and the function that determines whether a value matches it.
    Pattern(&'static str, fn(&str) -> bool),
    /// Words separated by bars; case is ignored. Parentheses around the words belong to the quoted expression.
    Words(&'static str),
    /// A function that checks the value and also completes it.
    Adapt(fn(&str) -> Result<String, String>),
}

impl ValueCheck {
    /// Checks a value and returns the value to store.
    ///
    /// # Errors
    /// The tool's message.
    pub(super) fn apply_check(self, value: &str) -> Result<String, String> {
        let (pattern, matches) = match self {
            Self::Pattern(pattern, matches) => (pattern, matches(value)),
            Self::Words(words) => {
                let mut choices = words.trim_start_matches('(').trim_end_matches(')').split('|');
                (words, choices.any(|word| word.eq_ignore_ascii_case(value)))
            }
            Self::Adapt(adapt) => return adapt(value),
        };
        if matches { Ok(value.to_owned()) } else { Err(format!("Invalid value {value}; must match pattern {pattern}")) }
    }

    /// Whether only the empty value matches, because the option is a flag.
    pub(super) fn is_flag(self) -> bool {
        matches!(self, Self::Pattern("", _))
    }
}

pub(super) const FLAG: ValueCheck = ValueCheck::Pattern("", str::is_empty);
pub(super) const ANY: ValueCheck = ValueCheck::Pattern(".*", is_one_line);
pub(super) const SOME: ValueCheck = ValueCheck::Pattern(".+", |value| !value.is_empty() && is_one_line(value));
pub(super) const DIGITS: ValueCheck = ValueCheck::Pattern("[0-9]+", is_number);
pub(super) const COUNT: ValueCheck = ValueCheck::Pattern("[0-9]+[bmk]?", |value| {
    is_number(value.strip_suffix(['b', 'm', 'k', 'B', 'M', 'K']).unwrap_or(value))
});
pub(super) const DURATION: ValueCheck = ValueCheck::Pattern("[0-9]+[smhd]", |value| has_unit(value, b"smhd"));
pub(super) const DURATION_3: ValueCheck = ValueCheck::Pattern("[0-9]+[smh]", |value| has_unit(value, b"smh"));
pub(super) const FRACTION: ValueCheck =
    ValueCheck::Pattern("0\\.[0-9]+", |value| value.strip_prefix("0.").is_some_and(is_number));
pub(super) const RATE: ValueCheck = ValueCheck::Pattern("[0-9]+/s", |value| {
    value.strip_suffix(['s', 'S']).and_then(|v| v.strip_suffix('/')).is_some_and(is_number)
});
pub(super) const WEIGHT: ValueCheck = ValueCheck::Pattern("[0-9]+(\\.[0-9]+)?", |value| {
    value.split_once('.').map_or_else(|| is_number(value), |(whole, part)| is_number(whole) && is_number(part))
});
pub(super) const INTERVAL: ValueCheck = ValueCheck::Pattern("[0-9]+(ms|s|)", |value| {
    let unit = value.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < value.len() && (unit.is_empty() || unit.eq_ignore_ascii_case("ms") || unit.eq_ignore_ascii_case("s"))
});
pub(super) const RANGE: ValueCheck = ValueCheck::Pattern("[0-9]+[MBK]?\\.\\.+[0-9]+[MBK]?", |value| {
    let (first, rest) = value.split_once("..").unwrap_or((value, ""));
    let is_count = |text: &str| is_number(text.strip_suffix(['b', 'm', 'k', 'B', 'M', 'K']).unwrap_or(text));
    is_count(first) && is_count(rest.trim_start_matches('.'))
});
pub(super) const HOSTS: ValueCheck = ValueCheck::Pattern("[^=,]+(,[^=,]+)*", |value| {
    value.split(',').all(|host| !host.is_empty() && !host.contains('='))
});
pub(super) const PROTOCOL: ValueCheck =
    ValueCheck::Pattern("[2-4]+", |value| !value.is_empty() && value.bytes().all(|byte| matches!(byte, b'2'..=b'4')));
pub(super) const PROTOCOL_5: ValueCheck =
    ValueCheck::Pattern("[2-5]+", |value| !value.is_empty() && value.bytes().all(|byte| matches!(byte, b'2'..=b'5')));
pub(super) const SHARE: ValueCheck = ValueCheck::Pattern("[0-9]+/[0-9]+", |value| {
    value.split_once('/').is_some_and(|(part, parts)| is_number(part) && is_number(parts))
});

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_unit(value: &str, units: &[u8]) -> bool {
    value.as_bytes().split_last().is_some_and(|(unit, digits)| {
        units.contains(&unit.to_ascii_lowercase()) && !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
    })
}

/// In a regular expression, `.` does not match line ends.
fn is_one_line(value: &str) -> bool {
    !value.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}
