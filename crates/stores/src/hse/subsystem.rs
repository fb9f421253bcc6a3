//! `hse_init` and `hse_fini`: called once, before and after everything else, and one KVDB at a time (hse.h, "Only one
//! KVDB can be open at any one time").

use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

use super::api::{Api, Arguments};
use super::settings::Settings;
use crate::c_api::c_text;
use crate::error::EngineError;

/// The initialised libraries of this process.
static INITIALISED: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// An initialised HSE; dropping it calls `hse_fini`.
#[derive(Debug)]
pub struct Subsystem {
    /// Its functions.
    pub api: Api,
}

impl Subsystem {
    /// Initialises it.
    pub fn start(api: Api, settings: &Settings) -> Result<Self, EngineError> {
        // Locked during the calls, which are not thread safe.
        let mut initialised = INITIALISED.lock().unwrap_or_else(PoisonError::into_inner);
        if initialised.contains(&api.identity()) {
            return Err(EngineError::failed("this process has a KVDB open, and HSE opens one at a time")
                .hint("close it first, or use another process"));
        }
        let config = settings.config_file.as_ref().map(|path| c_text(path.as_os_str().as_bytes())).transpose()?;
        let parameters = settings.init(api.is_3());
        // SAFETY: the texts outlive the call; the lock excludes concurrent calls.
        let result = Arguments::new(&parameters)?.with(|count, values| unsafe {
            (api.init)(config.as_ref().map_or(std::ptr::null(), |path| path.as_ptr()), count, values)
        });
        api.check(result).map_err(|fault| {
            let message = format!("HSE does not start with {}: {}", parameters.join(","), fault.message);
            let error = if fault.errno == libc::EINVAL { EngineError::usage } else { EngineError::failed };
            error(message)
                .hint("hse.gparams takes HSE's global parameters; HSE's messages on standard error name the wrong one")
        })?;
        initialised.push(api.identity());
        Ok(Self { api })
    }
}

impl Drop for Subsystem {
    fn drop(&mut self) {
        let mut initialised = INITIALISED.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: its KVDB is closed; the lock excludes concurrent calls.
        unsafe { (self.api.fini)() };
        initialised.retain(|identity| *identity != self.api.identity());
    }
}
