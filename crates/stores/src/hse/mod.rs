//! HSE, loaded at run time through its C API.
//!
//! A table is a KVS of a single KVDB, and a record's value is in YCSB's stored form. Scans use a cursor over the whole
//! KVS. The bindings for HSE 1 and 2 iterated from prefix to prefix, which works only for keys of the form
//! `user<digits>`.
//!
//! Durability: a put is in memory at once, and in the journal within `durability.interval_ms`. HSE has no level between
//! this one and the device, because the journal's files are written with `O_SYNC` (`wal_file.c`): data that the
//! operating system has is also on the device. `hse_kvdb_sync` without flags syncs the end of the journal before it
//! returns (`wal_sync` in `wal.c`). It notes the fill level of the buffers, including the last put, wakes the journal's
//! thread, and waits until the written data reaches that level. Without a journal, it waits until the data itself is
//! written.

mod api;
mod guarantee;
mod idle;
mod kvdb;
mod library;
mod retired;
mod settings;
mod subsystem;

use std::ffi::c_void;
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use loadstone_load::Status;

use crate::about::{About, directory, setting};
use crate::error::{EngineError, Failure};
use crate::guarantee::Guarantee;
use crate::key_value::{KeyValue, KeyValueStore};
use crate::options::{Durability, Options};
use api::{Api, HseFault, Ptr};
use kvdb::{Kvdb, refuse_action};
use settings::Settings;
use subsystem::Subsystem;

/// The HSE store.
pub type Hse = KeyValueStore<HseEngine>;

/// Maximum length of a key in HSE (`HSE_KVS_KEY_LEN_MAX`).
pub const KEY_LEN_MAX: usize = 1_344;
/// Maximum length of a value in HSE (`HSE_KVS_VALUE_LEN_MAX`).
pub const VALUE_LEN_MAX: usize = 1 << 20;

/// Maximum time that `settle` waits for compactions.
const SETTLE_MAX: Duration = Duration::from_secs(600);
/// Initial size of a read buffer: YCSB's record of 10 × 100 bytes is smaller than 1.3 kB.
const BUFFER_LEN: usize = 4 << 10;

/// An open KVS of an open KVDB.
#[derive(Debug)]
pub struct HseEngine {
    api: Api,
    /// Null after the KVS has been closed.
    kvs: Ptr,
    kvdb: Kvdb,
    /// Whether each write waits for `hse_kvdb_sync`.
    sync: bool,
    /// The first write that failed permanently, for example because the device was full. HSE then stops writing, and
    /// `hse_kvdb_sync` may wait forever, because the thread that would answer has ended (`wal_sync_notifier`).
    broken: OnceLock<HseFault>,
    home: PathBuf,
    guarantee: Guarantee,
}

// SAFETY: hse.h documents put, get, delete, cursor_create and sync as thread safe. A cursor stays on its thread.
// create, open and close, which are not thread safe, run before and after the sessions.
unsafe impl Send for HseEngine {}
// SAFETY: as above.
unsafe impl Sync for HseEngine {}

/// A client's buffer, to which values are copied.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        Self(vec![0; BUFFER_LEN])
    }
}

impl HseEngine {
    fn close_kvs(&mut self) -> Result<(), HseFault> {
        let kvs = std::mem::replace(&mut self.kvs, std::ptr::null_mut());
        if kvs.is_null() {
            return Ok(());
        }
        // SAFETY: the KVS was open, and no session uses it any longer.
        self.api.check(unsafe { (self.api.kvdb_kvs_close)(kvs) })
    }

    /// Completes a write by waiting for the requested durability.
    #[inline]
    fn finish_write(&self, key: &[u8], value_len: usize, error: u64) -> Result<(), Failure> {
        self.api.check(error).and_then(|()| if self.sync { self.kvdb.sync() } else { Ok(()) }).map_err(|fault| {
            let failure = failure(key, value_len, fault.clone());
            if matches!(failure.status, Status::NoSpace | Status::Error) {
                self.broken.get_or_init(|| fault);
            }
            failure
        })
    }

