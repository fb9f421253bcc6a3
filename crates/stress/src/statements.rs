//! The texts of the statements: keyspace, tables, and the four operations.
//!
//! Sources: Cassandra's `SettingsSchema.java`, `CqlInserter.java`, `CqlReader.java`, `CqlCounterAdder.java`,
//! `CqlCounterGetter.java`, `SettingsCommand.java`.

use std::fmt::Write;

use crate::compat::Compat;
use crate::settings::{Command, Settings};

/// The table of `write` and `read`.
pub const STANDARD_TABLE: &str = "standard1";
/// The table of `counter_write` and `counter_read`.
pub const COUNTER_TABLE: &str = "counter1";

/// A statement of the server's language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// CQL.
    pub text: String,
    /// The number of values that are bound.
    pub values: usize,
}

/// Creates keyspace and tables, in the tool's order; each is sent at `LOCAL_ONE` as a simple statement.
#[must_use]
pub fn schema_statements(settings: &Settings) -> Vec<String> {
    vec![
        create_keyspace(settings),
        use_keyspace(&settings.schema.keyspace),
        create_table(settings, STANDARD_TABLE, "blob"),
        create_table(settings, COUNTER_TABLE, "counter"),
    ]
}

/// `USE`, which the tool sends on its connection.
#[must_use]
pub fn use_keyspace(keyspace: &str) -> String {
    format!("USE \"{keyspace}\"")
}

/// Creates the keyspace.
#[must_use]
pub fn create_keyspace(settings: &Settings) -> String {
    let schema = &settings.schema;
    let mut text = format!(
        "CREATE KEYSPACE IF NOT EXISTS \"{}\" WITH replication = {{'class': '{}'",
        schema.keyspace, schema.replication_strategy
    );
    if schema.replication_options.is_empty() {
        text.push_str(", 'replication_factor': '1'}");
    } else {
        for (key, value) in &schema.replication_options {
            text.push_str(&format!(", '{key}' : '{value}'"));
        }
        text.push('}');
    }
    text + " AND durable_writes = true;\n"
}

/// Creates a table. Without `compression=` its data are not compressed, whatever the server's default.
///
/// The tool's doubled comma in `counter1` is valid for Cassandra and not for `ScyllaDB`, so one is sent.
#[must_use]
pub fn create_table(settings: &Settings, table: &str, column_type: &str) -> String {
    let Settings { compat, schema, columns, .. } = settings;
    let name = if *compat == Compat::V5 { format!("{}.{table}", schema.keyspace) } else { table.to_owned() };
    let mut text = format!("CREATE TABLE IF NOT EXISTS {name} (key blob PRIMARY KEY ");
    for column in &columns.names {
        text.push_str(&format!("\n, \"{column}\" {column_type}"));
    }
    text.push_str(") WITH ");
    if compat.uses_compact_storage() {
        text.push_str("COMPACT STORAGE AND ");
    }
    text.push_str("compression = {");
    if let Some(class) = &schema.compression {
        let key = if *compat == Compat::V5 { "class" } else { "sstable_compression" };
        text.push_str(&format!("'{key}' : '{class}'"));
    }
    text.push('}');
    if let Some(strategy) = &schema.compaction_strategy {
        text.push_str(&format!(" AND compaction = {{ 'class' : '{strategy}'"));
        for (key, value) in &schema.compaction_options {
            text.push_str(&format!(", '{key}' : '{value}'"));
        }
        text.push('}');
    }
    text + ";\n"
}

/// The same table for a server of 4.0 or later, which refuses `COMPACT STORAGE` for new tables.
#[must_use]
pub fn drop_compact_storage(statement: &str) -> String {
    statement.replace("COMPACT STORAGE AND ", "")
}

/// Empties the tables. The tool also names `counter3`, which it never creates, and so fails (CASSANDRA-12695).
#[must_use]
pub fn truncate_statements(settings: &Settings) -> Vec<String> {
    let mut tables: Vec<&str> = settings.operations().iter().map(|(command, _)| table_of(*command)).collect();
    tables.sort_unstable_by(|a, b| b.cmp(a));
    tables.dedup();
    tables.iter().map(|table| format!("TRUNCATE {}.{table}", settings.schema.keyspace)).collect()
}

