//! Java `.properties` text, the format of YCSB's workload files, and Java's strict parsers for the values.
//!
//! Source: `java.util.Properties.load(InputStream)` and the `parse…` methods of `java.lang`, compared with JDK 17 on
//! hundreds of thousands of random texts. Differences: a text that is clearly not ISO-8859-1 is refused or decoded as
//! what it is, and a backslash alone on the last line is nothing (Java makes an entry with an empty key and value of it,
//! unless the line ends in CR LF).

use std::fmt;

/// The content of one `.properties` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// In file order; a key may come again.
    pub entries: Vec<Entry>,
    /// Oddities that were read in the way that seemed meant, each as `<what> (<origin>:<line>)`.
    pub warnings: Vec<String>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// May be empty: `=x` is legal.
    pub key: String,
    /// Blanks at its end are kept, as in Java, where a number with a blank behind it is then no number.
    pub value: String,
    /// The line on which the entry starts, from 1.
    pub line: usize,
}

/// Why a text is not `.properties`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertiesError {
    /// It starts with a UTF-16 byte order mark or has NUL bytes. Java would read a NUL between any two letters.
    Utf16 {
        /// Where the text is from, as given to [`Properties::parse`].
        origin: String,
    },
    /// `\u` without four hexadecimal digits behind it.
    Escape {
        /// Where the text is from.
        origin: String,
        /// The line on which the entry starts, from 1.
        line: usize,
        /// The escape as it stands there, at most six characters.
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

impl Properties {
    /// Reads a whole file; `origin` is its name, for messages.
    ///
    /// Each byte is a character (ISO-8859-1), unless the whole file is UTF-8 with characters beyond ASCII: Java would
    /// make two or more letters of each of those, which nobody wants, so they are decoded and warned about.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, PropertiesError> {
        if bytes.starts_with(b"\xfe\xff") || bytes.starts_with(b"\xff\xfe") || bytes.contains(&0) {
            return Err(PropertiesError::Utf16 { origin: origin.to_owned() });
        }
        let mut found = Self::default();
        let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        if body.len() < bytes.len() {
            let mark = "dropped a UTF-8 byte order mark, which YCSB takes for a part of the first key";
            found.warnings.push(format!("{mark} ({origin}:1)"));
        }
        let utf8 = std::str::from_utf8(body).ok();
        let text = utf8.map_or_else(|| body.iter().copied().map(char::from).collect(), str::to_owned);
        let mut warned = utf8.is_none();
        for (line, logical) in logical_lines(&text) {
            if !warned && logical.iter().any(|c| !c.is_ascii()) {
                warned = true;
                let advice = "read as UTF-8; YCSB reads ISO-8859-1 here, so write characters beyond ASCII as \\uXXXX";
                found.warnings.push(format!("{advice} ({origin}:{line})"));
            }
            let (key, value) = split(&logical);
            let mut text = |part| {
                let units = unescape(part).map_err(|escape| {
                    let origin = origin.to_owned();
                    PropertiesError::Escape { origin, line, escape }
                })?;
                Ok(String::from_utf16(&units).unwrap_or_else(|_| {
                    let advice = "put U+FFFD for half of a surrogate pair in \\u escapes";
                    found.warnings.push(format!("{advice} ({origin}:{line})"));
                    String::from_utf16_lossy(&units)
                }))
            };
            let (key, value) = (text(key)?, text(value)?);
            found.entries.push(Entry { key, value, line });
        }
        Ok(found)
    }
}

/// What `.properties` calls white space, apart from line ends.
const BLANKS: [char; 3] = [' ', '\t', '\x0c'];

