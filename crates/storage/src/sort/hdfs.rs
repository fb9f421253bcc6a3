//! HDFS for sorts: blocking calls of the file-system layer's client.

use std::future::Future;
use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

use crate::fs::hdfs::{Hdfs, HdfsReader, HdfsWriter};
use crate::fs::{Access, CreateOptions, ErrorKind, FileSystem, FsError, OpenOptions, Reader, Writer};
use crate::sort::SortError;
use crate::sort::files::{Append, Entry, Files, ReadAt};
use crate::sort::job::Job;

/// Threads that move packets, for all files of the process.
const IO_THREADS: usize = 2;

/// An HDFS cluster.
pub struct OnHdfs {
    hdfs: Hdfs,
    block_bytes: Option<u64>,
    buffer_bytes: usize,
}

fn runtime() -> Result<&'static Runtime, SortError> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| Builder::new_multi_thread().worker_threads(IO_THREADS).enable_all().build());
    made.as_ref().map_err(|error| SortError::new(format!("cannot start the threads of the HDFS client: {error}")))
}

/// Waits for an answer.
fn wait<T>(answer: impl Future<Output = Result<T, FsError>>) -> Result<T, SortError> {
    Ok(runtime()?.block_on(answer)?)
}

/// The same; `None` if it does not exist.
fn wait_for_any<T>(answer: impl Future<Output = Result<T, FsError>>) -> Result<Option<T>, SortError> {
    match runtime()?.block_on(answer) {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        other => Ok(Some(other?)),
    }
}

impl OnHdfs {
    /// A client of a name node, with the settings of a job.
    pub fn new(authority: &str, job: &Job) -> Result<Self, SortError> {
        let _within = runtime()?.enter();
        let hdfs = Hdfs::new(authority, &job.properties)?;
        Ok(Self { hdfs, block_bytes: job.block_bytes, buffer_bytes: job.sizes().block })
    }
}

impl Files for OnHdfs {
    fn list(&self, path: &str) -> Result<Option<Vec<Entry>>, SortError> {
        let entries = wait_for_any(self.hdfs.list(path))?;
        Ok(entries.map(|entries| {
            let entry = |stat: crate::fs::FileStat| Entry {
                name: stat.path.rsplit('/').next().unwrap_or_default().to_owned(),
                bytes: stat.bytes,
                directory: stat.directory,
            };
            entries.into_iter().map(entry).collect()
        }))
    }

    fn names(&self, path: &str) -> Result<Option<Vec<String>>, SortError> {
        Ok(self.list(path)?.map(|entries| entries.into_iter().map(|entry| entry.name).collect()))
    }

    fn exists(&self, path: &str) -> Result<bool, SortError> {
        Ok(wait_for_any(self.hdfs.stat(path))?.is_some())
    }

    fn open(&self, path: &str) -> Result<Box<dyn ReadAt>, SortError> {
        let how = OpenOptions { access: Access::Sequential, buffer_bytes: self.buffer_bytes };
        Ok(Box::new(wait(self.hdfs.open(path, how))?))
    }

    fn create(&self, path: &str, replicas: Option<u16>) -> Result<Box<dyn Append>, SortError> {
        let how = CreateOptions {
            replication: replicas.map(u32::from),
            block_bytes: self.block_bytes,
            overwrite: false,
            buffer_bytes: self.buffer_bytes,
            file_bytes: None,
        };
        Ok(Box::new(wait(self.hdfs.create(path, &how))?))
    }

    fn make_directory(&self, path: &str) -> Result<(), SortError> {
        wait(self.hdfs.mkdirs(path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), SortError> {
        wait(self.hdfs.rename(from, to))
    }

    fn remove(&self, path: &str) -> Result<(), SortError> {
        wait(self.hdfs.delete(path)).map(|_| ())
    }

    fn sync_directory(&self, _: &str) -> Result<(), SortError> {
        // The name node logs a change before it answers.
        Ok(())
    }
}

impl ReadAt for HdfsReader {
    fn read_at(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, SortError> {
        wait(Reader::read_at(self, offset, buffer))
    }
}

impl Append for HdfsWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), SortError> {
        wait(Writer::write(self, bytes))
    }

    fn finish(mut self: Box<Self>, durable: bool) -> Result<(), SortError> {
        if durable {
            wait(self.sync())?;
        }
        wait(self.close())
    }
}
