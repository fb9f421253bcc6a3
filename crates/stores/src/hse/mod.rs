//! HSE, loaded at run time through its C API.
//!
//! A table is a KVS of the one KVDB; a record's value is in YCSB's stored form. Scans use a cursor over the whole KVS:
//! the bindings for HSE 1 and 2 walked from prefix to prefix, which fits no keys but `user<digits>`.
//!
//! Durability: a put is in memory, and in the journal within `durability.interval_ms`. There is no level between that
//! and the device, because the journal's files are written with `O_SYNC` (`wal_file.c`): what the operating system has,
//! the device has too. `hse_kvdb_sync` without flags puts the journal's end on the device before it returns: it notes
//! how far the buffers are filled, our put included, wakes the journal's thread, and waits until what is written
//! reaches that far (`wal_sync` in `wal.c`). Without a journal it waits until the data themselves are written.

mod api;
mod idle;
mod library;
mod retired;
mod settings;
mod subsystem;

use std::ffi::c_void;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadstone_load::Status;

use crate::error::{Failure, StoreError};
use crate::key_value::{KeyValue, KeyValueStore};
use crate::options::{Durability, Options};
use crate::promise::Promise;
use api::{Api, Arguments, Fault, Ptr, c_text};
use settings::Settings;
use subsystem::Subsystem;

/// The HSE store.
pub type Hse = KeyValueStore<HseEngine>;

/// Keys that HSE takes (`HSE_KVS_KEY_LEN_MAX`).
pub const KEY_LEN_MAX: usize = 1_344;
/// Values that HSE takes (`HSE_KVS_VALUE_LEN_MAX`).
pub const VALUE_LEN_MAX: usize = 1 << 20;

/// The file that every KVDB has in its home.
const MARKER: &str = "kvdb.meta";
/// Longest that `settle` waits for compactions.
const SETTLE_MAX: Duration = Duration::from_secs(600);
/// An opening that takes longer in a virtual machine is told about. Without the trap it takes 0.1 s.
const OPEN_SLOW: Duration = Duration::from_secs(3);
/// A read buffer's first size: YCSB's record of 10 × 100 bytes is below 1.3 kB.
const BUFFER_LEN: usize = 4 << 10;

/// An open KVDB; dropping it closes it.
#[derive(Debug)]
struct Kvdb {
    /// Null once it is closed.
    handle: Ptr,
    subsystem: Subsystem,
}

impl Kvdb {
    fn close(&mut self) -> Result<(), Fault> {
        let handle = std::mem::replace(&mut self.handle, std::ptr::null_mut());
        if handle.is_null() {
            return Ok(());
        }
        let api = self.subsystem.api;
        // SAFETY: it was open, and its KVS is closed.
        api.check(unsafe { (api.kvdb_close)(handle) })
    }
}

impl Drop for Kvdb {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// An open KVS of an open KVDB.
#[derive(Debug)]
pub struct HseEngine {
    api: Api,
    /// Null once it is closed.
    kvs: Ptr,
    kvdb: Kvdb,
    /// Whether each write waits for `hse_kvdb_sync`.
    sync: bool,
    home: PathBuf,
    promise: Promise,
}

// SAFETY: hse.h calls put, get, delete, cursor_create and sync thread safe; a cursor stays on its thread; create, open
// and close, which are not, run before and after the sessions.
unsafe impl Send for HseEngine {}
// SAFETY: as above.
unsafe impl Sync for HseEngine {}

/// What one client keeps: the buffer that values are copied into.
#[derive(Debug)]
pub struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        Self(vec![0; BUFFER_LEN])
    }
}

