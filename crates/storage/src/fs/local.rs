//! Local files: buffered or with O_DIRECT, by `pread`/`pwrite` on the caller's thread or by io_uring.

use std::fs::{self, File};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::buffer::{ALIGNMENT, AlignedBuffer};
use super::error::{ErrorKind, FsError};
use super::uring::Ring;
use super::{Access, CreateOptions, FileStat, FileSystem, OpenOptions, Reader, Writer};

/// How local files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalOptions {
    /// `O_DIRECT`: bypasses the page cache.
    pub direct: bool,
    /// io_uring with this many buffers per file; `None`: blocking calls.
    pub uring_depth: Option<usize>,
}

/// What moves the bytes of one file.
#[derive(Debug)]
enum Engine {
    /// Blocking calls, with one buffer.
    Calls(AlignedBuffer),
    /// io_uring, with several buffers.
    Uring(Box<Ring>),
}

/// Engines of closed files, to be used again.
type Pool = Arc<Mutex<Vec<Engine>>>;

/// The local file systems.
#[derive(Clone, Debug, Default)]
pub struct Local {
    options: LocalOptions,
    pool: Pool,
    /// Why io_uring is not available.
    forbidden: Option<String>,
}

impl Local {
    /// Local files with these options.
    ///
    /// Where io_uring is forbidden (containers, `kernel.io_uring_disabled`) blocking calls are used.
    pub fn new(mut options: LocalOptions) -> Self {
        let forbidden = options.uring_depth.and_then(|_| Ring::forbidden());
        if forbidden.is_some() {
            options.uring_depth = None;
        }
        Self { options, pool: Pool::default(), forbidden: forbidden.map(|error| error.to_string()) }
    }

    /// Drops the pages of a file from the page cache if they are clean and not mapped by another process.
    pub fn drop_cache(path: &str) -> Result<(), FsError> {
        let file = File::open(path).map_err(|error| FsError::io("open", path, &error))?;
        // Dirty pages stay (posix_fadvise(2)).
        file.sync_data().map_err(|error| FsError::io("sync", path, &error))?;
        // SAFETY: an open descriptor and plain numbers.
        let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        match failed {
            0 => Ok(()),
            code => Err(FsError::io("drop the cached pages of", path, &io::Error::from_raw_os_error(code))),
        }
    }

    /// Why io_uring is not used although it was requested.
    pub fn without_uring(&self) -> Option<&str> {
        self.forbidden.as_deref()
    }

    /// An engine for a file. With O_DIRECT the size of its buffers must be a multiple of [`ALIGNMENT`].
    fn engine(&self, path: &str, bytes: usize) -> Result<Pooled, FsError> {
        if self.options.direct && !bytes.is_multiple_of(ALIGNMENT) {
            return Err(FsError::new(
                ErrorKind::Invalid,
                "open",
                path,
                format!("O_DIRECT needs buffers of a multiple of {ALIGNMENT} bytes, got {bytes}"),
            )
            .hint("use a buffer of 1048576 bytes, or leave O_DIRECT out"));
        }
        let old = self.pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let engine = match (old, self.options.uring_depth) {
            (Some(Engine::Uring(ring)), Some(_)) if ring.buffer_bytes() >= bytes => Engine::Uring(ring),
            (Some(Engine::Calls(buffer)), None) if buffer.len() >= bytes => Engine::Calls(buffer),
            (_, Some(depth)) => {
                let ring =
                    Ring::new(depth, bytes).map_err(|error| FsError::io("create an io_uring for", path, &error))?;
                Engine::Uring(Box::new(ring))
            }
            (_, None) => Engine::Calls(AlignedBuffer::new(bytes)),
        };
        Ok(Pooled { engine: Some(engine), pool: Arc::clone(&self.pool) })
    }

