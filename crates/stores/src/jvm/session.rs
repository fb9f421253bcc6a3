//! One client in the JVM. A request is written to memory that the engine and the host share; one call executes it and
//! writes the answer to the same memory.

use jni_sys::jobject;
use loadstone_load::{Projection, Row, Status};

use super::env::Env;
use super::exit;
use super::machine::Machine;
use crate::error::EngineError;
use crate::session::{Connection, Rows, Session};

/// Initial size of a client's memory: several times the size of a record with YCSB's defaults.
const MEMORY_BYTES: usize = 16 << 10;

// The host's operation numbers.
const READ: i32 = 0;
const SCAN: i32 = 1;
const INSERT: i32 = 2;
const UPDATE: i32 = 3;
const DELETE: i32 = 4;
const CLEANUP: i32 = 5;
const FETCH: i32 = 6;

/// A client of a store in the JVM, which stays on the thread that created it.
#[derive(Debug)]
pub struct JvmSession {
    machine: &'static Machine,
    env: Env,
    client: jobject,
    memory: Memory,
    error: Option<String>,
    /// The client's name, for connection errors.
    name: String,
    hint: &'static str,
}

impl JvmSession {
    /// Creates a client of a store. The client is attached but not yet connected; `hint` is for a failure to connect.
    pub fn new(machine: &'static Machine, store: jobject, name: &str, hint: &'static str) -> Result<Self, EngineError> {
        let env = machine.env()?;
        let failed = |message: String| EngineError::failed(format!("{name} cannot create a client: {message}"));
        let client = machine.host.client(env, store).map_err(failed)?;
        let memory = Memory::new(MEMORY_BYTES);
        let session = Self { machine, env, client, memory, error: None, name: name.to_owned(), hint };
        session.share().map_err(failed)?;
        Ok(session)
    }

    fn share(&self) -> Result<(), String> {
        // SAFETY: the memory belongs to the session, and only the session calls the client.
        unsafe { self.machine.host.share(self.env, self.client, self.memory.start, self.memory.len) }
    }

    /// Enlarges the memory. Its contents are lost.
    #[cold]
    fn grow(&mut self, len: usize) -> Result<(), String> {
        // The old memory is freed when the client has the new memory; until then, the client writes to the old memory.
        let old = std::mem::replace(&mut self.memory, Memory::new(len.next_power_of_two()));
        let shared = self.share();
        if shared.is_err() {
            self.memory = old;
        }
        shared
    }

    /// Writes the request, and returns its length.
    #[inline]
    fn write(&mut self, key: &[u8], parts: Parts<'_>) -> Result<usize, String> {
        let len = key.len() + parts.len();
        if i32::try_from(len).is_err() {
            return Err("a request of more than 2 GiB".to_owned());
        }
        if len > self.memory.len {
            self.grow(len)?;
        }
        let memory = self.memory.bytes_mut();
        memory[..key.len()].copy_from_slice(key);
        parts.write(&mut memory[key.len()..len]);
        Ok(len)
    }

    /// Executes one operation. Returns the operation's status and the length of the answer.
    #[inline]
    fn ask_host(&mut self, operation: i32, key: &[u8], parts: Parts<'_>, count: usize) -> (Status, usize) {
        let len = match self.write(key, parts) {
            Ok(len) => len,
            Err(message) => return self.note_failure(message),
        };
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let mut answer =
            self.machine.host.call(self.env, self.client, [operation, key.len() as i32, len as i32, count]);
        if answer < 0 {
            if let Err(message) = self.grow(answer.unsigned_abs() as usize) {
                return self.note_failure(message);
            }
            answer = self.machine.host.call(self.env, self.client, [FETCH, 0, 0, 0]);
        }
        if answer <= 0 {
            let thrown = self.env.check_exception();
            let message = thrown.map_or_else(
                |thrown| self.machine.host.describe(self.env, &thrown),
                |()| "the host returned no message".to_owned(),
            );
            return self.note_failure(message);
        }
        (self.machine.host.status((answer & 0xff) as usize - 1), (answer >> 8) as usize)
    }

    #[cold]
    fn note_failure(&mut self, message: String) -> (Status, usize) {
        self.error = Some(message);
        (Status::Error, 0)
    }

