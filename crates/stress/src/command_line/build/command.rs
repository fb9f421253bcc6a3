//! The settings of the command: its length, `ratio()` of `mixed`, and the profiles and `ops()` of `user`.

use super::{Built, SettingsBuilder};
use crate::command_line::UsageError;
use crate::command_line::groups::{basic_forms, mixture_forms, user_forms};
use crate::command_line::help::find_command;
use crate::command_line::option::{Form, render_forms};
use crate::distribution::Spec;
use crate::settings::{CommandSettings, DurationUnit, NamedSpec, RunLength, StressCommand, Truncate, UserSettings};

impl SettingsBuilder {
    pub(super) fn command(&mut self) -> Built<CommandSettings> {
        let Some(group) = self.groups.front().cloned() else { return Err(self.refuse_group("No command specified")) };
        if group.name == "user" {
            self.groups.pop_front();
            return self.user(&group.parameters);
        }
        let Some(command) = find_command(&group.name) else {
            let hint = "the first argument is the command: write, read, mixed, counter_write, counter_read, print, help, version";
            return Err(self.refuse_group("No command specified").with_hint(hint));
        };
        self.groups.pop_front();
        let forms = match command {
            StressCommand::Mixed => mixture_forms(self.compat),
            _ => basic_forms(self.compat, false),
        };
        let form = match self.select_form(command.name(), &command.label(), &forms, &group.parameters) {
            // The tool's help for these commands omits two options.
            Err(error) if command != StressCommand::Mixed && error.text.starts_with("\nUsage") => {
                let help = render_forms(command.name(), &basic_forms(self.compat, true));
                let label = command.label();
                let text = format!("{help}Invalid {label} options provided, see output for valid options\n");
                return Err(UsageError {
                    text,
                    hint: Some("n=, duration= and err< cannot be combined".to_owned()),
                    ..error
                });
            }
            other => other?,
        };
        let settings = self.command_settings(command, &form)?;
        let is_mixed = command == StressCommand::Mixed;
        let add = self.parse_named(&form, "add=")?;
        let key_bytes = self.number::<i32>(form.text("keysize="))? as u32;
        let clustering = if is_mixed { Some(self.parse_named(&form, "clustering=")?) } else { None };
        let ratios = if is_mixed { self.ratios(&form)? } else { Vec::new() };
        Ok(CommandSettings { key_bytes, add, ratios, clustering, ..settings })
    }

    /// The settings that all commands have, and the defaults of the remaining settings.
    fn command_settings(&self, command: StressCommand, form: &Form) -> Built<CommandSettings> {
        Ok(CommandSettings {
            command,
            length: self.length(form)?,
            no_warmup: form.is_set("no-warmup"),
            truncate: match form.text("truncate=").to_ascii_lowercase().as_str() {
                "once" => Truncate::Once,
                "always" => Truncate::Always,
                _ => Truncate::Never,
            },
            consistency: form.text("cl=").to_ascii_uppercase(),
            serial_consistency: form.value("serial-cl=").map(str::to_ascii_uppercase),
            key_bytes: 10,
            add: NamedSpec { text: "fixed(1)".to_owned(), spec: Spec::Fixed { value: 1 } },
            ratios: Vec::new(),
            clustering: None,
            user: None,
        })
    }

    /// The command `user`. The caller reads the profiles.
    fn user(&mut self, parameters: &[String]) -> Built<CommandSettings> {
        let form = self.select_form("user", "USER", &user_forms(self.compat), parameters)?;
        let profiles: Vec<String> =
            form.text("profile=").split(',').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        let specification = form.text("ops");
        let list = specification.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let mut operations: Vec<(String, f64)> = Vec::new();
        for part in list.unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
            let operation = part.rsplit_once('=').and_then(|(name, weight)| Some((name, weight.parse::<f64>().ok()?)));
            match operation {
                Some((name, weight)) if weight.is_finite() && weight >= 0.0 && !name.is_empty() => {
                    let name = name.to_lowercase();
                    if operations.iter().any(|(other, _)| *other == name) {
                        return Err(self.refuse_group(format!("{name} set twice")));
                    }
                    operations.push((name, weight));
                }
                _ => {
                    return Err(self
                        .refuse_group(format!("Invalid ops specification: {part}"))
                        .with_hint("write ops(insert=1,NAME=2)"));
                }
            }
        }
        if profiles.is_empty() || operations.iter().all(|(_, weight)| *weight <= 0.0) {
            return Err(self
                .refuse_group("Must specify at least one command with a non-zero ratio")
                .with_hint("write user profile=FILE.yaml ops(insert=1)"));
        }
        let settings = self.command_settings(StressCommand::User, &form)?;
        let clustering = Some(self.parse_named(&form, "clustering=")?);
        Ok(CommandSettings { clustering, user: Some(UserSettings { profiles, operations }), ..settings })
    }

    fn length(&self, form: &Form) -> Built<RunLength> {
        if form.has_option("n=") {
            return Ok(RunLength::Count(self.count(form.text("n="))?));
        }
        if form.has_option("duration=") {
            let text = form.text("duration=");
            let (digits, unit) = text.split_at(text.len().saturating_sub(1));
            let unit = match unit.to_ascii_lowercase().as_str() {
                "m" => DurationUnit::Minutes,
                "h" => DurationUnit::Hours,
                "d" => DurationUnit::Days,
                _ => DurationUnit::Seconds,
            };
            return Ok(RunLength::Duration { amount: self.number(digits)?, unit });
        }
        Ok(RunLength::Uncertainty {
            target: form.text("err<").parse().unwrap_or(0.02),
            min: self.number(form.text("n>"))?,
            max: self.number(form.text("n<"))?,
        })
    }

    /// The ratios in the order of the settings block: writes before reads.
    fn ratios(&mut self, form: &Form) -> Built<Vec<(StressCommand, f64)>> {
        let mut ratios = Vec::new();
        for (prefix, weight) in form.inner_values("ratio") {
            let Some(command) = find_command(prefix.trim_end_matches('=')) else {
                return Err(self
                    .refuse_group("user= is not an operation of mixed")
                    .with_hint("ratio() takes read, write, counter_read and counter_write"));
            };
            let weight: f64 = weight.parse().unwrap_or(0.0);
            if !weight.is_finite() {
                return Err(self.refuse_group(format!("Invalid value {weight} of {prefix}")));
            }
            ratios.push((command, weight));
        }
        ratios.sort_by_key(|(command, _)| match command {
            StressCommand::Write | StressCommand::Mixed | StressCommand::User => 0,
            StressCommand::Read => 1,
            StressCommand::CounterWrite => 2,
            StressCommand::CounterRead => 3,
        });
        Ok(ratios)
    }
}
