//! The scratch directory of a job, next to the output. The output gets its final name only when it is complete.
//!
//! `DIRECTORY/.NAME.loadstone` contains runs, sums and the growing output, which is renamed to `DIRECTORY/NAME` at the
//! end.
//!
//! If several jobs have the same output, exactly one of them gets the scratch directory, and the directory always names
//! its owner. To claim the scratch directory, a job prepares a directory under a unique name, with an entry that
//! identifies the owner, and then renames it. A rename never replaces an existing name (renameat2(2):
//! `RENAME_NOREPLACE`; HDFS: rename2 without overwrite). If the owner has ended, its entry is renamed as well, which
//! only one job can do. Before a directory is removed, it is renamed to a unique name.

use std::fs;

use crate::sort::SortError;
use crate::sort::files::{Files, join, write_all};
use crate::sort::input::SUCCESS;

/// The prefix of the entry that identifies the owner.
const OWNER: &str = "owner-";
/// The prefix of scratch directories that are being prepared or removed.
const PASSING: &str = ".loadstone-";
/// Number of times that the directory may change owners while a job tries to claim it.
const TRIES: usize = 10;

/// The process that owns a scratch directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pid: u32,
    /// Start time of the process, in kernel ticks; needed because pids are reused.
    started: u64,
    /// The kernel's boot id; needed because a pid is valid only until the machine restarts.
    boot: String,
    host: String,
}

impl Owner {
    /// The process that calls this function.
    pub fn this_process() -> Self {
        Self::process(std::process::id())
    }

    /// A process on this machine.
    pub fn process(pid: u32) -> Self {
        // Names on HDFS cannot contain colons.
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().replace([':', '/'], "_");
        Self {
            pid,
            started: start_time(pid).unwrap_or_default(),
            boot: read("/proc/sys/kernel/random/boot_id").replace('-', ""),
            host: read("/proc/sys/kernel/hostname"),
        }
    }

    /// The part of an entry's name that identifies the owner.
    fn id(&self) -> String {
        format!("{}-{}-{}-{}", self.pid, self.started, self.boot, self.host)
    }

    fn parse(id: &str) -> Option<Self> {
        let mut parts = id.splitn(4, '-');
        let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { pid, started, boot: parts.next()?.to_owned(), host: parts.next()?.to_owned() })
    }

    /// Whether the process may still be running.
    fn is_alive(&self) -> bool {
        let here = Self::process(self.pid);
        // A process on another host cannot be checked, so it counts as alive.
        self.host != here.host || (self.boot == here.boot && start_time(self.pid) == Some(self.started))
    }
}

/// Start time of a process (proc(5): field 22, counted after the name in parentheses); `None` if the process does not
/// exist or is a zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

/// The owner of the scratch directory.
enum Holder {
    /// The directory does not exist.
    Nobody,
    Process(Owner),
    /// The directory does not name its owner.
    Unknown,
}

/// The paths of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The directory.
    pub path: String,
    /// The path of the growing output.
    pub growing: String,
    /// The final path of the output.
    pub output: String,
    /// The directory that contains the scratch directory and the output.
    parent: String,
}

impl Scratch {
    /// The scratch directory of a job that writes this output.
    pub fn new(output: &str) -> Result<Self, SortError> {
        let output = output.trim_end_matches('/');
        let (parent, name) = output.rsplit_once('/').unwrap_or((".", output));
        if matches!(name, "" | "." | "..") {
            return Err(SortError::usage(format!("\"{output}\" cannot be an output"))
                .hint("name a directory that does not exist yet"));
        }
        let parent = if parent.is_empty() { "/" } else { parent };
        let path = join(parent, &format!(".{name}.loadstone"));
        Ok(Self { growing: join(&path, "output"), path, output: output.to_owned(), parent: parent.to_owned() })
    }

    /// Creates the directory, and removes the remains of killed jobs. Refuses an output that exists, as Hadoop does,
    /// and an output that a running process is writing.
    pub fn make_directory(&self, files: &dyn Files, owner: &Owner) -> Result<(), SortError> {
        self.remove_passing(files);
        let mut last = None;
        for _ in 0..TRIES {
            let exists = files.has_file(&self.output)?;
            match self.holder(files)? {
                Holder::Process(other) if other.is_alive() && other != *owner => {
                    return Err(if exists { self.refuse_existing() } else { self.owner_error(&other) });
                }
                Holder::Process(dead) => last = self.take_over(files, &dead, owner).err(),
                Holder::Unknown | Holder::Nobody if exists => return Err(self.refuse_existing()),
                // Either the directory was renamed while its entries were listed, or no job created it.
                Holder::Unknown => last = Some(self.ownerless_error()),
                Holder::Nobody => match self.claim_directory(files, owner) {
                    Ok(()) => return self.begin_job(files),
                    Err(error) => last = Some(error),
                },
            }
        }
        Err(last.unwrap_or_else(|| self.ownerless_error()))
    }

