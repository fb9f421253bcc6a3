//! Options, the forms that a group of options can take, and their help.
//!
//! Sources: Cassandra's `OptionSimple.java`, `OptionMulti.java`, `OptionDistribution.java`,
//! `OptionRatioDistribution.java` and `GroupedOptions.java`.

use super::pattern::ValueCheck;
use crate::distribution::{RatioSpec, Spec, parse_ratio, parse_spec};

/// One option of a form, with the user's value.
#[derive(Clone, Debug)]
pub(super) struct Opt {
    pub(super) prefix: &'static str,
    description: String,
    kind: OptionKind,
    value: Option<String>,
    /// Whether the tool lacks this option, which is then accepted but not listed in the tool's help.
    is_extension: bool,
}

#[derive(Clone, Debug)]
enum OptionKind {
    Simple {
        check: ValueCheck,
        default: Option<String>,
        is_required: bool,
    },
    Distribution {
        default: Option<String>,
        is_required: bool,
    },
    Ratio,
    /// An option of the form `name(a=…,b=…)`; `extras` collects options without a definition.
    Multi {
        options: Vec<Opt>,
        extras: Option<Vec<(String, String)>>,
        is_set: bool,
    },
    /// The operations of a user profile, which have a separate line of help.
    Operations,
}

/// A required option.
pub(super) fn mandatory_option(prefix: &'static str, check: ValueCheck, description: &str) -> Opt {
    Opt::new(prefix, description, OptionKind::Simple { check, default: None, is_required: true })
}

/// An optional option.
pub(super) fn optional_option(
    prefix: &'static str,
    check: ValueCheck,
    default: Option<&str>,
    description: &str,
) -> Opt {
    let default = default.map(str::to_owned);
    Opt::new(prefix, description, OptionKind::Simple { check, default, is_required: false })
}

/// An option whose value is a distribution.
pub(super) fn distribution(prefix: &'static str, default: Option<&str>, is_required: bool, description: &str) -> Opt {
    Opt::new(prefix, description, OptionKind::Distribution { default: default.map(str::to_owned), is_required })
}

/// An option whose value has the form `DIST/N`.
pub(super) fn ratio(prefix: &'static str, description: &str) -> Opt {
    Opt::new(prefix, description, OptionKind::Ratio)
}

/// An option with further options in parentheses.
pub(super) fn multi_option(name: &'static str, description: &str, options: Vec<Opt>, collects: bool) -> Opt {
    Opt::new(name, description, OptionKind::Multi { options, extras: collects.then(Vec::new), is_set: false })
}

/// The option `ops(…)` of the command `user`.
pub(super) fn operations(description: &str) -> Opt {
    Opt::new("ops", description, OptionKind::Operations)
}

impl Opt {
    fn new(prefix: &'static str, description: &str, kind: OptionKind) -> Self {
        Self { prefix, description: description.to_owned(), kind, value: None, is_extension: false }
    }

    /// Marks the option as an extension: the tool does not have it.
    pub(super) fn mark_extension(mut self) -> Self {
        self.is_extension = true;
        self
    }

    /// Sets a default value that the help of a required option shows.
    pub(super) fn with_default(mut self, text: String) -> Self {
        if let OptionKind::Simple { default, .. } = &mut self.kind {
            *default = Some(text);
        }
        self
    }

