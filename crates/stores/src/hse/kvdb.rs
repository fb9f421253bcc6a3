//! The KVDB: its home directory, how it is opened, and its KVSs.

use std::ffi::CStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::api::{Api, Arguments, HseFault, Ptr, parameter};
use super::settings::Settings;
use super::subsystem::Subsystem;
use crate::c_api::c_text;
use crate::embedded::{HSE_MARKER as MARKER, refuse_other_database};
use crate::error::EngineError;
use crate::options::Options;

/// The `omf_version` in HSE 3.0's `kvdb.meta`; HSE 2.1 writes 2.
const FORMAT_OF_3: u32 = 4;

/// An open KVDB, which is closed when it is dropped.
#[derive(Debug)]
pub struct Kvdb {
    /// Null after the KVDB has been closed.
    handle: Ptr,
    subsystem: Subsystem,
}

impl Kvdb {
    /// Opens the KVDB.
    pub fn open(subsystem: Subsystem, settings: &Settings, home: &Path) -> Result<Self, EngineError> {
        let path = c_text(home.as_os_str().as_bytes())?;
        let api = subsystem.api;
        let mut handle: Ptr = std::ptr::null_mut();
        // SAFETY: as in `create`.
        let opened = Arguments::new(&settings.kvdb_open)?
            .with_params(|count, values| unsafe { (api.kvdb_open)(path.as_ptr(), count, values, &raw mut handle) });
        api.check(opened).map_err(|fault| refuse_action("open", home, &settings.kvdb_open, &fault))?;
        Ok(Self { handle, subsystem })
    }

    /// Opens the table's KVS. If the KVS is missing and may be created, it is created first.
    pub fn table(&self, settings: &Settings, options: &Options, home: &Path) -> Result<Ptr, EngineError> {
        let api = self.subsystem.api;
        let name = c_text(options.table.as_str())?;
        let parameters = Arguments::new(&settings.kvs_open)?;
        let open = || {
            let mut kvs: Ptr = std::ptr::null_mut();
            // SAFETY: the KVDB is open, and the strings outlive the call.
            let opened = parameters.with_params(|count, values| unsafe {
                (api.kvdb_kvs_open)(self.handle, name.as_ptr(), count, values, &raw mut kvs)
            });
            api.check(opened).map(|()| kvs)
        };
        let action = format!("open KVS {} in", options.table);
        match open() {
            Ok(kvs) => return Ok(kvs),
            Err(fault) if fault.errno != libc::ENOENT => {
                return Err(refuse_action(&action, home, &settings.kvs_open, &fault));
            }
            Err(_) if !options.create => {
                return Err(EngineError::failed(format!(
                    "no table \"{}\" in the HSE database {}",
                    options.table,
                    home.display()
                ))
                .hint(load_first(home)));
            }
            Err(_) => {}
        }
        // SAFETY: as above.
        let arguments = Arguments::new(&settings.kvs_create)?
            .with_params(|count, values| unsafe { (api.kvdb_kvs_create)(self.handle, name.as_ptr(), count, values) });
        if let Err(fault) = api.check(arguments)
            && fault.errno != libc::EEXIST
        {
            return Err(refuse_action(&format!("create KVS {} in", options.table), home, &settings.kvs_create, &fault));
        }
        open().map_err(|fault| refuse_action(&action, home, &settings.kvs_open, &fault))
    }

    /// Closes the KVDB; a second call does nothing. The KVS must already be closed.
    pub fn close(&mut self) -> Result<(), HseFault> {
        let handle = std::mem::replace(&mut self.handle, std::ptr::null_mut());
        if handle.is_null() {
            return Ok(());
        }
        let api = self.subsystem.api;
        // SAFETY: the KVDB was open, and its KVS is closed.
        api.check(unsafe { (api.kvdb_close)(handle) })
    }

    /// Syncs all earlier writes to the device.
    pub fn sync(&self) -> Result<(), HseFault> {
        let api = self.subsystem.api;
        // SAFETY: the KVDB is open. Without flags, the call waits until the sync is complete.
        api.check(unsafe { (api.kvdb_sync)(self.handle, 0) })
    }

