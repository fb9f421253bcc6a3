//! The keyspace and the tables that `write` and `counter_write` create.

use loadstone_session::{EngineError, Options};
use loadstone_stores::cassandra::{Description, execute_script};
use loadstone_stress::profile::Profile;
use loadstone_stress::settings::Settings;
use loadstone_stress::statements::{drop_compact_storage, schema_statements};
use loadstone_wire::output::err;

/// Creates the keyspace and the tables if they do not exist.
pub fn create(settings: &Settings, profiles: &[Profile], options: &Options) -> Result<Description, EngineError> {
    let mut statements = if profiles.is_empty() { schema_statements(settings) } else { profile_definitions(profiles) };
    // A server may refuse both parts.
    let (mut has_storage, mut has_strategy) = (true, true);
    loop {
        match execute_script(options, &statements) {
            // Cassandra 4.0 and later refuse this option for new tables.
            Err(error) if has_storage && refuses(&error, "COMPACT STORAGE") => {
                has_storage = false;
                err("note: the server refuses COMPACT STORAGE; the tables are created without it\n");
                statements = statements.iter().map(|text| drop_compact_storage(text)).collect();
            }
            // ScyllaDB with tablets refuses this strategy.
            Err(error) if has_strategy && refuses(&error, "SimpleStrategy") => {
                has_strategy = false;
                err("note: the server refuses SimpleStrategy; the keyspace is created with NetworkTopologyStrategy\n");
                let text = |text: &String| {
                    text.replace("org.apache.cassandra.locator.", "")
                        .replace("SimpleStrategy", "NetworkTopologyStrategy")
                };
                statements = statements.iter().map(text).collect();
            }
            done => return done,
        }
    }
}

/// The statements that define the tables of the profiles, in order.
pub fn profile_definitions(profiles: &[Profile]) -> Vec<String> {
    profiles.iter().flat_map(Profile::definitions).collect()
}

/// Whether the server states this part of the definition as the reason for its refusal.
fn refuses(error: &EngineError, part: &str) -> bool {
    error.message.contains(part)
        && ["Invalid: ", "ConfigError: ", "SyntaxError: "].iter().any(|name| error.message.starts_with(name))
}
