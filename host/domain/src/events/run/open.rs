//! Operations without an outcome, in the fold of a run.

use super::settle::question;
use super::{Attempts, Run};
use crate::access::tool::EffectClass;
use crate::events::event::{Event, OperationStarted};
use crate::thread::prompt_cut::PromptCut;
use crate::values::id::OperationId;
use crate::values::time::Timestamp;
use crate::work::operation::{Called, Kept, Operation, Pause, Performer};
use serde::{Deserialize, Serialize};

/// An operation without an outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// The operation as it was started.
    pub operation: Operation,
    /// The present or next segment, counted from 0.
    pub segment: u32,
    /// State that the last segment left.
    pub state: Option<Vec<u8>>,
    /// The pause before the next segment.
    pub pause: Pause,
    /// The client's answer for it.
    pub answer: Option<Kept>,
    /// The segment that was recorded as about to be sent, if any.
    pub sent: Option<u32>,
    /// The attempts at it, for a model call.
    #[serde(default, skip_serializing_if = "Attempts::is_first")]
    pub attempts: Attempts,
    /// The cut for its prompt, for a model call: the newest at its beginning, or its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<OpenCut>>,
    /// The command line that made the call and alone receives its outcome, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Box<Within>>,
    /// The call that it waits for, for a command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calling: Option<OperationId>,
    /// The calls that it has made, in order, for a command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<Called>,
}

/// The place of a call in the command line that makes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Within {
    /// The command line.
    pub line: OperationId,
    /// The tool.
    pub tool: String,
    /// The arguments from the line.
    pub arguments: String,
}

/// The cut for the prompt of an open call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCut {
    /// The cut.
    pub cut: PromptCut,
    /// True if it was made for this call, so that a summary may be among its attempts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

impl Open {
    /// Notes that a segment is about to be sent, and its present effect.
    pub(super) fn send(&mut self, started: &OperationStarted) {
        self.sent = Some(started.segment);
        if let Some(effect) = started.effect {
            self.operation.effect = self.operation.effect.max(effect);
        }
    }

    /// Returns whether this segment may have affected the outside.
    #[must_use]
    pub fn may_have_been_sent(&self) -> bool {
        self.sent == Some(self.segment)
    }

    /// Returns whether this segment may have had an effect that must not be repeated. If so, a lost
    /// outcome is unknown.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        self.operation.effect == EffectClass::NonIdempotent && self.may_have_been_sent()
    }

    /// The id for the answer to its open question.
    #[must_use]
    pub fn question(&self) -> OperationId {
        match self.pause {
            Pause::Approving => self.operation.id.approval(),
            Pause::None | Pause::Until { .. } | Pause::Asking { .. } | Pause::Declined => {
                self.operation.id.question(self.segment)
            }
        }
    }

    /// Returns whether a model or a tool works on it, or should.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(
            self.operation.performer,
            Performer::Model { .. } | Performer::Tool { .. }
        ) && self.pause == Pause::None
    }
}

// The time for which a run waited for people. The clock of its deadline stops meanwhile.

/// The time for which a run has waited for a person's answer or approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Waited {
    /// Milliseconds of waits that are over.
    pub ms: u64,
    /// The beginning of the present wait; none if no question is open.
    pub since: Option<Timestamp>,
}

impl Waited {
    /// Returns a deadline moved by the waits. None while a question is open.
    #[must_use]
    pub fn moved(self, deadline: Timestamp) -> Option<Timestamp> {
        self.since.is_none().then(|| deadline.plus_ms(self.ms))
    }

    /// Returns both waits together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            ms: self.ms.saturating_add(other.ms),
            since: self.since.or(other.since),
        }
    }
}

impl Run {
    /// Returns the time by which it has to be done: its deadline, plus the time spent waiting for
    /// people. None while a question is open.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.waited.moved(self.started.deadline?)
    }

    /// Notes the beginning or the end of a wait, after an event was applied.
    pub(super) fn note_wait(&mut self, event: &Event) {
        let asks = self.open.values().any(|open| question(open).is_some());
        match (self.waited.since, asks) {
            (None, true) => self.waited.since = time_of(event),
            (Some(since), false) => {
                let until = time_of(event).unwrap_or(since);
                self.waited.ms = self.waited.ms.saturating_add(until.since_ms(since));
                self.waited.since = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
}

/// Returns the time of an event with which a wait may begin or end.
fn time_of(event: &Event) -> Option<Timestamp> {
    match event {
        Event::RunStepped(stepped) => Some(stepped.time),
        Event::RunSettled(settled) => settled.settled.iter().map(|it| it.time).max(),
        Event::OperationContinued(continuation) => {
            match (&continuation.pause, &continuation.call) {
                (Pause::Asking { since, .. }, _) => Some(*since),
                (_, call) => call.as_ref().map(|call| call.time),
            }
        }
        Event::OperationAnswered(answer) => Some(answer.time),
        Event::ApprovalAnswered(answered) => Some(answered.time),
        _ => None,
    }
}

#[cfg(test)]
mod waited_tests {
    use super::Waited;
    use crate::values::time::Timestamp;

    #[test]
    fn a_deadline_stands_still_while_a_person_is_asked_and_is_later_afterwards() {
        let deadline = Timestamp(60_000);
        let over = |ms| Waited { ms, since: None };
        assert_eq!(over(0).moved(deadline), Some(deadline));
        assert_eq!(over(5_000).moved(deadline), Some(Timestamp(65_000)));
        let asked = Waited {
            ms: 5_000,
            since: Some(Timestamp(9_000)),
        };
        assert_eq!(asked.moved(deadline), None);
        assert_eq!(over(1_000).and(over(2_000)), over(3_000));
        assert_eq!(over(1_000).and(asked).moved(deadline), None);
    }
}
