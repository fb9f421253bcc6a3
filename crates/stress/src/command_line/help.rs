//! The tool's help texts.

use std::collections::VecDeque;

use super::groups::{
    basic_forms, column_forms, error_forms, graph_forms, insert_forms, jmx_forms, log_forms, mixture_forms, mode_forms,
    node_forms, population_forms, port_forms, print_forms, rate_forms, reporting_forms, sample_forms, schema_forms,
    token_range_forms, transport_forms, user_forms,
};
use super::option::{Form, render_forms};
use super::{Group, UsageError, refuse_usage, take_group};
use crate::compat::Compat;
use crate::settings::StressCommand;

/// The commands: the name, all names in the order of `help help`, and the description.
const COMMANDS: [(&str, &str, &str); 10] = [
    ("read", "read, read", "Multiple concurrent reads - the cluster must first be populated by a write test"),
    ("write", "write, write, insert, insert", "Multiple concurrent writes against the cluster"),
    (
        "mixed",
        "mixed, mixed",
        "Interleaving of any basic commands, with configurable ratio and distribution - the cluster must first be populated by a write test",
    ),
    (
        "counter_write",
        "counter_write, counterwrite, counter_add, counteradd",
        "Multiple concurrent updates of counters.",
    ),
    (
        "counter_read",
        "counter_read, counterread, counter_get, counterget",
        "Multiple concurrent reads of counters. The cluster must first be populated by a counterwrite test.",
    ),
    ("user", "user, user", "Interleaving of user provided queries, with configurable ratio and distribution"),
    ("help", "help, help, -?, -?", "Print help for a command or option"),
    ("print", "print, print", "Inspect the output of a distribution definition"),
    ("legacy", "legacy, legacy", "Legacy support mode"),
    ("version", "version, version", "Print the version of cassandra stress"),
];

/// Finds a command, except `user`, by its name or alias.
pub(super) fn find_command(name: &str) -> Option<StressCommand> {
    let (first, ..) = COMMANDS.iter().find(|(_, names, _)| names.split(", ").any(|known| known == name))?;
    StressCommand::ALL.into_iter().find(|command| *command != StressCommand::User && command.name() == *first)
}

fn options_of(compat: Compat) -> Vec<(&'static str, &'static str)> {
    let mode = if compat <= Compat::V3_11 { "Thrift or CQL with options" } else { "CQL mode options" };
    let mut options = vec![
        ("pop", "Population distribution and intra-partition visit order"),
        ("insert", "Insert specific options relating to various methods for batching and splitting partition updates"),
        (
            "col",
            "Column details such as size and count distribution, data generator, names, comparator and if super columns should be used",
        ),
        ("rate", "Thread count, rate limit or automatic mode (default is auto)"),
        ("mode", mode),
        ("errors", "How to handle errors when encountered during stress"),
        ("sample", "Specify the number of samples to collect for measuring latency"),
        ("schema", "Replication settings, compression, compaction, etc."),
        ("node", "Nodes to connect to"),
        ("log", "Where to log progress to, and the interval at which to do it"),
        ("transport", "Custom transport factories"),
        ("port", "The port to connect to cassandra nodes on"),
        ("jmx", "JMX credentials"),
        ("sendto", "Specify a stress server to send this command to"),
        ("graph", "Graph recorded metrics"),
        ("tokenrange", "Token range settings"),
        ("credentials-file", "Credentials file for CQL, JMX and transport"),
        ("reporting", "Frequency of printing statistics and header for stress output"),
    ];
    options.retain(|(name, _)| match *name {
        "sample" => compat == Compat::V3_0,
        "tokenrange" => compat >= Compat::V3_11,
        "sendto" => compat <= Compat::V4,
        "jmx" | "credentials-file" | "reporting" => compat == Compat::V5,
        _ => true,
    });
    options
}

fn has_command(name: &str, compat: Compat) -> bool {
    match name {
        "version" => compat >= Compat::V3_11,
        "legacy" => compat <= Compat::V4,
        _ => true,
    }
}

