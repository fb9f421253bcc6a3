//! HSE's C API (`include/hse/hse.h`), resolved at run time. The signatures in 2.1 and 3.0 differ only in the names of
//! their parameters, so a single binding serves both versions.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use crate::c_api::{c_api, c_text};
use crate::error::EngineError;

/// A pointer to an opaque HSE object.
pub type Ptr = *mut c_void;
/// `hse_err_t`: 0 means success.
type Error = u64;
/// The type of a `const char *const *paramv`.
type Params = *const *const c_char;

/// The error of a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HseFault {
    /// The error number, as in errno(3).
    pub errno: c_int,
    /// HSE's message: its source line, and the text for the errno.
    pub message: String,
}

c_api! {
    "hse_"
    required {
        init: fn(*const c_char, usize, Params) -> Error;
        fini: fn();
        strerror: fn(Error, *mut c_char, usize) -> usize;
        err_to_errno: fn(Error) -> c_int;
        kvdb_create: fn(*const c_char, usize, Params) -> Error;
        kvdb_open: fn(*const c_char, usize, Params, *mut Ptr) -> Error;
        kvdb_close: fn(Ptr) -> Error;
        kvdb_sync: fn(Ptr, c_uint) -> Error;
        kvdb_kvs_create: fn(Ptr, *const c_char, usize, Params) -> Error;
        kvdb_kvs_open: fn(Ptr, *const c_char, usize, Params, *mut Ptr) -> Error;
        kvdb_kvs_close: fn(Ptr) -> Error;
        kvs_put: fn(Ptr, c_uint, Ptr, *const c_void, usize, *const c_void, usize) -> Error;
        kvs_get: fn(Ptr, c_uint, Ptr, *const c_void, usize, *mut bool, *mut c_void, usize, *mut usize) -> Error;
        kvs_delete: fn(Ptr, c_uint, Ptr, *const c_void, usize) -> Error;
        kvs_cursor_create: fn(Ptr, c_uint, Ptr, *const c_void, usize, *mut Ptr) -> Error;
        kvs_cursor_seek: fn(Ptr, c_uint, *const c_void, usize, *mut *const c_void, *mut usize) -> Error;
        kvs_cursor_read: fn(Ptr, c_uint, *mut *const c_void, *mut usize, *mut *const c_void, *mut usize, *mut bool)
            -> Error;
        kvs_cursor_destroy: fn(Ptr) -> Error;
    }
    optional {
        kvdb_param_get: fn(Ptr, *const c_char, *mut c_char, usize, *mut usize) -> Error;
        kvs_param_get: fn(Ptr, *const c_char, *mut c_char, usize, *mut usize) -> Error;
        // This function is new in 3.0, so it distinguishes 3.0 from 2.x, whose parameters have different names.
        kvdb_attach: fn(*const c_char, *const c_char, Params) -> Error;
    }
}

impl Api {
    /// Loads a shared object, given by its path or by a name that the dynamic loader looks up.
    pub fn load(name: &OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: loading runs the object's initialisers. The user or the loader's configuration chose the file.
        let library = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }?;
        let api = Self::resolve(&library)?;
        // The library stays loaded until the process ends: when hse_fini returns, a thread of HSE may still be exiting,
        // and unmapping its code would make it crash.
        std::mem::forget(library);
        Ok(api)
    }

    /// Whether the library is HSE 3 or later.
    pub fn is_3(&self) -> bool {
        self.kvdb_attach.is_some()
    }

    /// Identifies this copy of the library, because a process may have loaded several copies.
    pub fn identity(&self) -> usize {
        self.init as usize
    }

    /// The path of the file that the dynamic loader found.
    pub fn path(&self) -> Option<PathBuf> {
        let mut info = libc::Dl_info {
            dli_fname: std::ptr::null(),
            dli_fbase: std::ptr::null_mut(),
            dli_sname: std::ptr::null(),
            dli_saddr: std::ptr::null_mut(),
        };
        // SAFETY: the library is never unloaded, so its name remains valid.
        unsafe {
            if libc::dladdr(self.init as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            let name = CStr::from_ptr(info.dli_fname).to_string_lossy().into_owned();
            Some(std::fs::canonicalize(&name).unwrap_or_else(|_| name.into()))
        }
    }

    /// Converts the return value of a call to a result.
    #[inline]
    pub fn check(&self, error: Error) -> Result<(), HseFault> {
        if error == 0 { Ok(()) } else { Err(self.fault(error)) }
    }

    #[cold]
    fn fault(&self, error: Error) -> HseFault {
        let mut message = [0 as c_char; 256];
        // SAFETY: the buffer has the length that is passed, and HSE terminates what it writes with a NUL.
        unsafe {
            (self.strerror)(error, message.as_mut_ptr(), message.len());
            HseFault {
                errno: (self.err_to_errno)(error),
                message: CStr::from_ptr(message.as_ptr()).to_string_lossy().into_owned(),
            }
        }
    }
}

/// Parameters, to be passed as `paramc` and `paramv`.
#[derive(Debug)]
pub struct Arguments(Vec<CString>);

impl Arguments {
    /// Converts strings of the form `name=value`.
    pub fn new(parameters: &[String]) -> Result<Self, EngineError> {
        parameters.iter().map(|text| c_text(text.as_str())).collect::<Result<_, _>>().map(Self)
    }

    /// Passes `paramc` and `paramv` to a call.
    pub fn with_params<T>(&self, call: impl FnOnce(usize, Params) -> T) -> T {
        let pointers: Vec<*const c_char> = self.0.iter().map(|text| text.as_ptr()).collect();
        call(pointers.len(), pointers.as_ptr())
    }
}

/// Reads a parameter's value with one of the two getters.
///
/// # Safety
/// `handle` must be an open KVDB for `hse_kvdb_param_get`, or an open KVS for `hse_kvs_param_get`.
pub unsafe fn parameter(
    getter: Option<unsafe extern "C" fn(Ptr, *const c_char, *mut c_char, usize, *mut usize) -> Error>,
    handle: Ptr,
    name: &CStr,
) -> Option<String> {
    let mut text = [0 as c_char; 128];
    let mut needed = 0usize;
    // SAFETY: the caller guarantees the handle. The buffer has the length that is passed, and longer values are
    // truncated.
    unsafe {
        if getter?(handle, name.as_ptr(), text.as_mut_ptr(), text.len() - 1, &raw mut needed) != 0 {
            return None;
        }
        // Strings are in JSON quotes; numbers are not.
        Some(CStr::from_ptr(text.as_ptr()).to_string_lossy().trim_matches('"').to_owned())
    }
}
