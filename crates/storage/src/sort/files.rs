//! The file system operations that a sort needs. Calls block, and any number of threads can make them.

use std::io;
use std::sync::OnceLock;

use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};

use crate::fs::hdfs::Hdfs;
use crate::fs::local::{Direct, Local, LocalOptions};
use crate::fs::{
    AccessHint, CreateOptions, FileStat, FileSystem, FsError, FsErrorKind, Location, OpenOptions, Reader, Scheme,
    Writer,
};
use crate::sort::SortError;
use crate::sort::job::Job;

/// Number of threads that transfer HDFS packets, for all files of the process.
const IO_THREADS: usize = 2;
/// The hint when a file on HDFS cannot be read.
const LOST: &str = "check that all data nodes are running, then run the job again: the runs of an external sort have one copy \
                    each, or as many as --run-copies sets";
/// Number of attempts to complete a file, provided that none of its bytes are lost.
const COMPLETIONS: usize = 5;
/// Number of times that a file is written before its job fails because of lost servers.
const WRITES: usize = 3;

/// A file system. Paths are absolute.
pub trait Files: Send + Sync {
    /// Returns the entries of a directory, sorted by name; `None` if the directory does not exist.
    fn list_files(&self, path: &str) -> Result<Option<Vec<FileStat>>, SortError>;
    /// Whether a file or directory exists.
    fn has_file(&self, path: &str) -> Result<bool, SortError>;
    /// Opens a file.
    fn open_file(&self, path: &str) -> Result<Box<dyn ReadAt>, SortError>;
    /// Creates a file in an existing directory. The file must not exist. It has this number of replicas, if the file
    /// system replicates.
    fn create_file(&self, path: &str, replicas: Option<u16>) -> Result<Box<dyn Append>, SortError>;
    /// Creates a directory and its missing parents.
    fn make_directory(&self, path: &str) -> Result<(), SortError>;
    /// Renames a file or directory; the new name must not exist.
    fn rename_file(&self, from: &str, to: &str) -> Result<(), SortError>;
    /// Removes a file, or a directory and its contents, if it exists.
    fn remove_file(&self, path: &str) -> Result<(), SortError>;
    /// Makes the entries of a directory durable.
    fn sync_directory(&self, path: &str) -> Result<(), SortError>;
}

/// A file to read from.
pub trait ReadAt: Send {
    /// Fills the buffer from an offset on. Returns the number of bytes, which is smaller than the buffer only at the
    /// end of the file.
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, SortError>;
}

/// A file that is written once, sequentially.
pub trait Append: Send {
    /// Writes all bytes.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), SortError>;
    /// Closes the file. If it must be durable, it is on the device before the call returns.
    fn finish_file(self: Box<Self>, durable: bool) -> Result<(), SortError>;
}

/// Reads at least `required` bytes into a buffer that may be longer, because direct I/O reads whole blocks.
pub fn read_exactly(
    file: &mut dyn ReadAt,
    path: &str,
    buffer: &mut [u8],
    offset: u64,
    required: usize,
) -> Result<(), SortError> {
    let got = file.read_at(buffer, offset)?;
    if got >= required {
        return Ok(());
    }
    Err(SortError::new(format!("{path} ends at offset {}, but was longer when it was listed", offset + got as u64))
        .hint("do not change files while they are being sorted"))
}

/// Reads a small file.
pub fn read_all(files: &dyn Files, path: &str) -> Result<Vec<u8>, SortError> {
    let mut file = files.open_file(path)?;
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
    rewrite_file(
        (files, path),
        (),
        || Ok(()),
        |()| {
            let mut file = files.create_file(path, None)?;
            file.write_bytes(bytes)?;
            file.finish_file(true)
        },
    )
}

/// Writes a file. If servers were lost while it was written, writes it again from its beginning, with new memory.
pub fn rewrite_file<M, T>(
    (files, path): (&dyn Files, &str),
    mut memory: M,
    renew: impl Fn() -> Result<M, SortError>,
    mut write: impl FnMut(M) -> Result<T, SortError>,
) -> Result<T, SortError> {
    for _ in 1..WRITES {
        match write(memory) {
            Err(error) if error.rewrite => files.remove_file(path)?,
            ended => return ended,
        }
        memory = renew()?;
    }
    write(memory)
}

/// The path of `name` in a directory.
pub fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

/// The file system of a path or URI, and the path on that file system. With `direct`, local files bypass the page
/// cache. The HDFS client buffers `buffer_bytes` bytes for each file being written.
pub fn locate(text: &str, job: &Job, direct: bool, buffer_bytes: usize) -> Result<(Box<dyn Files>, String), SortError> {
    let location = Location::parse(text)?;
    let files: Box<dyn Files> = match location.scheme {
        Scheme::File => Box::new(local(if direct { Direct::IfPossible } else { Direct::Off })),
        Scheme::Hdfs => {
            let runtime = runtime()?;
            let _within = runtime.enter();
            let system = Hdfs::new(&location.authority, &job.properties)?;
            let create = create_options(job.block_bytes, buffer_bytes);
            Box::new(Blocking { system, create, replicates: true, waiting: Waiting(Some(runtime)) })
        }
    };
    Ok((files, location.path))
}

