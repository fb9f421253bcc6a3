//! Finds the JVM.

use std::env;
use std::path::{Path, PathBuf};

use crate::error::EngineError;

/// The hint if no JVM is found.
pub const HINT: &str = "apt-get install openjdk-17-jre-headless, or set JAVA_HOME to a Java 17 or newer";

/// The JVM's shared object in `JAVA_HOME`, or otherwise the shared object of the `java` on the path.
pub fn library() -> Result<PathBuf, EngineError> {
    if let Some(home) = env::var_os("JAVA_HOME").filter(|home| !home.is_empty()) {
        let home = PathBuf::from(home);
        return find_library(&home).ok_or_else(|| {
            EngineError::failed(format!("no JVM at JAVA_HOME={}: lib/server/libjvm.so is not there", home.display()))
                .hint(HINT)
        });
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let java = env::split_paths(&path).map(|directory| directory.join("java")).find(|java| java.is_file());
    let Some(java) = java else {
        return Err(EngineError::failed("no JVM: JAVA_HOME is not set, and no java is on the PATH").hint(HINT));
    };
    // `java` is a link (through /etc/alternatives on Debian) to bin/java in its home directory.
    let program = java.canonicalize().unwrap_or_else(|_| java.clone());
    program.parent().and_then(Path::parent).and_then(find_library).ok_or_else(|| {
        EngineError::failed(format!("no JVM next to {}: ../lib/server/libjvm.so is not there", program.display()))
            .hint(HINT)
    })
}

fn find_library(home: &Path) -> Option<PathBuf> {
    let library = home.join("lib/server/libjvm.so");
    library.is_file().then_some(library)
}
