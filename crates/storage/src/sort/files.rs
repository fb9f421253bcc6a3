//! What a sort needs of a file system, and local files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::fs::{Location, Scheme};
use crate::sort::SortError;
use crate::sort::arena::ALIGNMENT;
use crate::sort::hdfs::OnHdfs;
use crate::sort::job::Job;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name within the directory.
    pub name: String,
    /// The length of a file.
    pub bytes: u64,
    /// Whether it is a directory itself.
    pub directory: bool,
}

/// A file system. Paths are absolute.
pub trait Files: Send + Sync {
    /// The entries of a directory, sorted by name; `None` if there is no such directory.
    fn list(&self, path: &str) -> Result<Option<Vec<Entry>>, SortError>;
    /// The names in a directory; `None` if there is no such directory.
    fn names(&self, path: &str) -> Result<Option<Vec<String>>, SortError>;
    /// Whether a file or directory exists.
    fn exists(&self, path: &str) -> Result<bool, SortError>;
    /// Opens a file.
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt>, SortError>;
    /// Creates a file that does not exist yet, with so many replicas if the file system replicates.
    fn create(&self, path: &str, replicas: Option<u16>) -> Result<Box<dyn Append>, SortError>;
    /// Creates a directory that does not exist yet, and its parents.
    fn make_directory(&self, path: &str) -> Result<(), SortError>;
    /// Renames a file or directory. A directory with entries that has the new name is an error.
    fn rename(&self, from: &str, to: &str) -> Result<(), SortError>;
    /// Removes a directory with everything in it, if it exists.
    fn remove(&self, path: &str) -> Result<(), SortError>;
    /// Makes the entries of a directory durable.
    fn sync_directory(&self, path: &str) -> Result<(), SortError>;
}

/// A file to read from.
pub trait ReadAt: Send {
    /// Fills the buffer from an offset on. Returns the number of bytes: fewer only at the end of the file.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, SortError>;
}

/// A file that is written once, sequentially.
pub trait Append: Send {
    /// Writes all of it.
    fn write(&mut self, bytes: &[u8]) -> Result<(), SortError>;
    /// Closes the file; if it is to be durable, after the device has it.
    fn finish(self: Box<Self>, durable: bool) -> Result<(), SortError>;
}

/// Reads at least `wanted` bytes into a buffer that may be longer, as direct I/O reads whole blocks.
pub fn read_exactly(
    file: &mut dyn ReadAt,
    path: &str,
    buffer: &mut [u8],
    offset: u64,
    wanted: usize,
) -> Result<(), SortError> {
    let got = file.read_at(buffer, offset)?;
    if got >= wanted {
        return Ok(());
    }
    Err(SortError::new(format!("{path} ends at offset {}, but was longer when it was listed", offset + got as u64))
        .hint("do not change files while they are sorted"))
}

/// Reads a small file.
pub fn read_all(files: &dyn Files, path: &str) -> Result<Vec<u8>, SortError> {
    let mut file = files.open(path)?;
    let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let got = file.read_at(&mut buffer, all.len() as u64)?;
        all.extend_from_slice(&buffer[..got]);
        if got < buffer.len() {
            return Ok(all);
        }
    }
}

/// Writes a small file.
pub fn write_all(files: &dyn Files, path: &str, bytes: &[u8]) -> Result<(), SortError> {
    let mut file = files.create(path, None)?;
    file.write(bytes)?;
    file.finish(true)
}

/// The path of a name in a directory.
pub fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// The hint when a disk is full.
pub const SPACE: &str =
    "free some space: a sort in memory needs room for its output, an external one for twice its input";

/// An error of the operating system, with a hint where there is one.
pub fn failure(what: &str, path: &str, error: &io::Error) -> SortError {
    let wrong = SortError::new(format!("cannot {what} {path}: {error}"));
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => wrong.hint(SPACE),
        ErrorKind::NotFound => wrong.hint("check the path"),
        ErrorKind::PermissionDenied => wrong.hint("check its owner and permissions"),
        ErrorKind::NotADirectory => wrong.hint("give the directory that holds the files"),
        _ => wrong,
    }
}

/// Local files. Rows are read directly to where they are sorted, without a copy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local {
    /// Whether to bypass the page cache (`O_DIRECT`), if the file system can.
    pub direct: bool,
}

struct LocalFile {
    file: File,
    path: String,
    /// Whether the next read or write bypasses the page cache.
    direct: bool,
    /// The offset of the next write.
    at: u64,
}

impl Local {
    fn opened(self, path: &str, action: &str, options: &mut OpenOptions) -> Result<Box<LocalFile>, SortError> {
        let flags = if self.direct { libc::O_DIRECT } else { 0 };
        let (file, direct) = match options.custom_flags(flags).open(path) {
            // open(2): the file system does not support O_DIRECT.
            Err(error) if self.direct && error.raw_os_error() == Some(libc::EINVAL) => {
                (options.custom_flags(0).open(path), false)
            }
            opened => (opened, self.direct),
        };
        let file = file.map_err(|error| failure(action, path, &error))?;
        Ok(Box::new(LocalFile { file, path: path.to_owned(), direct, at: 0 }))
    }
}

