//! Messages to people outside: whole ones in the queue, and the chunks for a service.

use super::incoming::Moved;
use super::split::{closing_of, split};
use super::{
    ATTEMPTS_MAX, Abilities, OUTGOING_BYTES_MAX, REASON_BYTES_MAX, RETRIES, RETRY_AFTER_MS_MAX,
    TEXT_LIMIT_MIN,
};
use crate::values::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The end of a text that was too long to send.
const CUT: &str = "\n\n[The reply was longer; read the rest where the conversation is kept.]";

/// Bytes reserved for it, and for closing a code block before it.
const CUT_BYTES: usize = 256;

/// One choice of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The text that people see.
    pub label: String,
    /// The value that the service returns for this choice.
    pub value: String,
}

/// A message to people outside, whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outbound {
    /// The text, in Markdown.
    pub text: String,
    /// The choices of a question.
    pub choices: Vec<Choice>,
    /// The text for services without buttons; none without choices.
    pub without_buttons: Option<String>,
}

/// The content of one call of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text in Markdown.
    Text(String),
    /// A question with its choices.
    Question(String, Vec<Choice>),
    /// A typing notice.
    Typing,
    /// A new text for a message that was sent before.
    Edit {
        /// The service's id of the message.
        id: String,
        /// The text, in Markdown.
        text: String,
    },
    /// Acknowledges a message to the service, by the message's handle.
    Acknowledgement(String),
}

/// One message for a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The chat, in the service's terms.
    pub chat: String,
    /// The content.
    pub body: Body,
    /// The same for every attempt.
    pub idempotency_key: String,
}

impl Outbound {
    /// A text, cut to the longest that can be sent; none if empty.
    #[must_use]
    pub fn text(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self {
            text: cut(text),
            ..Self::default()
        })
    }

    /// Returns the chunks for a service. There is at least one, unless the message is empty.
    #[must_use]
    pub fn chunks(&self, abilities: &Abilities) -> Vec<Body> {
        let limit = abilities.text_limit.max(TEXT_LIMIT_MIN);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let buttons = usize::try_from(abilities.buttons_max).unwrap_or(usize::MAX);
        let as_buttons = !self.choices.is_empty() && self.choices.len() <= buttons;
        let text = match &self.without_buttons {
            Some(text) if !as_buttons => text,
            _ => &self.text,
        };
        let mut chunks: Vec<Body> = split(text, limit).into_iter().map(Body::Text).collect();
        if as_buttons && let Some(Body::Text(last)) = chunks.pop() {
            chunks.push(Body::Question(last, self.choices.clone()));
        }
        chunks
    }
}

fn cut(text: &str) -> String {
    if text.len() <= OUTGOING_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(OUTGOING_BYTES_MAX - CUT_BYTES);
    let kept = text.get(..end).unwrap_or_default().trim_end();
    let closing = closing_of(kept).map_or_else(String::new, |marker| format!("\n{marker}"));
    format!("{kept}{closing}{CUT}")
}

// Attempts at an outbound message: the consequence of a failed one, and the time of the next.

/// Milliseconds before another attempt with refused credentials: an operator has to change them
/// first.
const UNAUTHORISED_MS: u64 = 60_000;

/// The reason why a service failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectorFailure {
    /// It can never be done.
    #[error("the service refused it: {0}")]
    Rejected(String),
    /// The credentials are refused.
    #[error("the service does not take the credentials: {0}")]
    Unauthorised(String),
    /// Nothing was done. It may be repeated after so many milliseconds.
    #[error("the service cannot be used now: {reason}")]
    RetryLater {
        /// Milliseconds that the service asks for.
        after_ms: u64,
        /// The reason.
        reason: String,
    },
    /// It is unknown whether it was done.
    #[error("it cannot be told whether the service did it: {0}")]
    Unknown(String),
    /// Nothing was done: the id of the chat has changed.
    #[error("the chat is `{chat}` now")]
    Moved {
        /// The new id of the chat, in the service's terms.
        chat: String,
        /// The change of the id.
        moved: Moved,
    },
}

