//! How an operation ended.

/// The outcome of an operation. Names and the first nine meanings are YCSB's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok,
    /// Failed, with no more specific status.
    Error,
    /// The record does not exist.
    NotFound,
    /// The store does not support this.
    NotImplemented,
    /// Done, but the answer is not the expected one.
    UnexpectedState,
    /// The request is not valid for this store (for example, the key is too long).
    BadRequest,
    /// Not allowed.
    Forbidden,
    /// The system is down or unable to serve.
    ServiceUnavailable,
    /// Added to a batch, to be done later.
    BatchedOk,
    /// No answer before the timeout.
    Timeout,
    /// The record's insert is still in flight, or its delete has begun since: neither a success nor a failure of the
    /// store.
    NotYet,
    /// The device or quota is full.
    NoSpace,
}

impl Status {
    /// Number of statuses.
    pub const COUNT: usize = 12;
    /// Every status, in the order of their numbers.
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

    /// The name in reports.
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

    /// Whether it counts as a failure of the store.
    #[inline]
    pub const fn is_failure(self) -> bool {
        !matches!(self, Self::Ok | Self::BatchedOk | Self::NotYet)
    }
}
