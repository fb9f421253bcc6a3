//! Files of this machine: buffered or O_DIRECT, by `pread`/`pwrite` on the caller's thread.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::buffer::{ALIGNMENT, AlignedBuffer};
use super::error::{ErrorKind, FsError};
use super::{Access, CreateOptions, FileStat, FileSystem, OpenOptions, Reader, Writer};

/// How local files are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalOptions {
    /// `O_DIRECT`: past the page cache.
    pub direct: bool,
}

/// Buffers of closed files, for the next ones.
type Pool = Arc<Mutex<Vec<AlignedBuffer>>>;

/// Files of this machine.
#[derive(Clone, Debug, Default)]
pub struct Local {
    options: LocalOptions,
    pool: Pool,
}

impl Local {
    /// With these options.
    pub fn new(options: LocalOptions) -> Self {
        Self { options, pool: Pool::default() }
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

    fn taken(&self, bytes: usize) -> AlignedBuffer {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        match pool.pop() {
            Some(buffer) if buffer.len() >= bytes => buffer,
            _ => AlignedBuffer::new(bytes),
        }
    }

    /// A buffer of a file. With O_DIRECT its size must be a multiple of what that asks for.
    fn buffer(&self, path: &str, bytes: usize) -> Result<Pooled, FsError> {
        if self.options.direct && bytes % ALIGNMENT != 0 {
            return Err(FsError::new(
                ErrorKind::Invalid,
                "open",
                path,
                format!("O_DIRECT needs buffers of a multiple of {ALIGNMENT} bytes, got {bytes}"),
            )
            .hint("use a buffer of 1048576 bytes, or leave O_DIRECT out"));
        }
        Ok(Pooled { buffer: Some(self.taken(bytes)), pool: Arc::clone(&self.pool) })
    }

    fn opened(&self, action: &'static str, path: &str, options: &mut fs::OpenOptions) -> Result<File, FsError> {
        if self.options.direct {
            options.custom_flags(libc::O_DIRECT);
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

/// A buffer that goes back when its file is closed.
#[derive(Debug)]
struct Pooled {
    buffer: Option<AlignedBuffer>,
    pool: Pool,
}

impl Pooled {
    fn bytes(&mut self) -> &mut [u8] {
        self.buffer.as_deref_mut().unwrap_or_default()
    }

    /// The first `bytes`; a larger buffer than was announced is made when it is asked for.
    fn sized(&mut self, bytes: usize) -> &mut [u8] {
        if self.bytes().len() < bytes {
            self.buffer = Some(AlignedBuffer::new(bytes));
        }
        &mut self.bytes()[..bytes]
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.pool.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
        }
    }
}

impl FileSystem for Local {
    type Reader = LocalReader;
    type Writer = LocalWriter;

    async fn create(&self, path: &str, options: &CreateOptions) -> Result<LocalWriter, FsError> {
        if options.replication.is_some_and(|copies| copies > 1) {
            return Err(FsError::new(ErrorKind::Unsupported, "create", path, "local files are not replicated")
                .hint("leave dfs.replication out, or use hdfs://"));
        }
        let buffer = self.buffer(path, options.buffer_bytes)?;
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
        Ok(LocalWriter {
            file,
            path: path.to_owned(),
            at: 0,
            buffer,
            filled: 0,
            direct: self.options.direct,
            cut: false,
        })
    }

    async fn append(&self, path: &str, options: &CreateOptions) -> Result<LocalWriter, FsError> {
        let buffer = self.buffer(path, options.buffer_bytes)?;
        let file = self.opened("append to", path, fs::OpenOptions::new().write(true))?;
        let at = file.metadata().map_err(|error| FsError::io("append to", path, &error))?.len();
        if self.options.direct && at % ALIGNMENT as u64 != 0 {
            return Err(FsError::new(
                ErrorKind::Invalid,
                "append to",
                path,
                format!("O_DIRECT needs a length that is a multiple of {ALIGNMENT} bytes, the file has {at}"),
            )
            .hint("append without O_DIRECT"));
        }
        Ok(LocalWriter { file, path: path.to_owned(), at, buffer, filled: 0, direct: self.options.direct, cut: false })
    }

    async fn open(&self, path: &str, options: OpenOptions) -> Result<LocalReader, FsError> {
        let buffer = self.buffer(path, options.buffer_bytes)?;
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
        Ok(LocalReader { file, path: path.to_owned(), len: facts.len(), buffer, direct: self.options.direct })
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
        let file = fs::OpenOptions::new().write(true).open(path);
        file.and_then(|file| file.set_len(bytes)).map_err(|error| FsError::io("truncate", path, &error).at(bytes))
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
    file: File,
    path: String,
    len: u64,
    buffer: Pooled,
    direct: bool,
}

impl Reader for LocalReader {
    fn len(&self) -> u64 {
        self.len
    }

    async fn fetch(&mut self, offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        if !self.direct {
            let into = self.buffer.sized(bytes);
            let read =
                read_full(&self.file, offset, into).map_err(|e| FsError::io("read", &self.path, &e).at(offset))?;
            return Ok(&into[..read]);
        }
        // The device reads whole blocks: from the one that holds the offset to the one that holds the end.
        let before = (offset % ALIGNMENT as u64) as usize;
        let whole = (before + bytes).next_multiple_of(ALIGNMENT);
        let into = self.buffer.sized(whole);
        let from = offset - before as u64;
        let read = read_full(&self.file, from, into).map_err(|e| FsError::io("read", &self.path, &e).at(offset))?;
        Ok(&into[before.min(read)..(before + bytes).min(read)])
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
    file: File,
    path: String,
    at: u64,
    buffer: Pooled,
    filled: usize,
    direct: bool,
    /// The last block of the file was filled up for O_DIRECT: the file must be cut to its length.
    cut: bool,
}

impl Writer for LocalWriter {
    async fn buffer(&mut self, bytes: usize) -> Result<&mut [u8], FsError> {
        self.filled = bytes;
        Ok(self.buffer.sized(bytes))
    }

    async fn submit(&mut self) -> Result<(), FsError> {
        let failed = |error: io::Error| FsError::io("write", &self.path, &error).at(self.at);
        if self.cut {
            return Err(FsError::new(
                ErrorKind::Invalid,
                "write",
                &self.path,
                "with O_DIRECT only the last buffer may have a length of its own",
            ));
        }
        let mut whole = self.filled;
        if self.direct && whole % ALIGNMENT != 0 {
            whole = whole.next_multiple_of(ALIGNMENT);
            self.buffer.sized(whole)[self.filled..].fill(0);
            self.cut = true;
        }
        self.file.write_all_at(&self.buffer.bytes()[..whole], self.at).map_err(failed)?;
        self.at += self.filled as u64;
        if self.cut {
            self.file.set_len(self.at).map_err(|error| FsError::io("truncate", &self.path, &error).at(self.at))?;
        }
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
        // write(2) has handed it over.
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        self.file.sync_all().map_err(|error| FsError::io("sync", &self.path, &error).at(self.at))
    }

    async fn close(self) -> Result<(), FsError> {
        use std::os::fd::IntoRawFd;
        let Self { file, path, at, .. } = self;
        // `File` ignores what close(2) says: NFS and quotas tell of failed writes there.
        // SAFETY: the descriptor is ours, and closed once.
        match unsafe { libc::close(file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(FsError::io("close", &path, &io::Error::last_os_error()).at(at)),
        }
    }
}
