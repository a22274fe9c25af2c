//! Tests of descriptions that components give of themselves.

use super::*;
use crate::convert::Unacceptable;

fn tool(name: &str, arguments: &str) -> types::ToolDefinition {
    types::ToolDefinition {
        name: name.into(),
        description: String::new(),
        arguments: arguments.into(),
        results: None,
        capabilities: Vec::new(),
        effect: types::EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

fn check(tools: Vec<types::ToolDefinition>, expected: &str) {
    let Unacceptable(detail) = tool_definitions(tools).unwrap_err();
    assert!(
        detail.contains(expected),
        "{detail} does not contain {expected}"
    );
}

#[test]
fn tools_need_unique_names_and_schemas_of_objects() {
    check(Vec::new(), "`tools` are 0; 1 to 128");
    check(
        vec![tool("Echo", "{}")],
        "`name` has `Echo`, which is not 1 to 64",
    );
    check(
        vec![tool("echo", "{}"), tool("echo", "{}")],
        "two of the name `echo`",
    );
    check(
        vec![tool("echo", "nonsense")],
        "`echo.arguments` is not JSON",
    );
    check(
        vec![tool("echo", r#"{"type":"string"}"#)],
        "`echo.arguments` does not describe an object",
    );
    let doubling = r##"{"properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"items":{"$ref":"#/$defs/x"},"not":{"$ref":"#/$defs/x"}}}}"##;
    check(
        vec![tool("echo", doubling)],
        "`echo.arguments` is a JSON Schema that cannot be used: at /",
    );
    let results = types::ToolDefinition {
        results: Some(r#"{"$ref":"https://example.com"}"#.into()),
        ..tool("echo", "{}")
    };
    check(
        vec![results],
        "`echo.results` is a JSON Schema that cannot be used: only references within the \
         schema",
    );
    check(
        (0..129).map(|n| tool(&format!("t{n}"), "{}")).collect(),
        "`tools` are 129",
    );
    assert_eq!(
        tool_definitions(vec![tool("echo", r#"{"type":"object"}"#)])
            .unwrap()
            .len(),
        1
    );
}

/// A capability has a plain name. A wrong one is reported with its tool and steers no terminal.
#[test]
fn a_wrong_capability_name_is_reported_with_its_tool_and_escaped() {
    let asking = |capability: &str| types::ToolDefinition {
        capabilities: vec![capability.into()],
        ..tool("echo", "{}")
    };
    for wrong in [
        "",
        "Net.http",
        "net http",
        "net.http\nforged",
        "\u{1b}[2Jnet",
        "n\u{e4}t",
        "\u{202e}net",
        &"x".repeat(65),
    ] {
        let Unacceptable(detail) = tool_definitions(vec![asking(wrong)]).unwrap_err();
        assert!(
            detail.starts_with("`echo.capabilities` has `")
                && !detail.chars().any(char::is_control),
            "{detail}"
        );
    }
    for right in ["net.http", "my-bucket_2.write", &"x".repeat(64)] {
        assert!(tool_definitions(vec![asking(right)]).is_ok(), "{right}");
    }
}

#[test]
fn an_agent_needs_plain_names() {
    let description = agent::Description {
        id: "Not Plain".into(),
        display_name: String::new(),
        summary: String::new(),
        session_types: Vec::new(),
        wants: Vec::new(),
        memo_formats: Vec::new(),
    };
    assert!(agent_description(description).is_err());
    let forging = agent::Description {
        id: "plain".into(),
        display_name: String::new(),
        summary: String::new(),
        session_types: vec!["a\n  granted  everything".into()],
        wants: Vec::new(),
        memo_formats: Vec::new(),
    };
    let Unacceptable(detail) = agent_description(forging).unwrap_err();
    assert!(!detail.contains('\n'), "{detail}");
}
