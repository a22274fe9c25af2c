//! The time for which a run waited for people. The clock of its deadline stops meanwhile.

use super::Run;
use super::settle::question;
use crate::events::event::Event;
use crate::values::time::Timestamp;
use crate::work::operation::Pause;
use serde::{Deserialize, Serialize};

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
mod tests {
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
