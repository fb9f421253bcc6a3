//! One client: YCSB's operations as Redis's commands.

use std::sync::Arc;

use loadstone_load::{Row, Status, Wanted};

use super::connection::Connection;
use super::failure;
use super::reply::{Replies, Reply};
use super::request::{INDEX, Request};
use super::server::refused;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::{EngineError, Failure};
use crate::reconnect::Node;
use crate::remote::LastFailure;
use crate::session::{self, Rows, Session};

/// One client's connection, and buffers that are used again.
#[derive(Debug)]
pub struct RedisSession {
    settings: Arc<Settings>,
    node: Arc<Node>,
    deadline: Deadline,
    connection: Option<Connection>,
    generation: u64,
    request: Request,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    last: LastFailure,
}

impl RedisSession {
    /// One that is not connected yet.
    pub(super) fn new(settings: Arc<Settings>, node: Arc<Node>) -> Self {
        let deadline = Deadline::new(settings.timeout);
        let (request, keys, key_ends) = (Request::default(), Vec::new(), Vec::new());
        Self {
            settings,
            node,
            deadline,
            connection: None,
            generation: 0,
            request,
            keys,
            key_ends,
            last: LastFailure::default(),
        }
    }

    /// Sends the request and hands out its replies. Connects if necessary, and drops one that failed: an
    /// answer that comes late must not be read as the next one's.
    #[inline]
    async fn ask(&mut self) -> Result<Replies<'_>, Failure> {
        let losses = self.node.losses();
        let connection = match &mut self.connection {
            Some(connection) if connection.is_usable(&self.node, losses) => connection,
            connection => {
                *connection = None;
                // Without a connection nothing is sent.
                let opened = self.node.connect(open(&self.settings), self.settings.timeout).await;
                self.generation = self.node.generation();
                connection.insert(opened.map_err(Failure::refusal)?)
            }
        };
        match connection.exchange(&self.request, &self.settings, &mut self.deadline).await {
            Ok(()) => match &self.connection {
                Some(connection) => Ok(connection.replies()),
                None => Err(failure::unexpected(None)),
            },
            Err(failure) => {
                if failure.status == Status::ServiceUnavailable {
                    self.node.lose_connection(self.generation);
                }
                self.connection = None;
                Err(failure)
            }
        }
    }

    async fn get(&mut self, key: &[u8], wanted: Wanted<'_>, row: &mut Row) -> Result<Status, Failure> {
        self.request.clear();
        push_read(&mut self.request, key, wanted);
        let mut replies = self.ask().await?;
        let found = read_row(&mut replies, wanted, row)?;
        Ok(if found { Status::Ok } else { Status::NotFound })
    }

    async fn hmset(&mut self, key: &[u8], row: &Row) -> Result<(), Failure> {
        self.request.clear();
        self.request.hmset(key, row);
        expect_ok(&mut self.ask().await?)
    }

    async fn put(&mut self, key: &[u8], row: &Row) -> Result<Status, Failure> {
        if self.settings.pipeline {
            self.request.clear();
            self.request.hmset(key, row);
            self.request.zadd(key);
            let mut replies = self.ask().await?;
            let (hash, index) = (expect_ok(&mut replies), expect_integer(&mut replies));
            all_or_in_doubt([hash, index])?;
        } else {
            self.hmset(key, row).await?;
            self.request.clear();
            self.request.zadd(key);
            // The record is there by now.
            let indexed = match self.ask().await {
                Ok(mut replies) => expect_integer(&mut replies),
                Err(failure) => Err(failure),
            };
            indexed.map_err(Failure::in_doubt)?;
        }
        Ok(Status::Ok)
    }

    async fn remove(&mut self, key: &[u8]) -> Result<Status, Failure> {
        self.request.clear();
        self.request.command(&[b"DEL", key]);
        if self.settings.pipeline {
            self.request.command(&[b"ZREM", INDEX, key]);
            let mut replies = self.ask().await?;
            let (hash, index) = (expect_integer(&mut replies), expect_integer(&mut replies));
            all_or_in_doubt([hash, index])?;
        } else {
            expect_integer(&mut self.ask().await?)?;
            self.request.clear();
            self.request.command(&[b"ZREM", INDEX, key]);
            // The record is gone by now.
            let removed = match self.ask().await {
                Ok(mut replies) => expect_integer(&mut replies),
                Err(failure) => Err(failure),
            };
            removed.map_err(Failure::in_doubt)?;
        }
        Ok(Status::Ok)
    }

    async fn list(&mut self, key: &[u8], count: usize, wanted: Wanted<'_>, rows: &mut Rows) -> Result<Status, Failure> {
        self.find_keys(key, count).await?;
        if self.key_ends.is_empty() {
            return Ok(Status::Ok);
        }
        // Taken, since a request needs the whole session.
        let (keys, ends) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.key_ends));
        let read = self.read_all(Found { keys: &keys, ends: &ends }, wanted, rows).await;
        (self.keys, self.key_ends) = (keys, ends);
        read.map(|()| Status::Ok)
    }

    async fn find_keys(&mut self, key: &[u8], count: usize) -> Result<(), Failure> {
        self.keys.clear();
        self.key_ends.clear();
        self.request.clear();
        self.request.zrangebyscore(key, count);
        let (mut keys, mut ends) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.key_ends));
        let mut replies = self.ask().await?;
        let found = match replies.next()? {
            Some(Reply::Array(found)) => found,
            other => return Err(failure::unexpected(other)),
        };
        for _ in 0..found {
            match replies.next()? {
                Some(Reply::Bulk(key)) => keys.extend_from_slice(key),
                other => return Err(failure::unexpected(other)),
            }
            ends.push(keys.len());
        }
        (self.keys, self.key_ends) = (keys, ends);
        Ok(())
    }

    async fn read_all(&mut self, found: Found<'_>, wanted: Wanted<'_>, rows: &mut Rows) -> Result<(), Failure> {
        self.request.clear();
        for key in found.iter() {
            push_read(&mut self.request, key, wanted);
            if !self.settings.pipeline {
                read_into(&mut self.ask().await?, key, wanted, rows)?;
                self.request.clear();
            }
        }
        if self.settings.pipeline {
            let mut replies = self.ask().await?;
            for key in found.iter() {
                read_into(&mut replies, key, wanted, rows)?;
            }
        }
        Ok(())
    }
}

