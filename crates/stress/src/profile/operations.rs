//! The operations of a profile: its inserts, queries and token range queries.

use super::reader::Reader;
use super::{Query, TokenRangeQuery};
use crate::columns::{BatchType, Fields, InsertSpec};
use crate::yaml::Node;

const PARTITIONS_MAX: i64 = 65_535;

impl Reader {
    pub fn insert(&mut self, node: &Node) -> InsertSpec {
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

    pub fn queries(&mut self, node: &Node) -> Vec<Query> {
        let mut queries = Vec::new();
        for (name, line, value) in self.entries(node, "queries") {
            let (mut cql, mut fields, mut validates) = (None, Fields::Multirow, false);
            for (key, line, value) in self.entries(value, "a query") {
                match key.to_lowercase().as_str() {
                    "cql" => {
                        cql = self.text(value, "cql");
                        self.lines.insert(query_part(name), *line);
                    }
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

    pub fn token_range_queries(&mut self, node: &Node) -> Vec<TokenRangeQuery> {
        let mut queries = Vec::new();
        for (name, line, value) in self.entries(node, "token_range_queries") {
            self.lines.insert(query_part(name), *line);
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

/// The key of a query's line in `lines`.
fn query_part(name: &str) -> String {
    format!("queries.{}", name.to_lowercase())
}
