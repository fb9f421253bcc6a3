//! Generates the text of inserts, and finds the tables, columns and conditions in the text of a query.

use super::{Condition, Operator, TableSchema, TableSpec};
use crate::cql::{CqlType, quote};
use crate::partition::{ColumnPlace, PartitionLayout};

/// The statement that writes a row, as the tool generates it. The tool refuses maps; here, writes append to maps as
/// they do to sets.
pub fn insert_text(table: &TableSpec, layout: &PartitionLayout, schema: &TableSchema) -> String {
    let keys: Vec<String> = layout.key.iter().chain(&layout.clustering).map(|column| quote(&column.name)).collect();
    let condition = table.insert.condition.as_ref().map_or_else(String::new, |condition| format!(" {condition}"));
    if layout.values.is_empty() {
        let markers = vec!["?"; keys.len()].join(", ");
        return format!("INSERT INTO {} ({}) values({markers}){condition}", table.full_name(), keys.join(", "));
    }
    let assignments: Vec<String> = layout
        .values
        .iter()
        .map(|column| {
            let name = quote(&column.name);
            let is_frozen = schema.columns.iter().any(|other| other.name == column.name && other.is_frozen);
            let grows = column.kind == CqlType::Counter || (column.kind.is_collection() && !is_frozen);
            if grows { format!("{name} = {name} + ?") } else { format!("{name} = ?") }
        })
        .collect();
    let keys: Vec<String> = keys.iter().map(|name| format!("{name} = ?")).collect();
    format!("UPDATE {} SET {} WHERE {}{condition}", table.full_name(), assignments.join(","), keys.join(" AND "))
}

/// The tokens of a statement and their positions.
pub fn tokens(text: &str) -> Vec<(usize, &str)> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            quote @ (b'\'' | b'"') => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += 1;
                }
                at = (at + 1).min(bytes.len());
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80 => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_' || bytes[at] >= 0x80)
                {
                    at += 1;
                }
            }
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'<' | b'>' if bytes.get(at + 1) == Some(&b'=') => at += 2,
            _ => at += 1,
        }
        tokens.push((start, &text[start..at]));
    }
    tokens
}

/// The columns after IF that are compared with a `?`, in order.
///
/// # Errors
/// A `?` is not part of `column OPERATOR ?`, or a column has two conditions with a `?`.
pub fn parse_condition_columns(text: &str) -> Result<Vec<String>, String> {
    let tokens = tokens(text);
    let Some(start) = tokens.iter().position(|(_, word)| word.eq_ignore_ascii_case("IF")) else {
        return Ok(Vec::new());
    };
    let mut columns: Vec<String> = Vec::new();
    for condition in tokens[start + 1..].split(|(_, word)| word.eq_ignore_ascii_case("AND")) {
        if !condition.iter().any(|(_, word)| *word == "?") {
            continue;
        }
        let [(_, name), operator @ .., (_, "?")] = condition else {
            return Err("a condition with a ? must be IF column OPERATOR ?, such as IF version = ?".to_owned());
        };
        if !operator.iter().all(|(_, word)| ["=", "<", ">", "<=", ">=", "!"].contains(word)) {
            return Err("a condition with a ? must be IF column OPERATOR ?, such as IF version = ?".to_owned());
        }
        let name = name.strip_prefix('"').map_or_else(|| name.to_lowercase(), |name| name.trim_matches('"').to_owned());
        if columns.contains(&name) {
            return Err(format!("{name} has two conditions with a ?"));
        }
        columns.push(name);
    }
    Ok(columns)
}

