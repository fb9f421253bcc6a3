//! Sessions for any CQL statements.

use std::rc::Rc;
use std::sync::Arc;

use loadstone_load::Status;
use loadstone_session::statements::{BatchKind, Cells, Statement, Statements, Values};
use tokio::time::Instant;

use super::answer::{Prepared, Table, protocol_failure};
use super::client::{Client, Execution, Page, put_id};
use super::cluster::Cluster;
use super::types::put_routing_key;
use super::wire::{opcode, put_flags};
use crate::error::{EngineError, Failure};
use crate::reconnect::FAILURE_PAUSE;
use crate::remote::answer_by_last_failure;
use crate::session::Connection;

const TIMESTAMP: u8 = 0x20;

/// One client's session for statements.
#[derive(Debug)]
pub struct StatementClient {
    client: Client,
    statements: Arc<[Statement]>,
    /// How each statement is routed, once the client is connected.
    prepared: Vec<Routing>,
    key: Vec<u8>,
    /// Whether the last execution failed. As with drivers, the next execution, which may be a retry, may then use any
    /// node.
    failed: bool,
}

/// The number of a statement's text, and the indexes of the markers that form the partition key.
#[derive(Debug)]
struct Routing {
    number: usize,
    key: Vec<usize>,
}

impl StatementClient {
    /// Creates a client without connections.
    pub fn new(cluster: Arc<Cluster>, statements: Arc<[Statement]>) -> Self {
        Self { client: Client::new(cluster), statements, prepared: Vec::new(), key: Vec::new(), failed: false }
    }

    /// Plans the execution of a statement with these values.
    #[inline]
    fn plan(&mut self, statement: usize, values: &Values) -> Result<Execution<'_>, Failure> {
        let unconnected = || Failure::new(Status::ServiceUnavailable, "the client is not connected").refusal();
        let routing = self.prepared.get(statement).ok_or_else(unconnected)?;
        let has_key = !routing.key.is_empty() && !self.failed;
        if has_key {
            put_routing_key(routing.key.iter().map(|at| values.get(*at).unwrap_or_default()), &mut self.key);
        }
        let settings = &self.client.cluster().settings;
        let writes = self.statements[statement].writes;
        Ok(Execution {
            number: routing.number,
            level: if writes { settings.write } else { settings.read },
            writes,
            key: has_key.then_some(&self.key[..]),
            stamp: values.timestamp_us,
            page: None,
        })
    }

    /// Prepares a statement on any node. A refusal that may be temporary, such as an overload, becomes final only after
    /// the time limit of a request.
    async fn prepare_patiently(&self, number: usize) -> Result<Rc<Prepared>, Failure> {
        let pool = self.client.pool()?;
        let end = Instant::now() + self.client.cluster().settings.request_timeout;
        loop {
            let prepared = match pool.link(None).await {
                Ok(link) => link.ensure_prepared(number, pool.texts(), self.client.slot()).await,
                Err(failure) => Err(failure),
            };
            match prepared {
                Err(failure)
                    if !matches!(failure.status, Status::BadRequest | Status::Forbidden) && Instant::now() < end =>
                {
                    tokio::time::sleep(FAILURE_PAUSE).await;
                }
                decided => return decided,
            }
        }
    }

    async fn run(&mut self, statement: usize, values: &Values, cells: &mut Cells) -> Result<Status, Failure> {
        cells.clear(0);
        let put = |out: &mut Vec<u8>| {
            out.extend_from_slice(values.as_bytes());
            values.len() as u16
        };
        let Execution { number, level, writes, key: routed, stamp, .. } = self.plan(statement, values)?;
        let routed = routed.is_some();
        let (client, Statement { text, prepared, .. }) = (&self.client, &self.statements[statement]);
        let mut before: Option<Page> = values.page.as_ref().map(Page::before);
        let mut is_first = true;
        loop {
            let key = routed.then_some(&self.key[..]);
            let execution = Execution { number, level, writes, key, stamp, page: before.as_ref() };
            let mut read = |mut table: Table<'_>| {
                if is_first {
                    cells.clear(table.width);
                }
                for _ in 0..table.rows * table.width {
                    cells.push(table.body.bytes().map_err(protocol_failure)?);
                }
                Ok(Page::after(&table))
            };
            let next = match (*prepared, writes) {
                (true, false) => client.execute_select(execution, put, |table, _| read(table)).await?,
                (true, true) => client.execute(execution, put).await.map(|_| None)?,
                (false, true) => client.query(text, execution, put).await.map(|()| None)?,
                (false, false) => {
                    client.query(text, execution, put).await?;
                    let bytes = client.slot().bytes();
                    client.table(&bytes, None)?.map_or(Ok(None), read)?
                }
            };
            if let Some(before) = &before {
                before.check_progress(next.as_ref())?;
            }
            if next.is_none() || values.page.is_some() {
                cells.more = next.map(Page::into_state);
                return Ok(Status::Ok);
            }
            (before, is_first) = (next, false);
        }
    }

    async fn run_batch(&mut self, kind: BatchKind, parts: &[(usize, Values)]) -> Result<Status, Failure> {
        let Some((first, values)) = parts.first() else { return Ok(Status::Ok) };
        let Execution { level, stamp, key: routed, .. } = self.plan(*first, values)?;
        let routed = routed.is_some();
        let pool = self.client.pool()?;
        let link = pool.link(routed.then_some(&self.key[..])).await.map_err(Failure::refusal)?;
        let mut ids = Vec::with_capacity(parts.len());
        for (statement, _) in parts {
            let number = self.prepared[*statement].number;
            ids.push(link.ensure_prepared(number, pool.texts(), self.client.slot()).await.map_err(Failure::refusal)?);
        }
        let version = link.connection().version();
        let stamp = stamp.unwrap_or_else(|| pool.stamp());
        let body = |out: &mut Vec<u8>| {
            out.push(match kind {
                BatchKind::Logged => 0,
                BatchKind::Unlogged => 1,
                BatchKind::Counter => 2,
            });
            out.extend_from_slice(&(parts.len() as u16).to_be_bytes());
            for (prepared, (_, values)) in ids.iter().zip(parts) {
                out.push(1);
                put_id(out, &prepared.id);
                out.extend_from_slice(&(values.len() as u16).to_be_bytes());
                out.extend_from_slice(values.as_bytes());
            }
            out.extend_from_slice(&level.code.to_be_bytes());
            put_flags(out, version, TIMESTAMP);
            out.extend_from_slice(&stamp.to_be_bytes());
        };
        self.client.send(&link, opcode::BATCH, body).await?;
        match self.client.refusal(&link)? {
            None => Ok(Status::Ok),
            Some(refusal) => {
                // The next execution prepares the statements that the node has forgotten.
                for prepared in &ids {
                    prepared.stale.set(true);
                }
                Err(refusal.failure())
            }
        }
    }
}

