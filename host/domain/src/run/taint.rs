//! The mark *untrusted*: what rests on content from outside the user's and the operator's control.
//!
//! What a tool of a component gives is from outside. A run carries the mark as a whole, from the first such thing that it hears, because
//! nobody can tell which of a model's words rest on which of those that it read; and so does every later turn of the same thread, which shows
//! it again, and every turn of an agent whose memory has it. Everything that leaves a marked run is marked where it arrives: work that is
//! handed over, replies, late replies, reminders, notes, what an agent remembers, and what a recall finds.
//!
//! A mark is never taken away by what somebody says; an empty thread has none.

use super::Run;
use super::intake::Intake;
use crate::message::Message;
use crate::operation::Settlement;

impl Run {
    /// Whether anything that it has heard, or that its thread shows, rests on content from outside.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.untrusted || self.started.untrusted || is_any_marked(self.messages.iter().map(AsRef::as_ref))
    }

    /// The same with what a step is told.
    #[must_use]
    pub fn is_untrusted_with(&self, intake: &Intake) -> bool {
        self.is_untrusted() || is_any_marked(&intake.heard) || intake.settled.iter().any(Settlement::is_untrusted)
    }
}

impl Settlement {
    /// Whether what it brings rests on content from outside.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.untrusted || self.result.as_ref().is_some_and(|result| result.untrusted)
    }

    /// With the mark, if there is reason for it.
    #[must_use]
    pub fn marked(mut self, untrusted: bool) -> Self {
        self.untrusted |= untrusted;
        if let Some(result) = &mut self.result {
            result.untrusted |= untrusted;
        }
        self
    }
}

/// Whether any of these messages has the mark.
pub(super) fn is_any_marked<'a>(messages: impl IntoIterator<Item = &'a Message>) -> bool {
    messages.into_iter().any(|message| message.untrusted)
}
