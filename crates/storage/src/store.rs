//! File systems as stores for the engine. A session is one client's access to files.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;

use loadstone_session::about::{About, directory, setting};
use loadstone_session::{Connection, Drive, Durability, EngineError, Guarantee, Options, Store};

use crate::fs::hdfs::{self, Hdfs};
use crate::fs::local::{Direct, Local, LocalOptions};
use crate::fs::{FileSystem, Location, Scheme};

/// The maximum number of buffers: more than any device can process at a time.
const DEPTH_MAX: u64 = 1_024;

/// The name of the fact that a store reports if io_uring is requested but unavailable. The value of the fact is the
/// reason.
pub const WITHOUT_URING: &str = "io_uring_unavailable";
/// The value of facts about page cache options, which have no effect if files exist only in the page cache.
pub const NO_EFFECT: &str = "no effect on tmpfs";

/// A client of a file system. Its last error is always `None`: file errors are returned as values, with path and
/// offset.
#[derive(Debug, Default)]
pub struct FileClient<F> {
    /// The file system.
    pub system: F,
    /// The base directory of all files.
    pub base: String,
}

impl<F: FileSystem> Connection for FileClient<F> {}

/// A store of files on this machine.
#[derive(Debug)]
pub struct FileStore {
    system: Local,
    base: String,
    guarantee: Guarantee,
}

/// The value of a flag: `true`, `false`, or not set, which means false.
fn parse_flag(options: &Options, name: &str) -> Result<bool, EngineError> {
    match options.get(name) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => {
            Err(EngineError::usage(format!("{name} must be true or false, got \"{text}\"")).hint("write true or false"))
        }
    }
}

impl Store for FileStore {
    type Session = FileClient<Local>;
    const ABOUT: About = About {
        name: "file",
        line: "files on local disks, buffered or O_DIRECT",
        networked: false,
        properties: &[
            directory("file.dir"),
            setting("file.direct"),
            setting("file.cold"),
            setting("file.io"),
            setting("file.depth"),
        ],
    };
    const DRIVE: Drive = Drive::Thread;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let location = options.directory("file.dir")?;
        let location = Location::parse(&location.to_string_lossy())?;
        if location.scheme != Scheme::File {
            return Err(EngineError::usage(format!("file.dir must be a local directory, got \"{}\"", location.uri()))
                .hint("use the store hdfs"));
        }
        let direct = parse_flag(options, "file.direct")?;
        let cold = parse_flag(options, "file.cold")?;
        if cold {
            drop_caches(&format!("{}/{}", location.path, options.table))?;
        }
        let uring = match options.get("file.io") {
            None | Some("threads") => None,
            Some("uring") => Some(options.bytes("file.depth", 8)?),
            Some(text) => {
                return Err(EngineError::usage(format!("file.io must be threads or uring, got \"{text}\""))
                    .hint("leave file.io out for threads"));
            }
        };
        if uring.is_some_and(|depth| !(1..=DEPTH_MAX).contains(&depth)) {
            return Err(EngineError::usage(format!("file.depth must be 1 to {DEPTH_MAX}"))
                .hint("use 8, which is enough for most disks"));
        }
        let system = Local::new(LocalOptions {
            direct: if direct { Direct::Required } else { Direct::Off },
            uring_depth: uring.map(|depth| depth as usize),
        });
        let memory = is_in_memory(&location.path);
        let synced = options.durability >= Durability::Device;
        let how = match (direct, synced) {
            _ if memory => "only in memory: this file system (tmpfs) has no device",
            (true, true) => "on the device, bypassing the page cache; a sync flushes the device's own cache",
            (true, false) => "on the device, bypassing the page cache; the device's own cache is not flushed",
            (false, true) => "on the device, by a sync",
            (false, false) => "in the page cache, without a sync",
        };
        let durability = if synced && !memory { Durability::Device } else { Durability::Os };
        let without_uring = system.uring_refusal().map(str::to_owned);
        let io = match (uring, &without_uring) {
            (Some(depth), None) => format!("io_uring, {depth} buffers for each file"),
            _ => "pread, pwrite".to_owned(),
        };
        let mut guarantee = Guarantee::new(durability, how)
            .fact("directory", &location.path)
            .fact("io", io)
            .fact("o_direct", effective_setting(direct, memory, "true", "false"))
            .fact("cold", effective_setting(cold, memory, "pages dropped before the trial", "no"));
        if let Some(why) = without_uring {
            guarantee = guarantee.fact(WITHOUT_URING, why);
        }
        Ok(Self { system, base: location.path, guarantee })
    }

    fn guarantee(&self) -> Guarantee {
        self.guarantee.clone()
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        Ok(FileClient { system: self.system.clone(), base: self.base.clone() })
    }
}

