//! Ephemeral frames between committed events, in public form: shown while something happens, never
//! stored, never repeated.

use super::frame_name::EphemeralName;
use broker::{Frame, Show};
use serde_json::{Value, json};

/// The name and the data of a frame on an event stream.
#[must_use]
pub fn frame(frame: &Frame) -> (&'static str, Value) {
    let mut data = json!({
        "ephemeral": true, "agent_id": frame.agent, "session_id": frame.session,
        "run_id": frame.run, "operation_id": frame.operation,
        "attempt": frame.attempt, "seq": frame.seq,
    });
    let (name, more) = match &frame.show {
        Show::Text(text) => (
            EphemeralName::Delta,
            json!({ "kind": "text", "text": text }),
        ),
        Show::Thinking(text) => (
            EphemeralName::Delta,
            json!({ "kind": "thinking", "text": text }),
        ),
        Show::CallStarted { name } => (
            EphemeralName::Delta,
            json!({ "kind": "call_started", "name": name }),
        ),
        Show::Note(text) => (
            EphemeralName::Delta,
            json!({ "kind": "note", "text": text }),
        ),
        Show::Performing { what } => (
            EphemeralName::Delta,
            json!({ "kind": "performing", "what": what }),
        ),
        Show::Discarded => (EphemeralName::AttemptDiscarded, json!({})),
    };
    if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
        data.extend(more);
    }
    (name.as_str(), data)
}
