//! A store under test, in a directory that is deleted after the test.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::key_value::{KeyValue, KeyValueSession, KeyValueStore};
use loadstone_stores::{Durability, EngineError, Options, Rows, Session, Store};
use tempfile::TempDir;

use crate::hse_fake;

/// An entry in the list of stores.
pub struct Subject {
    /// The name of the store's module in the list.
    pub name: &'static str,
    /// The property that names the store's directory.
    pub directory: &'static str,
    /// The store's other properties.
    pub properties: &'static [(&'static str, &'static str)],
}

/// The options of a store, whose directory does not exist before the store is first opened.
pub struct Place {
    /// Options, which a test may change before it opens the store.
    pub options: Options,
    _temporary: TempDir,
}

impl Subject {
    /// Returns a place in a new temporary directory, with the options for a load at durability level `os`.
    pub fn place(&self) -> Place {
        let temporary = tempfile::tempdir().expect("a temporary directory");
        let directory = temporary.path().join("below/database");
        Place { options: self.options(&directory.display().to_string()), _temporary: temporary }
    }

    /// Returns the options for a load into this directory at durability level `os`.
    pub fn options(&self, directory: &str) -> Options {
        let properties = [(self.directory, directory)];
        let properties = properties.iter().chain(self.properties).map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        let mut properties: BTreeMap<String, String> = properties.collect();
        if properties.get("hse.library").is_some_and(|library| library == "fake") {
            // Each test has its own library, because HSE can open only one KVDB at a time.
            let root = Path::new(directory).ancestors().find(|path| path.is_dir()).expect("a directory above");
            let library = hse_fake::fake(root, hse_fake::Version::Three);
            properties.insert("hse.library".to_owned(), library.display().to_string());
        }
        Options { properties, durability: Durability::Os, table: "usertable".to_owned(), create: true, clients: 4 }
    }

    /// The directory that these options name.
    pub fn directory(&self, options: &Options) -> PathBuf {
        PathBuf::from(&options.properties[self.directory])
    }

    /// Opens a store and one session.
    pub fn open<K: KeyValue>(&self) -> Opened<K> {
        let place = self.place();
        let store = open::<K>(&place.options);
        Opened { session: store.session().expect("a session"), store, place }
    }
}

/// Opens a store; this must succeed. If it fails, the panic message contains the error and its hint, so that a missing
/// prerequisite is named together with the remedy.
pub fn open<K: KeyValue>(options: &Options) -> KeyValueStore<K> {
    try_open::<K>(options).unwrap_or_else(|error| panic!("{error}\nhint: {}", error.hint.as_deref().unwrap_or("none")))
}

/// Opens a store; this may fail.
pub fn try_open<K: KeyValue>(options: &Options) -> Result<KeyValueStore<K>, EngineError> {
    // Stores are opened one at a time, because the first opening may unpack a shared object that later openings use.
    static OPENING: Mutex<()> = Mutex::new(());
    let _guard = OPENING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    KeyValueStore::open(options)
}

/// An open store with one client, whose session has blocking calls.
pub struct Opened<K: KeyValue> {
    pub session: KeyValueSession<K>,
    pub store: KeyValueStore<K>,
    pub place: Place,
}

impl<K: KeyValue> Opened<K> {
    /// Closes the store as the engine does: sessions first. Returns the place, so that the store can be opened again.
    pub fn close(self) -> Place {
        drop(self.session);
        self.store.close().expect("a clean close");
        self.place
    }
}

/// Blocking calls of a session.
pub trait Calls {
    fn read_row(&mut self, key: &[u8], projection: Projection<'_>) -> (Status, Row);
    fn insert_row(&mut self, key: &[u8], row: &Row) -> Status;
    fn update_row(&mut self, key: &[u8], row: &Row) -> Status;
    fn delete_row(&mut self, key: &[u8]) -> Status;
    fn scan_rows(&mut self, from: &[u8], count: usize) -> (Status, Vec<(Vec<u8>, Row)>);
}

impl<S: Session> Calls for S {
    fn read_row(&mut self, key: &[u8], projection: Projection<'_>) -> (Status, Row) {
        let mut row = row(&[("left over", "from before")]);
        (wait_for(self.read(key, projection, &mut row)), row)
    }

    fn insert_row(&mut self, key: &[u8], row: &Row) -> Status {
        wait_for(self.insert(key, row))
    }

    fn update_row(&mut self, key: &[u8], row: &Row) -> Status {
        wait_for(self.update(key, row))
    }

    fn delete_row(&mut self, key: &[u8]) -> Status {
        wait_for(self.delete(key))
    }

    fn scan_rows(&mut self, from: &[u8], count: usize) -> (Status, Vec<(Vec<u8>, Row)>) {
        let mut rows = Rows::default();
        rows.push(b"left over");
        let status = wait_for(self.scan(from, count, Projection::All, &mut rows));
        (status, rows.iter().map(|(key, row)| (key.to_vec(), row.clone())).collect())
    }
}

/// The result of a future that is ready, as the futures of an embedded store are.
pub fn wait_for<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("an embedded store's future waits"),
    }
}

/// Creates a row with these fields.
pub fn row(fields: &[(&str, &str)]) -> Row {
    let mut row = Row::default();
    for (name, value) in fields {
        row.push_field(name.as_bytes(), value.as_bytes());
    }
    row
}
