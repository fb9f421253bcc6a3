//! Where the report goes: stdout or files, each whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::config::Reporting;
use crate::error::EngineError;
use crate::output::out;

/// The places of a run's output, found writable before the run.
#[derive(Debug)]
pub struct Export {
    report: Option<PathBuf>,
    raw: Option<PathBuf>,
}

impl Export {
    /// Checks the places.
    pub fn prepare(reporting: &Reporting) -> Result<Self, EngineError> {
        let report = reporting.export_file.as_ref().map(|path| through_links(Path::new(path)));
        let raw = reporting.raw_file.as_ref().map(PathBuf::from);
        for (path, property) in [(&report, "exportfile"), (&raw, "measurement.raw.output_file")] {
            if let Some(path) = path {
                probe(path, property)?;
            }
        }
        if let Some(prefix) = &reporting.hdr_files {
            probe(Path::new(&format!("{prefix}READ.hdr")), "hdrhistogram.output.path")?;
        }
        Ok(Self { report, raw })
    }

    /// Writes the report: to stdout, or over the file in one step.
    pub fn report(&self, text: &str) -> Result<(), EngineError> {
        let Some(path) = &self.report else {
            out(text);
            return Ok(());
        };
        let written = if is_special(path) {
            // A pipe or device has no old contents to keep, and must not be replaced by a file.
            OpenOptions::new().write(true).open(path).and_then(|mut place| place.write_all(text.as_bytes()))
        } else {
            let partial = partial_of(path);
            File::create(&partial)
                .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
                .and_then(|()| fs::rename(&partial, path))
                .inspect_err(|_| {
                    let _ = fs::remove_file(&partial);
                })
        };
        written.map_err(|error| {
            // The run is done: what it found must not be lost with the file.
            out(text);
            EngineError::failed(format!("cannot write {}: {error} (exportfile)", path.display()))
                .hint("the report was printed instead")
        })
    }

    /// Appends raw operations: to the file, or to stdout.
    pub fn raw(&self, text: &str) -> Result<(), EngineError> {
        let Some(path) = &self.raw else {
            out(text);
            return Ok(());
        };
        let appended =
            OpenOptions::new().create(true).append(true).open(path).and_then(|mut f| f.write_all(text.as_bytes()));
        appended.map_err(|error| {
            EngineError::failed(format!("cannot write {}: {error} (measurement.raw.output_file)", path.display()))
                .hint("the summary was printed; the single operations are lost")
        })
    }
}

fn partial_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// The file behind links, also behind one that points to nothing yet: a rename would replace the link itself.
fn through_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many as the kernel follows.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Whether something is there that is neither file nor directory.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Whether a file could be made there; leaves nothing behind.
fn probe(path: &Path, property: &str) -> Result<(), EngineError> {
    if path.is_dir() {
        return Err(EngineError::usage(format!("{} is a directory ({property})", path.display())).hint("name a file"));
    }
    if is_special(path) {
        return Ok(());
    }
    let partial = partial_of(path);
    let made = File::create(&partial).and_then(|_| fs::remove_file(&partial));
    made.map_err(|error| {
        EngineError::usage(format!("cannot write {}: {error} ({property})", path.display()))
            .hint("name a file in a directory that exists and that you may write")
    })
}
