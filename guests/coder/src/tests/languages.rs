//! Languages that have a tool of their own.

use super::{failure, result, task};
use crate::Coder;
use agent_host_sdk::ToolError;
use agent_host_sdk::harness::Conversation;
use serde_json::{Value, json};

#[test]
fn a_language_with_a_tool_of_its_own_is_run_by_that_tool() {
    for (language, by) in [
        (Some("python"), "python"),
        (Some(" Py "), "python"),
        (Some("python3"), "python"),
        (Some("js"), "code"),
        (Some("code"), "code"),
        (None, "code"),
    ] {
        let mut conversation = Conversation::new(Coder)
            .tool("execute_code", |_| Ok(r#"{"value":"code"}"#.to_owned()))
            .tool("execute_python", |arguments: Value| {
                assert_eq!(arguments["code"], "1+1");
                assert_eq!(arguments["timeout"], 500);
                Ok(r#"{"value":"python"}"#.to_owned())
            });
        let parameters = json!({ "code": "1+1", "language": language, "timeout": 500 });
        let reported = conversation.say(&task("execute_code", &parameters));
        assert_eq!(result(&reported)["value"], by, "{language:?}");
    }
}

#[test]
fn a_refused_language_is_told_with_those_that_have_a_tool_of_their_own() {
    let mut conversation = Conversation::new(Coder)
        .tool::<String>("execute_code", |_| {
            Err(ToolError::invalid(
                "language",
                "is `cobol`; installed: javascript",
            ))
        })
        .tool("execute_python", |_| Ok("{}".to_owned()));
    let reason = failure(conversation.say(&task(
        "execute_code",
        &json!({ "code": "1", "language": "cobol" }),
    )));
    assert!(
        reason.contains("installed: javascript") && reason.ends_with("of their own: python"),
        "{reason}"
    );
}