    /// Reads the value of a parameter.
    pub fn parameter(&self, name: &CStr) -> Option<String> {
        // SAFETY: the KVDB is open.
        unsafe { parameter(self.api().kvdb_param_get, self.handle, name) }
    }

    /// The library's functions.
    pub fn api(&self) -> Api {
        self.subsystem.api
    }
}

impl Drop for Kvdb {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Creates the KVDB if it is missing.
pub fn create(api: &Api, settings: &Settings, home: &Path) -> Result<(), EngineError> {
    refuse_other_database(home, "hse", MARKER)?;
    let path = c_text(home.as_os_str().as_bytes())?;
    // SAFETY: the strings outlive the call.
    let arguments = Arguments::new(&settings.kvdb_create)?
        .with_params(|count, values| unsafe { (api.kvdb_create)(path.as_ptr(), count, values) });
    match api.check(arguments) {
        Err(fault) if fault.errno != libc::EEXIST => {
            Err(refuse_action("create a KVDB in", home, &settings.kvdb_create, &fault))
        }
        _ => Ok(()),
    }
}

/// Whether a directory contains a KVDB.
pub fn exists(home: &Path) -> bool {
    home.join(MARKER).exists()
}

/// The error for a run that was not preceded by a load.
pub fn refuse_missing(home: &Path) -> EngineError {
    EngineError::failed(format!("no HSE database in {}", home.display())).hint(load_first(home))
}

fn load_first(home: &Path) -> String {
    format!("load one first: loadstone ycsb load hse -p hse.kvdb_home={}", home.display())
}

/// The error for an action on a directory, with a remedy.
pub fn refuse_action(action: &str, home: &Path, parameters: &[String], fault: &HseFault) -> EngineError {
    let message = format!("HSE cannot {action} {}: {}", home.display(), fault.message);
    match fault.errno {
        libc::EINVAL if !parameters.is_empty() => EngineError::usage(message).hint(format!(
            "a parameter in {} is invalid; to see HSE's log, add -p hse.gparams=logging.destination=stderr",
            parameters.join(",")
        )),
        libc::EBUSY => EngineError::failed(message).hint("another process has it open"),
        libc::EACCES | libc::EPERM | libc::EROFS => {
            EngineError::failed(message).hint("set hse.kvdb_home to a directory that you may read and write")
        }
        libc::ENOSPC | libc::EDQUOT => EngineError::failed(message).hint("make room on the device, or choose another"),
        libc::EPROTO => EngineError::failed(message)
            .hint("a newer HSE created it: load it again into an empty directory, or use the newer HSE"),
        _ => EngineError::failed(message).hint("see HSE's log: add -p hse.gparams=logging.destination=stderr"),
    }
}

/// HSE 3.0.0 does not refuse a KVDB of HSE 2: it starts to convert the KVDB, and then crashes (`cndb_txn_txid_get`).
/// HSE 2, on the other hand, refuses a KVDB of HSE 3.
pub fn refuse_format_of_2(home: &Path) -> Result<(), EngineError> {
    let meta = fs::read_to_string(home.join(MARKER)).unwrap_or_default();
    match format(&meta) {
        Some(version) if version < FORMAT_OF_3 => {
            Err(EngineError::failed(format!("HSE 2 created the KVDB in {}, and HSE 3 cannot read it", home.display()))
                .hint("load it again into an empty directory, or set hse.library to the libhse-2.so that created it"))
        }
        _ => Ok(()),
    }
}

/// The version of the on-media format, according to `kvdb.meta`.
fn format(meta: &str) -> Option<u32> {
    let (_, rest) = meta.split_once("\"omf_version\":")?;
    let rest = rest.trim_start();
    rest[..rest.find(|c: char| !c.is_ascii_digit())?].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_in_the_meta_file() {
        assert_eq!(format("{\n\t\"version\":\t2,\n\t\"omf_version\":\t4,\n\t\"cndb\": {}}"), Some(4));
        assert_eq!(format("{}"), None);
    }
}
