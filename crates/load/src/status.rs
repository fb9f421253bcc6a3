//! How an operation ended.

/// Defines an enum whose variants have names.
#[macro_export]
macro_rules! named_variants {
    (
        $(#[$attribute:meta])*
        pub enum $type:ident { $($(#[$variant_attribute:meta])* $variant:ident = $name:literal,)+ }
    ) => {
        $(#[$attribute])*
        pub enum $type {
            $($(#[$variant_attribute])* $variant,)+
        }

        impl $type {
            /// The number of variants.
            pub const COUNT: usize = [$($name),+].len();
            /// Every variant, in the order of their numbers.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$variant),+];
            /// Their names.
            pub const NAMES: [&'static str; Self::COUNT] = [$($name),+];

            /// Its name.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

crate::named_variants! {
    /// The outcome of an operation. Names and the first nine meanings are YCSB's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Status {
        /// Done.
        Ok = "OK",
        /// Failed, with no more specific status.
        Error = "ERROR",
        /// The record does not exist.
        NotFound = "NOT_FOUND",
        /// The store does not support this.
        NotImplemented = "NOT_IMPLEMENTED",
        /// Done, but the answer is not the expected one.
        UnexpectedState = "UNEXPECTED_STATE",
        /// The request is not valid for this store (for example, the key is too long).
        BadRequest = "BAD_REQUEST",
        /// Not allowed.
        Forbidden = "FORBIDDEN",
        /// The system is down or unable to serve.
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        /// Added to a batch, to be done later.
        BatchedOk = "BATCHED_OK",
        /// No answer before the timeout.
        Timeout = "TIMEOUT",
        /// The record's insert is still in flight, or its delete has begun since: neither a success nor a failure of the
        /// store.
        NotYet = "NOT_YET",
        /// The device or quota is full.
        NoSpace = "NO_SPACE",
    }
}

impl Status {
    /// Whether the operation succeeded.
    #[inline]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::BatchedOk)
    }

    /// Whether it counts as a failure of the store.
    #[inline]
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Ok | Self::BatchedOk | Self::NotYet)
    }
}
