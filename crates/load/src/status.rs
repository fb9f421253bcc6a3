//! How an operation ended.

/// The outcome of an operation. Names and the first nine meanings are YCSB's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Ok,
    /// Failed, without a better word.
    Error,
    /// The record does not exist.
    NotFound,
    /// The store cannot do this.
    NotImplemented,
    /// Done, but the answer is not what it must be.
    UnexpectedState,
    /// The request is not valid for this store (a key too long, say).
    BadRequest,
    /// Not allowed.
    Forbidden,
    /// The system is not there, or not able to serve.
    ServiceUnavailable,
    /// Put in a batch, to be done later.
    BatchedOk,
    /// No answer in time.
    Timeout,
    /// The record's insert is still under way, or its delete began meanwhile: neither a success nor a failure of the
    /// store.
    NotYet,
    /// The device or quota is full.
    NoSpace,
}

impl Status {
    /// How many there are.
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

    /// The name that reports show.
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

    /// Whether the operation did what it should.
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
