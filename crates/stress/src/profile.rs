//! The profile of `user profile=…`: a YAML file. Every mistake is reported with its line.
//!
//! Source: Cassandra's `StressYaml.java` and `StressProfile.java`. Where the tool ends with a stack trace, this has a mistake.

use std::collections::BTreeSet;

use crate::columns::{BatchType, ColumnSpec, Fields, InsertSpec, TableSpec};
use crate::cql::quote;
use crate::distribution::{RatioSpec, Spec, parse_ratio, parse_spec};
use crate::yaml::{Content, Mistake, Node, parse};

const KEYS: [&str; 10] = [
    "specname",
    "keyspace",
    "keyspace_definition",
    "table",
    "table_definition",
    "extra_definitions",
    "columnspec",
    "insert",
    "queries",
    "token_range_queries",
];
const NAMES_RESERVED: [&str; 2] = ["insert", "validate"];

/// A profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its table, with the distributions of the columns and the settings of inserts.
    pub table: TableSpec,
    /// As the settings block prints them.
    pub keyspace_definition: Option<String>,
    /// Creates the table.
    pub table_definition: Option<String>,
    /// Further definitions.
    pub extra_definitions: Vec<String>,
    /// Queries, in the order of the file.
    pub queries: Vec<Query>,
    /// Token range queries.
    pub token_range_queries: Vec<TokenRangeQuery>,
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Its name in `ops()`, in lower case.
    pub name: String,
    /// Its text, with a `?` for each value.
    pub cql: String,
    /// Where its values come from.
    pub fields: Fields,
    /// Whether its rows are compared with the written ones.
    pub validates: bool,
}

/// A token range query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRangeQuery {
    /// Its name in `ops()`, in lower case.
    pub name: String,
    /// The columns that it selects.
    pub columns: String,
    /// Rows that are read of a range, at most.
    pub page_rows: u32,
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// All mistakes, in the order of their lines.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let root = parse(text).map_err(|mistake| vec![mistake])?;
        let mut reader = Reader { mistakes: Vec::new() };
        let profile = reader.profile(&root);
        let mut mistakes = reader.mistakes;
        mistakes.sort_by_key(|mistake| mistake.line);
        match profile {
            Some(profile) if mistakes.is_empty() => Ok(profile),
            _ => Err(mistakes),
        }
    }

    /// The statements that define keyspace and table. Existing ones remain as they are.
    pub fn definitions(&self) -> Vec<String> {
        let mut statements: Vec<String> = self.keyspace_definition.iter().cloned().collect();
        if self.table_definition.is_some() || !self.extra_definitions.is_empty() {
            statements.push(format!("USE {}", quote(&self.table.keyspace)));
        }
        statements.extend(self.table_definition.iter().cloned());
        statements.extend(self.extra_definitions.iter().cloned());
        statements
    }
}

struct Reader {
    mistakes: Vec<Mistake>,
}

type Entries<'a> = &'a [(String, usize, Node)];

impl Reader {
    fn report(&mut self, line: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.push(Mistake::new(line, message, hint));
    }

