//! Class paths in the syntax of `java -cp`. The JVM itself does not support wildcards: the `java` launcher expands
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::EngineError;

/// The entries of a class path, with wildcards expanded. `name` is the property that contains the class path.
pub fn entries(text: &str, name: &str) -> Result<Vec<PathBuf>, EngineError> {
    let mut all = Vec::new();
    for entry in text.split(':').filter(|entry| !entry.is_empty()) {
        match entry.strip_suffix('*').filter(|directory| directory.is_empty() || directory.ends_with('/')) {
            Some("") => all.extend(jars(Path::new("."), name)?),
            Some("/") => all.extend(jars(Path::new("/"), name)?),
            Some(directory) => all.extend(jars(Path::new(directory.trim_end_matches('/')), name)?),
            None if Path::new(entry).exists() => all.push(PathBuf::from(entry)),
            // A JVM would ignore the missing entry, and then use a different configuration or fail to find a class.
            None => {
                return Err(EngineError::usage(format!("{entry} does not exist ({name})"))
                    .hint("entries are jars, directories of classes or of configuration, and DIRECTORY/*"));
            }
        }
    }
    Ok(all)
}

/// The jars in a directory, sorted, so that the first match does not depend on the file system.
fn jars(directory: &Path, name: &str) -> Result<Vec<PathBuf>, EngineError> {
    let listed = fs::read_dir(directory).map_err(|error| {
        EngineError::usage(format!("cannot list {} ({name}): {error}", directory.display()))
            .hint("DIRECTORY/* means the jars in it")
    })?;
    let mut jars: Vec<PathBuf> = listed
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jar")))
        .collect();
    if jars.is_empty() {
        return Err(EngineError::usage(format!("{}/* contains no jar ({name})", directory.display()))
            .hint("DIRECTORY/* means the jars in it, DIRECTORY alone its classes"));
    }
    jars.sort();
    Ok(jars)
}

/// Joins the entries into a class path.
pub fn join_entries(entries: &[PathBuf]) -> String {
    entries.iter().map(|entry| entry.display().to_string()).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_the_jars_of_a_directory() {
        let home = tempfile::tempdir().unwrap();
        for name in ["b.jar", "a.JAR", "notes.txt"] {
            fs::write(home.path().join(name), "").unwrap();
        }
        let at = home.path().display();
        let parsed = entries(&format!("{at}/*:{at}::{at}/notes.txt"), "-cp").unwrap();
        let names: Vec<_> = parsed.iter().map(|path| path.file_name().unwrap().to_string_lossy()).collect();
        assert_eq!(names[..2], ["a.JAR", "b.jar"]);
        assert_eq!((names.len(), names[3].as_ref()), (4, "notes.txt"));
        assert!(entries("", "-cp").unwrap().is_empty());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let home = tempfile::tempdir().unwrap();
        let at = home.path().display().to_string();
        for (text, expected) in [
            (format!("{at}/none.jar"), "none.jar"),
            (format!("{at}/none/*"), "cannot list"),
            (format!("{at}/*"), "contains no jar"),
        ] {
            let error = entries(&text, "-cp").unwrap_err();
            assert!(error.is_usage() && error.message.contains(expected) && error.message.contains("(-cp)"), "{error}");
        }
    }
}