    fn holder(&self, files: &dyn Files) -> Result<Holder, SortError> {
        let Some(entries) = files.list_files(&self.path)? else { return Ok(Holder::Nobody) };
        let owner = entries.iter().find_map(|entry| Owner::parse(entry.name().strip_prefix(OWNER)?));
        Ok(owner.map_or(Holder::Unknown, Holder::Process))
    }

    /// Creates the directory with its owner's entry, unless another job does so first.
    fn claim_directory(&self, files: &dyn Files, owner: &Owner) -> Result<(), SortError> {
        let own = self.temporary_path();
        let claimed = files
            .make_directory(&join(&own, &format!("{OWNER}{}", owner.id())))
            .and_then(|()| files.rename_file(&own, &self.path));
        if claimed.is_err() {
            let _ = files.remove_file(&own);
        }
        claimed
    }

    /// Removes the directory of a process that has ended, unless another job does so first.
    fn take_over(&self, files: &dyn Files, dead: &Owner, owner: &Owner) -> Result<(), SortError> {
        if dead != owner {
            let [from, to] = [dead, owner].map(|owner| join(&self.path, &format!("{OWNER}{}", owner.id())));
            files.rename_file(&from, &to)?;
        }
        self.remove_directory(files)
    }

    /// Creates the contents of the directory. If that fails, for example on a full disk, the directory is removed.
    fn begin_job(&self, files: &dyn Files) -> Result<(), SortError> {
        let result = match files.has_file(&self.output) {
            // Since the check, another job has renamed its output and released the scratch directory.
            Ok(true) => Err(self.refuse_existing()),
            Ok(false) => files.make_directory(&self.growing),
            Err(error) => Err(error),
        };
        if result.is_err() {
            let _ = self.remove_directory(files);
        }
        result
    }

    fn refuse_existing(&self) -> SortError {
        SortError::usage(format!("output directory {} already exists", self.output))
            .hint("remove it, or choose another output")
    }

    fn owner_error(&self, other: &Owner) -> SortError {
        let Owner { pid, host, .. } = other;
        SortError::new(format!("process {pid} on {host} is writing {}", self.output)).hint(format!(
            "wait until it exits, or choose another output; if it no longer writes this output, remove {}",
            self.path
        ))
    }

    fn ownerless_error(&self) -> SortError {
        SortError::new(format!("the scratch directory {} does not state which process owns it", self.path))
            .hint("if no job writes this output, remove the scratch directory")
    }

    /// The path of a directory that this process is preparing or removing.
    fn temporary_path(&self) -> String {
        join(&self.parent, &format!("{PASSING}{}", Owner::this_process().id()))
    }

    /// Removes directories that killed processes were preparing or removing. It does not matter if a directory cannot
    /// be listed or removed.
    fn remove_passing(&self, files: &dyn Files) {
        for entry in files.list_files(&self.parent).ok().flatten().unwrap_or_default() {
            if entry.name().strip_prefix(PASSING).and_then(Owner::parse).is_some_and(|owner| !owner.is_alive()) {
                let _ = files.remove_file(&join(&self.parent, entry.name()));
            }
        }
    }

    /// Renames the output to its final name.
    pub fn commit_output(&self, files: &dyn Files) -> Result<(), SortError> {
        write_all(files, &join(&self.growing, SUCCESS), b"")?;
        files.sync_directory(&self.growing)?;
        if files.has_file(&self.output)? {
            return Err(SortError::new(format!("{} was created while the job ran", self.output))
                .hint("remove it, and run the job again"));
        }
        files.rename_file(&self.growing, &self.output)?;
        files.sync_directory(&self.parent)?;
        self.remove_directory(files)
    }

