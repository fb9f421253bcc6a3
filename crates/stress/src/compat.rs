//! The generations of cassandra-stress.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

loadstone_load::named_variants! {
    /// The generation whose data, table options and output are reproduced (`-compat`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    pub enum Compat {
        /// 3.0 to 3.10: no settings block, and results in lower case and without units.
        #[serde(rename = "3.0")]
        V3_0 = "3.0",
        /// 3.11.
        #[serde(rename = "3.11")]
        V3_11 = "3.11",
        /// 4.0 and 4.1.
        #[default]
        #[serde(rename = "4")]
        V4 = "4",
        /// 5.0.
        #[serde(rename = "5")]
        V5 = "5",
    }
}

impl Compat {
    /// Whether seeds are multiplied (CASSANDRA-12744, since 4.0).
    #[must_use]
    pub fn multiplies_seeds(self) -> bool {
        self >= Self::V4
    }

    /// Whether tables are created `WITH COMPACT STORAGE`, which servers since 4.0 refuse.
    #[must_use]
    pub fn uses_compact_storage(self) -> bool {
        self <= Self::V3_11
    }
}

impl FromStr for Compat {
    type Err = String;

    /// Parses `3.0`, `3.11`, `4` or `5`, or a release of one of these generations (`3.0.6`, `4.1`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('.');
        let minor =
            |parts: &mut std::str::Split<char>| parts.next().and_then(|minor| minor.parse().ok()).unwrap_or(0_u32);
        match parts.next() {
            Some("3") if minor(&mut parts) < 11 => Ok(Self::V3_0),
            Some("3") => Ok(Self::V3_11),
            Some("4") => Ok(Self::V4),
            Some("5") => Ok(Self::V5),
            _ => Err(format!("-compat must be 3.0, 3.11, 4 or 5, got \"{text}\"")),
        }
    }
}
