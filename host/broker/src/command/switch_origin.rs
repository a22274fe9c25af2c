//! The place that a user came from, when they switched to a session.
//!
//! It is an attribute of that session. So it is shown and deleted with the session, and needs no
//! record of its own. It is recorded in the commit of the switch: a crash cannot separate the
//! user's message from the way back.

use super::{Error, Switches};
use crate::refusals::same_session;
use domain::event::{Event, SessionAttributed};
use domain::id::{AgentId, InputId, RunId, SessionId, Stream};
use domain::message::MessageId;
use domain::refusal::Refusal;
use domain::session_label::{Changes, Label};
use domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::{InputState, SessionRow};

/// The attribute of a session that records from where its user switched to it.
pub(super) const SWITCHED_FROM: &str = "switched_from";
/// Events of a run that are read at a time.
const PAGE: usize = 1_000;

/// The place that a user came from, in the form of the attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SwitchOrigin {
    /// The session.
    pub(super) session_id: SessionId,
    /// Its agent.
    pub(super) agent_id: AgentId,
    /// The message with which the user switched; none if they switched without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_id: Option<InputId>,
    /// The first message of the session with the attribute that is of interest there, unless the
    /// words became a later one.
    first_message: MessageId,
}

impl SwitchOrigin {
    /// Reads the attribute; none if it is missing or has any other content.
    pub(super) fn of(row: &SessionRow) -> Option<Self> {
        Self::deserialize(row.attributes.get(SWITCHED_FROM)?).ok()
    }

    fn attributes(&self) -> Map<String, Value> {
        Map::from_iter([(SWITCHED_FROM.to_owned(), json!(self))])
    }
}

/// A user on their way from a session to another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaving {
    /// The session that they leave.
    pub(super) session: SessionId,
    /// Its agent.
    pub(super) agent: AgentId,
}

impl Leaving {
    /// Returns the event by which a session records where its user came from, with this message.
    /// None if it is already recorded: after a repeated switch from the same session before a
    /// return, the summary covers everything.
    ///
    /// # Errors
    /// It is the session that they leave; it has no room for the attribute.
    pub(super) fn to(
        self,
        there: &SessionRow,
        words: Option<InputId>,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        if there.id == self.session {
            return Err(same_session());
        }
        let before = SwitchOrigin::of(there).filter(|before| before.session_id == self.session);
        let outcome =
            before.unwrap_or_else(|| self.outcome(words, there.head_message.saturating_add(1)));
        let label = Label {
            session: there.id,
            name: there.name.as_deref(),
            pinned: there.pinned_at.is_some(),
            attributes: &there.attributes,
        };
        let changes = Changes {
            attributes: Some(outcome.attributes()),
            ..Changes::default()
        };
        Ok(label.change(changes, now)?.pop())
    }

    /// Returns the event by which a session notes it that is opened for this.
    pub(super) fn to_new(
        self,
        session: SessionId,
        words: Option<InputId>,
        now: Timestamp,
    ) -> Event {
        Event::SessionAttributed(SessionAttributed {
            session,
            attributes: self.outcome(words, 1).attributes(),
            time: now,
        })
    }

    fn outcome(self, words: Option<InputId>, first_message: MessageId) -> SwitchOrigin {
        SwitchOrigin {
            session_id: self.session,
            agent_id: self.agent,
            input_id: words,
            first_message,
        }
    }
}

/// The message of an input, searched in the events of the run that claimed it.
struct Sought {
    input: InputId,
    /// The inputs with which the run began, until its first step hears them.
    begun_with: Vec<InputId>,
    /// True if they are one message.
    collected: bool,
}

impl Sought {
    fn find(&mut self, event: &Event) -> Option<MessageId> {
        if let Event::RunStarted(started) = event {
            self.begun_with.clone_from(&started.claimed);
            self.collected = started.collected;
        }
        let stepped = event.step()?;
        let begun_with = std::mem::take(&mut self.begun_with);
        let is_one = self.collected && stepped.step == 0;
        let claimed = begun_with.iter().chain(&stepped.claimed);
        // A step's news end with the words of its inputs, in their order.
        let behind = claimed
            .skip_while(|claimed| **claimed != self.input)
            .count();
        let behind = if is_one { behind.min(1) } else { behind };
        let place = stepped.heard.len().checked_sub(behind)?;
        // No message at that place: the input does not belong to this step.
        stepped.heard.get(place).map(|message| message.id)
    }
}

impl Switches<'_> {
    /// Returns the first message of a session since its user switched to it.
    pub(super) async fn first_since(
        &self,
        there: SessionId,
        outcome: &SwitchOrigin,
    ) -> Result<MessageId, Error> {
        let Some(input) = outcome.input_id else {
            return Ok(outcome.first_message);
        };
        let run = match self.store().input(input).await? {
            Some((accepted, InputState::Claimed { run } | InputState::Consumed { run }))
                if accepted.session == there =>
            {
                run
            }
            // The words were taken back, or put aside.
            Some(_) | None => return Ok(outcome.first_message),
        };
        let message = self.message_of(input, run).await?;
        Ok(message.unwrap_or(outcome.first_message))
    }

    /// Returns the message that an input became; none if its run ended before it was heard.
    async fn message_of(&self, input: InputId, run: RunId) -> Result<Option<MessageId>, Error> {
        let mut sought = Sought {
            input,
            begun_with: Vec::new(),
            collected: false,
        };
        let mut after = 0;
        loop {
            let events = self.store().stream(Stream::Run(run), after, PAGE).await?;
            let count = events.len();
            for recorded in events {
                after = recorded.version;
                let found = recorded.event.as_ref().and_then(|event| sought.find(event));
                if found.is_some() {
                    return Ok(found);
                }
            }
            if count < PAGE {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SwitchOrigin;
    use crate::core::fresh;
    use serde::Deserialize;
    use serde_json::json;

    #[test]
    fn an_attribute_that_somebody_else_wrote_is_no_place_to_return_to() {
        let outcome = SwitchOrigin {
            session_id: fresh::session(),
            agent_id: fresh::agent(),
            input_id: Some(fresh::input()),
            first_message: 7,
        };
        assert_eq!(
            SwitchOrigin::deserialize(json!(outcome)).ok(),
            Some(outcome)
        );
        for other in [json!(null), json!("x"), json!({ "session_id": "x" })] {
            assert_eq!(SwitchOrigin::deserialize(&other).ok(), None, "{other}");
        }
    }
}
