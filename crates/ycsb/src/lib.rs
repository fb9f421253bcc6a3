//! The YCSB front end: `ycsb {load|run|shell} STORE …`, a drop-in replacement for `bin/ycsb`.

#![allow(missing_docs, reason = "fields whose names say everything")]

mod args;
mod bindings;
mod config;
mod core_workload;
#[cfg(test)]
mod format_tests;
mod hdr_file;
mod hosted;
pub mod known_properties;
mod measure;
mod printer;
mod properties;
mod rate;
mod report;
mod report_files;
mod shell;
mod status;
mod time_series;
mod translate;

use std::sync::mpsc::Receiver;

use args::{Args, Command, USAGE};
use printer::Printer;
use properties::Properties;
use report_files::ReportFiles;

use loadstone_measure::control::Control;
use loadstone_wire::error::{EngineError, shorten};
use loadstone_wire::output::{out_json, print_err, print_out};

/// Runs the front end. Returns the exit code.
pub fn main(arguments: &[String], controls: &Receiver<Control>) -> Result<u8, EngineError> {
    if arguments.iter().any(|arg| matches!(arg.as_str(), "--help" | "-help" | "-h")) || arguments.is_empty() {
        print_out(&format!("{USAGE}\n{}", bindings::list_stores()));
        return Ok(if arguments.is_empty() { 2 } else { 0 });
    }
    let args = Args::parse(arguments)?;
    let mut properties = Properties::gather_properties(&args)?;
    if args.command == Command::Shell {
        // The shell does not use these counts.
        properties.default_to("recordcount", "1");
        properties.default_to("operationcount", "1");
    }
    let translated = translate::translate(&args, &properties)?;
    for warning in &translated.warnings {
        print_err(&format!("warning: {}\n", shorten(warning)));
    }
    if args.print_spec {
        out_json("the spec", &translated.spec)?;
        return Ok(0);
    }
    if args.command == Command::Shell {
        return shell::main(&translated.spec);
    }
    // Checks that the report's file is writable, before running load for hours.
    let files = ReportFiles::open_files(&translated.reporting)?;
    let mut printer = Printer::new(&translated, arguments, files);
    let end = loadstone_registry::run(&translated.spec, controls, &mut printer)
        .map_err(|error| bindings::name_folder(error, &args.store))?;
    printer.exit_code(&end)
}