    fn opened(&self, action: &'static str, path: &str, options: &mut fs::OpenOptions) -> Result<File, FsError> {
        if self.options.direct {
            options.custom_flags(libc::O_DIRECT);
        }
        // Opening a FIFO may wait forever for its other end; a character device stores nothing, or never ends.
        if let Ok(kind) = fs::metadata(path).map(|facts| facts.file_type())
            && (kind.is_fifo() || kind.is_char_device() || kind.is_socket())
        {
            return Err(FsError::new(ErrorKind::Invalid, action, path, "it is not a regular file")
                .hint("delete it, or use another directory"));
        }
        options.open(path).map_err(|error| {
            let failed = FsError::io(action, path, &error);
            if self.options.direct && error.raw_os_error() == Some(libc::EINVAL) {
                return FsError::new(ErrorKind::Unsupported, action, path, "this file system lacks O_DIRECT")
                    .hint("leave O_DIRECT out, or use a directory on a disk");
            }
            failed
        })
    }
}

/// An engine that returns to the pool when its file is closed.
#[derive(Debug)]
struct Pooled {
    engine: Option<Engine>,
    pool: Pool,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(mut engine) = self.engine.take() {
            if let Engine::Uring(ring) = &mut engine {
                ring.reset();
            }
            self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(engine);
        }
    }
}

impl Deref for Pooled {
    type Target = Option<Engine>;

    fn deref(&self) -> &Option<Engine> {
        &self.engine
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Option<Engine> {
        &mut self.engine
    }
}

/// The first `bytes` of a buffer; one that is too small is replaced.
fn sized(buffer: &mut AlignedBuffer, bytes: usize) -> &mut [u8] {
    if buffer.len() < bytes {
        *buffer = AlignedBuffer::new(bytes);
    }
    &mut buffer[..bytes]
}

impl FileSystem for Local {
    type Reader = LocalReader;
    type Writer = LocalWriter;

