//! The profile of `user profile=…`, which is a YAML file. Every error is reported with its line.
//!
//! Source: Cassandra's `StressYaml.java` and `StressProfile.java`. Where the tool exits with a stack trace, this parser
//! reports an error.

mod operations;
mod reader;

use std::collections::BTreeMap;

use crate::columns::{Fields, TableSpec};
use crate::cql::quote;
use crate::yaml::{Mistake, parse};
use reader::Reader;

/// A user profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The table, with the distributions of its columns and the settings of its inserts.
    pub table: TableSpec,
    /// The statement that creates the keyspace.
    pub keyspace_definition: Option<String>,
    /// The statement that creates the table.
    pub table_definition: Option<String>,
    /// Further statements that define database objects.
    pub extra_definitions: Vec<String>,
    /// Queries, in the order of the file.
    pub queries: Vec<Query>,
    /// Token range queries.
    pub token_range_queries: Vec<TokenRangeQuery>,
    /// The lines of the profile's parts, such as `table_definition`, `queries.NAME` and `columnspec.NAME`, for errors
    /// that only the server finds.
    pub lines: BTreeMap<String, usize>,
}

/// A query in a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The query's name in `ops()`, in lower case.
    pub name: String,
    /// The text of the query, with a `?` for each value.
    pub cql: String,
    /// The rows that supply the query's values.
    pub fields: Fields,
    /// Whether the rows read are compared with the rows written.
    pub validates: bool,
}

