//! Performs a run: schema, warm-up, measured steps and results.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use loadstone_measure::control::{Control, End, TrialFailure};
use loadstone_measure::observer::{Closed, Interval, Moment, Observer, OpenedTrial};
use loadstone_session::Options;
use loadstone_stores::cassandra::{Description, execute_script};
use loadstone_stress::compat::Compat;
use loadstone_stress::output::{
    END, FAILURE, SCHEMA_ONLY, Summary, UNEVEN_STEPS, is_saturated, next_threads, render_auto_table,
    render_improvement, render_profiles, render_results, render_running, render_saturation, render_settings,
    render_steps_header, render_warmup,
};
use loadstone_stress::profile::Profile;
use loadstone_stress::settings::{RateSettings, RunLength, Settings, Truncate};
use loadstone_stress::statements::truncate_statements;
use loadstone_wire::error::{EngineError, count_noun};
use loadstone_wire::output::{print_err, print_out};
use loadstone_wire::spec::{StatementsSpec, WorkSpec};

use super::coverage;
use super::garbage::ClusterCollections;
use super::graph::Graph;
use super::log::Log;
use super::printer::{HdrLog, Names, Printer, StepResult};
use super::schema;
use super::translate::{options, translate_settings, translate_warmups};
use super::user;

/// The tool's pause between two steps that write.
const SETTLE: Duration = Duration::from_secs(15);

/// The files that a run writes in addition to its output, and the logs that it reads.
struct OutputFiles {
    log: Log,
    graph: Option<Graph>,
    hdr: Option<HdrLog>,
    /// The garbage collections of the servers.
    collections: ClusterCollections,
}

/// Creates the schema and performs the requested steps. Returns the exit code.
pub fn run_command(
    settings: &Settings,
    profiles: &[Profile],
    arguments: &[String],
    controls: &Receiver<Control>,
) -> Result<u8, EngineError> {
    let graph = Graph::open(&settings.graph, arguments)?;
    let mut log = Log::open(settings.log.file.as_deref(), graph.is_some())?;
    let has_rate = matches!(&settings.rate, RateSettings::Threads { limit, .. } if limit.per_second() > 0);
    let hdr = settings.log.hdr_file.as_ref().map(|path| HdrLog::create_file(path, has_rate));
    let hdr = hdr.transpose()?;
    if !settings.log.no_settings {
        log.print_text(&render_settings(settings));
        log.print_text(&render_profiles(profiles));
    }
    let options = options(settings, profiles)?;
    let creates = settings.command.command.creates_schema() || !schema::profile_definitions(profiles).is_empty();
    let cluster =
        if creates { schema::create_schema(settings, profiles, &options) } else { execute_script(&options, &[]) }?;
    print_out(&describe_cluster(&cluster, settings));
    if creates {
        // The tool sleeps for one second per contact point instead of waiting for schema agreement.
        let part = if profiles.is_empty() { "keyspaces" } else { "schema" };
        print_out(&format!("Created {part}. All nodes agree on the schema.\n"));
    }
    if settings.command.length == RunLength::Count(0) {
        log.print_text(&format!("{SCHEMA_ONLY}\n"));
        return log.finish_file().map(|()| 0);
    }
    user::check_tables(settings, profiles, &options)?;
    let emptying: Vec<String> = if profiles.is_empty() {
        truncate_statements(settings)
    } else {
        profiles.iter().map(|profile| format!("TRUNCATE {}", profile.table.full_name())).collect()
    };
    let truncate = || execute_script(&options, &emptying).map(drop);
    if let Some(code) = warm_up(settings, profiles, controls, &mut log)? {
        return Ok(code);
    }
    if settings.command.truncate == Truncate::Once {
        truncate()?;
    }
    let mut files = OutputFiles { log, graph, hdr, collections: ClusterCollections::open_logs(&cluster) };
    let result = run_steps(settings, profiles, controls, &mut files, &options, &truncate);
    // The results measured so far are written even if the run failed. The first error is returned.
    let page = files.graph.map_or(Ok(()), Graph::write_page);
    let logged = files.hdr.map_or(Ok(()), HdrLog::finish_file).and(files.log.finish_file());
    if let Some(note) = files.collections.describe_unknown() {
        print_err(&note);
    }
    let code = result?;
    page.and(logged).map(|()| code)
}