/// What cannot be done to which directory, and what to do about it.
fn cannot(action: &str, home: &Path, parameters: &[String], fault: &Fault) -> StoreError {
    let message = format!("HSE cannot {action} {}: {}", home.display(), fault.words);
    match fault.errno {
        libc::EINVAL if !parameters.is_empty() => StoreError::usage(message).hint(format!(
            "it was given {}; to read in its log which one it refuses, add -p hse.gparams=logging.destination=stderr",
            parameters.join(",")
        )),
        libc::EBUSY => StoreError::failed(message).hint("another process has it open"),
        libc::EACCES | libc::EPERM | libc::EROFS => {
            StoreError::failed(message).hint("set hse.kvdb_home to a directory that you may read and write")
        }
        libc::ENOSPC | libc::EDQUOT => StoreError::failed(message).hint("make room on the device, or choose another"),
        libc::EPROTO => StoreError::failed(message)
            .hint("another major version of HSE made it: load it anew into an empty directory"),
        _ => StoreError::failed(message).hint("HSE's log says more: add -p hse.gparams=logging.destination=stderr"),
    }
}

/// Creates the KVDB if it is missing.
fn create(api: &Api, settings: &Settings, home: &Path) -> Result<(), StoreError> {
    let path = c_text(home.as_os_str().as_bytes())?;
    // SAFETY: the texts outlive the call.
    let made = Arguments::new(&settings.kvdb_create)?
        .with(|count, values| unsafe { (api.kvdb_create)(path.as_ptr(), count, values) });
    match api.check(made) {
        Err(fault) if fault.errno != libc::EEXIST => {
            Err(cannot("create a KVDB in", home, &settings.kvdb_create, &fault))
        }
        _ => Ok(()),
    }
}

impl Kvdb {
    fn open(subsystem: Subsystem, settings: &Settings, home: &Path) -> Result<Self, StoreError> {
        let path = c_text(home.as_os_str().as_bytes())?;
        let api = subsystem.api;
        let mut handle: Ptr = std::ptr::null_mut();
        // SAFETY: as in `create`.
        let opened = Arguments::new(&settings.kvdb_open)?
            .with(|count, values| unsafe { (api.kvdb_open)(path.as_ptr(), count, values, &raw mut handle) });
        api.check(opened)
            .map_err(|fault| cannot("open", home, &settings.kvdb_open, &fault))?;
        Ok(Self { handle, subsystem })
    }

    /// Opens the table's KVS, and creates it first if it is missing and may be made.
    fn table(&self, settings: &Settings, options: &Options, home: &Path) -> Result<Ptr, StoreError> {
        let api = self.subsystem.api;
        let name = c_text(options.table.as_str())?;
        let parameters = Arguments::new(&settings.kvs_open)?;
        let open = || {
            let mut kvs: Ptr = std::ptr::null_mut();
            // SAFETY: the KVDB is open, the texts outlive the call.
            let opened = parameters.with(|count, values| unsafe {
                (api.kvdb_kvs_open)(self.handle, name.as_ptr(), count, values, &raw mut kvs)
            });
            api.check(opened).map(|()| kvs)
        };
        let action = format!("open KVS {} in", options.table);
        match open() {
            Ok(kvs) => return Ok(kvs),
            Err(fault) if fault.errno != libc::ENOENT => {
                return Err(cannot(&action, home, &settings.kvs_open, &fault));
            }
            Err(_) if !options.create => {
                return Err(StoreError::failed(format!(
                    "no table \"{}\" in the HSE database {}",
                    options.table,
                    home.display()
                ))
                .hint(load_first(home)));
            }
            Err(_) => {}
        }
        // SAFETY: as above.
        let made = Arguments::new(&settings.kvs_create)?
            .with(|count, values| unsafe { (api.kvdb_kvs_create)(self.handle, name.as_ptr(), count, values) });
        if let Err(fault) = api.check(made)
            && fault.errno != libc::EEXIST
        {
            return Err(cannot(
                &format!("create KVS {} in", options.table),
                home,
                &settings.kvs_create,
                &fault,
            ));
        }
        open().map_err(|fault| cannot(&action, home, &settings.kvs_open, &fault))
    }
}

fn load_first(home: &Path) -> String {
    format!(
        "load one first: loadstone ycsb load hse -p hse.kvdb_home={}",
        home.display()
    )
}

