//! `hse_init` and `hse_fini`, which are called once each: before and after everything else. A process can open only one
//! KVDB at a time (hse.h, "Only one KVDB can be open at any one time").

use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

use super::api::{Api, Arguments};
use super::settings::Settings;
use crate::c_api::c_text;
use crate::error::EngineError;

/// The libraries that are initialised in this process.
static INITIALISED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// An initialised HSE library. Dropping it calls `hse_fini`.
#[derive(Debug)]
pub struct Subsystem {
    /// The library's functions.
    pub api: Api,
}

impl Subsystem {
    /// Initialises the library.
    pub fn start(api: Api, settings: &Settings) -> Result<Self, EngineError> {
        // The list is locked during the calls, because they are not thread safe.
        let mut initialised = INITIALISED.lock().unwrap_or_else(PoisonError::into_inner);
        if initialised.contains(&api.identity()) {
            return Err(EngineError::failed("this process has a KVDB open, and HSE opens only one")
                .hint("close it first, or use another process"));
        }
        let config = settings.config_file.as_ref().map(|path| c_text(path.as_os_str().as_bytes())).transpose()?;
        let parameters = settings.init(api.is_3());
        // SAFETY: the strings outlive the call, and the lock excludes concurrent calls.
        let result = Arguments::new(&parameters)?.with_params(|count, values| unsafe {
            (api.init)(config.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()), count, values)
        });
        api.check(result).map_err(|fault| {
            let message = format!("HSE does not start with {}: {}", parameters.join(","), fault.message);
            let error = if fault.errno == libc::EINVAL { EngineError::usage } else { EngineError::failed };
            error(message).hint("hse.gparams takes HSE's global parameters; standard error names the invalid one")
        })?;
        initialised.push(api.identity());
        Ok(Self { api })
    }
}

impl Drop for Subsystem {
    fn drop(&mut self) {
        let mut initialised = INITIALISED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the library's KVDB is closed, and the lock excludes concurrent calls.
        unsafe { (self.api.fini)() };
        initialised.retain(|identity| *identity != self.api.identity());
    }
}