/// Describes the effect of a page cache option. The option has no effect if files exist only in the page cache.
fn effective_setting(set: bool, memory: bool, yes: &'static str, no: &'static str) -> &'static str {
    match (set, memory) {
        (false, _) => no,
        (true, false) => yes,
        (true, true) => NO_EFFECT,
    }
}

/// A directory, or the nearest existing directory above it.
fn existing_path(directory: &str) -> Option<CString> {
    let path = Path::new(directory).ancestors().find(|path| path.exists())?;
    CString::new(path.as_os_str().as_encoded_bytes()).ok()
}

/// Free space in bytes on the file system of a directory, or of its nearest existing parent. `None` if the free space
/// cannot be read.
pub fn free_bytes(directory: &str) -> Option<u64> {
    let path = existing_path(directory)?;
    // SAFETY: the path ends with NUL, and statvfs(3) fills the struct.
    unsafe {
        let mut facts = std::mem::zeroed::<libc::statvfs>();
        (libc::statvfs(path.as_ptr(), &raw mut facts) == 0).then(|| facts.f_bavail * facts.f_frsize)
    }
}

/// Whether a directory, or the directory in which it will be created, is on a file system without a device.
fn is_in_memory(directory: &str) -> bool {
    let Some(path) = existing_path(directory) else { return false };
    // SAFETY: the path ends with NUL, and statfs(2) fills the struct.
    let kind = unsafe {
        let mut facts = std::mem::zeroed::<libc::statfs>();
        if libc::statfs(path.as_ptr(), &raw mut facts) == 0 { facts.f_type } else { 0 }
    };
    // The width of the type differs between targets.
    #[allow(clippy::unnecessary_cast, reason = "i64 here, other types elsewhere")]
    let kind = kind as i64;
    // The numbers are TMPFS_MAGIC and RAMFS_MAGIC in linux/magic.h.
    matches!(kind, 0x0102_1994 | 0x8584_58f6)
}

/// Drops the files of a directory from the page cache. A directory that does not exist yet has no files.
fn drop_caches(directory: &str) -> Result<(), EngineError> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            Local::drop_cache(&entry.path().to_string_lossy())?;
        }
    }
    Ok(())
}

/// A store of files on HDFS.
#[derive(Debug)]
pub struct HdfsStore {
    location: Location,
    settings: BTreeMap<String, String>,
    durability: Durability,
}

impl Store for HdfsStore {
    type Session = FileClient<Hdfs>;
    const ABOUT: About = About {
        name: "hdfs",
        line: "files on HDFS, through a native client",
        networked: true,
        properties: &[setting("hdfs.dir"), setting("dfs.*"), setting("fs.*"), setting("ipc.*")],
    };
    const DRIVE: Drive = Drive::Task;
    // The client's futures are large, but there are only a few executors.
    const STACK_BYTES: usize = 8 << 20;
    // A client needs a fifth of a processor to transfer 1 GB/s. While an executor serves other clients, more data
    // arrives for each client and is then received at a lower cost per byte.
    const CLIENTS_PER_EXECUTOR: u64 = 4;

    fn open(options: &Options) -> Result<Self, EngineError> {
        let Some(text) = options.get("hdfs.dir") else {
            return Err(EngineError::usage("hdfs.dir is not set").hint("add hdfs.dir=hdfs://HOST:PORT/DIRECTORY"));
        };
        let location = Location::parse(text)?;
        if location.scheme != Scheme::Hdfs {
            return Err(EngineError::usage(format!("hdfs.dir must begin with hdfs://, got \"{text}\""))
                .hint("use the store file for local files"));
        }
        hdfs::reach(&location.authority)?;
        let settings = options.properties.iter().filter(|(name, _)| *name != "hdfs.dir");
        let settings = settings.map(|(name, value)| (name.clone(), value.clone())).collect();
        Ok(Self { location, settings, durability: options.durability.max(Durability::Os) })
    }

    fn guarantee(&self) -> Guarantee {
        // A data node acknowledges data that is in its memory. hsync writes the data to the device; close alone does
        // not.
        let how = match self.durability {
            Durability::Device => "on the data nodes' devices, by hsync",
            _ => "in the data nodes' page cache on close",
        };
        Guarantee::new(self.durability, how)
            .fact("directory", self.location.uri())
            .fact("replication", self.settings.get("dfs.replication").map_or("the server's", String::as_str))
            .fact("block_bytes", self.settings.get("dfs.blocksize").map_or("the server's", String::as_str))
    }

    fn session(&self) -> Result<Self::Session, EngineError> {
        let system = Hdfs::new(&self.location.authority, &self.settings)?;
        Ok(FileClient { system, base: self.location.path.clone() })
    }

    fn connections(&self, clients: u64) -> u64 {
        // Each client has one connection to the name node and three to data nodes: one in use and two idle.
        clients.saturating_mul(4)
    }
}
