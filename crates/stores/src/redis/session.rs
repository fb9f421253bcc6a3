//! One client, which executes YCSB's operations as Redis commands.

use std::sync::Arc;

use loadstone_load::{Projection, Row, Status};

use super::cluster::{Cluster, Member, read_redirection};
use super::connection::Connection;
use super::failure::{self, expect_array, expect_integer};
use super::reply::{Replies, Reply};
use super::request::{INDEX, Request};
use super::server::explain_refusal;
use super::settings::Settings;
use crate::deadline::Deadline;
use crate::error::{EngineError, Failure};
use crate::remote::{LastFailure, answer_by_last_failure};
use crate::session::{self, Rows, Session};

/// Maximum number of redirections per request. A key in a slot that is being moved between nodes may need two.
const REDIRECTIONS_MAX: usize = 5;

/// One client's connections, with reused buffers.
#[derive(Debug)]
pub struct RedisSession {
    settings: Arc<Settings>,
    cluster: Arc<Cluster>,
    deadline: Deadline,
    /// The connections, indexed by the number of the member.
    links: Vec<Link>,
    request: Request,
    /// The buffer for a request that must be preceded by ASKING because of a redirection.
    asking: Request,
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    last: LastFailure,
}

/// A client's connection to a member.
#[derive(Debug)]
struct Link {
    member: Arc<Member>,
    connection: Option<Connection>,
    generation: u64,
}

impl RedisSession {
    /// Creates a session that is not connected yet.
    pub(super) fn new(cluster: Arc<Cluster>, settings: &Arc<Settings>) -> Self {
        Self {
            settings: Arc::clone(settings),
            cluster,
            deadline: Deadline::new(settings.timeout),
            links: Vec::new(),
            request: Request::default(),
            asking: Request::default(),
            keys: Vec::new(),
            key_ends: Vec::new(),
            last: LastFailure::default(),
        }
    }

