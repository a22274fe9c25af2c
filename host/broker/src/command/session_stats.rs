//! Sessions in numbers.

use super::{Broker, Error, Target};
use crate::boxed::boxed;
use domain::id::SessionId;
use domain::usage::{Day, UsageSum};
use domain::user::UserId;
use store::{SessionRow, SessionStats, UsageFilter};

/// A session in numbers.
#[derive(Debug, Clone)]
pub struct SessionNumbers {
    /// The session.
    pub row: SessionRow,
    /// Counts of its messages and turns.
    pub counts: SessionStats,
    /// The usage of its turns. Work that they handed over is in the sessions that did it.
    pub usage: UsageSum,
}

impl Broker {
    /// Returns a session in numbers, for a user who may see it.
    ///
    /// # Errors
    /// There is no such session, or the user may not see it.
    #[boxed]
    pub async fn session_numbers(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<SessionNumbers, Error> {
        let (row, _) = self.session_of(user, target, session).await?;
        let counts = self.store().session_stats(session).await?;
        let usage = UsageFilter {
            from: Day::from_time(row.created_at),
            to: Day(u32::MAX),
            user: None,
            agent: None,
            session: Some(session),
        };
        let usage = self.store().usage_total(usage).await?;
        Ok(SessionNumbers { row, counts, usage })
    }
}
