//! A KVDB for one case, and code that the cases share.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use loadstone_load::Row;
use loadstone_stores::hse::Hse;
use loadstone_stores::{Durability, EngineError, Options, Store};
use tempfile::TempDir;

use crate::hse_fake::Library;

/// The result of a blocking session's future, which is always ready.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a blocking session waits"),
    }
}

pub fn row(fields: &[(&str, &[u8])]) -> Row {
    let mut row = Row::default();
    for (name, value) in fields {
        row.push_field(name.as_bytes(), value);
    }
    row
}

/// The library and the options for a KVDB in a separate directory, initially the options of a load.
pub struct Bench {
    pub options: Options,
    pub library: Library,
    pub directory: TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self::with_library(Library::new())
    }

    pub fn with_library(library: Library) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { options: library.options(&directory.path().join("kvdb")), library, directory }
    }

    pub fn home(&self) -> &Path {
        Path::new(&self.options.properties["hse.kvdb_home"])
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.options.properties.insert(name.to_owned(), value.to_owned());
        self
    }

    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.options.durability = durability;
        self
    }

    pub fn open(&self) -> Hse {
        Hse::open(&self.options).expect("it opens")
    }

    pub fn open_error(&self) -> EngineError {
        match Hse::open(&self.options) {
            Ok(_) => panic!("it opens"),
            Err(error) => error,
        }
    }

    /// The error message and the hint, without paths, because paths differ between runs.
    pub fn refusal(&self) -> String {
        let error = self.open_error();
        let text = format!("error: {}\nhint: {}", error.message, error.hint.unwrap_or_default());
        text.replace(&self.directory.path().display().to_string(), "DIR")
            .replace(&self.library.path().display().to_string(), "LIBRARY")
    }

    /// The library's calls so far for which `is_selected` is true; `None` for a real library.
    pub fn calls(&self, is_selected: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        Some(self.library.calls()?.into_iter().filter(|call| is_selected(call)).collect())
    }
}
