//! The properties `hse.*`, sorted into the five lists of parameters that HSE takes.
//!
//! Three older YCSB bindings exist, one for each major version of HSE. The property names of all three are read here.
//! Names for HSE 3 and 2 work; names for HSE 1, which had mpools, are refused with the name of their replacement.

use std::path::PathBuf;

use super::retired;
use crate::error::EngineError;
use crate::options::Options;

/// Parameters for creating KVSs (`kvs_cparams.c` in 2.1 and 3.0). All other KVS parameters are for opening a KVS.
const KVS_CREATE: [&str; 6] = ["prefix.length", "prefix.pivot", "suffix.length", "fanout", "kvs_ext01", "kvs_sfx_len"];
/// Prefixes of HSE's global parameters (`hse_gparams.c`). `perfc.level` is not in this list, although it also exists as
/// a global parameter: it is passed to the KVDB.
const GLOBAL: [&str; 7] =
    ["logging.", "rest.", "socket.", "vlb_cache_sz", "c0kvs_ccache_sz", "c0kvs_cheap_sz", "workqueue_"];

/// All parameters with which HSE is initialised, and with which databases are created and opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The KVDB's home directory.
    pub home: PathBuf,
    /// A `hse.conf` to pass to `hse_init`.
    pub config_file: Option<PathBuf>,
    /// Parameters for `hse_init`.
    pub global: Vec<String>,
    /// Parameters for `hse_kvdb_create`.
    pub kvdb_create: Vec<String>,
    /// Parameters for `hse_kvdb_open`.
    pub kvdb_open: Vec<String>,
    /// Parameters for `hse_kvdb_kvs_create`.
    pub kvs_create: Vec<String>,
    /// Parameters for `hse_kvdb_kvs_open`.
    pub kvs_open: Vec<String>,
    /// `hse.cursor_pfx_len`, which has no effect.
    pub cursor_prefix: Option<u32>,
}

impl Settings {
    /// Sorts the properties into the lists.
    pub fn new(options: &Options) -> Result<Self, EngineError> {
        retired::refuse_retired(options)?;
        check_table(&options.table)?;
        // These are the names in the bindings for HSE 2 and HSE 3.
        let home = match options.get("hse.kvdb.home") {
            Some(home) if options.get("hse.kvdb_home").is_none() => PathBuf::from(home),
            _ => options.directory("hse.kvdb_home")?,
        };
        let mut settings = Self { home, cursor_prefix: cursor_prefix(options)?, ..Self::default() };
        if let Some(text) = options.get("hse.config") {
            settings.sort(text, &options.table)?;
        }
        for (property, list) in [
            ("hse.gparams", &mut settings.global),
            ("hse.kvdb.cparams", &mut settings.kvdb_create),
            ("hse.kvdb.rparams", &mut settings.kvdb_open),
            ("hse.kvs.cparams", &mut settings.kvs_create),
            ("hse.kvs.rparams", &mut settings.kvs_open),
        ] {
            for (name, value) in pairs(property, options.get(property).unwrap_or_default())? {
                list.push(format!("{name}={value}"));
            }
        }
        Ok(settings)
    }

    /// Parameters for `hse_init`. By default, HSE opens a REST socket and writes to the system log. For a benchmark,
    /// each of the two is disabled, unless a property contains parameters for it or there is a configuration file. The
    /// name of the parameter for the socket depends on the version.
    pub fn init(&self, is_3: bool) -> Vec<String> {
        let socket = if is_3 { "rest." } else { "socket." };
        let mut list = Vec::new();
        for group in [socket, "logging."] {
            if self.config_file.is_none() && !self.global.iter().any(|parameter| parameter.starts_with(group)) {
                list.push(format!("{group}enabled=false"));
            }
        }
        list.extend_from_slice(&self.global);
        list
    }

    /// Reads `hse.config`, which is either the path of a configuration file (HSE 3) or a list of parameters (HSE 2).
    /// The parameters are sorted into the lists by name.
    fn sort(&mut self, text: &str, table: &str) -> Result<(), EngineError> {
        if !text.contains('=') {
            let file = PathBuf::from(text);
            if !file.is_file() {
                return Err(EngineError::usage(format!("hse.config is neither a file nor name=value: \"{text}\""))
                    .hint(format!("write name=value,name=value, as in {EXAMPLE}, or the path of an hse.conf")));
            }
            self.config_file = Some(file);
            return Ok(());
        }
        // As in kvdb.conf, settings for a single KVS override settings for all KVSs; HSE uses the last value for a
        // name.
        let (mut all, mut specific) = (Vec::new(), Vec::new());
        for (name, value) in pairs("hse.config", text)? {
            let under_kvs = name.strip_prefix("kvdb.kvs.").or_else(|| name.strip_prefix("kvs."));
            if let Some(path) = under_kvs {
                match path.split_once('.') {
                    Some(("default", name)) => all.push((name, value)),
                    Some((kvs, name)) if kvs == table => specific.push((name, value)),
                    _ => {
                        let name = path.rsplit_once('.').map_or(path, |(_, name)| name);
                        return Err(EngineError::usage(format!(
                            "hse.config: {path} is for a KVS other than the table \"{table}\""
                        ))
                        .hint(format!("write kvdb.kvs.default.{name}=… or kvdb.kvs.{table}.{name}=…")));
                    }
                }
                continue;
            }
            let kvdb = name.strip_prefix("kvdb.");
            let own = kvdb.unwrap_or(name);
            let list = if kvdb.is_none() && GLOBAL.iter().any(|start| own.starts_with(start)) {
                &mut self.global
            } else if own.starts_with("storage.") && !own.contains(".directio.") {
                &mut self.kvdb_create
            } else {
                &mut self.kvdb_open
            };
            list.push(format!("{own}={value}"));
        }
        for (name, value) in all.into_iter().chain(specific) {
            // This is the name in HSE 1 and in the binding for HSE 2.
            let name = if name == "pfx_len" { "prefix.length" } else { name };
            let list = if KVS_CREATE.contains(&name) { &mut self.kvs_create } else { &mut self.kvs_open };
            list.push(format!("{name}={value}"));
        }
        Ok(())
    }
}

const EXAMPLE: &str = "kvdb.durability.interval_ms=1000,kvdb.kvs.default.prefix.length=7";

/// Parses pairs of the form `name=value`, separated by commas or by semicolons, which shells accept more easily.
fn pairs<'a>(property: &str, text: &'a str) -> Result<Vec<(&'a str, &'a str)>, EngineError> {
    text.split([',', ';'])
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(|item| match item.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
            _ => Err(EngineError::usage(format!("{property}: \"{item}\" is not name=value"))
                .hint("the form is name=value,name=value")),
        })
        .collect()
}

fn cursor_prefix(options: &Options) -> Result<Option<u32>, EngineError> {
    let Some(text) = options.get("hse.cursor_pfx_len") else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        EngineError::usage(format!("hse.cursor_pfx_len must be a whole number, got \"{text}\""))
            .hint("leave it out: scans use no prefix here")
    })
}

/// According to hse.h, the name of a KVS consists of 1 to 31 characters from [-_A-Za-z0-9], and in configurations
/// `default` means all KVSs.
fn check_table(table: &str) -> Result<(), EngineError> {
    let fits = (1..32).contains(&table.len())
        && table != "default"
        && table.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if fits {
        return Ok(());
    }
    Err(EngineError::usage(format!("table is not a valid name for a KVS of HSE: \"{table}\""))
        .hint("use 1 to 31 of A-Z a-z 0-9 - _, and not \"default\""))
}
