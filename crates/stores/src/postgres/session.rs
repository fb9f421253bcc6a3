//! One client: YCSB's operations as prepared statements.

use std::sync::Arc;

use loadstone_load::{Row, Status, Wanted};
use tokio_postgres::Statement;
use tokio_postgres::types::{FromSql, ToSql};

use super::Plan;
use super::failure::of_error;
use super::layout::{Layout, Verb};
use super::link::{Link, name_statement};
use super::server::refused;
use super::values::{Param, Text, params, write_object};
use crate::deadline::Deadline;
use crate::error::{EngineError, Failure};
use crate::remote::LastFailure;
use crate::session::{Connection, Rows, Session};

/// One client's connection, and buffers that are used again.
#[derive(Debug)]
pub struct PostgresSession {
    plan: Arc<Plan>,
    deadline: Deadline,
    link: Option<Link>,
    generation: u64,
    /// The node's losses when the connection was last known to be open.
    losses: u64,
    name: Vec<u8>,
    json: Vec<u8>,
    last: LastFailure,
}

impl PostgresSession {
    /// One that is not connected yet.
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

    /// Connects and prepares what YCSB's workloads need, as far as the table lets it.
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
            // A column that cannot be written, or is not there any more, makes only the writes to it fail.
            if self.link.is_none() {
                prepared?;
            }
        }
        Ok(())
    }

    /// A prepared statement. One on fields that the table does not suggest is prepared when it is first used.
    #[inline]
    async fn statement<'a>(
        &mut self,
        verb: Verb,
        fields: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Statement, Failure> {
        name_statement(&mut self.name, verb, fields.clone());
        if let Some(statement) = self.link.as_ref().and_then(|link| link.prepared(&self.name)) {
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
        let Some(link) = &self.link else { return Err(gone()) };
        let prepared = self.deadline.keep(link.client.prepare(&sql)).await;
        let statement = self.answer(prepared)?;
        if let Some(other) = settings.layout.other_than_text(verb, statement.params()) {
            let words = format!("a column of {} is of the type {other}, not a text type", settings.table);
            return Err(Failure::new(Status::BadRequest, words));
        }
        self.link.as_mut().ok_or_else(gone)?.keep(name, statement.clone());
        Ok(statement)
    }

    /// A connection is opened when none exists, or when it was closed since.
    #[inline]
    async fn connected(&mut self) -> Result<(), Failure> {
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

    /// Drops a connection that cannot be used on: a late answer must not be taken for another's.
    fn answer<T>(
        &mut self,
        answered: Result<Result<T, tokio_postgres::Error>, crate::deadline::Late>,
    ) -> Result<T, Failure> {
        let server = &self.plan.settings.server;
        let (failure, usable) = match answered {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => of_error(&error, server),
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
        let Some(link) = &self.link else { return Err(gone()) };
        let answered = self.deadline.keep(link.client.query(statement, params)).await;
        self.answer(answered)
    }

    /// Runs a statement; returns how many rows it concerned.
    async fn execute<'a, I>(&mut self, statement: &Statement, params: I) -> Result<u64, Failure>
    where
        I: IntoIterator<Item = Param<'a>>,
        I::IntoIter: ExactSizeIterator,
    {
        let Some(link) = &self.link else { return Err(gone()) };
        let answered = self.deadline.keep(link.client.execute_raw(statement, params)).await;
        self.answer(answered)
    }

    async fn get(&mut self, key: &[u8], wanted: Wanted<'_>, row: &mut Row) -> Result<Status, Failure> {
        self.connected().await?;
        let layout = self.plan.settings.layout;
        let statement = self.reading(Verb::Read, wanted).await?;
        let found = self.query(&statement, &[&Param::Text(key)]).await?;
        for one in &found {
            read_row(layout, one, wanted, row)?;
        }
        Ok(if found.is_empty() { Status::NotFound } else { Status::Ok })
    }

    async fn list(&mut self, key: &[u8], count: usize, wanted: Wanted<'_>, rows: &mut Rows) -> Result<Status, Failure> {
        self.connected().await?;
        let layout = self.plan.settings.layout;
        let statement = self.reading(Verb::Scan, wanted).await?;
        let count = Param::Count(i64::try_from(count).unwrap_or(i64::MAX));
        let mut last: Option<&[u8]> = None;
        let found = self.query(&statement, &[&Param::Text(key), &count]).await?;
        for one in &found {
            let Some(key) = key_of(layout, one)? else { continue };
            // A row is a record, or a member of one, and then a record's members follow each other.
            let row = if last == Some(key) { rows.last() } else { Some(rows.push(key)) };
            last = Some(key);
            if let Some(row) = row {
                read_row(layout, one, wanted, row)?;
            }
        }
        Ok(Status::Ok)
    }

    async fn reading(&mut self, verb: Verb, wanted: Wanted<'_>) -> Result<Statement, Failure> {
        match self.plan.settings.layout.named(wanted) {
            Wanted::All => self.statement(verb, std::iter::empty()).await,
            Wanted::One(name) => self.statement(verb, std::iter::once(name)).await,
            Wanted::Names(names) => self.statement(verb, names.iter().map(String::as_bytes)).await,
        }
    }

    /// Writes a record (insert) or some of its fields (update); returns how many records it concerned. Until its statement
    /// is executed, nothing is written.
    async fn write(&mut self, verb: Verb, key: &[u8], row: &Row) -> Result<u64, Failure> {
        self.connected().await.map_err(Failure::refusal)?;
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
        self.connected().await.map_err(Failure::refusal)?;
        let statement = self.statement(Verb::Delete, std::iter::empty()).await.map_err(Failure::refusal)?;
        self.execute(&statement, [Param::Text(key)]).await?;
        Ok(Status::Ok)
    }
}

fn gone() -> Failure {
    Failure::new(Status::ServiceUnavailable, "the connection is gone")
}

fn unreadable(error: &tokio_postgres::Error) -> Failure {
    Failure::new(Status::UnexpectedState, format!("a row cannot be read: {error}"))
}

/// The key in a row of a scan: the first column of the binding's own statements, a column somewhere where all are asked
/// for.
fn key_of(layout: Layout, one: &tokio_postgres::Row) -> Result<Option<&[u8]>, Failure> {
    let at = match layout {
        Layout::Json => Some(0),
        Layout::Columns => one.columns().iter().position(|column| is_key(column.name())),
    };
    let key: Option<Text<'_>> = at.map(|at| one.try_get(at)).transpose().map_err(|error| unreadable(&error))?.flatten();
    Ok(key.map(|Text(key)| key))
}

fn is_key(name: &str) -> bool {
    name.eq_ignore_ascii_case(super::layout::KEY)
}

/// Adds the wanted fields of a row of an answer.
#[inline]
fn read_row(layout: Layout, one: &tokio_postgres::Row, wanted: Wanted<'_>, row: &mut Row) -> Result<(), Failure> {
    let whole = matches!(wanted, Wanted::All);
    let text = |at: usize| -> Result<Option<Text<'_>>, Failure> {
        one.try_get(at).or_else(|error| {
            // Not a field of a workload: those are texts.
            let beside = whole && !<Text<'_> as FromSql<'_>>::accepts(one.columns()[at].type_());
            if beside { Ok(None) } else { Err(unreadable(&error)) }
        })
    };
    if layout == Layout::Json && whole {
        if let (Some(Text(name)), Some(Text(value))) = (text(1)?, text(2)?) {
            row.push(name, value);
        }
        return Ok(());
    }
    for (at, column) in one.columns().iter().enumerate() {
        if let Some(name) = asked_name(wanted, column.name())
            && !is_key(column.name())
            && let Some(Text(value)) = text(at)?
        {
            row.push(name, value);
        }
    }
    Ok(())
}

/// A column's name as it was asked for, if it was. Names without quotes are in small letters on the server.
#[inline]
fn asked_name<'a>(wanted: Wanted<'a>, name: &'a str) -> Option<&'a [u8]> {
    match wanted {
        Wanted::All => Some(name.as_bytes()),
        Wanted::One(one) => one.eq_ignore_ascii_case(name.as_bytes()).then_some(one),
        Wanted::Names(names) => {
            let exact = names.iter().find(|one| *one == name);
            exact.or_else(|| names.iter().find(|one| one.eq_ignore_ascii_case(name))).map(String::as_bytes)
        }
    }
}

impl Connection for PostgresSession {
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.connected().await.map_err(|failure| refused(&self.plan.settings, &failure))
    }

    async fn pause(&mut self) {
        self.last.pause().await;
    }

    fn unsent(&self) -> bool {
        self.last.unsent()
    }

    fn last_error(&mut self) -> Option<String> {
        self.last.message()
    }

    async fn cleanup(&mut self) -> Status {
        if let Some(link) = self.link.take() {
            link.close(self.plan.settings.timeout).await;
        }
        Status::Ok
    }
}

impl Session for PostgresSession {
    async fn read(&mut self, key: &[u8], wanted: Wanted<'_>, row: &mut Row) -> Status {
        row.clear();
        let got = self.get(key, wanted, row).await;
        self.last.status(got)
    }

    async fn scan(&mut self, key: &[u8], count: usize, wanted: Wanted<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        let listed = self.list(key, count, wanted, rows).await;
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

    fn refused(&self, status: Status) -> bool {
        self.last.refused(status)
    }
}
