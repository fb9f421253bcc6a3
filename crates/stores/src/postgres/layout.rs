//! The two layouts of YCSB's bindings, and their SQL as those bindings write it.

use loadstone_load::Projection;
use loadstone_load::java::hash_map_order;
use tokio_postgres::types::Type;

use super::values::takes_text;

/// The column of the keys.
pub const KEY: &str = "YCSB_KEY";
/// The column of the other layout's objects.
pub const VALUE: &str = "YCSB_VALUE";

/// How a record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The binding `jdbc`: a column for each field.
    Columns,
    /// The binding `postgrenosql`: one JSON object.
    Json,
}

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Verb {
    /// A record by its key.
    Read,
    /// Records from a key on.
    Scan,
    /// A new record.
    Insert,
    /// Fields of a record.
    Update,
    /// A record's end.
    Delete,
}

impl Layout {
    /// The statement that makes the table.
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

    /// Which fields' names a read or a scan depends on. The binding `jdbc` always reads the whole row.
    pub fn project(self, projection: Projection<'_>) -> Projection<'_> {
        match self {
            Self::Columns => Projection::All,
            Self::Json => projection,
        }
    }

    /// A statement on the fields of these names; none: on all.
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
            // The binding's own selects the keys only, and hands out nothing.
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

    /// The first parameter of a statement that does not take a text as it is.
    pub fn find_non_text(self, verb: Verb, params: &[Type]) -> Option<&Type> {
        // The last one of a scan is a count.
        let texts = if verb == Verb::Scan { &params[..1] } else { params };
        texts.iter().find(|&ty| !(takes_text(ty) || self == Self::Json && *ty == Type::JSONB))
    }

    /// The statements that YCSB's workloads need on a table with these columns next to the key.
    pub fn expected(self, columns: &[String]) -> Vec<(Verb, Vec<&str>)> {
        let mut all = vec![(Verb::Read, vec![]), (Verb::Scan, vec![]), (Verb::Delete, vec![])];
        match self {
            Self::Json => all.extend([(Verb::Insert, vec![]), (Verb::Update, vec![])]),
            Self::Columns => {
                // Records come with their fields in the order of Java's HashMap, as a binding gets them.
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

/// A name as YCSB writes it, in quotes only if SQL would take it for something else.
fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `?` for `$n`, these are what YCSB 0.17.0's bindings build.
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
