//! The errors of the crate `hdfs-native`, as ours.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use hdfs_native::HdfsError;
use log::{LevelFilter, Log, Metadata, Record};

use crate::fs::error::{ErrorKind, FsError};

/// The target of the crate's log records begins with this.
const CRATE: &str = "hdfs_native";
/// The modules that talk to data nodes: each warning of theirs is an attempt that failed.
const DATA_NODES: [&str; 2] = ["hdfs_native::hdfs::block_reader", "hdfs_native::hdfs::block_writer"];
/// In the warning about a block whose checksums are wrong, the only place where the crate says so.
const CHECKSUM: &str = "ChecksumError";
/// The crate's records name a data node by its whole description, some 600 characters.
const WARNING_CHARS: usize = 300;

/// Keeps the crate's last warning: `All DataNodes failed` does not say why, only the log does. Counts those about data nodes:
/// a read or write that succeeds with another node returns nothing else.
struct Warnings {
    last: Mutex<String>,
    data_nodes: AtomicU64,
}

static WARNINGS: Warnings = Warnings { last: Mutex::new(String::new()), data_nodes: AtomicU64::new(0) };

/// How many attempts to read from or write to a data node have failed in this process, whatever became of the read or write.
pub fn data_node_failures() -> u64 {
    WARNINGS.data_nodes.load(Ordering::Relaxed)
}

/// The last warning of the client; empty: none.
pub fn last_warning() -> String {
    WARNINGS.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Warnings {
    fn keep(&self, text: String, of_data_node: bool) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = text;
        self.data_nodes.fetch_add(u64::from(of_data_node), Ordering::Relaxed);
    }
}

/// Notes that a data node could not be read from without the crate.
pub(super) fn note_data_node_failure(text: String) {
    WARNINGS.keep(text, true);
}

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Warn && metadata.target().starts_with(CRATE)
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let text = with_addresses(&record.args().to_string());
            // The client then opens a new one: its cache may hold a connection of an executor that has ended.
            if text.starts_with("Failed to use cached connection") {
                return;
            }
            self.keep(text, DATA_NODES.contains(&record.target()));
        }
    }

    fn flush(&self) {}
}

/// Keeps the crate's warnings from now on.
pub(super) fn keep_warnings() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if log::set_logger(&WARNINGS).is_ok() {
            log::set_max_level(LevelFilter::Warn);
        }
    });
}

/// A text of the crate with addresses in place of its descriptions of data nodes, and not longer than a line should be.
fn with_addresses(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, description)) = rest.split_once("DatanodeIdProto {") {
        let (description, after) = description.split_once('}').unwrap_or((description, ""));
        let value = |name: &str, end: char| {
            let found = description.split_once(name).and_then(|(_, value)| value.split(end).next());
            found.unwrap_or("?").to_owned()
        };
        kept += &format!("{before}{}:{}", value("ip_addr: \"", '"'), value("xfer_port: ", ','));
        rest = after;
    }
    kept += rest;
    kept.lines().next().unwrap_or_default().chars().take(WARNING_CHARS).collect()
}

/// An error of the crate, with the action that failed.
pub(super) fn failed(action: &'static str, path: &str, error: &HdfsError) -> FsError {
    let mut kind = match error {
        HdfsError::IOError(error) => return FsError::io(action, path, error),
        HdfsError::FileNotFound(_) => ErrorKind::NotFound,
        HdfsError::AlreadyExists(_) => ErrorKind::AlreadyExists,
        HdfsError::ChecksumError => ErrorKind::Corrupt,
        HdfsError::InvalidPath(_)
        | HdfsError::InvalidArgument(_)
        | HdfsError::UrlParseError(_)
        | HdfsError::IsADirectoryError(_) => ErrorKind::Invalid,
        HdfsError::DataTransferError(_) | HdfsError::BlocksNotFound(_) => ErrorKind::Unavailable,
        HdfsError::UnsupportedFeature(_) | HdfsError::UnsupportedErasureCodingPolicy(_) => ErrorKind::Unsupported,
        HdfsError::RPCError(class, message) | HdfsError::FatalRPCError(class, message) => of_class(class, message),
        _ => ErrorKind::Other,
    };
    if let HdfsError::AlreadyExists(text) = error
        && text.contains("lease")
    {
        let message = text.lines().next().unwrap_or_default();
        return FsError::new(ErrorKind::Unavailable, action, path, message).hint(
            "another client is writing it: end that, and wait for 60 s, after which its lease can be taken over",
        );
    }
    let text = error.to_string();
    // "All DataNodes failed: [DatanodeInfoProto { … }]": some 600 characters for each node.
    let mut message =
        text.lines().next().and_then(|line| line.split(": [DatanodeInfoProto").next()).unwrap_or_default().to_owned();
    if matches!(error, HdfsError::DataTransferError(_)) {
        let last = last_warning();
        if !last.is_empty() {
            message = format!("{message}; the client's last warning: {last}");
        }
        if last.contains(CHECKSUM) {
            kind = ErrorKind::Corrupt;
        }
    }
    let failed = FsError::new(kind, action, path, message);
    if kind == ErrorKind::Corrupt {
        return failed.hint(format!("its copies are damaged: run hdfs fsck {path} -files -blocks -locations"));
    }
    failed
}

/// The kind of an exception of the name node.
fn of_class(class: &str, message: &str) -> ErrorKind {
    match class.rsplit('.').next().unwrap_or(class) {
        "FileNotFoundException" => ErrorKind::NotFound,
        "FileAlreadyExistsException" | "AlreadyBeingCreatedException" => ErrorKind::AlreadyExists,
        "AccessControlException" => ErrorKind::Forbidden,
        "DSQuotaExceededException" | "NSQuotaExceededException" => ErrorKind::NoSpace,
        "SafeModeException" | "StandbyException" | "RetriableException" => ErrorKind::Unavailable,
        "InvalidPathException" | "IllegalArgumentException" | "HadoopIllegalArgumentException" => ErrorKind::Invalid,
        // BlockManager.chooseTarget4NewBlock: too few data nodes, or none with free space.
        _ if message.contains("There are 0 datanode(s) running") => ErrorKind::Unavailable,
        _ if message.contains("could only be written to") => ErrorKind::NoSpace,
        // FSNamesystem: a block size below dfs.namenode.fs-limits.min-block-size, a replication beyond the limits.
        _ if message.contains("fs-limits") || message.contains("eplication") => ErrorKind::Invalid,
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::with_addresses;

    #[test]
    fn a_warning_names_a_data_node_by_its_address() {
        let warning = "Failed to connect to DataNode DatanodeIdProto { ip_addr: \"127.0.0.2\", host_name: \"b\", \
                       datanode_uuid: \"9\", xfer_port: 9866, info_port: 9864, ipc_port: 9867, info_secure_port: None }: \
                       IOError(refused)";
        assert_eq!(with_addresses(warning), "Failed to connect to DataNode 127.0.0.2:9866: IOError(refused)");
        assert_eq!(with_addresses("a DatanodeIdProto { cut"), "a ?:?");
        assert_eq!(with_addresses("no node\nsecond line"), "no node");
    }
}
