//! The scratch directory of a job: beside the output, which has its name only when it is complete.
//!
//! `DIRECTORY/.NAME.loadstone` holds runs, sums and the growing output; it is renamed to `DIRECTORY/NAME` at the end. A note in it
//! tells which process made it, so that the next job can tell what a killed one left from what another is writing.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::sort::SortError;
use crate::sort::files::{Files, join, read_all, write_all};

/// The note's name.
const OWNER: &str = "owner";

/// The process that a scratch directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    host: String,
    /// Of the kernel: a pid counts only until the machine starts again.
    boot: String,
    pid: u32,
    /// When the process started, in the kernel's ticks: pids are used again.
    started: u64,
}

impl Owner {
    fn this_process() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let pid = std::process::id();
        Self {
            host: read("/proc/sys/kernel/hostname"),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pid,
            started: started(pid).unwrap_or_default(),
        }
    }

    /// Whether the process may still be at work.
    fn lives(&self) -> bool {
        let here = Self::this_process();
        if self.host != here.host {
            // Nobody can tell from here.
            return true;
        }
        self.boot == here.boot && started(self.pid) == Some(self.started)
    }
}

/// When a process started (proc(5): field 22, after the name in parentheses); `None` if there is no such process or only its
/// exit code is left of it.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// The paths of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The directory.
    pub path: String,
    /// Where the output grows.
    pub growing: String,
    /// Its final name.
    pub output: String,
}

impl Scratch {
    /// Of the job that writes this output.
    pub fn of(output: &str) -> Result<Self, SortError> {
        let output = output.trim_end_matches('/');
        let (parent, name) = output.rsplit_once('/').unwrap_or((".", output));
        if matches!(name, "" | "." | "..") {
            return Err(SortError::usage(format!("\"{output}\" cannot be an output"))
                .hint("name a directory that is not there yet"));
        }
        let path = join(parent, &format!(".{name}.loadstone"));
        let path = if parent.is_empty() { format!("/.{name}.loadstone") } else { path };
        Ok(Self { growing: join(&path, "output"), path, output: output.to_owned() })
    }

    /// Refuses an output that is there, as Hadoop does, removes what a killed job left, and makes the directory.
    pub fn make(&self, files: &dyn Files) -> Result<(), SortError> {
        if files.exists(&self.output)? {
            return Err(SortError::usage(format!("output directory {} already exists", self.output))
                .hint("remove it, or choose another"));
        }
        if files.exists(&self.path)? {
            let note = read_all(files, &join(&self.path, OWNER)).unwrap_or_default();
            if let Ok(owner) = serde_json::from_slice::<Owner>(&note)
                && owner.lives()
            {
                return Err(SortError::new(format!(
                    "process {} on {} is writing {}: {} is its scratch directory",
                    owner.pid, owner.host, self.output, self.path
                ))
                .hint("wait for it; if that host is gone, remove the scratch directory"));
            }
            files.remove(&self.path)?;
        }
        files.make_directory(&self.path)?;
        let note = serde_json::to_vec(&Owner::this_process())
            .map_err(|error| SortError::new(format!("internal error: a note has no text: {error}")))?;
        let made = write_all(files, &join(&self.path, OWNER), &note).and_then(|()| files.make_directory(&self.growing));
        // A full disk must not leave even this.
        if made.is_err() {
            let _ = files.remove(&self.path);
        }
        made
    }

    /// Gives the output its name.
    pub fn commit(&self, files: &dyn Files) -> Result<(), SortError> {
        write_all(files, &join(&self.growing, "_SUCCESS"), b"")?;
        files.sync_directory(&self.growing)?;
        if files.exists(&self.output)? {
            return Err(
                SortError::new(format!("{} was made while the job ran", self.output)).hint("remove it, and run again")
            );
        }
        files.rename(&self.growing, &self.output)?;
        self.remove(files)
    }

    /// Removes the directory and what is in it.
    pub fn remove(&self, files: &dyn Files) -> Result<(), SortError> {
        files.remove(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::files::Local;

    #[test]
    fn what_a_killed_job_left_is_removed_and_what_another_writes_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = Scratch::of(&format!("{}/out/", directory.path().display())).unwrap();
        scratch.make(&Local::default()).unwrap();
        let error = scratch.make(&Local::default()).unwrap_err();
        assert!(error.message.contains("is writing"), "{error}");
        let dead = Owner { started: 1, ..Owner::this_process() };
        fs::write(join(&scratch.path, OWNER), serde_json::to_vec(&dead).unwrap()).unwrap();
        fs::write(join(&scratch.path, "run-0"), "x").unwrap();
        scratch.make(&Local::default()).unwrap();
        assert!(!fs::exists(join(&scratch.path, "run-0")).unwrap());
        scratch.commit(&Local::default()).unwrap();
        assert!(fs::exists(join(&scratch.output, "_SUCCESS")).unwrap() && !fs::exists(&scratch.path).unwrap());
        assert!(scratch.make(&Local::default()).unwrap_err().message.contains("already exists"));
    }

    #[test]
    fn a_scratch_directory_is_beside_the_output() {
        let of = |output| Scratch::of(output).map(|scratch| scratch.path);
        assert_eq!(of("/a/b").unwrap(), "/a/.b.loadstone");
        assert_eq!(of("/b").unwrap(), "/.b.loadstone");
        assert_eq!(of("b").unwrap(), "./.b.loadstone");
        assert!(of("/").unwrap_err().usage);
    }
}
