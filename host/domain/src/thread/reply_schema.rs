//! The JSON Schema that a sender requires of the reply to a message.
//!
//! It is a part of the message, so that it is kept when messages are queued or joined. The part is
//! sent to no provider, and no agent reads it: the schema is sent with the requests to the model.

use crate::thread::message::{Message, Part, Role};
use serde_json::Value;

/// The provider and the model that mark the part.
const MARKED_BY: (&str, &str) = ("agent-host", "reply-schema");

/// Returns the part of a message that contains a schema.
#[must_use]
pub fn part(schema: Value) -> Part {
    let (provider, model) = MARKED_BY;
    Part::Opaque {
        provider: provider.to_owned(),
        model: model.to_owned(),
        value: schema,
    }
}

/// Returns the schema that a part contains, if any.
#[must_use]
pub fn of_part(part: &Part) -> Option<&Value> {
    match part {
        Part::Opaque {
            provider,
            model,
            value,
        } if (provider.as_str(), model.as_str()) == MARKED_BY => Some(value),
        _ => None,
    }
}

/// Returns the schema for the reply of a turn with these messages: that of the last message with a
/// schema.
pub fn of_turn<'m>(heard: impl DoubleEndedIterator<Item = &'m Message>) -> Option<&'m Value> {
    let mut newest_first = heard.rev().filter(|message| message.role == Role::User);
    newest_first.find_map(|message| message.parts.iter().find_map(of_part))
}

#[cfg(test)]
mod tests {
    use super::{of_part, of_turn, part};
    use crate::thread::message::{Draft, Message, Part, Role};
    use crate::values::digest::Salt;
    use serde_json::{Value, json};

    fn message(id: u64, role: Role, schema: Option<Value>) -> Message {
        let mut draft = Draft::text(role, "api", "hi");
        draft.parts.extend(schema.map(part));
        draft.at(id, Salt([1; 16]))
    }

    #[test]
    fn the_last_message_of_a_user_with_a_schema_says_what_the_reply_is() {
        let [first, second] = ["string", "number"].map(|kind| json!({ "type": kind }));
        let said = [
            message(1, Role::User, Some(first.clone())),
            message(2, Role::User, Some(second.clone())),
            message(3, Role::User, None),
            message(4, Role::Notice, Some(first.clone())),
        ];
        for (heard, wanted) in [
            (&said[..], Some(&second)),
            (&said[..1], Some(&first)),
            (&said[2..], None),
            (&[], None),
        ] {
            assert_eq!(of_turn(heard.iter()), wanted);
        }
        assert_eq!(of_part(&Part::text("hi")), None);
    }
}
