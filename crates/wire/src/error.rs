//! Formats error messages for the terminal.

pub use loadstone_session::error::{EngineError, ErrorKind};

/// Formats a count with its noun for messages: `1 operation`, `36 operations`.
pub fn count_noun(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Maximum length of a line, bytes: a terminal would not show the end of a longer line, and the end names the place.
const LINE_MAX: usize = 1_200;
/// Number of bytes that are kept from the beginning and from the end of a longer line.
const LINE_PART: usize = 500;

/// Formats text as one line of bounded length: only the beginning and the end of longer text are kept.
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
