//! The options of YCSB's binding for HSE 1, which stored its data in mpools. HSE 2.0 replaced mpools with directories,
//! so these options cannot work; the error names their replacements.

use std::path::Path;

use crate::error::EngineError;
use crate::options::Options;

/// A parameter of HSE 1 and its equivalent in HSE 3.
struct Renamed {
    old: &'static str,
    new: &'static str,
    /// The values that were renamed, old and new.
    values: &'static [(&'static str, &'static str)],
}

const fn rename(old: &'static str, new: &'static str, values: &'static [(&'static str, &'static str)]) -> Renamed {
    Renamed { old, new, values }
}

/// All public parameters of HSE 1.8.
const RENAMED: [Renamed; 7] = [
    rename("kvdb.dur_intvl_ms", "kvdb.durability.interval_ms", &[]),
    rename("kvdb.log_lvl", "logging.level", &[]),
    rename("kvdb.read_only", "kvdb.mode", &[("0", "rdwr"), ("1", "rdonly")]),
    rename("kvdb.throttle_init_policy", "kvdb.throttling.init_policy", &[]),
    rename("kvs.pfx_len", "kvdb.kvs.default.prefix.length", &[]),
    rename("kvs.value_compression", "kvdb.kvs.default.value.compression.default", &[("none", "off"), ("lz4", "on")]),
    rename("kvs.mclass_policy", "kvdb.kvs.default.mclass.policy", &[]),
];

/// Refuses options of HSE 1, and names their replacements.
pub fn refuse_retired(options: &Options) -> Result<(), EngineError> {
    let used: Vec<&str> = ["hse.mpool_name", "hse.params", "hse.config_path"]
        .into_iter()
        .filter(|name| options.get(name).is_some())
        .collect();
    if used.is_empty() {
        return Ok(());
    }
    let mut config: Vec<String> = options.get("hse.config").map(str::to_owned).into_iter().collect();
    let mut add = |parameter: String| {
        if !config.contains(&parameter) {
            config.push(parameter);
        }
    };
    options.get("hse.params").unwrap_or_default().split([',', ';']).filter_map(successor).for_each(&mut add);
    let file = options.get("hse.config_path");
    let known = file.and_then(read_shipped);
    known.iter().flatten().map(|parameter| (*parameter).to_owned()).for_each(&mut add);

    let mut instructions = Vec::new();
    if options.get("hse.kvdb_home").is_none() && options.get("hse.kvdb.home").is_none() {
        instructions.push("-p hse.kvdb_home=DIRECTORY".to_owned());
    }
    if !config.is_empty() {
        instructions.push(format!("-p hse.config={}", config.join(",")));
    }
    if let Some(file) = file.filter(|_| known.is_none()) {
        instructions
            .push(format!("the settings of {file} as -p hse.config=kvdb.NAME=VALUE,kvdb.kvs.default.NAME=VALUE"));
    }
    let instead =
        if instructions.is_empty() { "leave it out".to_owned() } else { format!("write {}", instructions.join(" ")) };
    Err(EngineError::usage(format!(
        "only HSE 1 has {}; since HSE 2.0 a KVDB is kept in a directory, not in an mpool",
        used.join(" and ")
    ))
    .hint(instead))
}

/// The current name of a parameter of HSE 1.
fn successor(parameter: &str) -> Option<String> {
    let (name, value) = parameter.trim().split_once('=')?;
    if let Some(Renamed { new, values, .. }) = RENAMED.iter().find(|renamed| renamed.old == name) {
        let value = values.iter().find(|(old, _)| *old == value).map_or(value, |(_, new)| *new);
        return Some(format!("{new}={value}"));
    }
    Some(match name.strip_prefix("kvs.") {
        Some(name) => format!("kvdb.kvs.default.{name}={value}"),
        None => format!("{name}={value}"),
    })
}

