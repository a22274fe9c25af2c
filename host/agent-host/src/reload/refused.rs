//! Refusals of a configuration.

use crate::failure::Failure;

/// A refusal of a configuration as a whole.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) failure: Failure,
    /// True if it may be accepted without a change of a file that is looked at.
    pub(crate) may_change: bool,
}

impl Refused {
    /// The same, with the changes that are read at a start only: what is missing may be among them.
    pub(super) fn beside(self, needing_restart: &[String]) -> Self {
        if needing_restart.is_empty() || self.failure.advice.is_some() {
            return self;
        }
        let advice = format!(
            "changed as well, and read at a start only: {}; restart the host if it needs them",
            needing_restart.join(", ")
        );
        Self {
            failure: self.failure.advise(advice),
            ..self
        }
    }

    /// Returns the reason in words, with the way out of it.
    pub(crate) fn reason(&self) -> String {
        let causes = self.failure.error.chain().map(ToString::to_string);
        let reason: Vec<String> = causes.chain(self.failure.advice.clone()).collect();
        reason.join("; ")
    }

    pub(super) fn for_good(failure: Failure) -> Self {
        Self {
            failure,
            may_change: false,
        }
    }

    pub(super) fn for_now(failure: Failure) -> Self {
        Self {
            failure,
            may_change: true,
        }
    }
}