/// Opens connections for the node's sessions and its background attempts.
fn open(settings: &Arc<Settings>) -> impl AsyncFn() -> Result<Connection, Failure> + 'static {
    let settings = Arc::clone(settings);
    async move || Connection::open(&settings, &mut Deadline::new(settings.timeout)).await
}

/// The keys that a scan found.
#[derive(Clone, Copy)]
struct Found<'a> {
    keys: &'a [u8],
    ends: &'a [usize],
}

impl<'a> Found<'a> {
    fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends).map(move |(start, &end)| &self.keys[start..end])
    }
}

#[inline]
fn push_read(request: &mut Request, key: &[u8], wanted: Wanted<'_>) {
    match wanted {
        Wanted::All => request.hgetall(key),
        Wanted::One(name) => request.hmget(key, [name].into_iter()),
        Wanted::Names(names) => request.hmget(key, names.iter().map(String::as_bytes)),
    }
}

/// Reads the reply to [`push_read`] into `row`; `false` if there is nothing.
#[inline]
fn read_row(replies: &mut Replies<'_>, wanted: Wanted<'_>, row: &mut Row) -> Result<bool, Failure> {
    row.clear();
    let count = match replies.next()? {
        Some(Reply::Array(count)) => count,
        other => return Err(failure::unexpected(other)),
    };
    match wanted {
        Wanted::All => {
            for _ in 0..count / 2 {
                match (replies.next()?, replies.next()?) {
                    (Some(Reply::Bulk(name)), Some(Reply::Bulk(value))) => row.push(name, value),
                    (_, other) => return Err(failure::unexpected(other)),
                }
            }
        }
        Wanted::One(name) => read_field(replies, name, row)?,
        Wanted::Names(names) => {
            for name in names {
                read_field(replies, name.as_bytes(), row)?;
            }
        }
    }
    Ok(!row.is_empty())
}

#[inline]
fn read_field(replies: &mut Replies<'_>, name: &[u8], row: &mut Row) -> Result<(), Failure> {
    match replies.next()? {
        Some(Reply::Bulk(value)) => row.push(name, value),
        Some(Reply::Nil) => {}
        other => return Err(failure::unexpected(other)),
    }
    Ok(())
}

/// Reads one record of a scan; records deleted meanwhile are left out.
fn read_into(replies: &mut Replies<'_>, key: &[u8], wanted: Wanted<'_>, rows: &mut Rows) -> Result<(), Failure> {
    let row = rows.push(key);
    if !read_row(replies, wanted, row)? {
        rows.pop();
    }
    Ok(())
}

#[inline]
fn expect_ok(replies: &mut Replies<'_>) -> Result<(), Failure> {
    match replies.next()? {
        Some(Reply::Simple(b"OK")) => Ok(()),
        other => Err(failure::unexpected(other)),
    }
}

#[inline]
fn expect_integer(replies: &mut Replies<'_>) -> Result<(), Failure> {
    match replies.next()? {
        Some(Reply::Integer(_)) => Ok(()),
        other => Err(failure::unexpected(other)),
    }
}

/// How commands that were sent together ended: the first failure, which is a refusal only if each of them was refused.
fn all_or_in_doubt<const N: usize>(ended: [Result<(), Failure>; N]) -> Result<(), Failure> {
    let refused = ended.iter().all(|each| each.as_ref().is_err_and(|failure| failure.refused));
    ended.into_iter().collect::<Result<(), Failure>>().map_err(|failure| Failure { refused, ..failure })
}

impl session::Connection for RedisSession {
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.request.clear();
        self.request.command(&[b"PING"]);
        // A server with too many clients accepts the connection and sends this error in place of the first reply.
        let answered = match self.ask().await {
            Ok(mut replies) => match replies.next() {
                Ok(Some(Reply::Simple(b"PONG"))) => Ok(()),
                Ok(other) => Err(failure::unexpected(other)),
                Err(malformed) => Err(malformed.into()),
            },
            Err(failure) => Err(failure),
        };
        answered.map_err(|failure| refused(&self.settings, &failure))
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
}

impl Session for RedisSession {
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
        let put = self.put(key, row).await;
        self.last.status(put)
    }

    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        let put = self.hmset(key, row).await;
        self.last.status(put.map(|()| Status::Ok))
    }

    async fn delete(&mut self, key: &[u8]) -> Status {
        let removed = self.remove(key).await;
        self.last.status(removed)
    }

    fn refused(&self, status: Status) -> bool {
        self.last.refused(status)
    }
}

#[cfg(test)]
mod tests;
