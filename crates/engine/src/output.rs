//! The only place that prints: stdout is data, stderr is talk.
//!
//! What stdout did not take is remembered: a script whose figures are lost must notice. A reader that closed its end has
//! seen what it wanted, which is not a failure.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

static LOST: OnceLock<String> = OnceLock::new();

/// Writes to stdout and flushes.
pub fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Why something that was printed did not arrive.
pub fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Writes to stderr.
pub fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
