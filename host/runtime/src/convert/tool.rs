//! Between the host and a tool: the call there, its progress or its error back.

use crate::bindings::tool::exports::agent_host::plugin::tools;
use crate::convert::{Read, Reader, milliseconds};
use domain::limits::MEMO_BYTES_MAX;
use domain::operation::Progress;
use domain::tool::ToolError;
use serde_json::Value;

/// Bytes of state that a tool may leave for its next segment.
const SEGMENT_STATE_BYTES_MAX: usize = MEMO_BYTES_MAX;

/// Returns the context that a tool gets with its call.
pub(crate) fn call_context(call: &ToolCall, deadline_ms: u32) -> tools::CallContext {
    tools::CallContext {
        agent_id: call.agent_id.clone(),
        session_id: call.session_id.clone(),
        user_id: call.user_id.clone(),
        call_id: call.call_id.clone(),
        idempotency_key: call.idempotency_key.clone(),
        deadline_ms,
        resumed: call.resumed.clone(),
        answer: call.answer.as_ref().map(ToString::to_string),
    }
}

/// Reads what a call returned.
pub(crate) fn call_result(
    result: Result<tools::Progress, tools::ToolError>,
) -> Read<Result<Progress, ToolError>> {
    let mut reader = Reader::default();
    match result {
        Ok(progress) => reader.progress(progress).map(Ok),
        Err(error) => reader.tool_error(error).map(Err),
    }
}

impl Reader {
    fn progress(&mut self, progress: tools::Progress) -> Read<Progress> {
        Ok(match progress {
            tools::Progress::Done(parts) => Progress::Done {
                parts: self.parts("done", parts)?,
            },
            tools::Progress::Later(tools::Later { after_ms, state }) => Progress::Later {
                after_ms: milliseconds("later.after-ms", after_ms)?,
                state: self.bytes("later.state", state, SEGMENT_STATE_BYTES_MAX)?,
            },
            tools::Progress::Ask(tools::Ask { action, state }) => Progress::Ask {
                action: self.client_action("ask.action", action)?,
                state: self.bytes("ask.state", state, SEGMENT_STATE_BYTES_MAX)?,
            },
        })
    }

    fn tool_error(&mut self, error: tools::ToolError) -> Read<ToolError> {
        Ok(match error {
            tools::ToolError::InvalidArguments(detail) => {
                ToolError::InvalidArguments(self.text("invalid-arguments", detail)?)
            }
            tools::ToolError::NotFound(detail) => {
                ToolError::NotFound(self.text("not-found", detail)?)
            }
            tools::ToolError::Denied => ToolError::Denied,
            tools::ToolError::Failed(detail) => ToolError::Failed(self.text("failed", detail)?),
            tools::ToolError::RetryLater(ms) => ToolError::RetryLater(ms),
        })
    }
}

/// One segment of one call of one tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The calling agent.
    pub agent_id: String,
    /// Its session.
    pub session_id: String,
    /// The user on whose behalf.
    pub user_id: String,
    /// The operation's id: the same for every attempt and segment.
    pub call_id: String,
    /// The same for every attempt of this segment.
    pub idempotency_key: String,
    /// Index of the segment, from 0.
    pub segment: u32,
    /// The state that the segment before left.
    pub resumed: Option<Vec<u8>>,
    /// The client's answer, when the segment before asked for one.
    pub answer: Option<Value>,
    /// The tool's name.
    pub tool: String,
    /// Validated arguments, a JSON object as text.
    pub arguments: String,
    /// Milliseconds that the call may take; the grant's limit applies when it is shorter.
    pub deadline_ms: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::agent::agent_host::plugin::types;
    use crate::convert::Unacceptable;

    fn check(progress: tools::Progress, expected: &str) {
        let Unacceptable(detail) = call_result(Ok(progress)).unwrap_err();
        assert!(
            detail.contains(expected),
            "{detail} does not contain {expected}"
        );
    }

    #[test]
    fn a_segments_state_and_waiting_time_are_bounded() {
        let state = vec![0; SEGMENT_STATE_BYTES_MAX + 1];
        check(
            tools::Progress::Later(tools::Later { after_ms: 1, state }),
            "`later.state` is 65537 bytes",
        );
        check(
            tools::Progress::Later(tools::Later {
                after_ms: u64::MAX,
                state: Vec::new(),
            }),
            "`later.after-ms`",
        );
    }

    #[test]
    fn a_question_has_to_be_json() {
        let action = types::ClientAction {
            widget: "form".into(),
            props: "3".into(),
            response_schema: None,
            lock_input: false,
        };
        check(
            tools::Progress::Ask(tools::Ask {
                action,
                state: Vec::new(),
            }),
            "`ask.action.props` is not a JSON object",
        );
    }

    #[test]
    fn json_of_a_guest_with_a_key_twice_is_refused() {
        let asking = |props: &str, schema: Option<&str>| {
            let props = props.into();
            let response_schema = schema.map(str::to_owned);
            let action = types::ClientAction {
                widget: "form".into(),
                props,
                response_schema,
                lock_input: false,
            };
            tools::Progress::Ask(tools::Ask {
                action,
                state: Vec::new(),
            })
        };
        check(
            asking(r#"{"a":{"b":1,"b":2}}"#, None),
            "`ask.action.props` has an object with the key `b` twice",
        );
        check(
            asking("{}", Some(r#"{"type":"object","type":"string"}"#)),
            "`ask.action.response-schema` has an object with the key `type` twice",
        );
    }

    #[test]
    fn a_tools_own_error_is_a_result() {
        assert_eq!(
            call_result(Err(tools::ToolError::Denied)),
            Ok(Err(ToolError::Denied))
        );
    }
}
