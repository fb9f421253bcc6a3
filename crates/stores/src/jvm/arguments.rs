//! Splits a line into arguments as a shell does.

use crate::error::EngineError;

/// The arguments in `-jvm-args`. They are split at blanks outside quotes; a backslash quotes the next character.
pub fn split(text: &str) -> Result<Vec<String>, EngineError> {
    let mut arguments = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (_, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, None) if letter.is_whitespace() => arguments.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err(EngineError::usage(format!("a quote is not closed in -jvm-args: {text}"))
            .hint("write -jvm-args \"-Xmx1g -Dname='two words'\""));
    }
    arguments.extend(word);
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_split_as_a_shell_does() {
        assert_eq!(split("-Xmx1g  -Da=b ").unwrap(), ["-Xmx1g", "-Da=b"]);
        assert_eq!(
            split(r#"-Da='two words' "-Db=it's" -Dc=\ d ''"#).unwrap(),
            ["-Da=two words", "-Db=it's", "-Dc= d", ""]
        );
        assert!(split("-Da='open").unwrap_err().is_usage());
        assert!(split(" ").unwrap().is_empty());
    }
}