    /// Sends the request to the node to which a key belongs, and returns the replies.
    #[inline]
    async fn ask(&mut self, key: &[u8]) -> Result<Replies<'_>, Failure> {
        let mut at = self.cluster.find_owner(key);
        self.exchange(at, false).await?;
        let mut asks = false;
        if self.cluster.has_slots() {
            (at, asks) = self.follow(at).await?;
        }
        let mut replies = self.replies(at)?;
        if asks {
            replies.skip()?;
        }
        Ok(replies)
    }

    /// Sends the request again as long as the reply names another member. Returns the number of the last member, and
    /// whether its first reply is the reply to ASKING.
    async fn follow(&mut self, mut at: usize) -> Result<(usize, bool), Failure> {
        let mut asks = false;
        for redirections in 0..=REDIRECTIONS_MAX {
            let mut replies = self.replies(at)?;
            if asks {
                replies.skip()?;
            }
            let redirection = match replies.next()? {
                Some(Reply::Error(error)) => read_redirection(error),
                _ => None,
            };
            let Some(redirection) = redirection else { return Ok((at, asks)) };
            if redirections == REDIRECTIONS_MAX {
                break;
            }
            (at, asks) = self.cluster.follow(at, &redirection)?;
            self.exchange(at, asks).await?;
        }
        // No member executed the request: the last reply is a redirection, too.
        let message = format!("redis redirected a request more than {REDIRECTIONS_MAX} times");
        Err(Failure::new(Status::ServiceUnavailable, message).refusal())
    }

    #[inline]
    fn replies(&self, at: usize) -> Result<Replies<'_>, Failure> {
        let connection = self.links.get(at).and_then(|link| link.connection.as_ref());
        connection.map(Connection::replies).ok_or_else(|| failure::reply_failure(None))
    }

    /// Sends the request to a member. Connects if necessary, and drops a connection that has failed, because a late
    /// answer must not be read as the answer to the next request.
    #[inline]
    async fn exchange(&mut self, at: usize, asks: bool) -> Result<(), Failure> {
        if at >= self.links.len() {
            let known = self.cluster.members().into_iter().skip(self.links.len());
            self.links.extend(known.map(|member| Link { member, connection: None, generation: 0 }));
        }
        let Link { member, connection, generation } = &mut self.links[at];
        let Member { settings, node } = &**member;
        let losses = node.losses();
        let open = match connection {
            Some(open) if open.is_usable(node, losses) => open,
            connection => {
                *connection = None;
                // If the connection cannot be opened, nothing was sent.
                let opened = node.connect(open(settings), settings.timeout).await;
                *generation = node.generation();
                match opened {
                    Ok(opened) => connection.insert(opened),
                    Err(failure) => {
                        self.cluster.refresh(at);
                        return Err(failure.refusal());
                    }
                }
            }
        };
        if asks {
            self.asking.ask_before(&self.request);
        }
        let request = if asks { &self.asking } else { &self.request };
        let exchanged = open.exchange(request, settings, &mut self.deadline).await;
        if let Err(failure) = &exchanged {
            if failure.status == Status::ServiceUnavailable {
                node.lose_connection(*generation);
            }
            self.links[at].connection = None;
            self.cluster.refresh(at);
        }
        exchanged
    }

    async fn get(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> Result<Status, Failure> {
        self.request.clear();
        push_read(&mut self.request, key, projection);
        let mut replies = self.ask(key).await?;
        let matches = read_row(&mut replies, projection, row)?;
        Ok(if matches { Status::Ok } else { Status::NotFound })
    }

    async fn hmset(&mut self, key: &[u8], row: &Row) -> Result<(), Failure> {
        self.request.clear();
        self.request.hmset(key, row);
        expect_ok(&mut self.ask(key).await?)
    }

    async fn put(&mut self, key: &[u8], row: &Row) -> Result<Status, Failure> {
        if self.settings.pipeline {
            self.request.clear();
            self.request.hmset(key, row);
            self.request.zadd(key);
            let mut replies = self.ask(key).await?;
            let (hash, index) = (expect_ok(&mut replies), expect_integer(&mut replies).map(drop));
            all_or_in_doubt([hash, index])?;
        } else {
            self.hmset(key, row).await?;
            self.request.clear();
            self.request.zadd(key);
            // The record has already been written.
            let indexed = self.ask(INDEX).await.and_then(|mut replies| expect_integer(&mut replies));
            indexed.map_err(Failure::mark_unresolved)?;
        }
        Ok(Status::Ok)
    }

    async fn remove(&mut self, key: &[u8]) -> Result<Status, Failure> {
        self.request.clear();
        self.request.command(&[b"DEL", key]);
        if self.settings.pipeline {
            self.request.command(&[b"ZREM", INDEX, key]);
            let mut replies = self.ask(key).await?;
            let (hash, index) = (expect_integer(&mut replies).map(drop), expect_integer(&mut replies).map(drop));
            all_or_in_doubt([hash, index])?;
        } else {
            expect_integer(&mut self.ask(key).await?)?;
            self.request.clear();
            self.request.command(&[b"ZREM", INDEX, key]);
            // The record has already been deleted.
            let removed = self.ask(INDEX).await.and_then(|mut replies| expect_integer(&mut replies));
            removed.map_err(Failure::mark_unresolved)?;
        }
        Ok(Status::Ok)
    }

    async fn list(
        &mut self,
        key: &[u8],
        count: usize,
        projection: Projection<'_>,
        rows: &mut Rows,
    ) -> Result<Status, Failure> {
        self.find_keys(key, count).await?;
        if self.key_ends.is_empty() {
            return Ok(Status::Ok);
        }
        // The buffers are taken out of the session, because a request borrows the whole session.
        let (keys, ends) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.key_ends));
        let read = self.read_all(Found { keys: &keys, ends: &ends }, projection, rows).await;
        (self.keys, self.key_ends) = (keys, ends);
        read.map(|()| Status::Ok)
    }

    async fn find_keys(&mut self, key: &[u8], count: usize) -> Result<(), Failure> {
        self.keys.clear();
        self.key_ends.clear();
        self.request.clear();
        self.request.zrangebyscore(key, count);
        let (mut keys, mut ends) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.key_ends));
        let mut replies = self.ask(INDEX).await?;
        for _ in 0..expect_array(&mut replies)? {
            match replies.next()? {
                Some(Reply::Bulk(key)) => keys.extend_from_slice(key),
                other => return Err(failure::reply_failure(other)),
            }
            ends.push(keys.len());
        }
        (self.keys, self.key_ends) = (keys, ends);
        Ok(())
    }

    async fn read_all(
        &mut self,
        matches: Found<'_>,
        projection: Projection<'_>,
        rows: &mut Rows,
    ) -> Result<(), Failure> {
        self.request.clear();
        for key in matches.iter() {
            push_read(&mut self.request, key, projection);
            if !self.settings.pipeline {
                read_into(&mut self.ask(key).await?, key, projection, rows)?;
                self.request.clear();
            }
        }
        if self.settings.pipeline {
            let mut replies = self.ask(INDEX).await?;
            for key in matches.iter() {
                read_into(&mut replies, key, projection, rows)?;
            }
        }
        Ok(())
    }
}

