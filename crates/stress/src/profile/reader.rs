//! Reads a profile and collects its errors.

use std::collections::{BTreeMap, BTreeSet};

use super::Profile;
use crate::columns::{ColumnSpec, InsertSpec, TableSpec};
use crate::distribution::{RatioSpec, Spec, parse_ratio, parse_spec};
use crate::yaml::{Mistake, Node, NodeContent};

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

#[derive(Default)]
pub struct Reader {
    pub mistakes: Vec<Mistake>,
    /// The lines of the profile's parts, for errors that only the server finds.
    pub lines: BTreeMap<String, usize>,
}

pub type Entries<'a> = &'a [(String, usize, Node)];

impl Reader {
    pub fn report(&mut self, line: usize, message: impl Into<String>, hint: impl Into<String>) {
        self.mistakes.push(Mistake::new(line, message, hint));
    }

    /// The entries of a map; none if the map is empty.
    pub fn entries<'a>(&mut self, node: &'a Node, name: &str) -> Entries<'a> {
        match &node.content {
            NodeContent::Map(entries) => entries,
            NodeContent::Null => &[],
            _ => {
                self.report(node.line, format!("{name} must have keys, got {}", node.describe()), "write KEY: VALUE");
                &[]
            }
        }
    }

    pub fn text(&mut self, node: &Node, name: &str) -> Option<String> {
        match &node.content {
            NodeContent::Scalar(text) => Some(text.clone()),
            NodeContent::Null => None,
            _ => {
                self.report(
                    node.line,
                    format!("{name} must be text, got {}", node.describe()),
                    "write it on one line, or after |",
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

    pub fn profile(&mut self, root: &Node) -> Option<Profile> {
        let entries = self.entries(root, "a profile");
        self.check_keys(entries, &KEYS, "a profile");
        self.lines = entries.iter().map(|(name, line, _)| (name.clone(), *line)).collect();
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
        let keys = table_definition.as_ref().map(|(text, _)| list_primary_key(text));
        let columns = find("columnspec").map_or_else(Vec::new, |node| self.columns(node, keys.as_deref()));
        let insert = find("insert").map_or_else(InsertSpec::default, |node| self.insert(node));
        let queries = find("queries").map_or_else(Vec::new, |node| self.queries(node));
        let ranges = find("token_range_queries").map_or_else(Vec::new, |node| self.token_range_queries(node));
        let mut names = BTreeSet::new();
        let lines = [find("queries"), find("token_range_queries")].into_iter().flatten();
        for (name, line, _) in lines
            .filter_map(|node| if let NodeContent::Map(entries) = &node.content { Some(entries) } else { None })
            .flatten()
        {
            let name = name.to_lowercase();
            if !names.insert(name.clone()) {
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
            lines: std::mem::take(&mut self.lines),
        })
    }

    /// Checks that a definition has the same name as the profile.
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
                let message = format!("the definition creates {defined}, but the profile uses {name}");
                self.report(line, message, "use the same name");
            }
            Some(_) => {}
        }
    }

    fn texts(&mut self, node: &Node, name: &str) -> Vec<String> {
        match &node.content {
            NodeContent::List(nodes) => {
                let texts = nodes.iter().filter_map(|node| Some((self.text(node, name)?, node.line)));
                let (texts, lines): (Vec<_>, Vec<_>) = texts.collect::<Vec<_>>().into_iter().unzip();
                self.lines.extend(lines.into_iter().enumerate().map(|(at, line)| (format!("{name}.{at}"), line)));
                texts
            }
            NodeContent::Null => Vec::new(),
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

    pub fn spec(&mut self, node: &Node, name: &str) -> Option<Spec> {
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

    pub fn ratio(&mut self, node: &Node, name: &str) -> Option<RatioSpec> {
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

    /// Reads the columns. `keys`: the columns of the primary key, if the profile defines the table.
    fn columns(&mut self, node: &Node, keys: Option<&[String]>) -> Vec<ColumnSpec> {
        let nodes = match &node.content {
            NodeContent::List(nodes) => nodes.as_slice(),
            NodeContent::Null => &[],
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
            // As in the tool, `cluster` has no effect outside the primary key.
            let is_key = keys.is_none_or(|keys| keys.contains(&column.name.to_lowercase()));
            let cluster = column.cluster.as_ref().filter(|_| is_key);
            for (key, spec, max) in [("size", column.size.as_ref(), SIZE_MAX), ("cluster", cluster, i64::MAX)] {
                if let Some((least, greatest)) = spec.and_then(|spec| spec.range().ok())
                    && (least < 0 || greatest > max)
                {
                    let message = format!("{key} must be from 0 to {max}, got {least} to {greatest}");
                    self.report(node.line, message, "use a smaller range");
                }
            }
            if !has_name {
                self.report(node.line, "a column has no name", "add name: COLUMN");
            }
            self.lines.insert(format!("columnspec.{}", column.name), node.line);
            columns.push(column);
        }
        columns
    }
}

/// Maximum length of a value in bytes, which is the limit of a frame in the native protocol.
const SIZE_MAX: i64 = 256 << 20;

fn remove_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Whether a name differs from a key in at most two adjacent letters, apart from case, hyphens, `_` and spaces.
fn is_near(key: &str, name: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let (key, name) = (plain(key), plain(name));
    let prefix = key.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let suffix = key.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
    prefix + suffix + 2 >= key.len().max(name.len())
}

/// The columns in the clause `PRIMARY KEY (…)`, in lower case; empty if `PRIMARY KEY` has no list because it follows
/// the only key column.
fn list_primary_key(definition: &str) -> Vec<String> {
    let lower = definition.to_lowercase();
    let clause = lower.split("primary").skip(1).find_map(|rest| rest.trim_start().strip_prefix("key"));
    let Some(list) = clause.and_then(|rest| rest.trim_start().strip_prefix('(')) else { return Vec::new() };
    let mut depth = 1;
    let end = list.find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    let names = list[..end.unwrap_or(list.len())].split(['(', ')', ',']);
    names.map(|name| name.trim().trim_matches('"').to_owned()).filter(|name| !name.is_empty()).collect()
}

/// The name that `CREATE KEYSPACE` or `CREATE TABLE` defines, without the keyspace.
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