impl Connection for StatementClient {
    async fn connect(&mut self) -> Result<(), EngineError> {
        let texts = self.statements.iter().filter(|statement| statement.prepared).map(|statement| &*statement.text);
        let mut numbers = self.client.register(texts).into_iter();
        self.client.open().await?;
        let mut prepared = Vec::new();
        for statement in &*self.statements {
            let Some(number) = statement.prepared.then(|| numbers.next()).flatten() else {
                prepared.push(Routing { number: usize::MAX, key: Vec::new() });
                continue;
            };
            let explain = |failure: Failure| {
                let message = format!("the server cannot prepare \"{}\": {}", statement.text, failure.message);
                EngineError::failed(message).hint(match failure.status {
                    Status::BadRequest => "create the keyspace and the table first",
                    _ => "see the log of the server",
                })
            };
            let known = self.prepare_patiently(number).await.map_err(explain)?;
            prepared.push(Routing { number, key: known.key.clone() });
        }
        self.prepared = prepared;
        Ok(())
    }

    answer_by_last_failure!(client.last);
}

impl Statements for StatementClient {
    #[inline]
    async fn execute(&mut self, statement: usize, values: &Values, cells: &mut Cells) -> Status {
        let result = self.run(statement, values, cells).await;
        self.failed = result.is_err();
        self.client.keep(result)
    }

    async fn execute_batch(&mut self, kind: BatchKind, parts: &[(usize, Values)]) -> Status {
        let result = self.run_batch(kind, parts).await;
        self.failed = result.is_err();
        self.client.keep(result)
    }
}
