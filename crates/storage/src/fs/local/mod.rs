//! Local files, buffered or with O_DIRECT, through `pread`/`pwrite` on the caller's thread or through io_uring.

mod file;
mod reader;
mod uring;
mod writer;

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::PoisonError;

pub use file::Direct;
use file::{EnginePool, FileEngine, LocalFile, Pooled};
pub use reader::LocalReader;
use uring::Ring;
pub use writer::LocalWriter;

use super::error::{FsError, FsErrorKind};
use super::{ALIGNMENT, AccessHint, CreateOptions, FileKind, FileStat, FileSystem, OpenOptions};

/// The settings with which local files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalOptions {
    /// Whether files bypass the page cache.
    pub direct: Direct,
    /// Number of io_uring buffers per file; `None`: blocking calls.
    pub uring_depth: Option<usize>,
}

/// Local file systems.
#[derive(Clone, Debug, Default)]
pub struct Local {
    options: LocalOptions,
    pool: EnginePool,
    /// The reason why io_uring is not available; `None` if it is available or was not requested.
    forbidden: Option<String>,
}

impl Local {
    /// Local files with these options.
    ///
    /// If io_uring is forbidden (in containers, or by `kernel.io_uring_disabled`), blocking calls are used.
    pub fn new(mut options: LocalOptions) -> Self {
        let forbidden = options.uring_depth.and_then(|_| Ring::find_refusal());
        if forbidden.is_some() {
            options.uring_depth = None;
        }
        Self { options, pool: EnginePool::default(), forbidden: forbidden.map(|error| error.to_string()) }
    }

    /// Drops a file's pages from the page cache if they are clean and not mapped by another process.
    pub fn drop_cache(path: &str) -> Result<(), FsError> {
        let file = File::open(path).map_err(|error| FsError::io("open", path, &error))?;
        // Dirty pages would stay in the cache (posix_fadvise(2)).
        file.sync_data().map_err(|error| FsError::io("sync", path, &error))?;
        // SAFETY: the descriptor is open, and the other arguments are plain numbers.
        let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        match failed {
            0 => Ok(()),
            code => Err(FsError::io("drop the cached pages of", path, &io::Error::from_raw_os_error(code))),
        }
    }

    /// The reason why io_uring is not used although it was requested.
    pub fn uring_refusal(&self) -> Option<&str> {
        self.forbidden.as_deref()
    }

    /// Creates or reuses an engine for a file. With O_DIRECT, the size of its buffers must be a multiple of
    /// [`ALIGNMENT`].
    fn engine(&self, path: &str, bytes: usize) -> Result<Pooled, FsError> {
        if self.options.direct == Direct::Required && !bytes.is_multiple_of(ALIGNMENT) {
            return Err(FsError::new(
                FsErrorKind::Invalid,
                "open",
                path,
                format!("O_DIRECT needs buffers of a multiple of {ALIGNMENT} bytes, got {bytes}"),
            )
            .hint("use a buffer of 1048576 bytes, or leave O_DIRECT out"));
        }
        let old = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let engine = match (old, self.options.uring_depth) {
            (Some(FileEngine::Uring(ring)), Some(_)) if ring.buffer_bytes() >= bytes => FileEngine::Uring(ring),
            (Some(FileEngine::Calls(buffer)), None) => FileEngine::Calls(buffer),
            (_, Some(depth)) => {
                let ring =
                    Ring::new(depth, bytes).map_err(|error| FsError::io("create an io_uring for", path, &error))?;
                FileEngine::Uring(Box::new(ring))
            }
            (_, None) => FileEngine::Calls(None),
        };
        Ok(Pooled::new(engine, &self.pool))
    }

    fn open_file(&self, action: &'static str, path: &str, options: &mut fs::OpenOptions) -> Result<LocalFile, FsError> {
        let mut direct = self.options.direct;
        if direct != Direct::Off {
            options.custom_flags(libc::O_DIRECT);
        }
        // Opening a FIFO may wait forever for its other end; a character device stores nothing, or has no end.
        if let Ok(kind) = fs::metadata(path).map(|facts| facts.file_type())
            && (kind.is_fifo() || kind.is_char_device() || kind.is_socket())
        {
            return Err(FsError::new(FsErrorKind::Invalid, action, path, "it is not a regular file")
                .hint("delete it, or use another directory"));
        }
        let mut file = options.open(path);
        // According to open(2), the file system does not support O_DIRECT.
        if direct != Direct::Off && matches!(&file, Err(error) if error.raw_os_error() == Some(libc::EINVAL)) {
            if direct == Direct::Required {
                return Err(FsError::new(FsErrorKind::Unsupported, action, path, "this file system lacks O_DIRECT")
                    .hint("leave O_DIRECT out, or use a directory on a disk"));
            }
            direct = Direct::Off;
            // By the time Linux checks for O_DIRECT, it has already created a new file.
            file = options.custom_flags(0).create_new(false).open(path);
        }
        let file = file.map_err(|error| FsError::io(action, path, &error))?;
        Ok(LocalFile { file, path: path.to_owned(), direct })
    }
}

impl FileSystem for Local {
    type Reader = LocalReader;
    type Writer = LocalWriter;

