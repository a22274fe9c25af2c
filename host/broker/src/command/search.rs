//! Search for messages, in every session that a user may see.

use super::{Error, Target, Transcripts};
use crate::boxed::boxed;
use domain::user::UserId;
use store::Found;

impl Transcripts<'_> {
    /// Returns messages with any word of a text, the best first, and of equally good ones the
    /// latest.
    ///
    /// They are of one agent's sessions, or of all that the user may see.
    ///
    /// # Errors
    /// There is no such agent.
    #[boxed]
    pub async fn search(
        &self,
        user: &UserId,
        target: Option<&Target>,
        text: &str,
        limit: usize,
    ) -> Result<Vec<Found>, Error> {
        let agent = match target {
            Some(target) => Some(self.agents().find(user, target).await?.0.agent.id),
            None => None,
        };
        let clearance = self.access().clearance(user).await?;
        Ok(self.store().search(&clearance, agent, text, limit).await?)
    }
}
