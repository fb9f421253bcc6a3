//! `loadstone-engine`: generates the load of one trial. See ARCHITECTURE.md.

mod certificates;
mod describe;
mod ledger;
mod merge;
mod schema;
mod signals;
mod trial_mode;

use std::process::ExitCode;
use std::sync::mpsc::channel;

use loadstone_tera::Command;
use loadstone_wire::error::{EngineError, shorten};

/// The commands that a signal stops gracefully: their results so far are printed.
const STOPPABLE: [&str; 7] = ["ycsb", "cassandra-stress", "dfsio", "teragen", "terasort", "teravalidate", "trial"];

const USAGE: &str = "\
usage: loadstone-engine COMMAND

  ycsb {load|run|shell} STORE …   YCSB's command line
  cassandra-stress COMMAND …      the command line of cassandra-stress
  dfsio {-write|-read|…} URI      Hadoop's TestDFSIO command line
  teragen ROWS OUT                Hadoop's TeraGen, TeraSort and TeraValidate, on local disks and HDFS
  terasort IN OUT
  teravalidate OUT [REPORT]
  trial                           a TrialSpec and control lines on stdin, events on stdout
  ledger [FILE…] --spec SPEC      read back the writes of a run, and print the losses
  merge SEGMENTS                  the events of segments on stdin, the events of the whole trial on stdout
  certificates DIR [--user NAME] HOST…
                                  write a CA, a server's certificate for the hosts, and a client's, as PEM files
  describe                        print the stores, properties, workload kinds and front ends as JSON
  schema [DIRECTORY]              write the JSON Schemas and the generated reference pages
  --version
";

fn main() -> ExitCode {
    let arguments: Vec<String> = match std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect() {
        Ok(arguments) => arguments,
        Err(argument) => {
            let error = EngineError::usage(format!("an argument is not valid UTF-8: {}", argument.display()));
            return print_failure(&error.hint("give names and values as UTF-8 text"));
        }
    };
    if let Some(usage) = find_usage(&arguments) {
        loadstone_wire::output::print_out(usage);
        return ExitCode::SUCCESS;
    }
    let (signals, controls) = channel();
    if arguments.first().is_some_and(|command| STOPPABLE.contains(&command.as_str())) {
        signals::forward_signals(signals.clone());
    }
    let result = match arguments.first().map(String::as_str) {
        Some("ycsb") => loadstone_ycsb::main(&arguments[1..], &controls),
        Some("cassandra-stress") => {
            // cassandra-stress itself accepts only `help COMMAND`.
            let asks = arguments.iter().any(|argument| is_help(argument));
            let topic = arguments[1..].iter().find(|word| !word.starts_with('-') && *word != "help");
            let help = std::iter::once("help".to_owned()).chain(topic.cloned()).collect::<Vec<_>>();
            loadstone_cassandra_stress::main(if asks { &help } else { &arguments[1..] }, &controls)
        }
        Some("dfsio") => loadstone_dfsio::main(&arguments[1..], &controls),
        Some("teragen") => loadstone_tera::main(Command::Gen, &arguments[1..], &controls),
        Some("terasort") => loadstone_tera::main(Command::Sort, &arguments[1..], &controls),
        Some("teravalidate") => loadstone_tera::main(Command::Validate, &arguments[1..], &controls),
        Some("trial") => trial_mode::main(&signals, &controls),
        Some("ledger") => ledger::main(&arguments[1..]),
        Some("merge") => merge::main(&arguments[1..]),
        Some("certificates") => certificates::main(&arguments[1..]),
        Some("describe") => describe::main(&arguments[1..]),
        Some("schema") => schema::main(arguments.get(1).map(String::as_str)),
        Some("--version") => {
            loadstone_wire::output::print_out(&format!("loadstone-engine {}\n", env!("CARGO_PKG_VERSION")));
            Ok(0)
        }
        Some("--help" | "-h") => {
            loadstone_wire::output::print_out(USAGE);
            Ok(0)
        }
        Some(other) => Err(EngineError::usage(format!("there is no command \"{other}\"")).hint(
            "the commands are ycsb, cassandra-stress, dfsio, teragen, terasort, teravalidate, trial, ledger, merge, certificates, describe and schema",
        )),
        None => {
            loadstone_wire::output::print_err(USAGE);
            Ok(2)
        }
    };
    if let Err(message) = loadstone_stores::jvm::machine::leave_machine() {
        loadstone_wire::output::print_err(&format!("warning: {message}\n"));
    }
    match (result, loadstone_wire::output::loss_reason()) {
        (Ok(_), Some(why)) => print_failure(
            &EngineError::failed(format!("cannot write to stdout: {why}")).hint("repeat the run: its report is lost"),
        ),
        (Ok(code), None) => ExitCode::from(code),
        (Err(error), _) => print_failure(&error),
    }
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "--help" | "-h")
}

/// The help text of a command without options, if help is requested.
fn find_usage(arguments: &[String]) -> Option<&'static str> {
    let (command, remaining) = arguments.split_first()?;
    match command.as_str() {
        _ if !remaining.iter().any(|argument| is_help(argument)) => None,
        "trial" => Some(trial_mode::USAGE),
        "describe" => Some(describe::USAGE),
        "schema" => Some(schema::USAGE),
        "certificates" => Some(certificates::USAGE),
        _ => None,
    }
}

fn print_failure(error: &EngineError) -> ExitCode {
    let hint = error.hint.as_deref().unwrap_or("see loadstone-engine --help for the commands");
    loadstone_wire::output::print_err(&format!("error: {}\nhint: {}\n", shorten(&error.message), shorten(hint)));
    ExitCode::from(error.exit())
}