/// The version in the name of the file that meson installs, `libhse-3.so.3.0.0`; HSE's API does not tell it.
fn version(path: &Path) -> Option<&str> {
    let (_, version) = path.file_name()?.to_str()?.split_once(".so.")?;
    version.contains('.').then_some(version)
}

/// Whether the processor says that a hypervisor runs it.
fn in_virtual_machine() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines()
            .find(|line| line.starts_with("flags"))
            .is_some_and(|line| line.contains(" hypervisor"))
    })
}

/// What to tell about an opening that took so long.
fn slow_open(took: Duration, in_virtual_machine: bool) -> Option<String> {
    (took > OPEN_SLOW && in_virtual_machine).then(|| {
        format!(
            "opened in {:.1} s: in a virtual machine, stock HSE traps to the hypervisor on CPUID in every checksum, in \
             reads and writes too; a libhse whose crc32c asks once does not",
            took.as_secs_f64()
        )
    })
}

impl HseEngine {
    fn close_kvs(&mut self) -> Result<(), Fault> {
        let kvs = std::mem::replace(&mut self.kvs, std::ptr::null_mut());
        if kvs.is_null() {
            return Ok(());
        }
        // SAFETY: it was open, and no session uses it any more.
        self.api.check(unsafe { (self.api.kvdb_kvs_close)(kvs) })
    }

    fn sync(&self) -> Result<(), Fault> {
        // SAFETY: the KVDB is open. No flags: wait.
        self.api.check(unsafe { (self.api.kvdb_sync)(self.kvdb.handle, 0) })
    }

    /// After a write: wait for what was asked for.
    #[inline]
    fn written(&self, key: &[u8], value_len: usize, error: u64) -> Result<(), Failure> {
        self.api
            .check(error)
            .and_then(|()| if self.sync { self.sync() } else { Ok(()) })
            .map_err(|fault| failure(key, value_len, fault))
    }