/// A token range query in a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRangeQuery {
    /// The query's name in `ops()`, in lower case.
    pub name: String,
    /// The columns that the query selects.
    pub columns: String,
    /// Maximum number of rows per page.
    pub page_rows: u32,
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// All errors in the profile, ordered by line.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let root = parse(text).map_err(|mistake| vec![mistake])?;
        let mut reader = Reader::default();
        let profile = reader.profile(&root);
        let mut mistakes = reader.mistakes;
        mistakes.sort_by_key(|mistake| mistake.line);
        match profile {
            Some(profile) if mistakes.is_empty() => Ok(profile),
            _ => Err(mistakes),
        }
    }

    /// The queries named `insert` or `validate`. No operation can select them, because these names are built in.
    #[must_use]
    pub fn list_hidden_queries(&self) -> Vec<&str> {
        let names = self.queries.iter().map(|query| query.name.as_str());
        names.filter(|name| matches!(*name, "insert" | "validate")).collect()
    }

    /// The statements that define the keyspace, the table and further objects, in the order of execution.
    pub fn definitions(&self) -> Vec<String> {
        self.definitions_with_lines().into_iter().map(|(text, _)| text).collect()
    }

    /// The statements of [`Self::definitions`], with their lines.
    pub fn definitions_with_lines(&self) -> Vec<(String, usize)> {
        let mut statements = Vec::new();
        let mut add = |text: &str, part: &str| statements.push((text.to_owned(), self.line_of(part)));
        if let Some(text) = &self.keyspace_definition {
            add(text, "keyspace_definition");
        }
        if self.table_definition.is_some() || !self.extra_definitions.is_empty() {
            add(&format!("USE {}", quote(&self.table.keyspace)), "keyspace");
        }
        if let Some(text) = &self.table_definition {
            add(text, "table_definition");
        }
        for (at, text) in self.extra_definitions.iter().enumerate() {
            add(text, &format!("extra_definitions.{at}"));
        }
        statements
    }

    /// The line of a part; if the profile does not have this part, the line of the table's name.
    pub fn line_of(&self, part: &str) -> usize {
        self.lines.get(part).or_else(|| self.lines.get("table")).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::BatchType;
    use proptest::prelude::*;

    const EXAMPLE: &str = include_str!("../fixtures/profile.yaml");

    #[test]
    fn profile_is_read() {
        let profile = Profile::parse(EXAMPLE).unwrap();
        assert_eq!((profile.table.keyspace.as_str(), profile.table.table.as_str()), ("stresscql", "typestest"));
        assert_eq!(profile.table.columns.len(), 4);
        assert_eq!(profile.queries.iter().map(|query| query.name.as_str()).collect::<Vec<_>>(), ["simple1", "range1"]);
        assert_eq!(profile.queries[1].fields, Fields::Multirow);
        assert_eq!(profile.table.insert.batch, BatchType::Unlogged);
        assert_eq!(profile.token_range_queries[0].page_rows, 100);
        assert_eq!(profile.definitions().len(), 4);
        let parts = ["table", "table_definition", "columnspec.name", "insert", "queries.range1"];
        let lines = parts.map(|part| EXAMPLE.lines().nth(profile.line_of(part) - 1).unwrap().trim());
        let starts = ["table: ", "table_definition: ", "- name: name", "insert:", "cql: select"];
        assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{lines:?}");
    }

    #[test]
    fn mistakes_have_their_lines() {
        for (change, line, text) in [
            (("table: typestest", "tabel: typestest"), 17, "did you mean table?"),
            (("size: uniform(1..10)", "size: uniform(1..10"), 29, "Illegal distribution specification"),
            (("size: uniform(1..10)", "size: uniform(9..1)"), 29, "reversed"),
            (("cluster: uniform(1..4)", "clusters: uniform(1..4)"), 34, "no key clusters"),
            (("select:    fixed(1)/2", "select:    fixed(1)"), 42, "not a ratio"),
            (("batchtype: UNLOGGED", "batchtype: FAST"), 43, "LOGGED"),
            (("fields: multirow", "fields: anyrow"), 52, "samerow"),
            (("CREATE TABLE typestest", "CREATE TABLE other"), 12, "creates other"),
        ] {
            assert!(EXAMPLE.contains(change.0), "{}", change.0);
            let mistakes = Profile::parse(&EXAMPLE.replace(change.0, change.1)).unwrap_err();
            let matching = mistakes.iter().find(|m| format!("{} {}", m.message, m.hint).contains(text));
            assert_eq!(matching.map(|m| m.line), Some(line), "{}: {mistakes:?}", change.1);
        }
    }

    #[test]
    fn all_mistakes_are_reported_at_once() {
        let text = "keyspace: a\ncolumnspec:\n  - size: fixed(x)\ninsert: 3\nqueries:\n  a: {cql: ''}\n  b: {}\n";
        let lines: Vec<usize> = Profile::parse(text).unwrap_err().iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [1, 3, 3, 4, 6, 7]);
    }

    #[test]
    fn cluster_is_checked_in_the_primary_key_only() {
        let text = |keys: &str, column: &str| {
            format!(
                "keyspace: a\ntable: b\ntable_definition: CREATE TABLE b (p int, c int, v int, PRIMARY \n {keys})\n\
                 columnspec:\n  - name: {column}\n    cluster: uniform(-5..9)\n"
            )
        };
        for keys in ["KEY (p, c)", "key((p), \"C\")", "Key ((p,x),c)"] {
            let mistakes = Profile::parse(&text(keys, "c")).unwrap_err();
            assert!(mistakes[0].message.contains("got -5 to 9"), "{keys}: {mistakes:?}");
            assert!(Profile::parse(&text(keys, "v")).is_ok(), "{keys}");
        }
        let inline = "keyspace: a\ntable: b\ntable_definition: CREATE TABLE b (p int PRIMARY KEY, v int)\n";
        assert!(Profile::parse(&format!("{inline}columnspec: [{{name: v, cluster: 'uniform(-5..9)'}}]\n")).is_ok());
    }

    #[test]
    fn queries_may_have_names_of_built_in_operations() {
        let text =
            "keyspace: a\ntable: b\nqueries:\n  insert: {cql: INSERT INTO b (p) VALUES (?)}\n  c: {cql: SELECT 1}\n";
        let profile = Profile::parse(text).unwrap();
        assert_eq!(profile.list_hidden_queries(), ["insert"]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_profile_or_refused(text in "(?s).{0,400}") {
            let _ = Profile::parse(&text);
        }

        /// Distributions with any range, in every place that accepts a distribution.
        #[test]
        fn profiles_with_any_distribution_are_usable(
            specs in prop::collection::vec("~?(fixed\\([0-9]{1,12}[kmb]?\\)|(uniform|gaussian|exp|extreme|seq)\\([0-9]{1,6}[kmb]?\\.\\.[0-9]{1,12}[kmb]?(,[0-9]{1,3}){0,2}\\))", 4),
            ratio in "(fixed|uniform)\\([0-9]{1,2}(\\.\\.[0-9]{1,3})?\\)/[0-9]{1,3}",
            batch in "LOGGED|unlogged|COUNTER|none",
        ) {
            let text = format!(
                "keyspace: k\ntable: t\ncolumnspec:\n  - {{name: a, size: \"{}\", population: \"{}\"}}\n  - {{name: b, cluster: \"{}\"}}\n\
                 insert: {{partitions: \"{}\", select: \"{ratio}\", batchtype: {batch}, row-population: \"{ratio}\"}}\n\
                 queries: {{q: {{cql: \"SELECT * FROM t WHERE a = ?\", fields: samerow}}}}\n",
                specs[0], specs[1], specs[2], specs[3]
            );
            match Profile::parse(&text) {
                Err(mistakes) => prop_assert!(mistakes.iter().all(|mistake| (4..=6).contains(&mistake.line)), "{mistakes:?}"),
                Ok(profile) => {
                    let columns = profile.table.columns.iter();
                    let specs = columns.flat_map(|column| [&column.size, &column.population, &column.cluster]);
                    for spec in specs.flatten().chain(&profile.table.insert.partitions) {
                        let _ = (crate::partition::mean(Some(spec)), spec.range());
                    }
                    let _ = profile.definitions();
                }
            }
        }

        /// Damages a real profile: replaces a part of it with characters that have a meaning in YAML.
        #[test]
        fn damaged_profiles_are_read_or_refused(start in 0..1500_usize, len in 0..60_usize, part in "[-:{}\\[\\]&*!|>'\"%@`#, \na1]{0,12}") {
            let chars: Vec<char> = EXAMPLE.chars().collect();
            let start = start.min(chars.len());
            let end = (start + len).min(chars.len());
            let text: String = chars[..start].iter().copied().chain(part.chars()).chain(chars[end..].iter().copied()).collect();
            if let Err(mistakes) = Profile::parse(&text) {
                prop_assert!(!mistakes.is_empty());
                prop_assert!(mistakes.iter().all(|mistake| mistake.line <= text.lines().count() + 1));
            }
        }
    }
}