impl LocalFile {
    /// Direct I/O needs aligned memory, offsets and lengths: from the first that is not, the file uses the page cache.
    fn suit(&mut self, address: *const u8, offset: u64, bytes: usize) -> Result<(), SortError> {
        let suits = |number: usize| number.is_multiple_of(ALIGNMENT);
        if !self.direct || (suits(address.addr()) && suits(offset as usize) && suits(bytes)) {
            return Ok(());
        }
        self.direct = false;
        // SAFETY: plain numbers and a descriptor that is ours. No other flag of it can be set.
        match unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_SETFL, 0) } {
            0 => Ok(()),
            _ => Err(failure("clear O_DIRECT of", &self.path, &io::Error::last_os_error())),
        }
    }
}

impl Files for Local {
    fn list(&self, path: &str) -> Result<Option<Vec<Entry>>, SortError> {
        let wrong = |error: io::Error| failure("list", path, &error);
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry.map_err(wrong)?;
            // Through symbolic links: inputs are often collected by them.
            let facts = fs::metadata(entry.path()).map_err(wrong)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !facts.is_file() && !facts.is_dir() {
                // Its length is 0, so its rows would be missed silently.
                return Err(SortError::usage(format!("{} is not a regular file", entry.path().display()))
                    .hint("remove it, or replace it by a file"));
            }
            all.push(Entry { name, bytes: facts.len(), directory: facts.is_dir() });
        }
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(Some(all))
    }

    fn names(&self, path: &str) -> Result<Option<Vec<String>>, SortError> {
        let wrong = |error: io::Error| failure("list", path, &error);
        let entries = match fs::read_dir(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(wrong)?,
        };
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry.map_err(wrong)?.file_name().to_string_lossy().into_owned());
        entries.map(name).collect::<Result<_, SortError>>().map(Some)
    }

    fn exists(&self, path: &str) -> Result<bool, SortError> {
        Path::new(path).try_exists().map_err(|error| failure("look for", path, &error))
    }

    fn open(&self, path: &str) -> Result<Box<dyn ReadAt>, SortError> {
        Ok(self.opened(path, "open", OpenOptions::new().read(true))?)
    }

    fn create(&self, path: &str, _replicas: Option<u16>) -> Result<Box<dyn Append>, SortError> {
        Ok(self.opened(path, "create", OpenOptions::new().write(true).create_new(true))?)
    }

    fn make_directory(&self, path: &str) -> Result<(), SortError> {
        if let Some(parent) = Path::new(path).parent() {
            fs::create_dir_all(parent).map_err(|error| failure("create", path, &error))?;
        }
        fs::create_dir(path).map_err(|error| failure("create", path, &error))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), SortError> {
        fs::rename(from, to).map_err(|error| failure("rename", from, &error))
    }

    fn remove(&self, path: &str) -> Result<(), SortError> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failure("remove", path, &error)),
            _ => Ok(()),
        }
    }

    fn sync_directory(&self, path: &str) -> Result<(), SortError> {
        let synced = File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(|error| failure("flush", path, &error))
    }
}

impl ReadAt for LocalFile {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, SortError> {
        self.suit(buffer.as_ptr(), offset, buffer.len())?;
        let mut got = 0;
        while got < buffer.len() {
            match self.file.read_at(&mut buffer[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(more) => {
                    got += more;
                    // The file ends within a block: the next offset is not aligned.
                    if self.direct && got % ALIGNMENT != 0 {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let place = format!("{} at offset {}", self.path, offset + got as u64);
                    return Err(failure("read", &place, &error));
                }
            }
        }
        Ok(got)
    }
}

impl Append for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SortError> {
        let whole = bytes.len() / ALIGNMENT * ALIGNMENT;
        for bytes in [&bytes[..whole], &bytes[whole..]] {
            if bytes.is_empty() {
                continue;
            }
            self.suit(bytes.as_ptr(), self.at, bytes.len())?;
            self.file
                .write_all_at(bytes, self.at)
                .map_err(|error| failure("write", &format!("{} at offset {}", self.path, self.at), &error))?;
            self.at += bytes.len() as u64;
        }
        Ok(())
    }

    fn finish(self: Box<Self>, durable: bool) -> Result<(), SortError> {
        if !durable {
            return Ok(());
        }
        self.file.sync_all().map_err(|error| failure("flush", &self.path, &error))
    }
}

/// The file system of a path or URI, and the path on it.
pub fn locate(text: &str, job: &Job) -> Result<(Box<dyn Files>, String), SortError> {
    let location = Location::parse(text)?;
    let files: Box<dyn Files> = match location.scheme {
        Scheme::File => Box::new(Local { direct: job.direct }),
        Scheme::Hdfs => Box::new(OnHdfs::new(&location.authority, job)?),
    };
    Ok((files, location.path))
}
