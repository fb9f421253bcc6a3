//! Writes the report to stdout or to files. A file is written either completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::config::Reporting;
use loadstone_wire::error::EngineError;
use loadstone_wire::output::print_out;

/// The output files of a run, which were found to be writable before the run.
#[derive(Debug)]
pub struct ReportFiles {
    report: Option<PathBuf>,
    raw: Option<PathBuf>,
}

impl ReportFiles {
    /// Checks that the files can be written.
    pub fn open_files(reporting: &Reporting) -> Result<Self, EngineError> {
        let report = reporting.export_file.as_ref().map(|path| follow_links(Path::new(path)));
        let raw = reporting.raw_file.as_ref().map(PathBuf::from);
        for (path, property) in [(&report, "exportfile"), (&raw, "measurement.raw.output_file")] {
            if let Some(path) = path {
                probe_path(path, property)?;
            }
        }
        if let Some(prefix) = &reporting.hdr_files {
            probe_path(Path::new(&format!("{prefix}READ.hdr")), "hdrhistogram.output.path")?;
        }
        Ok(Self { report, raw })
    }

    /// Writes the report to stdout, or atomically to the file.
    pub fn write_report(&self, text: &str) -> Result<(), EngineError> {
        let Some(path) = &self.report else {
            print_out(text);
            return Ok(());
        };
        let written = if is_special(path) {
            // A pipe or a device has no earlier contents to preserve, and must not be replaced by a file.
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
            // The run has finished, so its results must not be lost because the file cannot be written.
            print_out(text);
            EngineError::failed(format!("cannot write {}: {error} (exportfile)", path.display()))
                .hint("use the report on stdout, where it was printed instead")
        })
    }

    /// Appends raw operations to the file, or prints them on stdout.
    pub fn write_raw(&self, text: &str) -> Result<(), EngineError> {
        let Some(path) = &self.raw else {
            print_out(text);
            return Ok(());
        };
        let appended =
            OpenOptions::new().create(true).append(true).open(path).and_then(|mut f| f.write_all(text.as_bytes()));
        appended.map_err(|error| {
            EngineError::failed(format!("cannot write {}: {error} (measurement.raw.output_file)", path.display()))
                .hint("use the printed summary: the individual operations are lost")
        })
    }
}

fn partial_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

/// Follows links, even to a file that does not exist yet, because a rename would replace the link itself.
fn follow_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The kernel has the same limit on the number of links.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// Whether the path exists and is neither a file nor a directory.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|status| !status.is_file() && !status.is_dir())
}

/// Checks that a file can be created at this path. No file remains after the check.
fn probe_path(path: &Path, property: &str) -> Result<(), EngineError> {
    if path.is_dir() {
        return Err(EngineError::usage(format!("{} is a directory ({property})", path.display())).hint("name a file"));
    }
    if is_special(path) {
        return Ok(());
    }
    let partial = partial_of(path);
    let result = File::create(&partial).and_then(|_| fs::remove_file(&partial));
    result.map_err(|error| {
        EngineError::usage(format!("cannot write {}: {error} ({property})", path.display()))
            .hint("name a file in an existing directory that you may write to")
    })
}
