//! One client, which executes YCSB's operations as prepared statements.

use std::sync::Arc;

use loadstone_load::{Projection, Row, Status};
use tokio_postgres::Statement;
use tokio_postgres::types::{FromSql, ToSql};

use super::Plan;
use super::failure::failure_of;
use super::layout::{Layout, Verb};
use super::link::{Link, name_statement};
use super::server::explain_refusal;
use super::values::{Param, Text, params, write_object};
use crate::deadline::Deadline;
use crate::error::{EngineError, Failure};
use crate::remote::{LastFailure, answer_by_last_failure};
use crate::session::{Connection, Rows, Session};

/// One client's connection, with reused buffers.
#[derive(Debug)]
pub struct PostgresSession {
    plan: Arc<Plan>,
    deadline: Deadline,
    link: Option<Link>,
    generation: u64,
    /// The node's number of losses when the connection was last known to be open.
    losses: u64,
    name: Vec<u8>,
    json: Vec<u8>,
    last: LastFailure,
}

impl PostgresSession {
    /// Creates a session that is not connected yet.
    pub(super) fn new(plan: Arc<Plan>) -> Self {
        let deadline = Deadline::new(plan.settings.timeout);
        Self {
            plan,
            deadline,
            link: None,
            generation: 0,
            losses: 0,
            name: Vec::new(),
            json: Vec::new(),
            last: LastFailure::default(),
        }
    }

    /// Connects, and prepares the statements that YCSB's workloads need, as far as the table allows.
    async fn open(&mut self) -> Result<(), Failure> {
        let plan = Arc::clone(&self.plan);
        let open = {
            let plan = Arc::clone(&plan);
            async move || Link::open(&plan.settings).await
        };
        self.link = Some(plan.node.connect(open, plan.settings.connect_limit()).await?);
        self.generation = plan.node.generation();
        for (verb, names) in plan.settings.layout.expected(&plan.info.columns) {
            let prepared = self.statement(verb, names.iter().map(|name| name.as_bytes())).await;
            // If a column cannot be written or no longer exists, only the writes to this column fail.
            if self.link.is_none() {
                prepared?;
            }
        }
        Ok(())
    }

    /// Returns a prepared statement. A statement that was not prepared on connecting is prepared when it is first used.
    #[inline]
    async fn statement<'a>(
        &mut self,
        verb: Verb,
        fields: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Statement, Failure> {
        name_statement(&mut self.name, verb, fields.clone());
        if let Some(statement) = self.link.as_ref().and_then(|link| link.find_statement(&self.name)) {
            return Ok(statement.clone());
        }
        self.prepare(verb, &fields.collect::<Vec<_>>()).await
    }

    #[cold]
    async fn prepare(&mut self, verb: Verb, fields: &[&[u8]]) -> Result<Statement, Failure> {
        let plan = Arc::clone(&self.plan);
        let settings = &plan.settings;
        let texts: Result<Vec<&str>, _> = fields.iter().map(|field| std::str::from_utf8(field)).collect();
        let texts = texts.map_err(|_| Failure::new(Status::BadRequest, "a field's name is not valid UTF-8"))?;
        let sql = settings.layout.sql(verb, &settings.table, &texts);
        let mut name = Vec::new();
        name_statement(&mut name, verb, fields.iter().copied());
        let Some(link) = &self.link else { return Err(connection_loss()) };
        let prepared = self.deadline.keep_deadline(link.client.prepare(&sql)).await;
        let statement = self.answer(prepared)?;
        if let Some(other) = settings.layout.find_non_text(verb, statement.params()) {
            let message = format!("a column of {} is of the type {other}, not a text type", settings.table);
            return Err(Failure::new(Status::BadRequest, message));
        }
        self.link.as_mut().ok_or_else(connection_loss)?.keep(name, statement.clone());
        Ok(statement)
    }

    /// Opens a connection if there is none, or if it has been closed.
    #[inline]
    async fn ensure_connection(&mut self) -> Result<(), Failure> {
        if self.link.as_ref().is_some_and(|link| !link.client.is_closed()) {
            let losses = self.plan.node.losses();
            if self.losses != losses {
                self.losses = losses;
                self.plan.node.confirm_connection(losses);
            }
            return Ok(());
        }
        if self.link.take().is_some() {
            self.plan.node.lose_connection(self.generation);
        }
        let opened = self.open().await;
        if opened.is_err() {
            self.link = None;
        }
        opened
    }