    /// Accepts a parameter if it belongs to this option.
    fn accept_parameter(&mut self, parameter: &str) -> Result<bool, String> {
        let rest = strip_prefix_ignoring_case(parameter, self.prefix);
        match (&mut self.kind, rest) {
            (OptionKind::Simple { check, .. }, Some(rest)) => {
                if self.value.is_some() {
                    return Err(format!("Suboption {} has been specified more than once", self.prefix));
                }
                self.value = Some(check.apply_check(rest)?);
            }
            (OptionKind::Distribution { .. } | OptionKind::Operations, Some(rest)) => {
                self.value = Some(rest.to_owned());
            }
            (OptionKind::Ratio, Some(rest)) => {
                // Only the form is checked here. The distribution is parsed when it is used.
                let Some((_, divisor)) = rest.rsplit_once('/') else { return Ok(false) };
                let digits = divisor.strip_suffix(['k', 'K', 'm', 'M', 'b', 'B']).unwrap_or(divisor);
                if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Ok(false);
                }
                crate::distribution::parse_count(divisor)?;
                self.value = Some(rest.to_owned());
            }
            (OptionKind::Multi { options, extras, is_set }, Some(rest)) => {
                let Some(list) = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else {
                    return Ok(false);
                };
                *is_set = true;
                return accept_list(self.prefix, parameter, list, options, extras.as_mut()).map(|()| true);
            }
            (_, None) => return Ok(false),
        }
        Ok(true)
    }

    fn is_satisfied(&self) -> bool {
        match &self.kind {
            OptionKind::Simple { is_required, .. } | OptionKind::Distribution { is_required, .. } => {
                !is_required || self.value.is_some()
            }
            OptionKind::Ratio | OptionKind::Multi { .. } => true,
            OptionKind::Operations => self.value.is_some(),
        }
    }

    fn takes_value(&self) -> bool {
        self.prefix.ends_with(['=', '<', '>'])
    }

    fn short_form(&self) -> String {
        let brackets = |text: String, is_optional: bool| if is_optional { format!("[{text}]") } else { text };
        let value = if self.takes_value() { "?" } else { "" };
        match &self.kind {
            OptionKind::Simple { is_required, .. } => brackets(format!("{}{value}", self.prefix), !is_required),
            OptionKind::Distribution { default, .. } => brackets(format!("{}DIST(?)", self.prefix), default.is_some()),
            OptionKind::Ratio => format!("{}DIST(?)", self.prefix),
            OptionKind::Multi { .. } => format!("[{}(?)]", self.prefix),
            OptionKind::Operations => format!("{}(?)", self.prefix),
        }
    }

    /// The long form of the help; `None` for a word that needs no explanation.
    fn long_form(&self) -> Option<String> {
        Some(match &self.kind {
            OptionKind::Simple { check, default, .. } => {
                if self.description.is_empty() && default.is_none() && check.is_flag() {
                    return None;
                }
                let default = default.as_ref().map_or_else(String::new, |default| format!(" (default={default})"));
                let value = if self.takes_value() { "?" } else { "" };
                format!("{:<40} {}", format!("{}{value}{default}", self.prefix), self.description)
            }
            OptionKind::Distribution { .. } | OptionKind::Ratio => {
                format!("{}: {}", self.short_form(), self.description)
            }
            OptionKind::Multi { options, extras, .. } => {
                let mut forms: String = options.iter().map(Self::short_form).collect();
                if extras.is_some() {
                    forms.push_str("[<option 1..N>=?]");
                }
                format!("{}({forms}): {}", self.prefix, self.description)
            }
            OptionKind::Operations => format!("{}(null): {}", self.prefix, self.description),
        })
    }

    /// The indented lines below the long form of the help.
    fn details(&self) -> Vec<String> {
        match &self.kind {
            OptionKind::Simple { .. } => Vec::new(),
            OptionKind::Distribution { .. } => DISTRIBUTION_HELP.lines().map(str::to_owned).collect(),
            OptionKind::Ratio => RATIO_HELP.lines().map(str::to_owned).collect(),
            OptionKind::Multi { options, .. } => options.iter().filter_map(Self::long_form).collect(),
            OptionKind::Operations => vec!["null".to_owned()],
        }
    }
}

fn accept_list(
    name: &str,
    parameter: &str,
    list: &str,
    options: &mut [Opt],
    mut extras: Option<&mut Vec<(String, String)>>,
) -> Result<(), String> {
    // Trailing commas do not separate anything.
    let list = list.trim_end_matches(',');
    if list.is_empty() {
        return Ok(());
    }
    for part in list.split(',') {
        if part.is_empty() {
            return Err(format!("Invalid {name} specification: {parameter}"));
        }
        if accept_any(options, part)? {
            continue;
        }
        let refusal = || format!("Invalid {name} specification: {part}");
        // As with Java's `split("=")`, trailing empty parts are ignored.
        let parts: Vec<&str> = part.trim_end_matches('=').split('=').collect();
        let (Some(extras), [key, value]) = (extras.as_deref_mut(), parts.as_slice()) else { return Err(refusal()) };
        if key.is_empty() || value.is_empty() {
            return Err(refusal());
        }
        if extras.iter().any(|(earlier, _)| earlier == key) {
            return Err(format!("{key} set twice"));
        }
        extras.push(((*key).to_owned(), (*value).to_owned()));
    }
    Ok(())
}