    async fn create(&self, path: &str, options: &CreateOptions) -> Result<LocalWriter, FsError> {
        if options.replication.is_some_and(|copies| copies > 1) {
            return Err(FsError::new(FsErrorKind::Unsupported, "create", path, "local files are not replicated")
                .hint("leave dfs.replication out, or use hdfs://"));
        }
        let engine = self.engine(path, options.buffer_bytes)?;
        let mut how = fs::OpenOptions::new();
        how.write(true).create(true).truncate(options.overwrite).create_new(!options.overwrite);
        let file = match self.open_file("create", path, &mut how) {
            Err(error) if error.kind == FsErrorKind::NotFound && options.parents => {
                let parent = Path::new(path).parent().unwrap_or(Path::new("/"));
                fs::create_dir_all(parent).map_err(|error| FsError::io("create", path, &error))?;
                self.open_file("create", path, &mut how)
            }
            other => other,
        }?;
        if let Some(bytes) = options.file_bytes.filter(|&bytes| file.is_direct() && bytes > 0) {
            // O_DIRECT writes that extend a file are serialised, so space is allocated first if fallocate is supported.
            // SAFETY: an open descriptor and plain numbers.
            let failed = unsafe { libc::fallocate(file.file.as_raw_fd(), 0, 0, bytes as libc::off_t) } != 0;
            let error = io::Error::last_os_error();
            if failed && matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) {
                return Err(FsError::io("create", path, &error).with_offset(0));
            }
        }
        Ok(LocalWriter::new(engine, file, 0))
    }

    async fn append(&self, path: &str, options: &CreateOptions) -> Result<LocalWriter, FsError> {
        let engine = self.engine(path, options.buffer_bytes)?;
        let file = self.open_file("append to", path, fs::OpenOptions::new().write(true))?;
        let at = file.file.metadata().map_err(|error| FsError::io("append to", path, &error))?.len();
        if file.direct == Direct::Required && !at.is_multiple_of(ALIGNMENT as u64) {
            return Err(FsError::new(
                FsErrorKind::Invalid,
                "append to",
                path,
                format!("O_DIRECT needs a length that is a multiple of {ALIGNMENT} bytes, but the file has {at}"),
            )
            .hint("append without O_DIRECT"));
        }
        Ok(LocalWriter::new(engine, file, at))
    }

    async fn open(&self, path: &str, options: OpenOptions) -> Result<LocalReader, FsError> {
        let engine = self.engine(path, options.buffer_bytes)?;
        let file = self.open_file("open", path, fs::OpenOptions::new().read(true))?;
        let facts = file.file.metadata().map_err(|error| FsError::io("open", path, &error))?;
        if facts.is_dir() {
            return Err(FsError::new(FsErrorKind::Invalid, "open", path, "it is a directory"));
        }
        if options.access == AccessHint::Random {
            // Read-ahead would fetch bytes that are not needed. This is only advice, so an error is ignored.
            // SAFETY: the descriptor is open, and the other arguments are plain numbers.
            unsafe { libc::posix_fadvise(file.file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        }
        Ok(LocalReader { engine, file, len: facts.len() })
    }

    async fn read_stat(&self, path: &str) -> Result<FileStat, FsError> {
        let facts = fs::metadata(path).map_err(|error| FsError::io("stat", path, &error))?;
        Ok(stat(path, &facts))
    }

    async fn list_folder(&self, path: &str) -> Result<Vec<FileStat>, FsError> {
        let failed = |error: io::Error| FsError::io("list", path, &error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            // This follows symbolic links. Only the second call finds a dangling link.
            match fs::metadata(&path).or_else(|_| fs::symlink_metadata(&path)) {
                Ok(facts) => entries.push(stat(&path.to_string_lossy(), &facts)),
                // The file was deleted just after its name was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FsError> {
        match rename_exclusively(from, to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(FsError::new(FsErrorKind::AlreadyExists, "rename", from, format!("{to} already exists")))
            }
            renamed => renamed.map_err(|error| FsError::io("rename", from, &error)),
        }
    }

    async fn delete(&self, path: &str) -> Result<bool, FsError> {
        let deleted = match fs::symlink_metadata(path) {
            Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match deleted {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(FsError::io("delete", path, &error)),
        }
    }

    async fn create_folders(&self, path: &str) -> Result<(), FsError> {
        fs::create_dir_all(path).map_err(|error| FsError::io("create the directory", path, &error))
    }

    async fn truncate(&self, path: &str, bytes: u64) -> Result<(), FsError> {
        let file = self.open_file("truncate", path, fs::OpenOptions::new().write(true))?;
        file.file.set_len(bytes).map_err(|error| file.error_at("truncate", bytes, &error))
    }

    async fn sync_directory(&self, path: &str) -> Result<(), FsError> {
        let synced = File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| FsError::io("sync", path, &error))
    }
}

/// Renames a file or directory; the new name must not exist.
fn rename_exclusively(from: &str, to: &str) -> io::Result<()> {
    let [old, new] = [CString::new(from)?, CString::new(to)?];
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_NOREPLACE);
    // The system call is made by its number, because older C libraries lack the function. SAFETY: both paths end with
    // NUL.
    if unsafe { libc::syscall(libc::SYS_renameat2, here, old.as_ptr(), here, new.as_ptr(), flags) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // According to rename(2), the kernel or the file system does not support the flag. Another process can then
        // create the name between the two calls.
        Some(libc::ENOSYS | libc::EINVAL) if fs::symlink_metadata(to).is_ok() => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        Some(libc::ENOSYS | libc::EINVAL) => fs::rename(from, to),
        _ => Err(error),
    }
}

fn stat(path: &str, facts: &fs::Metadata) -> FileStat {
    let kind = match facts.file_type() {
        kind if kind.is_dir() => FileKind::Directory,
        kind if kind.is_file() => FileKind::File,
        _ => FileKind::Other,
    };
    FileStat { path: path.to_owned(), kind, bytes: facts.len(), replication: None, block_bytes: None }
}
