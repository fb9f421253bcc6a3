//! The ledger of a run's writes. It is created before the run and compared with the store's records afterwards.

mod counters;
mod findings;
mod levels;
mod read_back;
mod reading;
mod rows;
mod timestamps;

use loadstone_load::core::CoreRun;
use loadstone_load::keys::write_key;
use loadstone_load::ledger::{Evidence, Ledger, Writes};
use loadstone_load::pace::{Pace, PaceCursor};

use counters::CounterReadBack;
use findings::Findings;
use loadstone_kinds::mapping::Mapping;
use loadstone_kinds::stress::StressWork;
use loadstone_stores::cassandra::Cassandra;
use loadstone_wire::error::EngineError;
use loadstone_wire::event::{Event, Unsettled};
use loadstone_wire::output::{out_json, print_err, print_out};
use loadstone_wire::spec::{Phase, StatementsSpec, TrialSpec, WorkSpec};
use rows::RowRun;
use timestamps::TimestampReadBack;

/// Assumed maximum difference between the clocks of any two segments' hosts, ns.
const SKEW_NS: u64 = 10_000_000;

const USAGE: &str = "\
usage: loadstone ledger [FILE…] --spec SPEC [--crash UNIX_NS]… [--loaded] [--events FILE]…

Reads back what a run wrote and prints, as one JSON object, which of its acknowledged writes are missing. To prove that it
detects losses, it then corrupts one value and removes one record of the run, checks that it finds both faults, and repairs
them. (Rows of cassandra-stress are damaged in memory only: they could not be repaired with the same timestamp.)

  FILE             the ledger of the run, or the ledgers of all its segments, in order (default: the file that SPEC names)
  --spec SPEC      the run's TrialSpec (loadstone-engine ycsb run … --print-spec)
  --crash UNIX_NS  when a process of the system was killed, in ns of Unix time: the age of lost writes is then reported, and
                   losses that the store's guarantee allows are counted separately; repeat it for each kill
  --loaded         the load wrote all its records, so an empty record counts as lost
  --events FILE    the output of `loadstone-engine trial` for a segment: reads that missed another segment's insert count
                   as failures if that insert had been acknowledged before they were sent

exit status: 0 no write that the guarantee protects is lost, 1 writes are lost, 2 the command is wrong, 3 nothing is proven
";

/// The arguments of the command.
#[derive(Debug, Default, PartialEq)]
struct Args {
    files: Vec<String>,
    spec: String,
    crashes: Vec<u64>,
    loaded: bool,
    events: Vec<String>,
}

fn parse_args(arguments: &[String]) -> Result<Args, EngineError> {
    let hint = "see loadstone ledger --help";
    let mut args = Args::default();
    let mut arguments = arguments.iter();
    while let Some(arg) = arguments.next() {
        let mut value = |name: &str| {
            let value = arguments.next().cloned();
            value.ok_or_else(|| EngineError::usage(format!("{name} takes a value")).hint(hint))
        };
        match arg.as_str() {
            "--spec" => args.spec = value("--spec")?,
            "--loaded" => args.loaded = true,
            "--events" => args.events.push(value("--events")?),
            "--crash" => {
                let text = value("--crash")?;
                let bad = || EngineError::usage(format!("--crash must be ns of Unix time, got {text:?}")).hint(hint);
                args.crashes.push(text.parse().map_err(|_| bad())?);
            }
            option if option.starts_with('-') => {
                return Err(EngineError::usage(format!("unknown option {option}")).hint(hint));
            }
            file => args.files.push(file.to_owned()),
        }
    }
    if args.spec.is_empty() {
        return Err(EngineError::usage("--spec is missing: the operations of a run follow from its spec").hint(hint));
    }
    args.crashes.sort_unstable();
    Ok(args)
}

/// Runs the command. Returns the exit code.
pub fn main(arguments: &[String]) -> Result<u8, EngineError> {
    if arguments.iter().any(|arg| matches!(arg.as_str(), "--help" | "-h")) {
        print_out(USAGE);
        return Ok(0);
    }
    let mut args = parse_args(arguments)?;
    let text = std::fs::read_to_string(&args.spec).map_err(|error| {
        EngineError::usage(format!("cannot read the spec {}: {error}", args.spec))
            .hint("loadstone-engine ycsb run … --print-spec prints it")
    })?;
    let spec = TrialSpec::parse(&text)?;
    if args.files.is_empty() {
        args.files.extend(spec.ledger.as_ref().map(|ledger| ledger.file.clone()));
    }
    let mut findings = judge_ledgers(&spec, &args)?;
    findings.calculate_shares();
    out_json("the findings", &findings)?;
    let (line, exit) = match (findings.describe_faults(), findings.describe_missing_proof()) {
        (Some(bad), _) => (bad, 1),
        (None, Some(unproven)) => (unproven, 3),
        (None, None) => {
            if let Some(losses) = findings.describe_allowed_losses() {
                print_err(&format!("warning: {losses}\n"));
            }
            return Ok(0);
        }
    };
    print_err(&format!("error: {line}\n"));
    Ok(exit)
}

