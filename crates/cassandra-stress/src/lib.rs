//! The cassandra-stress front end: a drop-in replacement for
//! `cassandra-stress write|read|mixed|counter_write|counter_read|user …`.

mod coverage;
mod garbage;
mod graph;
mod log;
mod printer;
mod run;
mod schema;
mod translate;
mod user;

use std::sync::mpsc::Receiver;

use loadstone_measure::control::Control;
use loadstone_stress::command_line::{CommandLineRequest, parse};
use loadstone_stress::explain::{explain, explain_profiles};
use loadstone_stress::profile::Profile;
use loadstone_stress::settings::{NodeSettings, Settings};
use loadstone_stress::statements::{drop_compact_storage, schema_statements};
use loadstone_wire::error::{EngineError, ErrorKind, shorten};
use loadstone_wire::output::{out_json, print_err, print_out};
use loadstone_wire::spec::{StatementsSpec, WorkSpec};

/// Runs the front end. Returns the exit code. Errors in the command line are printed to standard output, as in the
/// tool.
pub fn main(arguments: &[String], controls: &Receiver<Control>) -> Result<u8, EngineError> {
    let mut settings = match parse(arguments) {
        Ok(CommandLineRequest::Print(text)) => {
            print_out(&text);
            return Ok(0);
        }
        Ok(CommandLineRequest::Run(settings)) => settings,
        Err(error) => {
            print_out(&error.text);
            if let Some(hint) = &error.hint {
                print_err(&format!("hint: {}\n", shorten(hint)));
            }
            return Ok(error.exit);
        }
    };
    read_node_file(&mut settings).map_err(name_options)?;
    read_credentials(&mut settings).map_err(name_options)?;
    let profiles = user::read_profiles(&settings).map_err(name_options)?;
    for name in profiles.iter().flat_map(Profile::list_hidden_queries) {
        let warning = format!("the query {name} of the profile is not used, as in the tool: ops({name}=) is built in");
        settings.warnings.push(warning);
    }
    if let Some(user) = &settings.command.user {
        // The spec is checked before any table is created.
        user::columns_spec(&settings, &profiles, user).map_err(name_options)?;
    }
    if settings.front_end.explain {
        let text = match &settings.command.user {
            Some(user) => {
                let mut spec = user::columns_spec(&settings, &profiles, user).map_err(name_options)?;
                spec.definitions = profiles.iter().flat_map(Profile::definitions).collect();
                explain_profiles(&settings, &spec)
            }
            None => explain(&settings),
        };
        print_out(&text);
        return Ok(0);
    }
    for warning in &settings.warnings {
        print_err(&format!("warning: {}\n", shorten(warning)));
    }
    if settings.front_end.print_spec {
        let mut spec = translate::translate_settings(&settings, &profiles, translate::first_threads(&settings))
            .map_err(name_options)?;
        match &mut spec.work {
            WorkSpec::Statements(StatementsSpec::Stress(work)) if settings.command.command.creates_schema() => {
                work.definitions = schema_statements(&settings).iter().map(|text| drop_compact_storage(text)).collect();
            }
            WorkSpec::Statements(StatementsSpec::Columns(work)) => {
                work.definitions = profiles.iter().flat_map(Profile::definitions).collect();
            }
            _ => {}
        }
        out_json("the spec", &spec)?;
        return Ok(0);
    }
    run::run_command(&settings, &profiles, arguments, controls).map_err(name_options)
}

/// Maps text in hints that names store properties to text that names the options of this command line.
const OPTIONS: [(&str, &str); 12] = [
    ("set hosts and port", "set -node and -port native="),
    ("cassandra.username and cassandra.password", "-mode native cql3 user= and password="),
    ("cassandra.localdc", "-node datacenter="),
    ("cassandra.whitelist", "-node whitelist"),
    ("cassandra.protocol=", "-mode native cql3 protocolVersion="),
    ("cassandra.useSSL=true", "-transport truststore="),
    ("cassandra.tls.ca", "-transport truststore="),
    ("cassandra.tls.certificate and cassandra.tls.key", "-transport keystore="),
    ("set cassandra.tls.name to a name in the certificate", "set -node to names in the certificate"),
    ("cassandra.tls.verify=ca", "-transport hostname-verification=false"),
    ("run fewer clients, or let idle clients spin: -p spin.sleep=true", "or run fewer clients"),
    ("use more executors (-p executors=N)", "use several processes (each with its segment=k/n of -pop seq=)"),
];

/// Replaces the properties in a hint with options of this command line.
fn rename_properties(hint: &str) -> String {
    OPTIONS.iter().fold(hint.to_owned(), |hint, (property, option)| hint.replace(property, option))
}

/// Replaces the properties in an error's hint with options of this command line, and sets the tool's exit status.
fn name_options(mut error: EngineError) -> EngineError {
    // The tool has no other exit status for failures.
    error.kind = ErrorKind::Failed;
    error.hint = error.hint.as_deref().map(rename_properties);
    error
}

/// Reads user and password from `-credentials-file`, unless `-mode` sets them. The other entries are for JMX and for
/// Java's key stores.
fn read_credentials(settings: &mut Settings) -> Result<(), EngineError> {
    let Some(path) = &settings.extras.credentials_file else { return Ok(()) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        EngineError::usage(format!("cannot read {path}: {error}"))
            .hint("-credentials-file names a file with cql.username= and cql.password=")
    })?;
    let mode = &mut settings.mode;
    for (key, value) in text.lines().filter_map(|line| line.split_once(['=', ':'])) {
        let place = match key.trim() {
            "cql.username" => &mut mode.user,
            "cql.password" => &mut mode.password,
            _ => continue,
        };
        place.get_or_insert_with(|| value.trim().to_owned());
    }
    Ok(())
}

/// Reads the contact points of `-node file=`.
fn read_node_file(settings: &mut Settings) -> Result<(), EngineError> {
    let Some(path) = &settings.node.file else { return Ok(()) };
    let text = std::fs::read_to_string(path).map_err(|error| {
        EngineError::usage(format!("cannot read {path}: {error}"))
            .hint("-node file= names a file with one host per line")
    })?;
    settings.node.nodes = NodeSettings::read_list(&text);
    if settings.node.nodes.is_empty() {
        return Err(EngineError::usage(format!("{path} names no host")).hint("write one host per line"));
    }
    Ok(())
}