/// The general help, which the tool prints after most messages.
pub(super) fn render_general(compat: Compat) -> String {
    let mut text = String::from(
        "Usage:      cassandra-stress <command> [options]\nHelp usage: cassandra-stress help <command>\n\n---Commands---\n",
    );
    for (name, _, description) in COMMANDS.iter().filter(|(name, ..)| has_command(name, compat)) {
        text.push_str(&format!("{name:<20} : {description}\n"));
    }
    text.push_str("\n---Options---\n");
    for (name, description) in options_of(compat) {
        text.push_str(&format!("-{name:<20} : {description}\n"));
    }
    text
}

/// The forms of an option group.
pub(super) fn forms_of(group: &str, compat: Compat) -> Option<Vec<Form>> {
    Some(match group {
        "-pop" => population_forms("N"),
        "-insert" => insert_forms(),
        "-col" => column_forms(),
        "-rate" => rate_forms(compat),
        "-mode" => mode_forms(compat),
        "-errors" => error_forms(),
        "-schema" => schema_forms(),
        "-node" => node_forms(),
        "-log" => log_forms(),
        "-transport" => transport_forms(compat),
        "-port" => port_forms(compat),
        "-graph" => graph_forms(),
        "-tokenrange" => token_range_forms(),
        "-sample" if compat == Compat::V3_0 => sample_forms(),
        "-jmx" if compat == Compat::V5 => jmx_forms(),
        "-reporting" if compat == Compat::V5 => reporting_forms(),
        _ => return None,
    })
}

pub(super) const SEND_TO_HELP: &str =
    "Usage: -sendto <host>\n\nSpecify a host running the stress server to send this stress command to\n";

const CREDENTIALS_HELP: &str = "\
Usage: -credentials-file <file> 
File is supposed to be a standard property file with 'cql.username', 'cql.password', 'jmx.username', 'jmx.password', 'transport.keystore.password', and 'transport.truststore.password' as keys. The values for these keys will be overriden by their command-line counterparts when specified.
";

/// The help for a command or a group; `None` if there is no help for it.
fn render_topic(topic: &str, compat: Compat) -> Option<String> {
    let topic = topic.to_lowercase();
    if let Some(command) = find_command(&topic) {
        return Some(match command {
            StressCommand::Mixed => render_forms("mixed", &mixture_forms(compat)),
            command => render_forms(command.name(), &basic_forms(compat, true)),
        });
    }
    match topic.as_str() {
        "user" => Some(render_forms("user", &user_forms(compat))),
        "print" => Some(render_forms("print", &print_forms())),
        "help" | "-?" => Some(render_names(compat)),
        // For these topics, the tool exits with a stack trace.
        "version" | "version_json" => Some("Usage: version\n".to_owned()),
        "-sendto" | "-send-to" if compat <= Compat::V4 => Some(SEND_TO_HELP.to_owned()),
        "-credentials-file" if compat == Compat::V5 => Some(CREDENTIALS_HELP.to_owned()),
        group => forms_of(group, compat).map(|forms| render_forms(group, &forms)),
    }
}

fn render_names(compat: Compat) -> String {
    let mut text = String::from("Usage: ./bin/cassandra-stress help <command|option>\nCommands:\n");
    for (_, names, _) in COMMANDS.iter().filter(|(name, ..)| has_command(name, compat)) {
        text.push_str(&format!("    {names}\n"));
    }
    text.push_str("Options:\n");
    for (name, _) in options_of(compat) {
        let extra = match name {
            "sendto" => ", -send-to",
            "graph" => ", -graph",
            _ => "",
        };
        text.push_str(&format!("    -{name}{extra}\n"));
    }
    text
}

/// The answer to `help …`, `-? …` or `COMMAND -?`.
pub(super) fn answer_help(groups: &mut VecDeque<Group>, compat: Compat) -> Result<Option<String>, UsageError> {
    let Some(parameters) = take_group(groups, "-?").or_else(|| take_group(groups, "help")) else { return Ok(None) };
    let topic = match parameters.as_slice() {
        [] if groups.is_empty() => return Ok(Some(render_general(compat))),
        [] => match groups.make_contiguous() {
            [Group { name, parameters }] if parameters.is_empty() => name.clone(),
            _ => String::new(),
        },
        [topic] => topic.clone(),
        _ => String::new(),
    };
    if topic.is_empty() {
        return Err(refuse_usage("Invalid command/option provided to help", compat));
    }
    render_topic(&topic, compat).map(Some).ok_or_else(|| {
        let general = render_general(compat);
        refuse_usage(format!("{general}Invalid command or option provided to command help"), compat)
    })
}