/// Performs the steps: one for each number of threads. Returns the exit code.
fn run_steps(
    settings: &Settings,
    profiles: &[Profile],
    controls: &Receiver<Control>,
    files: &mut OutputFiles,
    options: &Options,
    truncate: &dyn Fn() -> Result<(), EngineError>,
) -> Result<u8, EngineError> {
    let OutputFiles { log, graph, hdr, collections } = files;
    let (threads, max_threads, auto) = match settings.rate {
        RateSettings::Threads { threads, .. } => (threads, threads, false),
        RateSettings::Steps { auto, min_threads, max_threads } => (min_threads, max_threads, auto),
    };
    let steps = !matches!(settings.rate, RateSettings::Threads { .. });
    if steps {
        log.print_text("Thread count was not specified\n");
        if matches!(settings.command.length, RunLength::Uncertainty { .. }) {
            log.print_text(UNEVEN_STEPS);
        }
    }
    let mut done: Vec<(u32, Summary, f64)> = Vec::new();
    let mut rates = Vec::new();
    let mut threads = threads;
    loop {
        if settings.command.truncate == Truncate::Always {
            truncate()?;
        }
        if steps {
            log.print_text(&render_steps_header(threads));
        }
        log.print_text(&render_running(settings, threads));
        let spec = translate_settings(settings, profiles, threads)?;
        let names = Names::new(settings);
        let counts = Arc::clone(&names.counts);
        let mut printer = Printer::new(settings, names, (log, hdr.as_mut()), collections);
        let ended = match &spec.work {
            WorkSpec::Statements(StatementsSpec::Columns(columns)) => {
                loadstone_registry::run_columns(&spec, columns, &counts, controls, &mut printer)
            }
            _ => loadstone_registry::run(&spec, controls, &mut printer),
        };
        let end = match ended {
            Ok(end) => end,
            Err(error) => {
                log.print_text(&format!("{FAILURE}\n"));
                return Err(error);
            }
        };
        let StepResult { summary, uncertainty, failed, unanswered, missing } = printer.finish_step(&end)?;
        let explained = missing
            .filter(|_| profiles.is_empty())
            .and_then(|missing| coverage::explain_coverage(settings, options, missing));
        if let End::Failed(why) = &end {
            log.print_text(&format!("{FAILURE}\n"));
            return Err(explain_failure(explained, why));
        }
        if let Some(explained) = explained {
            print_err(&format!("warning: {explained}\n"));
        }
        let results = render_results(&summary, settings.compat);
        if settings.log.no_summary {
            log.append_text(&results);
        } else {
            log.print_text(&results);
        }
        if let (Some(graph), Some(step)) = (graph.as_mut(), &mut log.step) {
            graph.add_run(&std::mem::take(step), steps.then_some(threads));
        }
        rates.push(summary.total.success_rate());
        if let Some((earlier, before, _)) = done.last() {
            let rates = [before, &summary].map(|summary| summary.total.operation_rate());
            print_out(&render_improvement(*earlier, &rates));
        }
        done.push((threads, summary, uncertainty));
        if end != End::Done {
            print_comparison(log, settings, &done, steps);
            print_err("note: the run was interrupted; the results cover the operations before the interruption\n");
            return Ok(end.code());
        }
        if unanswered > 0 || (failed > 0 && !settings.errors.ignore) {
            log.print_text(&format!("{FAILURE}\n"));
        }
        if unanswered > 0 {
            return Err(EngineError::failed(format!(
                "no response to {}, which the results do not count",
                count_noun(unanswered, "operation")
            ))
            .hint("check the logs of the servers, and the network"));
        }
        if failed > 0 && !settings.errors.ignore {
            return Err(EngineError::failed(format!("{} failed", count_noun(failed, "operation")))
                .hint("see the messages above"));
        }
        threads = next_threads(threads);
        if !steps || threads > max_threads || (auto && is_saturated(&rates)) {
            break;
        }
        if settings.command.command.is_update() {
            log.print_text(&format!("Sleeping for {}s\n", SETTLE.as_secs()));
            if let Some(end) = controls.recv_timeout(SETTLE).ok().and_then(Control::find_end) {
                print_comparison(log, settings, &done, steps);
                return Ok(end.code());
            }
        }
    }
    print_comparison(log, settings, &done, steps);
    Ok(0)
}