/// Opens connections to a node, both for sessions and for the node's background attempts.
fn open(settings: &Arc<Settings>) -> impl AsyncFn() -> Result<Connection, Failure> + 'static {
    let settings = Arc::clone(settings);
    async move || Connection::open(&settings, &mut Deadline::new(settings.timeout)).await
}

/// The keys that a scan has found.
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
fn push_read(request: &mut Request, key: &[u8], projection: Projection<'_>) {
    match projection {
        Projection::All => request.hgetall(key),
        Projection::One(name) => request.hmget(key, [name].into_iter()),
        Projection::Names(names) => request.hmget(key, names.iter().map(String::as_bytes)),
    }
}

/// Reads the reply to [`push_read`] into `row`; returns `false` if there is no record.
#[inline]
fn read_row(replies: &mut Replies<'_>, projection: Projection<'_>, row: &mut Row) -> Result<bool, Failure> {
    row.clear_fields();
    let count = expect_array(replies)?;
    match projection {
        Projection::All => {
            for _ in 0..count / 2 {
                match (replies.next()?, replies.next()?) {
                    (Some(Reply::Bulk(name)), Some(Reply::Bulk(value))) => row.push_field(name, value),
                    (_, other) => return Err(failure::reply_failure(other)),
                }
            }
        }
        Projection::One(name) => read_field(replies, name, row)?,
        Projection::Names(names) => {
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
        Some(Reply::Bulk(value)) => row.push_field(name, value),
        Some(Reply::Nil) => {}
        other => return Err(failure::reply_failure(other)),
    }
    Ok(())
}

/// Reads one record of a scan. Records that were deleted during the scan are omitted.
fn read_into(
    replies: &mut Replies<'_>,
    key: &[u8],
    projection: Projection<'_>,
    rows: &mut Rows,
) -> Result<(), Failure> {
    let row = rows.push(key);
    if !read_row(replies, projection, row)? {
        rows.pop();
    }
    Ok(())
}

#[inline]
fn expect_ok(replies: &mut Replies<'_>) -> Result<(), Failure> {
    match replies.next()? {
        Some(Reply::Simple(b"OK")) => Ok(()),
        other => Err(failure::reply_failure(other)),
    }
}

/// Combines the outcomes of commands that were sent together: returns the first failure, if there is one. This failure
/// is a refusal only if every command was refused.
fn all_or_in_doubt<const N: usize>(ended: [Result<(), Failure>; N]) -> Result<(), Failure> {
    let refused = ended.iter().all(|outcome| outcome.as_ref().is_err_and(|failure| failure.refused));
    ended.into_iter().collect::<Result<(), Failure>>().map_err(|failure| Failure { refused, ..failure })
}

impl session::Connection for RedisSession {
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.request.clear();
        self.request.command(&[b"PING"]);
        // A server with too many clients accepts the connection, and sends an error in place of the first reply.
        for (at, member) in self.cluster.members().iter().enumerate() {
            let answered = self.exchange(at, false).await.and_then(|()| match self.replies(at)?.next()? {
                Some(Reply::Simple(b"PONG")) => Ok(()),
                other => Err(failure::reply_failure(other)),
            });
            answered.map_err(|failure| explain_refusal(&member.settings, &failure))?;
        }
        Ok(())
    }

    answer_by_last_failure!(last);
}

impl Session for RedisSession {
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
}

#[cfg(test)]
mod tests;
