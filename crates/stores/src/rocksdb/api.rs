//! RocksDB's C API (`include/rocksdb/c.h`): only the functions that the store needs, resolved at run time.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};

use crate::c_api::c_api;
use crate::error::EngineError;

/// A pointer to an opaque RocksDB object.
pub type Ptr = *mut c_void;
/// The location to which a call writes its error text.
pub type Errptr = *mut *mut c_char;

c_api! {
    "rocksdb_"
    required {
        open_column_families: fn(Ptr, *const c_char, c_int, *const *const c_char, *const Ptr, *mut Ptr, Errptr) -> Ptr;
        list_column_families: fn(Ptr, *const c_char, *mut usize, Errptr) -> *mut *mut c_char;
        list_column_families_destroy: fn(*mut *mut c_char, usize);
        column_family_handle_destroy: fn(Ptr);
        close: fn(Ptr);
        free: fn(*mut c_void);
        options_create: fn() -> Ptr;
        options_destroy: fn(Ptr);
        options_set_create_if_missing: fn(Ptr, c_uchar);
        options_set_create_missing_column_families: fn(Ptr, c_uchar);
        options_increase_parallelism: fn(Ptr, c_int);
        options_set_max_background_compactions: fn(Ptr, c_int);
        options_optimize_level_style_compaction: fn(Ptr, u64);
        options_set_info_log_level: fn(Ptr, c_int);
        get_options_from_string: fn(Ptr, *const c_char, Ptr, Errptr);
        readoptions_create: fn() -> Ptr;
        readoptions_destroy: fn(Ptr);
        writeoptions_create: fn() -> Ptr;
        writeoptions_destroy: fn(Ptr);
        writeoptions_set_sync: fn(Ptr, c_uchar);
        writeoptions_disable_WAL: fn(Ptr, c_int);
        flushoptions_create: fn() -> Ptr;
        flushoptions_destroy: fn(Ptr);
        get_pinned_cf: fn(Ptr, Ptr, Ptr, *const c_char, usize, Errptr) -> Ptr;
        pinnableslice_value: fn(Ptr, *mut usize) -> *const c_char;
        pinnableslice_destroy: fn(Ptr);
        put_cf: fn(Ptr, Ptr, Ptr, *const c_char, usize, *const c_char, usize, Errptr);
        delete_cf: fn(Ptr, Ptr, Ptr, *const c_char, usize, Errptr);
        create_iterator_cf: fn(Ptr, Ptr, Ptr) -> Ptr;
        iter_destroy: fn(Ptr);
        iter_seek: fn(Ptr, *const c_char, usize);
        iter_next: fn(Ptr);
        iter_valid: fn(Ptr) -> c_uchar;
        iter_key: fn(Ptr, *mut usize) -> *const c_char;
        iter_value: fn(Ptr, *mut usize) -> *const c_char;
        iter_get_error: fn(Ptr, Errptr);
        property_value_cf: fn(Ptr, Ptr, *const c_char) -> *mut c_char;
    }
    optional {
        flush_cf: fn(Ptr, Ptr, Ptr, Errptr);
        wait_for_compact: fn(Ptr, Ptr, Errptr);
        wait_for_compact_options_create: fn() -> Ptr;
        wait_for_compact_options_destroy: fn(Ptr);
        create_default_env: fn() -> Ptr;
        load_latest_options: fn(*const c_char, Ptr, bool, Ptr, *mut Ptr, *mut usize, *mut *mut *mut c_char,
            *mut *mut Ptr, Errptr);
    }
}

impl Api {
    /// Loads a shared object with lazy binding, because RocksDB 5.11.3 has an undefined symbol that is never called.
    /// The signatures are unchanged since 5.11.
    pub fn load(path: &Path) -> Result<(Library, Self), EngineError> {
        // SAFETY: loading runs the object's initialisers. The file was named by the user or is in the cache.
        let library = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL) };
        let resolved = library.and_then(|library| Self::resolve(&library).map(|api| (library, api)));
        resolved.map_err(|error| {
            // The loader's message is the `source` of libloading's error.
            let message = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            EngineError::failed(format!("cannot load RocksDB from {}: {message}", path.display()))
                .hint("it must be a shared object for this processor that exports RocksDB's C API")
        })
    }

    /// Calls a function that reports errors through an error pointer. The error text becomes the `Err`.
    pub fn call<T>(&self, call: impl FnOnce(Errptr) -> T) -> Result<T, String> {
        let mut error: *mut c_char = std::ptr::null_mut();
        let value = call(&raw mut error);
        if error.is_null() {
            return Ok(value);
        }
        // SAFETY: RocksDB set the pointer to a NUL-terminated string that `rocksdb_free` must free.
        unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.free)(error.cast());
            Err(text)
        }
    }

    /// The value of a column family's property, as a string.
    ///
    /// # Safety
    /// `db` and `family` must be open.
    pub unsafe fn property(&self, db: Ptr, family: Ptr, name: &CStr) -> Option<String> {
        // SAFETY: the caller guarantees the handles. The string must be freed here.
        unsafe {
            let text = (self.property_value_cf)(db, family, name.as_ptr());
            if text.is_null() {
                return None;
            }
            let value = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.free)(text.cast());
            Some(value)
        }
    }
}