    /// Reads up to `count` records off a cursor.
    ///
    /// # Safety
    /// The cursor must be one of this KVS.
    unsafe fn read_cursor(
        &self,
        cursor: Ptr,
        from: &[u8],
        count: usize,
        mut found: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Fault> {
        let api = &self.api;
        // SAFETY: as required of the caller; key and value stay until the cursor moves.
        unsafe {
            // HSE does not check the length of this key. What is cut off matters only for a key that is equal without
            // it, and so comes before.
            let (seek, cut) = from.split_at(from.len().min(KEY_LEN_MAX));
            if !seek.is_empty() {
                let (key, len) = (seek.as_ptr().cast(), seek.len());
                api.check((api.kvs_cursor_seek)(
                    cursor,
                    0,
                    key,
                    len,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                ))?;
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
                found(key, bytes(value, value_len));
                left -= 1;
            }
            Ok(())
        }
    }
}

/// # Safety
/// `len` bytes at `at` must be readable for as long as the slice is used.
unsafe fn bytes<'a>(at: *const c_void, len: usize) -> &'a [u8] {
    // SAFETY: as required of the caller. The pointer of an empty value may be null.
    if len == 0 {
        &[]
    } else {
        unsafe { std::slice::from_raw_parts(at.cast(), len) }
    }
}

#[cold]
fn failure(key: &[u8], value_len: usize, fault: Fault) -> Failure {
    if key.is_empty() || key.len() > KEY_LEN_MAX {
        let words = format!("HSE takes keys of 1 to {KEY_LEN_MAX} bytes, not {}", key.len());
        return Failure::new(Status::BadRequest, words);
    }
    if value_len > VALUE_LEN_MAX {
        let words = format!("HSE takes values of up to {VALUE_LEN_MAX} bytes, not {value_len}");
        return Failure::new(Status::BadRequest, words);
    }
    let status = match fault.errno {
        libc::ENOSPC | libc::EDQUOT => Status::NoSpace,
        libc::EROFS => Status::Forbidden,
        _ => Status::Error,
    };
    Failure::new(status, fault.words)
}

/// What is promised, in HSE's own terms and as HSE itself reports it: a `kvdb.conf` in the home wins over everything.
fn promise(kvdb: &Kvdb, kvs: Ptr, options: &Options, settings: &Settings, home: &Path, opening: Duration) -> Promise {
    let api = kvdb.subsystem.api;
    // SAFETY: both are open.
    let of_kvdb = |name| unsafe { api::parameter(api.kvdb_param_get, kvdb.handle, name) };
    // SAFETY: as above.
    let of_kvs = |name| unsafe { api::parameter(api.kvs_param_get, kvs, name) };
    let journal = of_kvdb(c"durability.enabled").is_none_or(|enabled| enabled != "false");
    let interval_ms = of_kvdb(c"durability.interval_ms").unwrap_or_else(|| "100".to_owned());
    let (durability, how) = match (options.durability, journal) {
        (Durability::None, true) => (
            Durability::None,
            format!("journal written within {interval_ms} ms, not waited for"),
        ),
        (Durability::None, false) => (Durability::None, "no journal".to_owned()),
        (Durability::Os, true) => (
            Durability::Device,
            "hse_kvdb_sync at each write: journal on the device; HSE has nothing between this and none".to_owned(),
        ),
        (Durability::Device, true) => (
            Durability::Device,
            "hse_kvdb_sync at each write: journal on the device".to_owned(),
        ),
        (_, false) => (
            Durability::Device,
            "no journal; hse_kvdb_sync at each write: data on the device".to_owned(),
        ),
    };
    let path = api.path();
    let version = path.as_deref().and_then(|path| version(path).map(str::to_owned));
    let unknown = || "unknown".to_owned();
    let mut promise = Promise::new(durability, how)
        .fact(
            "version",
            version
                .or(path.map(|path| path.display().to_string()))
                .unwrap_or_else(unknown),
        )
        .fact("directory", home.display().to_string())
        // Its data files are mapped: what it caches is in the kernel's page cache.
        .fact("cache_bytes", "0")
        .fact(
            "compression",
            // HSE 3's name, and HSE 2's.
            of_kvs(c"value.compression.default")
                .or_else(|| of_kvs(c"compression.value.algorithm"))
                .unwrap_or_else(unknown),
        )
        .fact("prefix.length", of_kvs(c"prefix.length").unwrap_or_else(unknown))
        .fact(
            "throttling.init_policy",
            of_kvdb(c"throttling.init_policy").unwrap_or_else(unknown),
        );
    if let Some(length) = settings.cursor_prefix {
        promise = promise.fact(
            "cursor_pfx_len",
            format!("{length}, without effect: scans use no prefix"),
        );
    }
    match slow_open(opening, in_virtual_machine()) {
        Some(words) => promise.fact("note", words),
        None => promise,
    }
}

impl KeyValue for HseEngine {
    type Client = Buffer;

    fn open(options: &Options) -> Result<Self, StoreError> {
        let settings = Settings::new(options)?;
        let made = settings.home.join(MARKER).exists();
        if !made && !options.create {
            return Err(
                StoreError::failed(format!("no HSE database in {}", settings.home.display()))
                    .hint(load_first(&settings.home)),
            );
        }
        let api = library::load(options)?;
        // HSE keeps the paths of its data: a relative one would be lost with the working directory.
        let home = fs::create_dir_all(&settings.home)
            .and_then(|()| std::path::absolute(&settings.home))
            .map_err(|error| StoreError::failed(format!("cannot make {}: {error}", settings.home.display())))?;
        let subsystem = Subsystem::start(api, &settings)?;
        if !made {
            create(&api, &settings, &home)?;
        }
        let start = Instant::now();
        let kvdb = Kvdb::open(subsystem, &settings, &home)?;
        let opening = start.elapsed();
        let kvs = kvdb.table(&settings, options, &home)?;
        let promise = promise(&kvdb, kvs, options, &settings, &home, opening);
        Ok(Self {
            api,
            kvs,
            kvdb,
            sync: options.durability != Durability::None,
            home,
            promise,
        })
    }

