//! Names of triggers and of their targets.

use super::TRIGGER_NAME_BYTES_MAX;
use crate::values::id::TriggerId;
use crate::values::text::{serde_as_text, wrapped_text};
use std::str::FromStr;
use utoipa::ToSchema;

/// Characters of a text that an error repeats.
const SHOWN_CHARS_MAX: usize = 64;
/// The form of a name.
const FORM: &str = "1 to 64 of `a-z`, `0-9`, `-` and `_`";
const _: () = assert!(TRIGGER_NAME_BYTES_MAX == 64);

/// A text that is no name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no name of {of}; write {FORM}")]
pub struct NotATriggerName {
    given: String,
    of: &'static str,
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident: $of:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, ToSchema)]
        pub struct $name(String);

        wrapped_text!($name);
        serde_as_text!($name::from_str);

        impl FromStr for $name {
            type Err = NotATriggerName;

            fn from_str(text: &str) -> Result<Self, NotATriggerName> {
                if shapes::is_name(text, b"-_") {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(NotATriggerName {
                        given: text
                            .chars()
                            .take(SHOWN_CHARS_MAX)
                            .flat_map(char::escape_debug)
                            .collect(),
                        of: $of,
                    })
                }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "description": concat!("The name of ", $of, "."),
                    "type": "string",
                    "pattern": "^[a-z0-9_-]+$",
                    "minLength": 1,
                    "maxLength": TRIGGER_NAME_BYTES_MAX,
                })
            }
        }
    )*};
}

names! {
    /// The name of a trigger: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    TriggerName: "a trigger";
    /// The name of a further target of a trigger: 1 to 64 of `a-z`, `0-9`, `-` and `_`.
    TriggerTargetName: "a trigger's target";
}

impl TriggerName {
    /// Returns the id of the trigger with this name.
    #[must_use]
    pub fn id(&self) -> TriggerId {
        TriggerId::of_name(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_short_word() {
        for (text, is) in [
            ("morning", true),
            ("a-b_9", true),
            ("", false),
            ("A", false),
            ("a/b", false),
            ("a b", false),
            (&"x".repeat(64), true),
            (&"x".repeat(65), false),
        ] {
            assert_eq!(text.parse::<TriggerName>().is_ok(), is, "{text}");
        }
        let error = "A\n".parse::<TriggerName>().unwrap_err().to_string();
        assert!(error.contains(r"`A\n`") && error.contains(FORM), "{error}");
    }

    #[test]
    fn a_name_reads_as_it_is_written() {
        let name: TriggerName = "morning".parse().unwrap();
        let text = serde_json::to_string(&name).unwrap();
        assert_eq!(text, "\"morning\"");
        assert_eq!(serde_json::from_str::<TriggerName>(&text).unwrap(), name);
        assert!(serde_json::from_str::<TriggerTargetName>("\"No\"").is_err());
        assert_eq!(name.id(), TriggerId::of_name("morning"));
    }
}