/// Adds the keyspace to the table name in a statement, because the statements of profiles may omit the keyspace.
pub fn qualify(text: &str, keyspace: &str) -> String {
    let tokens = tokens(text);
    for (at, pair) in tokens.windows(2).enumerate() {
        let is_before_table =
            ["FROM", "INTO", "UPDATE", "TABLE", "TRUNCATE"].iter().any(|word| pair[0].1.eq_ignore_ascii_case(word))
                && !pair[1].1.eq_ignore_ascii_case("TABLE");
        if is_before_table {
            let is_full = tokens.get(at + 2).is_some_and(|(_, word)| *word == ".");
            let (start, _) = pair[1];
            if is_full {
                break;
            }
            return format!("{}{}.{}", &text[..start], quote(keyspace), &text[start..]);
        }
    }
    text.to_owned()
}

/// The conditions of `SELECT … WHERE column = ? AND …`; `None` if the query has another form.
pub fn parse_conditions(text: &str, layout: &PartitionLayout, places: &[ColumnPlace]) -> Option<Vec<Condition>> {
    let tokens = tokens(text);
    let start = tokens.iter().position(|(_, word)| word.eq_ignore_ascii_case("WHERE"))?;
    // A `?` among the selected columns would be the first marker.
    if tokens[..start].iter().any(|(_, word)| *word == "?") {
        return None;
    }
    let mut conditions = Vec::new();
    let mut rest = &tokens[start + 1..];
    loop {
        let [(_, name), (_, operator), (_, "?"), tail @ ..] = rest else { return None };
        let operator = match *operator {
            "=" => Operator::Equal,
            "<" => Operator::Less,
            ">" => Operator::Greater,
            "<=" => Operator::AtMost,
            ">=" => Operator::AtLeast,
            _ => return None,
        };
        let marker = conditions.len();
        let place = *places.get(marker)?;
        let column = layout.column(place);
        let is_same = name.trim_matches('"') == column.name || name.eq_ignore_ascii_case(&column.name);
        if !is_same {
            return None;
        }
        conditions.push(Condition { place, operator, marker });
        match tail {
            [] => return Some(conditions),
            [(_, word), next @ ..] if word.eq_ignore_ascii_case("AND") => rest = next,
            [(_, first), (_, second)]
                if first.eq_ignore_ascii_case("ALLOW") && second.eq_ignore_ascii_case("FILTERING") =>
            {
                return Some(conditions);
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_queries_get_their_keyspace() {
        for (text, expected) in [
            ("select * from t where a = 'from x'", "select * from ks.t where a = 'from x'"),
            ("SELECT a FROM other.t", "SELECT a FROM other.t"),
            ("UPDATE \"T\" SET a = ?", "UPDATE ks.\"T\" SET a = ?"),
            ("insert into t (a) values (?)", "insert into ks.t (a) values (?)"),
            ("delete a from t where k = ?", "delete a from ks.t where k = ?"),
            ("ALTER TABLE t WITH comment = 'from x'", "ALTER TABLE ks.t WITH comment = 'from x'"),
            ("TRUNCATE TABLE t", "TRUNCATE TABLE ks.t"),
            ("truncate other.t", "truncate other.t"),
            ("truncate t", "truncate ks.t"),
        ] {
            assert_eq!(qualify(text, "ks"), expected);
        }
    }

    #[test]
    fn conditions_with_markers_name_their_columns() {
        for (text, expected) in [
            ("UPDATE t SET a = ? WHERE k = ?", Some(vec![])),
            ("UPDATE t SET a = ? WHERE k = ? IF EXISTS", Some(vec![])),
            ("UPDATE t SET a = ? WHERE k = ? IF a = 3 AND b = ?", Some(vec!["b"])),
            ("update t set a = ? where k = ? if A = ? and \"B\" != ?", Some(vec!["a", "B"])),
            ("UPDATE t SET a = ? WHERE k = ? IF a IN (?, 2)", None),
            ("UPDATE t SET a = ? WHERE k = ? IF m[?] = 2", None),
            ("UPDATE t SET a = ? WHERE k = ? IF a > ? AND a < ?", None),
        ] {
            let columns = parse_condition_columns(text).ok();
            assert_eq!(columns, expected.map(|names| names.into_iter().map(str::to_owned).collect()), "{text}");
        }
    }
}