/// The table of an operation.
#[must_use]
pub const fn table_of(command: Command) -> &'static str {
    match command {
        Command::CounterWrite | Command::CounterRead => COUNTER_TABLE,
        Command::Read | Command::Write | Command::Mixed => STANDARD_TABLE,
    }
}

/// The statement of an operation; `mixed` has the statements of its parts. Values are bound in the order of the columns, then the
/// key. Counters are bound as 8-byte integers.
#[must_use]
pub fn operation_statement(settings: &Settings, command: Command) -> Statement {
    let names = &settings.columns.names;
    let quoted = || names.iter().map(|name| format!("\"{name}\""));
    let (text, values) = match command {
        Command::Write | Command::Mixed => {
            let timestamp = settings
                .columns
                .timestamp
                .as_ref()
                .map_or_else(String::new, |timestamp| format!(" USING TIMESTAMP {timestamp}"));
            let list = quoted().map(|name| format!("{name} = ?")).collect::<Vec<_>>().join(",");
            (format!("UPDATE \"{STANDARD_TABLE}\"{timestamp} SET {list} WHERE KEY=?"), names.len() + 1)
        }
        Command::Read => {
            let list = if settings.columns.slice { "*".to_owned() } else { quoted().collect::<Vec<_>>().join(",") };
            (format!("SELECT {list} FROM \"{STANDARD_TABLE}\" WHERE KEY=?"), 1)
        }
        Command::CounterWrite => {
            let list = quoted().map(|name| format!("{name}={name}+?")).collect::<Vec<_>>().join(",");
            (format!("UPDATE {COUNTER_TABLE} SET {list} WHERE KEY=?"), names.len() + 1)
        }
        Command::CounterRead => (format!("SELECT * FROM \"{COUNTER_TABLE}\" WHERE KEY=?"), 1),
    };
    Statement { text, values }
}

/// A value inside the text of a statement that is not prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Literal<'a> {
    /// A column that is not set.
    Null,
    /// `0x…`.
    Blob(&'a [u8]),
    /// The increment of a counter.
    Integer(i64),
}

