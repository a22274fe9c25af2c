//! The purposes of calls of components, and which of these calls have an entry in the ledger.

use domain::event::BoundaryVerdict;
use domain::id::RunId;
use domain::ruling::Rule;
use domain::time::Timestamp;
use runtime::Decided;

/// Milliseconds after which a repeated call gets another entry.
const AGAIN_MS: u64 = 3_600_000;

/// The purpose of a call of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallPurpose {
    /// News.
    Poll,
    /// The content of a call of the service.
    Receive,
    /// To send a message, for its run if it has one.
    Send(Option<RunId>),
    /// To show that the agent is typing, or more of a growing reply.
    Show(RunId),
    /// To acknowledge a message to its service.
    Acknowledge,
    /// A file.
    Fetch,
}

impl CallPurpose {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "connector.poll",
            Self::Receive => "connector.receive",
            Self::Send(_) | Self::Show(_) | Self::Acknowledge => "connector.send",
            Self::Fetch => "connector.fetch",
        }
    }

    /// Returns the run that the call is for, if any.
    pub(super) fn run(self) -> Option<RunId> {
        match self {
            Self::Send(Some(run)) | Self::Show(run) => Some(run),
            Self::Send(None) | Self::Acknowledge | Self::Poll | Self::Receive | Self::Fetch => None,
        }
    }
}

/// The decisions in repeated calls, as they were last recorded.
#[derive(Debug, Default)]
pub(super) struct Notes {
    polls: Note,
    shows: Note,
    acknowledgements: Note,
}

#[derive(Debug, Default)]
struct Note(Option<(Vec<Kind>, Timestamp)>);

/// A decision without its number and its detail.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    capability: String,
    verdict: BoundaryVerdict,
    rule: Rule,
}

impl Notes {
    /// Returns whether decisions have to be recorded, and remembers them if so.
    pub(super) fn is_news(
        &mut self,
        asked: CallPurpose,
        decided: &Decided,
        now: Timestamp,
    ) -> bool {
        let note = match asked {
            CallPurpose::Poll => &mut self.polls,
            CallPurpose::Show(_) => &mut self.shows,
            CallPurpose::Acknowledge => &mut self.acknowledgements,
            CallPurpose::Receive | CallPurpose::Send(_) | CallPurpose::Fetch => return true,
        };
        let mut kinds: Vec<Kind> = decided
            .decisions
            .iter()
            .map(|decision| Kind {
                capability: decision.capability.clone(),
                verdict: decision.verdict,
                rule: decision.rule,
            })
            .collect();
        kinds.sort();
        let is_known = note
            .0
            .as_ref()
            .is_some_and(|(known, at)| *known == kinds && now.since_ms(*at) < AGAIN_MS);
        if !is_known {
            note.0 = Some((kinds, now));
        }
        !is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::event::BoundaryDecision;
    use domain::grant::capability::NET_HTTP;

    fn decided(verdict: BoundaryVerdict, times: u64) -> Decided {
        Decided {
            decisions: vec![BoundaryDecision {
                capability: NET_HTTP.to_owned(),
                verdict,
                rule: Rule::Granted,
                times,
                detail: String::new(),
            }],
            ..Decided::default()
        }
    }

    #[test]
    fn a_poll_like_the_one_before_has_no_entry_for_an_hour() {
        let mut notes = Notes::default();
        let granted = decided(BoundaryVerdict::Granted, 1);
        let mut is_news =
            |ms: u64, decided: &Decided| notes.is_news(CallPurpose::Poll, decided, Timestamp(ms));
        assert!(is_news(0, &granted));
        assert!(!is_news(1_000, &decided(BoundaryVerdict::Granted, 2)));
        assert!(is_news(2_000, &decided(BoundaryVerdict::Refused, 1)));
        assert!(is_news(3_000, &granted));
        assert!(!is_news(3_000 + AGAIN_MS - 1, &granted));
        assert!(is_news(3_000 + AGAIN_MS, &granted));
    }

    #[test]
    fn each_message_that_is_sent_has_an_entry() {
        let mut notes = Notes::default();
        let granted = decided(BoundaryVerdict::Granted, 1);
        let mut is_news = || notes.is_news(CallPurpose::Send(None), &granted, Timestamp(0));
        assert!(is_news() && is_news());
    }
}
