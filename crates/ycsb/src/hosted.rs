//! Special cases for stores in a JVM, which accept YCSB's `-db`, `-cp` and `-jvm-args`.

use std::collections::BTreeMap;

use super::args::{Args, Command};
use super::bindings;
use loadstone_wire::spec::Durability;

/// Whether a store runs in a JVM.
pub fn is_hosted(store: &str) -> bool {
    matches!(store, "hbase" | "jvm")
}

/// Adds the command-line settings that are not properties.
pub fn add_properties(all: &mut BTreeMap<String, String>, args: &Args, store: &str) {
    let mut default = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            all.entry(name.to_owned()).or_insert(value);
        }
    };
    default("jvm.classpath", args.class_path.clone());
    default("jvm.args", args.jvm_options.clone());
    if store == "jvm" {
        // This is set as in YCSB's client, because some bindings read it.
        default("dotransactions", Some((args.command != Command::Load).to_string()));
        // bin/ycsb puts the class that belongs to the name before the user's -db, so that the user's class overrides
        // it, and both override a file.
        let class = args.class().map(str::to_owned).or_else(|| bindings::class_of(&args.store));
        let class = class.or_else(|| all.get("db").cloned());
        if let Some(class) = class {
            all.entry("jvm.class".to_owned()).or_insert(class);
        }
    }
}

/// Whether a store receives a property that the front end interprets. A binding receives all properties.
pub fn is_taken(name: &str, store: &str) -> bool {
    match store {
        "jvm" => true,
        "hbase" => name == "durability",
        _ => false,
    }
}

/// Loadstone's durability level for one of HBase's levels.
pub fn durability(text: &str, store: &str) -> Option<Durability> {
    match text {
        _ if store != "hbase" => None,
        "SKIP_WAL" | "ASYNC_WAL" => Some(Durability::None),
        "SYNC_WAL" | "USE_DEFAULT" => Some(Durability::Os),
        "FSYNC_WAL" => Some(Durability::Device),
        _ => None,
    }
}
