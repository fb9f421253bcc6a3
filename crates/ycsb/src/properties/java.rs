//! Java's `.properties` format, which YCSB uses for workload files, and Java's strict parsers for values.
//!
//! Source: `java.util.Properties.load(InputStream)` and the `parse…` methods of `java.lang`, compared with JDK 17 on
//! hundreds of thousands of random inputs. There are two differences. Text that is clearly not ISO-8859-1 is either
//! refused or decoded with its encoding. A single backslash on the last line is ignored; Java makes it an entry with an
//! empty key and an empty value, unless the line ends in CR LF.

use std::fmt;

/// The content of one `.properties` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertiesFile {
    /// The entries in the order of the file. A key may occur more than once.
    pub entries: Vec<Entry>,
    /// Irregularities that were interpreted in the most probable way, each in the form `<what> (<origin>:<line>)`.
    pub warnings: Vec<String>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key. It may be empty: `=x` is valid.
    pub key: String,
    /// The value. As in Java, it keeps trailing blanks, and a number with a trailing blank cannot be parsed.
    pub value: String,
    /// The line on which the entry starts, from 1.
    pub line: usize,
}

/// The reason why text is not in `.properties` format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertiesError {
    /// The text starts with a UTF-16 byte order mark or contains NUL bytes. Java would read a NUL between any two
    /// letters.
    Utf16 {
        /// The origin of the text, as passed to [`PropertiesFile::parse`].
        origin: String,
    },
    /// The text contains `\u` without four hexadecimal digits after it.
    Escape {
        /// The origin of the text.
        origin: String,
        /// The line on which the entry starts, from 1.
        line: usize,
        /// The escape as written in the file, at most six characters.
        escape: String,
    },
}

impl fmt::Display for PropertiesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Utf16 { origin } => write!(f, "{origin}: looks like UTF-16; save it as ISO-8859-1 or UTF-8"),
            Self::Escape { origin, line, escape } => {
                write!(f, "\\u must be followed by four hexadecimal digits, got \"{escape}\" ({origin}:{line})")
            }
        }
    }
}

impl std::error::Error for PropertiesError {}

impl PropertiesFile {
    /// Parses a whole file. `origin` is its name in messages.
    ///
    /// Each byte is a character (ISO-8859-1), unless the whole file is UTF-8 and contains characters other than ASCII.
    /// Java would read each of these as two or more letters, which is never intended, so they are decoded with a
    /// warning.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, PropertiesError> {
        if bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xff\xfe") || bytes.contains(&0) {
            return Err(PropertiesError::Utf16 { origin: origin.to_owned() });
        }
        let mut parsed = Self::default();
        let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if body.len() < bytes.len() {
            let mark = "dropped a UTF-8 byte order mark, which YCSB reads as part of the first key";
            parsed.warnings.push(format!("{mark} ({origin}:1)"));
        }
        let utf8 = std::str::from_utf8(body).ok();
        let text = utf8.map_or_else(|| body.iter().copied().map(char::from).collect(), str::to_owned);
        let mut warned = utf8.is_none();
        for (line, logical) in logical_lines(&text) {
            if !warned && logical.iter().any(|c| !c.is_ascii()) {
                warned = true;
                let advice = "read as UTF-8; YCSB reads ISO-8859-1 here, so write characters beyond ASCII as \\uXXXX";
                parsed.warnings.push(format!("{advice} ({origin}:{line})"));
            }
            let (key, value) = split(&logical);
            let mut text = |part| {
                let units = unescape(part).map_err(|escape| {
                    let origin = origin.to_owned();
                    PropertiesError::Escape { origin, line, escape }
                })?;
                Ok(String::from_utf16(&units).unwrap_or_else(|_| {
                    let advice = "replaced half of a surrogate pair in \\u escapes with U+FFFD";
                    parsed.warnings.push(format!("{advice} ({origin}:{line})"));
                    String::from_utf16_lossy(&units)
                }))
            };
            let (key, value) = (text(key)?, text(value)?);
            parsed.entries.push(Entry { key, value, line });
        }
        Ok(parsed)
    }
}

