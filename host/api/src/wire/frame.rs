//! Ephemeral frames between committed events, in public form: shown while something happens, never
//! stored, never repeated.

use super::extended;
use super::frame_name::EphemeralName;
use broker::{Frame, Show};
use serde_json::{Value, json};

/// The name and the data of a frame on an event stream.
pub(crate) fn frame(frame: &Frame) -> (&'static str, Value) {
    let data = json!({
        "ephemeral": true, "agent_id": frame.agent, "session_id": frame.session,
        "run_id": frame.run, "operation_id": frame.operation,
        "attempt": frame.attempt, "seq": frame.seq,
    });
    let delta = |data| (EphemeralName::Delta, data);
    let (name, more) = match &frame.show {
        Show::Text(text) => delta(json!({ "kind": "text", "text": text })),
        Show::SoFar(text) => delta(json!({ "kind": "so_far", "text": text.concat() })),
        Show::Thinking(text) => delta(json!({ "kind": "thinking", "text": text })),
        Show::CallStarted { name } | Show::OwnCall { name } => {
            delta(json!({ "kind": "call_started", "name": name }))
        }
        Show::Note(text) => delta(json!({ "kind": "note", "text": text })),
        Show::Performing { what } => delta(json!({ "kind": "performing", "what": what })),
        Show::Discarded => (EphemeralName::AttemptDiscarded, json!({})),
    };
    (name.as_str(), extended(data, more))
}
