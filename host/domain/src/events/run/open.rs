//! Operations without an outcome, in the fold of a run.

use super::Attempts;
use crate::access::tool::EffectClass;
use crate::events::event::OperationStarted;
use crate::thread::prompt_cut::PromptCut;
use crate::values::id::OperationId;
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