/// The consequence of a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is tried again at this time.
    Retry(Timestamp),
    /// It may have been sent, and is not sent again.
    Unknown,
    /// It is given up.
    Dead,
}

/// The consequence of an attempt that had begun when the host stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    /// It is sent again, under the same idempotency key.
    Again,
    /// It may have been sent, and is not sent again.
    Unknown,
}

/// Returns the time of the attempt after a failed one, which is not before the service's own wait.
/// None after the last attempt. Attempts are counted from 1.
#[must_use]
pub fn retry_at(attempt: u32, retry_after_ms: Option<u64>, now: Timestamp) -> Option<Timestamp> {
    if attempt >= ATTEMPTS_MAX {
        return None;
    }
    let asked_ms = retry_after_ms.unwrap_or(0).min(RETRY_AFTER_MS_MAX);
    Some(now.plus_ms(RETRIES.pause_ms(attempt).max(asked_ms)))
}

/// Returns the consequence of a failed attempt to send. An attempt that may have succeeded is
/// repeated only if the service accepts the same message once, and is not reported as given up.
#[must_use]
pub fn judge(failure: &ConnectorFailure, attempt: u32, idempotent: bool, now: Timestamp) -> Fate {
    let again =
        |asked_ms, else_fate| retry_at(attempt, asked_ms, now).map_or(else_fate, Fate::Retry);
    match failure {
        // After repeated moves, a message is given up.
        ConnectorFailure::Rejected(_) | ConnectorFailure::Moved { .. } => Fate::Dead,
        ConnectorFailure::Unauthorised(_) => again(Some(UNAUTHORISED_MS), Fate::Dead),
        ConnectorFailure::RetryLater { after_ms, .. } => again(Some(*after_ms), Fate::Dead),
        ConnectorFailure::Unknown(_) if idempotent => again(None, Fate::Unknown),
        ConnectorFailure::Unknown(_) => Fate::Unknown,
    }
}

/// Returns the consequence of an attempt that had begun when the host stopped.
#[must_use]
pub fn interrupted(idempotent: bool) -> Interrupted {
    if idempotent {
        Interrupted::Again
    } else {
        Interrupted::Unknown
    }
}

/// Returns the stored beginning of a reason.
#[must_use]
pub fn kept_reason(reason: &str) -> String {
    let mut kept = reason.to_owned();
    kept.truncate(kept.floor_char_boundary(REASON_BYTES_MAX));
    kept
}

#[cfg(test)]
mod tries_tests {
    use super::*;

    const NOW: Timestamp = Timestamp(10_000);

    #[test]
    fn each_pause_is_twice_the_one_before_up_to_an_hour() {
        let pause = |attempt| retry_at(attempt, None, NOW).map(|at| at.since_ms(NOW));
        for (attempt, ms) in [
            (0, Some(1_000)),
            (1, Some(1_000)),
            (12, Some(2_048_000)),
            (13, Some(3_600_000)),
            (ATTEMPTS_MAX - 1, Some(3_600_000)),
            (ATTEMPTS_MAX, None),
            (u32::MAX, None),
        ] {
            assert_eq!(pause(attempt), ms, "{attempt}");
        }
    }

    #[test]
    fn no_attempt_is_made_before_the_service_wants_it() {
        let pause = |asked| retry_at(1, Some(asked), NOW).map(|at| at.since_ms(NOW));
        assert_eq!(pause(30_000), Some(30_000));
        assert_eq!(pause(10), Some(1_000));
        assert_eq!(pause(u64::MAX), Some(RETRY_AFTER_MS_MAX));
    }

    #[test]
    fn what_may_have_been_sent_is_sent_again_only_under_an_idempotency_key() {
        let lost = ConnectorFailure::Unknown("the connection broke".to_owned());
        assert_eq!(judge(&lost, 1, false, NOW), Fate::Unknown);
        assert!(matches!(judge(&lost, 1, true, NOW), Fate::Retry(_)));
        assert_eq!(judge(&lost, ATTEMPTS_MAX, true, NOW), Fate::Unknown);
        assert_eq!(interrupted(false), Interrupted::Unknown);
        assert_eq!(interrupted(true), Interrupted::Again);
    }

