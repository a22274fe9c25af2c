//! The mark *untrusted*: content that rests on anything from outside the user's and the operator's
//! control.
//!
//! The result of a component's tool is from outside. The mark applies to the whole run, from the
//! first such content on. It is unknown which parts of a model's text rest on which parts of its
//! input. Three more groups of turns get the mark: every later turn of the same thread, which shows
//! the content again; every turn of an agent whose memory has it; and every turn that is shown the
//! end of a session whose thread has it. Everything that leaves a marked run is marked at its
//! destination: handed-over work, replies, late replies, reminders, notes, an agent's memories, and
//! the results of a recall.
//!
//! An agent's text that follows from an external program's answer counts as that program's, and has
//! the mark itself. A mark is never removed by a message; an empty thread has none.

use super::Run;
use super::intake::Intake;
use crate::thread::message::Message;
use crate::work::operation::{Performer, Settlement};

impl Run {
    /// Returns whether any of its input or its thread rests on content from outside.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.untrusted
            || self.started.untrusted
            || is_any_marked(self.messages.iter().map(AsRef::as_ref))
    }

    /// Returns the same, including what a step takes in.
    #[must_use]
    pub fn is_untrusted_with(&self, intake: &Intake) -> bool {
        self.is_untrusted()
            || intake.history_untrusted
            || is_any_marked(&intake.heard)
            || intake.settled.iter().any(Settlement::is_untrusted)
    }

    /// Returns whether a step's input has an answer by an external program.
    pub(super) fn hears_from_elsewhere(&self, intake: &Intake) -> bool {
        self.to_hear(&intake.settled)
            .filter(|(_, settlement)| settlement.is_untrusted())
            .any(|(operation, _)| matches!(operation.performer, Performer::External { .. }))
    }
}

impl Settlement {
    /// Returns whether it contains content that rests on the outside.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.untrusted || self.result.as_ref().is_some_and(|result| result.untrusted)
    }

    /// Adds the mark if `untrusted` is true.
    #[must_use]
    pub fn marked(mut self, untrusted: bool) -> Self {
        self.untrusted |= untrusted;
        if let Some(result) = &mut self.result {
            result.untrusted |= untrusted;
        }
        self
    }
}

/// Returns whether any of these messages has the mark.
pub(super) fn is_any_marked<'a>(messages: impl IntoIterator<Item = &'a Message>) -> bool {
    messages.into_iter().any(|message| message.untrusted)
}
