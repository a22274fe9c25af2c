//! Post and await: waiting for the result of an input.
//!
//! The input is durable before the wait begins, so giving up the wait loses nothing.

use super::{Broker, Error};
use crate::boxed::boxed;
use domain::cut_off;
use domain::id::InputId;
use domain::message::Message;
use domain::turn::TurnEnd;
use std::time::Duration;
use store::InputState;

/// The pause after a look, in milliseconds. A wait does not cost one look for each commit of the
/// host.
const LOOK_EVERY_MS: u64 = 20;

/// The result of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnOutcome {
    /// The run that dealt with it has ended.
    Answered {
        /// The end of the run.
        end: TurnEnd,
        /// The reply of the agent in it ([`cut_off::reply`]); none when there was no message.
        reply: Option<Message>,
    },
    /// No run will deal with it: it was put aside, taken back or dropped.
    Undone {
        /// `dead`, `cancelled` or `dropped`.
        word: &'static str,
    },
}

impl Broker {
    /// Waits until an input was dealt with, at most for a time. None when it was not in that time,
    /// or when the host is stopping.
    #[boxed]
    pub async fn await_reply(
        &self,
        input: InputId,
        wait: Duration,
    ) -> Result<Option<TurnOutcome>, Error> {
        tokio::select! {
            became = self.look_for(input) => became,
            () = tokio::time::sleep(wait) => Ok(None),
            () = self.core.stopping.cancelled() => Ok(None),
        }
    }

    /// Looks until there is a result. None when the store is closed.
    async fn look_for(&self, input: InputId) -> Result<Option<TurnOutcome>, Error> {
        // Watched before the look, so that no commit after the look is missed.
        let mut durable = self.store().durable();
        loop {
            durable.mark_unchanged();
            if let Some(became) = self.became(input).await? {
                return Ok(Some(became));
            }
            tokio::time::sleep(Duration::from_millis(LOOK_EVERY_MS)).await;
            if durable.changed().await.is_err() {
                return Ok(None);
            }
        }
    }

    async fn became(&self, input: InputId) -> Result<Option<TurnOutcome>, Error> {
        let Some((_, state)) = self.store().input(input).await? else {
            return Ok(None);
        };
        let run = match state {
            InputState::Waiting | InputState::Claimed { .. } => return Ok(None),
            InputState::Dead { .. } => return Ok(Some(TurnOutcome::Undone { word: "dead" })),
            InputState::Cancelled => return Ok(Some(TurnOutcome::Undone { word: "cancelled" })),
            InputState::Dropped => return Ok(Some(TurnOutcome::Undone { word: "dropped" })),
            InputState::Consumed { run } => run,
        };
        let Some(end) = self.store().run(run).await?.and_then(|row| row.end) else {
            return Ok(None);
        };
        let said = self.store().run_messages(run).await?;
        let reply = cut_off::reply(said.iter());
        Ok(Some(TurnOutcome::Answered { end, reply }))
    }
}