/// White space in `.properties`, apart from line ends.
const BLANKS: [char; 3] = [' ', '\t', '\x0c'];

/// The lines that contain entries, each with the number of the line on which it starts. They have no comments, empty
/// lines or leading blanks, and continuations are joined. Escapes are not resolved.
fn logical_lines(text: &str) -> Vec<(usize, Vec<char>)> {
    let mut logical_lines = Vec::new();
    let mut lines = natural_lines(text).into_iter().zip(1..);
    while let Some((first, number)) = lines.next() {
        let first = first.trim_start_matches(BLANKS);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while logical.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1 {
            logical.pop();
            // A line with only a backslash does not start an entry yet, because a comment may follow.
            if logical.is_empty() {
                break;
            }
            let Some((next, _)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(BLANKS));
        }
        if !logical.is_empty() {
            logical_lines.push((number, logical.chars().collect()));
        }
    }
    logical_lines
}

/// Splits text at CR, LF and CR LF. A line end at the end of the text does not start another line.
fn natural_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(['\r', '\n']) {
        lines.push(&rest[..end]);
        let width = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + width..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// Splits a logical line into key and value at the first unescaped `=`, `:` or blank, including the blanks around it
/// and, after a blank, one `=` or `:`.
fn split(line: &[char]) -> (&[char], &[char]) {
    let mut escaped = false;
    let end = line.iter().position(|c| {
        let ends = !escaped && (BLANKS.contains(c) || matches!(c, '=' | ':'));
        escaped = *c == '\\' && !escaped;
        ends
    });
    let (key, mut value) = line.split_at(end.unwrap_or(line.len()));
    let skip_blanks = |text: &mut &[char]| {
        let blanks = text.iter().take_while(|c| BLANKS.contains(c)).count();
        *text = &text[blanks..];
    };
    skip_blanks(&mut value);
    if let ['=' | ':', rest @ ..] = value {
        value = rest;
        skip_blanks(&mut value);
    }
    (key, value)
}

/// Resolves the escapes in a key or value into UTF-16 units, because an escaped character above U+FFFF consists of two
/// `\u` escapes. The error is the malformed escape.
fn unescape(text: &[char]) -> Result<Vec<u16>, String> {
    let mut units = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [c, after @ ..] = rest {
        rest = after;
        let mut plain = *c;
        if let ('\\', [escaped, after @ ..]) = (plain, rest) {
            rest = after;
            plain = match escaped {
                't' => '\t',
                'r' => '\r',
                'n' => '\n',
                'f' => '\x0c',
                'u' => {
                    let digits: String = rest.iter().take(4).collect();
                    let hexadecimal = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                    let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| hexadecimal);
                    units.push(unit.ok_or_else(|| format!("\\u{digits}"))?);
                    rest = &rest[4..];
                    continue;
                }
                other => *other,
            };
        }
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    Ok(units)
}

/// `Long.parseLong`: an optional `+` or `-`, followed by ASCII digits (Java also accepts digits of other scripts),
/// within 64 bits.
pub fn java_long(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// `Double.parseDouble`: surrounding blanks and control characters are ignored. An exponent and a final `d`, `D`, `f`
/// or `F` may follow. `NaN` and `Infinity` must be spelled exactly like this. Hexadecimal floats are refused here.
pub fn java_double(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c| c <= ' ');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = match unsigned {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        _ => {
            let number = unsigned.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(unsigned);
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if !digits(whole) || !digits(fraction) || !digits(exponent) || exponent.is_empty() {
                return None;
            }
            number.parse().ok()?
        }
    };
    Some(if text.starts_with('-') { -number } else { number })
}

/// `Boolean.parseBoolean`: true for "true" in any case; false for everything else, including `yes` and `1`.
pub fn java_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests;
