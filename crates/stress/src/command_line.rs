//! The command line of cassandra-stress.
//!
//! Differences from the tool: a count above 2⁶³ − 1 is refused instead of wrapping around; `batchtype=` and
//! `comparator=` ignore case; 3.0 accepts the options of 3.11 and checks them in the order of 3.11; passwords are not
//! printed; the version text also states Loadstone's version. Hints are separate from the tool's text.
//!
//! Sources: Cassandra's `StressSettings.java` and `SettingsMisc.java`.

mod build;
mod check;
mod groups;
mod help;
mod option;
mod pattern;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;

use crate::compat::Compat;
use crate::distribution::{Distribution, parse_spec};
use crate::number::format_decimals;
use crate::settings::Settings;

/// The request that a command line makes.
#[derive(Clone, Debug, PartialEq)]
pub enum CommandLineRequest {
    /// Run a workload.
    Run(Box<Settings>),
    /// Print text on standard output; the exit status is 0.
    Print(String),
}

/// A command line that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct UsageError {
    /// The tool's text for standard output, with a line end. It contains the help of the tool or of the group.
    pub text: String,
    /// The next step, for standard error.
    pub hint: Option<String>,
    /// The tool's exit status.
    pub exit: u8,
}

impl UsageError {
    /// The line of the text that states the problem.
    #[must_use]
    pub fn message(&self) -> &str {
        let is_message = |line: &&str| !line.is_empty() && !line.starts_with(' ') && !line.starts_with("Usage");
        match self.text.lines().next().filter(is_message) {
            Some(line) if !line.starts_with("---") => line,
            _ => self.text.lines().rfind(is_message).unwrap_or_default(),
        }
    }
}

/// A message of the tool, followed by the general help.
fn refuse_usage(message: impl fmt::Display, compat: Compat) -> UsageError {
    UsageError { text: format!("{message}\n{}", help::render_general(compat)), hint: None, exit: 1 }
}

impl UsageError {
    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A group of options: its name in lower case and its parameters.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    parameters: Vec<String>,
}

/// Parses the arguments of cassandra-stress, without the name of the program.
///
/// Arguments are joined and split again, so the shell's quoting is irrelevant, and no value can contain a space.
/// `-compat 3.0|3.11|4|5` chooses the generation (default 4). `--explain` and `--print-spec` are options of this front
/// end.
///
/// # Errors
/// The tool's message and exit status. Arguments with which the tool exits with a stack trace, such as a reversed
/// range, are also refused. Unsupported options are refused with a hint that names the replacement.
pub fn parse(arguments: &[impl AsRef<str>]) -> Result<CommandLineRequest, UsageError> {
    parse_as(arguments, Compat::default())
}

/// Parses like [`parse`], with the given default generation.
///
/// # Errors
/// As for [`parse`].
pub fn parse_as(arguments: &[impl AsRef<str>], default: Compat) -> Result<CommandLineRequest, UsageError> {
    parse_arguments(arguments, default).map_err(|error| {
        let hint = error.hint.clone().unwrap_or_else(|| find_hint(error.message()).to_owned());
        error.with_hint(hint)
    })
}

/// The hint for a message of the tool.
fn find_hint(message: &str) -> &'static str {
    const DISTRIBUTIONS: &str = "write fixed(N), uniform(A..B), gaussian(A..B), exp(A..B), extreme(A..B,SHAPE), \
                                 qextreme(A..B,SHAPE,PARTS) or seq(A..B), with A below B";
    const HINTS: [(&str, &str); 9] = [
        ("Illegal distribution", DISTRIBUTIONS),
        ("Invalid parameter list for", DISTRIBUTIONS),
        ("cannot draw from", DISTRIBUTIONS),
        ("For input string:", "use a smaller number"),
        ("Out of range:", "use a smaller number"),
        ("than once", "write each option once"),
        ("defined multiple times", "write each option once"),
        ("can't have both", "omit one of the two"),
        ("Invalid replication strategy", "write SimpleStrategy or NetworkTopologyStrategy"),
    ];
    HINTS.iter().find(|(part, _)| message.contains(part)).map_or(
        "help lists the commands and option groups; help -rate, for example, lists the options of a group",
        |(_, hint)| hint,
    )
}

fn parse_arguments(arguments: &[impl AsRef<str>], default: Compat) -> Result<CommandLineRequest, UsageError> {
    let mut tokens = repair_arguments(arguments);
    let explain = take_flag(&mut tokens, "--explain");
    let print_spec = take_flag(&mut tokens, "--print-spec");
    let mut groups = split_groups(&tokens).map_err(|message| refuse_usage(message, default))?;
    let compat = take_compat(&mut groups, default)?;
    if let Some(text) = answer_special(&mut groups, compat)? {
        return Ok(CommandLineRequest::Print(text));
    }
    let mut settings = build::build_settings(groups, compat)?;
    settings.front_end.explain = explain;
    settings.front_end.print_spec = print_spec;
    Ok(CommandLineRequest::Run(Box::new(settings)))
}

