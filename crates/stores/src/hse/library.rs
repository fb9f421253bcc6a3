//! Finds libhse. No distribution ships libhse, so the user builds the library and may keep it anywhere.

use std::error::Error;
use std::ffi::OsStr;
use std::path::PathBuf;

use super::api::Api;
use crate::cache;
use crate::error::EngineError;
use crate::options::Options;

/// Names that the dynamic loader searches for in `LD_LIBRARY_PATH`, `/etc/ld.so.conf` and the system's directories.
/// meson gives `libhse-3` the soname `libhse-3.so.0`; the unversioned names are links for compilers.
const NAMES: [&str; 5] = ["libhse-3.so.0", "libhse-3.so", "libhse-2.so.0", "libhse-2.so", "libhse.so"];

/// Loads the library that the property or the variable names, or that the dynamic loader finds.
pub fn load(options: &Options) -> Result<Api, EngineError> {
    if let Some(path) = options.get("hse.library") {
        return load_existing(PathBuf::from(path), "hse.library");
    }
    if let Some(path) = cache::from_environment(cache::LOADSTONE_HSE) {
        return load_existing(path, cache::LOADSTONE_HSE);
    }
    search_library(&NAMES)
}

fn load_existing(path: PathBuf, source: &str) -> Result<Api, EngineError> {
    if !path.is_file() {
        return Err(EngineError::usage(format!("no file {} ({source})", path.display()))
            .hint("name the libhse-3.so that you built"));
    }
    // If the path contained no slash, the dynamic loader would search other directories for the library.
    let path = std::path::absolute(&path).unwrap_or(path);
    Api::load(path.as_os_str()).map_err(|error| unusable_library(&path.display().to_string(), &loader_message(&error)))
}

fn search_library(names: &[&str]) -> Result<Api, EngineError> {
    for name in names {
        match Api::load(OsStr::new(name)).map_err(|error| loader_message(&error)) {
            Ok(api) => return Ok(api),
            // The loader's message begins with the missing file, which may be this library or a dependency.
            Err(message) if is_absent(&message, name) => {}
            Err(message) => return Err(unusable_library(name, &message)),
        }
    }
    Err(EngineError::failed(format!("no libhse: the dynamic loader found none of {}", names.join(", "))).hint(
        "HSE is not packaged: build it from github.com/hse-project/hse, then set LOADSTONE_HSE (or hse.library) to \
         its libhse-3.so",
    ))
}

/// The loader's message; the error alone only states "dlopen failed".
fn loader_message(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

fn is_absent(message: &str, name: &str) -> bool {
    message.starts_with(&format!("{name}: cannot open shared object file"))
}

fn unusable_library(name: &str, message: &str) -> EngineError {
    let error = EngineError::failed(format!("cannot load HSE from {name}: {message}"));
    if message.contains("undefined symbol") {
        return error.hint("it must export HSE's C API of 2.x or 3.x; HSE 1 has a different API");
    }
    if message.contains("cannot open shared object file") {
        return error.hint("a library that it needs is missing: install it, or add its directory to LD_LIBRARY_PATH");
    }
    error.hint("it must be libhse 2.x or 3.x for this processor")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_search_lists_the_searched_places() {
        let error = search_library(&["libhse-none.so.0", "libhse-none.so"]).unwrap_err();
        assert!(!error.is_usage());
        assert_eq!(error.message, "no libhse: the dynamic loader found none of libhse-none.so.0, libhse-none.so");
        assert_eq!(
            error.hint.unwrap(),
            "HSE is not packaged: build it from github.com/hse-project/hse, then set LOADSTONE_HSE (or hse.library) \
             to its libhse-3.so"
        );
    }

    #[test]
    fn foreign_library_is_not_reported_as_missing() {
        let error = search_library(&["libhse-none.so", "libc.so.6"]).unwrap_err();
        assert!(error.message.starts_with("cannot load HSE from libc.so.6: "), "{error}");
        assert!(error.message.contains("undefined symbol: hse_init"), "{error}");
        assert_eq!(error.hint.unwrap(), "it must export HSE's C API of 2.x or 3.x; HSE 1 has a different API");
    }

    #[test]
    fn missing_dependency_is_not_a_missing_library() {
        let message = "liburcu-bp.so.8: cannot open shared object file: No such file or directory";
        assert!(!is_absent(message, "libhse-3.so.0"));
        assert!(
            unusable_library("libhse-3.so.0", message).hint.unwrap().starts_with("a library that it needs is missing")
        );
    }
}
