//! Keeps files open for writing while their clients are idle.
//!
//! A name node lets another client take over a file when the file's client has been silent for 60 s
//! (`HdfsConstants.LEASE_SOFTLIMIT_PERIOD`). A data node closes a connection on which nothing has arrived for the same
//! time (`dfs.client.socket-timeout`).

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::pipeline::Socket;

/// Interval between renewals, as in Hadoop (`LeaseRenewer`): half of the time after which a lease can be lost.
const RENEWAL: Duration = Duration::from_secs(30);
/// Maximum interval between checks of connections and leases.
const PAUSE: Duration = Duration::from_secs(10);

/// The client that holds the leases of the files being written.
pub(super) trait LeaseHolder: Send + Sync + 'static {
    fn open_files(&self) -> &OpenFiles;

    /// Maximum time without a message from a server.
    fn timeout(&self) -> Duration;

    /// Renews the leases. Returns whether the name node agreed.
    fn renew_leases(&self) -> impl Future<Output = bool> + Send;
}

/// A client's files that are being written.
#[derive(Debug, Default)]
pub(super) struct OpenFiles(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    files: Vec<Weak<OpenFile>>,
    /// Present while there are open files; the task may have ended with its runtime.
    task: Option<JoinHandle<()>>,
}

/// A file that is being written.
#[derive(Debug, Default)]
pub(super) struct OpenFile(Mutex<Weak<Socket>>);

impl OpenFile {
    /// Sets the connection to keep alive; `None` if there is no connection.
    pub fn set(&self, socket: Option<&Arc<Socket>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = socket.map_or_else(Weak::new, Arc::downgrade);
    }

    fn socket(&self) -> Option<Arc<Socket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl OpenFiles {
    /// Keeps a file open until the returned value is dropped.
    pub fn add_file(&self, holder: &Arc<impl LeaseHolder>) -> Arc<OpenFile> {
        let file = Arc::default();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.files.retain(|file| file.strong_count() > 0);
        open.files.push(Arc::downgrade(&file));
        if open.task.as_ref().is_none_or(JoinHandle::is_finished) {
            open.task = Some(tokio::spawn(keep_open(Arc::clone(holder))));
        }
        file
    }

    /// The open files; `None` if there are none, in which case the task ends.
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

async fn keep_open(holder: Arc<impl LeaseHolder>) {
    let pause = (holder.timeout() / 6).clamp(Duration::from_millis(1), PAUSE);
    let mut renewed = Instant::now();
    loop {
        tokio::time::sleep(pause).await;
        let Some(files) = holder.open_files().list() else { return };
        for socket in files.iter().filter_map(|file| file.socket()) {
            socket.keep_alive(holder.timeout() / 2);
        }
        drop(files);
        if renewed.elapsed() >= RENEWAL {
            // The renewal is limited to less than a name node's timeout, so that heartbeats are not late.
            if tokio::time::timeout(pause, holder.renew_leases()).await == Ok(true) {
                renewed = Instant::now();
            }
        }
    }
}
