//! The DFSIO front end: `dfsio -write|-read|… URI`, drop-in for Hadoop's TestDFSIO.

mod args;
mod printer;
mod report;
mod translate;

use std::fs::OpenOptions;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use args::{Args, Test, USAGE};
use loadstone_storage::fs::hdfs::{self, Hdfs};
use loadstone_storage::fs::local::Local;
use loadstone_storage::fs::{FileSystem, FsError, Location, Scheme};
use loadstone_storage::work::{Access, Action};
use loadstone_stores::StoreError;
use printer::Printer;

use crate::control::Control;
use crate::dispatch;
use crate::error::EngineError;
use crate::output::{err, out};

/// Runs the front end. Returns the exit code.
pub fn main(words: &[String], controls: &Receiver<Control>) -> Result<u8, EngineError> {
    if words.iter().any(|word| matches!(word.as_str(), "--help" | "-help" | "-h")) || words.is_empty() {
        out(USAGE);
        return Ok(if words.is_empty() { 2 } else { 0 });
    }
    let args = Args::parse(words)?;
    let Test::Work(action, access) = args.test else {
        let place = translate::place(&args)?;
        if delete(&place, &place.path)? {
            err(&format!("deleted {}\n", place.uri()));
        } else {
            err(&format!("there is nothing at {}\n", place.uri()));
        }
        return Ok(0);
    };
    let (spec, warnings) = translate::translate(&args, action, access)?;
    for warning in &warnings {
        err(&format!("warning: {warning}\n"));
    }
    if args.print_spec {
        let spec = serde_json::to_string(&spec)
            .map_err(|error| EngineError::failed(format!("cannot print the spec: {error}")))?;
        out(&format!("{spec}\n"));
        return Ok(0);
    }
    // The results must have a place before hours of load are put on a system.
    let results = OpenOptions::new().append(true).create(true).open(&args.res_file).map_err(|error| {
        EngineError::usage(format!("cannot write to {}: {error}", args.res_file)).hint("choose another -resFile")
    })?;
    let place = translate::place(&args)?;
    if action == Action::Write && access == Access::Sequential {
        // As Hadoop does: files of an earlier test are no part of this one.
        delete(&place, &format!("{}/io_data", place.path))?;
    }
    let started = Instant::now();
    let mut printer = Printer::new(args.test, &spec, place.uri());
    let end = dispatch::run(&spec, controls, &mut printer)?;
    printer.report(&end, started.elapsed(), results)
}

/// Deletes what is there, and all below it. Returns whether there was something.
fn delete(place: &Location, path: &str) -> Result<bool, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| EngineError::failed(format!("cannot start an executor: {error}")))?;
    let deleted: Result<bool, FsError> = runtime.block_on(async {
        match place.scheme {
            Scheme::File => Local::default().delete(path).await,
            Scheme::Hdfs => {
                hdfs::reach(&place.authority)?;
                Hdfs::new(&place.authority, &std::collections::BTreeMap::new())?.delete(path).await
            }
        }
    });
    deleted.map_err(|error| StoreError::from(error).into())
}
