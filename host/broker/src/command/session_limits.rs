//! The limits of a definition on how much one session is for: its messages, and its idle time.

use super::messages::Accepting;
use super::{Broker, Error};
use crate::catalogue::CHAT;
use crate::refusals::session_expired;
use domain::definition::Definition;
use domain::time::Timestamp;
use store::{Guard, QueueGuard, SessionRow};

/// Returns whether a definition limits its sessions.
fn has_limits(definition: &Definition) -> bool {
    definition.max_session_messages.is_some() || definition.session_timeout.is_some()
}

/// Returns whether a session has been idle for longer than its definition says. One with a turn in
/// progress, or with inputs that wait, is not idle.
fn is_expired(definition: &Definition, session: &SessionRow, now: Timestamp) -> bool {
    let is_idle = session.open_run.is_none() && session.waiting == 0;
    definition.session_timeout.is_some_and(|seconds| {
        is_idle && now.since_ms(session.updated_at) >= u64::from(seconds) * 1_000
    })
}

impl Broker {
    /// Checks whether a session takes one more message by the limits of its definition. Returns the
    /// guard under which it is accepted; none without a limit on messages.
    ///
    /// A chat that was chosen for the message (no session was named) does not expire: nobody could
    /// choose another one.
    ///
    /// # Errors
    /// `SESSION_EXPIRED`.
    pub(super) async fn session_limits(
        &self,
        accepting: &Accepting<'_>,
    ) -> Result<Option<Guard>, Error> {
        let catalogue = self.core.served().catalogue.clone();
        // Most hosts have no such limits, and read nothing for them.
        if !catalogue.definitions().any(|it| has_limits(it)) {
            return Ok(None);
        }
        let to = accepting.to;
        let Some(agent) = self.store().agent(to.agent).await? else {
            return Ok(None);
        };
        let Some(definition) = catalogue.definition(&agent.agent.definition) else {
            return Ok(None);
        };
        if definition.session_timeout.is_some()
            && accepting.route.is_none()
            && to.session_type == CHAT
            && let Some(row) = self.store().session(to.session).await?
            && is_expired(definition, &row, self.core.now())
        {
            return Err(session_expired().into());
        }
        Ok(definition.max_session_messages.map(|max| {
            Guard::Queue(QueueGuard::MessagesAtMost {
                session: to.session,
                max: u64::from(max).saturating_sub(1),
            })
        }))
    }
}