fn accept_any(options: &mut [Opt], parameter: &str) -> Result<bool, String> {
    for option in options {
        if option.accept_parameter(parameter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// One of the alternative forms of a group.
#[derive(Clone, Debug)]
pub(super) struct Form {
    options: Vec<Opt>,
    accepted: usize,
}

impl Form {
    pub(super) fn new(options: Vec<Opt>) -> Self {
        Self { options, accepted: 0 }
    }

    fn option(&self, prefix: &str) -> Option<&Opt> {
        self.options.iter().find(|option| option.prefix == prefix)
    }

    /// Whether the form has this option.
    pub(super) fn has_option(&self, prefix: &str) -> bool {
        self.option(prefix).is_some()
    }

    /// Whether the user set an option.
    pub(super) fn is_set(&self, prefix: &str) -> bool {
        self.option(prefix).is_some_and(|option| match &option.kind {
            OptionKind::Multi { is_set, .. } => *is_set,
            _ => option.value.is_some(),
        })
    }

    /// The user's value, or the default value.
    pub(super) fn value(&self, prefix: &str) -> Option<&str> {
        let option = self.option(prefix)?;
        option.value.as_deref().or(match &option.kind {
            OptionKind::Simple { default, .. } | OptionKind::Distribution { default, .. } => default.as_deref(),
            _ => None,
        })
    }

    /// The value of an option or its default; one of them must exist.
    pub(super) fn text(&self, prefix: &str) -> &str {
        self.value(prefix).unwrap_or_default()
    }

    /// The distribution of an option that is set or has a default.
    pub(super) fn spec(&self, prefix: &str) -> Result<Spec, String> {
        parse_spec(self.text(prefix))
    }

    /// The distribution of an option without a default.
    pub(super) fn optional_spec(&self, prefix: &str) -> Result<Option<Spec>, String> {
        self.value(prefix).map(parse_spec).transpose()
    }

    /// The ratio of an option.
    pub(super) fn optional_ratio(&self, prefix: &str) -> Result<Option<RatioSpec>, String> {
        self.value(prefix).map_or(Ok(None), parse_ratio)
    }

    /// The value of an option in parentheses, or its default unless `only_set`.
    pub(super) fn inner_value(&self, name: &str, prefix: &str, only_set: bool) -> Option<&str> {
        let OptionKind::Multi { options, .. } = &self.option(name)?.kind else { return None };
        let option = options.iter().find(|option| option.prefix == prefix)?;
        let OptionKind::Simple { default, .. } = &option.kind else { return None };
        option.value.as_deref().or(if only_set { None } else { default.as_deref() })
    }

    /// The prefixes and values in parentheses that the user set; the defaults if the user set none.
    pub(super) fn inner_values(&self, name: &str) -> Vec<(&'static str, &str)> {
        let Some(OptionKind::Multi { options, .. }) = self.option(name).map(|option| &option.kind) else {
            return Vec::new();
        };
        let set: Vec<_> = options.iter().filter_map(|option| Some((option.prefix, option.value.as_deref()?))).collect();
        if !set.is_empty() {
            return set;
        }
        let default = |option: &'_ Opt| match &option.kind {
            OptionKind::Simple { default: Some(_), .. } => Some(option.prefix),
            _ => None,
        };
        options
            .iter()
            .filter_map(default)
            .filter_map(|prefix| Some((prefix, self.inner_value(name, prefix, false)?)))
            .collect()
    }

    /// Options in parentheses that have no definition.
    pub(super) fn extra_values(&self, name: &str) -> Vec<(String, String)> {
        match self.option(name).map(|option| &option.kind) {
            Some(OptionKind::Multi { extras: Some(extras), .. }) => extras.clone(),
            _ => Vec::new(),
        }
    }
}

/// The first form that is complete and accepts every parameter.
///
/// # Errors
/// The tool's message: no form accepts a parameter, or a value is invalid. `Ok(None)` means that no form accepts all
/// parameters.
pub(super) fn select_form(parameters: &[String], mut forms: Vec<Form>) -> Result<Option<Form>, String> {
    for parameter in parameters {
        let mut is_accepted = false;
        for form in &mut forms {
            if accept_any(&mut form.options, parameter)? {
                form.accepted += 1;
                is_accepted = true;
            }
        }
        if !is_accepted {
            return Err(format!("Invalid parameter {parameter}"));
        }
    }
    Ok(forms.into_iter().find(|form| form.accepted == parameters.len() && form.options.iter().all(Opt::is_satisfied)))
}

/// The usage of a group and its options, with the same empty lines as in the tool.
pub(super) fn render_forms(name: &str, forms: &[Form]) -> String {
    let mut text = String::from("\n");
    let options =
        |form: &'_ Form| form.options.iter().filter(|option| !option.is_extension).cloned().collect::<Vec<_>>();
    for (place, form) in forms.iter().enumerate() {
        if place > 0 {
            text.push_str(" OR \n");
        }
        text.push_str(&format!("Usage: {name}"));
        for option in options(form) {
            text.push_str(&format!(" {}", option.short_form()));
        }
        text.push('\n');
    }
    text.push('\n');
    let mut printed: Vec<&'static str> = Vec::new();
    for option in forms.iter().flat_map(options) {
        if printed.contains(&option.prefix) {
            continue;
        }
        printed.push(option.prefix);
        if let Some(long) = option.long_form() {
            text.push_str(&format!("  {long}\n"));
            for row in option.details() {
                text.push_str(&format!("      {row}\n"));
            }
        }
    }
    text
}

/// The options that a group accepts, to be listed in hints.
pub(super) fn list_options(forms: &[Form]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for option in forms.iter().flat_map(|form| &form.options) {
        let name = if option.prefix.is_empty() { "a list of nodes" } else { option.prefix };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" ")
}

const DISTRIBUTION_HELP: &str = "\
EXP(min..max)                        An exponential distribution over the range [min..max]
EXTREME(min..max,shape)              An extreme value (Weibull) distribution over the range [min..max]
QEXTREME(min..max,shape,quantas)     An extreme value, split into quantas, within which the chance of selection is uniform
GAUSSIAN(min..max,stdvrng)           A gaussian/normal distribution, where mean=(min+max)/2, and stdev is (mean-min)/stdvrng
GAUSSIAN(min..max,mean,stdev)        A gaussian/normal distribution, with explicitly defined mean and stdev
UNIFORM(min..max)                    A uniform distribution over the range [min, max]
FIXED(val)                           A fixed distribution, always returning the same value
SEQ(min..max)                        A fixed sequence, returning values in the range min to max sequentially (starting based on seed), wrapping if necessary.
Preceding the name with ~ will invert the distribution, e.g. ~exp(1..10) will yield 10 most, instead of least, often
Aliases: extr, qextr, gauss, normal, norm, weibull
";

const RATIO_HELP: &str = "\
EXP(min..max)/divisor                An exponential ratio distribution over the range [min..max]/divisor
EXTREME(min..max,shape)/divisor      An extreme value (Weibull) ratio distribution over the range [min..max]/divisor
GAUSSIAN(min..max,stdvrng)/divisor   A gaussian/normal ratio distribution, where mean=(min+max)/2, and stdev is ((mean-min)/stdvrng)/divisor
GAUSSIAN(min..max,mean,stdev)/divisor A gaussian/normal ratio distribution, with explicitly defined mean and stdev
UNIFORM(min..max)/divisor            A uniform ratio distribution over the range [min, max]/divisor
FIXED(val)/divisor                   A fixed ratio distribution, always returning the same value
Preceding the name with ~ will invert the distribution, e.g. ~exp(1..10)/10 will yield 0.1 least, instead of most, often
Aliases: extr, gauss, normal, norm, weibull
";
