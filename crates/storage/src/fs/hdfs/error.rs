//! Converts the errors of the crate `hdfs-native`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use hdfs_native::HdfsError;
use log::{LevelFilter, Log, Metadata, Record};

use crate::fs::error::{FsError, FsErrorKind};

/// The target prefix of `hdfs-native`'s log records.
const CRATE: &str = "hdfs_native";
/// The modules that talk to data nodes. Each of their warnings reports a failed attempt.
const DATA_NODES: [&str; 2] = ["hdfs_native::hdfs::block_reader", "hdfs_native::hdfs::block_writer"];
/// Text of the warning about a block with wrong checksums: `hdfs-native` reports them in no other way.
const CHECKSUM: &str = "ChecksumError";
/// Maximum length of a stored warning, in characters. `hdfs-native`'s records contain full descriptions of data nodes,
/// of about 600 characters each.
const WARNING_CHARS: usize = 300;

/// Stores `hdfs-native`'s last warning, because the error `All DataNodes failed` does not state the reason; only the
/// log does. Also counts warnings about data nodes, because a read or write that then succeeds with another node does
/// not report the failure.
struct Warnings {
    last: Mutex<String>,
    data_nodes: AtomicU64,
}

static WARNINGS: Warnings = Warnings { last: Mutex::new(String::new()), data_nodes: AtomicU64::new(0) };

/// Number of failed attempts in this process to read from or write to a data node, whatever the outcome of the read or
/// write.
pub fn data_node_failures() -> u64 {
    WARNINGS.data_nodes.load(Ordering::Relaxed)
}

/// The client's last warning; empty if there was none.
pub fn last_warning() -> String {
    WARNINGS.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Warnings {
    fn keep_warning(&self, text: String, of_data_node: bool) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.data_nodes.fetch_add(u64::from(of_data_node), Ordering::Relaxed);
    }
}

/// Records a failure, outside `hdfs-native`, to read from or write to a data node.
pub(super) fn note_data_node_failure(text: String) {
    WARNINGS.keep_warning(text, true);
}

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn && metadata.target().starts_with(CRATE)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let text = with_addresses(&record.args().to_string());
            // This warning is ignored, because the client then opens a new connection. A cached connection may belong
            // to an executor that has ended.
            if text.starts_with("Failed to use cached connection") {
                return;
            }
            self.keep_warning(text, DATA_NODES.contains(&record.target()));
        }
    }

    fn flush(&self) {}
}

/// Stores `hdfs-native`'s warnings from now on.
pub(super) fn keep_warnings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if log::set_logger(&WARNINGS).is_ok() {
            log::set_max_level(LevelFilter::Warn);
        }
    });
}

/// Text from `hdfs-native`, shortened to one line, with each description of a data node replaced by the node's address.
fn with_addresses(text: &str) -> String {
    let mut shortened = String::new();
    let mut rest = text;
    while let Some((before, description)) = rest.split_once("DatanodeIdProto {") {
        let (description, after) = description.split_once('}').unwrap_or((description, ""));
        let value = |name: &str, end: char| {
            let text = description.split_once(name).and_then(|(_, value)| value.split(end).next());
            text.unwrap_or("?").to_owned()
        };
        shortened += &format!("{before}{}:{}", value("ip_addr: \"", '"'), value("xfer_port: ", ','));
        rest = after;
    }
    shortened += rest;
    shortened.lines().next().unwrap_or_default().chars().take(WARNING_CHARS).collect()
}

/// Converts an error of `hdfs-native`, and adds the action that failed.
pub(super) fn action_error(action: &'static str, path: &str, error: &HdfsError) -> FsError {
    let mut kind = match error {
        HdfsError::IOError(error) => return FsError::io(action, path, error),
        HdfsError::FileNotFound(_) => FsErrorKind::NotFound,
        HdfsError::AlreadyExists(_) => FsErrorKind::AlreadyExists,
        HdfsError::ChecksumError => FsErrorKind::Corrupt,
        HdfsError::InvalidPath(_)
        | HdfsError::InvalidArgument(_)
        | HdfsError::UrlParseError(_)
        | HdfsError::IsADirectoryError(_) => FsErrorKind::Invalid,
        HdfsError::DataTransferError(_) | HdfsError::BlocksNotFound(_) => FsErrorKind::Unavailable,
        HdfsError::UnsupportedFeature(_) | HdfsError::UnsupportedErasureCodingPolicy(_) => FsErrorKind::Unsupported,
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => kind_of_class(class, message),
        _ => FsErrorKind::Other,
    };
    if let HdfsError::AlreadyExists(text) = error
        && text.contains("lease")
    {
        let message = text.lines().next().unwrap_or_default();
        return FsError::new(FsErrorKind::Unavailable, action, path, message).hint(
            "another client is writing it: stop that client, and wait 60 s, after which its lease can be taken over",
        );
    }
    let text = error.to_string();
    // "All DataNodes failed: [DatanodeInfoProto { … }]" has about 600 characters for each node.
    let mut message =
        text.lines().next().and_then(|line| line.split(": [DatanodeInfoProto").next()).unwrap_or_default().to_owned();
    if matches!(error, HdfsError::DataTransferError(_)) {
        let last = last_warning();
        if !last.is_empty() {
            message = format!("{message}; the client's last warning: {last}");
        }
        if last.contains(CHECKSUM) {
            kind = FsErrorKind::Corrupt;
        }
    }
    let failed = FsError::new(kind, action, path, message);
    if kind == FsErrorKind::Corrupt {
        return failed.hint(format!("its copies are damaged: run hdfs fsck {path} -files -blocks -locations"));
    }
    failed
}

/// The error type for an exception of the name node.
fn kind_of_class(class: &str, message: &str) -> FsErrorKind {
    match class.rsplit('.').next().unwrap_or(class) {
        "FileNotFoundException" => FsErrorKind::NotFound,
        "FileAlreadyExistsException" | "AlreadyBeingCreatedException" => FsErrorKind::AlreadyExists,
        "AccessControlException" => FsErrorKind::Forbidden,
        "DSQuotaExceededException" | "NSQuotaExceededException" => FsErrorKind::NoSpace,
        "SafeModeException" | "StandbyException" | "RetriableException" => FsErrorKind::Unavailable,
        "InvalidPathException" | "IllegalArgumentException" | "HadoopIllegalArgumentException" => FsErrorKind::Invalid,
        // From BlockManager.chooseTarget4NewBlock: there are too few data nodes, or none with free space.
        _ if message.contains("There are 0 datanode(s) running") => FsErrorKind::Unavailable,
        _ if message.contains("could only be written to") => FsErrorKind::NoSpace,
        // From FSNamesystem: the block size is below dfs.namenode.fs-limits.min-block-size, or the replication is out
        // of range.
        _ if message.contains("fs-limits") || message.contains("eplication") => FsErrorKind::Invalid,
        _ => FsErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::with_addresses;

    #[test]
    fn warning_names_the_data_node() {
        let warning = "Failed to connect to DataNode DatanodeIdProto { ip_addr: \"127.0.0.2\", host_name: \"b\", \
                       datanode_uuid: \"9\", xfer_port: 9866, info_port: 9864, ipc_port: 9867, info_secure_port: None }: \
                       IOError(refused)";
        assert_eq!(with_addresses(warning), "Failed to connect to DataNode 127.0.0.2:9866: IOError(refused)");
        assert_eq!(with_addresses("a DatanodeIdProto { cut"), "a ?:?");
        assert_eq!(with_addresses("no node\nsecond line"), "no node");
    }
}
