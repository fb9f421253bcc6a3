//! LMDB, compiled in: a copy-on-write B+ tree in a memory map, with one writer at a time.
//!
//! A table is a named database. Each read is a separate read transaction: beginning and ending a transaction takes 0.05
//! µs of a get's 1 µs. A transaction per client would save too little to justify a snapshot that pins old pages between
//! operations.
//!
//! A commit writes its pages with `pwrite`. They are then in the page cache and survive the end of the process, even if
//! they are not synced; only `device` needs LMDB's `fdatasync`. `none` lets LMDB change the map itself, which more than
//! halves the time of a put. The data nevertheless survives if the process is killed, because the map *is* the page
//! cache. However, writes may reach the disk in any order, so a crash of the machine may leave the file unusable.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ::heed::types::Bytes;
use ::heed::{Database, Env, EnvFlags, EnvOpenOptions, Error, MdbError};
use loadstone_load::Status;

use crate::about::{About, directory, setting};
use crate::embedded::{self, Cause, Engine, Space};
use crate::error::{EngineError, Failure};
use crate::guarantee::Guarantee;
use crate::key_value::{KeyValue, KeyValueStore};
use crate::options::{Durability, Options};

/// The version of the crate that contains LMDB.
pub const HEED: &str = "0.22.1";

/// The LMDB store.
pub type Lmdb = KeyValueStore<LmdbEngine>;

const ENGINE: Engine = embedded::LMDB;

/// The default size of the map. It is address space, not memory or disk: the file grows as it is written. This size is
/// half of the address space (39 bits) that the smallest 64-bit ARM kernels give a process, and exceeds the data of
/// most benchmarks.
const MAP_SIZE_DEFAULT: u64 = 256 << 30;
/// LMDB needs whole pages. The largest page size of Linux is 64 KiB.
const MAP_SIZE_UNIT: u64 = 64 << 10;
/// Maximum length of a key in LMDB (`MDB_MAXKEYSIZE`).
const KEY_LEN_MAX: usize = 511;
/// Reader slots in addition to the clients' slots: LMDB assigns a slot to each thread that reads, until the thread
/// ends.
const SPARE_READERS: usize = 126;
/// The unit in which blocks are allocated for a writable map.
const CHUNK: u64 = 16 << 20;
/// Number of bytes that a put may need in addition to its value, for copies of branch pages, the free list and their
/// roots.
const PUT_OVERHEAD: u64 = 1 << 20;

/// An open LMDB environment.
#[derive(Debug)]
pub struct LmdbEngine {
    env: Env,
    table: Database<Bytes, Bytes>,
    durability: Durability,
    directory: PathBuf,
    space: Space,
    map_size: u64,
    /// Present only for a writable map.
    blocks: Option<Blocks>,
}

/// The disk blocks of a writable map. The map's file is as long as the map, but sparse. Writing to a hole that a full
/// device cannot fill causes a `SIGBUS`, which ends the process without a message. So blocks are allocated before each
/// put: there, a full device causes an ordinary error.
#[derive(Debug)]
struct Blocks {
    file: File,
    page_len: u64,
    /// End of the allocated blocks in the file, in bytes. It is written only while LMDB's writer lock is held.
    end: AtomicU64,
}

impl Blocks {
    fn new(env: &Env) -> Result<Self, Error> {
        let (page_len, end) = (u64::from(env.stat().page_size), AtomicU64::new(0));
        env.try_clone_inner_file().map(|file| Self { file, page_len, end })
    }

    fn reserve(&self, end: u64) -> io::Result<()> {
        if end <= self.end.load(Ordering::Relaxed) {
            return Ok(());
        }
        // On a nearly full device, only the blocks that each put needs are allocated.
        let chunk = end.next_multiple_of(CHUNK);
        let exact = || self.allocate(end).map(|()| end);
        let allocated = self.allocate(chunk).map(|()| chunk).or_else(|_| exact());
        let end = allocated?;
        self.end.store(end, Ordering::Relaxed);
        Ok(())
    }

