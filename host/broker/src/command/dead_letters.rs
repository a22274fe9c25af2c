//! Inputs that could not be dealt with: look at them, and give them another chance.

use super::{Broker, Error};
use crate::journal::Context;
use domain::event::{Event, InputRequeued};
use domain::id::{InputId, Stream};
use domain::refusal::{Kind, Refusal};
use store::{Commit, DeadInput, Expected, InputState};

impl Broker {
    /// Dead letters, the newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn dead_letters(&self, limit: usize) -> Result<Vec<DeadInput>, Error> {
        Ok(self.core.store.dead_inputs(limit).await?)
    }

    /// Lets a dead letter wait again.
    ///
    /// # Errors
    /// There is no such dead letter.
    pub async fn requeue(&self, input: InputId) -> Result<(), Error> {
        let found = self.core.store.input(input).await?;
        let Some((accepted, InputState::Dead { .. })) = found else {
            let message = format!("there is no dead letter `{input}`");
            return Err(Refusal::new(Kind::NotFound, "DEAD_LETTER_NOT_FOUND", message).into());
        };
        let now = self.core.now();
        let session = accepted.session;
        let row = self.core.store.session(session).await?.ok_or_else(|| crate::refusals::session_not_found(session))?;
        let event = Event::InputRequeued(InputRequeued { input, session, time: now });
        let context = Context::new("user:operator", now).about(row.agent, Some(session), None).following(Some(input));
        self.core.store.commit(Commit::new().append(Stream::Session(session), Expected::Any, vec![context.event(event)])).await?;
        self.core.wake(session).await;
        Ok(())
    }
}