    fn promise(&self) -> Promise {
        self.promise.clone()
    }

    #[inline]
    fn get(&self, Buffer(buffer): &mut Buffer, key: &[u8], mut found: impl FnMut(&[u8])) -> Result<bool, Failure> {
        loop {
            let (mut exists, mut len) = (false, 0usize);
            // SAFETY: the KVS is open; the buffer is as long as it is said to be.
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
            // A value that does not fit is cut, without an error. Its length is then the whole one, but a compressed
            // value that is still in memory reports what was copied (`c0kvs_get_excl` in c0_kvset.c): a full buffer
            // proves nothing.
            if len < buffer.len() {
                found(&buffer[..len]);
                return Ok(true);
            }
            buffer.resize((len + 1).max(2 * buffer.len()), 0);
        }
    }

    #[inline]
    fn put(&self, _: &mut Buffer, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        // SAFETY: the KVS is open; HSE copies key and value.
        let put = unsafe {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            (self.api.kvs_put)(self.kvs, 0, std::ptr::null_mut(), k, key.len(), v, value.len())
        };
        self.written(key, value.len(), put)
    }

    fn remove(&self, _: &mut Buffer, key: &[u8]) -> Result<(), Failure> {
        // SAFETY: as in `put`.
        let removed =
            unsafe { (self.api.kvs_delete)(self.kvs, 0, std::ptr::null_mut(), key.as_ptr().cast(), key.len()) };
        self.written(key, 0, removed)
    }

    fn scan(&self, _: &mut Buffer, from: &[u8], count: usize, found: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let api = &self.api;
        let mut cursor: Ptr = std::ptr::null_mut();
        // SAFETY: the KVS is open; the cursor is destroyed before we return.
        unsafe {
            let (none, filter) = (std::ptr::null_mut(), std::ptr::null());
            api.check((api.kvs_cursor_create)(self.kvs, 0, none, filter, 0, &raw mut cursor))
                .and_then(|()| {
                    let read = self.read_cursor(cursor, from, count, found);
                    let destroyed = api.check((api.kvs_cursor_destroy)(cursor));
                    read.and(destroyed)
                })
                .map_err(|fault| Failure::new(Status::Error, fault.words))
        }
    }

    fn settle(&self) -> Result<(), StoreError> {
        match self.sync() {
            // A KVDB that is open for reading only has nothing to sync.
            Err(fault) if fault.errno != libc::EROFS => return Err(cannot("sync", &self.home, &[], &fault)),
            _ => {}
        }
        if idle::wait(SETTLE_MAX) {
            return Ok(());
        }
        Err(StoreError::failed(format!(
            "HSE still works in the background after {} s",
            SETTLE_MAX.as_secs()
        )))
    }

    fn close(mut self) -> Result<(), StoreError> {
        let kvs = self.close_kvs();
        let kvdb = self.kvdb.close();
        kvs.and(kvdb).map_err(|fault| cannot("close", &self.home, &[], &fault))
    }
}

impl Drop for HseEngine {
    fn drop(&mut self) {
        // The KVDB follows by its own drop, and the subsystem by its.
        let _ = self.close_kvs();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_files_name() {
        let of = |name: &str| version(Path::new(name)).map(str::to_owned);
        assert_eq!(of("/usr/lib/libhse-3.so.3.0.0"), Some("3.0.0".into()));
        assert_eq!(of("/usr/lib/libhse-3.so.0"), None);
        assert_eq!(of("/usr/lib/libhse-3.so"), None);
    }

    #[test]
    fn only_a_slow_opening_in_a_virtual_machine_is_told_about() {
        assert_eq!(slow_open(Duration::from_millis(100), true), None);
        assert_eq!(slow_open(Duration::from_secs(12), false), None);
        let words = slow_open(Duration::from_millis(12_140), true).unwrap();
        assert!(
            words.starts_with("opened in 12.1 s: in a virtual machine, stock HSE traps to the hypervisor on CPUID")
        );
    }
}
