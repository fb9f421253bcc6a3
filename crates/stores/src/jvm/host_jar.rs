//! The host's jar, which is embedded in this program and unpacked to the cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cache;
use crate::error::EngineError;
use crate::options::Options;

/// The embedded jar; empty if this program was built without the jar.
static EMBEDDED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/loadstone-host.jar"));

/// The path of the jar that the property `jvm.host` names, or of the embedded jar.
pub fn path(options: &Options) -> Result<PathBuf, EngineError> {
    if let Some(named) = options.get("jvm.host") {
        let path = PathBuf::from(named);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(EngineError::usage(format!("no file {named} (jvm.host)")).hint("omit jvm.host to use the embedded jar"))
        };
    }
    if EMBEDDED.is_empty() {
        return Err(EngineError::failed("this load generator was built without its JVM host")
            .hint("build with `make`, which needs a JDK and mvn, or name a loadstone-host.jar with -p jvm.host=FILE"));
    }
    let target = cache::directory().join("host").join(format!("loadstone-host-{:016x}.jar", digest(EMBEDDED)));
    unpack(&target).map_err(|error| {
        EngineError::failed(format!("cannot unpack the JVM host to {}: {error}", target.display()))
            .hint("set LOADSTONE_CACHE to a directory that can be written")
    })?;
    Ok(target)
}

/// Unpacks the jar, unless it has been unpacked.
fn unpack(target: &Path) -> io::Result<()> {
    if fs::read(target).is_ok_and(|bytes| bytes == EMBEDDED) {
        return Ok(());
    }
    cache::create_whole(target, |partial| fs::write(partial, EMBEDDED))
}

/// The FNV-1a hash, which is used only to distinguish builds.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