    /// The entries of a map; nothing for an empty one.
    fn entries<'a>(&mut self, node: &'a Node, name: &str) -> Entries<'a> {
        match &node.content {
            Content::Map(entries) => entries,
            Content::Null => &[],
            _ => {
                self.report(node.line, format!("{name} must have keys, got {}", node.describe()), "write KEY: VALUE");
                &[]
            }
        }
    }

    fn text(&mut self, node: &Node, name: &str) -> Option<String> {
        match &node.content {
            Content::Scalar(text) => Some(text.clone()),
            Content::Null => None,
            _ => {
                self.report(
                    node.line,
                    format!("{name} must be a text, got {}", node.describe()),
                    "write it in one line, or after |",
                );
                None
            }
        }
    }

    fn check_keys(&mut self, entries: Entries<'_>, keys: &[&str], place: &str) {
        for (name, line, _) in entries {
            if !keys.contains(&name.as_str()) {
                let near = keys.iter().find(|key| is_near(key, name));
                let list = format!("the keys are {}", keys.join(", "));
                let hint = near.map_or(list.clone(), |near| format!("did you mean {near}? {list}"));
                self.report(*line, format!("{place} has no key {name}"), hint);
            }
        }
    }

    fn profile(&mut self, root: &Node) -> Option<Profile> {
        let entries = self.entries(root, "a profile");
        self.check_keys(entries, &KEYS, "a profile");
        let find = |name: &str| entries.iter().find(|(key, ..)| key == name).map(|(.., node)| node);
        let mut text_of = |name: &str| find(name).and_then(|node| self.text(node, name).map(|text| (text, node.line)));
        let (keyspace, table, specname) = (text_of("keyspace"), text_of("table"), text_of("specname"));
        let (keyspace_definition, table_definition) = (text_of("keyspace_definition"), text_of("table_definition"));
        for (name, value) in [("keyspace", &keyspace), ("table", &table)] {
            match value {
                None => self.report(root.line, format!("{name}: is missing"), format!("add {name}: NAME")),
                Some((name, line)) if name.is_empty() || name.contains('\0') => {
                    self.report(*line, "the name is empty", "write a name");
                }
                Some(_) => {}
            }
        }
        for (definition, word, name) in
            [(&keyspace_definition, "KEYSPACE", &keyspace), (&table_definition, "TABLE", &table)]
        {
            if let (Some((definition, line)), Some((name, _))) = (definition, name) {
                self.check_definition(definition, *line, word, name);
            }
        }
        let extra_definitions =
            find("extra_definitions").map_or_else(Vec::new, |node| self.texts(node, "extra_definitions"));
        let columns = find("columnspec").map_or_else(Vec::new, |node| self.columns(node));
        let insert = find("insert").map_or_else(InsertSpec::default, |node| self.insert(node));
        let queries = find("queries").map_or_else(Vec::new, |node| self.queries(node));
        let ranges = find("token_range_queries").map_or_else(Vec::new, |node| self.token_range_queries(node));
        let mut names = BTreeSet::new();
        let lines = [find("queries"), find("token_range_queries")].into_iter().flatten();
        for (name, line, _) in lines
            .filter_map(|node| if let Content::Map(entries) = &node.content { Some(entries) } else { None })
            .flatten()
        {
            let name = name.to_lowercase();
            if NAMES_RESERVED.contains(&name.as_str()) {
                self.report(
                    *line,
                    format!("a query cannot be named {name}"),
                    "insert and validate are built in; use another name",
                );
            } else if !names.insert(name.clone()) {
                self.report(*line, format!("two queries are named {name}"), "use different names");
            }
        }
        let ((keyspace, _), (table, _)) = (keyspace?, table?);
        let keyspace = keyspace.to_lowercase();
        let name = specname.map_or_else(|| format!("{keyspace}.{table}"), |(name, _)| name);
        Some(Profile {
            table: TableSpec { name, keyspace, table, columns, insert },
            keyspace_definition: keyspace_definition.map(|(text, _)| text).filter(|text| !text.trim().is_empty()),
            table_definition: table_definition.map(|(text, _)| text).filter(|text| !text.trim().is_empty()),
            extra_definitions,
            queries,
            token_range_queries: ranges,
        })
    }

    /// The name in a definition must be the profile's.
    fn check_definition(&mut self, definition: &str, line: usize, word: &str, name: &str) {
        if definition.trim().is_empty() {
            return;
        }
        match find_name(definition, word) {
            None => self.report(
                line,
                format!("the definition does not begin with CREATE {word} NAME"),
                format!("write CREATE {word} {name} …"),
            ),
            Some(defined) if !defined.eq_ignore_ascii_case(name) => {
                let message = format!("the definition creates {defined}, and the profile uses {name}");
                self.report(line, message, "use one name");
            }
            Some(_) => {}
        }
    }

    fn texts(&mut self, node: &Node, name: &str) -> Vec<String> {
        match &node.content {
            Content::List(nodes) => nodes.iter().filter_map(|node| self.text(node, name)).collect(),
            Content::Null => Vec::new(),
            _ => {
                self.report(
                    node.line,
                    format!("{name} must be a list, got {}", node.describe()),
                    "begin each item with \"- \"",
                );
                Vec::new()
            }
        }
    }

    fn spec(&mut self, node: &Node, name: &str) -> Option<Spec> {
        let text = self.text(node, name)?;
        let hint = "write a distribution: uniform(1..10), gaussian(1..10), exp(1..10), fixed(3), presets(70:1, 30:5)";
        match parse_spec(&remove_blanks(&text)).and_then(|spec| spec.sampler().map(|_| spec)) {
            Ok(spec) => Some(spec),
            Err(message) => {
                self.report(node.line, format!("{name}: {message}"), hint);
                None
            }
        }
    }

    fn ratio(&mut self, node: &Node, name: &str) -> Option<RatioSpec> {
        let text = self.text(node, name)?;
        let parsed = match parse_ratio(&remove_blanks(&text)) {
            Ok(Some(ratio)) if ratio.divisor > 0.0 => ratio.distribution.sampler().map(|_| ratio.clone()),
            Ok(_) => Err(format!("\"{text}\" is not a ratio")),
            Err(message) => Err(message),
        };
        match parsed {
            Ok(ratio) => Some(ratio),
            Err(message) => {
                self.report(node.line, format!("{name}: {message}"), "write DISTRIBUTION/NUMBER: fixed(1)/10");
                None
            }
        }
    }

    fn columns(&mut self, node: &Node) -> Vec<ColumnSpec> {
        let nodes = match &node.content {
            Content::List(nodes) => nodes.as_slice(),
            Content::Null => &[],
            _ => {
                self.report(
                    node.line,
                    format!("columnspec must be a list, got {}", node.describe()),
                    "write - name: COLUMN",
                );
                &[]
            }
        };
        let mut columns: Vec<ColumnSpec> = Vec::new();
        for node in nodes {
            let entries = self.entries(node, "a column");
            let mut column = ColumnSpec::default();
            let mut has_name = false;
            for (key, line, value) in entries {
                match key.to_lowercase().as_str() {
                    "name" => {
                        has_name = true;
                        column.name = self.text(value, "name").unwrap_or_default();
                        if columns.iter().any(|other| other.name == column.name) {
                            self.report(
                                *line,
                                format!("the column {} is listed twice", column.name),
                                "remove one of them",
                            );
                        }
                    }
                    "size" => column.size = self.spec(value, "size"),
                    "population" => column.population = self.spec(value, "population"),
                    "cluster" => column.cluster = self.spec(value, "cluster"),
                    other => {
                        let message = format!("a column has no key {other}");
                        self.report(*line, message, "the keys are name, size, population and cluster");
                    }
                }
            }
            for (key, spec, max) in [("size", &column.size, SIZE_MAX), ("cluster", &column.cluster, i64::MAX)] {
                if let Some((least, greatest)) = spec.as_ref().and_then(|spec| spec.range().ok())
                    && (least < 0 || greatest > max)
                {
                    let message = format!("{key} must be from 0 to {max}, got {least} to {greatest}");
                    self.report(node.line, message, "use a smaller range");
                }
            }
            if !has_name {
                self.report(node.line, "a column has no name", "add name: COLUMN");
            }
            columns.push(column);
        }
        columns
    }

    fn insert(&mut self, node: &Node) -> InsertSpec {
        let mut insert = InsertSpec::default();
        for (key, line, value) in self.entries(node, "insert") {
            match key.to_lowercase().as_str() {
                "partitions" => {
                    let spec = self.spec(value, "partitions");
                    if let Some((least, greatest)) = spec.as_ref().and_then(|spec| spec.range().ok())
                        && (least < 1 || greatest > PARTITIONS_MAX)
                    {
                        let message =
                            format!("partitions must be from 1 to {PARTITIONS_MAX}, got {least} to {greatest}");
                        self.report(*line, message, "use fixed(1)");
                    }
                    insert.partitions = spec;
                }
                "select" => insert.select = self.ratio(value, "select"),
                "row-population" => insert.row_population = self.ratio(value, "row-population"),
                "condition" => insert.condition = self.text(value, "condition"),
                "batchtype" => {
                    let text = self.text(value, "batchtype").unwrap_or_default();
                    match BatchType::parse(&text) {
                        Some(batch) => insert.batch = batch,
                        None => self.report(*line, format!("batchtype \"{text}\""), "use LOGGED, UNLOGGED or COUNTER"),
                    }
                }
                "consistencylevel" | "serialconsistencylevel" => self.refuse_level(*line, key),
                other => {
                    let message = format!("insert has no key {other}");
                    self.report(
                        *line,
                        message,
                        "the keys are partitions, select, batchtype, row-population and condition",
                    );
                }
            }
        }
        insert
    }

    fn refuse_level(&mut self, line: usize, key: &str) {
        self.report(
            line,
            format!("{key} cannot be set for one operation"),
            "remove it, and use cl= on the command line",
        );
    }

    fn queries(&mut self, node: &Node) -> Vec<Query> {
        let mut queries = Vec::new();
        for (name, line, value) in self.entries(node, "queries") {
            let (mut cql, mut fields, mut validates) = (None, Fields::Multirow, false);
            for (key, line, value) in self.entries(value, "a query") {
                match key.to_lowercase().as_str() {
                    "cql" => cql = self.text(value, "cql"),
                    "fields" => {
                        let text = self.text(value, "fields").unwrap_or_default();
                        match text.to_lowercase().as_str() {
                            "samerow" => fields = Fields::Samerow,
                            "multirow" => fields = Fields::Multirow,
                            _ => self.report(*line, format!("fields: {text}"), "use samerow or multirow"),
                        }
                    }
                    "validate" => match self.text(value, "validate").as_deref() {
                        Some("true" | "yes" | "True") => validates = true,
                        Some("false" | "no" | "False") | None => {}
                        Some(other) => self.report(*line, format!("validate: {other}"), "use true or false"),
                    },
                    "consistencylevel" | "serialconsistencylevel" => self.refuse_level(*line, key),
                    other => {
                        let message = format!("a query has no key {other}");
                        self.report(*line, message, "the keys are cql, fields and validate");
                    }
                }
            }
            match cql {
                Some(cql) if !cql.trim().is_empty() => {
                    let name = name.to_lowercase();
                    queries.push(Query { name, cql: cql.trim().trim_end_matches(';').to_owned(), fields, validates });
                }
                _ => self.report(*line, format!("the query {name} has no cql"), "add cql: SELECT …"),
            }
        }
        queries
    }

    fn token_range_queries(&mut self, node: &Node) -> Vec<TokenRangeQuery> {
        let mut queries = Vec::new();
        for (name, _, value) in self.entries(node, "token_range_queries") {
            let mut query = TokenRangeQuery { name: name.to_lowercase(), columns: "*".to_owned(), page_rows: 5_000 };
            for (key, line, value) in self.entries(value, "a token range query") {
                match key.to_lowercase().as_str() {
                    "columns" => query.columns = self.text(value, "columns").unwrap_or(query.columns),
                    "page_size" => match self.text(value, "page_size").and_then(|text| text.parse().ok()) {
                        Some(rows @ 1..=1_000_000) => query.page_rows = rows,
                        _ => self.report(
                            *line,
                            "page_size must be a whole number from 1 to 1000000",
                            "use page_size: 5000",
                        ),
                    },
                    other => {
                        let message = format!("a token range query has no key {other}");
                        self.report(*line, message, "the keys are columns and page_size");
                    }
                }
            }
            queries.push(query);
        }
        queries
    }
}