    fn allocate(&self, end: u64) -> io::Result<()> {
        // SAFETY: this is a plain system call on a file that is open for writing.
        let done = unsafe { libc::fallocate(self.file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, end as i64) } == 0;
        let error = io::Error::last_os_error();
        // Some file systems (for example, some network file systems) lack fallocate; LMDB then writes without it.
        let is_done = done || error.raw_os_error() == Some(libc::EOPNOTSUPP);
        is_done.then_some(()).ok_or(error)
    }
}

fn flags(durability: Durability) -> EnvFlags {
    match durability {
        Durability::None => EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::MAP_ASYNC,
        Durability::Os => EnvFlags::NO_SYNC,
        Durability::Device => EnvFlags::empty(),
    }
}

fn map_size(options: &Options) -> Result<u64, EngineError> {
    let requested = options.bytes("lmdb.mapsize", MAP_SIZE_DEFAULT)?.max(MAP_SIZE_UNIT);
    requested.checked_next_multiple_of(MAP_SIZE_UNIT).filter(|size| usize::try_from(*size).is_ok()).ok_or_else(|| {
        EngineError::usage(format!("lmdb.mapsize exceeds this machine's address space: {requested}")).hint("try 256G")
    })
}

/// The cause of an error.
fn cause(error: &Error) -> Cause {
    match error {
        Error::Io(error) => Cause::from_io(error),
        Error::Mdb(MdbError::MapFull) => Cause::Full,
        _ => Cause::Other,
    }
}

fn cannot_open(directory: &Path, error: &Error) -> EngineError {
    match error {
        Error::EnvAlreadyOpened => ENGINE.cannot_open(directory, "it is already open", Cause::Locked),
        Error::Io(io) if io.raw_os_error() == Some(libc::ENOMEM) => {
            EngineError::failed(format!("LMDB cannot map {}: {error}", directory.display()))
                .hint("set a smaller lmdb.mapsize, or raise the limit on address space (ulimit -v)")
        }
        _ => ENGINE.cannot_open(directory, &error.to_string(), cause(error)),
    }
}

impl LmdbEngine {
    fn failure(&self, error: &Error) -> Failure {
        match error {
            // mdb_page_alloc reports this, even during a commit, which then aborts before it writes (mdb_txn_commit).
            Error::Mdb(MdbError::MapFull) => {
                let message = format!("{error}: set an lmdb.mapsize above {}", self.map_size);
                Failure::new(Status::NoSpace, message).refusal()
            }
            Error::Mdb(MdbError::BadValSize) => Failure::new(Status::BadRequest, error.to_string()),
            // LMDB reports a truncated write as its own I/O error.
            _ => self.space.failure(error.to_string(), cause(error)),
        }
    }

    fn commit_change(&self, change: impl FnOnce(&mut ::heed::RwTxn<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut transaction = self.env.write_txn().map_err(|error| self.failure(&error).refusal())?;
        // Dropping a transaction aborts it: mdb_txn_abort "abandons all the operations of the transaction". A commit
        // that failed, however, may have written its pages.
        change(&mut transaction).map_err(Failure::refusal)?;
        transaction.commit().map_err(|error| self.failure(&error))
    }

    /// Allocates blocks for a put of `len` bytes. The caller holds the writer lock, so the last page does not change
    /// before the put.
    fn reserve_space(&self, len: usize) -> Result<(), Failure> {
        let Some(blocks) = &self.blocks else { return Ok(()) };
        let used = (self.env.info().last_page_number as u64 + 1) * blocks.page_len;
        let reserved = blocks.reserve((used + len as u64 + PUT_OVERHEAD).min(self.map_size));
        reserved.map_err(|error| self.space.failure(error.to_string(), Cause::from_io(&error)))
    }
}

impl KeyValue for LmdbEngine {
    const ABOUT: About = About {
        name: "lmdb",
        line: "LMDB (lmdb.dir)",
        networked: false,
        properties: &[directory("lmdb.dir"), setting("lmdb.mapsize")],
    };

    type Client = ();