fn judge_ledgers(spec: &TrialSpec, args: &Args) -> Result<Findings, EngineError> {
    let is_run_of_rows = matches!(&spec.work, WorkSpec::Records(_) | WorkSpec::Statements(StatementsSpec::Stress(_)));
    if !is_run_of_rows || spec.phase != Phase::Run {
        return Err(EngineError::usage("the spec is not for a run on records or rows").hint("use the spec of the run"));
    }
    if matches!(&spec.work, WorkSpec::Records(core) if !core.versions) {
        return Err(EngineError::usage("the values of this spec do not identify their writes")
            .hint("use the spec of a run with versions=true or a ledger"));
    }
    let wrong = |error: String| EngineError::usage(error).hint("give the ledgers of all segments of one run, in order");
    let ledgers = args.files.iter().map(|file| Ledger::open_in(Mapping::open_file(file)?).map_err(wrong));
    let ledgers = ledgers.collect::<Result<Vec<_>, _>>()?;
    let run = ledgers.first().map(Ledger::run).unwrap_or_default();
    if run.seed != spec.seed || run.spec != spec.fingerprint() {
        return Err(EngineError::usage(format!(
            "the ledger {} was made with a different spec than {}",
            args.files[0], args.spec
        ))
        .hint("print the spec with all properties of the run: its operations follow from them"));
    }
    let pace = Pace::new(&spec.pace, spec.seed).map_err(EngineError::usage)?;
    let due = pace.as_ref().map(|pace| move |index: u64| pace.due_ns(index, &mut PaceCursor::default()));
    let due = due.as_ref().map(|due| due as &dyn Fn(u64) -> u64);
    let evidence = Evidence::new(&ledgers, due, SKEW_NS).map_err(wrong)?;
    let core = match &spec.work {
        WorkSpec::Records(core) => core,
        WorkSpec::Statements(statements) => return judge_rows(spec, statements, &ledgers, &evidence, &args.crashes),
        _ => return Err(EngineError::usage("this workload kind has no ledger")),
    };
    let nothing = || EngineError::usage("no operation of the spec has a proportion above 0").hint("use the run's spec");
    // A front end draws a run number for each command, so the number is read from the ledger.
    let workload = CoreRun::new(core.clone(), spec.seed).ok_or_else(nothing)?.with_number(run.number);
    let writes = (0..evidence.end()).filter_map(|number| Some((workload.find_index(number)?, number)));
    let mut findings = Findings::from_ledgers(&ledgers, &evidence, writes);
    for file in &args.events {
        let Unsettled { count, first } = read_unsettled(file)?;
        findings.judge_misses(count, &first, &evidence, &workload, |record| {
            let mut key = Vec::new();
            write_key(&mut key, record, core.insert_order, core.zero_padding);
            String::from_utf8_lossy(&key).into_owned()
        });
    }
    let (crashes, loaded) = (args.crashes.as_slice(), args.loaded);
    let read = read_back::ReadBack { spec, core, workload: &workload, evidence: &evidence, crashes, loaded, findings };
    read.read_store(&loadstone_registry::ENGINE_STORES.find_records(&spec.store.name)?.store)
}

/// Judges the rows of a cassandra-stress run.
fn judge_rows(
    spec: &TrialSpec,
    statements: &StatementsSpec,
    ledgers: &[Ledger<Mapping>],
    evidence: &Evidence<'_, Mapping>,
    crashes: &[u64],
) -> Result<Findings, EngineError> {
    let (StatementsSpec::Stress(stress), Some(start_us)) =
        (statements, spec.run.and_then(|run| i64::try_from(run).ok()))
    else {
        return Err(EngineError::usage("the spec does not determine the timestamps of its writes")
            .hint("use the spec of the run, with its ledger"));
    };
    let work = StressWork::new(stress, spec.seed, spec.until.operations)?;
    // If an engine was killed, each of its clients had at most one write in flight.
    let writes = evidence.end() + 2 * spec.clients * ledgers.len() as u64 + 64;
    let findings = Findings::from_ledgers(ledgers, evidence, work.list_writes(writes));
    let run = RowRun { spec, work: &work, columns: &stress.columns, writes, evidence, crashes };
    if work.records_counters() {
        return CounterReadBack { run, select: stress.counter_statement() }.read_back::<Cassandra>(findings);
    }
    let end = work.list_writes(writes).last().map_or(0, |(index, _)| index + 1);
    TimestampReadBack { run, select: stress.timestamp_statement(), start_us, end }.read_back::<Cassandra>(findings)
}

/// Finds, in a segment's events, the reads that the segment could not judge.
fn read_unsettled(file: &str) -> Result<Unsettled, EngineError> {
    let hint = "give a file with the output of loadstone-engine trial";
    let text = std::fs::read_to_string(file)
        .map_err(|error| EngineError::usage(format!("cannot read the events {file}: {error}")).hint(hint))?;
    let events = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    let mut summaries = events
        .filter_map(|event| if let Event::Summary(summary) = event { Some(summary.sections.unsettled) } else { None });
    summaries.next().ok_or_else(|| EngineError::usage(format!("{file} has no summary event")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn arguments_are_parsed_or_refused_with_a_reason() {
        let args =
            parse_args(&split_words("a b --spec s --crash 30 --crash 12 --loaded --events e --events f")).unwrap();
        let events = split_words("e f");
        assert_eq!(
            args,
            Args { files: split_words("a b"), spec: "s".to_owned(), crashes: vec![12, 30], loaded: true, events }
        );
        for (text, expected) in [
            ("a", "--spec is missing"),
            ("--spec", "--spec takes a value"),
            ("--spec s --crash soon", "got \"soon\""),
            ("--spec s --chrash 1", "--chrash"),
        ] {
            let error = parse_args(&split_words(text)).unwrap_err();
            assert!(error.message.contains(expected) && error.is_usage() && error.hint.is_some(), "{text}: {error}");
        }
    }
}
