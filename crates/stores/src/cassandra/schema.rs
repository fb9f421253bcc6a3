//! Executes definitions of keyspaces and tables, outside any trial.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::answer::{ALREADY_EXISTS, Refusal};
use super::cluster::{Cluster, connect, unreachable};
use super::login::Link;
use super::ring::Node;
use super::settings::Settings;
use crate::error::{EngineError, Failure};
use crate::options::Options;
use crate::remote::asking;
use loadstone_load::Status;

/// Maximum time until all nodes know a definition.
const AGREEMENT: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(20);

/// A cluster, as described by one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The cluster's name.
    pub name: String,
    /// The cluster's nodes, sorted by address.
    pub nodes: Vec<Node>,
    /// The differences between the requested and the executed definitions.
    pub notes: Vec<String>,
}

/// Connects to the first contact point that responds, and executes statements one after the other. The statements are
/// definitions, on which the nodes must then agree. An error names the statement.
pub fn execute_script(options: &Options, statements: &[String]) -> Result<Description, EngineError> {
    execute_numbered(options, statements).map_err(|(_, error)| error)
}

/// Like [`execute_script`], but an error has the index of the statement that the server refused.
pub fn execute_numbered(options: &Options, statements: &[String]) -> Result<Description, (Option<usize>, EngineError)> {
    let settings = Settings::from_options(options).map_err(|error| (None, error))?;
    let refused = AtomicUsize::new(usize::MAX);
    // A separate thread is needed, because the caller may run within a runtime.
    let run = || asking(run(&settings, statements, &refused));
    let done = std::thread::scope(|threads| threads.spawn(run).join());
    let done = done
        .unwrap_or_else(|_| Err(EngineError::failed("internal error: the thread that defines the schema panicked")));
    done.map_err(|error| (Some(refused.load(Ordering::Relaxed)).filter(|at| *at < statements.len()), error))
}

/// Executes SELECTs one after the other, and returns the number of rows of each.
pub fn count_rows(options: &Options, statements: &[String]) -> Result<Vec<usize>, EngineError> {
    let settings = Settings::from_options(options)?;
    let count = async {
        let (_, link) = connect(&settings).await?;
        let mut counts = Vec::with_capacity(statements.len());
        for text in statements {
            let rows = link.query(text).await.map_err(|refusal| EngineError::failed(refusal.failure().message))?;
            counts.push(rows.len());
        }
        Ok(counts)
    };
    asking(count)
}

async fn run(settings: &Settings, statements: &[String], refused: &AtomicUsize) -> Result<Description, EngineError> {
    let (contact, link) = connect(settings).await?;
    let mut replacements = Vec::new();
    for (at, text) in statements.iter().enumerate() {
        let mut result = link.query(text).await;
        if let Some(other) = result.as_ref().err().and_then(|refusal| replace_strategy(text, refusal)) {
            replacements.push(
                "the server refuses SimpleStrategy; the keyspace is created with NetworkTopologyStrategy".to_owned(),
            );
            result = link.query(&other).await;
        }
        match result {
            // Each run repeats definitions that lack IF NOT EXISTS, so this error is ignored, as in other drivers. An
            // index that exists has a different error code.
            Err(refusal) if refusal.code == ALREADY_EXISTS || refusal.message.ends_with("already exists") => {}
            Err(refusal) => {
                refused.store(at, Ordering::Relaxed);
                let Failure { message, status, .. } = refusal.failure();
                return Err(EngineError::failed(message).hint(remedy(status, text.trim())));
            }
            Ok(_) => {}
        }
    }
    if !statements.is_empty() {
        wait_for_agreement(&link).await?;
    }
    let refused = |message: String| unreachable(&Failure::new(Status::Error, message), settings.port);
    let nodes = Cluster::read_nodes(&link, contact, settings.port).await.map_err(|refusal| refused(refusal.message))?;
    let name = link.query("SELECT cluster_name FROM system.local").await.map_err(|refusal| refused(refusal.message))?;
    let name = name.into_iter().flatten().next().flatten().unwrap_or_default();
    Ok(Description { name: String::from_utf8_lossy(&name).into_owned(), nodes, notes: replacements })
}

/// The definition of a keyspace with `NetworkTopologyStrategy` in place of `SimpleStrategy`, if the server refused the
/// latter, as `ScyllaDB` does for keyspaces with tablets. `NetworkTopologyStrategy` also accepts `replication_factor`.
fn replace_strategy(statement: &str, refusal: &Refusal) -> Option<String> {
    let is_refused = refusal.rejects_statement() && refusal.message.contains("SimpleStrategy");
    (is_refused && statement.contains("SimpleStrategy")).then(|| {
        statement.replace("org.apache.cassandra.locator.", "").replace("SimpleStrategy", "NetworkTopologyStrategy")
    })
}

/// The next step after a refusal. Only an invalid statement needs to be corrected.
fn remedy(status: Status, statement: &str) -> String {
    match status {
        Status::BadRequest => format!("correct the statement: {statement}"),
        Status::Forbidden => format!("grant the user the permission for the statement: {statement}"),
        _ => format!("check that all nodes are up (`nodetool status`); the statement: {statement}"),
    }
}

/// Waits until all nodes report the same schema version.
async fn wait_for_agreement(link: &Link) -> Result<(), EngineError> {
    let end = Instant::now() + AGREEMENT;
    loop {
        let mut versions = Vec::new();
        for table in ["system.local", "system.peers"] {
            let rows = link.query(&format!("SELECT schema_version FROM {table}")).await.unwrap_or_default();
            versions.extend(rows.into_iter().flatten().flatten());
        }
        versions.dedup();
        if versions.len() <= 1 {
            return Ok(());
        }
        if Instant::now() > end {
            let message = format!("the nodes have not agreed on the schema within {} s", AGREEMENT.as_secs());
            return Err(EngineError::failed(message).hint("a node may be down; check `nodetool describecluster`"));
        }
        tokio::time::sleep(STEP).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refused_strategy_is_replaced() {
        const REASON: &str = "SimpleStrategy doesn't support tablet replication";
        let statement = "CREATE KEYSPACE k WITH replication = {'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': 3}";
        let replace = |code, message: &str, statement| {
            replace_strategy(statement, &Refusal { code, message: message.to_owned() })
        };
        let expected =
            "CREATE KEYSPACE k WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
        assert_eq!(replace(0x2300, REASON, statement).as_deref(), Some(expected));
        assert_eq!(replace(0x2200, REASON, statement).as_deref(), Some(expected));
        assert_eq!(replace(0x0000, REASON, statement), None, "not a refusal");
        assert_eq!(replace(0x2300, "unknown option", statement), None);
        assert_eq!(replace(0x2300, REASON, expected), None);
    }

    #[test]
    fn remedy_fits_the_refusal() {
        let statement = "DROP KEYSPACE IF EXISTS ks";
        assert_eq!(remedy(Status::BadRequest, statement), "correct the statement: DROP KEYSPACE IF EXISTS ks");
        assert!(remedy(Status::Forbidden, statement).starts_with("grant the user"));
        for status in [Status::Error, Status::Timeout, Status::ServiceUnavailable] {
            assert!(remedy(status, statement).starts_with("check that all nodes are up"));
        }
    }
}
