//! The limits of a definition on how much one session is for: its messages, and its idle time.

use super::messages::Accepting;
use super::{Error, Sessions};
use domain::definition::Definition;
use domain::session::CHAT;
use domain::time::Timestamp;
use store::{Guard, QueueGuard};

/// Returns whether a definition limits its sessions.
fn has_limits(definition: &Definition) -> bool {
    definition.max_session_messages.is_some() || definition.session_timeout.is_some()
}

impl Sessions<'_> {
    /// Returns the guards under which a session accepts one more message by the limits of its
    /// definition; none without such limits. A session with a turn in progress, or with waiting
    /// inputs, is not idle.
    ///
    /// A chat that was chosen for the message (no session was named) does not expire: the sender
    /// could not choose another one.
    pub(super) async fn limits(&self, accepting: &Accepting<'_>) -> Result<Vec<Guard>, Error> {
        let catalogue = self.core.served().catalogue.clone();
        // Most hosts have no such limits, and read nothing for them.
        if !catalogue.definitions().any(|it| has_limits(it)) {
            return Ok(Vec::new());
        }
        let to = accepting.to;
        let Some(agent) = self.store().agent(to.agent).await? else {
            return Ok(Vec::new());
        };
        let Some(definition) = catalogue.definition(&agent.agent.definition) else {
            return Ok(Vec::new());
        };
        let expires = accepting.route.is_none() && to.session_type == CHAT;
        let idle = definition.session_timeout.filter(|_| expires);
        let idle = idle.map(|seconds| QueueGuard::ActiveAfter {
            session: to.session,
            after: before(self.core.now(), u64::from(seconds) * 1_000),
        });
        let full = definition
            .max_session_messages
            .map(|max| QueueGuard::MessagesAtMost {
                session: to.session,
                max: u64::from(max).saturating_sub(1),
            });
        Ok(idle.into_iter().chain(full).map(Guard::Queue).collect())
    }
}

/// Returns the time so many milliseconds before another.
fn before(time: Timestamp, ms: u64) -> Timestamp {
    Timestamp(time.0.saturating_sub(ms))
}