    #[test]
    fn what_can_never_be_done_is_given_up_at_once() {
        let gone = ConnectorFailure::Rejected("the chat is gone".to_owned());
        assert_eq!(judge(&gone, 1, true, NOW), Fate::Dead);
        let busy = ConnectorFailure::RetryLater {
            after_ms: 5_000,
            reason: "too many".to_owned(),
        };
        let at = NOW.plus_ms(5_000);
        assert_eq!(judge(&busy, 1, false, NOW), Fate::Retry(at));
        assert_eq!(judge(&busy, ATTEMPTS_MAX, false, NOW), Fate::Dead);
        let revoked = ConnectorFailure::Unauthorised("401".to_owned());
        let at = NOW.plus_ms(UNAUTHORISED_MS);
        assert_eq!(judge(&revoked, 1, false, NOW), Fate::Retry(at));
    }

    #[test]
    fn a_reason_is_kept_up_to_a_length() {
        let reason = "ä".repeat(REASON_BYTES_MAX);
        let kept = kept_reason(&reason);
        assert!(kept.len() <= REASON_BYTES_MAX && reason.starts_with(&kept));
        assert_eq!(kept_reason("short"), "short");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::connector::Intake;

    fn abilities(text_limit: u32, buttons_max: u32) -> Abilities {
        Abilities {
            intake: vec![Intake::Polling],
            text_limit,
            buttons_max,
            edits: false,
            typing: false,
            idempotent: false,
        }
    }

    fn question() -> Outbound {
        let choice = |label: &str| Choice {
            label: label.to_owned(),
            value: label.to_lowercase(),
        };
        Outbound {
            text: "Which?".to_owned(),
            choices: vec![choice("One"), choice("Two")],
            without_buttons: Some("Which?\n\n1. One\n2. Two".to_owned()),
        }
    }

    #[test]
    fn nothing_to_say_is_not_sent() {
        for nothing in ["", "  \n ", "\t"] {
            assert_eq!(Outbound::text(nothing), None);
        }
        let said = Outbound::text(" hello\n").unwrap();
        let chunks = said.chunks(&abilities(4_096, 0));
        assert_eq!(chunks, [Body::Text("hello".to_owned())]);
    }

    #[test]
    fn choices_are_buttons_where_the_service_has_enough() {
        let asked = question();
        let choices = asked.choices.clone();
        assert_eq!(
            asked.chunks(&abilities(4_096, 2)),
            [Body::Question("Which?".to_owned(), choices)]
        );
        let numbered = asked.without_buttons.clone().unwrap();
        for buttons in [0, 1] {
            let chunks = asked.chunks(&abilities(4_096, buttons));
            assert_eq!(chunks, [Body::Text(numbered.clone())]);
        }
    }

    #[test]
    fn the_buttons_of_a_long_question_are_under_its_last_piece() {
        let mut asked = question();
        asked.text = format!("{}\n\nWhich?", "word ".repeat(80).trim_end());
        let chunks = asked.chunks(&abilities(200, 3));
        let (last, before) = chunks.split_last().unwrap();
        assert!(matches!(last, Body::Question(text, _) if text.ends_with("Which?")));
        assert!(before.len() >= 2);
        assert!(before.iter().all(|chunk| matches!(chunk, Body::Text(_))));
    }

    #[test]
    fn a_text_beyond_all_bounds_is_cut_and_says_so() {
        let long = format!("```\n{}", "ab\n".repeat(OUTGOING_BYTES_MAX / 2));
        let text = Outbound::text(&long).unwrap().text;
        assert!(text.len() <= OUTGOING_BYTES_MAX);
        assert!(text.ends_with(&format!("\n```{CUT}")));
        let whole = "a".repeat(OUTGOING_BYTES_MAX);
        assert_eq!(Outbound::text(&whole).unwrap().text, whole);
    }
}
