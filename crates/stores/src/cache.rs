//! The location of downloaded and unpacked files, and Loadstone's environment variables that stores read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A shared object of RocksDB to load; `rocksdb.library` on the command line takes precedence.
pub const LOADSTONE_ROCKSDB: &str = "LOADSTONE_ROCKSDB";
/// A shared object of HSE to load; `hse.library` on the command line takes precedence.
pub const LOADSTONE_HSE: &str = "LOADSTONE_HSE";
/// The class path of HBase's client; `hbase.lib` on the command line takes precedence.
pub const LOADSTONE_HBASE: &str = "LOADSTONE_HBASE";
/// The directory of unpacked libraries; by default `$XDG_CACHE_HOME/loadstone`, otherwise `~/.cache/loadstone`.
pub const LOADSTONE_CACHE: &str = "LOADSTONE_CACHE";
/// The local Maven repository; by default `~/.m2/repository`.
pub const LOADSTONE_MAVEN: &str = "LOADSTONE_MAVEN";

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The path in an environment variable, if it is set and not empty.
pub fn from_environment(name: &str) -> Option<PathBuf> {
    variable(name)
}

fn home() -> PathBuf {
    variable("HOME").unwrap_or_else(|| PathBuf::from("."))
}

/// Loadstone's cache directory.
pub fn directory() -> PathBuf {
    variable(LOADSTONE_CACHE)
        .or_else(|| variable("XDG_CACHE_HOME").map(|base| base.join("loadstone")))
        .unwrap_or_else(|| home().join(".cache").join("loadstone"))
}

/// The local Maven repository.
pub fn maven_repository() -> PathBuf {
    variable(LOADSTONE_MAVEN).unwrap_or_else(|| home().join(".m2").join("repository"))
}

/// Creates a file and its directory. `write` writes the content to a temporary path. The file appears either
/// completely or not at all, even if other processes and threads create it at the same time.
pub fn create_whole<T>(target: &Path, write: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<()> {
    let directory = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    // The name contains the process and the thread, so that other processes and threads write to different files.
    let partial = directory.join(format!(".{}.{:?}.partial", std::process::id(), std::thread::current().id()));
    write(&partial).and_then(|_| fs::rename(&partial, target)).inspect_err(|_| {
        let _ = fs::remove_file(&partial);
    })
}
