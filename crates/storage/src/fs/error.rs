//! Errors of file systems, with the file, the offset and a remedy.

use std::fmt;
use std::io;

use loadstone_load::Status;
use loadstone_session::EngineError;

/// The type of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsErrorKind {
    /// The file does not exist.
    NotFound,
    /// The file already exists.
    AlreadyExists,
    /// The action is not allowed, because of permissions or a read-only file system.
    Forbidden,
    /// The device is full, a quota is exhausted, or the file is too large.
    NoSpace,
    /// The file system does not support the action.
    Unsupported,
    /// The request is not valid.
    Invalid,
    /// The file system does not respond, or has too few servers.
    Unavailable,
    /// There was no response in time.
    Timeout,
    /// The end of the file was lost. The writer is now positioned at the end of the remaining file, and the caller must
    /// write the lost bytes again.
    Rewound,
    /// The bytes differ from the bytes written, according to a checksum or Loadstone's own comparison.
    Corrupt,
    /// Something else.
    Other,
}

/// An error of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsError {
    /// The type of the error.
    pub kind: FsErrorKind,
    /// The action that failed: `write`, `open` …
    pub action: &'static str,
    /// The file or directory.
    pub path: String,
    /// The offset in the file, if known.
    pub offset: Option<u64>,
    /// The file system's own message.
    pub message: String,
    /// A remedy, if known.
    pub hint: Option<String>,
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}", self.action, self.path)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for FsError {}

impl FsError {
    /// Creates an error, with the usual hint for its type.
    pub fn new(kind: FsErrorKind, action: &'static str, path: &str, message: impl Into<String>) -> Self {
        let hint = match kind {
            FsErrorKind::NoSpace => Some("free space, or use fewer or smaller files".to_owned()),
            FsErrorKind::Forbidden => Some("use a directory that this user may write to and read from".to_owned()),
            FsErrorKind::Unavailable => {
                Some("check that the servers are running and the address is correct".to_owned())
            }
            _ => None,
        };
        Self { kind, action, path: path.to_owned(), offset: None, message: message.into(), hint }
    }

    /// Converts an error of the operating system.
    pub fn io(action: &'static str, path: &str, error: &io::Error) -> Self {
        let kind = match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => FsErrorKind::NoSpace,
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => FsErrorKind::Forbidden,
            Some(libc::ENOENT) => FsErrorKind::NotFound,
            Some(libc::EEXIST) => FsErrorKind::AlreadyExists,
            Some(libc::EINVAL | libc::EISDIR | libc::ENOTDIR | libc::ENAMETOOLONG) => FsErrorKind::Invalid,
            Some(libc::EOPNOTSUPP) => FsErrorKind::Unsupported,
            _ => match error.kind() {
                io::ErrorKind::TimedOut => FsErrorKind::Timeout,
                io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::NotConnected
                | io::ErrorKind::UnexpectedEof => FsErrorKind::Unavailable,
                _ => FsErrorKind::Other,
            },
        };
        let failed = Self::new(kind, action, path, error.to_string());
        match error.raw_os_error() {
            Some(libc::ENOTDIR) => failed.hint("use a directory: this is a file, or a part of its path is one"),
            _ => failed,
        }
    }

    /// Adds the offset in the file.
    #[must_use]
    pub fn with_offset(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// Replaces the hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The status under which the error is counted.
    pub fn status(&self) -> Status {
        match self.kind {
            FsErrorKind::NotFound => Status::NotFound,
            FsErrorKind::AlreadyExists | FsErrorKind::Invalid => Status::BadRequest,
            FsErrorKind::Forbidden => Status::Forbidden,
            FsErrorKind::NoSpace => Status::NoSpace,
            FsErrorKind::Unsupported => Status::NotImplemented,
            FsErrorKind::Unavailable | FsErrorKind::Rewound => Status::ServiceUnavailable,
            FsErrorKind::Timeout => Status::Timeout,
            FsErrorKind::Corrupt => Status::UnexpectedState,
            FsErrorKind::Other => Status::Error,
        }
    }
}

impl From<FsError> for EngineError {
    fn from(error: FsError) -> Self {
        let own = if matches!(error.kind, FsErrorKind::Unsupported | FsErrorKind::Invalid) {
            Self::usage
        } else {
            Self::failed
        };
        Self { hint: error.hint.clone(), ..own(error.to_string()) }
    }
}
