//! HDFS without a JVM. Plain files that are newly written, or read from start to end, are accessed directly; everything
//! else goes through the crate `hdfs-native`. Replication and block size can be set per file.
//!
//! `hdfs-native` lacks truncate and hflush (its flush is an hsync, which is a stronger guarantee).

#![expect(clippy::large_futures, reason = "the client's futures; the executors' stacks are large enough")]

mod block_reader;
mod block_writer;
mod data_node;
mod error;
mod lease;
mod messages;
mod name_node;
mod packets;
mod pipeline;
mod reader;
#[cfg(test)]
mod scripted_cluster;
#[cfg(test)]
mod scripted_data_node;
mod write_messages;
#[cfg(test)]
mod write_tests;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;

use hdfs_native::client::FileStatus;
use hdfs_native::{Client, ClientBuilder, WriteOptions};

use self::block_writer::BlockWriter;
use self::error::action_error;
pub use self::error::{data_node_failures, last_warning};
use self::name_node::NameNode;
use self::pipeline::REACH;
pub use self::reader::HdfsReader;
pub use self::writer::HdfsWriter;
use super::error::{FsError, FsErrorKind};
use super::{CreateOptions, FileKind, FileStat, FileSystem, OpenOptions};

const BEST_EFFORT: &str = "dfs.client.block.write.replace-datanode-on-failure.best-effort";
/// The mode in which new directories are created.
const DIRECTORY_MODE: u32 = 0o755;

/// The file system of a name node.
#[derive(Clone, Debug)]
pub struct Hdfs {
    client: Client,
    name_node: Arc<NameNode>,
    settings: Arc<BTreeMap<String, String>>,
}

impl Hdfs {
    /// The file system of a name node (`host:port`), with Hadoop's settings. Must be created within the tokio runtime
    /// that drives it. Nothing is sent before the first call.
    pub fn new(authority: &str, settings: &BTreeMap<String, String>) -> Result<Self, FsError> {
        error::keep_warnings();
        let url = format!("hdfs://{authority}");
        let mut settings = settings.clone();
        // Hadoop's client replaces a lost node of a block with 3 copies only after an append or a flush. `hdfs-native`
        // does so for any block that contains bytes, and fails if there is no fourth node.
        settings.entry(BEST_EFFORT.to_owned()).or_insert_with(|| "true".to_owned());
        // The user is determined as in `hdfs-native` (`get_simple_user`) and in Hadoop.
        let user = std::env::var("HADOOP_USER_NAME").or_else(|_| whoami::username());
        let name_node = Arc::new(NameNode::new(authority, user.unwrap_or_else(|_| "unknown".to_owned()), &settings));
        let built = ClientBuilder::new()
            .with_url(&url)
            .with_config(settings.clone())
            .with_io_runtime(tokio::runtime::Handle::current())
            .build();
        let settings = Arc::new(settings);
        built.map(|client| Self { client, name_node, settings }).map_err(|error| action_error("open", &url, &error))
    }
}

/// Checks that a name node accepts connections, because the client itself retries for minutes. An address without a
/// port may be a name service, whose hosts are known only from the client's settings.
pub fn reach(authority: &str) -> Result<(), FsError> {
    let url = format!("hdfs://{authority}");
    if !authority.contains(':') {
        return Ok(());
    }
    let unreachable = |error: &io::Error| FsError::new(FsErrorKind::Unavailable, "reach", &url, error.to_string());
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in authority.to_socket_addrs().map_err(|error| unreachable(&error))? {
        match TcpStream::connect_timeout(&address, REACH) {
            Ok(_) => return Ok(()),
            Err(error) => last = error,
        }
    }
    Err(unreachable(&last))
}

impl FileSystem for Hdfs {
    type Reader = HdfsReader;
    type Writer = HdfsWriter;

    async fn create(&self, path: &str, options: &CreateOptions) -> Result<HdfsWriter, FsError> {
        let direct = BlockWriter::create(&self.name_node, &self.settings, path, options).await;
        if let Some(direct) = direct.map_err(|error| action_error("create", path, &error))? {
            return Ok(HdfsWriter::direct(&self.client, direct, path));
        }
        let how = WriteOptions {
            block_size: options.block_bytes,
            replication: options.replication,
            overwrite: options.overwrite,
            create_parent: options.parents,
            ..WriteOptions::default()
        };
        let file = self.client.create(path, how).await.map_err(|error| action_error("create", path, &error))?;
        Ok(HdfsWriter::new(&self.client, file, path, 0, options.buffer_bytes))
    }

    async fn append(&self, path: &str, options: &CreateOptions) -> Result<HdfsWriter, FsError> {
        let at = self.read_stat(path).await?.bytes;
        let file = self.client.append(path).await.map_err(|error| action_error("append to", path, &error))?;
        Ok(HdfsWriter::new(&self.client, file, path, at, options.buffer_bytes))
    }

    async fn open(&self, path: &str, options: OpenOptions) -> Result<HdfsReader, FsError> {
        HdfsReader::open(&self.client, &self.name_node, path, options).await
    }

    async fn read_stat(&self, path: &str) -> Result<FileStat, FsError> {
        let status = self.client.get_file_info(path).await.map_err(|error| action_error("stat", path, &error))?;
        Ok(stat(status))
    }

    async fn list_folder(&self, path: &str) -> Result<Vec<FileStat>, FsError> {
        let listed = self.client.list_status(path, false).await.map_err(|error| action_error("list", path, &error))?;
        let mut entries: Vec<_> = listed.into_iter().map(stat).collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), FsError> {
        self.client.rename(from, to, false).await.map_err(|error| action_error("rename", from, &error))
    }

    async fn delete(&self, path: &str) -> Result<bool, FsError> {
        self.client.delete(path, true).await.map_err(|error| action_error("delete", path, &error))
    }

    async fn create_folders(&self, path: &str) -> Result<(), FsError> {
        let created = self.client.mkdirs(path, DIRECTORY_MODE, true).await;
        created.map_err(|error| action_error("create the directory", path, &error))
    }

    async fn truncate(&self, path: &str, _bytes: u64) -> Result<(), FsError> {
        Err(FsError::new(FsErrorKind::Unsupported, "truncate", path, "the native HDFS client has no truncate")
            .hint("use `hdfs dfs -truncate`, or Hadoop's TestDFSIO -truncate"))
    }
}

fn stat(status: FileStatus) -> FileStat {
    FileStat {
        kind: if status.isdir { FileKind::Directory } else { FileKind::File },
        bytes: status.length as u64,
        replication: status.replication.filter(|_| !status.isdir),
        block_bytes: status.blocksize.filter(|_| !status.isdir),
        path: status.path,
    }
}
