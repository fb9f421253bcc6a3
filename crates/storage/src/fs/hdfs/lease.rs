//! Keeps files that are being written open while their clients are idle.
//!
//! A name node lets another client take over a file when its client was silent for 60 s
//! (`HdfsConstants.LEASE_SOFTLIMIT_PERIOD`), and a data node closes a connection on which nothing arrived for as long
//! (`dfs.client.socket-timeout`).

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::name_node::NameNode;
use super::pipeline::Socket;
use super::write_messages::{Empty, RenewLease};

/// As in Hadoop (`LeaseRenewer`): half of the time after which a lease may be lost.
const RENEWAL: Duration = Duration::from_secs(30);
/// Maximum interval between checks of connections and leases.
const PAUSE: Duration = Duration::from_secs(10);

/// The files of a client that are being written.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    files: Vec<Weak<OpenFile>>,
    /// Present while there are files; its runtime may have ended.
    task: Option<JoinHandle<()>>,
}

/// A file that is being written.
#[derive(Debug, Default)]
pub(super) struct OpenFile(Mutex<Weak<Socket>>);

impl OpenFile {
    /// Sets the connection to keep; `None`: no connection.
    pub fn set(&self, socket: Option<&Arc<Socket>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = socket.map_or_else(Weak::new, Arc::downgrade);
    }

    fn socket(&self) -> Option<Arc<Socket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl OpenFiles {
    /// Keeps a file open until the returned value is dropped.
    pub fn add(&self, name_node: &Arc<NameNode>) -> Arc<OpenFile> {
        let file = Arc::default();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.files.retain(|file| file.strong_count() > 0);
        open.files.push(Arc::downgrade(&file));
        if open.task.as_ref().is_none_or(JoinHandle::is_finished) {
            open.task = Some(tokio::spawn(keep_open(Arc::clone(name_node))));
        }
        file
    }

    /// The open files; `None` if there are none, and the task ends.
    fn list(&self) -> Option<Vec<Arc<OpenFile>>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let files: Vec<_> = open.files.iter().filter_map(Weak::upgrade).collect();
        if files.is_empty() {
            open.task = None;
            return None;
        }
        Some(files)
    }
}

async fn keep_open(name_node: Arc<NameNode>) {
    let pause = (name_node.timeout / 6).clamp(Duration::from_millis(1), PAUSE);
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(pause).await;
        let Some(files) = name_node.open_files.list() else { return };
        for socket in files.iter().filter_map(|file| file.socket()) {
            socket.keep_alive(name_node.timeout / 2);
        }
        drop(files);
        if renewed.elapsed() >= RENEWAL {
            let request = RenewLease { client: name_node.client.clone() };
            // Limited to less than the timeout of a name node, so that heartbeats are not late.
            let answer = tokio::time::timeout(pause, name_node.call::<Empty>("renewLease", &request)).await;
            if matches!(answer, Ok(Ok(_))) {
                renewed = Instant::now();
            }
        }
    }
}
