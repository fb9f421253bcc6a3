//! The consistency levels at which a read-back reads, and its errors.

use std::time::Duration;

use loadstone_session::{Options, ReadLevel};
use loadstone_wire::error::{EngineError, ErrorKind};
use loadstone_wire::spec::TrialSpec;

/// Number of attempts at a read: a server that was just restarted may need some time.
pub const ATTEMPTS: u32 = 5;
pub const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// Creates the error for a read-back that could not read every `unit`, and therefore proves nothing.
pub fn refuse_unread(message: String, unit: &str) -> EngineError {
    let error = EngineError { kind: ErrorKind::Unread, ..EngineError::failed(message) };
    error.hint(format!("repair the store and repeat the command: it must read every {unit}"))
}

/// Converts an error from the store: any error except a usage error means that the read-back proves nothing.
pub fn store_error(error: EngineError) -> EngineError {
    if error.is_usage() { error } else { EngineError { kind: ErrorKind::Unread, ..error } }
}

/// The level of the workload's reads; `None` if reads have no level. If no level is set, the weakest applies.
pub fn find_own_level(spec: &TrialSpec, levels: &[ReadLevel]) -> Option<String> {
    let set = spec.store.properties.get(levels.first()?.property);
    Some(set.map_or_else(|| "ONE".to_owned(), |level| level.to_ascii_uppercase()))
}

/// The levels that are stronger than the workload's own, the strongest first.
pub fn list_stronger(spec: &TrialSpec, levels: &'static [ReadLevel]) -> impl Iterator<Item = ReadLevel> {
    let own = find_own_level(spec, levels);
    levels.iter().take_while(move |level| own.as_deref() != Some(level.name)).copied()
}

/// The options with which the run opened the store, but with `level`, if given, as the read level.
pub fn options_at(spec: &TrialSpec, level: Option<ReadLevel>, table: &str) -> Options {
    let mut properties = spec.store.properties.clone();
    if let Some(level) = level {
        properties.insert(level.property.to_owned(), level.name.to_owned());
    }
    Options { properties, durability: spec.store.durability, table: table.to_owned(), clients: 1, ..Options::default() }
}