    #[cold]
    fn fail_malformed(&mut self) -> Status {
        self.error = Some("the JVM host's answer is not a record".to_owned());
        Status::UnexpectedState
    }
}

impl Connection for JvmSession {
    async fn connect(&mut self) -> Result<(), EngineError> {
        self.machine
            .host
            .connect(self.env, self.client)
            .map_err(|message| EngineError::failed(format!("{} cannot connect: {message}", self.name)).hint(self.hint))
    }

    fn last_error(&mut self) -> Option<String> {
        self.error.take().or_else(|| self.machine.host.failure_message(self.env, self.client))
    }

    async fn cleanup(&mut self) -> Status {
        self.ask_host(CLEANUP, &[], Parts::Names(Projection::All), 0).0
    }
}

impl Session for JvmSession {
    async fn read(&mut self, key: &[u8], projection: Projection<'_>, row: &mut Row) -> Status {
        row.clear_fields();
        let (status, len) = self.ask_host(READ, key, Parts::Names(projection), 0);
        if len > 0 && row.decode_fields(&self.memory.bytes()[..len], Projection::All).is_err() {
            return self.fail_malformed();
        }
        status
    }

    async fn scan(&mut self, key: &[u8], count: usize, projection: Projection<'_>, rows: &mut Rows) -> Status {
        rows.clear();
        let (status, len) = self.ask_host(SCAN, key, Parts::Names(projection), count);
        let mut rest = &self.memory.bytes()[..len];
        while !rest.is_empty() {
            let pair = part(&mut rest).zip(part(&mut rest));
            let read = pair.is_some_and(|(key, record)| rows.push(key).decode_fields(record, Projection::All).is_ok());
            if !read {
                return self.fail_malformed();
            }
        }
        status
    }

    async fn insert(&mut self, key: &[u8], row: &Row) -> Status {
        self.ask_host(INSERT, key, Parts::Row(row), 0).0
    }

    async fn update(&mut self, key: &[u8], row: &Row) -> Status {
        self.ask_host(UPDATE, key, Parts::Row(row), 0).0
    }

    async fn delete(&mut self, key: &[u8]) -> Status {
        self.ask_host(DELETE, key, Parts::Names(Projection::All), 0).0
    }
}

impl Drop for JvmSession {
    fn drop(&mut self) {
        if !exit::has_ended() {
            self.env.delete_global(self.client);
        }
    }
}

/// Splits a part off the front. A part consists of a length and that number of bytes.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, behind) = rest.split_first_chunk::<4>()?;
    let (part, behind) = behind.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    *rest = behind;
    Some(part)
}

/// The part of a request that follows the key.
#[derive(Clone, Copy)]
enum Parts<'a> {
    Row(&'a Row),
    Names(Projection<'a>),
}

impl Parts<'_> {
    #[inline]
    fn len(self) -> usize {
        match self {
            Self::Row(row) => row.bytes().len(),
            Self::Names(Projection::All) => 0,
            Self::Names(Projection::One(name)) => 4 + name.len(),
            Self::Names(Projection::Names(names)) => names.iter().map(|name| 4 + name.len()).sum(),
        }
    }

    /// Writes these parts, whose total length must equal the length of `out`.
    #[inline]
    fn write(self, out: &mut [u8]) {
        match self {
            Self::Row(row) => out.copy_from_slice(row.bytes()),
            Self::Names(Projection::All) => {}
            Self::Names(Projection::One(name)) => write_name(out, name),
            Self::Names(Projection::Names(names)) => {
                let mut at = 0;
                for name in names {
                    write_name(&mut out[at..at + 4 + name.len()], name.as_bytes());
                    at += 4 + name.len();
                }
            }
        }
    }
}

#[inline]
fn write_name(out: &mut [u8], name: &[u8]) {
    out[..4].copy_from_slice(&(name.len() as u32).to_be_bytes());
    out[4..].copy_from_slice(name);
}

/// Memory that Java accesses as a direct buffer, but only during a call.
#[derive(Debug)]
struct Memory {
    start: *mut u8,
    len: usize,
}

impl Memory {
    fn new(len: usize) -> Self {
        let memory = Box::leak(vec![0; len].into_boxed_slice());
        Self { start: memory.as_mut_ptr(), len }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: this session owns the memory until it is dropped, and no call is in flight during the access.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` created the memory from a box of this length.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(self.start, self.len)) });
    }
}
