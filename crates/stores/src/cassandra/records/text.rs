//! The statements of YCSB 0.17.0's binding. Each set of columns that is read or written has its own statement.

use super::super::settings::{KEY, is_plain};

/// The operation of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads a record.
    Read,
    /// Reads records, starting at a token.
    Scan,
    /// Writes a record.
    Insert,
    /// Writes some columns of a record.
    Update,
    /// Removes a record.
    Delete,
}

/// Returns the text of a statement.
pub fn text<'a>(verb: Verb, table: &str, columns: impl Iterator<Item = &'a [u8]>) -> String {
    let names: Vec<String> = columns.map(quote).collect();
    let list = names.join(", ");
    match verb {
        Verb::Read if names.is_empty() => format!("SELECT * FROM {table} WHERE {KEY} = ? LIMIT 1"),
        Verb::Read => format!("SELECT {list} FROM {table} WHERE {KEY} = ? LIMIT 1"),
        Verb::Scan if names.is_empty() => format!("SELECT * FROM {table} WHERE token({KEY}) >= token(?) LIMIT ?"),
        // YCSB's binding omits the key here, but a scan must return the key of each record.
        Verb::Scan => format!("SELECT {KEY}, {list} FROM {table} WHERE token({KEY}) >= token(?) LIMIT ?"),
        Verb::Insert => {
            let marks = ", ?".repeat(names.len());
            let more: String = names.iter().map(|name| format!(", {name}")).collect();
            format!("INSERT INTO {table} ({KEY}{more}) VALUES (?{marks})")
        }
        Verb::Update => {
            let set: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
            format!("UPDATE {table} SET {} WHERE {KEY} = ?", set.join(", "))
        }
        Verb::Delete => format!("DELETE FROM {table} WHERE {KEY} = ?"),
    }
}

/// The name of a column, quoted for CQL if necessary.
fn quote(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if is_plain(&name) { name.into_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_those_of_ycsb() {
        let say = |verb, columns: &[&str]| text(verb, "ycsb.usertable", columns.iter().map(|c| c.as_bytes()));
        assert_eq!(say(Verb::Read, &[]), "SELECT * FROM ycsb.usertable WHERE y_id = ? LIMIT 1");
        assert_eq!(say(Verb::Read, &["field1"]), "SELECT field1 FROM ycsb.usertable WHERE y_id = ? LIMIT 1");
        assert_eq!(say(Verb::Scan, &[]), "SELECT * FROM ycsb.usertable WHERE token(y_id) >= token(?) LIMIT ?");
        assert_eq!(say(Verb::Insert, &["a", "b"]), "INSERT INTO ycsb.usertable (y_id, a, b) VALUES (?, ?, ?)");
        assert_eq!(say(Verb::Update, &["a", "b"]), "UPDATE ycsb.usertable SET a = ?, b = ? WHERE y_id = ?");
        assert_eq!(say(Verb::Delete, &[]), "DELETE FROM ycsb.usertable WHERE y_id = ?");
        assert_eq!(quote(b"a \"b\""), "\"a \"\"b\"\"\"");
    }
}
