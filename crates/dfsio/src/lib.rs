//! The DFSIO front end: `dfsio -write|-read|… URI`, a drop-in replacement for Hadoop's TestDFSIO.

#![allow(missing_docs, reason = "fields whose names say everything")]

mod args;
mod printer;
mod report;
mod translate;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use args::{Args, Test, USAGE};
use loadstone_session::EngineError;
use loadstone_storage::file_operations::{Access, Action};
use loadstone_storage::fs::hdfs::{self, Hdfs};
use loadstone_storage::fs::local::Local;
use loadstone_storage::fs::{FileStat, FileSystem, FsError, Location, Scheme};
use loadstone_storage::store::free_bytes;
use printer::Printer;

use loadstone_measure::control::Control;
use loadstone_wire::output::{out_json, print_err, print_out};

/// Runs the front end. Returns the exit code.
pub fn main(arguments: &[String], controls: &Receiver<Control>) -> Result<u8, EngineError> {
    if arguments.iter().any(|arg| matches!(arg.as_str(), "--help" | "-help" | "-h")) || arguments.is_empty() {
        print_out(USAGE);
        return Ok(if arguments.is_empty() { 2 } else { 0 });
    }
    let args = Args::parse(arguments)?;
    let Test::Work(action, access) = args.test else {
        let location = translate::location(&args)?;
        if !delete_files(&location, &CREATED)? {
            print_err(&format!("there are no files of TestDFSIO in {}\n", location.uri()));
        }
        return Ok(0);
    };
    let (spec, warnings) = translate::translate_args(&args, action, access)?;
    for warning in &warnings {
        print_err(&format!("warning: {warning}\n"));
    }
    if args.print_spec {
        out_json("the spec", &spec)?;
        return Ok(0);
    }
    let location = translate::location(&args)?;
    check_space(&args, action, &location)?;
    // Checks that the results can be written, before running load for hours.
    let results = Results::open_file(&args.res_file)?;
    if action == Action::Write && access == Access::Sequential {
        // Deletes the files of an earlier test first, as Hadoop does.
        delete_files(&location, &CREATED[..1])?;
    }
    let started = Instant::now();
    let mut printer = Printer::new(args.test, &spec, location.uri());
    let end = loadstone_registry::run(&spec, controls, &mut printer)?;
    printer.print_report(&end, started.elapsed(), results)
}

/// Refuses to write more than the local file system can hold. Space occupied by an earlier test's files counts as free,
/// because a write test replaces these files.
fn check_space(args: &Args, action: Action, location: &Location) -> Result<(), EngineError> {
    let earlier = match action {
        // With compression, the size of the files is unknown.
        Action::Write | Action::Append if location.scheme == Scheme::File && args.compression.is_none() => {
            if action == Action::Write { count_allocated_bytes(&format!("{}/io_data", location.path)) } else { 0 }
        }
        _ => return Ok(()),
    };
    let needed = args.files.saturating_mul(args.file_bytes);
    let Some(free) = free_bytes(&location.path).map(|free| free.saturating_add(earlier)).filter(|free| *free < needed)
    else {
        return Ok(());
    };
    let mb = |bytes: u64| format!("{:.0} MB", bytes as f64 / report::MB);
    let message = format!(
        "{} files of {} need {}, but {} has {} free (MB: 2^20 bytes)",
        args.files,
        mb(args.file_bytes),
        mb(needed),
        location.path,
        mb(free)
    );
    Err(EngineError::usage(message).hint("use fewer or smaller files, or a directory on a larger file system"))
}

/// Space that the files in a directory occupy, bytes.
fn count_allocated_bytes(directory: &str) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|facts| facts.blocks() * 512).sum()
}

/// The file to which Hadoop's block of results is appended.
#[derive(Debug)]
struct Results {
    path: String,
    file: File,
    /// Whether the file is new.
    new: bool,
}

impl Results {
    fn open_file(path: &str) -> Result<Self, EngineError> {
        let new = !std::path::Path::new(path).exists();
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
            EngineError::usage(format!("cannot write to {path}: {error}")).hint("use another -resFile")
        })?;
        Ok(Self { path: path.to_owned(), file, new })
    }

    fn append_block(&mut self, block: &str) -> Result<(), EngineError> {
        self.file.write_all(block.as_bytes()).map_err(|error| {
            EngineError::failed(format!("cannot append to {}: {error}", self.path))
                .hint("copy the results from above, and use another -resFile next time")
        })
    }
}

impl Drop for Results {
    /// Removes the file if it is empty because the test had no results.
    fn drop(&mut self) {
        // Another test may have appended to the file in the meantime.
        if self.new && self.file.metadata().is_ok_and(|facts| facts.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The directories that TestDFSIO creates in Hadoop 3.4. Loadstone creates only the first.
const CREATED: [&str; 7] = ["data", "control", "write", "read", "append", "random_read", "truncate"];

/// The names of the first few entries.
fn list_names<'a>(entries: impl Iterator<Item = &'a FileStat>) -> String {
    let names: Vec<_> = entries.take(4).map(FileStat::name).collect();
    match names[..] {
        [a, b, c, _] => format!("{a}, {b}, {c} and others"),
        _ => names.join(", "),
    }
}

/// Deletes the directories `io_NAME`, for each of `names`, that TestDFSIO (Hadoop's or Loadstone's) leaves below a base
/// directory; with all names, also deletes the base directory if it is then empty. Prints the deleted directories.
/// Returns whether there were any.
fn delete_files(location: &Location, names: &[&str]) -> Result<bool, EngineError> {
    async fn delete_from(system: &impl FileSystem, base: &str, names: &[&str]) -> Result<bool, FsError> {
        let mut deleted = false;
        for name in names {
            let path = format!("{}/io_{name}", base.trim_end_matches('/'));
            let inside = system.list_folder(&path).await.unwrap_or_default();
            if system.delete(&path).await? {
                deleted = true;
                let foreign = inside.iter().filter(|entry| *name == "data" && !entry.name().starts_with("test_io_"));
                let foreign = list_names(foreign);
                let foreign =
                    if foreign.is_empty() { foreign } else { format!(", including {foreign} (not from a test)") };
                print_err(&format!("deleted {path}: {} files{foreign}\n", inside.len()));
            }
        }
        if deleted && names.len() == CREATED.len() {
            // All other files in the directory belong to the user.
            match system.list_folder(base).await? {
                rest if rest.is_empty() => {
                    system.delete(base).await?;
                    print_err(&format!("deleted {base}\n"));
                }
                rest => print_err(&format!("kept {base}: it also contains {}\n", list_names(rest.iter()))),
            }
        }
        Ok(deleted)
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| EngineError::failed(format!("cannot start an executor: {error}")))?;
    let deleted: Result<bool, FsError> = runtime.block_on(async {
        match location.scheme {
            Scheme::File => delete_from(&Local::default(), &location.path, names).await,
            Scheme::Hdfs => {
                hdfs::reach(&location.authority)?;
                let system = Hdfs::new(&location.authority, &std::collections::BTreeMap::new())?;
                delete_from(&system, &location.path, names).await
            }
        }
    });
    deleted.map_err(EngineError::from)
}
