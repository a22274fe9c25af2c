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

fn trigger_saying(configuration: &str, trigger_events: &[&str]) -> trigger::Description {
    trigger::Description {
        id: "watch".into(),
        summary: "Watches.".into(),
        configuration: configuration.into(),
        trigger_events: trigger_events.iter().map(ToString::to_string).collect(),
        state_formats: vec![1],
    }
}

#[test]
fn a_trigger_names_its_trigger_events_and_the_schema_of_its_configuration() {
    for (description, expected) in [
        (
            trigger_saying("{}", &[]),
            "`trigger_events` are none; name some",
        ),
        (
            trigger_saying("{}", &["clock", "gossip\n"]),
            r"`trigger_events` has `gossip\n`, which is none of",
        ),
        (
            trigger_saying(r#"{"type":"string"}"#, &["clock"]),
            "`configuration` does not describe an object",
        ),
        (
            trigger_saying(
                &format!(r#"{{"title":"{}"}}"#, "a".repeat(70_000)),
                &["clock"],
            ),
            "`configuration` is 70012 bytes long; 65536 at most",
        ),
    ] {
        let Unacceptable(detail) = trigger_description(description).unwrap_err();
        assert!(detail.contains(expected), "{detail}");
    }
    let described = trigger_description(trigger_saying("{}", &["clock", "files"])).unwrap();
    assert_eq!(described.trigger_events, ["clock", "files"]);
}

fn connector_taking(intake: Vec<connector::Intake>, text_limit: u32) -> connector::Description {
    connector::Description {
        id: "chat".into(),
        summary: "Exchanges.".into(),
        configuration: r#"{"type":"object"}"#.into(),
        intake,
        text_limit,
        buttons_max: 3,
        edits: true,
        typing: false,
        idempotent: true,
    }
}

#[test]
fn a_connector_has_a_way_in_and_a_limit_that_can_be_kept() {
    for (description, expected) in [
        (connector_taking(Vec::new(), 4_096), "`intake` is empty"),
        (
            connector_taking(vec![connector::Intake::Polling], 10),
            "`text-limit` is 10; 200 at least",
        ),
    ] {
        let Unacceptable(detail) = connector_description(description).unwrap_err();
        assert!(detail.contains(expected), "{detail}");
    }
    let polling = connector_taking(vec![connector::Intake::Polling], 4_096);
    let described = connector_description(polling).unwrap();
    assert_eq!(described.abilities.intake, [Intake::Polling]);
    assert_eq!(described.abilities.buttons_max, 3);
}
