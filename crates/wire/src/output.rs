//! The only module that prints: data to stdout, messages to stderr.
//!
//! A failed write to stdout is recorded, so that a script whose figures were not written gets an error. A closed pipe
//! is not a failure, because its reader wants no more output.

use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

use serde::Serialize;

use crate::error::EngineError;

static LOST: OnceLock<String> = OnceLock::new();

/// Writes text to stdout, and flushes it.
pub fn print_out(text: &str) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Writes a value as one line of JSON to stdout. `what` names the value in errors.
pub fn out_json(what: &str, value: &impl Serialize) -> Result<(), EngineError> {
    let text =
        serde_json::to_string(value).map_err(|error| EngineError::failed(format!("cannot print {what}: {error}")))?;
    print_out(&format!("{text}\n"));
    Ok(())
}

/// The reason why output could not be written; `None` if all output was written.
pub fn loss_reason() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Writes text to stderr.
pub fn print_err(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