/// Replaces `buffer` by a statement with a literal in place of each `?`, as `unprepared` sends it.
pub fn inline_values(statement: &str, values: &[Literal], buffer: &mut String) {
    buffer.clear();
    let mut values = values.iter();
    for part in statement.split_inclusive('?') {
        let (Some(text), Some(value)) = (part.strip_suffix('?'), values.next()) else {
            buffer.push_str(part);
            continue;
        };
        buffer.push_str(text);
        match value {
            Literal::Null => buffer.push_str("null"),
            // Writing to a string cannot fail.
            Literal::Integer(value) => drop(write!(buffer, "{value}")),
            Literal::Blob(bytes) => {
                buffer.push_str("0x");
                for byte in *bytes {
                    buffer.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
                    buffer.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::{Request, parse};

    fn settings(line: &str) -> Settings {
        match parse(&line.split(' ').collect::<Vec<_>>()).unwrap() {
            Request::Run(settings) => *settings,
            Request::Print(text) => panic!("{text}"),
        }
    }

    #[test]
    fn default_schema_matches_the_tool() {
        let statements = schema_statements(&settings("write n=10"));
        assert_eq!(
            statements,
            [
                "CREATE KEYSPACE IF NOT EXISTS \"keyspace1\" WITH replication = {'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor' : '1'} AND durable_writes = true;\n",
                "USE \"keyspace1\"",
                "CREATE TABLE IF NOT EXISTS standard1 (key blob PRIMARY KEY \n, \"C0\" blob\n, \"C1\" blob\n, \"C2\" blob\n, \"C3\" blob\n, \"C4\" blob) WITH compression = {};\n",
                "CREATE TABLE IF NOT EXISTS counter1 (key blob PRIMARY KEY \n, \"C0\" counter\n, \"C1\" counter\n, \"C2\" counter\n, \"C3\" counter\n, \"C4\" counter) WITH compression = {};\n",
            ]
        );
    }

    #[test]
    fn table_options_depend_on_the_generation() {
        let line = "write n=10 -col n=fixed(1) -schema keyspace=ks compression=LZ4Compressor \
                    compaction(strategy=LeveledCompactionStrategy,sstable_size_in_mb=10) -compat";
        let table = |compat: &str| create_table(&settings(&format!("{line} {compat}")), STANDARD_TABLE, "blob");
        let compaction = " AND compaction = { 'class' : 'LeveledCompactionStrategy', 'sstable_size_in_mb' : '10'};\n";
        let start = "(key blob PRIMARY KEY \n, \"C0\" blob) WITH";
        let old = format!(
            "CREATE TABLE IF NOT EXISTS standard1 {start} COMPACT STORAGE AND compression = {{'sstable_compression' : 'LZ4Compressor'}}{compaction}"
        );
        let four = format!(
            "CREATE TABLE IF NOT EXISTS standard1 {start} compression = {{'sstable_compression' : 'LZ4Compressor'}}{compaction}"
        );
        assert_eq!((table("3.0"), table("3.11")), (old.clone(), old.clone()));
        assert_eq!(table("4"), four);
        assert_eq!(drop_compact_storage(&old), four);
        let five = "CREATE TABLE IF NOT EXISTS ks.standard1";
        assert_eq!(
            table("5"),
            four.replace("CREATE TABLE IF NOT EXISTS standard1", five).replace("sstable_compression", "class")
        );
    }

    #[test]
    fn replication_options_keep_their_order() {
        let line = "write n=10 -schema replication(strategy=NetworkTopologyStrategy,dc1=3,dc2=2) keyspace=ks";
        assert_eq!(
            create_keyspace(&settings(line)),
            "CREATE KEYSPACE IF NOT EXISTS \"ks\" WITH replication = {'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy', 'dc1' : '3', 'dc2' : '2'} AND durable_writes = true;\n"
        );
    }

    #[test]
    fn operations_match_the_tool() {
        let text = |line: &str, command| operation_statement(&settings(line), command).text;
        let two = "write n=1 -col n=fixed(2)";
        assert_eq!(text(two, Command::Write), "UPDATE \"standard1\" SET \"C0\" = ?,\"C1\" = ? WHERE KEY=?");
        assert_eq!(text(two, Command::Read), "SELECT \"C0\",\"C1\" FROM \"standard1\" WHERE KEY=?");
        assert_eq!(text(two, Command::CounterWrite), "UPDATE counter1 SET \"C0\"=\"C0\"+?,\"C1\"=\"C1\"+? WHERE KEY=?");
        assert_eq!(text(two, Command::CounterRead), "SELECT * FROM \"counter1\" WHERE KEY=?");
        assert_eq!(text("write n=1 -col slice", Command::Read), "SELECT * FROM \"standard1\" WHERE KEY=?");
        assert_eq!(
            text("write n=1 -col n=fixed(1) timestamp=123", Command::Write),
            "UPDATE \"standard1\" USING TIMESTAMP 123 SET \"C0\" = ? WHERE KEY=?"
        );
    }

    #[test]
    fn truncation_names_existing_tables_only() {
        assert_eq!(truncate_statements(&settings("write n=1")), ["TRUNCATE keyspace1.standard1"]);
        assert_eq!(
            truncate_statements(&settings("mixed ratio(read=1,write=1,counter_read=1) n=1")),
            ["TRUNCATE keyspace1.standard1", "TRUNCATE keyspace1.counter1"]
        );
    }

    #[test]
    fn unprepared_statements_hold_their_values() {
        let mut buffer = String::new();
        let values = [Literal::Blob(b"\x00\xff"), Literal::Null, Literal::Blob(b"k")];
        inline_values("UPDATE t SET a = ?,b = ? WHERE KEY=?", &values, &mut buffer);
        assert_eq!(buffer, "UPDATE t SET a = 0x00ff,b = null WHERE KEY=0x6b");
        inline_values("UPDATE t SET a=a+? WHERE KEY=?", &[Literal::Integer(-3), Literal::Blob(b"k")], &mut buffer);
        assert_eq!(buffer, "UPDATE t SET a=a+-3 WHERE KEY=0x6b");
    }
}
