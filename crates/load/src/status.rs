//! The outcomes of operations.

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
            /// The names of the variants.
            pub const NAMES: [&'static str; Self::COUNT] = [$($name),+];

            /// The name of this variant.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }
        }
    };
}

crate::named_variants! {
    /// The outcome of an operation. The names and the meanings of the first nine are YCSB's.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Status {
        /// The operation succeeded.
        Ok = "OK",
        /// The operation failed, with no more specific status.
        Error = "ERROR",
        /// The record does not exist.
        NotFound = "NOT_FOUND",
        /// The store does not support the operation.
        NotImplemented = "NOT_IMPLEMENTED",
        /// The operation succeeded, but the answer is not the expected one.
        UnexpectedState = "UNEXPECTED_STATE",
        /// The request is not valid for this store (for example, the key is too long).
        BadRequest = "BAD_REQUEST",
        /// The operation is not allowed.
        Forbidden = "FORBIDDEN",
        /// The system is down, or cannot serve the request.
        ServiceUnavailable = "SERVICE_UNAVAILABLE",
        /// The operation was added to a batch, to be performed later.
        BatchedOk = "BATCHED_OK",
        /// There was no answer before the timeout.
        Timeout = "TIMEOUT",
        /// The insert of the record is still in flight, or its delete has since begun. This is neither a success nor a
        /// failure of the store.
        NotYet = "NOT_YET",
        /// The device is full, or a quota is exhausted.
        NoSpace = "NO_SPACE",
    }
}

impl Status {
    /// Whether the operation succeeded.
    #[inline]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok | Self::BatchedOk)
    }

    /// Whether the outcome counts as a failure of the store.
    #[inline]
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Ok | Self::BatchedOk | Self::NotYet)
    }
}
