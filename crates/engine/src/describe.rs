//! `loadstone-engine describe` prints the capabilities of this engine as JSON, from the tables that the engine itself
//! uses.
//!
//! The lab, the schemas and the reference pages read this output, so nothing about a store is listed twice.

use loadstone_stores::{About, Role};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;

use loadstone_registry::{FILE_STORES, STORES};
use loadstone_wire::error::EngineError;
use loadstone_wire::output::print_out;
use loadstone_wire::spec::WorkSpec;
use loadstone_ycsb::known_properties::{KNOWN, Source};

/// The help text.
pub const USAGE: &str = "\
usage: loadstone describe

Prints as JSON what this program can do: stores with their properties, YCSB's properties with their meanings and
defaults, workload kinds and front ends. docs/reference/schemas/describe.json defines the format.
";

/// The capabilities of an engine.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Description {
    /// The version of this description: 1.
    pub describe: u32,
    /// The version of the engine.
    pub engine: String,
    /// The available stores.
    pub stores: Vec<StoreDescription>,
    /// The YCSB front end's properties that apply to every store.
    pub properties: Vec<PropertyDescription>,
    /// The workload kinds that a TrialSpec can request.
    pub work: Vec<String>,
    /// The front ends: command lines of older tools.
    pub front_ends: Vec<String>,
}

/// A store.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct StoreDescription {
    /// The store's name.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// The type of its contents: `records` or `files`.
    pub holds: String,
    /// Whether the store's operations use a network, unless a property changes this.
    pub networked: bool,
    /// The store's properties; a name that ends in `*` represents all names with that prefix.
    pub properties: Vec<String>,
    /// Properties that are passwords, which are never printed or stored.
    pub secrets: Vec<String>,
    /// Properties that name the directories of the store's files; empty if the store has no files.
    pub directories: Vec<String>,
    /// The property that names the hosts of the store's servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<String>,
    /// The property that sets the port of the store's servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
}

/// A property of the YCSB front end.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PropertyDescription {
    /// The property's name.
    pub name: String,
    /// The property's default value, as text.
    pub default: String,
    /// The property's meaning.
    pub meaning: String,
    /// `ycsb` (YCSB 0.17.0, same meaning), `idle` (a YCSB property without effect here) or `extension`.
    pub source: String,
}

impl Description {
    /// The description of this engine.
    pub fn collect() -> Self {
        Self {
            describe: 1,
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            stores: STORES
                .iter()
                .map(|target| describe_store(&target.store.about, "records"))
                .chain(FILE_STORES.iter().map(|about| describe_store(about, "files")))
                .collect(),
            properties: KNOWN
                .iter()
                .map(|known| PropertyDescription {
                    name: known.name.to_owned(),
                    default: known.default.to_owned(),
                    meaning: known.meaning.to_owned(),
                    source: match known.source {
                        Source::Ycsb => "ycsb",
                        Source::YcsbIdle => "idle",
                        Source::Extension => "extension",
                    }
                    .to_owned(),
                })
                .collect(),
            work: work_names(),
            front_ends: ["ycsb", "cassandra-stress", "dfsio", "teragen", "terasort", "teravalidate"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

/// The names of the workload kinds in a spec.
fn work_names() -> Vec<String> {
    let schema = schema_for!(WorkSpec);
    let kinds = schema.get("oneOf").and_then(serde_json::Value::as_array).into_iter().flatten();
    kinds.filter_map(|kind| kind["properties"]["type"]["const"].as_str().map(str::to_owned)).collect()
}

fn describe_store(about: &About, holds: &str) -> StoreDescription {
    let with_role = |role: Role| {
        let properties = about.properties.iter().filter(move |property| property.role == role);
        properties.map(|property| property.name.to_owned())
    };
    StoreDescription {
        name: about.name.to_owned(),
        about: about.line.to_owned(),
        holds: holds.to_owned(),
        networked: about.networked,
        properties: about.properties.iter().map(|property| property.name.to_owned()).collect(),
        secrets: with_role(Role::Secret).collect(),
        directories: with_role(Role::Directory).collect(),
        hosts: with_role(Role::Hosts).next(),
        port: with_role(Role::Port).next(),
    }
}

/// Prints the description. Returns the exit code.
pub fn main(arguments: &[String]) -> Result<u8, EngineError> {
    if let Some(argument) = arguments.first() {
        return Err(EngineError::usage(format!("describe takes no arguments, got \"{argument}\""))
            .hint("use loadstone-engine describe without arguments"));
    }
    let json = serde_json::to_string_pretty(&Description::collect())
        .map_err(|error| EngineError::failed(format!("cannot print the description: {error}")))?;
    print_out(&format!("{json}\n"));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn description_lists_every_workload_kind_of_a_spec() {
        let schema = serde_json::to_value(schema_for!(WorkSpec)).unwrap();
        let kinds = schema["oneOf"].as_array().unwrap().iter().map(|kind| &kind["properties"]["type"]["const"]);
        assert_eq!(kinds.collect::<Vec<_>>(), Description::collect().work.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_password_is_a_secret() {
        for store in Description::collect().stores {
            for name in store.properties.iter().filter(|name| name.contains("passw")) {
                assert!(store.secrets.contains(name), "{name}");
            }
        }
    }
}