/// The error of a failed run. `explained`: the reason why its reads found no row.
fn explain_failure(explained: Option<String>, why: &TrialFailure) -> EngineError {
    const HINT: &str =
        "to continue after failed operations, use -errors ignore; to retry more often, raise -errors retries=";
    match explained {
        Some(reason) => EngineError::failed(reason).hint("to continue after failed operations, use -errors ignore"),
        None => EngineError::failed(format!("the run ended: {why}")).hint(HINT),
    }
}

/// Prints the last lines of a run.
fn print_comparison(log: &mut Log, settings: &Settings, done: &[(u32, Summary, f64)], steps: bool) {
    if steps {
        log.print_text(&render_auto_table(done, settings.compat));
        let (threads, rates): (Vec<_>, Vec<_>) =
            done.iter().map(|(threads, summary, _)| (*threads, summary.total.success_rate())).unzip();
        if let Some(note) = render_saturation(&threads, &rates) {
            print_err(&note);
        }
    }
    log.print_text(&format!("{END}\n"));
}

/// Warms up each operation. The results of the warm-up do not count, and failed operations do not end it.
/// Returns the exit code if the run was interrupted.
fn warm_up(
    settings: &Settings,
    profiles: &[Profile],
    controls: &Receiver<Control>,
    log: &mut Log,
) -> Result<Option<u8>, EngineError> {
    for (label, spec) in translate_warmups(settings, profiles)? {
        log.print_text(&render_warmup(settings, &label));
        let mut warm_up = WarmUp::default();
        let end = loadstone_registry::run(&spec, controls, &mut warm_up)?;
        if warm_up.failed > 0 {
            print_err(&format!("warning: {} warm-up operations failed\n", warm_up.failed));
        }
        if let End::Failed(why) = &end {
            return Err(
                EngineError::failed(format!("the warm-up ended: {why}")).hint("to skip the warm-up, use no-warmup")
            );
        }
        if end != End::Done {
            print_err("note: the run was interrupted during the warm-up; to skip the warm-up, use no-warmup\n");
            return Ok(Some(end.code()));
        }
    }
    Ok(None)
}

/// Counts failed operations.
#[derive(Debug, Default)]
struct WarmUp {
    failed: u64,
}

impl Observer for WarmUp {
    fn report_ready(&mut self, _opened: &OpenedTrial<'_>) {}

    fn report_interval(&mut self, _moment: &Moment<'_>, _interval: &Interval<'_>) {}

    fn report_end(&mut self, closed: &Closed<'_>) {
        self.failed = closed.moment.totals.count_failed();
    }
}

/// The lines that describe the cluster and its nodes.
fn describe_cluster(cluster: &Description, settings: &Settings) -> String {
    let datacenter = if settings.compat == Compat::V3_11 { "Datatacenter" } else { "Datacenter" };
    let mut text = match settings.compat {
        Compat::V3_0 => format!("Connected to cluster: {}\n", cluster.name),
        _ => format!(
            "Connected to cluster: {}, max pending requests per connection {}, max connections per host {}\n",
            cluster.name,
            settings.mode.count_pending(),
            settings.mode.count_connections()
        ),
    };
    for node in &cluster.nodes {
        text.push_str(&format!("{datacenter}: {}; Host: /{}; Rack: {}\n", node.dc, node.address, node.rack));
    }
    text
}