    /// Reads up to `count` records from a cursor.
    ///
    /// # Safety
    /// The cursor must belong to this KVS.
    unsafe fn read_cursor(
        &self,
        cursor: Ptr,
        from: &[u8],
        count: usize,
        mut visit: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HseFault> {
        let api = &self.api;
        // SAFETY: the caller guarantees the cursor. The key and the value stay valid until the cursor moves.
        unsafe {
            // HSE does not check the length of this key, so the key is truncated here. The removed part matters only
            // for a key that equals the remaining part and so precedes the start.
            let (seek, cut) = from.split_at(from.len().min(KEY_LEN_MAX));
            if !seek.is_empty() {
                let (key, len) = (seek.as_ptr().cast(), seek.len());
                api.check((api.kvs_cursor_seek)(cursor, 0, key, len, std::ptr::null_mut(), std::ptr::null_mut()))?;
            }
            let mut left = count;
            while left > 0 {
                let (mut key, mut value) = (std::ptr::null::<c_void>(), std::ptr::null::<c_void>());
                let (mut key_len, mut value_len, mut end) = (0usize, 0usize, false);
                api.check((api.kvs_cursor_read)(
                    cursor,
                    0,
                    &raw mut key,
                    &raw mut key_len,
                    &raw mut value,
                    &raw mut value_len,
                    &raw mut end,
                ))?;
                if end {
                    break;
                }
                let key = bytes(key, key_len);
                if !cut.is_empty() && key == seek {
                    continue;
                }
                visit(key, bytes(value, value_len));
                left -= 1;
            }
            Ok(())
        }
    }
}

/// # Safety
/// `len` bytes at `at` must be readable for as long as the slice is used.
unsafe fn bytes<'a>(at: *const c_void, len: usize) -> &'a [u8] {
    // SAFETY: the caller guarantees the bytes. The pointer of an empty value may be null.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at.cast(), len) } }
}

#[cold]
fn failure(key: &[u8], value_len: usize, fault: HseFault) -> Failure {
    if key.is_empty() || key.len() > KEY_LEN_MAX {
        let message = format!("HSE takes keys of 1 to {KEY_LEN_MAX} bytes, not {}", key.len());
        return Failure::new(Status::BadRequest, message);
    }
    if value_len > VALUE_LEN_MAX {
        let message = format!("HSE takes values of up to {VALUE_LEN_MAX} bytes, not {value_len}");
        return Failure::new(Status::BadRequest, message);
    }
    let status = match fault.errno {
        libc::ENOSPC | libc::EDQUOT => Status::NoSpace,
        libc::EROFS => Status::Forbidden,
        _ => Status::Error,
    };
    Failure::new(status, fault.message)
}

impl KeyValue for HseEngine {
    const ABOUT: About = About {
        name: "hse",
        line: "HSE 2.x or 3.x, loaded at run time (hse.kvdb_home)",
        networked: false,
        properties: &[
            directory("hse.kvdb_home"),
            setting("hse.config"),
            setting("hse.cursor_pfx_len"),
            setting("hse.library"),
            directory("hse.kvdb.home"),
            setting("hse.gparams"),
            setting("hse.kvdb.cparams"),
            setting("hse.kvdb.rparams"),
            setting("hse.kvs.cparams"),
            setting("hse.kvs.rparams"),
            setting("hse.mpool_name"),
            setting("hse.params"),
            setting("hse.config_path"),
        ],
    };

    type Client = Buffer;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let settings = Settings::new(options)?;
        let is_present = kvdb::exists(&settings.home);
        if !is_present && !options.create {
            return Err(kvdb::refuse_missing(&settings.home));
        }
        let api = library::load(options)?;
        // HSE stores the paths of its data files, and a relative path would depend on the working directory.
        let home =
            fs::create_dir_all(&settings.home).and_then(|()| std::path::absolute(&settings.home)).map_err(|error| {
                EngineError::failed(format!("cannot create {}: {error}", settings.home.display()))
                    .hint("set hse.kvdb_home to a directory that you may read and write")
            })?;
        if api.is_3() {
            kvdb::refuse_format_of_2(&home)?;
        }
        let subsystem = Subsystem::start(api, &settings)?;
        if !is_present {
            kvdb::create(&api, &settings, &home)?;
        }
        let start = Instant::now();
        let kvdb = Kvdb::open(subsystem, &settings, &home)?;
        let opening = start.elapsed();
        let kvs = kvdb.table(&settings, options, &home)?;
        let guarantee = guarantee::read_guarantee(&kvdb, kvs, options, &settings, &home, opening);
        Ok(Self {
            api,
            kvs,
            kvdb,
            sync: options.durability != Durability::None,
            broken: OnceLock::new(),
            home,
            guarantee,
        })
    }

