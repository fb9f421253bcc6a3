//! Builds settings from groups of options, in the tool's order, so that the first error reported is the same as in the
//! tool.

mod command;
mod connection;

use std::collections::VecDeque;

use super::check::check_settings;
use super::groups::{
    column_forms, error_forms, insert_forms, log_forms, mixture_forms, population_forms, rate_forms, token_range_forms,
    user_forms,
};
use super::help::SEND_TO_HELP;
use super::option::{Form, list_options, render_forms, select_form};
use super::{Group, UsageError, refuse_usage, take_group};
use crate::compat::Compat;
use crate::distribution::{RatioSpec, Spec, parse_count, parse_integer, split_range};
use crate::population::{Selection, Share};
use crate::settings::{
    ColumnSettings, CommandSettings, DelayPolicy, ErrorSettings, FrontEndSettings, InsertSettings, Limit, LogLevel,
    LogSettings, NamedSpec, Order, PopulationSettings, RateSettings, Settings, TokenRangeSettings, UserSettings,
};

/// Maximum number of columns, more than any table has. The limit exists because a list of all column names is created.
const COLUMNS_MAX: i64 = 65_535;

/// The beginning of the message about a parameter that no form accepts.
const INVALID_PARAMETER: &str = "Invalid parameter ";

type Built<T> = Result<T, UsageError>;

struct SettingsBuilder {
    groups: VecDeque<Group>,
    compat: Compat,
    warnings: Vec<String>,
}

pub(super) fn build_settings(groups: VecDeque<Group>, compat: Compat) -> Built<Settings> {
    let mut builder = SettingsBuilder { groups, compat, warnings: Vec::new() };
    let command = builder.command()?;
    builder.refuse_send_to()?;
    let port = builder.port()?;
    let rate = builder.rate(&command)?;
    let population = builder.population(&command)?;
    let token_range = builder.token_range()?;
    let insert = builder.insert()?;
    let columns = builder.columns()?;
    let errors = builder.errors()?;
    let log = builder.log()?;
    let mode = builder.mode()?;
    let node = builder.node()?;
    let schema = builder.schema(command.command)?;
    let transport = builder.transport()?;
    let extras = builder.generation_5()?;
    let graph = builder.graph(command.command)?;
    builder.refuse_rest()?;
    let mut settings = Settings {
        compat,
        command,
        rate,
        population,
        insert,
        columns,
        errors,
        log,
        mode,
        node,
        schema,
        transport,
        port,
        graph,
        token_range,
        extras,
        front_end: FrontEndSettings::default(),
        warnings: builder.warnings,
    };
    check_settings(&mut settings).map_err(|(message, hint)| refuse_usage(message, compat).with_hint(hint))?;
    Ok(settings)
}

/// Whether a command accepts this parameter.
fn is_of_command(parameter: &str, compat: Compat) -> bool {
    let forms = [mixture_forms(compat), user_forms(compat)].concat();
    !select_form(&[parameter.to_owned()], forms).is_err_and(|message| message.starts_with(INVALID_PARAMETER))
}

impl SettingsBuilder {
    fn refuse_group(&self, message: impl std::fmt::Display) -> UsageError {
        refuse_usage(message, self.compat)
    }

    /// The form of a group that the parameters match; without parameters, the first form without required options.
    fn select_form(&self, name: &str, label: &str, forms: &[Form], parameters: &[String]) -> Built<Form> {
        let hint = format!("{name} accepts {}", list_options(forms));
        match select_form(parameters, forms.to_vec()) {
            Ok(Some(form)) => Ok(form),
            Ok(None) => Err(UsageError {
                text: format!(
                    "{}Invalid {label} options provided, see output for valid options\n",
                    render_forms(name, forms)
                ),
                hint: Some(hint),
                exit: 1,
            }),
            Err(message) => {
                let error = self.refuse_group(&message);
                let Some(parameter) = message.strip_prefix(INVALID_PARAMETER) else {
                    let is_cause = |parameter: &&String| {
                        select_form(&[(*parameter).clone()], forms.to_vec()).is_err_and(|own| own == message)
                    };
                    return Err(match parameters.iter().find(is_cause) {
                        Some(parameter) => error.with_hint(format!("correct {parameter}: help {name} describes it")),
                        None => error,
                    });
                };
                Err(error.with_hint(if name.starts_with('-') && is_of_command(parameter, self.compat) {
                    format!("{parameter} belongs to the command: write it before the first option group")
                } else {
                    hint
                }))
            }
        }
    }

