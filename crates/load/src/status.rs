//! The outcomes of operations.

/// The outcome of an operation. The names, and the meanings of the first nine, are YCSB's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// The operation succeeded.
    Ok,
    /// The operation failed, with no more specific status.
    Error,
    /// The record does not exist.
    NotFound,
    /// The store does not support the operation.
    NotImplemented,
    /// The operation succeeded, but the answer is not the expected one.
    UnexpectedState,
    /// The request is not valid for this store (for example, the key is too long).
    BadRequest,
    /// The operation is not allowed.
    Forbidden,
    /// The system is down, or cannot serve the request.
    ServiceUnavailable,
    /// The operation was added to a batch, to be performed later.
    BatchedOk,
    /// There was no answer before the timeout.
    Timeout,
    /// The insert of the record is still in flight, or its delete has since begun. This is neither a success nor a
    /// failure of the store.
    NotYet,
    /// The device or the quota is full.
    NoSpace,
}

impl Status {
    /// Number of statuses.
    pub const COUNT: usize = 12;
    /// Every status, in numerical order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Ok,
        Self::Error,
        Self::NotFound,
        Self::NotImplemented,
        Self::UnexpectedState,
        Self::BadRequest,
        Self::Forbidden,
        Self::ServiceUnavailable,
        Self::BatchedOk,
        Self::Timeout,
        Self::NotYet,
        Self::NoSpace,
    ];

    /// The status's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Error => "ERROR",
            Self::NotFound => "NOT_FOUND",
            Self::NotImplemented => "NOT_IMPLEMENTED",
            Self::UnexpectedState => "UNEXPECTED_STATE",
            Self::BadRequest => "BAD_REQUEST",
            Self::Forbidden => "FORBIDDEN",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            Self::BatchedOk => "BATCHED_OK",
            Self::Timeout => "TIMEOUT",
            Self::NotYet => "NOT_YET",
            Self::NoSpace => "NO_SPACE",
        }
    }

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
