//! Code that the compiled-in engines share: it finds their directory, explains why an open failed, and detects a full
//! device.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use loadstone_load::Status;

use crate::error::{EngineError, Failure};
use crate::options::Options;

/// Maximum length of a table's name, in bytes, for every engine here.
const TABLE_BYTES_MAX: usize = 255;

/// The names by which messages and options refer to an engine.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// The name on the command line. The engine's directory is the property `<store>.dir`.
    pub store: &'static str,
    /// The name in running text.
    pub name: &'static str,
    /// The file that every database of the engine contains, relative to the database's directory.
    pub marker: &'static str,
}

pub const ROCKSDB: Engine = Engine { store: "rocksdb", name: "RocksDB", marker: "CURRENT" };
pub const LMDB: Engine = Engine { store: "lmdb", name: "LMDB", marker: "data.mdb" };
pub const FJALL: Engine = Engine { store: "fjall", name: "fjall", marker: "version" };
pub const REDB: Engine = Engine { store: "redb", name: "redb", marker: "loadstone.redb" };
/// The file that every database of HSE contains.
pub const HSE_MARKER: &str = "kvdb.meta";
/// The stores that keep files, each with the file that all its databases contain.
const DATABASES: [(&str, &str); 5] = [
    (ROCKSDB.store, ROCKSDB.marker),
    (LMDB.store, LMDB.marker),
    (FJALL.store, FJALL.marker),
    (REDB.store, REDB.marker),
    ("hse", HSE_MARKER),
];

/// The cause of an engine's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The database is already open in another process, or in another store of this process.
    Locked,
    /// This user may not read or write the files.
    Forbidden,
    /// The device, or this user's quota on it, is full.
    Full,
    /// An I/O error, or LMDB's error for a truncated write.
    Io,
    /// An earlier failure, after which the engine refuses all writes.
    Earlier,
    /// Anything else.
    Other,
}

impl Cause {
    /// Derives the cause from an error of the operating system.
    pub fn from_io(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => Self::Full,
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => Self::Forbidden,
            Some(libc::EIO) => Self::Io,
            Some(_) => Self::Other,
            None => match error.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Forbidden,
                _ => Self::Other,
            },
        }
    }
}