    fn guarantee(&self) -> Guarantee {
        self.guarantee.clone()
    }

    #[inline]
    fn get(&self, Buffer(buffer): &mut Buffer, key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, Failure> {
        loop {
            let (mut exists, mut len) = (false, 0usize);
            // SAFETY: the KVS is open, and the buffer has the length that is passed.
            let got = unsafe {
                (self.api.kvs_get)(
                    self.kvs,
                    0,
                    std::ptr::null_mut(),
                    key.as_ptr().cast(),
                    key.len(),
                    &raw mut exists,
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    &raw mut len,
                )
            };
            self.api.check(got).map_err(|fault| failure(key, 0, fault))?;
            if !exists {
                return Ok(false);
            }
            // HSE truncates a value that does not fit, without an error. It reports the full length, with one
            // exception: for a compressed value that is still in memory, it reports the number of bytes copied
            // (`c0kvs_get_excl` in c0_kvset.c). So a value that fills the buffer may have been truncated.
            if len < buffer.len() {
                visit(&buffer[..len]);
                return Ok(true);
            }
            buffer.resize((len + 1).max(2 * buffer.len()), 0);
        }
    }

    #[inline]
    fn put(&self, _: &mut Buffer, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        // SAFETY: the KVS is open, and HSE copies the key and the value.
        let put = unsafe {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            (self.api.kvs_put)(self.kvs, 0, std::ptr::null_mut(), k, key.len(), v, value.len())
        };
        self.finish_write(key, value.len(), put)
    }

    fn remove(&self, _: &mut Buffer, key: &[u8]) -> Result<(), Failure> {
        // SAFETY: as in `put`.
        let removed =
            unsafe { (self.api.kvs_delete)(self.kvs, 0, std::ptr::null_mut(), key.as_ptr().cast(), key.len()) };
        self.finish_write(key, 0, removed)
    }

    fn scan(&self, _: &mut Buffer, from: &[u8], count: usize, visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let api = &self.api;
        let mut cursor: Ptr = std::ptr::null_mut();
        // SAFETY: the KVS is open, and the cursor is destroyed before the function returns.
        unsafe {
            let (none, filter) = (std::ptr::null_mut(), std::ptr::null());
            api.check((api.kvs_cursor_create)(self.kvs, 0, none, filter, 0, &raw mut cursor))
                .and_then(|()| {
                    let read = self.read_cursor(cursor, from, count, visit);
                    let destroyed = api.check((api.kvs_cursor_destroy)(cursor));
                    read.and(destroyed)
                })
                .map_err(|fault| Failure::new(Status::Error, fault.message))
        }
    }

    fn settle(&self) -> Result<(), EngineError> {
        if let Some(fault) = self.broken.get() {
            return Err(refuse_action("sync", &self.home, &[], fault));
        }
        match self.kvdb.sync() {
            // A KVDB that was opened read-only has nothing to sync.
            Err(fault) if fault.errno != libc::EROFS => return Err(refuse_action("sync", &self.home, &[], &fault)),
            _ => {}
        }
        if idle::wait_for_idle(SETTLE_MAX) {
            return Ok(());
        }
        Err(EngineError::failed(format!("HSE is still working in the background after {} s", SETTLE_MAX.as_secs())))
    }

    fn close(mut self) -> Result<(), EngineError> {
        let kvs = self.close_kvs();
        let kvdb = self.kvdb.close();
        kvs.and(kvdb).map_err(|fault| refuse_action("close", &self.home, &[], &fault))
    }
}

impl Drop for HseEngine {
    fn drop(&mut self) {
        // After this the KVDB is dropped, and then the subsystem.
        let _ = self.close_kvs();
    }
}
