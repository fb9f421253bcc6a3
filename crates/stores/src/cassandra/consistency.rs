//! Consistency levels.

use crate::error::EngineError;

/// The number of replicas for which an operation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consistency {
    /// The level's name in CQL.
    pub name: &'static str,
    /// The level's code in the protocol.
    pub code: u16,
}

/// One replica, which is the default in YCSB 0.17.0.
pub const ONE: Consistency = Consistency { name: "ONE", code: 0x0001 };

const ALL: [Consistency; 11] = [
    Consistency { name: "ANY", code: 0x0000 },
    ONE,
    Consistency { name: "TWO", code: 0x0002 },
    Consistency { name: "THREE", code: 0x0003 },
    Consistency { name: "QUORUM", code: 0x0004 },
    Consistency { name: "ALL", code: 0x0005 },
    Consistency { name: "LOCAL_QUORUM", code: 0x0006 },
    Consistency { name: "EACH_QUORUM", code: 0x0007 },
    Consistency { name: "SERIAL", code: 0x0008 },
    Consistency { name: "LOCAL_SERIAL", code: 0x0009 },
    Consistency { name: "LOCAL_ONE", code: 0x000A },
];

impl Consistency {
    /// The level set by a property; ONE if the property is not set.
    pub fn from_property(property: &str, text: Option<&str>, write: bool) -> Result<Self, EngineError> {
        let Some(text) = text else { return Ok(ONE) };
        // Cassandra refuses every read at ANY and every plain write at SERIAL.
        let possible = |level: &&Self| !(if write { level.name.ends_with("SERIAL") } else { level.name == "ANY" });
        let levels = ALL.iter().filter(possible);
        levels.clone().find(|level| level.name.eq_ignore_ascii_case(text)).copied().ok_or_else(|| {
            let names: Vec<&str> = levels.map(|level| level.name).collect();
            EngineError::usage(format!("{property} must be a consistency level, got \"{text}\""))
                .hint(format!("the levels are {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_their_kind() {
        assert_eq!(Consistency::from_property("p", None, true), Ok(ONE));
        assert_eq!(Consistency::from_property("p", Some("local_quorum"), false).unwrap().code, 6);
        assert!(Consistency::from_property("p", Some("ANY"), true).is_ok());
        for (text, write) in [("ANY", false), ("SERIAL", true), ("MOST", true)] {
            let error = Consistency::from_property("p", Some(text), write).unwrap_err();
            assert!(error.is_usage() && error.message.contains(text) && error.hint.is_some());
        }
    }
}
