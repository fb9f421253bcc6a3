//! Reads the rows of a read-back at several consistency levels, with retries.

use std::collections::BTreeMap;
use std::time::Duration;

use loadstone_load::ledger::State;
use loadstone_session::statements::{Cells, StatementStore, Statements, Values};
use loadstone_session::{Options, ReadLevel};
use loadstone_wire::error::{EngineError, ErrorKind};
use loadstone_wire::spec::TrialSpec;

use super::findings::Findings;

/// Number of attempts at a read: a server that was just restarted may need some time.
const ATTEMPTS: u32 = 5;
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// The error of a read-back that failed and therefore proves nothing.
pub fn unread(message: String) -> EngineError {
    let error = EngineError { kind: ErrorKind::Unread, ..EngineError::failed(message) };
    error.hint("repair the store and repeat the command: it must read every row")
}

/// The error if the store cannot be read: the read-back proves nothing, unless the request was wrong.
pub fn store_error(error: EngineError) -> EngineError {
    if error.is_usage() { error } else { EngineError { kind: ErrorKind::Unread, ..error } }
}

/// Whether the server acknowledged the write.
pub const fn is_acknowledged(state: State) -> bool {
    matches!(state, State::Acknowledged | State::Retried)
}

/// Reads all rows once at the workload's own level and once at the strongest level at which the servers can answer; the
/// second pass is omitted if this is the workload's own level. The weaker level is read first, because a read at a
/// stronger level repairs the replicas that it contacts.
pub fn read_at_levels<S: StatementStore, P>(
    spec: &TrialSpec,
    findings: &mut Findings,
    pass: &impl AsyncFn(&S) -> Result<P, EngineError>,
) -> Result<(P, Option<P>), EngineError> {
    let own = open::<S>(spec, None)?;
    findings.guarantee(own.guarantee().loss_ns_max());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| unread(format!("cannot start an executor: {error}")))?;
    let local = tokio::task::LocalSet::new();
    let earlier = local.block_on(&runtime, pass(&own))?;
    let mut strongest = None;
    let own_level = find_own_level(spec, S::read_levels());
    for level in S::read_levels().iter().take_while(|level| own_level.as_deref() != Some(level.name)) {
        let result = open::<S>(spec, Some(*level)).and_then(|store| {
            let result = local.block_on(&runtime, pass(&store));
            store.close().map_err(store_error).and(result)
        });
        match result {
            Ok(result) => {
                strongest = Some((result, level.name.to_owned()));
                break;
            }
            // Some servers that this level needs are unavailable.
            Err(error) if error.kind == ErrorKind::Unread => findings.note_weaker_level(),
            Err(error) => return Err(error),
        }
    }
    let level = strongest.as_ref().map(|(_, level)| level.clone());
    findings.levels(level.or_else(|| own_level.clone()), own_level);
    own.close().map_err(store_error)?;
    Ok((earlier, strongest.map(|(result, _)| result)))
}

/// The consistency level of the workload's reads; if not set, the weakest level.
fn find_own_level(spec: &TrialSpec, levels: &[ReadLevel]) -> Option<String> {
    let set = spec.store.properties.get(levels.first()?.property);
    Some(set.map_or_else(|| "ONE".to_owned(), |level| level.to_ascii_uppercase()))
}

/// Opens the store as the run did, but with the read `level` if it is given.
fn open<S: StatementStore>(spec: &TrialSpec, level: Option<ReadLevel>) -> Result<S, EngineError> {
    let mut properties: BTreeMap<String, String> = spec.store.properties.clone();
    if let Some(level) = level {
        properties.insert(level.property.to_owned(), level.name.to_owned());
    }
    let durability = spec.store.durability.into();
    S::open(&Options { properties, durability, clients: 1, ..Options::default() }).map_err(store_error)
}

/// Executes the statement repeatedly until the server answers.
pub async fn read<S: Statements>(session: &mut S, values: &Values, cells: &mut Cells) -> Result<(), EngineError> {
    for attempt in 1.. {
        let status = session.execute(0, values, cells).await;
        if status.is_ok() {
            break;
        }
        let message = session.last_error().unwrap_or_else(|| "no message".to_owned());
        if attempt == ATTEMPTS {
            return Err(unread(format!("cannot read a row: {}: {message}", status.name())));
        }
        tokio::time::sleep(BETWEEN_ATTEMPTS).await;
    }
    Ok(())
}
