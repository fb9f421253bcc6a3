//! The text of the statements that create the keyspace and the tables, and of the four operations.
//!
//! Sources: Cassandra's `SettingsSchema.java`, `CqlInserter.java`, `CqlReader.java`, `CqlCounterAdder.java`,
//! `CqlCounterGetter.java`, `SettingsCommand.java`.

use crate::compat::Compat;
use crate::cql::quote;
use crate::settings::{Settings, StressCommand};

/// The table that `write` and `read` use.
pub const STANDARD_TABLE: &str = "standard1";
/// The table that `counter_write` and `counter_read` use.
pub const COUNTER_TABLE: &str = "counter1";

/// Statements that create the keyspace and the tables, in the tool's order. Each is sent as a simple statement at
/// `LOCAL_ONE`.
#[must_use]
pub fn schema_statements(settings: &Settings) -> Vec<String> {
    vec![
        create_keyspace(settings),
        use_keyspace(&settings.schema.keyspace),
        create_table(settings, STANDARD_TABLE, "blob"),
        create_table(settings, COUNTER_TABLE, "counter"),
    ]
}

/// The `USE` statement that the tool sends on its connection.
#[must_use]
pub fn use_keyspace(keyspace: &str) -> String {
    format!("USE \"{keyspace}\"")
}

/// The statement that creates the keyspace.
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

/// The statement that creates a table. Without `compression=`, the data is not compressed, whatever the server's
/// default.
///
/// The tool's statement for `counter1` has a double comma, which Cassandra accepts but `ScyllaDB` refuses. Here, it
/// has a single comma.
#[must_use]
pub fn create_table(settings: &Settings, table: &str, column_type: &str) -> String {
    let Settings { compat, schema, columns, .. } = settings;
    let name = if *compat == Compat::V5 { format!("{}.{table}", quote(&schema.keyspace)) } else { table.to_owned() };
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

/// The statement for a server of version 4.0 or later, which refuses `COMPACT STORAGE` for new tables.
#[must_use]
pub fn drop_compact_storage(statement: &str) -> String {
    statement.replace("COMPACT STORAGE AND ", "")
}

/// Statements that empty the tables. The tool also names `counter3`, which it never creates, and therefore fails
/// (CASSANDRA-12695).
#[must_use]
pub fn truncate_statements(settings: &Settings) -> Vec<String> {
    let mut tables: Vec<&str> = settings.operations().iter().map(|(command, _)| table_of(*command)).collect();
    tables.sort_unstable_by(|a, b| b.cmp(a));
    tables.dedup();
    tables.iter().map(|table| format!("TRUNCATE {}.{table}", quote(&settings.schema.keyspace))).collect()
}

/// The table of an operation.
#[must_use]
pub const fn table_of(command: StressCommand) -> &'static str {
    match command {
        StressCommand::CounterWrite | StressCommand::CounterRead => COUNTER_TABLE,
        StressCommand::Read | StressCommand::Write | StressCommand::Mixed | StressCommand::User => STANDARD_TABLE,
    }
}

/// The statement of an operation, as in the tool. The values are bound in the order of the columns, followed by the
/// key. Counters are bound as 8-byte integers.
#[must_use]
pub fn operation_statement(settings: &Settings, command: StressCommand) -> String {
    let columns = &settings.columns;
    let table = match command {
        StressCommand::CounterWrite => COUNTER_TABLE.to_owned(),
        _ => format!("\"{}\"", table_of(command)),
    };
    let timestamp = columns.timestamp.as_ref();
    let timestamp = timestamp.map_or_else(String::new, |timestamp| format!(" USING TIMESTAMP {timestamp}"));
    statement_text(command, &table, &columns.names, columns.slice, &timestamp)
}

/// The text of a statement on a table. With `slice`, reads select `*`.
pub(crate) fn statement_text(
    command: StressCommand,
    table: &str,
    columns: &[String],
    slice: bool,
    timestamp: &str,
) -> String {
    let list = |text: fn(&str) -> String| columns.iter().map(|name| text(name)).collect::<Vec<_>>().join(",");
    match command {
        StressCommand::Write | StressCommand::Mixed | StressCommand::User => {
            format!("UPDATE {table}{timestamp} SET {} WHERE KEY=?", list(|name| format!("\"{name}\" = ?")))
        }
        StressCommand::Read if !slice => {
            format!("SELECT {} FROM {table} WHERE KEY=?", list(|name| format!("\"{name}\"")))
        }
        StressCommand::Read | StressCommand::CounterRead => format!("SELECT * FROM {table} WHERE KEY=?"),
        StressCommand::CounterWrite => {
            format!("UPDATE {table} SET {} WHERE KEY=?", list(|name| format!("\"{name}\"=\"{name}\"+?")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::parse_settings as settings;

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
        let text = |line: &str, command| operation_statement(&settings(line), command);
        let two = "write n=1 -col n=fixed(2)";
        assert_eq!(text(two, StressCommand::Write), "UPDATE \"standard1\" SET \"C0\" = ?,\"C1\" = ? WHERE KEY=?");
        assert_eq!(text(two, StressCommand::Read), "SELECT \"C0\",\"C1\" FROM \"standard1\" WHERE KEY=?");
        assert_eq!(
            text(two, StressCommand::CounterWrite),
            "UPDATE counter1 SET \"C0\"=\"C0\"+?,\"C1\"=\"C1\"+? WHERE KEY=?"
        );
        assert_eq!(text(two, StressCommand::CounterRead), "SELECT * FROM \"counter1\" WHERE KEY=?");
        assert_eq!(text("write n=1 -col slice", StressCommand::Read), "SELECT * FROM \"standard1\" WHERE KEY=?");
        assert_eq!(
            text("write n=1 -col n=fixed(1) timestamp=123", StressCommand::Write),
            "UPDATE \"standard1\" USING TIMESTAMP 123 SET \"C0\" = ? WHERE KEY=?"
        );
    }

    #[test]
    fn keyspaces_keep_their_case() {
        let settings = settings("write n=1 -compat 5 -schema keyspace=Shop");
        assert!(create_table(&settings, STANDARD_TABLE, "blob").contains("EXISTS \"Shop\".standard1"));
        assert_eq!(truncate_statements(&settings), ["TRUNCATE \"Shop\".standard1"]);
    }

    #[test]
    fn truncation_names_existing_tables_only() {
        assert_eq!(truncate_statements(&settings("write n=1")), ["TRUNCATE keyspace1.standard1"]);
        assert_eq!(
            truncate_statements(&settings("mixed ratio(read=1,write=1,counter_read=1) n=1")),
            ["TRUNCATE keyspace1.standard1", "TRUNCATE keyspace1.counter1"]
        );
    }
}