/// Joins the arguments with spaces, deletes the spaces around `,`, `=` and `(` and before `)`, and splits the result at
/// the remaining spaces.
fn repair_arguments(arguments: &[impl AsRef<str>]) -> Vec<String> {
    let joined = arguments.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" ");
    // The characters that `\s` matches in Java's regular expressions.
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
    let mut tight = String::with_capacity(joined.len());
    let mut pending = String::new();
    for c in joined.chars() {
        if is_space(c) {
            pending.push(c);
            continue;
        }
        if !matches!(c, ',' | '=' | '(' | ')') && !tight.ends_with([',', '=', '(']) {
            tight.push_str(&pending);
        }
        pending.clear();
        tight.push(c);
    }
    if !tight.ends_with([',', '=', '(']) {
        tight.push_str(&pending);
    }
    let mut tokens: Vec<String> = Vec::new();
    for (place, token) in tight.split(' ').enumerate() {
        // Java keeps an empty first part, but drops empty parts between spaces.
        if !token.is_empty() || place == 0 {
            tokens.push(token.to_owned());
        }
    }
    tokens
}

/// Removes an option of this front end, which may follow any argument.
fn take_flag(tokens: &mut Vec<String>, flag: &str) -> bool {
    let count = tokens.len();
    tokens.retain(|token| !token.eq_ignore_ascii_case(flag));
    tokens.len() < count
}

/// Splits tokens into groups: the first token is a command, and each later token that starts with `-` begins a group.
fn split_groups(tokens: &[String]) -> Result<VecDeque<Group>, String> {
    let mut groups: VecDeque<Group> = VecDeque::new();
    for token in tokens {
        match groups.back_mut() {
            Some(group) if !token.starts_with('-') => group.parameters.push(token.clone()),
            _ => groups.push_back(Group { name: token.to_lowercase(), parameters: Vec::new() }),
        }
    }
    for (place, group) in groups.iter().enumerate() {
        if groups.iter().take(place).any(|earlier| earlier.name == group.name) {
            return Err(format!(
                "{} is defined multiple times. Each option/command can be specified at most once.",
                group.name
            ));
        }
    }
    Ok(groups)
}

fn take_group(groups: &mut VecDeque<Group>, name: &str) -> Option<Vec<String>> {
    let place = groups.iter().position(|group| group.name == name)?;
    groups.remove(place).map(|group| group.parameters)
}

fn take_compat(groups: &mut VecDeque<Group>, default: Compat) -> Result<Compat, UsageError> {
    let Some(parameters) = take_group(groups, "-compat") else { return Ok(default) };
    let [name] = parameters.as_slice() else {
        return Err(refuse_usage("-compat must be 3.0, 3.11, 4 or 5", default));
    };
    name.parse().map_err(|message: String| refuse_usage(message, default))
}

/// Answers commands that do not start a run.
fn answer_special(groups: &mut VecDeque<Group>, compat: Compat) -> Result<Option<String>, UsageError> {
    if groups.iter().any(|group| group.name == "legacy") {
        return Err(refuse_usage(
            "legacy is not supported: it translates options of 2.0 and then always fails",
            compat,
        )
        .with_hint("use the current syntax, for example: write n=1000000 -rate threads=50"));
    }
    if let Some(text) = help::answer_help(groups, compat)? {
        return Ok(Some(text));
    }
    let Some(command) = groups.front() else { return Ok(None) };
    match command.name.as_str() {
        "print" => print_distribution(&command.parameters, compat).map(Some),
        "version" => Ok(Some(format!("Version: {}\n", version_of(compat)))),
        "version_json" => Ok(Some(format!(
            "{{\"cassandra-stress\":{{\"version\":\"{}\",\"compat\":\"{}\"}},\"loadstone\":{{\"version\":\"{}\"}}}}\n",
            version_of(compat),
            compat.name(),
            env!("CARGO_PKG_VERSION")
        ))),
        _ => Ok(None),
    }
}

/// The versions of the reproduced tool and of Loadstone.
fn version_of(compat: Compat) -> String {
    let tool = match compat {
        Compat::V3_0 => "3.3",
        Compat::V3_11 => "3.11.5",
        Compat::V4 => "4.0-alpha2",
        Compat::V5 => "5.0",
    };
    format!("{tool} (Loadstone {})", env!("CARGO_PKG_VERSION"))
}

fn print_distribution(parameters: &[String], compat: Compat) -> Result<String, UsageError> {
    let forms = groups::print_forms();
    let Some(form) = option::select_form(parameters, forms.clone()).map_err(|message| refuse_usage(message, compat))?
    else {
        return Err(UsageError {
            text: format!(
                "{}Invalid print options provided, see output for valid options\n",
                option::render_forms("print", &forms)
            ),
            hint: None,
            exit: 1,
        });
    };
    let spec = parse_spec(form.text("dist=")).map_err(|message| refuse_usage(message, compat))?;
    let distribution = spec.sampler().map_err(|message| refuse_usage(message, compat))?;
    Ok(render_distribution(&distribution))
}

/// Renders a header and twelve quantiles: share of the samples, value, share of the maximum value.
///
/// Source: `SettingsMisc.printDistribution`.
fn render_distribution(distribution: &Distribution) -> String {
    let mut text = String::from("% of samples    Range       % of total\n");
    let hundredth = distribution.quantile(1.0) as f64 / 100.0;
    for p in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0] {
        let value = distribution.quantile(p);
        text.push_str(&format!(
            "{:<16}{value:<12}{:>12}\n",
            format_decimals(p * 100.0, 1),
            format_decimals(value as f64 / hundredth, 1)
        ));
    }
    text
}

/// The settings of a run, for the tests of all modules.
#[cfg(test)]
pub(crate) fn parse_settings(line: &str) -> Settings {
    match parse(&line.split(' ').collect::<Vec<_>>()).unwrap() {
        CommandLineRequest::Run(settings) => *settings,
        CommandLineRequest::Print(text) => panic!("{text}"),
    }
}
