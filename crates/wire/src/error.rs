//! The error message when the engine cannot go on, and its exit code.

use loadstone_load::Refusal;
use loadstone_session::StoreError;
use loadstone_storage::sort::SortError;
use thiserror::Error;

/// An error for the user: one line, perhaps a hint, and an exit code.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct EngineError {
    /// One line, without a full stop.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// 1 for a failed run, 2 for bad usage.
    pub exit: u8,
}

impl EngineError {
    /// The run failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: 1 }
    }

    /// The command was wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: 2 }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A count with its noun, for messages: `1 operation`, `36 operations`.
pub fn count_noun(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Fields are named by their paths.
impl From<Refusal> for EngineError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { message, hint } = refusal.rename_fields(str::to_owned);
        Self::usage(message).hint(hint)
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self { message: error.message, hint: error.hint, exit: if error.usage { 2 } else { 1 } }
    }
}

impl From<SortError> for EngineError {
    fn from(error: SortError) -> Self {
        Self { message: error.message, hint: error.hint, exit: if error.usage { 2 } else { 1 } }
    }
}

/// Longer lines hide their own end, which names the place.
const LINE_MAX: usize = 1_200;
/// Bytes that remain of the beginning, and of the end, of a longer line.
const LINE_PART: usize = 500;

/// A text as one line of bounded length: the beginning and the end of a longer one.
pub fn shorten(text: &str) -> String {
    let line = text.replace('\n', "\\n");
    if line.len() <= LINE_MAX {
        return line;
    }
    let boundary = |near: usize| (0..=near).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
    let (first, last) = (boundary(LINE_PART), boundary(line.len() - LINE_PART));
    format!("{} … ({} bytes omitted) … {}", &line[..first], last - first, &line[last..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_beginning_and_end() {
        let line = shorten(&format!("name {}\n (file:3)", "é".repeat(3 << 20)));
        assert!(line.len() < LINE_MAX, "{}", line.len());
        assert!(line.starts_with("name é") && line.ends_with("é\\n (file:3)"), "{line}");
        assert!(line.contains(" bytes omitted) "));
        assert_eq!(shorten(&"x".repeat(LINE_MAX)).len(), LINE_MAX);
    }
}