    /// Converts an answer, and drops a connection that is no longer usable: a late answer must not be mistaken for the
    /// answer to another request.
    fn answer<T>(
        &mut self,
        answered: Result<Result<T, tokio_postgres::Error>, crate::deadline::Late>,
    ) -> Result<T, Failure> {
        let server = &self.plan.settings.server;
        let (failure, usable) = match answered {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => failure_of(&error, server),
            Err(late) => (Failure::new(Status::Timeout, format!("{late} from {server}")), false),
        };
        if !usable {
            if failure.status == Status::ServiceUnavailable {
                self.plan.node.lose_connection(self.generation);
            }
            self.link = None;
        }
        Err(failure)
    }

    async fn query(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        let Some(link) = &self.link else { return Err(connection_loss()) };
        let answered = self.deadline.keep_deadline(link.client.query(statement, params)).await;
        self.answer(answered)
    }

    /// Executes a statement, and returns the number of rows that it affected.
    async fn execute<'a, I>(&mut self, statement: &Statement, params: I) -> Result<u64, Failure>
    where
        I: IntoIterator<Item = Param<'a>>,
        I::IntoIter: ExactSizeIterator,
    {
        let Some(link) = &self.link else { return Err(connection_loss()) };
        let answered = self.deadline.keep_deadline(link.client.execute_raw(statement, params)).await;
        self.answer(answered)
    }

    async fn get(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> Result<Status, Failure> {
        self.ensure_connection().await?;
        let layout = self.plan.settings.layout;
        let statement = self.reading(Verb::Read, projection).await?;
        let rows_read = self.query(&statement, &[&Param::Text(key)]).await?;
        for stored in &rows_read {
            read_row(layout, stored, projection, row)?;
        }
        Ok(if rows_read.is_empty() { Status::NotFound } else { Status::Ok })
    }

    async fn list(
        &mut self,
        key: &[u8],
        count: usize,
        projection: Projection<'_>,
        rows: &mut Rows,
    ) -> Result<Status, Failure> {
        self.ensure_connection().await?;
        let layout = self.plan.settings.layout;
        let statement = self.reading(Verb::Scan, projection).await?;
        let count = Param::Count(i64::try_from(count).unwrap_or(i64::MAX));
        let mut last: Option<&[u8]> = None;
        let rows_read = self.query(&statement, &[&Param::Text(key), &count]).await?;
        for stored in &rows_read {
            let Some(key) = key_of(layout, stored)? else { continue };
            // A result row contains either a whole record or one field of a record. The rows with the fields of one
            // record are consecutive.
            let row = if last == Some(key) { rows.last() } else { Some(rows.push(key)) };
            last = Some(key);
            if let Some(row) = row {
                read_row(layout, stored, projection, row)?;
            }
        }
        Ok(Status::Ok)
    }

    async fn reading(&mut self, verb: Verb, projection: Projection<'_>) -> Result<Statement, Failure> {
        match self.plan.settings.layout.project(projection) {
            Projection::All => self.statement(verb, std::iter::empty()).await,
            Projection::One(name) => self.statement(verb, std::iter::once(name)).await,
            Projection::Names(names) => self.statement(verb, names.iter().map(String::as_bytes)).await,
        }
    }

    /// Writes a record (insert) or some of its fields (update), and returns the number of records affected. Until the
    /// statement is executed, nothing is written.
    async fn write(&mut self, verb: Verb, key: &[u8], row: &Row) -> Result<u64, Failure> {
        self.ensure_connection().await.map_err(Failure::refusal)?;
        let first = verb == Verb::Insert;
        match self.plan.settings.layout {
            Layout::Columns => {
                let statement = self
                    .statement(verb, row.fields().flatten().map(|(name, _)| name))
                    .await
                    .map_err(Failure::refusal)?;
                self.execute(&statement, params(key, row, first)).await
            }
            Layout::Json => {
                let statement = self.statement(verb, std::iter::empty()).await.map_err(Failure::refusal)?;
                let mut json = std::mem::take(&mut self.json);
                write_object(&mut json, row);
                let (key, value) = (Param::Text(key), Param::Json(&json));
                let written = self.execute(&statement, if first { [key, value] } else { [value, key] }).await;
                self.json = json;
                written
            }
        }
    }

    async fn remove(&mut self, key: &[u8]) -> Result<Status, Failure> {
        self.ensure_connection().await.map_err(Failure::refusal)?;
        let statement = self.statement(Verb::Delete, std::iter::empty()).await.map_err(Failure::refusal)?;
        self.execute(&statement, [Param::Text(key)]).await?;
        Ok(Status::Ok)
    }
}

fn connection_loss() -> Failure {
    Failure::new(Status::ServiceUnavailable, "the connection was lost")
}

fn unreadable(error: &tokio_postgres::Error) -> Failure {
    Failure::new(Status::UnexpectedState, format!("a row cannot be read: {error}"))
}

/// The key in a row of a scan. In the JSON layout, the key is the first column; in the other layout, it may be any
/// column.
fn key_of(layout: Layout, stored: &tokio_postgres::Row) -> Result<Option<&[u8]>, Failure> {
    let at = match layout {
        Layout::Json => Some(0),
        Layout::Columns => stored.columns().iter().position(|column| is_key(column.name())),
    };
    let key: Option<Text<'_>> =
        at.map(|at| stored.try_get(at)).transpose().map_err(|error| unreadable(&error))?.flatten();
    Ok(key.map(|Text(key)| key))
}

fn is_key(name: &str) -> bool {
    name.eq_ignore_ascii_case(super::layout::KEY)
}

/// Adds the requested fields of a result row to a record.
#[inline]
fn read_row(
    layout: Layout,
    stored: &tokio_postgres::Row,
    projection: Projection<'_>,
    row: &mut Row,
) -> Result<(), Failure> {
    let whole = matches!(projection, Projection::All);
    let text = |at: usize| -> Result<Option<Text<'_>>, Failure> {
        stored.try_get(at).or_else(|error| {
            // A column that is not text does not belong to the workload, whose fields are text.
            let beside = whole && !<Text<'_> as FromSql<'_>>::accepts(stored.columns()[at].type_());
            if beside { Ok(None) } else { Err(unreadable(&error)) }
        })
    };
    if layout == Layout::Json && whole {
        if let (Some(Text(name)), Some(Text(value))) = (text(1)?, text(2)?) {
            row.push_field(name, value);
        }
        return Ok(());
    }
    for (at, column) in stored.columns().iter().enumerate() {
        if let Some(name) = find_requested_name(projection, column.name())
            && !is_key(column.name())
            && let Some(Text(value)) = text(at)?
        {
            row.push_field(name, value);
        }
    }
    Ok(())
}

