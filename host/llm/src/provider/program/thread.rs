//! The part of a conversation that a program is told: all of it, or what it does not know yet.
//! Pure.

use super::cli::at;
use crate::conversation::{AssistantPart, Entry, entries};
use domain::message::{Message, Part, Role};
use serde_json::{Value, json};

/// Characters of a session's id.
const SESSION_CHARS_MAX: usize = 128;

/// A session of a program that knows a part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The session's id.
    pub(super) session: String,
    /// Turns that it had when it gave the reply.
    pub(super) turns: u64,
    /// The number of messages that it knows.
    pub(super) messages: usize,
}

/// Returns whether a text can be a session's id. It becomes an argument and the name of a file.
pub(super) fn is_session(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= SESSION_CHARS_MAX
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Returns the part of a reply that names the session it was given in.
pub(super) fn opaque(session: &str, turns: u64, calls: &[String]) -> Value {
    json!({ "session": session, "turns": turns, "tools": calls })
}

/// Returns the newest session of this provider and model in a conversation, if there is something
/// that it does not know.
pub(super) fn known(messages: &[Message], provider: &str, model: &str) -> Option<Known> {
    let of_message = |message: &Message| {
        message.parts.iter().find_map(|part| match part {
            Part::Opaque {
                provider: of,
                model: by,
                value,
            } if of == provider && by == model => {
                let session = at(value, "session").as_str().filter(|id| is_session(id))?;
                Some((session.to_owned(), at(value, "turns").as_u64()?))
            }
            Part::Opaque { .. } | Part::Text { .. } | Part::Blob { .. } | Part::Call { .. } => None,
        })
    };
    messages
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, message)| message.role == Role::Assistant)
        .find_map(|(position, message)| {
            let (session, turns) = of_message(message)?;
            Some(Known {
                session,
                turns,
                messages: position + 1,
            })
        })
        .filter(|known| known.messages < messages.len())
}

/// Returns messages as one text. Those of a user alone are as they are; others say who said what.
/// A text never begins with what a program reads as a command, an option or a mention.
pub(super) fn render(messages: &[Message]) -> String {
    // No provider and no model: what is opaque is not for a program.
    let entries = entries(messages, "", "");
    let is_user = |entry: &Entry<'_>| matches!(entry, Entry::User(_));
    if entries.iter().all(is_user) {
        let texts = entries.iter().map(|entry| match entry {
            Entry::User(text) => text.as_str(),
            Entry::Assistant(_) | Entry::Results(_) => "",
        });
        let text = texts.collect::<Vec<_>>().join("\n\n");
        return match text.starts_with(char::is_alphanumeric) {
            true => text,
            false => format!("User:\n{text}"),
        };
    }
    let mut blocks = vec!["The conversation so far, and at its end what to answer:".to_owned()];
    for entry in entries {
        blocks.push(match entry {
            Entry::User(text) => format!("User:\n{text}"),
            Entry::Assistant(assistant_parts) => format!("Assistant:\n{}", said(&assistant_parts)),
            Entry::Results(results) => {
                let results: Vec<String> = results
                    .into_iter()
                    .map(|result| format!("Result of a tool:\n{}", result.text))
                    .collect();
                results.join("\n\n")
            }
        });
    }
    blocks.join("\n\n")
}

fn said(assistant_parts: &[AssistantPart<'_>]) -> String {
    let assistant_parts: Vec<String> = assistant_parts
        .iter()
        .filter_map(|assistant_part| match assistant_part {
            AssistantPart::Text(text) => Some((*text).to_owned()),
            AssistantPart::Call {
                name, arguments, ..
            } => Some(format!("[calls {name}: {arguments}]")),
            AssistantPart::Opaque(_) => None,
        })
        .collect();
    assistant_parts.join("\n")
}

/// Adds to a text that the reply is to fit a JSON Schema, where it is.
pub(super) fn fitting(text: String, schema: Option<&Value>) -> String {
    match schema {
        Some(schema) => format!(
            "{text}\n\nReply with nothing but one JSON document that fits this JSON Schema:\n\
             {schema}"
        ),
        None => text,
    }
}
