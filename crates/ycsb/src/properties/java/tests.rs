use super::*;

/// The effective entry, which is the last entry with this key.
fn last<'a>(parsed: &'a PropertiesFile, key: &str) -> Option<&'a Entry> {
    parsed.entries.iter().rev().find(|entry| entry.key == key)
}

fn parse(text: &str) -> PropertiesFile {
    PropertiesFile::parse(text.as_bytes(), "workloads/x").expect("legal")
}

/// Each entry as `key=value`, preceded by its line number.
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
    assert_eq!(entries("n = 5 \t\n"), ["1 n=5 \t"], "trailing blanks are kept");
    assert_eq!(entries("a\u{a0}=\u{85}b"), ["1 a\u{a0}=\u{85}b"], "other white space is text");
    assert_eq!(entries(r"a\ b\=\:c\\=d"), [r"1 a b=:c\=d"]);
}

#[test]
fn every_line_end_counts_once() {
    assert_eq!(entries("a=1\rb=2\nc=3\r\nd=4\n\re=5"), ["1 a=1", "2 b=2", "3 c=3", "4 d=4", "6 e=5"]);
}

#[test]
fn comments_begin_a_line_and_do_not_continue() {
    assert_eq!(entries("#a\\\nb=1\n \t!c\nd=#e!f\n"), ["2 b=1", "4 d=#e!f"]);
}

#[test]
fn backslash_joins_lines_without_leading_blanks() {
    assert_eq!(entries("a=1,\\\n  \t2,\\\r\n3\nb=4"), ["1 a=1,2,3", "4 b=4"]);
    assert_eq!(entries("a=1\\\\\nb=2"), ["1 a=1\\", "2 b=2"], "an escaped backslash does not");
    assert_eq!(entries("a=1\\\\\\\nb=2"), ["1 a=1\\b=2"]);
    assert_eq!(entries("a=1\\\n\nb=2"), ["1 a=1", "3 b=2"]);
    assert_eq!(entries("a\\\n #b=2"), ["1 a#b=2"], "not a comment within an entry");
    assert_eq!(entries("\\\n#a\nb=1"), ["3 b=1"], "but it is one after a line with only a backslash");
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
fn lone_surrogate_is_replaced_with_a_warning() {
    let found = parse("a=1\nb=x\\uD83Dy\n");
    assert_eq!(last(&found, "b").map(|entry| entry.value.as_str()), Some("x\u{fffd}y"));
    assert_eq!(found.warnings, ["replaced half of a surrogate pair in \\u escapes with U+FFFD (workloads/x:2)"]);
    assert!(parse("a=\\uFFFD").warnings.is_empty());
}

#[test]
fn malformed_escapes_name_their_line() {
    let message = |text: &str| PropertiesFile::parse(text.as_bytes(), "w/x").expect_err("malformed").to_string();
    let expected = |escape| format!("\\u must be followed by four hexadecimal digits, got \"{escape}\" (w/x:2)");
    assert_eq!(message("a=1\nb=\\u12G4\n"), expected("\\u12G4"));
    assert_eq!(message("a=1\nb=\\u12\n34"), expected("\\u12"));
    assert_eq!(message("\n\\u=1"), expected("\\u"));
    assert_eq!(message("\nb=C:\\users"), expected("\\users"));
    assert_eq!(message("\nb=\\u+123"), expected("\\u+123"));
    assert_eq!(message("\nb=\\u00\u{e9}9"), expected("\\u00\u{e9}9"));
}

#[test]
fn the_last_entry_with_a_key_counts() {
    let parsed = parse("a=1\nb=2\na=3");
    assert_eq!(last(&parsed, "a").map(|entry| (entry.value.as_str(), entry.line)), Some(("3", 3)));
    assert_eq!(last(&parsed, "A"), None);
}

#[test]
fn encodings_are_detected() {
    let latin = PropertiesFile::parse(b"table=caf\xe9 \xc3", "x").expect("legal");
    assert_eq!((latin.entries[0].value.as_str(), latin.warnings.len()), ("caf\u{e9} \u{c3}", 0));

    let utf8 = parse("# µs: not in an entry\na=1\ntable=café\nb=ö");
    assert_eq!(utf8.entries[1].value, "café");
    let expected =
        "read as UTF-8; YCSB reads ISO-8859-1 here, so write characters beyond ASCII as \\uXXXX (workloads/x:3)";
    assert_eq!(utf8.warnings, [expected]);

    let marked = parse("\u{feff}table=t");
    assert_eq!(marked.entries[0].key, "table");
    let expected = "dropped a UTF-8 byte order mark, which YCSB reads as part of the first key (workloads/x:1)";
    assert_eq!(marked.warnings, [expected]);

    for bytes in [&b"\xff\xfea\0=\0"[..], b"\xfe\xff\0a", b"a\0=\0b\0", b"\xff\xfe"] {
        let error = PropertiesFile::parse(bytes, "x").expect_err("UTF-16");
        assert_eq!(error.to_string(), "x: looks like UTF-16; save it as ISO-8859-1 or UTF-8");
    }
}

/// Parses xorshift bytes, half of which are special characters.
#[test]
fn parser_neither_panics_nor_reorders_lines() {
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
        match PropertiesFile::parse(&bytes, "fuzz") {
            Ok(parsed) => {
                legal += 1;
                assert!(parsed.entries.windows(2).all(|pair| pair[0].line < pair[1].line));
                assert!(parsed.entries.iter().all(|entry| (1..=length).contains(&entry.line)));
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
fn doubles_are_parsed_as_by_java() {
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
