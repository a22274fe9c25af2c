//! A thread as providers want it: every call directly followed by its result, under ids that are
//! unique.
//!
//! Providers' call ids repeat, may be missing, and may have a form that another provider refuses.
//! Ids are therefore kept where they are good and made up from the call's place where they are not;
//! results find their call by place, never by id.

use crate::outgoing::{arguments_text, tool_name};
use domain::message::{Message, MessageId, Part, Role};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Characters of a call id that every provider takes.
const CALL_ID_CHARS_MAX: usize = 40;
/// The text of a result without any, which some providers refuse.
const NO_OUTPUT: &str = "(no output)";

/// The words in the user's place where a provider wants a message and the thread has none.
pub(crate) const GO_ON: &str = "<notice>\nGo on.\n</notice>";

/// One entry of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    /// A message of the user, or of the host.
    User(String),
    /// The parts of a message of the model, in its order.
    Assistant(Vec<AssistantPart<'a>>),
    /// The results of all the calls of the entry before, in the order of the calls.
    Results(Vec<CallResult>),
}

/// A part of a message of the model.
#[derive(Debug, PartialEq)]
pub(crate) enum AssistantPart<'a> {
    /// Text.
    Text(&'a str),
    /// A call.
    Call {
        /// An id that is unique in this conversation.
        id: String,
        /// The tool, in a form that every provider takes.
        name: Cow<'a, str>,
        /// The arguments as the model wrote them, or an object that has them.
        arguments: Cow<'a, str>,
    },
    /// A value that this provider and model wants back.
    Opaque(&'a Value),
}

/// The result of one call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// The call's id.
    pub(crate) id: String,
    /// Its text.
    pub(crate) text: String,
    /// True if it failed.
    pub(crate) failed: bool,
}

/// The conversation in the form that providers agree on. Opaque parts of other providers and models
/// are left out.
///
/// A result is moved up to its call where something came between them. A call without a result gets
/// one that says so, and a result without a call becomes a notice. Messages that say nothing are
/// left out, and two of the model's in a row are one. So no thread, however it was cut and whatever
/// a model said in it, is refused for its form.
pub(crate) fn entries<'a>(messages: &'a [Message], provider: &str, model: &str) -> Vec<Entry<'a>> {
    let mut pairing = Pairing::new(messages);
    let mut entries = Vec::new();
    for (position, message) in messages.iter().enumerate() {
        match message.role {
            Role::User => {
                let text = plain(&message.parts);
                if !text.trim().is_empty() {
                    entries.push(Entry::User(text));
                }
            }
            Role::Notice => entries.push(Entry::User(notice(&plain(&message.parts)))),
            Role::Tool if pairing.paired.contains(&position) => {}
            Role::Tool => {
                let name = message
                    .answers
                    .as_ref()
                    .map_or("a tool", |answers| answers.name.as_str());
                entries.push(Entry::User(notice(&format!(
                    "Result of {name}: {}",
                    plain(&message.parts)
                ))));
            }
            Role::Assistant => {
                let (assistant_parts, results) = pairing.assistant(message, provider, model);
                let is_said = |assistant_part: &AssistantPart<'_>| {
                    !matches!(assistant_part, AssistantPart::Opaque(_))
                };
                match entries.last_mut() {
                    // Thoughts alone are no message.
                    _ if !assistant_parts.iter().any(is_said) => {}
                    Some(Entry::Assistant(before)) => before.extend(assistant_parts),
                    Some(_) | None => entries.push(Entry::Assistant(assistant_parts)),
                }
                if !results.is_empty() {
                    entries.push(Entry::Results(results));
                }
            }
        }
    }
    entries
}

