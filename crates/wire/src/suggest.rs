//! "Did you mean …?" for unknown names of properties, bindings and options.

use crate::error::EngineError;

/// Common names of settings, each with the name of the YCSB property. They are in lower case, without blanks, `_`, `-`
/// or `.`.
const ALIASES: &[(&str, &str)] = &[
    ("threads", "threadcount"),
    ("clients", "threadcount"),
    ("records", "recordcount"),
    ("rows", "recordcount"),
    ("operations", "operationcount"),
    ("ops", "operationcount"),
    ("opcount", "operationcount"),
    ("fields", "fieldcount"),
    ("columns", "fieldcount"),
    ("valuesize", "fieldlength"),
    ("fieldsize", "fieldlength"),
    ("throughput", "target"),
    ("rate", "target"),
    ("duration", "maxexecutiontime"),
    ("runtime", "maxexecutiontime"),
    ("maxtime", "maxexecutiontime"),
    ("distribution", "requestdistribution"),
    ("percentiles", "hdrhistogram.percentiles"),
    ("rmwproportion", "readmodifywriteproportion"),
    ("interval", "status.interval"),
];

/// The word in `known` that was most likely meant by the misspelt `word`; `None` if no word is near, or `word` itself
/// is known.
///
/// The nearest words differ only in case or in `_`, `-` and `.`. Common synonyms are next, then words with at most one
/// typo per three letters (one in shorter words): a missing, extra or wrong letter, or two swapped letters. Among
/// equally near words, the first is returned.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold_word(word);
    let alias = ALIASES.iter().find(|(alias, _)| alias.chars().eq(folded.iter().copied()));
    let limit = (folded.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in known {
        if candidate == word {
            return None;
        }
        // Each missing character is one edit, so a name of several megabytes need not be compared letter by letter.
        let missing = folded.len().saturating_sub(candidate.len());
        let distance = match if missing > limit { missing } else { edit_distance(&folded, &fold_word(candidate)) } {
            0 => 0,
            _ if alias.is_some_and(|(_, name)| *name == candidate) => 1,
            // A synonym is nearer than any word with a typo.
            distance => distance + 1,
        };
        if distance <= limit + 1 && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The error with the nearest word as its hint; unchanged if no word is near.
#[must_use]
pub fn hint_near<'a>(error: EngineError, word: &str, known: impl Iterator<Item = &'a str>) -> EngineError {
    match did_you_mean(word, known) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error,
    }
}

fn fold_word(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, ' ' | '_' | '-' | '.')).flat_map(char::to_lowercase).collect()
}

/// The Damerau–Levenshtein distance as "optimal string alignment": no letter is part of two edits.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let changed = above[j] + usize::from(a[i] != b[j]);
            let mut least = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &[
        "threadcount",
        "target",
        "recordcount",
        "operationcount",
        "insertcount",
        "insertstart",
        "fieldcount",
        "fieldlength",
        "readproportion",
        "readmodifywriteproportion",
        "requestdistribution",
        "maxexecutiontime",
        "hdrhistogram.percentiles",
        "status.interval",
        "db",
        "rocksdb.dir",
    ];

    fn suggest(word: &str) -> Option<&'static str> {
        did_you_mean(word, KNOWN.iter().copied())
    }

    #[test]
    fn typos_find_their_word() {
        for (typo, word) in [
            ("recordCount", "recordcount"),
            ("record_count", "recordcount"),
            ("record-counts", "recordcount"),
            ("recrodcount", "recordcount"),
            ("threadcuont", "threadcount"),
            ("thread.count", "threadcount"),
            ("opcount", "operationcount"),
            ("hdrhistogram.percentile", "hdrhistogram.percentiles"),
            ("rocksdb_dir", "rocksdb.dir"),
            ("dB", "db"),
        ] {
            assert_eq!(suggest(typo), Some(word), "{typo}");
        }
    }

    #[test]
    fn common_names_find_their_word() {
        for (name, word) in [
            ("threads", "threadcount"),
            ("Threads", "threadcount"),
            ("max_time", "maxexecutiontime"),
            ("percentiles", "hdrhistogram.percentiles"),
            ("value-size", "fieldlength"),
            ("throughput", "target"),
        ] {
            assert_eq!(suggest(name), Some(word), "{name}");
        }
        assert_eq!(did_you_mean("threads", ["thread"].into_iter()), Some("thread"), "its alias is not known here");
        assert!(ALIASES.iter().all(|(alias, _)| fold_word(alias).iter().copied().eq(alias.chars())));
    }

    #[test]
    fn unrelated_and_known_words_find_nothing() {
        for word in ["", "cassandra.keyspace", "xyz", "recordcount", "table", "jdbc.url"] {
            assert_eq!(suggest(word), None, "{word}");
        }
        assert_eq!(did_you_mean("anything", std::iter::empty()), None);
    }

    #[test]
    fn the_nearest_wins_and_then_the_first() {
        assert_eq!(suggest("insertcuont"), Some("insertcount"));
        assert_eq!(did_you_mean("ab", ["abc", "abd"].into_iter()), Some("abc"));
        assert_eq!(did_you_mean("recordcont", ["recordcounts", "recordcount"].into_iter()), Some("recordcount"));
    }

    #[test]
    fn distances_count_edits() {
        let of = |a: &str, b: &str| edit_distance(&fold_word(a), &fold_word(b));
        for (a, b, edits) in [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("ab", "ba", 1), ("abcd", "acbd", 1)] {
            assert_eq!(of(a, b), edits, "{a} {b}");
        }
        assert_eq!((of("kitten", "sitting"), of("ca", "abc"), of("redis", "rdeis")), (3, 3, 1));
    }
}
