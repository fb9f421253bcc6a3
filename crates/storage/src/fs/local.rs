//! Files of this machine: buffered or O_DIRECT, by `pread`/`pwrite` on the caller's thread or by io_uring.

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
    /// `O_DIRECT`: past the page cache.
    pub direct: bool,
    /// io_uring with so many buffers for each file; `None`: calls that block.
    pub uring_depth: Option<usize>,
}

/// What moves the bytes of one file.
#[derive(Debug)]
enum Engine {
    /// Calls that block, with one buffer.
    Calls(AlignedBuffer),
    /// io_uring, with several.
    Uring(Box<Ring>),
}

/// Engines of closed files, for the next ones.
type Pool = Arc<Mutex<Vec<Engine>>>;

/// Files of this machine.
#[derive(Clone, Debug, Default)]
pub struct Local {
    options: LocalOptions,
    pool: Pool,
    /// Why there is no io_uring.
    forbidden: Option<String>,
}

impl Local {
    /// With these options.
    ///
    /// Where io_uring is forbidden (containers, `kernel.io_uring_disabled`) files are reached by calls that block.
    pub fn new(mut options: LocalOptions) -> Self {
        let forbidden = options.uring_depth.and_then(|_| Ring::forbidden());
        if forbidden.is_some() {
            options.uring_depth = None;
        }
        Self { options, pool: Pool::default(), forbidden: forbidden.map(|error| error.to_string()) }
    }

    /// Drops the pages of a file from the page cache, as far as they are clean and nobody else maps them.
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

    /// Why io_uring is not used although it was asked for.
    pub fn without_uring(&self) -> Option<&str> {
        self.forbidden.as_deref()
    }

    /// What moves the bytes of a file. With O_DIRECT the size of its buffers must be a multiple of what that asks for.
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
                    Ring::new(depth, bytes).map_err(|error| FsError::io("make an io_uring for", path, &error))?;
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
        // Opening a FIFO waits for its other end, perhaps forever; a character device keeps nothing, or never ends.
        if let Ok(kind) = fs::metadata(path).map(|facts| facts.file_type())
            && (kind.is_fifo() || kind.is_char_device() || kind.is_socket())
        {
            return Err(FsError::new(ErrorKind::Invalid, action, path, "it is not a regular file")
                .hint("delete it, or use another directory"));
        }
        options.open(path).map_err(|error| {
            let failed = FsError::io(action, path, &error);
            if self.options.direct && error.raw_os_error() == Some(libc::EINVAL) {
                return FsError::new(ErrorKind::Unsupported, action, path, "this file system has no O_DIRECT")
                    .hint("leave O_DIRECT out, or use a directory on a disk");
            }
            failed
        })
    }
}

/// An engine that goes back when its file is closed.
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
                let above = Path::new(path).parent().unwrap_or(Path::new("/"));
                fs::create_dir_all(above).map_err(|error| FsError::io("create", path, &error))?;
                self.opened("create", path, &mut how)
            }
            other => other,
        }?;
        if let Some(bytes) = options.file_bytes.filter(|&bytes| self.options.direct && bytes > 0) {
            // O_DIRECT writes that make a file longer wait for one another. A file system without fallocate goes on without.
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
            // Read-ahead would fetch what nobody asks for. Advice: an error changes nothing.
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
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let own = entry.path();
            let facts = entry.metadata().map_err(failed)?;
            found.push(stat(&own.to_string_lossy(), &facts));
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FsError> {
        if Path::new(to).exists() {
            return Err(FsError::new(ErrorKind::AlreadyExists, "rename", from, format!("{to} is there already")));
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
        fs::create_dir_all(path).map_err(|error| FsError::io("make the directory", path, &error))
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
    // Before the file: what is under way is waited for first.
    engine: Pooled,
    file: File,
    path: String,
    len: u64,
    direct: bool,
}

impl LocalReader {
    /// What the device must read for so many bytes at an offset: from where, how much, and how much of that is before them.
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
            // What cannot be queued is read, or fails, when it is asked for.
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
            // O_DIRECT does not read from an offset that is not aligned: the file ended with what came before.
            Err(error) if done % ALIGNMENT != 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes a local file.
#[derive(Debug)]
pub struct LocalWriter {
    // Before the file: what is under way is waited for first.
    engine: Pooled,
    file: File,
    path: String,
    at: u64,
    filled: usize,
    /// The buffer of io_uring that is filled.
    held: usize,
    direct: bool,
    /// The last block of the file was filled up for O_DIRECT: the file must be cut to this length.
    cut: Option<u64>,
}

impl LocalWriter {
    fn failed(&self, action: &'static str, (at, error): &(u64, io::Error)) -> FsError {
        FsError::io(action, &self.path, error).at(*at)
    }

    /// Waits for what is under way, then cuts the file if its last block was filled up.
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
                "with O_DIRECT only the last buffer may have a length of its own",
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
        // write(2) has handed over what is not under way.
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
        // `File` ignores what close(2) says: NFS and quotas tell of failed writes there.
        // SAFETY: the descriptor is ours, and closed once.
        match unsafe { libc::close(file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(FsError::io("close", &path, &io::Error::last_os_error()).at(at)),
        }
    }
}
