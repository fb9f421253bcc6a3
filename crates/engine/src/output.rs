//! The only place that prints: stdout is data, stderr is talk. A reader that went away is no reason to panic.

use std::io::Write;

/// Writes to stdout and flushes.
pub fn out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Writes to stderr.
pub fn err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
