//! Tests of the texts in which a component describes itself.

use super::*;
use crate::access::tool::EffectClass;
use serde_json::json;

fn tool(description: &str, arguments: Value) -> ToolDefinition {
    ToolDefinition {
        name: "find".to_owned(),
        description: description.to_owned(),
        arguments,
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
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
        check_name("display-name", "a\nb").is_err() && check_description("summary", "a\nb").is_ok()
    );
}
