//! The settings with which a store is opened.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::EngineError;

loadstone_load::named_variants! {
    /// The event that an acknowledged write survives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Durability {
        /// Nothing is guaranteed: a crash of the process may lose the write.
        None = "none",
        /// The write survives a crash of the process, because the operating system has the data.
        #[default]
        Os = "os",
        /// The write survives a crash of the machine, because the device has the data.
        Device = "device",
    }
}

impl Durability {
    /// Parses `none`, `os` or `device`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == text)
    }
}

/// The settings with which a store is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The store's own properties (`rocksdb.dir` …).
    pub properties: BTreeMap<String, String>,
    /// The event that writes must survive. An embedded store without this level uses the next stronger one and reports
    /// it.
    pub durability: Durability,
    /// The table (or column family, database, keyspace) for all operations.
    pub table: String,
    /// Whether a missing database may be created. A load creates it; a run requires it.
    pub create: bool,
    /// Number of sessions.
    pub clients: usize,
}

impl Options {
    /// The value of a property that is set and not blank.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// The directory named by a property, which must be set.
    pub fn directory(&self, name: &str) -> Result<PathBuf, EngineError> {
        self.get(name)
            .map(PathBuf::from)
            .ok_or_else(|| EngineError::usage(format!("{name} is not set")).hint(format!("add -p {name}=DIRECTORY")))
    }

    /// A size in bytes, with an optional suffix K, M, G or T (powers of 1,024).
    pub fn bytes(&self, name: &str, default: u64) -> Result<u64, EngineError> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let (digits, shift) = match text.as_bytes()[text.len() - 1].to_ascii_uppercase() {
            b'K' => (&text[..text.len() - 1], 10),
            b'M' => (&text[..text.len() - 1], 20),
            b'G' => (&text[..text.len() - 1], 30),
            b'T' => (&text[..text.len() - 1], 40),
            _ => (text, 0),
        };
        digits.parse::<u64>().ok().and_then(|n| n.checked_mul(1 << shift)).ok_or_else(|| {
            EngineError::usage(format!("{name} must be a number of bytes, got \"{text}\""))
                .hint("write 1073741824 or 1G")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_with_a_suffix() {
        let bytes = |text: &str| {
            let properties = BTreeMap::from([("size".to_owned(), text.to_owned())]);
            Options { properties, ..Options::default() }.bytes("size", 7)
        };
        assert_eq!(bytes("64"), Ok(64));
        assert_eq!(bytes("2k"), Ok(2_048));
        assert_eq!(bytes("1G"), Ok(1 << 30));
        assert_eq!(bytes(" "), Ok(7));
        for bad in ["1.5G", "many", "-1", "99999999T"] {
            assert!(bytes(bad).unwrap_err().is_usage(), "{bad}");
        }
    }
}