/// The lines that hold entries, with the number of the line they start on: without comments, empty lines and blanks at
/// the start, and with continuations joined. Escapes are left in.
fn logical_lines(text: &str) -> Vec<(usize, Vec<char>)> {
    let mut found = Vec::new();
    let mut lines = natural_lines(text).into_iter().zip(1..);
    while let Some((first, number)) = lines.next() {
        let first = first.trim_start_matches(BLANKS);
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while logical.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1 {
            logical.pop();
            // A line of nothing but a backslash is not yet the start of an entry: a comment may follow.
            if logical.is_empty() {
                break;
            }
            let Some((next, _)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(BLANKS));
        }
        if !logical.is_empty() {
            found.push((number, logical.chars().collect()));
        }
    }
    found
}

/// The text cut at CR, LF and CR LF; an end of line at the end of the text starts no further line.
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

/// Cuts a logical line into key and value: at the first `=`, `:` or blank without a backslash, plus the blanks around it
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

/// Resolves the escapes of a key or value into UTF-16 units, as an escaped character beyond U+FFFF takes two `\u`.
/// The error is the malformed escape.
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

/// `Long.parseLong`: an optional `+` or `-`, then ASCII digits (Java takes other scripts' too), within 64 bits.
pub fn java_long(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// `Double.parseDouble`: blanks and control characters around it are dropped; an exponent and one of `d`, `D`, `f`, `F`
/// at the end may follow; `NaN` and `Infinity` in just that spelling. Hexadecimal floats are refused here.
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

/// `Boolean.parseBoolean`: whether it is "true", in any case; everything else, `yes` and `1` too, is false.
pub fn java_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entry that holds: the last one with this key.
    fn last<'a>(found: &'a Properties, key: &str) -> Option<&'a Entry> {
        found.entries.iter().rev().find(|entry| entry.key == key)
    }

    fn parse(text: &str) -> Properties {
        Properties::parse(text.as_bytes(), "workloads/x").expect("legal")
    }

    /// `key=value` of each entry, with its line in front.
    fn entries(text: &str) -> Vec<String> {
        let show = |entry: Entry| format!("{} {}={}", entry.line, entry.key, entry.value);
        parse(text).entries.into_iter().map(show).collect()
    }

    #[test]
    fn a_workload_file_is_read() {
        let text = "# Yahoo! Cloud\n\nrecordcount=1000\nworkload=site.ycsb.workloads.CoreWorkload\n\n  table : t\n";
        let expected = ["3 recordcount=1000", "4 workload=site.ycsb.workloads.CoreWorkload", "6 table=t"];
        assert_eq!(entries(text), expected);
        assert!(parse(text).warnings.is_empty());
    }

    #[test]
    fn separators_and_blanks_are_as_in_java() {
        assert_eq!(entries("a=b"), ["1 a=b"]);
        assert_eq!(entries("a:b=c"), ["1 a=b=c"]);
        assert_eq!(entries(" \t\x0ca \t= \t b c"), ["1 a=b c"]);
        assert_eq!(entries("a b"), ["1 a=b"]);
        assert_eq!(entries("a : = b"), ["1 a== b"], "only one separator");
        assert_eq!(entries("alone\n=x\n:\n="), ["1 alone=", "2 =x", "3 =", "4 ="]);
        assert_eq!(entries("n = 5 \t\n"), ["1 n=5 \t"], "blanks at the end stay");
        assert_eq!(entries("a\u{a0}=\u{85}b"), ["1 a\u{a0}=\u{85}b"], "other white space is text");
        assert_eq!(entries(r"a\ b\=\:c\\=d"), [r"1 a b=:c\=d"]);
    }

    #[test]
    fn every_kind_of_line_end_counts_as_one_line() {
        assert_eq!(entries("a=1\rb=2\nc=3\r\nd=4\n\re=5"), ["1 a=1", "2 b=2", "3 c=3", "4 d=4", "6 e=5"]);
    }

    #[test]
    fn comments_begin_a_line_and_do_not_continue() {
        assert_eq!(entries("#a\\\nb=1\n \t!c\nd=#e!f\n"), ["2 b=1", "4 d=#e!f"]);
    }

    #[test]
    fn a_backslash_joins_lines_without_the_blanks_that_follow() {
        assert_eq!(entries("a=1,\\\n  \t2,\\\r\n3\nb=4"), ["1 a=1,2,3", "4 b=4"]);
        assert_eq!(entries("a=1\\\\\nb=2"), ["1 a=1\\", "2 b=2"], "an escaped backslash does not");
        assert_eq!(entries("a=1\\\\\\\nb=2"), ["1 a=1\\b=2"]);
        assert_eq!(entries("a=1\\\n\nb=2"), ["1 a=1", "3 b=2"]);
        assert_eq!(entries("a\\\n #b=2"), ["1 a#b=2"], "no comment within an entry");
        assert_eq!(entries("\\\n#a\nb=1"), ["3 b=1"], "but behind a line with nothing but the backslash");
        assert_eq!(entries("a=1\\"), ["1 a=1"]);
        assert!(entries("\\").is_empty() && entries("\\\n").is_empty() && entries("\\\r\n").is_empty());
        assert!(entries("").is_empty() && entries("\n \n").is_empty());
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(entries(r"\u0061\t=\n\r\f\q\"), ["1 a\t=\n\r\x0cq"]);
        assert_eq!(entries(r"a=\u00E9\u20ac\uD83D\uDE00\\u12"), ["1 a=\u{e9}\u{20ac}\u{1f600}\\u12"]);
        assert_eq!(entries("a=\\u00\\\n  e9"), ["1 a=\u{e9}"], "joining comes first");
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_with_a_warning() {
        let found = parse("a=1\nb=x\\uD83Dy\n");
        assert_eq!(last(&found, "b").map(|entry| entry.value.as_str()), Some("x\u{fffd}y"));
        assert_eq!(found.warnings, ["put U+FFFD for half of a surrogate pair in \\u escapes (workloads/x:2)"]);
        assert!(parse("a=\\uFFFD").warnings.is_empty());
    }

    #[test]
    fn malformed_escapes_name_their_line() {
        let message = |text: &str| Properties::parse(text.as_bytes(), "w/x").expect_err("malformed").to_string();
        let expected = |escape| format!("\\u must be followed by four hexadecimal digits, got \"{escape}\" (w/x:2)");
        assert_eq!(message("a=1\nb=\\u12G4\n"), expected("\\u12G4"));
        assert_eq!(message("a=1\nb=\\u12\n34"), expected("\\u12"));
        assert_eq!(message("\n\\u=1"), expected("\\u"));
        assert_eq!(message("\nb=C:\\users"), expected("\\users"));
        assert_eq!(message("\nb=\\u+123"), expected("\\u+123"));
        assert_eq!(message("\nb=\\u00\u{e9}9"), expected("\\u00\u{e9}9"));
    }

    #[test]
    fn the_last_entry_with_a_key_holds() {
        let found = parse("a=1\nb=2\na=3");
        assert_eq!(last(&found, "a").map(|entry| (entry.value.as_str(), entry.line)), Some(("3", 3)));
        assert_eq!(last(&found, "A"), None);
    }

    #[test]
    fn encodings_are_noticed() {
        let latin = Properties::parse(b"table=caf\xe9 \xc3", "x").expect("legal");
        assert_eq!((latin.entries[0].value.as_str(), latin.warnings.len()), ("caf\u{e9} \u{c3}", 0));

        let utf8 = parse("# µs: not in an entry\na=1\ntable=café\nb=ö");
        assert_eq!(utf8.entries[1].value, "café");
        let expected =
            "read as UTF-8; YCSB reads ISO-8859-1 here, so write characters beyond ASCII as \\uXXXX (workloads/x:3)";
        assert_eq!(utf8.warnings, [expected]);

        let marked = parse("\u{feff}table=t");
        assert_eq!(marked.entries[0].key, "table");
        let expected = "dropped a UTF-8 byte order mark, which YCSB takes for a part of the first key (workloads/x:1)";
        assert_eq!(marked.warnings, [expected]);

        for bytes in [&b"\xff\xfea\0=\0"[..], b"\xfe\xff\0a", b"a\0=\0b\0", b"\xff\xfe"] {
            let error = Properties::parse(bytes, "x").expect_err("UTF-16");
            assert_eq!(error.to_string(), "x: looks like UTF-16; save it as ISO-8859-1 or UTF-8");
        }
    }

    /// Xorshift bytes, half of them from the characters that mean something.
    #[test]
    fn no_bytes_make_it_panic_or_lose_order() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as usize
        };
        let syntax = b"\\\\\\\n\r=: \t#!uDabc0\xc3\xa9";
        let (mut legal, mut malformed) = (0, 0);
        for _ in 0..10_000 {
            let length = next() % 64;
            let byte = |draw: usize| {
                if draw & 256 == 0 { draw as u8 } else { syntax[draw % syntax.len()] }
            };
            let bytes: Vec<u8> = (0..length).map(|_| byte(next()).max(1)).collect();
            match Properties::parse(&bytes, "fuzz") {
                Ok(found) => {
                    legal += 1;
                    assert!(found.entries.windows(2).all(|pair| pair[0].line < pair[1].line));
                    assert!(found.entries.iter().all(|entry| (1..=length).contains(&entry.line)));
                }
                Err(error) => {
                    malformed += 1;
                    assert!(error.to_string().contains("fuzz"));
                }
            }
        }
        assert!(legal > 1000 && malformed > 100, "{legal} legal, {malformed} malformed");
    }

    #[test]
    fn whole_numbers_are_as_strict_as_java() {
        for (text, expected) in [("0", 0), ("-0", 0), ("+7", 7), ("007", 7), ("-2147483648", i32::MIN)] {
            assert_eq!(java_long(text), Some(i64::from(expected)));
        }
        for text in ["", "+", "-", "1 ", " 1", "1e6", "1_000", "10k", "1.0", "0x10", "+-1", "1L", "\u{661}"] {
            assert_eq!(java_long(text), None, "{text:?}");
        }
        assert_eq!(java_long("2147483648"), Some(2_147_483_648));
        assert_eq!(java_long("9223372036854775807"), Some(i64::MAX));
        assert_eq!(java_long("9223372036854775808"), None);
    }

    #[test]
    fn doubles_are_read_as_java_reads_them() {
        let legal = [
            ("0.95", 0.95),
            (" \t1.\n", 1.0),
            (".5", 0.5),
            ("+1.5e-3", 1.5e-3),
            ("1E6d", 1e6),
            ("2f", 2.0),
            ("0.1F", 0.1),
            ("1e400", f64::INFINITY),
            ("-1e99999999999", f64::NEG_INFINITY),
            ("4.9e-324", 5e-324),
            ("1e-400", 0.0),
            ("-Infinity", f64::NEG_INFINITY),
        ];
        for (text, expected) in legal {
            assert_eq!(java_double(text), Some(expected), "{text:?}");
        }
        assert!(java_double("-0").is_some_and(|zero| zero == 0.0 && zero.is_sign_negative()));
        assert!(java_double("NaN").is_some_and(f64::is_nan) && java_double("-NaN").is_some_and(f64::is_nan));
        let refused = "|.|e5|1e|1e+|1 2|--1|+-1|nan|inf|infinity|INFINITY|NaNd|Infinityf|1dd|1_0|1,5|d|0x1p3|\u{a0}1";
        for text in refused.split('|') {
            assert_eq!(java_double(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_the_word_true_is_true() {
        assert!(["true", "TRUE", "tRuE"].into_iter().all(java_boolean));
        assert!(!["", "true ", " true", "yes", "1", "on", "t", "false"].into_iter().any(java_boolean));
    }
}
