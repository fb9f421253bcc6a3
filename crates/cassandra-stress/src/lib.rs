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
    // The run is checked before any table is created.
    translate::check_run(&settings, &profiles).map_err(name_options)?;
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

/// Maps text in messages and hints that names store properties to text that names the options of this command line.
const OPTIONS: [(&str, &str); 24] = [
    ("set hosts and port", "set -node and -port native="),
    ("set the port with port=9042", "set the port with -port native="),
    ("cassandra.username and cassandra.password", "-mode native cql3 user= and password="),
    ("cassandra.username", "-mode native cql3 user="),
    ("cassandra.password", "-mode native cql3 password="),
    ("cassandra.localdc", "-node datacenter="),
    ("cassandra.whitelist", "-node whitelist"),
    ("cassandra.keyspace", "-schema keyspace="),
    ("cassandra.readconsistencylevel", "cl="),
    ("cassandra.writeconsistencylevel", "cl="),
    ("cassandra.readtimeoutmillis", "-mode native cql3 requestTimeout="),
    ("cassandra.maxconnections", "-mode native cql3 connectionsPerHost="),
    ("cassandra.coreconnections", "-mode native cql3 connectionsPerHost="),
    ("cassandra.protocol", "-mode native cql3 protocolVersion="),
    ("cassandra.compression", "-mode native cql3 compression="),
    ("cassandra.useSSL=true", "-transport truststore="),
    ("cassandra.useSSL", "-transport truststore="),
    ("cassandra.tls.certificate and cassandra.tls.key", "-transport keystore="),
    ("set cassandra.tls.name to a name in the certificate", "set -node to names in the certificate"),
    ("cassandra.tls.verify=ca", "-transport hostname-verification=false"),
    ("cassandra.tls.ca", "-transport truststore="),
    ("run fewer clients, or let idle clients spin: -p spin.sleep=true", "or run fewer clients"),
    ("several load generators with a segment each", "several processes (each with its segment=k/n of -pop seq=)"),
    ("use more executors (-p executors=N)", "use several processes (each with its segment=k/n of -pop seq=)"),
];

/// Replaces the properties in a message or a hint with options of this command line.
fn rename_properties(text: &str) -> String {
    OPTIONS.iter().fold(text.to_owned(), |text, (property, option)| {
        // The name of an option ends with `=`, and a value may follow the property.
        text.replace(&format!("{property}="), option).replace(property, option)
    })
}

/// Replaces the properties in an error with options of this command line, and sets the tool's exit status.
fn name_options(mut error: EngineError) -> EngineError {
    // The tool has no other exit status for failures.
    error.kind = ErrorKind::Failed;
    error.message = rename_properties(&error.message);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_settings(line: &str) -> Settings {
        match parse(&line.split_whitespace().collect::<Vec<_>>()) {
            Ok(CommandLineRequest::Run(settings)) => *settings,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn messages_name_options() {
        let settings = parse_settings(
            "read n=1 -mode native cql3 user=a password=b compression=lz4 protocolVersion=4 requestTimeout=9 \
             connectionsPerHost=2 -node datacenter=dc1 whitelist a",
        );
        let spec = translate::translate_settings(&settings, &[], 1).unwrap();
        let properties = spec.store.properties.keys().filter(|name| name.starts_with("cassandra."));
        for name in properties.map(String::as_str).chain(["cassandra.useSSL", "cassandra.tls.ca"]) {
            let text = rename_properties(&format!("omit {name}, or set {name}=4"));
            assert!(!text.contains("cassandra.") && !text.contains("=="), "{text}");
        }
    }

    #[test]
    fn refusals_name_options() {
        for (line, message) in [
            ("write n=1 -rate threads=0", "-rate threads= must be at least 1, got 0"),
            ("write n=1 -rate threads=2147483647", "-rate threads= must be at most 1000000, got 2147483647"),
            ("write n=0 keysize=0", "keysize=: must be from 1 to 65535, got 0"),
            ("write n=1 -col timestamp=9999999999999999999", "-col timestamp=9999999999999999999 is not a number"),
            // In 64 bits, this number of days would be less than a day.
            ("write duration=213503982334602d", "the length of the run in seconds must be between 0 and"),
        ] {
            let error = name_options(translate::check_run(&parse_settings(line), &[]).unwrap_err());
            assert!(error.message.starts_with(message), "{line}: {}", error.message);
            assert!(error.hint.is_some(), "{line}");
        }
    }

    #[test]
    fn brackets_are_not_part_of_addresses() {
        let settings = parse_settings("write n=1 -node [::1]:9043,[::2],::3,localhost");
        let properties = translate::properties(&settings, &[]).unwrap();
        assert_eq!((properties["hosts"].as_str(), properties["port"].as_str()), ("::1,::2,::3,localhost", "9043"));
    }
}
