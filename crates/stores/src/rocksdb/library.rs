//! Finds RocksDB's shared object.
//!
//! Every `org.rocksdb:rocksdbjni:<version>:jar:<platform>` on Maven Central contains a shared object that exports the
//! whole C API and needs no JVM. So Loadstone measures the same build that a Java service ships.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::error::EngineError;
use crate::options::Options;

/// The newest version that is pinned.
pub const NEWEST: &str = "10.10.1";
/// The version that YCSB 0.17.0's binding uses.
pub const YCSB: &str = "5.11.3";

/// The classifier of the jars. There is no classifier for aarch64: its library is a second member of the same jar.
const CLASSIFIER: &str = "linux64";
/// The platform in the names of a jar's members.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux-aarch64" } else { "linux64" };

/// A shared object of RocksDB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    pub path: PathBuf,
    /// The library's version, if the path contains it.
    pub version: Option<String>,
}

/// Finds a library in this order: the property `rocksdb.library`, the variable `LOADSTONE_ROCKSDB`, the cache, the
/// local Maven repository. If `rocksdb.version` is set, the variable is skipped, because it names a file and not a
/// version.
pub fn find(options: &Options) -> Result<Library, EngineError> {
    let requested = options.get("rocksdb.version");
    if let Some(path) = options.get("rocksdb.library") {
        return load_existing(PathBuf::from(path), "rocksdb.library");
    }
    if requested.is_none()
        && let Some(path) = cache::from_environment(cache::LOADSTONE_ROCKSDB)
    {
        return load_existing(path, cache::LOADSTONE_ROCKSDB);
    }
    let version = requested.unwrap_or(NEWEST);
    if !version.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-') || version.starts_with('.') {
        return Err(EngineError::usage(format!("rocksdb.version must be a version, got \"{version}\""))
            .hint(format!("use rocksdb.version={NEWEST}, or rocksdb.version={YCSB} as in YCSB's binding")));
    }
    let member = format!("librocksdbjni-{PLATFORM}.so");
    let cached = cache::directory().join("rocksdb").join(version).join(&member);
    if !cached.is_file() {
        let artifact = cache::maven_repository().join("org/rocksdb/rocksdbjni").join(version);
        let jar = artifact.join(format!("rocksdbjni-{version}-{CLASSIFIER}.jar"));
        if !jar.is_file() {
            return Err(refuse_missing(version, &cached, &jar));
        }
        unpack(&jar, &member, &cached).map_err(|error| {
            EngineError::failed(format!("cannot unpack {member} from {}: {error}", jar.display()))
                .hint(format!("delete {} and fetch it again", jar.display()))
        })?;
    }
    Ok(Library { path: cached, version: Some(version.to_owned()) })
}

fn load_existing(path: PathBuf, source: &str) -> Result<Library, EngineError> {
    if path.is_file() {
        return Ok(Library { path, version: None });
    }
    Err(EngineError::usage(format!("no file {} ({source})", path.display()))
        .hint("name a librocksdb.so or librocksdbjni-*.so"))
}

fn refuse_missing(version: &str, cached: &Path, jar: &Path) -> EngineError {
    EngineError::failed(format!("RocksDB {version} is neither at {} nor at {}", cached.display(), jar.display())).hint(
        format!(
            "fetch it with Maven: mvn dependency:get -Dtransitive=false \
             -Dartifact=org.rocksdb:rocksdbjni:{version}:jar:{CLASSIFIER}; or name a library that you have: \
             -p rocksdb.library=/path/to/librocksdb.so"
        ),
    )
}

/// Unpacks one member of a jar.
fn unpack(jar: &Path, member: &str, target: &Path) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(jar)?).map_err(io::Error::other)?;
    let mut packed = archive.by_name(member).map_err(io::Error::other)?;
    cache::create_whole(target, |partial| File::create(partial).and_then(|mut file| io::copy(&mut packed, &mut file)))
}
