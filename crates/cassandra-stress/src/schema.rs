//! The keyspaces and the tables that `write`, `counter_write` and the profiles of `user` create.

use loadstone_session::{EngineError, Options};
use loadstone_stores::cassandra::{Description, execute_numbered};
use loadstone_stress::profile::Profile;
use loadstone_stress::settings::Settings;
use loadstone_stress::statements::{drop_compact_storage, schema_statements};
use loadstone_wire::output::print_err;

use super::user;

/// Creates the keyspace and the tables if they do not exist.
pub fn create_schema(settings: &Settings, profiles: &[Profile], options: &Options) -> Result<Description, EngineError> {
    let (mut statements, places): (Vec<String>, Vec<_>) = if profiles.is_empty() {
        (schema_statements(settings), Vec::new())
    } else {
        profile_definitions(profiles).into_iter().map(|(at, text, line)| (text, (at, line))).unzip()
    };
    let mut done = execute_numbered(options, &statements);
    // Cassandra 4.0 and later refuse `COMPACT STORAGE` for new tables.
    if done.as_ref().is_err_and(|(_, error)| is_refusal(error, "COMPACT STORAGE")) {
        print_err("note: the server refuses COMPACT STORAGE; the tables are created without it\n");
        statements = statements.iter().map(|text| drop_compact_storage(text)).collect();
        done = execute_numbered(options, &statements);
    }
    let cluster = done.map_err(|(at, error)| match at.and_then(|at| places.get(at)) {
        Some((profile, line)) => user::add_place(settings, *profile, *line, error),
        None => error,
    })?;
    cluster.notes.iter().for_each(|note| print_err(&format!("note: {note}\n")));
    Ok(cluster)
}

/// The statements that define the profiles' tables, in order, each with the profile's index and the statement's line.
pub fn profile_definitions(profiles: &[Profile]) -> Vec<(usize, String, usize)> {
    let of_profile = |(at, profile): (usize, &Profile)| {
        profile.definitions_with_lines().into_iter().map(move |(text, line)| (at, text, line))
    };
    profiles.iter().enumerate().flat_map(of_profile).collect()
}

/// Whether the server names this part of the definition as the reason for refusing it.
fn is_refusal(error: &EngineError, part: &str) -> bool {
    error.message.contains(part)
        && ["Invalid: ", "ConfigError: ", "SyntaxError: "].iter().any(|name| error.message.starts_with(name))
}
