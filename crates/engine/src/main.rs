//! `loadstone-engine`: drives the load of one trial. See ARCHITECTURE.md.

mod alarm;
#[cfg(test)]
mod allocations;
mod calibrate;
mod client;
mod clock;
mod course;
mod dispatch;
mod doors;
mod error;
mod event;
mod notes;
mod output;
mod schema;
mod signals;
#[cfg(test)]
mod simulation;
mod sink;
mod spec;
mod tape;
mod trial;
mod trial_mode;
mod usage;
mod workers;

use std::process::ExitCode;
use std::sync::mpsc::channel;

use error::EngineError;

const USAGE: &str = "\
usage: loadstone-engine COMMAND

  ycsb {load|run|shell} STORE …   YCSB's command line
  trial                           a TrialSpec and control lines on stdin, events on stdout
  schema [DIRECTORY]              write the JSON Schemas and the generated reference pages
  --version
";

fn main() -> ExitCode {
    let words: Vec<String> = match std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect() {
        Ok(words) => words,
        Err(word) => return fail(&EngineError::usage(format!("an argument is not valid UTF-8: {}", word.display()))),
    };
    let (signals, controls) = channel();
    let result = match words.first().map(String::as_str) {
        Some("ycsb") => {
            signals::listen(signals);
            doors::ycsb::main(&words[1..], &controls)
        }
        Some("trial") => {
            signals::listen(signals.clone());
            trial_mode::main(&signals, &controls)
        }
        Some("schema") => schema::main(words.get(1).map(String::as_str)),
        Some("--version") => {
            output::out(&format!("loadstone-engine {}\n", env!("CARGO_PKG_VERSION")));
            Ok(0)
        }
        Some("--help" | "-h") => {
            output::out(USAGE);
            Ok(0)
        }
        Some(other) => Err(EngineError::usage(format!("there is no command \"{other}\""))
            .hint("the commands are ycsb, trial and schema")),
        None => {
            output::err(USAGE);
            Ok(2)
        }
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    }
}

fn fail(error: &EngineError) -> ExitCode {
    output::err(&format!("error: {error}\n"));
    if let Some(hint) = &error.hint {
        output::err(&format!("hint: {hint}\n"));
    }
    ExitCode::from(error.exit)
}