    fn open(options: &Options) -> Result<Self, EngineError> {
        let map_size = map_size(options)?;
        let directory = ENGINE.directory(options)?;
        let open_failed = |error: Error| cannot_open(&directory, &error);
        let mut builder = EnvOpenOptions::new();
        builder.map_size(map_size as usize).max_dbs(1).max_readers((options.clients + SPARE_READERS) as u32);
        // SAFETY: the flags reduce durability but never locking, and only LMDB changes the mapped file.
        let env = unsafe { builder.flags(flags(options.durability)).open(&directory) }.map_err(open_failed)?;
        // A database that is larger than the requested map gets the map that it needs.
        let map_size = env.info().map_size as u64;
        let blocks = match options.durability {
            Durability::None => Some(Blocks::new(&env).map_err(open_failed)?),
            Durability::Os | Durability::Device => None,
        };
        let reader = env.read_txn().map_err(open_failed)?;
        let known = env.open_database(&reader, Some(&options.table)).map_err(open_failed)?;
        // A handle opened in a read transaction belongs to the environment only after that transaction has committed.
        reader.commit().map_err(open_failed)?;
        let table = match known {
            Some(table) => table,
            None if options.create => {
                let mut writer = env.write_txn().map_err(open_failed)?;
                if let Some(blocks) = &blocks {
                    blocks.reserve(PUT_OVERHEAD).map_err(|error| open_failed(error.into()))?;
                }
                let table = env.create_database(&mut writer, Some(&options.table)).map_err(open_failed)?;
                writer.commit().map_err(open_failed)?;
                table
            }
            None => return Err(ENGINE.missing_table(&directory, &options.table)),
        };
        let space = Space::new(&directory);
        Ok(Self { env, table, durability: options.durability, directory, space, map_size, blocks })
    }

    fn guarantee(&self) -> Guarantee {
        // Even in LMDB's asynchronous mode, writes survive the end of the process: LMDB has no weaker level.
        let (durability, how) = match self.durability {
            Durability::None => (Durability::Os, "writable map, not synced; lost only if the machine crashes"),
            Durability::Os => (Durability::Os, "pages written at each commit, not synced"),
            Durability::Device => (Durability::Device, "pages written and synced at each commit"),
        };
        let lmdb = ::heed::lmdb_version();
        Guarantee::new(durability, how)
            .fact("version", format!("{}.{}.{} (heed {HEED})", lmdb.major, lmdb.minor, lmdb.patch))
            .fact("directory", self.directory.display().to_string())
            // The only memory that LMDB uses is the kernel's page cache.
            .fact("cache_bytes", "0")
            .fact("map_bytes", self.map_size.to_string())
            .fact("compression", "none")
    }

    #[expect(clippy::inline_always, reason = "as `KeyValueSession::read_now`")]
    #[inline(always)]
    fn get(&self, (): &mut (), key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, Failure> {
        ENGINE.check_key(key, KEY_LEN_MAX)?;
        let reader = self.env.read_txn().map_err(|error| self.failure(&error))?;
        let value = self.table.get(&reader, key).map_err(|error| self.failure(&error))?;
        Ok(value.map(&mut visit).is_some())
    }

    #[inline]
    fn put(&self, (): &mut (), key: &[u8], value: &[u8]) -> Result<(), Failure> {
        ENGINE.check_key(key, KEY_LEN_MAX)?;
        self.commit_change(|writer| {
            self.reserve_space(value.len())?;
            self.table.put(writer, key, value).map_err(|error| self.failure(&error))
        })
    }

    fn remove(&self, (): &mut (), key: &[u8]) -> Result<(), Failure> {
        ENGINE.check_key(key, KEY_LEN_MAX)?;
        self.commit_change(|writer| {
            self.reserve_space(0)?;
            self.table.delete(writer, key).map(drop).map_err(|error| self.failure(&error))
        })
    }

    fn scan(&self, (): &mut (), from: &[u8], count: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let failed = |error: Error| self.failure(&error);
        let reader = self.env.read_txn().map_err(failed)?;
        // LMDB cannot seek to an empty key, which would precede every record.
        let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (first, Bound::Unbounded);
        for entry in self.table.range(&reader, &range).map_err(failed)?.take(count) {
            let (key, value) = entry.map_err(failed)?;
            visit(key, value);
        }
        Ok(())
    }

    fn settle(&self) -> Result<(), EngineError> {
        self.env
            .force_sync()
            .map_err(|error| EngineError::failed(format!("LMDB cannot sync {}: {error}", self.directory.display())))
    }

    fn close(self) -> Result<(), EngineError> {
        // A machine crash must not lose the result of a load that took hours, so its writes are synced.
        self.settle()?;
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}
