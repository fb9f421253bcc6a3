//! RocksDB, loaded at run time through its C API.
//!
//! The layout follows YCSB's binding: a column family for each table, a file `CF_NAMES` with the names of the column
//! families, and record values in YCSB's stored form. So that comparisons with YCSB are exact, the options are also the
//! binding's (level-style compaction, and twice as many threads as processors), unless `rocksdb.optionsfile` or
//! `rocksdb.options` changes them.

mod api;
mod library;
mod settings;

use std::ffi::{CStr, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libloading::os::unix::Library;

use crate::about::{About, directory, setting};
use crate::c_api::c_text;
use crate::embedded::{self, Cause, Engine};
use crate::error::{EngineError, FULL_DEVICE, Failure};
use crate::guarantee::Guarantee;
use crate::key_value::{KeyValue, KeyValueStore};
use crate::options::{Durability, Options};
use api::{Api, Ptr};
pub use library::{NEWEST, YCSB};
use settings::Settings;

/// The RocksDB store.
pub type RocksDb = KeyValueStore<RocksDbEngine>;

/// Maximum time that `settle` waits for compactions.
const SETTLE_MAX: Duration = Duration::from_secs(600);

/// An open RocksDB database.
#[derive(Debug)]
pub struct RocksDbEngine {
    api: Api,
    /// The library, which must stay loaded as long as `api` is used.
    _library: Library,
    db: Ptr,
    families: Vec<(String, Ptr)>,
    /// The handle of the table in use, which is one of `families`.
    table: Ptr,
    read_options: Ptr,
    write_options: Ptr,
    settings: Settings,
    durability: Durability,
    directory: PathBuf,
    version: String,
}

// SAFETY: RocksDB's database, column family, and read and write option objects may be used from any number of threads
// at the same time (rocksdb wiki, "Basic Operations: Concurrency"). The other fields are plain data.
unsafe impl Send for RocksDbEngine {}
// SAFETY: as above.
unsafe impl Sync for RocksDbEngine {}

impl RocksDbEngine {
    /// The names of the column families on disk; only `default` for a new database.
    fn families_on_disk(api: &Api, settings: &Settings, directory: &Path) -> Result<Vec<String>, EngineError> {
        if !directory.join("CURRENT").exists() {
            return Ok(vec!["default".to_owned()]);
        }
        let path = c_text(directory.as_os_str().as_bytes())?;
        let mut len = 0usize;
        // SAFETY: the options object is alive. The list is read up to `len`, and then freed by RocksDB.
        unsafe {
            let list = api
                .call(|error| (api.list_column_families)(settings.database(), path.as_ptr(), &raw mut len, error))
                .map_err(|text| cannot_open(directory, &text))?;
            let names = (0..len).map(|i| CStr::from_ptr(*list.add(i)).to_string_lossy().into_owned()).collect();
            (api.list_column_families_destroy)(list, len);
            Ok(names)
        }
    }

    /// Writes `CF_NAMES`, which YCSB's binding needs to open the database. The file is written either completely or not
    /// at all.
    fn write_family_names(&self) -> Result<(), EngineError> {
        let mut names: String = self.families.iter().map(|(name, _)| format!("{name}\n")).collect();
        if !names.starts_with("default\n") {
            names.insert_str(0, "default\n");
        }
        let (partial, path) = (self.directory.join("CF_NAMES.partial"), self.directory.join("CF_NAMES"));
        // An unchanged file is not written again, so that a full device does not cause an error.
        if fs::read_to_string(&path).is_ok_and(|old| old == names) {
            return Ok(());
        }
        fs::write(&partial, names)
            .and_then(|()| fs::rename(&partial, &path))
            .map_err(|error| EngineError::failed(format!("cannot write {}: {error}", path.display())))
    }

    fn flush(&self) -> Result<(), EngineError> {
        let Some(flush_cf) = self.api.flush_cf else {
            return Ok(());
        };
        // SAFETY: the database and the handle are open.
        unsafe {
            let options = (self.api.flushoptions_create)();
            let flushed = self.api.call(|error| flush_cf(self.db, options, self.table, error));
            (self.api.flushoptions_destroy)(options);
            flushed.map_err(|text| EngineError::failed(format!("RocksDB cannot flush: {text}")))
        }
    }

    fn text(&self, property: &CStr) -> Option<String> {
        // SAFETY: the database and the handle are open.
        unsafe { self.api.property(self.db, self.table, property) }
    }

    fn number(&self, property: &CStr) -> u64 {
        self.text(property).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

const ENGINE: Engine = embedded::ROCKSDB;

/// The cause of an error from RocksDB. The C API returns only a string, which ends with the system's message.
fn cause(text: &str) -> Cause {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&["Permission denied", "Operation not permitted", "Read-only file system"]) {
        return Cause::Forbidden;
    }
    if has(&["/LOCK: "]) {
        return Cause::Locked;
    }
    if has(&FULL_DEVICE) { Cause::Full } else { Cause::Other }
}

fn cannot_open(directory: &Path, text: &str) -> EngineError {
    if text.contains("VersionEdit") || text.contains("unknown") {
        return EngineError::failed(format!("RocksDB cannot open {}: {text}", directory.display()))
            .hint("a newer RocksDB wrote it: select the newer version with -p rocksdb.version=VERSION");
    }
    ENGINE.cannot_open(directory, text, cause(text))
}

impl KeyValue for RocksDbEngine {
    const ABOUT: About = About {
        name: "rocksdb",
        line: "RocksDB, loaded at run time (rocksdb.dir)",
        networked: false,
        properties: &[
            directory("rocksdb.dir"),
            setting("rocksdb.version"),
            setting("rocksdb.library"),
            setting("rocksdb.optionsfile"),
            setting("rocksdb.options"),
        ],
    };

    type Client = ();

    fn open(options: &Options) -> Result<Self, EngineError> {
        // Errors in the properties are detected before anything is created.
        let visit = library::find(options)?;
        let (library, api) = Api::load(&visit.path)?;
        let settings = Settings::new(&api, options)?;
        let directory = ENGINE.directory(options).inspect_err(|_| settings.destroy(&api))?;
        let mut names = Self::families_on_disk(&api, &settings, &directory)?;
        if !names.contains(&options.table) {
            if !options.create {
                settings.destroy(&api);
                return Err(ENGINE.missing_table(&directory, &options.table));
            }
            names.push(options.table.clone());
        }
        let path = c_text(directory.as_os_str().as_bytes())?;
        let c_names = names.iter().map(|name| c_text(name.as_str())).collect::<Result<Vec<_>, _>>()?;
        let name_ptrs: Vec<*const c_char> = c_names.iter().map(|name| name.as_ptr()).collect();
        let family_options: Vec<Ptr> = names.iter().map(|name| settings.family(name)).collect();
        let mut handles: Vec<Ptr> = vec![std::ptr::null_mut(); names.len()];
        // SAFETY: the three arrays have `names.len()` entries and outlive the call.
        let db = unsafe {
            api.call(|error| {
                (api.open_column_families)(
                    settings.database(),
                    path.as_ptr(),
                    names.len() as i32,
                    name_ptrs.as_ptr(),
                    family_options.as_ptr(),
                    handles.as_mut_ptr(),
                    error,
                )
            })
        };
        let db = match db {
            Ok(db) => db,
            Err(text) => {
                settings.destroy(&api);
                return Err(cannot_open(&directory, &text));
            }
        };
        let families: Vec<(String, Ptr)> = names.into_iter().zip(handles).collect();
        let table = families.iter().find(|(name, _)| *name == options.table).map_or(std::ptr::null_mut(), |f| f.1);
        // SAFETY: these are plain constructors and setters.
        let (read_options, write_options) = unsafe {
            let write_options = (api.writeoptions_create)();
            (api.writeoptions_set_sync)(write_options, u8::from(options.durability == Durability::Device));
            (api.writeoptions_disable_WAL)(write_options, i32::from(options.durability == Durability::None));
            ((api.readoptions_create)(), write_options)
        };
        let version = visit.version.unwrap_or_else(|| visit.path.display().to_string());
        let durability = options.durability;
        let engine = Self {
            api,
            _library: library,
            db,
            families,
            table,
            read_options,
            write_options,
            settings,
            durability,
            directory,
            version,
        };
        engine.write_family_names()?;
        Ok(engine)
    }

    fn guarantee(&self) -> Guarantee {
        let how = match self.durability {
            Durability::None => "no write-ahead log",
            Durability::Os => "write-ahead log, not synced",
            Durability::Device => "write-ahead log, synced at each write",
        };
        Guarantee::new(self.durability, how)
            .fact("version", self.version.as_str())
            .fact("directory", self.directory.display().to_string())
            // Versions before 5.17 do not report the capacity.
            .fact("cache_bytes", self.text(c"rocksdb.block-cache-capacity").unwrap_or_else(|| "unknown".into()))
            .fact("compression", settings::compression_on_disk(&self.directory).unwrap_or_else(|| "unknown".into()))
    }

    #[inline]
    fn get(&self, (): &mut (), key: &[u8], mut visit: impl FnMut(&[u8])) -> Result<bool, Failure> {
        // SAFETY: the database, the handle and the options are open. The pinned value is read before it is released.
        unsafe {
            let slice = self
                .api
                .call(|error| {
                    let at = key.as_ptr().cast();
                    (self.api.get_pinned_cf)(self.db, self.read_options, self.table, at, key.len(), error)
                })
                .map_err(Failure::from_text)?;
            if slice.is_null() {
                return Ok(false);
            }
            let mut len = 0usize;
            let value = (self.api.pinnableslice_value)(slice, &raw mut len);
            if !value.is_null() {
                visit(std::slice::from_raw_parts(value.cast(), len));
            }
            (self.api.pinnableslice_destroy)(slice);
            Ok(!value.is_null())
        }
    }

    #[inline]
    fn put(&self, (): &mut (), key: &[u8], value: &[u8]) -> Result<(), Failure> {
        // SAFETY: as in `get`, and RocksDB copies the key and the value.
        unsafe {
            self.api.call(|error| {
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                (self.api.put_cf)(self.db, self.write_options, self.table, k, key.len(), v, value.len(), error);
            })
        }
        .map_err(Failure::from_text)
    }

    fn remove(&self, (): &mut (), key: &[u8]) -> Result<(), Failure> {
        // SAFETY: as in `get`.
        unsafe {
            self.api.call(|error| {
                let at = key.as_ptr().cast();
                (self.api.delete_cf)(self.db, self.write_options, self.table, at, key.len(), error);
            })
        }
        .map_err(Failure::from_text)
    }

    fn scan(&self, (): &mut (), from: &[u8], count: usize, mut visit: impl FnMut(&[u8], &[u8])) -> Result<(), Failure> {
        let api = &self.api;
        // SAFETY: the key and the value of a valid iterator stay in place until it moves. The iterator is destroyed
        // before the function returns.
        unsafe {
            let iterator = (api.create_iterator_cf)(self.db, self.read_options, self.table);
            (api.iter_seek)(iterator, from.as_ptr().cast(), from.len());
            let mut left = count;
            while left > 0 && (api.iter_valid)(iterator) != 0 {
                let (mut key_len, mut value_len) = (0usize, 0usize);
                let key = (api.iter_key)(iterator, &raw mut key_len);
                let value = (api.iter_value)(iterator, &raw mut value_len);
                visit(
                    std::slice::from_raw_parts(key.cast(), key_len),
                    std::slice::from_raw_parts(value.cast(), value_len),
                );
                left -= 1;
                (api.iter_next)(iterator);
            }
            let ended = api.call(|error| (api.iter_get_error)(iterator, error));
            (api.iter_destroy)(iterator);
            ended.map_err(Failure::from_text)
        }
    }

    fn settle(&self) -> Result<(), EngineError> {
        self.flush()?;
        if let (Some(wait), Some(create), Some(destroy)) = (
            self.api.wait_for_compact,
            self.api.wait_for_compact_options_create,
            self.api.wait_for_compact_options_destroy,
        ) {
            // SAFETY: the database is open, and the options are owned.
            return unsafe {
                let options = create();
                let waited = self.api.call(|error| wait(self.db, options, error));
                destroy(options);
                waited.map_err(|text| EngineError::failed(format!("RocksDB's compactions failed: {text}")))
            };
        }
        // Versions before 8 have no call that waits, so their counters are polled until all of them are 0.
        let start = Instant::now();
        while start.elapsed() < SETTLE_MAX {
            let busy = self.number(c"rocksdb.compaction-pending")
                + self.number(c"rocksdb.num-running-compactions")
                + self.number(c"rocksdb.num-running-flushes");
            if busy == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(EngineError::failed(format!("RocksDB is still compacting after {} s", SETTLE_MAX.as_secs())))
    }

    fn close(self) -> Result<(), EngineError> {
        self.write_family_names()
    }
}

impl Drop for RocksDbEngine {
    fn drop(&mut self) {
        // SAFETY: nothing uses the objects any longer. The handles are destroyed before the database.
        unsafe {
            for (_, handle) in &self.families {
                (self.api.column_family_handle_destroy)(*handle);
            }
            (self.api.close)(self.db);
            (self.api.readoptions_destroy)(self.read_options);
            (self.api.writeoptions_destroy)(self.write_options);
            self.settings.destroy(&self.api);
        }
    }
}
