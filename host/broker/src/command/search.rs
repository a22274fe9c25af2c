//! Looking for what was said, in every session that somebody may see.

use super::{Broker, Error, Target};
use domain::user::UserId;
use store::Found;

impl Broker {
    /// Messages with any of these words, of one agent's sessions or of all that the user may see: the best first, and of those that are as
    /// good the latest.
    ///
    /// # Errors
    /// There is no such agent.
    pub async fn search(&self, user: &UserId, target: Option<&Target>, words: &str, limit: usize) -> Result<Vec<Found>, Error> {
        let agent = match target {
            Some(target) => Some(self.find(user, target).await?.0.agent.id),
            None => None,
        };
        Ok(self.core.store.search(user, agent, words, limit).await?)
    }
}
