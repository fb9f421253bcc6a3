//! The properties of a run with their origins, and strict parsers for their values.

mod java;

use std::collections::BTreeMap;

use super::args::Args;
use java::{PropertiesError, PropertiesFile};
use loadstone_wire::error::EngineError;

/// Maximum length of a name: no store has properties with longer names.
const NAME_BYTES_MAX: usize = 1_000;

/// Refuses an implausible name, for example if a file contains binary data instead of properties.
fn check_name(name: &str, origin: &str) -> Result<(), EngineError> {
    if name.len() <= NAME_BYTES_MAX {
        return Ok(());
    }
    let begin: String = name.chars().take(40).collect();
    Err(EngineError::usage(format!("a property name has {} bytes, and begins with \"{begin}\" ({origin})", name.len()))
        .hint(format!("write NAME=VALUE, with names of up to {NAME_BYTES_MAX} bytes")))
}

/// The value of a property, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    value: String,
    origin: String,
}

/// YCSB's core workloads, by their paths in YCSB.
const CORE: [(&str, &str); 6] = [
    ("workloads/workloada", include_str!("../../../workloads/workloada")),
    ("workloads/workloadb", include_str!("../../../workloads/workloadb")),
    ("workloads/workloadc", include_str!("../../../workloads/workloadc")),
    ("workloads/workloadd", include_str!("../../../workloads/workloadd")),
    ("workloads/workloade", include_str!("../../../workloads/workloade")),
    ("workloads/workloadf", include_str!("../../../workloads/workloadf")),
];

/// All properties of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    settings: BTreeMap<String, Setting>,
    /// Warnings from the parser of property files.
    pub warnings: Vec<String>,
}

impl Properties {
    /// Reads the files first, then the command line, which overrides them.
    pub fn gather_properties(args: &Args) -> Result<Self, EngineError> {
        let mut properties = Self::default();
        for file in &args.files {
            let bytes = properties.read(file).map_err(|error| {
                EngineError::usage(format!("cannot read {file}: {error}"))
                    .hint("give an existing file, or one of YCSB's: workloads/workloada to workloads/workloadf")
            })?;
            let parsed = PropertiesFile::parse(&bytes, file).map_err(|error| {
                let hint = match error {
                    PropertiesError::Utf16 { .. } => "convert it with iconv -f UTF-16 -t UTF-8",
                    PropertiesError::Escape { .. } => "double each backslash",
                };
                EngineError::usage(error.to_string()).hint(hint)
            })?;
            properties.warnings.extend(parsed.warnings);
            for entry in parsed.entries {
                let origin = format!("{file}:{}", entry.line);
                check_name(&entry.key, &origin)?;
                properties.settings.insert(entry.key, Setting { value: entry.value, origin });
            }
        }
        for (name, value) in &args.properties {
            check_name(name, "-p")?;
            let setting = Setting { value: value.clone(), origin: format!("-p {name}") };
            properties.settings.insert(name.clone(), setting);
        }
        Ok(properties)
    }

    /// Reads a file. YCSB's core workloads are built in, for commands outside a copy of YCSB.
    fn read(&mut self, file: &str) -> std::io::Result<Vec<u8>> {
        std::fs::read(file).or_else(|error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            let built_in = CORE.iter().find(|(name, _)| is_missing && *name == file.trim_start_matches("./"));
            let (_, text) = built_in.ok_or(error)?;
            self.warnings.push(format!("there is no file {file}: using YCSB's workload of that name"));
            Ok(text.as_bytes().to_vec())
        })
    }

    /// Sets a property unless it is already set.
    pub fn default_to(&mut self, name: &str, value: &str) {
        let setting = Setting { value: value.to_owned(), origin: "the default".to_owned() };
        self.settings.entry(name.to_owned()).or_insert(setting);
    }

    /// The value as the user wrote it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|setting| setting.value.as_str())
    }

    /// The value without surrounding blanks; `None` if it is then empty. YCSB keeps trailing blanks, and then fails to
    /// parse numbers.
    pub fn trim_value(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// The value as text, or the default.
    pub fn text(&self, name: &str, default: &str) -> String {
        self.trim_value(name).unwrap_or(default).to_owned()
    }

    /// The value as a Java boolean: `true` in any case is true, and everything else is false.
    pub fn boolean(&self, name: &str, default: bool) -> bool {
        self.trim_value(name).map_or(default, java::java_boolean)
    }

    /// A whole number ≥ 0; `None` if the property is not set.
    pub fn parse_whole(&self, name: &str) -> Result<Option<u64>, EngineError> {
        let Some(text) = self.trim_value(name) else { return Ok(None) };
        let parsed = java::java_long(text);
        match parsed.map(u64::try_from) {
            Some(Ok(number)) => Ok(Some(number)),
            _ => Err(self.invalid_value(name, "a whole number", text)),
        }
    }

    /// A number, or the default.
    pub fn parse_real(&self, name: &str, default: f64) -> Result<f64, EngineError> {
        let Some(text) = self.trim_value(name) else { return Ok(default) };
        match java::java_double(text).filter(|number| number.is_finite()) {
            Some(number) => Ok(number),
            None => Err(self.invalid_value(name, "a number", text)),
        }
    }

    /// A number within a range, or the default.
    pub fn parse_within(&self, name: &str, default: f64, low: f64, high: f64) -> Result<f64, EngineError> {
        let value = self.parse_real(name, default)?;
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        Err(self.invalid_value(name, &format!("between {low} and {high}"), self.trim_value(name).unwrap_or_default()))
    }

    /// A whole number of at most `high`.
    pub fn parse_at_most(&self, name: &str, high: u64) -> Result<Option<u64>, EngineError> {
        let value = self.parse_whole(name)?;
        if value.is_some_and(|value| value > high) {
            return Err(self.invalid_value(
                name,
                &format!("at most {high}"),
                self.trim_value(name).unwrap_or_default(),
            ));
        }
        Ok(value)
    }

    /// The error for an invalid value.
    pub fn invalid_value(&self, name: &str, expected: &str, got: &str) -> EngineError {
        let origin = self.settings.get(name).map_or("", |setting| setting.origin.as_str());
        let error = EngineError::usage(format!("{name} must be {expected}, got \"{got}\" ({origin})"));
        // Users write scientific notation and separators, so the hint suggests the intended number.
        let plain: String = got.chars().filter(|c| !matches!(c, '_' | ',')).collect();
        match plain.parse::<f64>() {
            Ok(number) if expected == "a whole number" && number >= 0.0 && number.fract() == 0.0 && number < 1e18 => {
                error.hint(format!("write {number:.0}"))
            }
            _ => error.hint(format!("change it, or leave {name} out to use its default")),
        }
    }

    /// The names of all properties that are set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.settings.keys().map(String::as_str)
    }

    /// The origin of a property.
    pub fn origin(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", |setting| setting.origin.as_str())
    }

    /// Every property and its value, for the store.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.settings.iter().map(|(name, setting)| (name.clone(), setting.value.clone())).collect()
    }
}
