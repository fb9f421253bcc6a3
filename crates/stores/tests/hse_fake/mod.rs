//! HSE for tests: the store's options over a fake libhse, compiled here.
//!
//! One line makes it a store like any other: `let (options, _fake) = hse_fake::options(directory);`. With
//! `LOADSTONE_HSE_UNDER_TEST` set to the path of a real libhse, the same tests run on that one.

#![allow(dead_code)]

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadstone_stores::Options;
use tempfile::TempDir;

/// A real library, to be tested in the fake's place.
pub const UNDER_TEST: &str = "LOADSTONE_HSE_UNDER_TEST";

/// Which HSE the fake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 2.1.
    Two,
    /// 3.0.
    Three,
}

/// A library for one test. A fake is a file of its own and so, in one process, a library of its own; a real one is
/// shared, opens one KVDB at a time, and is taken in turns.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    _directory: Option<TempDir>,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Library {
    /// The library under test: the fake of HSE 3, or a real one.
    pub fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        match env::var_os(UNDER_TEST) {
            None => Self::fake(Version::Three),
            Some(path) => {
                let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
                Self {
                    path: PathBuf::from(path),
                    _directory: None,
                    _turn: Some(turn),
                }
            }
        }
    }

    /// A fake, whatever is under test.
    pub fn fake(version: Version) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("libhse-fake.so");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
        if version == Version::Two {
            compiler.arg("-DHSE_2");
        }
        compiler
            .arg("-o")
            .arg(&path)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_hse.c"));
        let output = match compiler.args(["-lpthread", "-ldl"]).output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                panic!("there is no C compiler for the fake libhse: apt-get install gcc libc6-dev")
            }
            output => output.expect("cc runs"),
        };
        assert!(
            output.status.success(),
            "fake_hse.c does not compile: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Self {
            path,
            _directory: Some(directory),
            _turn: None,
        }
    }

    /// The shared object.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The calls so far, one a line; nothing of a real library.
    pub fn calls(&self) -> Option<Vec<String>> {
        self._directory.as_ref()?;
        let text = fs::read_to_string(format!("{}.calls", self.path.display())).unwrap_or_default();
        Some(text.lines().map(str::to_owned).collect())
    }

    /// Options that open a KVDB with this library.
    pub fn options(&self, home: &Path) -> Options {
        let properties = [
            ("hse.kvdb_home".to_owned(), home.display().to_string()),
            ("hse.library".to_owned(), self.path.display().to_string()),
        ];
        Options {
            properties: properties.into(),
            table: "usertable".to_owned(),
            create: true,
            clients: 1,
            ..Options::default()
        }
    }
}

/// Options over a library of its own, which must be kept for as long as the store is open.
pub fn options(home: &Path) -> (Options, Library) {
    let library = Library::new();
    (library.options(home), library)
}
