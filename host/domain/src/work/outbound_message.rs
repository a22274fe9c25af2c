//! Outbound messages to external agents: how their component requests one, the result of an
//! attempt, and the state between an outbound message and its answer.
//!
//! An outbound message is one operation. It is stored before anything is sent, attempted under one
//! idempotency key until the program has accepted it, and then waits for the answer.

use crate::access::tool::ClientAction;
use crate::thread::message::MessageId;
use crate::work::step::Failure;
use serde_json::Value;

/// The widget of the question that is an outbound message. The component of an external agent asks
/// it, and no user sees it. Its prop `messages` has the places of the messages in the thread.
pub const WIDGET: &str = "external_message";
/// Messages of one outbound message.
pub const MESSAGES_MAX: usize = 256;
/// The ledger's name for handing messages to an external agent.
pub const DELIVER: &str = "external.deliver";
/// The ledger's name for an answer of an external agent.
pub const ANSWER: &str = "external.answer";
/// The state of an outbound message that the program has accepted and not yet answered.
pub const DELIVERED: &[u8] = b"delivered";
/// The code of an outbound message that the program did not accept.
pub const UNDELIVERED: &str = "external-undelivered";

/// Reads which messages a component requests to send.
///
/// # Errors
/// The fault that the component has to correct.
pub fn messages(action: &ClientAction) -> Result<Vec<MessageId>, String> {
    let fault = || {
        format!(
            "client: `{WIDGET}` needs the prop `messages`: 1 to {MESSAGES_MAX} places of messages \
             in the thread"
        )
    };
    let named = action.props.get("messages").and_then(Value::as_array);
    let named = named.ok_or_else(fault)?;
    if named.is_empty() || named.len() > MESSAGES_MAX {
        return Err(fault());
    }
    named
        .iter()
        .map(|id| id.as_u64().filter(|id| *id > 0).ok_or_else(fault))
        .collect()
}

/// Returns whether an outbound message was accepted, by the state after its last attempt.
#[must_use]
pub fn is_delivered(state: Option<&[u8]>) -> bool {
    state == Some(DELIVERED)
}

/// The result of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Try {
    /// The program has the message.
    Taken,
    /// The program may accept the message later.
    Again,
    /// The program refuses the message.
    Refused,
}

/// Returns the result of an attempt with this response status.
#[must_use]
pub fn judge(status: u16) -> Try {
    match status {
        200..=299 => Try::Taken,
        408 | 425 | 429 | 500..=599 => Try::Again,
        _ => Try::Refused,
    }
}

/// Returns whether a response with this status may set the wait before the next attempt.
#[must_use]
pub fn may_ask_for_time(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// Returns the failure of an outbound message after its last attempt.
#[must_use]
pub fn undelivered(tries: u32, why: &str) -> Failure {
    let tries = match tries {
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    };
    let message = format!("the agent did not take the message ({tries}): {why}");
    Failure::passing(UNDELIVERED, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asking(props: Value) -> ClientAction {
        ClientAction::of(WIDGET, props)
    }

    #[test]
    fn an_outbound_message_names_the_messages_that_it_is_about() {
        let of = |props| messages(&asking(props));
        assert_eq!(of(json!({ "messages": [1, 3] })), Ok(vec![1, 3]));
        let many: Vec<u64> = (1..=257).collect();
        for wrong in [
            json!({}),
            json!({ "messages": [] }),
            json!({ "messages": 1 }),
            json!({ "messages": [0] }),
            json!({ "messages": [-1] }),
            json!({ "messages": ["1"] }),
            json!({ "messages": many }),
        ] {
            assert!(of(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for (status, expected) in [
            (200, Try::Taken),
            (202, Try::Taken),
            (299, Try::Taken),
            (300, Try::Refused),
            (307, Try::Refused),
            (400, Try::Refused),
            (401, Try::Refused),
            (404, Try::Refused),
            (408, Try::Again),
            (413, Try::Refused),
            (425, Try::Again),
            (429, Try::Again),
            (500, Try::Again),
            (503, Try::Again),
            (600, Try::Refused),
        ] {
            assert_eq!(judge(status), expected, "{status}");
        }
    }

    #[test]
    fn an_outbound_message_waits_for_its_answer_only_when_it_was_taken() {
        assert!(is_delivered(Some(DELIVERED)));
        assert!(!is_delivered(None) && !is_delivered(Some(b"")) && !is_delivered(Some(b"x")));
    }
}