/// Leaves of a conversation what every server takes: no value that only some want back, and ids of
/// nine letters and digits.
pub(crate) fn strip(entries: &mut [Entry<'_>]) {
    let mut ids: HashMap<String, String> = HashMap::new();
    for entry in entries {
        match entry {
            Entry::User(_) => {}
            Entry::Assistant(assistant_parts) => {
                assistant_parts
                    .retain(|assistant_part| !matches!(assistant_part, AssistantPart::Opaque(_)));
                for assistant_part in assistant_parts {
                    if let AssistantPart::Call { id, .. } = assistant_part {
                        let short = format!("call{:05}", ids.len());
                        ids.insert(std::mem::replace(id, short.clone()), short);
                    }
                }
            }
            Entry::Results(results) => {
                for result in results {
                    if let Some(short) = ids.get(&result.id) {
                        result.id.clone_from(short);
                    }
                }
            }
        }
    }
}

/// The assignment of results to calls.
struct Pairing<'a> {
    /// The first result of each call: the call's message and index, and where the result stands.
    results: HashMap<(MessageId, u32), (usize, &'a Message)>,
    /// The positions of the results that went out with their call.
    paired: HashSet<usize>,
    /// Call ids that are taken.
    ids: HashSet<String>,
}

impl<'a> Pairing<'a> {
    fn new(messages: &'a [Message]) -> Self {
        let mut results = HashMap::new();
        for (position, message) in messages.iter().enumerate() {
            if let (Role::Tool, Some(answers)) = (message.role, &message.answers) {
                results
                    .entry((answers.message, answers.index))
                    .or_insert((position, message));
            }
        }
        Self {
            results,
            paired: HashSet::new(),
            ids: HashSet::new(),
        }
    }

    fn assistant(
        &mut self,
        message: &'a Message,
        provider: &str,
        model: &str,
    ) -> (Vec<AssistantPart<'a>>, Vec<CallResult>) {
        let mut assistant_parts = Vec::new();
        let mut results = Vec::new();
        let mut index = 0;
        for part in &message.parts {
            match part {
                Part::Text { text } if text.trim().is_empty() => {}
                Part::Text { text } => assistant_parts.push(AssistantPart::Text(text)),
                Part::Call {
                    call_id,
                    name,
                    arguments,
                } => {
                    let id = self.id(call_id, message.id, index);
                    results.push(self.result(&id, message.id, index));
                    assistant_parts.push(AssistantPart::Call {
                        id,
                        name: tool_name(name),
                        arguments: arguments_text(arguments),
                    });
                    index += 1;
                }
                Part::Opaque {
                    provider: of,
                    model: by,
                    value,
                } if of == provider && by == model => {
                    assistant_parts.push(AssistantPart::Opaque(value))
                }
                // A model does not make blobs, and another model's opaque parts mean nothing here.
                Part::Blob { .. } | Part::Opaque { .. } => {}
            }
        }
        (assistant_parts, results)
    }

    fn id(&mut self, given: &str, message: MessageId, index: u32) -> String {
        let fits = !given.is_empty()
            && given.len() <= CALL_ID_CHARS_MAX
            && given
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if fits && self.ids.insert(given.to_owned()) {
            return given.to_owned();
        }
        let mut id = format!("call_{message}_{index}");
        while !self.ids.insert(id.clone()) {
            id.push('x');
        }
        id
    }

    fn result(&mut self, id: &str, message: MessageId, index: u32) -> CallResult {
        match self.results.get(&(message, index)) {
            Some((position, message)) => {
                self.paired.insert(*position);
                let failed = message
                    .answers
                    .as_ref()
                    .is_some_and(|answers| answers.failed);
                let text = plain(&message.parts);
                CallResult {
                    id: id.to_owned(),
                    text: if text.trim().is_empty() {
                        NO_OUTPUT.to_owned()
                    } else {
                        text
                    },
                    failed,
                }
            }
            None => CallResult {
                id: id.to_owned(),
                text: "No result of this call is on record.".to_owned(),
                failed: true,
            },
        }
    }
}

/// Content as text; blobs become a line that names them.
pub(crate) fn plain(parts: &[Part]) -> String {
    let mut lines = Vec::new();
    for part in parts {
        match part {
            Part::Text { text } => lines.push(text.clone()),
            Part::Blob {
                digest,
                media_type,
                size,
            } => lines.push(format!(
                "[file {}, {media_type}, {size} bytes]",
                digest.reference()
            )),
            Part::Call { .. } | Part::Opaque { .. } => {}
        }
    }
    lines.join("\n")
}

/// Text marked as the host's. What is inside cannot end the mark.
fn notice(text: &str) -> String {
    format!(
        "<notice>\n{}\n</notice>",
        text.replace("</notice", "< /notice")
    )
}

#[cfg(test)]
mod tests;
