//! Requests descriptions of tables and statements from a node, outside any trial.

use std::rc::Rc;

use super::answer::{Column, Prepared};
use super::cluster::{Cluster, connect, unreachable};
use super::login::Link;
use super::settings::Settings;
use super::slot::Slot;
use super::texts::Texts;
use crate::error::Failure;
use crate::options::Options;
use crate::remote::asking;
use loadstone_load::Status;
use loadstone_session::EngineError;

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDescription {
    /// The column's name.
    pub name: String,
    /// `partition_key`, `clustering`, `static` or `regular`.
    pub role: String,
    /// The column's position in the key, or −1 if it is not in the key.
    pub position: i32,
    /// The column's CQL type, with user-defined types represented as tuples.
    pub kind: String,
    /// Whether the column's values can be written only as a whole.
    pub is_frozen: bool,
}

/// The names and types of a statement's markers and result columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementDescription {
    /// The name and type for each `?`.
    pub markers: Vec<(String, String)>,
    /// The columns of the result; empty for a statement that returns no rows.
    pub columns: Vec<(String, String)>,
}

/// Describes the columns of the tables given by keyspace and name (a missing table has no columns), and returns the
/// tokens of the ring as well.
pub fn describe_tables(
    options: &Options,
    tables: &[(&str, &str)],
) -> Result<(Vec<Vec<ColumnDescription>>, Vec<i64>), EngineError> {
    let settings = Settings::from_options(options)?;
    asking(async {
        let (contact, link) = connect(&settings).await?;
        let mut all = Vec::new();
        for (keyspace, table) in tables {
            all.push(describe_table(&link, keyspace, table).await?);
        }
        let nodes = Cluster::read_nodes(&link, contact, settings.port).await;
        let nodes =
            nodes.map_err(|refusal| unreachable(&Failure::new(Status::Error, refusal.message), settings.port))?;
        Ok((all, nodes.into_iter().flat_map(|node| node.tokens).collect()))
    })
}

/// Prepares statements, and returns the node's descriptions of them.
pub fn describe_statements(
    options: &Options,
    texts: &[String],
) -> Result<Vec<Result<StatementDescription, EngineError>>, EngineError> {
    let settings = Settings::from_options(options)?;
    asking(async {
        let (_, link) = connect(&settings).await?;
        let (numbered, slot) = (number_texts(texts.iter().map(String::as_str)), Rc::default());
        link.prepare_all(&numbered, 0).await;
        let mut all = Vec::new();
        for (number, text) in texts.iter().enumerate() {
            let prepared = link.ensure_prepared(number, &numbered, &slot).await;
            let described = prepared.map(|prepared| StatementDescription {
                markers: name_all(&prepared.markers),
                columns: name_all(&prepared.columns),
            });
            all.push(described.map_err(|failure| {
                let message = format!("the server cannot prepare \"{text}\": {}", failure.message);
                EngineError::failed(message).hint("correct the statement, or create its table first")
            }));
        }
        Ok(all)
    })
}

fn name_all(columns: &[Column]) -> Vec<(String, String)> {
    let describe = |column: &Column| (String::from_utf8_lossy(&column.name).into_owned(), column.kind.to_string());
    columns.iter().map(describe).collect()
}

async fn prepare(link: &Link, text: &str) -> Result<Rc<Prepared>, Failure> {
    // A statement number for which this connection has not prepared a statement yet.
    let number = link.count_prepared();
    let texts = number_texts(std::iter::repeat_n(text, number + 1));
    link.ensure_prepared(number, &texts, &Rc::new(Slot::default())).await
}

/// Numbers statements from 0, including repeated statements.
fn number_texts<'a>(statements: impl Iterator<Item = &'a str>) -> Texts {
    let texts = Texts::default();
    for (number, text) in statements.enumerate() {
        texts.number(|out| out.extend_from_slice(&number.to_be_bytes()), || text.to_owned());
    }
    texts
}

async fn describe_table(link: &Link, keyspace: &str, table: &str) -> Result<Vec<ColumnDescription>, EngineError> {
    let failed =
        |message: String| EngineError::failed(format!("cannot read the columns of {keyspace}.{table}: {message}"));
    let literal = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let query = format!(
        "SELECT column_name, kind, position, type FROM system_schema.columns WHERE keyspace_name = {} AND table_name = {}",
        literal(keyspace),
        literal(table)
    );
    let rows = link.query(&query).await.map_err(|refusal| failed(refusal.message))?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    // The types in a result are complete, whereas the schema tables contain only the names of user-defined types.
    let identifier = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let all = format!("SELECT * FROM {}.{}", identifier(keyspace), identifier(table));
    let prepared = prepare(link, &all).await.map_err(|failure| failed(failure.message))?;
    let kinds = name_all(&prepared.columns);
    let text = |value: Option<Vec<u8>>| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
    let mut columns = Vec::new();
    for row in rows {
        let mut values = row.into_iter();
        let mut next = || values.next().flatten();
        let (name, role) = (text(next()), text(next()));
        let position = next().and_then(|bytes| bytes.try_into().ok()).map_or(-1, i32::from_be_bytes);
        let is_frozen = text(next()).starts_with("frozen<");
        let kind = kinds.iter().find(|(other, _)| *other == name).map_or_else(String::new, |(_, kind)| kind.clone());
        columns.push(ColumnDescription { name, role, position, kind, is_frozen });
    }
    Ok(columns)
}
