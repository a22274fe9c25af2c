//! Tables of what is offered, and of calls under the names of operations.

use super::{Offer, Offers, arguments_of_named, operation_named};
use crate::access::tool::{EffectClass, ToolDefinition};
use crate::work::delegate::{NAME, Target, parse};
use serde_json::{Value, json};

fn tool(name: &str, arguments: Value) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        arguments,
        results: None,
        capabilities: Vec::new(),
        effect: EffectClass::ReadOnly,
        destructive: false,
        time_limit_ms: None,
    }
}

fn tools(names: &[&str]) -> Vec<ToolDefinition> {
    names.iter().map(|name| tool(name, json!({}))).collect()
}

fn offered(target: Target, tools: &[ToolDefinition]) -> Vec<&'static str> {
    let offer = Offer::with_tools(target, tools);
    offer.operations.iter().map(|rule| rule.name).collect()
}

#[test]
fn only_what_an_agent_has_the_tools_for_is_offered() {
    for (target, has, expected) in [
        (
            Target::Worker,
            &["read_file", "list_files"][..],
            &["read_file", "list_files"][..],
        ),
        (Target::Worker, &[], &[]),
        (Target::Coder, &[], &["generate_code", "review_code"]),
        (
            Target::Coder,
            &["execute_python"],
            &["generate_code", "review_code", "execute_code"],
        ),
        (
            Target::Coder,
            &["read_file", "list_files"],
            &["analyze_code", "generate_code", "review_code"],
        ),
        (
            Target::Researcher,
            &[],
            &["deep_research", "synthesize_sources"],
        ),
    ] {
        assert_eq!(offered(target, &tools(has)), expected, "{target} {has:?}");
    }
}

#[test]
fn the_languages_that_can_be_run_are_named() {
    let language = json!({ "type": ["string", "null"], "examples": ["javascript"] });
    let common = tool(
        "execute_code",
        json!({ "properties": { "language": language } }),
    );
    let has = [common, tool("execute_python", json!({}))];
    let offers = Offers(vec![Offer::with_tools(Target::Coder, &has)]);
    let description = offers.definition().description;
    assert!(
        description.ends_with("Languages of execute_code: javascript, python"),
        "{description}"
    );
    let typed = offers.by_operation();
    let of = |name: &str| {
        &typed
            .iter()
            .find(|tool| tool.name == name)
            .unwrap()
            .arguments
    };
    let languages = json!(["javascript", "python"]);
    assert_eq!(
        of("execute_code")["properties"]["language"]["enum"],
        languages
    );
    // It writes code in any.
    assert!(of("generate_code")["properties"]["language"]["enum"].is_null());
}

#[test]
fn each_operation_is_a_tool_with_the_schema_of_its_parameters() {
    let offers = Offers::from(&[Target::Worker][..]);
    let tools = offers.by_operation();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut expected: Vec<&str> = Target::Worker.operations().map(|rule| rule.name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    let write = tools.iter().find(|tool| tool.name == "write_file").unwrap();
    assert_eq!(
        write.arguments,
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string" }, "content": { "type": "string" },
                "createParents": { "type": "boolean" },
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        })
    );
    // Weak models take such a mark for a part of the name.
    for tool in tools.iter().chain([&offers.definition()]) {
        let shown = format!("{} {}", tool.description, tool.arguments);
        assert!(!shown.contains('?'), "{shown}");
    }
}

#[test]
fn a_call_by_an_operations_name_is_the_call_of_delegate() {
    let rule = operation_named("read_file").unwrap();
    let offers = Offers::from(&Target::ALL[..]);
    let parameters = r#"{"path":"notes.txt"}"#;
    let named = offers.parse_named(rule, parameters).unwrap();
    let whole = json!({
        "target": "worker", "operation": "read_file", "parameters": { "path": "notes.txt" },
    });
    assert_eq!(named, offers.parse(&whole.to_string()).unwrap());
    let kept = arguments_of_named(rule, parameters);
    assert_eq!(parse(&kept, &Target::ALL).unwrap(), named);
    for other in ["read", "delegate", "system_read", "", "READ_FILE"] {
        assert!(operation_named(other).is_none(), "{other}");
    }
}

#[test]
fn an_error_shows_the_call_that_would_do() {
    let offers = Offers::from(&[Target::Worker][..]);
    let write = operation_named("write_file").unwrap();
    let marked = r#"{"path":"a.txt","content":"hello","createParents?":false}"#;
    let message = offers
        .parse_named(write, marked)
        .unwrap_err()
        .failure()
        .message;
    let call =
        r#"This would do: write_file {"path":"a.txt","content":"hello","createParents":false}"#;
    assert!(message.ends_with(call), "{message}");
    assert!(
        !message.contains("?)") && !message.contains("?,"),
        "{message}"
    );

    let missing = offers
        .parse_named(write, "{\"path\":")
        .unwrap_err()
        .failure()
        .message;
    let call = r#"This would do: write_file {"path":"<path>","content":"<content>"}"#;
    assert!(missing.ends_with(call), "{missing}");

    let whole = json!({ "target": "worker", "operation": "read_file", "path": "a.txt" });
    let message = offers
        .parse(&whole.to_string())
        .unwrap_err()
        .failure()
        .message;
    let call = json!({
        "target": "worker", "operation": "read_file", "parameters": { "path": "<path>" },
    });
    let shown = message.split_once("This would do: delegate ").unwrap().1;
    assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), call);

    // Each call that is shown would do.
    for rule in Target::Worker.operations() {
        let failure = offers
            .parse_named(rule, r#"{"nothing":1}"#)
            .unwrap_err()
            .failure();
        let start = format!("This would do: {} ", rule.name);
        let shown = failure.message.split_once(&start).unwrap().1;
        assert!(offers.parse_named(rule, shown).is_ok(), "{shown}");
    }
    assert_eq!(offers.definition().name, NAME);
}
