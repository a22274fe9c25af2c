//! Approvals: tool calls that a user has to approve first.
//!
//! Approvals are required by the definition of the calling agent, by those of the agents that
//! handed it the work, and by the grant of the tool's component. A user agrees to one operation and
//! to the hash of its exact effect. Sending the call uses up the approval. This is recorded before,
//! so that a crash does not use the approval twice. The question is the host's own: no guest can
//! ask in its name, and only a user's answer over the API settles it.

use crate::access::tool::ClientAction;
use crate::access::user::UserId;
use crate::values::digest::Digest;
use crate::values::id::{OperationId, RunId};
use crate::values::time::Timestamp;
use crate::work::step::Failure;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The widget of the host's own questions. Guests may not use it.
pub const WIDGET: &str = "host_approval";

/// The approval that a user has to give before an operation is performed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    /// The hash of the exact effect ([`call_digest`]).
    pub call: Digest,
    /// Time until which it may be approved; then the call has failed.
    pub until: Timestamp,
    /// The question, as the user sees it.
    pub action: ClientAction,
}

/// The component of a call of the host's own tools.
pub const HOST: &str = "host";

/// The exact call to approve.
#[derive(Debug, Clone, Copy)]
pub struct Exact<'a> {
    /// The operation, which is performed once.
    pub operation: OperationId,
    /// The code of the component.
    pub component: Digest,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments: a JSON object as text.
    pub arguments: &'a str,
}

/// The hash of the exact effect: one operation, by this code, with these arguments in any order of
/// their keys.
#[must_use]
pub fn call_digest(exact: &Exact<'_>) -> Digest {
    // Parsing sorts the keys.
    let canonical = serde_json::from_str::<Value>(exact.arguments).map_or_else(
        |_| exact.arguments.to_owned(),
        |value| sorted(value).to_string(),
    );
    Digest::of_parts(&[
        b"approval",
        &exact.operation.0.0,
        &exact.component.0,
        exact.tool.as_bytes(),
        canonical.as_bytes(),
    ])
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = map
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

impl Approval {
    /// The approval that a call needs, which a user may give until a time.
    #[must_use]
    pub fn new(exact: &Exact<'_>, component: &str, definition: &str, until: Timestamp) -> Self {
        let call = call_digest(exact);
        let arguments: Value =
            serde_json::from_str(exact.arguments).unwrap_or_else(|_| exact.arguments.into());
        let props = json!({
            "prompt": format!("May `{definition}` call `{}`?", exact.tool), "agent": definition, "tool": exact.tool, "arguments": arguments,
            "component": component, "code": exact.component.reference(), "call": call.hex(), "until": until.to_string(),
        });
        let answer = json!({
            "type": "object", "required": ["approve", "call"], "additionalProperties": false,
            "properties": { "approve": { "type": "boolean" }, "call": { "const": call.hex() } },
        });
        let action = ClientAction {
            widget: WIDGET.to_owned(),
            props,
            response_schema: Some(answer),
            lock_input: false,
        };
        Self {
            call,
            until,
            action,
        }
    }

    /// Returns whether the approval is for exactly this call.
    #[must_use]
    pub fn is_for(&self, exact: &Exact<'_>) -> bool {
        self.call == call_digest(exact)
    }

    /// Returns whether an answer that fits the question's schema approves the call.
    #[must_use]
    pub fn agrees(&self, answer: &Value) -> bool {
        answer.get("approve") == Some(&Value::Bool(true))
            && answer.get("call").and_then(Value::as_str) == Some(&self.call.hex())
    }
}

/// The code of a call that a user refused, or was not asked about.
const DENIED: &str = "approval-denied";
/// The code of a call that was not approved in time.
const EXPIRED: &str = "approval-expired";

/// Returns whether a call failed without approval. The text of such a failure is the host's own.
#[must_use]
pub fn is_of(failure: &Failure) -> bool {
    [DENIED, EXPIRED].contains(&failure.code.as_str())
}

/// Returns the failure that an agent sees for a call that a user refused.
#[must_use]
pub fn declined() -> Failure {
    Failure::lasting(
        DENIED,
        "the user did not agree to this call, and it was not made; do not try it again unasked",
    )
}

/// Returns the failure that an agent sees for a call that needs an approval, if no user can be
/// asked.
#[must_use]
pub fn unasked() -> Failure {
    Failure::lasting(
        DENIED,
        "this turn rests on content from outside, so its user has to agree to what lasts, and there \
         is no user here to ask; it was not made",
    )
}

/// Returns the failure that an agent sees for a call that began before it needed an approval. No
/// user was asked about it.
#[must_use]
pub fn required_since() -> Failure {
    Failure::lasting(
        DENIED,
        "this call was begun before an approval was required, and the host did not go on with it; \
         what it did before that is not undone. Call again, and the user is asked",
    )
}

/// Returns the failure that an agent sees for a call that was not approved in time.
#[must_use]
pub fn expired() -> Failure {
    Failure::lasting(
        EXPIRED,
        "nobody answered in time whether this call may be made, and it was not made",
    )
}

/// A user's answer to the question, in the event `operation.approval.answered.v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    /// The run.
    pub run: RunId,
    /// The operation.
    pub operation: OperationId,
    /// The hash of the call that was approved or refused.
    pub call: Digest,
    /// True if the user agreed.
    pub approved: bool,
    /// The user who answered.
    pub by: UserId,
    /// Time of the answer.
    pub time: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn exact(arguments: &str) -> Exact<'_> {
        let operation = OperationId::mint(RunId(Uuid::from_u128(1)), 0, "t");
        Exact {
            operation,
            component: Digest([2; 32]),
            tool: "delete_file",
            arguments,
        }
    }

    #[test]
    fn an_approval_is_for_one_operation_code_tool_and_arguments_alone() {
        let asked = exact(r#"{"path":"a","n":{"x":1,"y":2}}"#);
        let approval = Approval::new(&asked, "files", "worker", Timestamp(9));
        assert!(
            approval.is_for(&asked) && approval.is_for(&exact(r#"{"n":{"y":2,"x":1},"path":"a"}"#)),
            "keys have no order"
        );
        let other = OperationId::mint(RunId(Uuid::from_u128(1)), 1, "t");
        for changed in [
            exact(r#"{"path":"b","n":{"x":1,"y":2}}"#),
            exact("{}"),
            Exact {
                operation: other,
                ..asked
            },
            Exact {
                component: Digest([3; 32]),
                ..asked
            },
            Exact {
                tool: "write_file",
                ..asked
            },
        ] {
            assert!(!approval.is_for(&changed), "{changed:?}");
        }
    }

    #[test]
    fn only_an_answer_that_names_the_call_agrees() {
        let approval = Approval::new(&exact("{}"), "files", "worker", Timestamp(9));
        let call = approval.call.hex();
        for (answer, agrees) in [
            (json!({ "approve": true, "call": call }), true),
            (json!({ "approve": false, "call": call }), false),
            (json!({ "approve": true, "call": "00" }), false),
            (json!({ "approve": "true", "call": call }), false),
            (json!(true), false),
        ] {
            assert_eq!(approval.agrees(&answer), agrees, "{answer}");
        }
    }
}