/// The contents of the configuration files that HSE 1.8 installed for YCSB (its `config/native_ycsb_*.yml`).
fn read_shipped(file: &str) -> Option<Vec<&'static str>> {
    let name = Path::new(file).file_name()?.to_str()?.strip_prefix("native_ycsb_")?.strip_suffix(".yml")?;
    let mut parameters = vec!["kvdb.kvs.default.prefix.length=7"];
    let workload = match name.strip_prefix("mclass_") {
        Some(workload) => {
            parameters.push("kvdb.kvs.default.mclass.policy=staging_max_capacity");
            workload
        }
        None => name,
    };
    match workload {
        "abcdf_load" | "abcdf_run" | "e_load" => {}
        // `csched_vb_scatter_pct` was renamed to `csched_max_vgroups`, according to the binding for HSE 3.
        "e_run" => parameters.extend(["kvdb.csched_max_vgroups=1", "kvdb.kvs.default.cn_cursor_vra=0"]),
        _ => return None,
    }
    Some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal_of(properties: &[(&str, &str)]) -> (String, String) {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let error = refuse_retired(&Options { properties, ..Options::default() }).unwrap_err();
        assert!(error.is_usage());
        (error.message, error.hint.unwrap())
    }

    #[test]
    fn the_published_command_line_is_rewritten() {
        let (message, hint) = refusal_of(&[
            ("hse.mpool_name", "ycsbData"),
            ("hse.config_path", "/opt/hse/config/native_ycsb_abcdf_load.yml"),
        ]);
        assert_eq!(
            message,
            "only HSE 1 has hse.mpool_name and hse.config_path; since HSE 2.0 a KVDB is kept in a directory, not in an \
             mpool"
        );
        assert_eq!(hint, "write -p hse.kvdb_home=DIRECTORY -p hse.config=kvdb.kvs.default.prefix.length=7");
    }

    #[test]
    fn parameters_get_their_new_names_and_values() {
        let (_, hint) = refusal_of(&[
            ("hse.mpool_name", "mp"),
            ("hse.params", "kvdb.dur_intvl_ms=1000;kvdb.log_lvl=6,kvs.value_compression=lz4,kvs.cn_cursor_vra=0"),
        ]);
        assert_eq!(
            hint,
            "write -p hse.kvdb_home=DIRECTORY -p hse.config=kvdb.durability.interval_ms=1000,logging.level=6,\
             kvdb.kvs.default.value.compression.default=on,kvdb.kvs.default.cn_cursor_vra=0"
        );
    }

    #[test]
    fn only_what_is_missing_is_asked_for() {
        assert_eq!(refusal_of(&[("hse.kvdb_home", "/db"), ("hse.mpool_name", "mp")]).1, "leave it out");
        assert_eq!(
            refusal_of(&[("hse.kvdb_home", "/db"), ("hse.params", "kvs.pfx_len=7"), ("hse.config", "kvdb.mode=rdwr")])
                .1,
            "write -p hse.config=kvdb.mode=rdwr,kvdb.kvs.default.prefix.length=7"
        );
        assert_eq!(
            refusal_of(&[("hse.kvdb_home", "/db"), ("hse.config_path", "/etc/my.yml")]).1,
            "write the settings of /etc/my.yml as -p hse.config=kvdb.NAME=VALUE,kvdb.kvs.default.NAME=VALUE"
        );
    }

    #[test]
    fn every_shipped_file_is_known() {
        for name in ["abcdf_load", "abcdf_run", "e_load", "e_run"] {
            for class in ["", "mclass_"] {
                let file = format!("/opt/hse/config/native_ycsb_{class}{name}.yml");
                let parameters = read_shipped(&file).unwrap();
                assert_eq!(parameters.len(), 1 + class.len().min(1) + if name == "e_run" { 2 } else { 0 }, "{file}");
            }
        }
        assert_eq!(read_shipped("/opt/hse/config/mongodb_ycsb.yml"), None);
    }
}
