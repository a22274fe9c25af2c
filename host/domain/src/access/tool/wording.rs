//! Checks of a component's texts about itself. They are for people and models: bounded, and without
//! characters that only one of the two sees.

use super::ToolDefinition;
use crate::values::shown::{is_hidden, visible};
use serde_json::Value;

/// Bytes of the description of one tool, and of the summary of an agent: 4 KiB.
pub const DESCRIPTION_BYTES_MAX: usize = 4 << 10;
/// Bytes of all texts of one component: descriptions, and every key and text of its schemas. 64
/// KiB.
pub const DESCRIPTIONS_BYTES_MAX: usize = 64 << 10;

/// Characters shown of a name.
const NAME_CHARS_SHOWN: usize = 64;
/// Keywords of a schema whose texts may have several lines.
const OF_LINES: [&str; 4] = ["description", "$comment", "default", "examples"];
/// Keyword of a schema with a text that has the limit of a tool's description.
const DESCRIPTION: &str = "description";

/// The reason why a description is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWording {
    /// A text has an invisible character.
    #[error("`{place}` has the hidden character U+{character:04X} after {before} others", character = u32::from(*character))]
    Hidden {
        /// The place of the text.
        place: String,
        /// The character.
        character: char,
        /// Characters before it.
        before: usize,
    },
    /// A description is too long.
    #[error("`{place}` has {bytes} bytes; {DESCRIPTION_BYTES_MAX} at most")]
    TooLong {
        /// Its place.
        place: String,
        /// Its bytes.
        bytes: usize,
    },
    /// All descriptions together are too long.
    #[error(
        "the descriptions of all tools and the texts of their schemas have {bytes} bytes \
             together; {DESCRIPTIONS_BYTES_MAX} at most"
    )]
    AllTooLong {
        /// Their bytes.
        bytes: usize,
    },
}

/// Checks a component's texts about its tools.
///
/// # Errors
/// The first text with hidden characters, or the descriptions are too long.
pub fn check_tools(tools: &[ToolDefinition]) -> Result<(), BadWording> {
    let mut bytes = 0;
    for tool in tools {
        let name = visible(&tool.name, NAME_CHARS_SHOWN);
        check_text("name", &tool.name, false)?;
        bytes += check_description(&format!("{name}.description"), &tool.description)?;
        check_schema(
            &format!("{name}.arguments"),
            &tool.arguments,
            false,
            &mut bytes,
        )?;
        if let Some(results) = &tool.results {
            check_schema(&format!("{name}.results"), results, false, &mut bytes)?;
        }
        for capability in &tool.capabilities {
            check_text(&format!("{name}.capabilities"), capability, false)?;
        }
    }
    if bytes > DESCRIPTIONS_BYTES_MAX {
        Err(BadWording::AllTooLong { bytes })
    } else {
        Ok(())
    }
}

/// Checks a name for people, which has one line.
///
/// # Errors
/// It has hidden characters, or is too long.
pub fn check_name(place: &str, text: &str) -> Result<(), BadWording> {
    check_length(place, text)?;
    check_text(place, text, false)
}

/// Checks a description, which may have several lines. Returns its bytes.
///
/// # Errors
/// It has hidden characters, or is too long.
pub fn check_description(place: &str, text: &str) -> Result<usize, BadWording> {
    check_length(place, text)?;
    check_text(place, text, true).map(|()| text.len())
}

fn check_length(place: &str, text: &str) -> Result<(), BadWording> {
    let bytes = text.len();
    if bytes > DESCRIPTION_BYTES_MAX {
        Err(BadWording::TooLong {
            place: place.to_owned(),
            bytes,
        })
    } else {
        Ok(())
    }
}

fn check_text(place: &str, text: &str, lines: bool) -> Result<(), BadWording> {
    let is_bad = |char: char| is_hidden(char) && !(lines && matches!(char, '\n' | '\t'));
    let found = text.chars().enumerate().find(|(_, char)| is_bad(*char));
    found.map_or(Ok(()), |(before, character)| {
        Err(BadWording::Hidden {
            place: place.to_owned(),
            character,
            before,
        })
    })
}

