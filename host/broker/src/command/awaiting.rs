//! Waiting for what becomes of an input: post and await (design S4). The input is durable before anybody waits, so giving up loses nothing.

use super::{Broker, Error};
use domain::id::InputId;
use domain::message::{Message, Role};
use domain::turn::TurnEnd;
use std::time::Duration;
use store::InputState;

/// How long nobody looks again after a look, in milliseconds: whoever waits is not to cost one look for each commit of the host.
const LOOK_EVERY_MS: u64 = 20;

/// What became of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Became {
    /// The run that dealt with it has ended.
    Answered {
        /// How.
        end: TurnEnd,
        /// The last thing that the agent said in it; none when it said nothing.
        reply: Option<Message>,
    },
    /// Nobody deals with it any more: it was put aside, taken back or dropped.
    Undone {
        /// `dead`, `cancelled` or `dropped`.
        word: &'static str,
    },
}

impl Broker {
    /// Waits until an input was dealt with, for so long at most; none when it was not, or when the host is stopping.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn await_reply(&self, input: InputId, wait: Duration) -> Result<Option<Became>, Error> {
        tokio::select! {
            became = self.look_for(input) => became,
            () = tokio::time::sleep(wait) => Ok(None),
            () = self.core.stopping.cancelled() => Ok(None),
        }
    }

    /// Looks until there is something; none when the store is closed.
    async fn look_for(&self, input: InputId) -> Result<Option<Became>, Error> {
        // Watched before the look: no commit after it is missed.
        let mut durable = self.core.store.durable();
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

    async fn became(&self, input: InputId) -> Result<Option<Became>, Error> {
        let Some((_, state)) = self.core.store.input(input).await? else { return Ok(None) };
        let run = match state {
            InputState::Waiting | InputState::Claimed { .. } => return Ok(None),
            InputState::Dead { .. } => return Ok(Some(Became::Undone { word: "dead" })),
            InputState::Cancelled => return Ok(Some(Became::Undone { word: "cancelled" })),
            InputState::Dropped => return Ok(Some(Became::Undone { word: "dropped" })),
            InputState::Consumed { run } => run,
        };
        let Some(end) = self.core.store.run(run).await?.and_then(|row| row.end) else { return Ok(None) };
        let said = self.core.store.run_messages(run).await?;
        let reply = said.into_iter().rev().find(|message| message.role == Role::Assistant);
        Ok(Some(Became::Answered { end, reply }))
    }
}