/// Local files. Rows are read directly, without a copy, into the place where they are sorted.
pub fn local(direct: Direct) -> impl Files {
    let system = Local::new(LocalOptions { direct, uring_depth: None });
    Blocking { system, create: create_options(None, 0), replicates: false, waiting: Waiting(None) }
}

fn create_options(block_bytes: Option<u64>, buffer_bytes: usize) -> CreateOptions {
    CreateOptions { block_bytes, buffer_bytes, overwrite: false, parents: false, ..CreateOptions::default() }
}

fn runtime() -> Result<&'static Runtime, SortError> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let result = RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(IO_THREADS).enable_all().build());
    result.as_ref().map_err(|error| SortError::new(format!("cannot start the threads of the HDFS client: {error}")))
}

/// Waits for the results of a file system: on this runtime, or without a runtime if results are ready at the first
/// poll.
#[derive(Clone, Copy)]
struct Waiting(Option<&'static Runtime>);

impl Waiting {
    fn wait_for<T>(self, answer: impl Future<Output = Result<T, FsError>>) -> Result<T, FsError> {
        match self.0 {
            Some(runtime) => runtime.block_on(answer).map_err(|error| match error.kind {
                FsErrorKind::Corrupt | FsErrorKind::Timeout | FsErrorKind::Other if error.hint.is_none() => {
                    error.hint("check that all data nodes are running, then run the job again")
                }
                _ => error,
            }),
            None => answer.now_or_never().unwrap_or_else(|| {
                Err(FsError::new(FsErrorKind::Other, "wait for", "a file", "internal error: it needs a runtime"))
            }),
        }
    }

    /// Waits for a result; returns `None` if the file does not exist.
    fn wait_for_any<T>(self, answer: impl Future<Output = Result<T, FsError>>) -> Result<Option<T>, SortError> {
        match self.wait_for(answer) {
            Err(error) if error.kind == FsErrorKind::NotFound => Ok(None),
            other => Ok(Some(other?)),
        }
    }
}

/// A file system of the file-system layer, wrapped to provide blocking calls.
struct Blocking<F> {
    system: F,
    create: CreateOptions,
    /// Whether the file system stores several copies of a file.
    replicates: bool,
    waiting: Waiting,
}

/// An open file.
struct Opened<T>(T, Waiting);

impl<F: FileSystem> Files for Blocking<F>
where
    F::Reader: 'static,
    F::Writer: 'static,
{
    fn list_files(&self, path: &str) -> Result<Option<Vec<FileStat>>, SortError> {
        self.waiting.wait_for_any(self.system.list_folder(path))
    }

    fn has_file(&self, path: &str) -> Result<bool, SortError> {
        Ok(self.waiting.wait_for_any(self.system.read_stat(path))?.is_some())
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadAt>, SortError> {
        let how = OpenOptions { access: AccessHint::Sequential, buffer_bytes: self.create.buffer_bytes };
        Ok(Box::new(Opened(self.waiting.wait_for(self.system.open(path, how))?, self.waiting)))
    }

    fn create_file(&self, path: &str, replicas: Option<u16>) -> Result<Box<dyn Append>, SortError> {
        let replication = replicas.filter(|_| self.replicates).map(u32::from);
        let how = CreateOptions { replication, ..self.create.clone() };
        Ok(Box::new(Opened(self.waiting.wait_for(self.system.create(path, &how))?, self.waiting)))
    }

    fn make_directory(&self, path: &str) -> Result<(), SortError> {
        Ok(self.waiting.wait_for(self.system.create_folders(path))?)
    }

    fn rename_file(&self, from: &str, to: &str) -> Result<(), SortError> {
        Ok(self.waiting.wait_for(self.system.rename(from, to))?)
    }

    fn remove_file(&self, path: &str) -> Result<(), SortError> {
        self.waiting.wait_for(self.system.delete(path))?;
        Ok(())
    }

    fn sync_directory(&self, path: &str) -> Result<(), SortError> {
        Ok(self.waiting.wait_for(self.system.sync_directory(path))?)
    }
}

impl<R: Reader> ReadAt for Opened<R> {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, SortError> {
        let read = self.1.wait_for(self.0.read_at(offset, buffer));
        Ok(read.map_err(|error| if self.1.0.is_some() { error.hint(LOST) } else { error })?)
    }
}

impl<W: Writer> Append for Opened<W> {
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), SortError> {
        self.1.wait_for(self.0.write_copy(bytes)).map_err(refuse_write)
    }

    fn finish_file(self: Box<Self>, durable: bool) -> Result<(), SortError> {
        let Self(mut file, waiting) = *self;
        if durable {
            waiting.wait_for(file.sync()).map_err(refuse_write)?;
        }
        let end = file.position();
        for _ in 0..COMPLETIONS {
            match waiting.wait_for(file.complete_file()) {
                // The file was recovered, and nothing is missing.
                Err(error) if error.kind == FsErrorKind::Rewound && file.position() == end => {}
                completed => {
                    completed.map_err(refuse_write)?;
                    break;
                }
            }
        }
        waiting.wait_for(file.close()).map_err(refuse_write)
    }
}

/// The error for a file that could not be written.
fn refuse_write(error: FsError) -> SortError {
    let rewrite = matches!(error.kind, FsErrorKind::Rewound | FsErrorKind::Unavailable | FsErrorKind::Timeout);
    SortError { rewrite, ..error.into() }
}
