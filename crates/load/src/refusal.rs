//! The reason why a spec cannot be run.

use std::fmt::Display;

/// An error message of one line, and a hint. Fields of the spec appear as their paths in braces
/// (`{work.insert_start}`), so that a front end can replace them with the older tool's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The problem.
    pub message: String,
    /// What the user can do next.
    pub hint: String,
}

impl Refusal {
    /// A refusal with its hint.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    /// The refusal of a value for a field.
    pub fn for_value(field: &str, required: &str, value: impl Display) -> Self {
        Self::new(format!("{{{field}}} must be {required}, got {value}"), format!("change {{{field}}}"))
    }

    /// The first field that the message names.
    pub fn field(&self) -> Option<&str> {
        let (_, after) = self.message.split_once('{')?;
        after.split_once('}').map(|(field, _)| field)
    }

    /// The message and the hint, with each field replaced by the result of `name`.
    #[must_use]
    pub fn rename_fields(&self, name: impl Fn(&str) -> String) -> Self {
        let rename = |text: &str| {
            let mut renamed = String::new();
            for (number, part) in text.split('{').enumerate() {
                match part.split_once('}') {
                    Some((field, after)) if number > 0 => {
                        renamed.push_str(&name(field));
                        renamed.push_str(after);
                    }
                    _ => renamed.push_str(part),
                }
            }
            renamed
        };
        Self { message: rename(&self.message), hint: rename(&self.hint) }
    }
}

/// Refuses a number outside a range that includes both ends. NaN is outside.
pub fn check_range(field: &str, value: f64, low: f64, high: f64) -> Result<(), Refusal> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Refusal::for_value(field, &format!("between {low} and {high}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_renamed_in_message_and_hint() {
        let refusal = Refusal::new("{a.min} 3 is above {a.max} 2", "raise {a.max}");
        let renamed = refusal.rename_fields(|field| field.replace("a.", "scan_"));
        assert_eq!(renamed, Refusal::new("scan_min 3 is above scan_max 2", "raise scan_max"));
        assert_eq!((refusal.field(), renamed.field()), (Some("a.min"), None));
    }

    #[test]
    fn values_outside_a_range_are_refused() {
        assert_eq!(check_range("x", 0.5, 0.0, 1.0), Ok(()));
        let refusal = check_range("x", 5.0, 0.0, 1.0).unwrap_err();
        assert_eq!(refusal.message, "{x} must be between 0 and 1, got 5");
        assert!(check_range("x", f64::NAN, 0.0, 1.0).is_err());
    }
}
