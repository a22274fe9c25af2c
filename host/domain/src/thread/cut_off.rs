//! The mark of an incomplete reply: cut off at its length limit, withheld by the provider, or
//! declined by the model.
//!
//! The mark is a part of the message, after the model's own parts. The turn tree thus commits to
//! it, and it is copied wherever the message goes: to clients, into transcripts, to other hosts.
//! The agent reads it as an opaque part, whose handle identifies the mark. The result of a hidden
//! call, which is no message, has the part too. A complete reply has no mark.

use crate::thread::message::{Message, Part, Role};
use crate::thread::model::Stop;
use crate::values::text::words;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

/// The provider and the model of the part that contains a mark: no request is ever sent to them.
const MARKED_BY: (&str, &str) = ("agent-host", "stop");
/// The field of the mark.
const STOP: &str = "stop";
/// Beginning of the origin of a model's messages.
const OF_A_MODEL: &str = "model:";
/// Origin of an agent's own words.
const OWN_WORDS: &str = "agent";

/// The text in place of an empty reply of a model.
pub const NO_ANSWER: &str = "[the model gave no answer]";

/// The reason why a reply is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CutOff {
    /// It reached its token limit, or filled the model's window.
    Length,
    /// The provider withheld the rest, or all of it.
    ContentFilter,
    /// The model declined to answer. Its text is the refusal.
    Refusal,
}

words!(CutOff {
    Length = "length",
    ContentFilter = "content_filter",
    Refusal = "refusal",
});

impl CutOff {
    /// Returns the reason why a reply stopped too early. None if the reply is complete, or stopped
    /// for a reason that this host does not know.
    #[must_use]
    pub fn of_stop(stop: &Stop) -> Option<Self> {
        match stop {
            Stop::Length => Some(Self::Length),
            Stop::Filtered => Some(Self::ContentFilter),
            Stop::Refused => Some(Self::Refusal),
            _ => None,
        }
    }

    /// Returns the mark among the parts of a reply; none if it is complete.
    #[must_use]
    pub fn of_parts(parts: &[Part]) -> Option<Self> {
        parts.iter().find_map(|part| match part {
            Part::Opaque {
                provider,
                model,
                value,
            } if (provider.as_str(), model.as_str()) == MARKED_BY => {
                Self::from_word(value.get(STOP)?.as_str()?)
            }
            _ => None,
        })
    }

    /// The part of a message that contains the mark. It is sent to no provider, and only the host
    /// writes one.
    #[must_use]
    pub fn part(self) -> Part {
        let (provider, model) = MARKED_BY;
        Part::Opaque {
            provider: provider.to_owned(),
            model: model.to_owned(),
            value: json!({ STOP: self.as_str() }),
        }
    }

    /// Describes the reason in a few words.
    #[must_use]
    pub fn said(self) -> &'static str {
        match self {
            Self::Length => "it was cut off at the limit of its length",
            Self::ContentFilter => "the provider's content filter withheld it",
            Self::Refusal => "the model declined to answer",
        }
    }
}

/// Returns whether the host wrote a part, and not a provider.
pub(crate) fn is_by_host(provider: &str) -> bool {
    provider == MARKED_BY.0
}

/// Returns the reply of a turn with these messages: the agent's last message. If that is the
/// agent's own text about a reply that was cut off, the reply precedes it in the result. If it is a
/// model's and empty, [`NO_ANSWER`] is added; an agent's own silence is intended.
#[must_use]
pub fn reply<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> Option<Message> {
    let mut newest_first = messages.rev();
    let last = newest_first.find(|message| message.role == Role::Assistant)?;
    let mut reply = last.clone();
    if last.origin == OWN_WORDS
        && let Some(before) = newest_first.next()
        && before.role == Role::Assistant
        && CutOff::of_parts(&before.parts).is_some()
    {
        let is_said = |part: &&Part| !matches!(part, Part::Call { .. });
        let said = before.parts.iter().filter(is_said);
        reply.parts = said.chain(&last.parts).cloned().collect();
    }
    if is_unanswered(&reply) {
        reply.parts.push(Part::text(NO_ANSWER));
    }
    Some(reply)
}

