//! C APIs, resolved at run time.

use std::ffi::CString;

use crate::error::EngineError;

/// Defines `Api`: the functions of a library that a store needs, without the prefix of their names. The signatures must
/// be the same as in the library's header.
macro_rules! c_api {
    (
        $prefix:literal
        required { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* }
        optional { $($opt:ident: fn($($oarg:ty),*) $(-> $oret:ty)?;)* }
    ) => {
        /// The resolved functions, without the prefix of their names.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, non_snake_case)]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub $opt: Option<unsafe extern "C" fn($($oarg),*) $(-> $oret)?>,)*
        }

        impl Api {
            /// Resolves the functions, which may be called only while the library is loaded.
            fn resolve(library: &Library) -> Result<Self, libloading::Error> {
                // SAFETY: the signatures are the same as in the library's header.
                unsafe {
                    Ok(Self {
                        $($name: *library.get(concat!($prefix, stringify!($name), "\0").as_bytes())?,)*
                        $($opt: library.get(concat!($prefix, stringify!($opt), "\0").as_bytes()).ok().map(|s| *s),)*
                    })
                }
            }
        }
    };
}
pub(crate) use c_api;

/// Converts text to a NUL-terminated string for C.
pub fn c_text(text: impl Into<Vec<u8>>) -> Result<CString, EngineError> {
    CString::new(text).map_err(|_| EngineError::usage("a path, name or parameter contains a NUL byte"))
}
