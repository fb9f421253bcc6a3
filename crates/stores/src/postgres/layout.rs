//! The data layouts of YCSB's two bindings, and the SQL that these bindings use.

use loadstone_load::Projection;
use loadstone_load::java::hash_map_order;
use tokio_postgres::types::Type;

use super::values::takes_text;

/// The column with the keys.
pub const KEY: &str = "YCSB_KEY";
/// The column with the JSON objects, in the layout of `postgrenosql`.
pub const VALUE: &str = "YCSB_VALUE";

/// How records are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As in the binding `jdbc`: one column for each field.
    Columns,
    /// As in the binding `postgrenosql`: one JSON object for each record.
    Json,
}

/// The operation of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// Reads a record by its key.
    Read,
    /// Reads records, starting at a key.
    Scan,
    /// Writes a new record.
    Insert,
    /// Changes fields of a record.
    Update,
    /// Deletes a record.
    Delete,
}

impl Layout {
    /// The statement that creates the table.
    pub fn ddl(self, table: &str) -> String {
        match self {
            Self::Columns => {
                let fields: String = (0..10).map(|n| format!(", FIELD{n} TEXT")).collect();
                format!("CREATE TABLE {table} ({KEY} VARCHAR(255) PRIMARY KEY{fields})")
            }
            Self::Json => {
                format!("CREATE TABLE {table} ({KEY} VARCHAR(255) PRIMARY KEY NOT NULL, {VALUE} JSONB NOT NULL)")
            }
        }
    }

    /// The fields on which the text of a read or scan depends. The binding `jdbc` always reads the whole row.
    pub fn project(self, projection: Projection<'_>) -> Projection<'_> {
        match self {
            Self::Columns => Projection::All,
            Self::Json => projection,
        }
    }

    /// The text of a statement on the fields with these names; without names, on all fields.
    pub fn sql(self, verb: Verb, table: &str, names: &[&str]) -> String {
        match (self, verb) {
            (_, Verb::Delete) => format!("DELETE FROM {table} WHERE {KEY} = $1"),
            (Self::Columns, Verb::Read) => format!("SELECT * FROM {table} WHERE {KEY} = $1"),
            (Self::Columns, Verb::Scan) => {
                format!("SELECT * FROM {table} WHERE {KEY} >= $1 ORDER BY {KEY} LIMIT $2")
            }
            (Self::Columns, Verb::Insert) => {
                let columns: String = names.iter().map(|name| format!(",{}", identifier(name))).collect();
                let values: String = (0..names.len()).map(|n| format!(",${}", n + 2)).collect();
                format!("INSERT INTO {table} ({KEY}{columns}) VALUES($1{values})")
            }
            (Self::Columns, Verb::Update) => {
                let sets: Vec<String> =
                    names.iter().enumerate().map(|(n, name)| format!("{}=${}", identifier(name), n + 1)).collect();
                format!("UPDATE {table} SET {} WHERE {KEY} = ${}", sets.join(", "), names.len() + 1)
            }
            (Self::Json, Verb::Insert) => format!("INSERT INTO {table} ({KEY},{VALUE}) VALUES($1,$2)"),
            (Self::Json, Verb::Update) => format!("UPDATE {table} SET {VALUE} = {VALUE} || $1  WHERE {KEY} = $2"),
            (Self::Json, Verb::Read) if names.is_empty() => {
                format!("SELECT {KEY} AS {KEY}, (jsonb_each_text({VALUE})).* FROM {table} WHERE {KEY} = $1")
            }
            (Self::Json, Verb::Read) => {
                format!("SELECT {KEY} AS {KEY}{} FROM {table} WHERE {KEY} = $1", members(names))
            }
            // The statement of the binding itself selects only the keys, so it returns no fields.
            (Self::Json, Verb::Scan) if names.is_empty() => format!(
                "SELECT {KEY}, member.key, member.value FROM (SELECT {KEY}, {VALUE} FROM {table} WHERE {KEY} >= $1 \
                 ORDER BY {KEY} LIMIT $2) AS found, LATERAL jsonb_each_text({VALUE}) AS member ORDER BY {KEY}"
            ),
            (Self::Json, Verb::Scan) => {
                format!(
                    "SELECT {KEY} AS {KEY}{} FROM {table} WHERE {KEY} >= $1 ORDER BY {KEY} LIMIT $2",
                    members(names)
                )
            }
        }
    }

    /// The type of the first parameter that does not accept plain text.
    pub fn find_non_text(self, verb: Verb, params: &[Type]) -> Option<&Type> {
        // The last parameter of a scan is a count.
        let texts = if verb == Verb::Scan { &params[..1] } else { params };
        texts.iter().find(|&ty| !(takes_text(ty) || self == Self::Json && *ty == Type::JSONB))
    }

    /// The statements that YCSB's workloads need, for a table with these columns in addition to the key.
    pub fn expected(self, columns: &[String]) -> Vec<(Verb, Vec<&str>)> {
        let mut all = vec![(Verb::Read, vec![]), (Verb::Scan, vec![]), (Verb::Delete, vec![])];
        match self {
            Self::Json => all.extend([(Verb::Insert, vec![]), (Verb::Update, vec![])]),
            Self::Columns => {
                // A binding receives the fields of a record in the order of Java's HashMap, so records here have the
                // same order.
                let order: Vec<&str> = hash_map_order(columns).into_iter().map(|at| columns[at].as_str()).collect();
                all.extend(order.iter().map(|&name| (Verb::Update, vec![name])));
                all.extend([(Verb::Insert, order.clone()), (Verb::Update, order)]);
            }
        }
        all
    }
}

fn members(names: &[&str]) -> String {
    names.iter().map(|name| format!(", {VALUE}->>'{}' AS {}", name.replace('\'', "''"), identifier(name))).collect()
}

/// Writes a name as YCSB does: in quotes only if SQL would otherwise misinterpret it.
fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `?` in place of `$n`, these are the statements that YCSB 0.17.0's bindings generate.
    #[test]
    fn the_sql_is_the_bindings() {
        let columns = |verb, names: &[&str]| Layout::Columns.sql(verb, "usertable", names);
        assert_eq!(columns(Verb::Read, &[]), "SELECT * FROM usertable WHERE YCSB_KEY = $1");
        assert_eq!(columns(Verb::Scan, &[]), "SELECT * FROM usertable WHERE YCSB_KEY >= $1 ORDER BY YCSB_KEY LIMIT $2");
        assert_eq!(
            columns(Verb::Insert, &["field1", "field0"]),
            "INSERT INTO usertable (YCSB_KEY,field1,field0) VALUES($1,$2,$3)"
        );
        assert_eq!(
            columns(Verb::Update, &["field1", "field0"]),
            "UPDATE usertable SET field1=$1, field0=$2 WHERE YCSB_KEY = $3"
        );
        assert_eq!(columns(Verb::Delete, &[]), "DELETE FROM usertable WHERE YCSB_KEY = $1");
        let json = |verb, names: &[&str]| Layout::Json.sql(verb, "usertable", names);
        assert_eq!(
            json(Verb::Read, &[]),
            "SELECT YCSB_KEY AS YCSB_KEY, (jsonb_each_text(YCSB_VALUE)).* FROM usertable WHERE YCSB_KEY = $1"
        );
        assert_eq!(
            json(Verb::Read, &["field0", "field1"]),
            "SELECT YCSB_KEY AS YCSB_KEY, YCSB_VALUE->>'field0' AS field0, YCSB_VALUE->>'field1' AS field1 \
             FROM usertable WHERE YCSB_KEY = $1"
        );
        assert_eq!(json(Verb::Insert, &[]), "INSERT INTO usertable (YCSB_KEY,YCSB_VALUE) VALUES($1,$2)");
        assert_eq!(json(Verb::Update, &[]), "UPDATE usertable SET YCSB_VALUE = YCSB_VALUE || $1  WHERE YCSB_KEY = $2");
    }