/// Returns whether a model's message has no text for people, and no reason for that.
fn is_unanswered(message: &Message) -> bool {
    let is_silent = |part: &Part| match part {
        Part::Text { text } => text.trim().is_empty(),
        Part::Opaque { .. } => true,
        _ => false,
    };
    message.origin.starts_with(OF_A_MODEL)
        && message.parts.iter().all(is_silent)
        && CutOff::of_parts(&message.parts).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::message::Draft;
    use crate::values::digest::{Digest, Salt};

    fn said(id: u64, origin: &str, parts: Vec<Part>) -> Message {
        Draft {
            role: Role::Assistant,
            parts,
            origin: origin.to_owned(),
            untrusted: false,
            speaker: None,
            answers: None,
        }
        .at(id, Salt::default())
    }

    /// The SDK and agents in other languages know these handles: they are part of the contract.
    #[test]
    fn an_agent_knows_a_mark_by_its_handle() {
        let handles = CutOff::ALL.map(|cut_off| match cut_off.part() {
            Part::Opaque { value, .. } => Digest::of(value.to_string().as_bytes()).reference(),
            other => panic!("{other:?}"),
        });
        assert_eq!(
            handles,
            [
                "sha256:ff0d7bb5d6830b3911ab0b77fdc9fc7124bc43701db8c577c5212cedaff8f1cc",
                "sha256:5f45039a0052fc17290afc1a9b3436a8aa2aa0d8807e4d47f2eeb0edeac48fa4",
                "sha256:b600c81641609188416647a4c8039c43ac6294525e0e49c076fe1c8e1ddd539f",
            ]
        );
    }

    #[test]
    fn a_mark_is_read_back_and_nothing_else_is_taken_for_one() {
        for cut_off in CutOff::ALL {
            assert_eq!(
                CutOff::of_parts(&[Part::text("a"), cut_off.part()]),
                Some(cut_off)
            );
        }
        let of_a_provider = Part::Opaque {
            provider: "agent-host".to_owned(),
            model: "m".to_owned(),
            value: json!({ "stop": "length" }),
        };
        assert_eq!(CutOff::of_parts(&[Part::text("a"), of_a_provider]), None);
    }

    #[test]
    fn what_an_agent_says_of_a_reply_that_was_cut_off_stands_behind_it() {
        let cut = said(2, "model:m", vec![Part::text("so"), CutOff::Length.part()]);
        let mark = said(3, "agent", vec![Part::text("[cut off]")]);
        let whole = reply([&cut, &mark].into_iter()).unwrap();
        assert_eq!((whole.id, whole.text().as_str()), (3, "so\n[cut off]"));
        assert_eq!(CutOff::of_parts(&whole.parts), Some(CutOff::Length));
        // Another reply takes its place, and what is said of a whole one stands alone.
        let again = said(3, "model:m", vec![Part::text("anew")]);
        assert_eq!(reply([&cut, &again].into_iter()).unwrap().text(), "anew");
        let first = said(2, "model:m", vec![Part::text("so")]);
        assert_eq!(
            reply([&first, &mark].into_iter()).unwrap().text(),
            "[cut off]"
        );
        assert_eq!(reply([].into_iter()), None);
    }

    #[test]
    fn a_model_that_says_nothing_gave_no_answer_and_a_silent_agent_is_silent() {
        let thought = Part::Opaque {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            value: json!({}),
        };
        for (origin, parts, heard) in [
            ("model:m", vec![], NO_ANSWER),
            ("model:m", vec![thought], NO_ANSWER),
            (
                "model:m",
                vec![Part::text(" \n")],
                " \n\n[the model gave no answer]",
            ),
            ("model:m", vec![CutOff::Length.part()], ""),
            ("agent", vec![], ""),
        ] {
            let silent = said(2, origin, parts);
            assert_eq!(
                reply([&silent].into_iter()).unwrap().text(),
                heard,
                "{silent:?}"
            );
        }
    }
}
