//! HSE for tests: a fake libhse, which is compiled here, and options with which the store uses the fake.
//!
//! Other tests set the property `hse.library` to `hse_fake::fake(directory, Version::Three)`, where `directory` belongs
//! to the test. If `LOADSTONE_HSE_UNDER_TEST` is set to the path of a real libhse, the tests that use [`Library::new`]
//! run with that library.

#![allow(dead_code)]

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use loadstone_stores::Options;
use tempfile::TempDir;

/// The variable that names a real library to be tested instead of the fake.
pub const UNDER_TEST: &str = "LOADSTONE_HSE_UNDER_TEST";

/// The HSE version that the fake imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HSE 2.1.
    Two,
    /// HSE 3.0.
    Three,
}

/// Copies the fake to a directory, which must exist, unless a copy is already there; returns the copy's path. For the
/// dynamic loader, each copy is a separate library, and each library can open one KVDB at a time.
pub fn fake(directory: &Path, version: Version) -> PathBuf {
    static COMPILED: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    let compiled = COMPILED[version as usize].get_or_init(|| compile(version));
    let path = directory.join("libhse-fake.so");
    if !path.exists() {
        fs::copy(compiled, &path).expect("room for a copy of the fake");
    }
    path
}

fn compile(version: Version) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libhse-fake-{version:?}.so"));
    // The library is compiled to a separate file and then renamed, because another process may compile it at the same
    // time.
    let partial = path.with_extension(process::id().to_string());
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
    if version == Version::Two {
        compiler.arg("-DHSE_2");
    }
    compiler.arg("-o").arg(&partial).arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_hse.c"));
    let output = match compiler.args(["-lpthread", "-ldl"]).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("there is no C compiler for the fake libhse: apt-get install gcc libc6-dev")
        }
        output => output.expect("cc runs"),
    };
    assert!(output.status.success(), "fake_hse.c does not compile: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&partial, &path).expect("the fake in its place");
    path
}

/// A library for one test.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    /// The directory of a fake library; `None` for a real library.
    directory: Option<TempDir>,
    /// Held if the library is real, so that the tests that share this library run one at a time.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Library {
    /// The library under test: the fake of HSE 3, or a real library.
    pub fn new() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        match env::var_os(UNDER_TEST) {
            None => Self::fake(Version::Three),
            Some(path) => {
                let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
                Self { path: PathBuf::from(path), directory: None, _turn: Some(turn) }
            }
        }
    }

    /// A fake library, even if a real library is under test.
    pub fn fake(version: Version) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { path: fake(directory.path(), version), directory: Some(directory), _turn: None }
    }

    /// The path of the shared object.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The calls so far, with one call per line; `None` for a real library.
    pub fn calls(&self) -> Option<Vec<String>> {
        self.directory.as_ref()?;
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
