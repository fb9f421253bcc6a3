//! The front ends `teragen`, `terasort` and `teravalidate`. They are drop-in replacements for the examples in Hadoop,
//! and do not need Hadoop.

#![allow(missing_docs, reason = "fields whose names say everything")]

mod args;
mod report;

use std::sync::mpsc::Receiver;
use std::time::Duration;

use args::Args;
pub use args::Command;
use loadstone_load::Segment;
use loadstone_storage::sort::job::Stage;
use loadstone_storage::sort::progress::Progress;
use loadstone_storage::sort::validate::Verdict;
use report::{Report, Terminal};

use loadstone_kinds::sort::{self, Places};
use loadstone_measure::control::{Control, End};
use loadstone_wire::error::EngineError;
use loadstone_wire::output::{print_err, print_out};
use loadstone_wire::spec::VERSION;

/// Interval between updates of the progress display.
const EVERY: Duration = Duration::from_millis(200);

/// Runs a front end. Returns the exit code.
pub fn main(command: Command, arguments: &[String], controls: &Receiver<Control>) -> Result<u8, EngineError> {
    if arguments.is_empty() || arguments.iter().any(|word| matches!(word.as_str(), "--help" | "-help" | "-h")) {
        print_out(&command.usage());
        return Ok(if arguments.is_empty() { 2 } else { 0 });
    }
    let args = Args::parse(command, arguments)?;
    for warning in &args.warnings {
        print_err(&format!("warning: {warning}\n"));
    }
    let places = Places::for_whole_job(&args.job)?;
    let stages = list_stages(&args, &places)?;
    if args.print_spec {
        for stage in stages {
            print_out(&format!("{}\n", spec(stage, &args)));
        }
        return Ok(0);
    }
    let mut report = Report::new(&args);
    let ended = run_job(&args, &places, &stages, controls, &mut report);
    // Removes the files of a failed command. If the removal also fails, the next job with the same output repeats it.
    if !matches!(ended, Ok(None)) && report.is_prepared() {
        let _ = sort::run_stage((&places, &args.job), Stage::Abandon, Segment::default(), EVERY, |_| None);
    }
    if let Some(end) = ended? {
        print_err(&format!("{} was interrupted; its files were removed\n", command.name()));
        return Ok(end.code());
    }
    print_out(&report.text());
    report.verdict().map_or(Ok(0), exit_code)
}

/// The stages of a command.
fn list_stages(args: &Args, places: &Places) -> Result<Vec<Stage>, EngineError> {
    Ok(match args.command {
        Command::Gen => vec![Stage::Prepare, Stage::Generate, Stage::Commit],
        Command::Sort => {
            let progress = Progress::default();
            if places.create_task(&args.job, Segment::default(), &progress).is_in_memory()? {
                vec![Stage::Prepare, Stage::Sample, Stage::SortInMemory, Stage::Commit]
            } else {
                vec![Stage::Prepare, Stage::Sample, Stage::Sort, Stage::Merge, Stage::Commit]
            }
        }
        Command::Validate if args.job.output.is_none() => vec![Stage::Validate],
        Command::Validate => vec![Stage::Prepare, Stage::Validate, Stage::Commit],
    })
}

/// The TrialSpec of a stage, with a single segment.
fn spec(stage: Stage, args: &Args) -> serde_json::Value {
    serde_json::json!({
        "spec": VERSION,
        "store": {"name": "file"},
        "phase": "run",
        "work": {"type": "sort", "stage": stage, "job": args.job},
        "clients": 1,
        "pace": {"mode": "closed"},
        "until": {},
        "segment": {"k": 0, "n": 1},
        "seed": 0,
        "sinks": [],
        "interval_ms": 1_000,
    })
}

/// Runs the stages one after another. If they were stopped from outside, returns the reason.
fn run_job(
    args: &Args,
    places: &Places,
    stages: &[Stage],
    controls: &Receiver<Control>,
    report: &mut Report,
) -> Result<Option<End>, EngineError> {
    let mut disk = None;
    for &stage in stages {
        // The first stage creates the scratch directory, and the last stage deletes it.
        if args.disk && stage == Stage::Commit {
            report.disk(Places::measure_disk(&args.job, "disk-after")?);
        }
        // If the input cannot be listed, the stage itself reports the error.
        let total = || places.create_task(&args.job, Segment::default(), &Progress::default()).bytes_of(stage).ok();
        let mut terminal = Terminal::new(stage, total, disk);
        let (ended, early) = sort::run_stage((places, &args.job), stage, Segment::default(), EVERY, |done| {
            terminal.show_progress(done);
            controls.try_iter().find_map(Control::find_end)
        });
        terminal.clear();
        report.add_stage(stage, &ended);
        // Once the last stage has finished, there is nothing left to interrupt.
        if let Some(end) = early
            && (ended.outcome.is_err() || stages.last() != Some(&stage))
        {
            return Ok(Some(end));
        }
        let outcome = ended.outcome.map_err(|error| {
            let stage_name = stage.name();
            let message = format!("{} failed in the stage \"{stage_name}\": {}", args.command.name(), error.message);
            // A refused command has not run any stage.
            if error.usage { EngineError::from(error) } else { EngineError { message, ..error.into() } }
        })?;
        if let Some(warning) = outcome.warning {
            print_err(&format!("warning: {warning}\nhint: {}\n", warning.hint.as_deref().unwrap_or_default()));
        }
        if args.disk && stage == Stage::Prepare {
            let speed = Places::measure_disk(&args.job, "disk-before")?;
            report.disk(speed);
            disk = Some(speed);
        }
    }
    Ok(None)
}

/// The exit code of a validation.
fn exit_code(verdict: &Verdict) -> Result<u8, EngineError> {
    let faults = &verdict.faults;
    let Some(first) = faults.first.first() else { return Ok(0) };
    for fault in &faults.first {
        print_err(&format!("{fault}\n"));
    }
    Err(EngineError::failed(format!(
        "{} of {} rows are wrong, the first in {} at offset {}",
        faults.count, verdict.rows, first.file, first.offset
    ))
    .hint("sort again; if individual rows differ from TeraGen's, check memory, disks and network"))
}
