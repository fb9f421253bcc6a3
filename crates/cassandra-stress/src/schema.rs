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
    let mut done = execute_script(options, &statements);
    // Cassandra 4.0 and later refuse this option for new tables.
    if done.as_ref().is_err_and(|error| refuses(error, "COMPACT STORAGE")) {
        err("note: the server refuses COMPACT STORAGE; the tables are created without it\n");
        statements = statements.iter().map(|text| drop_compact_storage(text)).collect();
        done = execute_script(options, &statements);
    }
    let cluster = done?;
    cluster.notes.iter().for_each(|note| err(&format!("note: {note}\n")));
    Ok(cluster)
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
