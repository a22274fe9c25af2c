//! The text of a model's thinking, if its provider shows it.
//!
//! Providers have separate parts for it, which are returned to them verbatim and are opaque to
//! everybody else. Only the parts that they call thinking are read here, and never a signature.

use crate::thread::message::Part;
use serde_json::Value;

/// The fields of a message in which servers of the `OpenAI` dialect put thinking.
const MESSAGE_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Returns the thinking in a part of a reply; none if there is none that can be shown.
#[must_use]
pub fn of_part(part: &Part) -> Option<&str> {
    let Part::Opaque { value, .. } = part else {
        return None;
    };
    let of_block = value
        .get("thinking")
        .filter(|_| value.get("type").and_then(Value::as_str) == Some("thinking"));
    let of_message = || {
        let message = value.get("message")?;
        MESSAGE_FIELDS.iter().find_map(|name| message.get(*name))
    };
    of_block
        .or_else(of_message)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::of_part;
    use crate::thread::message::Part;
    use serde_json::{Value, json};

    #[test]
    fn thinking_is_read_from_what_providers_show_of_it_and_from_nothing_else() {
        let opaque = |value: Value| Part::Opaque {
            provider: "p".into(),
            model: "m".into(),
            value,
        };
        for (value, thought) in [
            (
                json!({ "type": "thinking", "thinking": "hm", "signature": "s" }),
                Some("hm"),
            ),
            (
                json!({ "message": { "reasoning_content": "well" }, "calls": {} }),
                Some("well"),
            ),
            (json!({ "message": { "reasoning": "so" } }), Some("so")),
            (json!({ "type": "thinking", "thinking": "" }), None),
            (json!({ "type": "redacted_thinking", "data": "x" }), None),
            (json!({ "type": "other", "thinking": "no" }), None),
            (json!({ "stop": "length" }), None),
        ] {
            assert_eq!(of_part(&opaque(value.clone())), thought, "{value}");
        }
        assert_eq!(of_part(&Part::text("thinking")), None);
    }
}