/// Checks every key and every text of a schema. Its depth has the limit of JSON from outside.
fn check_schema(
    place: &str,
    schema: &Value,
    lines: bool,
    bytes: &mut usize,
) -> Result<(), BadWording> {
    match schema {
        Value::String(text) => {
            *bytes += text.len();
            check_text(place, text, lines)
        }
        Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
            check_schema(&format!("{place}[{index}]"), item, lines, bytes)
        }),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            let inner = format!("{place}.{}", visible(key, NAME_CHARS_SHOWN));
            check_text(&inner, key, false)?;
            *bytes += key.len();
            if key == DESCRIPTION
                && let Some(text) = value.as_str()
            {
                check_length(&inner, text)?;
            }
            check_schema(
                &inner,
                value,
                lines || OF_LINES.contains(&key.as_str()),
                bytes,
            )
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(description: &str, arguments: Value) -> ToolDefinition {
        ToolDefinition::reading("find", description, arguments)
    }

    fn refused(tool: ToolDefinition) -> String {
        check_tools(&[tool]).unwrap_err().to_string()
    }

    #[test]
    fn hidden_characters_are_refused_with_their_place_wherever_they_stand() {
        let one = |value: &str| json!({ "type": "object", "properties": { "path": { "type": "string", "enum": ["a", value] } } });
        for (tool, place) in [
            (
                tool("find\u{200b}", json!({})),
                "`find.description` has the hidden character U+200B after 4 others",
            ),
            (
                tool("\u{e0041}", json!({})),
                "`find.description` has the hidden character U+E0041 after 0",
            ),
            (
                tool("a\u{202e}b", json!({})),
                "`find.description` has the hidden character U+202E",
            ),
            (
                tool("a\rb", json!({})),
                "`find.description` has the hidden character U+000D",
            ),
            (
                tool("", one("b\u{feff}")),
                "`find.arguments.properties.path.enum[1]` has the hidden character U+FEFF",
            ),
            (
                tool("", json!({ "title": "a\nb" })),
                "`find.arguments.title` has the hidden character U+000A",
            ),
            (
                tool("", json!({ "properties": { "a\u{2066}": {} } })),
                "`find.arguments.properties.a\\u{2066}` has the hidden",
            ),
            (
                tool("", json!({ "description": "x\u{1b}[2J" })),
                "`find.arguments.description` has the hidden character U+001B",
            ),
            (
                ToolDefinition {
                    name: "a\u{200d}".into(),
                    ..tool("", json!({}))
                },
                "`name` has the hidden character U+200D",
            ),
            (
                ToolDefinition {
                    results: Some(one("\u{e0100}")),
                    ..tool("", json!({}))
                },
                "`find.results.properties.path.enum[1]`",
            ),
        ] {
            let reported = refused(tool);
            assert!(
                reported.contains(place) && !reported.chars().any(is_hidden),
                "{reported}: {place}"
            );
        }
        let plain = json!({ "title": "Où 🙂\u{fe0f}", "description": "one\n\ttwo", "default": "a\nb", "examples": [["c\nd"]] });
        assert_eq!(
            check_tools(&[tool("first line\nsecond — line", plain)]),
            Ok(())
        );
    }

    #[test]
    fn descriptions_are_bounded_for_a_tool_and_for_a_component() {
        let long = "x".repeat(DESCRIPTION_BYTES_MAX);
        assert_eq!(check_tools(&[tool(&long, json!({}))]), Ok(()));
        assert!(
            refused(tool(&format!("{long}x"), json!({})))
                .starts_with("`find.description` has 4097 bytes; 4096")
        );
        let many = |count: usize| vec![tool(&long, json!({})); count];
        assert_eq!(check_tools(&many(16)), Ok(()));
        assert!(
            matches!(check_tools(&many(17)), Err(BadWording::AllTooLong { bytes }) if bytes == 17 << 12)
        );
        for keyword in ["title", "examples", "default", "$comment", "enum"] {
            let schema =
                json!({ "properties": { "a": { keyword: ["x".repeat(DESCRIPTIONS_BYTES_MAX)] } } });
            assert!(
                matches!(
                    check_tools(&[tool("", schema)]),
                    Err(BadWording::AllTooLong { .. })
                ),
                "{keyword}"
            );
        }
        let named = json!({ "properties": { "x".repeat(DESCRIPTIONS_BYTES_MAX): {} } });
        assert!(matches!(
            check_tools(&[tool("", named)]),
            Err(BadWording::AllTooLong { .. })
        ));
        let described = json!({ "properties": { "a": { "description": format!("{long}x") } } });
        assert!(
            refused(tool("", described))
                .starts_with("`find.arguments.properties.a.description` has 4097 bytes")
        );
        assert!(
            check_name("display-name", "a\nb").is_err()
                && check_description("summary", "a\nb").is_ok()
        );
    }
}