    /// The form of a group without alternatives. If the group is missing, all values are defaults.
    fn group(&mut self, name: &str, forms: &[Form]) -> Built<Form> {
        let parameters = take_group(&mut self.groups, name).unwrap_or_default();
        self.select_form(name, name, forms, &parameters)
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> Built<T> {
        parse_integer(text).map_err(|message| self.refuse_group(message))
    }

    fn count(&self, text: &str) -> Built<i64> {
        parse_count(text).map_err(|message| self.refuse_group(message))
    }

    fn spec(&self, form: &Form, prefix: &str) -> Built<Spec> {
        form.spec(prefix).map_err(|message| self.refuse_group(message))
    }

    fn parse_named(&self, form: &Form, prefix: &str) -> Built<NamedSpec> {
        Ok(NamedSpec { text: form.text(prefix).to_owned(), spec: self.spec(form, prefix)? })
    }

    fn optional_spec(&self, form: &Form, prefix: &str) -> Built<Option<Spec>> {
        form.optional_spec(prefix).map_err(|message| self.refuse_group(message))
    }

    fn optional_ratio(&self, form: &Form, prefix: &str) -> Built<Option<RatioSpec>> {
        form.optional_ratio(prefix).map_err(|message| self.refuse_group(message))
    }

    fn refuse_send_to(&mut self) -> Built<()> {
        let parameters = take_group(&mut self.groups, "-send-to").or_else(|| take_group(&mut self.groups, "-sendto"));
        let Some(parameters) = parameters else { return Ok(()) };
        if parameters.len() != 1 {
            let text = format!("{SEND_TO_HELP}Invalid -sendto specifier: [{}]\n", parameters.join(", "));
            return Err(UsageError { text, hint: None, exit: 1 });
        }
        Err(self
            .refuse_group(
                "-sendto is not supported: stressd speaks Java serialisation (removed in 5.0, CASSANDRA-17535)",
            )
            .with_hint("run the command on each host, with -pop seq=A..B segment=k/n for a share of the partitions"))
    }

    fn rate(&mut self, command: &CommandSettings) -> Built<RateSettings> {
        let Some(parameters) = take_group(&mut self.groups, "-rate") else {
            return Ok(if command.command.creates_schema() && command.length.count() > 0 {
                RateSettings::Threads { threads: 200, limit: Limit::None }
            } else {
                RateSettings::Steps { auto: true, min_threads: 4, max_threads: 1_000 }
            });
        };
        let form = self.select_form("-rate", "-rate", &rate_forms(self.compat), &parameters)?;
        if !form.has_option("threads=") {
            return Ok(RateSettings::Steps {
                auto: form.is_set("auto"),
                min_threads: self.number::<i32>(form.text("threads>="))? as u32,
                max_threads: self.number::<i32>(form.text("threads<="))? as u32,
            });
        }
        let threads = self.number::<i32>(form.text("threads="))? as u32;
        let rate = |prefix: &str| match form.value(prefix) {
            Some(text) => self.number::<i32>(&text[..text.len() - 2]).map(|rate| rate as u32),
            None => Ok(0),
        };
        let (limit, throttle, fixed) = (rate("limit=")?, rate("throttle=")?, rate("fixed=")?);
        if throttle != 0 && fixed != 0 {
            return Err(self.refuse_group("can't have both fixed and throttle set, choose one."));
        }
        let limit = match (fixed, throttle.max(limit)) {
            (0, 0) => Limit::None,
            (0, throttle) => Limit::Throttle(throttle),
            (fixed, _) => Limit::Fixed(fixed),
        };
        Ok(RateSettings::Threads { threads, limit })
    }

    fn population(&mut self, command: &CommandSettings) -> Built<PopulationSettings> {
        let count = command.length.count();
        let limit = if count <= 0 { 1_000_000 } else { count };
        let Some(parameters) = take_group(&mut self.groups, "-pop") else {
            let is_load = command.user.as_ref().is_some_and(UserSettings::is_load);
            let selection = if command.command.creates_schema() || is_load {
                Selection::Sequence { first: 1, last: limit, wrap: true, read_lookback: None }
            } else {
                let spec = crate::distribution::parse_spec(&format!("gaussian(1..{limit})"));
                Selection::Distribution(spec.map_err(|message| self.refuse_group(message))?)
            };
            return Ok(PopulationSettings { selection, order: Order::Arbitrary, share: None });
        };
        // The help states this default as N, so messages must not print it as a number.
        let forms = population_forms(&limit.to_string());
        let form = self.select_form("-pop", "-pop", &forms, &parameters).map_err(|mut error| {
            let (numbers, letters) = (population_forms(&limit.to_string()), population_forms("N"));
            error.text = error.text.replace(&render_forms("-pop", &numbers), &render_forms("-pop", &letters));
            error
        })?;
        let order = match form.value("contents=").map(str::to_ascii_lowercase).as_deref() {
            Some("sorted") => Order::Sorted,
            Some(_) => Order::Shuffled,
            None => Order::Arbitrary,
        };
        let selection = if form.has_option("seq=") {
            let (first, last) = split_range(form.text("seq=")).unwrap_or_default();
            Selection::Sequence {
                first: self.count(first)?,
                last: self.count(last)?,
                wrap: !form.is_set("no-wrap"),
                read_lookback: self.optional_spec(&form, "read-lookback=")?,
            }
        } else {
            Selection::Distribution(self.spec(&form, "dist=")?)
        };
        let share = match form.value("segment=").and_then(|share| share.split_once('/')) {
            Some((part, parts)) => Some(Share { part: self.number(part)?, parts: self.number(parts)? }),
            None => None,
        };
        if share.is_some() && !form.is_set("seq=") && !form.is_set("dist=") {
            return Err(self
                .refuse_group("segment= requires seq=: it selects a share of that sequence")
                .with_hint("write -pop seq=A..B segment=k/n"));
        }
        Ok(PopulationSettings { selection, order, share })
    }

    fn token_range(&mut self) -> Built<TokenRangeSettings> {
        let form = self.group("-tokenrange", &token_range_forms())?;
        Ok(TokenRangeSettings {
            wrap: form.is_set("wrap"),
            split_factor: self.split_factor(form.text("split-factor="))?,
        })
    }

    fn split_factor(&self, text: &str) -> Built<u32> {
        let factor = self.count(text)?;
        i32::try_from(factor)
            .map(|factor| factor as u32)
            .map_err(|_| self.refuse_group(format!("Out of range: {factor}")))
    }

    fn insert(&mut self) -> Built<InsertSettings> {
        let form = self.group("-insert", &insert_forms())?;
        let visits = self.spec(&form, "visits=")?;
        let revisit = self.spec(&form, "revisit=")?;
        let full = RatioSpec { distribution: Spec::Fixed { value: 1 }, divisor: 1.0 };
        Ok(InsertSettings {
            revisit,
            visits,
            partitions: self.optional_spec(&form, "partitions=")?,
            select_ratio: self.optional_ratio(&form, "select-ratio=")?,
            row_population_ratio: self.optional_ratio(&form, "row-population-ratio=")?.unwrap_or(full),
            // Here, the tool refuses lower case, although its pattern accepts it.
            batch_type: form.value("batchtype=").map(str::to_ascii_uppercase),
        })
    }

    fn columns(&mut self) -> Built<ColumnSettings> {
        let parameters = take_group(&mut self.groups, "-col");
        let mut forms = column_forms();
        if parameters.is_none() {
            forms.remove(0);
        }
        let form = self.select_form("-col", "-col", &forms, &parameters.unwrap_or_default())?;
        let size = self.spec(&form, "size=")?;
        let (names, count) = if form.has_option("names=") {
            (form.text("names=").trim_end_matches(',').split(',').map(str::to_owned).collect(), None)
        } else {
            let count = self.spec(&form, "n=")?;
            let max = count.range().map_err(|message| self.refuse_group(message))?.1;
            if max > COLUMNS_MAX {
                return Err(self.refuse_group(format!("-col n= has more than {COLUMNS_MAX} columns")));
            }
            ((0..max).map(|place| format!("C{place}")).collect::<Vec<_>>(), Some(count))
        };
        let mut names: Vec<String> = names;
        names.sort();
        Ok(ColumnSettings {
            names,
            count,
            size,
            slice: form.is_set("slice"),
            comparator: form.text("comparator=").to_owned(),
            timestamp: form.value("timestamp=").map(str::to_owned),
        })
    }

    fn errors(&mut self) -> Built<ErrorSettings> {
        let form = self.group("-errors", &error_forms())?;
        let settings = ErrorSettings {
            ignore: form.is_set("ignore"),
            tries: (self.number::<i32>(form.text("retries="))? as u32).saturating_add(1),
            skip_read_validation: form.is_set("skip-read-validation"),
            delay_policy: match form.text("delay-policy=").to_ascii_lowercase().as_str() {
                "linear" => DelayPolicy::Linear,
                "exponential" => DelayPolicy::Exponential,
                _ => DelayPolicy::Constant,
            },
            min_delay_ms: self.number::<i32>(form.text("min-delay-ms="))? as u32,
            max_delay_ms: self.number::<i32>(form.text("max-delay-ms="))? as u32,
        };
        // ScyllaDB's fork refuses these values in the same way (`SettingsErrors.Options.happy`).
        let hint = if settings.min_delay_ms > settings.max_delay_ms {
            "min-delay-ms= must not exceed max-delay-ms="
        } else if settings.delay_policy == DelayPolicy::Exponential && settings.min_delay_ms == 0 {
            "delay-policy=exponential doubles min-delay-ms=, which must be at least 1"
        } else {
            return Ok(settings);
        };
        let help = render_forms("-errors", &error_forms());
        let text = format!("{help}Invalid -errors options provided, see output for valid options\n");
        Err(UsageError { text, hint: Some(hint.to_owned()), exit: 1 })
    }

    fn log(&mut self) -> Built<LogSettings> {
        let form = self.group("-log", &log_forms())?;
        let interval = form.text("interval=");
        let interval_ms = if let Some(digits) = interval.strip_suffix("ms") {
            self.number::<i32>(digits)?
        } else {
            let seconds = self.number::<i32>(interval.strip_suffix('s').unwrap_or(interval))?;
            seconds
                .checked_mul(1_000)
                .ok_or_else(|| self.refuse_group(format!("Log interval of {interval} is too long")))?
        };
        if interval_ms <= 0 {
            return Err(self.refuse_group("Log interval must be greater than zero"));
        }
        Ok(LogSettings {
            no_summary: form.is_set("no-summary"),
            no_settings: form.is_set("no-settings"),
            file: form.value("file=").map(str::to_owned),
            hdr_file: form.value("hdrfile=").map(str::to_owned),
            interval_ms: interval_ms as u32,
            level: match form.text("level=").to_ascii_lowercase().as_str() {
                "minimal" => LogLevel::Minimal,
                "verbose" => LogLevel::Verbose,
                _ => LogLevel::Normal,
            },
        })
    }

    fn refuse_rest(&self) -> Built<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let mut text = super::help::render_general(self.compat);
        text.push_str("Error processing command line arguments. The following were ignored:\n");
        for group in &self.groups {
            text.push_str(&group.name);
            for parameter in &group.parameters {
                text.push_str(&format!(" {parameter}"));
            }
            text.push('\n');
        }
        let name = self.groups.front().map_or("", |group| group.name.as_str());
        let hint = format!("{name} is not an option group of generation {}; -compat changes it", self.compat.name());
        Err(UsageError { text, hint: Some(hint), exit: 1 })
    }
}
