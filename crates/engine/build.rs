//! Makes the binary smaller: the linker folds identical functions, and a fixed image needs no relocations.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// Folding keeps one of several functions with the same instructions, so none becomes slower. Addresses of functions are no
/// longer unique, as Rust permits.
const FOLD: &str = "-Wl,--icf=all";
const FIXED: &str = "-no-pie";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTFLAGS");
    let value = |name| env::var(name).unwrap_or_default();
    let is_linux = value("CARGO_CFG_TARGET_OS") == "linux" && value("CARGO_CFG_TARGET_ENV") == "gnu";
    if value("PROFILE") == "release" && is_linux && value("TARGET") == value("HOST") {
        // rustc's own lld folds; the GNU linker, with which some distributions build rustc, refuses the option.
        for argument in [FOLD, FIXED].into_iter().filter(|argument| can_link(argument)) {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// Whether a program can be linked with this argument.
fn can_link(argument: &str) -> bool {
    let Some((rustc, directory)) = env::var_os("RUSTC").zip(env::var_os("OUT_DIR")) else { return false };
    let source = Path::new(&directory).join("empty.rs");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    std::fs::write(&source, "fn main() {}").is_ok()
        && Command::new(rustc)
            .args(flags.split('\x1f').filter(|flag| !flag.is_empty()))
            .arg(format!("-Clink-arg={argument}"))
            .arg(source)
            .current_dir(directory)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}