/// The longest value, bytes; the native protocol's frame has this limit.
const SIZE_MAX: i64 = 256 << 20;
const PARTITIONS_MAX: i64 = 65_535;

fn remove_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a name differs from a key by case, hyphens or two letters.
fn is_near(key: &str, name: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let (key, name) = (plain(key), plain(name));
    let prefix = key.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let suffix = key.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
    prefix + suffix + 2 >= key.len().max(name.len())
}

/// The name that `CREATE KEYSPACE` or `CREATE TABLE` defines, without its keyspace.
fn find_name(definition: &str, word: &str) -> Option<String> {
    let spaced = definition.replace(['(', ';'], " ");
    let mut tokens = spaced.split_whitespace().filter(|word| !word.is_empty());
    if !tokens.next()?.eq_ignore_ascii_case("CREATE") {
        return None;
    }
    let kind = tokens.next()?;
    if !(kind.eq_ignore_ascii_case(word) || (word == "TABLE" && kind.eq_ignore_ascii_case("COLUMNFAMILY"))) {
        return None;
    }
    let mut name = tokens.next()?;
    if name.eq_ignore_ascii_case("IF") {
        name = tokens.nth(2)?;
    }
    let name = name.rsplit('.').next().unwrap_or(name);
    Some(name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let text = "keyspace: a\ncolumnspec:\n  - size: fixed(x)\ninsert: 3\nqueries:\n  insert: {cql: x}\n  b: {}\n";
        let lines: Vec<usize> = Profile::parse(text).unwrap_err().iter().map(|mistake| mistake.line).collect();
        assert_eq!(lines, [1, 3, 3, 4, 6, 7]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_profile_or_refused(text in "(?s).{0,400}") {
            let _ = Profile::parse(&text);
        }

        /// Damage in a real profile: a part replaced by signs that matter to YAML.
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
