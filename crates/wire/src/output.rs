//! The only module that prints: data to stdout, messages to stderr.
//!
//! A failed write to stdout is recorded, so that a script whose figures were not written gets an error. A reader that
//! closed its end of the pipe wants no more output, so this is not a failure.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

static LOST: OnceLock<String> = OnceLock::new();

/// Writes a text to stdout, and flushes.
pub fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// The reason why output could not be written; `None` if all of it was.
pub fn loss_reason() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Writes a text to stderr.
pub fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