/// The name of a requested column as it is written in the request. On the server, names without quotes are in lower
/// case.
#[inline]
fn find_requested_name<'a>(projection: Projection<'a>, name: &'a str) -> Option<&'a [u8]> {
    match projection {
        Projection::All => Some(name.as_bytes()),
        Projection::One(stored) => stored.eq_ignore_ascii_case(name.as_bytes()).then_some(stored),
        Projection::Names(names) => {
            let exact = names.iter().find(|stored| *stored == name);
            exact.or_else(|| names.iter().find(|stored| stored.eq_ignore_ascii_case(name))).map(String::as_bytes)
        }
    }
}

impl Connection for PostgresSession {
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.ensure_connection().await.map_err(|failure| explain_refusal(&self.plan.settings, &failure))
    }

    answer_by_last_failure!(last);

    async fn cleanup(&mut self) -> Status {
        if let Some(link) = self.link.take() {
            link.close(self.plan.settings.timeout).await;
        }
        Status::Ok
    }
}

impl Session for PostgresSession {
    async fn read(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> Status {
        row.clear_fields();
        let got = self.get(key, projection, row).await;
        self.last.status(got)
    }

    async fn scan(&mut self, key: &[u8], count: usize, projection: Projection<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        let listed = self.list(key, count, projection, rows).await;
        self.last.status(listed)
    }

    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        let written = self.write(Verb::Insert, key, row).await;
        self.last.status(written.map(|_| Status::Ok))
    }

    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        let written = self.write(Verb::Update, key, row).await;
        self.last.status(written.map(|records| if records == 0 { Status::NotFound } else { Status::Ok }))
    }

    async fn delete(&mut self, key: &[u8]) -> Status {
        let removed = self.remove(key).await;
        self.last.status(removed)
    }
}