    /// Removes the directory. Fails if it belongs to another process that may be running, or does not name its owner.
    pub fn abandon_directory(&self, files: &dyn Files, owner: &Owner) -> Result<(), SortError> {
        match self.holder(files)? {
            Holder::Process(other) if other.is_alive() && other != *owner => Err(self.owner_error(&other)),
            Holder::Unknown => Err(self.ownerless_error()),
            _ => self.remove_directory(files),
        }
    }

    /// Removes the directory and its contents.
    fn remove_directory(&self, files: &dyn Files) -> Result<(), SortError> {
        let own = self.temporary_path();
        files.remove_file(&own)?;
        if files.has_file(&self.path)? {
            files.rename_file(&self.path, &own)?;
        }
        files.remove_file(&own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::local::Direct;
    use crate::sort::files::local;

    fn scratch(directory: &tempfile::TempDir) -> Scratch {
        Scratch::new(&format!("{}/out/", directory.path().display())).unwrap()
    }

    /// A process on this host that has ended.
    fn dead() -> Owner {
        Owner { started: 1, ..Owner::this_process() }
    }

    fn names(directory: &tempfile::TempDir) -> Vec<String> {
        let entries = local(Direct::Off).list_files(directory.path().to_str().unwrap()).unwrap().unwrap();
        entries.iter().map(|entry| entry.name().to_owned()).collect()
    }

    #[test]
    fn only_scratch_of_a_dead_job_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (scratch, local, me) = (scratch(&directory), local(Direct::Off), Owner::this_process());
        // Both processes are running.
        let other = Owner::process(std::os::unix::process::parent_id());
        scratch.make_directory(&local, &other).unwrap();
        let error = scratch.make_directory(&local, &me).unwrap_err();
        assert!(error.message.contains("is writing") && error.hint.is_some(), "{error}");
        assert!(scratch.abandon_directory(&local, &me).unwrap_err().message.contains("is writing"));
        scratch.abandon_directory(&local, &other).unwrap();
        scratch.make_directory(&local, &dead()).unwrap();
        fs::write(join(&scratch.path, "run-0"), "x").unwrap();
        let passing = join(&scratch.parent, &format!("{PASSING}{}", dead().id()));
        fs::create_dir(&passing).unwrap();
        scratch.make_directory(&local, &me).unwrap();
        assert!(!fs::exists(join(&scratch.path, "run-0")).unwrap() && !fs::exists(passing).unwrap());
        scratch.commit_output(&local).unwrap();
        assert!(fs::exists(join(&scratch.output, SUCCESS)).unwrap());
        assert_eq!(names(&directory), ["out"]);
        assert!(scratch.make_directory(&local, &me).unwrap_err().message.contains("already exists"));
    }

    #[test]
    fn finished_killed_job_leaves_no_scratch() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = scratch(&directory);
        scratch.make_directory(&local(Direct::Off), &dead()).unwrap();
        fs::rename(&scratch.growing, &scratch.output).unwrap();
        let error = scratch.make_directory(&local(Direct::Off), &Owner::this_process()).unwrap_err();
        assert!(error.message.contains("already exists"), "{error}");
        assert_eq!(names(&directory), ["out"]);
    }

    #[test]
    fn scratch_directory_without_owner_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let scratch = scratch(&directory);
        fs::create_dir_all(join(&scratch.path, "mine")).unwrap();
        let error = scratch.make_directory(&local(Direct::Off), &Owner::this_process()).unwrap_err();
        assert!(error.message.contains("does not state which process owns it"), "{error}");
        assert_eq!(scratch.abandon_directory(&local(Direct::Off), &Owner::this_process()).unwrap_err(), error);
        assert!(fs::exists(join(&scratch.path, "mine")).unwrap());
    }

    #[test]
    fn an_owner_is_read_as_it_was_written() {
        let odd = Owner { host: "a-b.c".to_owned(), ..Owner::this_process() };
        for owner in [Owner::this_process(), odd] {
            assert_eq!(Owner::parse(&owner.id()), Some(owner));
        }
        assert_eq!(Owner::parse("1-2"), None);
    }

    #[test]
    fn a_scratch_directory_is_beside_the_output() {
        let of = |output| Scratch::new(output).map(|scratch| scratch.path);
        assert_eq!(of("/a/b").unwrap(), "/a/.b.loadstone");
        assert_eq!(of("/b").unwrap(), "/.b.loadstone");
        assert_eq!(of("b").unwrap(), "./.b.loadstone");
        assert!(of("/").unwrap_err().usage);
    }
}