    #[test]
    fn what_takes_no_text_is_found() {
        let (text, number) = (Type::TEXT, Type::INT4);
        let mismatch = |layout: Layout, verb, params: &[Type]| layout.find_non_text(verb, params).cloned();
        assert_eq!(mismatch(Layout::Columns, Verb::Insert, &[Type::VARCHAR, text.clone()]), None);
        assert_eq!(mismatch(Layout::Columns, Verb::Update, &[text.clone(), number.clone()]), Some(number.clone()));
        assert_eq!(mismatch(Layout::Columns, Verb::Scan, &[text.clone(), Type::INT8]), None);
        assert_eq!(mismatch(Layout::Columns, Verb::Scan, &[number.clone(), Type::INT8]), Some(number));
        assert_eq!(mismatch(Layout::Json, Verb::Update, &[Type::JSONB, text]), None);
        assert_eq!(mismatch(Layout::Columns, Verb::Update, &[Type::JSONB]), Some(Type::JSONB));
    }

    #[test]
    fn odd_names_are_quoted() {
        assert_eq!(identifier("field0"), "field0");
        assert_eq!(identifier("0'\""), "\"0'\"\"\"");
        assert!(Layout::Json.sql(Verb::Read, "t", &["a'b"]).contains("->>'a''b' AS \"a'b\""));
    }

    #[test]
    fn what_a_workload_needs_is_expected() {
        let names: Vec<String> = (0..10).map(|n| format!("field{n}")).collect();
        let expected = Layout::Columns.expected(&names);
        assert_eq!(expected.len(), 3 + 10 + 2);
        let (_, insert) = expected.iter().find(|(verb, _)| *verb == Verb::Insert).unwrap();
        assert_eq!((insert.len(), insert[0]), (10, "field1"), "Java's order");
        assert_eq!(Layout::Json.expected(&[]).len(), 5);
    }
}
