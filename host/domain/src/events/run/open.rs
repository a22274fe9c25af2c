//! Operations without an outcome, as the fold of a run has them.

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
    /// The pause before the next segment: what that waits for.
    pub pause: Pause,
    /// The client's answer for it.
    pub answer: Option<Kept>,
    /// The segment that was recorded as about to be sent.
    pub sent: Option<u32>,
    /// The attempts at it, of a model's call.
    #[serde(default, skip_serializing_if = "Attempts::is_first")]
    pub attempts: Attempts,
    /// The cut that its prompt is made with, of a model's call: the newest when it began, or its
    /// own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<OpenCut>>,
    /// The command line that made the call and alone receives its outcome, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Box<Within>>,
    /// The call that it waits for, of a command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calling: Option<OperationId>,
    /// The calls that it has made, in order, of a command line.
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
    /// The arguments as the line gave them.
    pub arguments: String,
}

/// The cut that the prompt of an open call is made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCut {
    /// The cut.
    pub cut: PromptCut,
    /// True if it was made for this very call, so that a summary may be among its attempts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

impl Open {
    /// Notes that a segment is about to be sent, and the effect that it has by now.
    pub(super) fn send(&mut self, started: &OperationStarted) {
        self.sent = Some(started.segment);
        if let Some(effect) = started.effect {
            self.operation.effect = self.operation.effect.max(effect);
        }
    }

    /// Returns whether this segment may have reached the world.
    #[must_use]
    pub fn may_have_been_sent(&self) -> bool {
        self.sent == Some(self.segment)
    }

    /// Returns whether this segment may have done what must not be done twice. If so, a lost
    /// outcome is unknown.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        self.operation.effect == EffectClass::NonIdempotent && self.may_have_been_sent()
    }

    /// The id under which the question that it waits with is answered.
    #[must_use]
    pub fn question(&self) -> OperationId {
        match self.pause {
            Pause::Approving => self.operation.id.approval(),
            Pause::None | Pause::Until { .. } | Pause::Asking { .. } | Pause::Declined => {
                self.operation.id.question(self.segment)
            }
        }
    }

    /// Returns whether a model or a tool is, or should be, working on it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        matches!(
            self.operation.performer,
            Performer::Model { .. } | Performer::Tool { .. }
        ) && self.pause == Pause::None
    }
}
