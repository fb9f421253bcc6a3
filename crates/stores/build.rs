//! Embeds the jar of the JVM host if it has been built; `make` builds it before it calls cargo. Without the jar
//! everything still builds, but a store that runs in a JVM reports that the jar is missing.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names the jar to embed.
const VARIABLE: &str = "LOADSTONE_HOST_JAR";

fn main() {
    let java = Path::new("../../java");
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let named = env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    // Cargo watches the directory rather than the jar, because it treats a missing file as changed at each build.
    let watched = named.as_deref().unwrap_or(java);
    if watched.exists() {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    let jar = named.unwrap_or_else(|| java.join("target/loadstone-host.jar"));
    let bytes = fs::read(jar).unwrap_or_default();
    let directory = env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR");
    fs::write(directory.join("loadstone-host.jar"), bytes).expect("cargo's own directory can be written");
}
