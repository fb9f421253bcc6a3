//! A file system that stores nothing, for measuring the engine's own cost: writes are discarded, and reads return
//! zeros.

use super::{CreateOptions, FileKind, FileStat, FileSystem, FsError, OpenOptions, Reader, Writer};

/// The file system that stores nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullFs;

/// A buffer that serves every read and write.
#[derive(Debug)]
pub struct NullFile(Vec<u8>);

impl FileSystem for NullFs {
    type Reader = NullFile;
    type Writer = NullFile;
    const KEEPS: bool = false;

    async fn create(&self, _path: &str, options: &CreateOptions) -> Result<NullFile, FsError> {
        Ok(NullFile(vec![0; options.buffer_bytes]))
    }

    async fn append(&self, _path: &str, options: &CreateOptions) -> Result<NullFile, FsError> {
        Ok(NullFile(vec![0; options.buffer_bytes]))
    }

    async fn open(&self, _path: &str, options: OpenOptions) -> Result<NullFile, FsError> {
        Ok(NullFile(vec![0; options.buffer_bytes]))
    }

    async fn read_stat(&self, path: &str) -> Result<FileStat, FsError> {
        Ok(FileStat { path: path.to_owned(), kind: FileKind::File, bytes: 0, replication: None, block_bytes: None })
    }

    async fn list_folder(&self, _path: &str) -> Result<Vec<FileStat>, FsError> {
        Ok(Vec::new())
    }

    async fn rename(&self, _from: &str, _to: &str) -> Result<(), FsError> {
        Ok(())
    }

    async fn delete(&self, _path: &str) -> Result<bool, FsError> {
        Ok(false)
    }

    async fn create_folders(&self, _path: &str) -> Result<(), FsError> {
        Ok(())
    }

    async fn truncate(&self, _path: &str, _bytes: u64) -> Result<(), FsError> {
        Ok(())
    }
}

impl Reader for NullFile {
    fn len(&self) -> u64 {
        u64::MAX
    }

    async fn fetch_bytes(&mut self, _offset: u64, bytes: usize) -> Result<&[u8], FsError> {
        Ok(&self.0[..bytes])
    }
}

impl Writer for NullFile {
    async fn reserve_buffer(&mut self, bytes: usize) -> Result<&mut [u8], FsError> {
        Ok(&mut self.0[..bytes])
    }

    async fn submit_buffer(&mut self) -> Result<(), FsError> {
        Ok(())
    }

    fn position(&self) -> u64 {
        0
    }

    async fn seek_to(&mut self, _offset: u64) -> Result<(), FsError> {
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), FsError> {
        Ok(())
    }

    async fn sync(&mut self) -> Result<(), FsError> {
        Ok(())
    }

    async fn close(self) -> Result<(), FsError> {
        Ok(())
    }
}