impl Engine {
    /// The directory to open. A load creates the directory. A run needs a database in the directory, and changes
    /// nothing if there is none.
    pub fn directory(&self, options: &Options) -> Result<PathBuf, EngineError> {
        if options.table.is_empty() {
            return Err(EngineError::usage("the table's name is empty").hint("set it with -p table=NAME"));
        }
        if options.table.len() > TABLE_BYTES_MAX {
            let len = options.table.len();
            return Err(EngineError::usage(format!(
                "the table's name has {len} bytes; at most {TABLE_BYTES_MAX} are possible"
            ))
            .hint("set a shorter name with -p table=NAME"));
        }
        let directory = options.directory(&format!("{}.dir", self.store))?;
        if options.create {
            refuse_other_database(&directory, self.store, self.marker)?;
            return match fs::create_dir_all(&directory) {
                Ok(()) => Ok(directory),
                Err(error) => Err(self.cannot_open(&directory, &error.to_string(), Cause::from_io(&error))),
            };
        }
        // A load that was killed before its first write leaves an empty file behind.
        match fs::metadata(directory.join(self.marker)) {
            Ok(marker) if marker.len() > 0 => Ok(directory),
            Ok(_) => Err(self.refuse_missing(&directory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(self.refuse_missing(&directory)),
            Err(error) => Err(self.cannot_open(&directory, &error.to_string(), Cause::from_io(&error))),
        }
    }

    /// Refuses a key that is empty or longer than `len_max`.
    #[inline]
    pub fn check_key(&self, key: &[u8], len_max: usize) -> Result<(), Failure> {
        if key.is_empty() || key.len() > len_max {
            let message = format!("{} takes keys of 1 to {len_max} bytes, not {}", self.name, key.len());
            return Err(Failure::new(Status::BadRequest, message).refusal());
        }
        Ok(())
    }

    fn refuse_missing(&self, directory: &Path) -> EngineError {
        EngineError::failed(format!("no {} database in {}", self.name, directory.display())).hint(self.load(directory))
    }

    /// The error for a database that lacks the table that a run needs.
    pub fn missing_table(&self, directory: &Path, table: &str) -> EngineError {
        EngineError::failed(format!("no table \"{table}\" in the {} database {}", self.name, directory.display()))
            .hint(self.load(directory))
    }

    fn load(&self, directory: &Path) -> String {
        format!("load one first: loadstone ycsb load {0} -p {0}.dir={1}", self.store, directory.display())
    }

    /// The error for a database that exists but cannot be opened, or for a directory that cannot be created. `message`
    /// comes from the engine.
    pub fn cannot_open(&self, directory: &Path, message: &str, cause: Cause) -> EngineError {
        let error = EngineError::failed(format!("{} cannot open {}: {message}", self.name, directory.display()));
        match cause {
            Cause::Locked => return error.hint("another process, or another store of this process, has it open"),
            Cause::Forbidden => {
                return error.hint(format!("set {}.dir to a directory that you may read and write", self.store));
            }
            _ => {}
        }
        if let Some(obstacle) = directory.ancestors().find(|path| path.exists() && !path.is_dir()) {
            return error.hint(format!("{}.dir must name a directory, but {} is not", self.store, obstacle.display()));
        }
        if let Some(parent) = directory.ancestors().skip(1).find(|path| !directory.exists() && path.is_dir()) {
            let parent = parent.display();
            return error
                .hint(format!("set {}.dir to a directory that can be created; {parent} refuses it", self.store));
        }
        if cause == Cause::Full {
            return error.hint("make room on the device, or choose another");
        }
        error.hint(format!(
            "it does not hold a complete {} database of a supported version; choose an empty directory to create one",
            self.name
        ))
    }
}

/// Refuses to create a database in the directory of another engine's database: they would share the directory's space,
/// and readers of the directory could not distinguish the two engines' files.
pub fn refuse_other_database(directory: &Path, store: &str, marker: &str) -> Result<(), EngineError> {
    let holds = |name: &str| fs::metadata(directory.join(name)).is_ok_and(|file| file.len() > 0);
    if holds(marker) {
        return Ok(());
    }
    match DATABASES.iter().find(|&&(name, other)| name != store && holds(other)) {
        None => Ok(()),
        Some((name, _)) => {
            let message = format!("{} contains a database of {name}", directory.display());
            Err(EngineError::usage(message).hint(format!("set another directory for {store}")))
        }
    }
}

/// Records that the device was full. After a failed write, some engines refuse every write with an error that does not
/// state the cause, or report a truncated write as an I/O error. Such operations failed for the same reason as the
/// first failed write, and are counted accordingly.
#[derive(Debug)]
pub struct Space {
    cause: AtomicU8,
    directory: PathBuf,
}

const UNKNOWN: u8 = 0;
const FULL: u8 = 1;
const OTHER: u8 = 2;
/// Maximum time that a later failure waits for its cause. The cause is reported by a client that is just returning from
/// its call; if one of the engine's own threads failed, the cause is never reported.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// A device with less free space than this counts as full: an engine may write a file of up to this size at once, and
/// delete the file again if it does not fit.
const ROOM_MIN_BYTES: u64 = 64 << 20;

impl Space {
    /// Monitors the space available to an engine's directory.
    pub fn new(directory: &Path) -> Self {
        Self { cause: AtomicU8::new(UNKNOWN), directory: directory.to_owned() }
    }

    /// A failure with the engine's message. The status depends on the cause.
    pub fn failure(&self, message: String, cause: Cause) -> Failure {
        if cause == Cause::Earlier {
            return match self.cause() {
                FULL => Failure::new(Status::NoSpace, format!("{message} (the device was full)")),
                _ => self.failure_by_space(message),
            };
        }
        let failure = match cause {
            Cause::Full => Failure::new(Status::NoSpace, message),
            Cause::Io => self.failure_by_space(message),
            _ => Failure::new(Status::Error, message),
        };
        if failure.status == Status::NoSpace {
            self.cause.store(FULL, Ordering::Relaxed);
        } else {
            let _ = self.cause.compare_exchange(UNKNOWN, OTHER, Ordering::Relaxed, Ordering::Relaxed);
        }
        failure
    }

    fn cause(&self) -> u8 {
        let waiting = Instant::now();
        while self.cause.load(Ordering::Relaxed) == UNKNOWN {
            if waiting.elapsed() > WAIT_MAX {
                let _ = self.cause.compare_exchange(UNKNOWN, OTHER, Ordering::Relaxed, Ordering::Relaxed);
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.cause.load(Ordering::Relaxed)
    }

    /// The failure for an error that does not state its cause. The status depends on the free space.
    fn failure_by_space(&self, message: String) -> Failure {
        match room(&self.directory).filter(|&bytes| bytes < ROOM_MIN_BYTES) {
            Some(bytes) => Failure::new(Status::NoSpace, format!("{message} (the device has {bytes} bytes left)")),
            None => Failure::new(Status::Error, message),
        }
    }
}

/// Number of bytes that can still be written below a directory.
fn room(directory: &Path) -> Option<u64> {
    let path = CString::new(directory.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path ends in a zero byte, and the struct is local.
    let stats = unsafe {
        let mut stats = std::mem::zeroed::<libc::statvfs>();
        (libc::statvfs(path.as_ptr(), &raw mut stats) == 0).then_some(stats)
    };
    stats.map(|stats| stats.f_bavail * stats.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: Engine = Engine { store: "toy", name: "Toy", marker: "toy.db" };

    fn options(directory: &Path, create: bool) -> Options {
        let properties = [("toy.dir".to_owned(), directory.display().to_string())].into();
        Options { properties, create, table: "usertable".into(), ..Options::default() }
    }

    fn hint(error: EngineError) -> String {
        error.hint.unwrap_or_default()
    }

    #[test]
    fn only_a_load_creates_the_directory() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("a/b");
        let error = ENGINE.directory(&options(&directory, false)).unwrap_err();
        assert_eq!(error.message, format!("no Toy database in {}", directory.display()));
        assert!(hint(error).starts_with("load one first: loadstone ycsb load toy -p toy.dir="));
        assert!(!directory.exists());

        ENGINE.directory(&options(&directory, true)).unwrap();
        assert!(directory.is_dir());

        fs::write(directory.join("toy.db"), "").unwrap();
        assert!(ENGINE.directory(&options(&directory, false)).is_err(), "an empty marker is no database");
        fs::write(directory.join("toy.db"), "x").unwrap();
        ENGINE.directory(&options(&directory, false)).unwrap();
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, "x").unwrap();
        for (path, create) in [(file.clone(), true), (file.clone(), false), (file.join("below"), true)] {
            let error = ENGINE.directory(&options(&path, create)).unwrap_err();
            assert!(error.message.contains(&path.display().to_string()), "{error}");
            let named = format!("must name a directory, but {} is not", file.display());
            assert!(hint(error).contains(&named));
        }
        // The kernel's own file systems, such as /proc, refuse new directories.
        let error = ENGINE.directory(&options(Path::new("/proc/toy/db"), true)).unwrap_err();
        assert!(hint(error).ends_with("that can be created; /proc refuses it"));
    }

    #[test]
    fn database_of_another_engine_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let load = options(temporary.path(), true);
        for (store, marker) in DATABASES {
            let path = temporary.path().join(marker);
            fs::write(&path, "x").unwrap();
            let error = ENGINE.directory(&load).unwrap_err();
            assert!(error.is_usage() && error.message.ends_with(&format!("contains a database of {store}")), "{error}");
            fs::remove_file(path).unwrap();
        }
        fs::write(temporary.path().join("README"), "x").unwrap();
        ENGINE.directory(&load).unwrap();
    }

    #[test]
    fn an_empty_table_is_wrong_usage() {
        let options = Options { table: String::new(), ..options(Path::new("/nowhere"), true) };
        assert!(ENGINE.directory(&options).unwrap_err().is_usage());
    }

    #[test]
    fn every_refusal_has_its_hint() {
        let system = |number| Cause::from_io(&io::Error::from_raw_os_error(number));
        for (cause, hinted) in [
            (system(libc::EACCES), "read and write"),
            (system(libc::EROFS), "read and write"),
            (system(libc::ENOSPC), "make room"),
            (system(libc::EDQUOT), "make room"),
            (Cause::Locked, "another process"),
            (Cause::Other, "not hold a complete Toy database"),
        ] {
            assert!(hint(ENGINE.cannot_open(Path::new("/"), "why", cause)).contains(hinted), "{cause:?}");
        }
    }

    #[test]
    fn failures_after_a_full_device_count_with_it() {
        let space = Space::new(Path::new("/nowhere"));
        assert_eq!(space.failure("No space left on device".into(), Cause::Full).status, Status::NoSpace);
        assert_eq!(space.failure("poisoned".into(), Cause::Earlier).status, Status::NoSpace);
        assert_eq!(space.failure("other".into(), Cause::Other).status, Status::Error);
        assert_eq!(space.failure("poisoned".into(), Cause::Earlier).status, Status::NoSpace);

        let space = Space::new(Path::new("/nowhere"));
        assert_eq!(space.failure("poisoned".into(), Cause::Earlier).status, Status::Error, "the cause is not known");
    }

    #[test]
    fn later_failure_waits_for_the_first_cause() {
        let space = Space::new(Path::new("/nowhere"));
        std::thread::scope(|threads| {
            let follower = threads.spawn(|| space.failure("poisoned".into(), Cause::Earlier).status);
            std::thread::sleep(Duration::from_millis(20));
            space.failure("No space left on device".into(), Cause::Full);
            assert_eq!(follower.join().unwrap(), Status::NoSpace);
        });
    }
}
