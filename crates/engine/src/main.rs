//! `loadstone-engine`: drives the load of one trial. See ARCHITECTURE.md.

#[macro_use]
mod kinds;
mod actor;
mod alarm;
#[cfg(test)]
mod allocations;
mod borders;
mod calibrate;
mod client;
mod clock;
mod conductor;
mod control;
mod crew;
mod describe;
mod dfsio;
mod diagnostics;
mod dispatch;
mod error;
mod event;
mod failures;
mod ledger;
mod limits;
mod mapping;
mod observer;
mod output;
mod pulse;
mod recorder;
mod scheduler;
mod schema;
mod signals;
#[cfg(test)]
mod simulation;
mod sink;
mod spec;
mod suggest;
mod task;
mod tera;
mod trial;
mod trial_mode;
mod tsc;
mod usage;
mod worker_threads;
mod ycsb;

use std::process::ExitCode;
use std::sync::mpsc::channel;

use error::{EngineError, shorten};

const USAGE: &str = "\
usage: loadstone-engine COMMAND

  ycsb {load|run|shell} STORE …   YCSB's command line
  dfsio {-write|-read|…} URI      Hadoop's TestDFSIO command line
  teragen ROWS OUT                Hadoop's TeraGen, TeraSort and TeraValidate, on local disks and HDFS
  terasort IN OUT
  teravalidate OUT [REPORT]
  trial                           a TrialSpec and control lines on stdin, events on stdout
  ledger [FILE…] --spec SPEC      read back what a run wrote, and print what was lost
  describe                        print the stores, properties, kinds of work and front ends as JSON
  schema [DIRECTORY]              write the JSON Schemas and the generated reference pages
  --version
";

fn main() -> ExitCode {
    let arguments: Vec<String> = match std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(argument) => {
            let error = EngineError::usage(format!("an argument is not valid UTF-8: {}", argument.display()));
            return fail(&error.hint("give names and values as UTF-8 text"));
        }
    };
    let (signals, controls) = channel();
    let result = match arguments.first().map(String::as_str) {
        Some("ycsb") => {
            signals::listen(signals);
            ycsb::main(&arguments[1..], &controls)
        }
        Some("dfsio") => {
            signals::listen(signals);
            dfsio::main(&arguments[1..], &controls)
        }
        Some(name @ ("teragen" | "terasort" | "teravalidate")) => {
            let command = match name {
                "teragen" => tera::Command::Gen,
                "terasort" => tera::Command::Sort,
                _ => tera::Command::Validate,
            };
            signals::listen(signals);
            tera::main(command, &arguments[1..], &controls)
        }
        Some("trial") => {
            signals::listen(signals.clone());
            trial_mode::main(&signals, &controls)
        }
        Some("ledger") => ledger::main(&arguments[1..]),
        Some("describe") => describe::main(&arguments[1..]),
        Some("schema") => schema::main(arguments.get(1).map(String::as_str)),
        Some("--version") => {
            output::out(&format!("loadstone-engine {}\n", env!("CARGO_PKG_VERSION")));
            Ok(0)
        }
        Some("--help" | "-h") => {
            output::out(USAGE);
            Ok(0)
        }
        Some(other) => Err(EngineError::usage(format!("there is no command \"{other}\""))
            .hint("the commands are ycsb, dfsio, teragen, terasort, teravalidate, trial, ledger, describe and schema")),
        None => {
            output::err(USAGE);
            Ok(2)
        }
    };
    if let Err(message) = loadstone_stores::jvm::machine::leave() {
        output::err(&format!("warning: {message}\n"));
    }
    match (result, output::lost()) {
        (Ok(_), Some(why)) => fail(
            &EngineError::failed(format!("cannot write to stdout: {why}")).hint("repeat the run: its report is lost"),
        ),
        (Ok(code), None) => ExitCode::from(code),
        (Err(error), _) => fail(&error),
    }
}

fn fail(error: &EngineError) -> ExitCode {
    let hint = error.hint.as_deref().unwrap_or("see loadstone-engine --help for the commands");
    output::err(&format!("error: {}\nhint: {}\n", shorten(&error.message), shorten(hint)));
    ExitCode::from(error.exit)
}
