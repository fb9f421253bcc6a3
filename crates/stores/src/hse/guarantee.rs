//! HSE's guarantee and the other facts that are printed with a result.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::api::{Ptr, parameter};
use super::kvdb::Kvdb;
use super::settings::Settings;
use crate::guarantee::Guarantee;
use crate::options::{Durability, Options};

/// If opening HSE in a virtual machine takes longer than this, a note reports it. On a machine where the CPUID
/// instruction does not trap to a hypervisor, opening takes 0.1 s.
const OPEN_SLOW: Duration = Duration::from_secs(3);

/// The guarantee in HSE's terms, as HSE reports it, because a `kvdb.conf` in the home directory overrides all settings.
pub fn read_guarantee(
    kvdb: &Kvdb,
    kvs: Ptr,
    options: &Options,
    settings: &Settings,
    home: &Path,
    opening: Duration,
) -> Guarantee {
    let api = kvdb.api();
    let of_kvdb = |name| kvdb.parameter(name);
    // SAFETY: the KVS is open.
    let of_kvs = |name| unsafe { parameter(api.kvs_param_get, kvs, name) };
    let journal = of_kvdb(c"durability.enabled").is_none_or(|enabled| enabled != "false");
    let interval_ms = of_kvdb(c"durability.interval_ms").unwrap_or_else(|| "100".to_owned());
    let durability = match (options.durability, journal) {
        (Durability::None, true) => {
            let journaled = Guarantee::periodic(format!("journal written within {interval_ms} ms; writes do not wait"));
            match interval_ms.parse::<u64>() {
                Ok(ms) => journaled.losing_at_most(ms * 1_000_000),
                Err(_) => journaled,
            }
        }
        (Durability::None, false) => Guarantee::new(Durability::None, "no journal"),
        (Durability::Os, true) => Guarantee::new(
            Durability::Device,
            "hse_kvdb_sync at each write: journal on the device; HSE has no level between this and none",
        ),
        (Durability::Device, true) => {
            Guarantee::new(Durability::Device, "hse_kvdb_sync at each write: journal on the device")
        }
        (_, false) => Guarantee::new(Durability::Device, "no journal; hse_kvdb_sync at each write: data on the device"),
    };
    let path = api.path();
    let version = path.as_deref().and_then(|path| version(path).map(str::to_owned));
    let unknown = || "unknown".to_owned();
    let mut guarantee = durability
        .fact("version", version.or(path.map(|path| path.display().to_string())).unwrap_or_else(unknown))
        .fact("directory", home.display().to_string())
        // HSE maps its data files, so its cache is the kernel's page cache.
        .fact("cache_bytes", "0")
        .fact(
            "compression",
            // The parameter has different names in HSE 3 and HSE 2.
            of_kvs(c"value.compression.default")
                .or_else(|| of_kvs(c"compression.value.algorithm"))
                .unwrap_or_else(unknown),
        )
        .fact("prefix.length", of_kvs(c"prefix.length").unwrap_or_else(unknown))
        .fact("throttling.init_policy", of_kvdb(c"throttling.init_policy").unwrap_or_else(unknown));
    if let Some(length) = settings.cursor_prefix {
        guarantee = guarantee.fact("cursor_pfx_len", format!("{length}, without effect: scans use no prefix"));
    }
    match slow_open(opening, is_virtual_machine()) {
        Some(message) => guarantee.fact("note", message),
        None => guarantee,
    }
}

/// The version, taken from the file name that meson installs, such as `libhse-3.so.3.0.0`; HSE's API does not report
/// it.
fn version(path: &Path) -> Option<&str> {
    let (_, version) = path.file_name()?.to_str()?.split_once(".so.")?;
    version.contains('.').then_some(version)
}

/// Whether the processor reports a hypervisor.
fn is_virtual_machine() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
        text.lines().find(|line| line.starts_with("flags")).is_some_and(|line| line.contains(" hypervisor"))
    })
}

/// A note if opening was slow.
fn slow_open(took: Duration, in_virtual_machine: bool) -> Option<String> {
    (took > OPEN_SLOW && in_virtual_machine).then(|| {
        format!(
            "opened in {:.1} s: in a virtual machine, stock HSE traps to the hypervisor on CPUID in every checksum; \
             this also slows writes",
            took.as_secs_f64()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_files_name() {
        let of = |name: &str| version(Path::new(name)).map(str::to_owned);
        assert_eq!(of("/usr/lib/libhse-3.so.3.0.0"), Some("3.0.0".into()));
        assert_eq!(of("/usr/lib/libhse-3.so.0"), None);
        assert_eq!(of("/usr/lib/libhse-3.so"), None);
    }

    #[test]
    fn slow_opening_in_a_virtual_machine_is_reported() {
        assert_eq!(slow_open(Duration::from_millis(100), true), None);
        assert_eq!(slow_open(Duration::from_secs(12), false), None);
        let message = slow_open(Duration::from_millis(12_140), true).unwrap();
        assert!(
            message.starts_with("opened in 12.1 s: in a virtual machine, stock HSE traps to the hypervisor on CPUID")
        );
    }
}
