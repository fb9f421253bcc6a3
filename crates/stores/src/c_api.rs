//! C APIs, resolved at run time.

use std::ffi::CString;

use crate::error::EngineError;

/// Defines `Api`: the functions of a library that a store needs, by their names without the prefix. The signatures must be
/// the same as in the library's header.
macro_rules! c_api {
    (
        $prefix:literal
        required { $($name:ident: fn($($arg:ty),*) $(-> $ret:ty)?;)* }
        optional { $($opt:ident: fn($($oarg:ty),*) $(-> $oret:ty)?;)* }
    ) => {
        /// The resolved functions, each by its name without the prefix.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, non_snake_case)]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) $(-> $ret)?,)*
            $(pub $opt: Option<unsafe extern "C" fn($($oarg),*) $(-> $oret)?>,)*
        }

        impl Api {
            /// The functions may be called while the library is loaded.
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

/// A text for C.
pub fn c_text(text: impl Into<Vec<u8>>) -> Result<CString, EngineError> {
    CString::new(text).map_err(|_| EngineError::usage("a path, name or parameter holds a NUL byte"))
}
