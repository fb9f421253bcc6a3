//! RocksDB's options: either YCSB's options or an options file, with the changes that an options string makes.

use std::ffi::{CStr, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::api::{Api, Ptr};
use crate::c_api::c_text;
use crate::error::EngineError;
use crate::options::Options;

/// The level INFO of RocksDB's info log, as in YCSB.
const INFO: i32 = 1;
/// The memtable budget for `OptimizeLevelStyleCompaction`: the default in RocksDB's Java API.
const MEMTABLE_BUDGET_BYTES: u64 = 512 << 20;

/// The options of the database and its column families.
#[derive(Debug)]
pub struct Settings {
    database: Ptr,
    /// The options of column families by name, from an options file. A family without an entry uses the options of the
    /// family `default` or, if there are none, the database's options.
    families: Vec<(String, Ptr)>,
}

impl Settings {
    /// Reads the options from the properties.
    pub fn new(api: &Api, options: &Options) -> Result<Self, EngineError> {
        let mut settings = match options.get("rocksdb.optionsfile") {
            Some(file) => Self::from_file(api, Path::new(file))?,
            None => Self::ycsb(api),
        };
        // SAFETY: these are setters on an owned options object.
        unsafe {
            (api.options_set_create_if_missing)(settings.database, u8::from(options.create));
            (api.options_set_create_missing_column_families)(settings.database, 1);
        }
        if let Some(text) = options.get("rocksdb.options") {
            settings.apply_options(api, text)?;
        }
        Ok(settings)
    }

    fn ycsb(api: &Api) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, usize::from) as i32 * 2;
        // SAFETY: these are constructors and setters.
        let database = unsafe {
            let database = (api.options_create)();
            (api.options_increase_parallelism)(database, threads);
            (api.options_set_max_background_compactions)(database, threads);
            (api.options_set_info_log_level)(database, INFO);
            (api.options_optimize_level_style_compaction)(database, MEMTABLE_BUDGET_BYTES);
            database
        };
        Self { database, families: Vec::new() }
    }

    /// Reads options in the format of RocksDB's `OPTIONS-nnnnnn` files. The C API reads the newest such file in a
    /// directory, so the file is copied to an empty directory.
    fn from_file(api: &Api, file: &Path) -> Result<Self, EngineError> {
        let broken = |text: String| {
            EngineError::usage(format!("rocksdb.optionsfile {}: {text}", file.display()))
                .hint("start from the OPTIONS-nnnnnn file of an existing database")
        };
        let (Some(load), Some(environment)) = (api.load_latest_options, api.create_default_env) else {
            return Err(broken("this RocksDB is too old to read options files".to_owned()));
        };
        let directory = std::env::temp_dir().join(format!("loadstone-options-{}", std::process::id()));
        let copied = fs::create_dir_all(&directory).and_then(|()| fs::copy(file, directory.join("OPTIONS-000001")));
        copied.map_err(|error| broken(error.to_string()))?;
        let path = c_text(directory.as_os_str().as_bytes())?;
        let mut database: Ptr = std::ptr::null_mut();
        let mut count = 0usize;
        let mut names: *mut *mut c_char = std::ptr::null_mut();
        let mut options: *mut Ptr = std::ptr::null_mut();
        // SAFETY: the out-pointers are local, and the arrays have `count` entries. The arrays take a few hundred bytes
        // and are never freed, because their destructor would also destroy the options that are still in use.
        let loaded = unsafe {
            let env = environment();
            api.call(|error| {
                load(
                    path.as_ptr(),
                    env,
                    true,
                    std::ptr::null_mut(),
                    &raw mut database,
                    &raw mut count,
                    &raw mut names,
                    &raw mut options,
                    error,
                );
            })
        };
        let _ = fs::remove_dir_all(&directory);
        loaded.map_err(broken)?;
        // SAFETY: as above.
        let families = unsafe {
            (0..count)
                .map(|i| (CStr::from_ptr(*names.add(i)).to_string_lossy().into_owned(), *options.add(i)))
                .collect()
        };
        Ok(Self { database, families })
    }

    /// Applies `name=value;name=value`, in RocksDB's own syntax, to the database and to every family.
    fn apply_options(&mut self, api: &Api, text: &str) -> Result<(), EngineError> {
        let c = c_text(text)?;
        let apply = |base: Ptr| {
            // SAFETY: RocksDB reads `base` and fills `created`.
            unsafe {
                let created = (api.options_create)();
                api.call(|error| (api.get_options_from_string)(base, c.as_ptr(), created, error)).map(|()| created)
            }
            .map_err(|error| {
                EngineError::usage(format!("rocksdb.options: {error}"))
                    .hint("the form is name=value;name=value, as in write_buffer_size=64M;compression=kLZ4Compression")
            })
        };
        self.database = apply(self.database)?;
        for (_, family) in &mut self.families {
            *family = apply(*family)?;
        }
        Ok(())
    }

    /// The database's options.
    pub fn database(&self) -> Ptr {
        self.database
    }

    /// A column family's options.
    pub fn family(&self, name: &str) -> Ptr {
        let by_name = |family: &str| self.families.iter().find(|(own, _)| own == family).map(|f| f.1);
        by_name(name).or_else(|| by_name("default")).unwrap_or(self.database)
    }

    /// Frees the options.
    pub fn destroy(&self, api: &Api) {
        // SAFETY: this is called only once, when nothing uses the options any longer.
        unsafe {
            for (_, family) in &self.families {
                (api.options_destroy)(*family);
            }
            (api.options_destroy)(self.database);
        }
    }
}

/// The compression of the last column family in a database's newest options file; in the order of the levels if the
/// levels differ.
pub fn compression_on_disk(directory: &Path) -> Option<String> {
    let newest = fs::read_dir(directory)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("OPTIONS-"))
        .max_by_key(std::fs::DirEntry::file_name)?;
    let text = fs::read_to_string(newest.path()).ok()?;
    let section = text.rsplit("[CFOptions").next()?;
    let value = |name: &str| {
        section.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
    };
    let name = |text: &str| match text.trim_start_matches('k').trim_end_matches("Compression") {
        "No" => "none".to_owned(),
        other => other.to_lowercase(),
    };
    let levels = value("compression_per_level").filter(|levels| !levels.is_empty());
    Some(match levels {
        Some(levels) => {
            let mut names: Vec<String> = levels.split(':').map(name).collect();
            names.dedup();
            names.join(" then ")
        }
        None => name(&value("compression")?),
    })
}