    async fn create(&self, path: &str, options: &CreateOptions) -> Result<LocalWriter, FsError> {
        if options.replication.is_some_and(|copies| copies > 1) {
            return Err(FsError::new(ErrorKind::Unsupported, "create", path, "local files are not replicated")
                .hint("leave dfs.replication out, or use hdfs://"));
        }
        let engine = self.engine(path, options.buffer_bytes)?;
        let mut how = fs::OpenOptions::new();
        how.write(true).create(true).truncate(options.overwrite).create_new(!options.overwrite);
        let file = match self.opened("create", path, &mut how) {
            Err(error) if error.kind == ErrorKind::NotFound => {
                let parent = Path::new(path).parent().unwrap_or(Path::new("/"));
                fs::create_dir_all(parent).map_err(|error| FsError::io("create", path, &error))?;
                self.opened("create", path, &mut how)
            }
            other => other,
        }?;
        if let Some(bytes) = options.file_bytes.filter(|&bytes| self.options.direct && bytes > 0) {
            // O_DIRECT writes that extend a file are serialised. A file system without fallocate goes on without it.
            // SAFETY: an open descriptor and plain numbers.
            let failed = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes as libc::off_t) } != 0;
            let error = io::Error::last_os_error();
            if failed && matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) {
                return Err(FsError::io("create", path, &error).at(0));
            }
        }
        Ok(LocalWriter {
            engine,
            file,
            path: path.to_owned(),
            at: 0,
            filled: 0,
            held: 0,
            direct: self.options.direct,
            cut: None,
        })
    }

    async fn append(&self, path: &str, options: &CreateOptions) -> Result<LocalWriter, FsError> {
        let engine = self.engine(path, options.buffer_bytes)?;
        let file = self.opened("append to", path, fs::OpenOptions::new().write(true))?;
        let at = file.metadata().map_err(|error| FsError::io("append to", path, &error))?.len();
        if self.options.direct && !at.is_multiple_of(ALIGNMENT as u64) {
            return Err(FsError::new(
                ErrorKind::Invalid,
                "append to",
                path,
                format!("O_DIRECT needs a length that is a multiple of {ALIGNMENT} bytes, the file has {at}"),
            )
            .hint("append without O_DIRECT"));
        }
        Ok(LocalWriter {
            engine,
            file,
            path: path.to_owned(),
            at,
            filled: 0,
            held: 0,
            direct: self.options.direct,
            cut: None,
        })
    }

    async fn open(&self, path: &str, options: OpenOptions) -> Result<LocalReader, FsError> {
        let engine = self.engine(path, options.buffer_bytes)?;
        let file = self.opened("open", path, fs::OpenOptions::new().read(true))?;
        let facts = file.metadata().map_err(|error| FsError::io("open", path, &error))?;
        if facts.is_dir() {
            return Err(FsError::new(ErrorKind::Invalid, "open", path, "it is a directory"));
        }
        if options.access == Access::Random {
            // Read-ahead would fetch bytes that are not needed. Only advice, so an error is ignored.
            // SAFETY: an open descriptor and plain numbers.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        }
        Ok(LocalReader { engine, file, path: path.to_owned(), len: facts.len(), direct: self.options.direct })
    }

    async fn stat(&self, path: &str) -> Result<FileStat, FsError> {
        let facts = fs::metadata(path).map_err(|error| FsError::io("stat", path, &error))?;
        Ok(stat(path, &facts))
    }

    async fn list(&self, path: &str) -> Result<Vec<FileStat>, FsError> {
        let failed = |error: io::Error| FsError::io("list", path, &error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let entry_path = entry.path();
            let facts = entry.metadata().map_err(failed)?;
            entries.push(stat(&entry_path.to_string_lossy(), &facts));
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FsError> {
        if Path::new(to).exists() {
            return Err(FsError::new(ErrorKind::AlreadyExists, "rename", from, format!("{to} already exists")));
        }
        fs::rename(from, to).map_err(|error| FsError::io("rename", from, &error))
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

    async fn mkdirs(&self, path: &str) -> Result<(), FsError> {
        fs::create_dir_all(path).map_err(|error| FsError::io("create the directory", path, &error))
    }

    async fn truncate(&self, path: &str, bytes: u64) -> Result<(), FsError> {
        let file = self.opened("truncate", path, fs::OpenOptions::new().write(true))?;
        file.set_len(bytes).map_err(|error| FsError::io("truncate", path, &error).at(bytes))
    }
}

fn stat(path: &str, facts: &fs::Metadata) -> FileStat {
    FileStat {
        path: path.to_owned(),
        directory: facts.is_dir(),
        bytes: facts.size(),
        replication: None,
        block_bytes: None,
    }
}

/// Reads a local file.
#[derive(Debug)]
pub struct LocalReader {
    // Before the file: I/O in flight must end before the file is closed.
    engine: Pooled,
    file: File,
    path: String,
    len: u64,
    direct: bool,
}

impl LocalReader {
    /// The aligned range to read for `bytes` at an offset: its start, its length, and how much of it comes before the offset.
    fn span(&self, offset: u64, bytes: usize) -> (u64, usize, usize) {
        if !self.direct {
            return (offset, bytes, 0);
        }
        let before = (offset % ALIGNMENT as u64) as usize;
        (offset - before as u64, (before + bytes).next_multiple_of(ALIGNMENT), before)
    }
}

impl Reader for LocalReader {
    fn len(&self) -> u64 {
        self.len
    }

    fn depth(&self) -> usize {
        match &*self.engine {
            Some(Engine::Uring(ring)) => ring.depth(),
            _ => 0,
        }
    }

    fn ahead(&mut self, offset: u64, bytes: usize) {
        let (from, whole, _) = self.span(offset, bytes);
        if let Some(Engine::Uring(ring)) = &mut *self.engine {
            ring.release(None);
            // A read that cannot be queued is done, or fails, in `fetch`.
            let _ = ring.read(&self.file, from, whole);
        }
    }

    async fn fetch(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        let (from, whole, before) = self.span(offset, bytes);
        let failed = |error: &io::Error| FsError::io("read", &self.path, error).at(offset);
        let (buffer, read) = match &mut *self.engine {
            Some(Engine::Uring(ring)) => {
                ring.release(None);
                let fetched = ring.fetch(&self.file, from, whole);
                let (slot, read) = fetched.map_err(|(at, error)| FsError::io("read", &self.path, &error).at(at))?;
                (&*ring.bytes(slot), read)
            }
            Some(Engine::Calls(buffer)) => {
                let into = sized(buffer, whole);
                let read = read_full(&self.file, from, into).map_err(|error| failed(&error))?;
                (&*into, read)
            }
            None => return Ok(&[]),
        };
        Ok(&buffer[before.min(read)..(before + bytes).min(read)])
    }
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // O_DIRECT does not read from an unaligned offset: the file ended before it.
            Err(error) if done % ALIGNMENT != 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes a local file.
#[derive(Debug)]
pub struct LocalWriter {
    // Before the file: I/O in flight must end before the file is closed.
    engine: Pooled,
    file: File,
    path: String,
    at: u64,
    filled: usize,
    /// The io_uring buffer that is being filled.
    held: usize,
    direct: bool,
    /// Set when the last block of the file was padded for O_DIRECT: the file must be truncated to this length.
    cut: Option<u64>,
}

impl LocalWriter {
    fn failed(&self, action: &'static str, (at, error): &(u64, io::Error)) -> FsError {
        FsError::io(action, &self.path, error).at(*at)
    }

    /// Waits for I/O in flight, then truncates the file if its last block was padded.
    fn drain(&mut self, action: &'static str) -> Result<(), FsError> {
        let drained = match &mut *self.engine {
            Some(Engine::Uring(ring)) => ring.drain(&self.file),
            _ => Ok(()),
        };
        drained.map_err(|failed| self.failed(action, &failed))?;
        match self.cut {
            Some(bytes) => self.file.set_len(bytes).map_err(|error| self.failed("truncate", &(bytes, error))),
            None => Ok(()),
        }
    }
}

impl Writer for LocalWriter {
    async fn buffer(&mut self, bytes: usize) -> Result<&mut [u8], FsError> {
        self.filled = bytes;
        // Not `self.failed`: the engine is borrowed.
        let failed = |(at, error): (u64, io::Error)| FsError::io("write", &self.path, &error).at(at);
        match &mut *self.engine {
            Some(Engine::Uring(ring)) => {
                ring.release(None);
                self.held = ring.take(&self.file).map_err(failed)?;
                Ok(&mut ring.bytes(self.held)[..bytes])
            }
            Some(Engine::Calls(buffer)) => Ok(sized(buffer, bytes)),
            None => Ok(&mut []),
        }
    }

    async fn submit(&mut self) -> Result<(), FsError> {
        if self.cut.is_some() {
            return Err(FsError::new(
                ErrorKind::Invalid,
                "write",
                &self.path,
                "with O_DIRECT only the last buffer may have an unaligned length",
            ));
        }
        let whole = if self.direct { self.filled.next_multiple_of(ALIGNMENT) } else { self.filled };
        if whole > self.filled {
            self.cut = Some(self.at + self.filled as u64);
        }
        let written = match &mut *self.engine {
            Some(Engine::Uring(ring)) => {
                ring.bytes(self.held)[self.filled..whole].fill(0);
                ring.write(&self.file, self.held, self.at, whole)
            }
            Some(Engine::Calls(buffer)) => {
                buffer[self.filled..whole].fill(0);
                self.file.write_all_at(&buffer[..whole], self.at).map_err(|error| (self.at, error))
            }
            None => Ok(()),
        };
        written.map_err(|failed| self.failed("write", &failed))?;
        self.at += self.filled as u64;
        Ok(())
    }

    fn position(&self) -> u64 {
        self.at
    }

    async fn seek(&mut self, offset: u64) -> Result<(), FsError> {
        self.at = offset;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), FsError> {
        // What is not in flight was already passed to the kernel by write(2).
        self.drain("write")
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        self.drain("write")?;
        self.file.sync_all().map_err(|error| self.failed("sync", &(self.at, error)))
    }

    async fn close(mut self) -> Result<(), FsError> {
        use std::os::fd::IntoRawFd;
        self.drain("write")?;
        let Self { file, path, at, .. } = self;
        // `File` ignores the result of close(2), where NFS and quotas report failed writes.
        // SAFETY: the descriptor is owned here, and closed once.
        match unsafe { libc::close(file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(FsError::io("close", &path, &io::Error::last_os_error()).at(at)),
        }
    }
}
