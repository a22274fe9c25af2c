//! Results of delegations as models see them: the content or the error, without facts about the
//! task. Every later model call would pay for these.

use super::NAME;
use crate::thread::message::{Message, Part};
use serde_json::Value;

/// Reduces a message with a result of `delegate` to its content. Other messages stay unchanged.
pub fn show_content(message: &mut Message) {
    let answers = message.answers.as_ref();
    let is_result = answers.is_some_and(|answers| answers.name == NAME)
        || message.origin.strip_prefix("tool:") == Some(NAME);
    if !is_result {
        return;
    }
    for part in &mut message.parts {
        if let Part::Text { text } = part
            && let Some(content) = content_of(text)
        {
            *text = content;
        }
    }
}

/// Returns the content of a result, or the error that it reports. None for any other text.
fn content_of(text: &str) -> Option<String> {
    let result: Value = serde_json::from_str(text).ok()?;
    result.get("metadata")?.as_object()?;
    if result.get("success")?.as_bool()? {
        return match result.get("output") {
            Some(output) => output.as_str().map(str::to_owned),
            None => result.get("data").map(Value::to_string),
        };
    }
    let error = result.get("error")?;
    let text_at = |name: &str| error.get(name)?.as_str();
    let again = match error.get("retryable")?.as_bool()? {
        true => " (The same call may succeed later.)",
        false => "",
    };
    Some(format!(
        "Error ({}): {}{again}",
        text_at("code")?,
        text_at("message")?
    ))
}

#[cfg(test)]
mod tests {
    use super::show_content;
    use crate::thread::message::{Answers, Draft, Role};
    use crate::values::digest::Salt;
    use crate::values::id::{AgentId, OperationId};
    use crate::values::time::Timestamp;
    use crate::work::delegate::{DelegateResult, NAME, Target, Task, parse};
    use crate::work::step::Failure;

    fn shown(name: &str, text: &str) -> String {
        let answers = Answers {
            message: 1,
            index: 0,
            call_id: "c".to_owned(),
            name: name.to_owned(),
            failed: false,
        };
        let draft = Draft {
            answers: Some(answers),
            ..Draft::text(Role::Tool, format!("tool:{name}"), text)
        };
        let mut message = draft.at(2, Salt::default());
        show_content(&mut message);
        message.text()
    }

    #[test]
    fn a_model_is_shown_the_content_of_a_delegation_and_none_of_its_facts() {
        let arguments = r#"{"target":"worker","operation":"read_file","parameters":{"path":"a"}}"#;
        let delegation = parse(arguments, &Target::ALL).unwrap();
        let task = Task {
            operation: OperationId(crate::values::digest::Digest::of(b"task")),
            agent: AgentId(uuid::Uuid::nil()),
            created: Timestamp(1),
            completed: Timestamp(2),
        };
        let limit = Failure::passing("limit-reached", "too many at once");
        for (result, expected) in [
            (
                DelegateResult::succeeded(&delegation, &task, "three lines"),
                "three lines",
            ),
            (
                DelegateResult::succeeded(&delegation, &task, r#"{"lines": 3}"#),
                r#"{"lines":3}"#,
            ),
            (
                DelegateResult::failed(&delegation, &task, "no such file", true),
                "Error (TASK_FAILED): no such file",
            ),
            (
                DelegateResult::refused(&limit),
                "Error (LIMIT_REACHED): too many at once (The same call may succeed later.)",
            ),
        ] {
            let result = result.to_string();
            assert_eq!(shown(NAME, &result), expected);
            assert_eq!(
                shown("look", &result),
                result,
                "another tool's stays as it is"
            );
        }
        assert_eq!(shown(NAME, "no JSON"), "no JSON");
        assert_eq!(shown(NAME, r#"{"success":true}"#), r#"{"success":true}"#);
    }
}
