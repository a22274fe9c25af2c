//! A structured session of another system joins the history.

use super::Agent;
use crate::agents::session::PastSession;
use crate::events::event::{Event, SessionImported};
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;

impl Agent {
    /// Imports a session that ended in another system. `source` names the format of the import.
    ///
    /// # Errors
    /// The agent is archived.
    pub fn import_session(
        &self,
        session: PastSession,
        source: String,
        now: Timestamp,
    ) -> Result<Event, Refusal> {
        self.is_active()?;
        Ok(Event::SessionImported(SessionImported {
            agent: self.id,
            session,
            source,
            imported_at: now,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, agent, code_of, past};
    use crate::agents::session::EndStatus;

    #[test]
    fn an_imported_session_counts_as_one_that_was_led_here_and_takes_no_slot() {
        let agent = agent();
        let ended = past(1, EndStatus::Completed);
        let after = agent.then(agent.import_session(ended.clone(), "x/1".into(), T));
        assert_eq!(
            (
                after.total_sessions,
                after.total_interactions,
                after.successful_completions
            ),
            (1, ended.interactions, 1)
        );
        assert_eq!(
            (after.active_session.as_ref(), &after.session_history),
            (None, &vec![ended])
        );
        let after =
            after.then(after.import_session(past(2, EndStatus::Terminated), "x/1".into(), T));
        assert_eq!((after.total_sessions, after.successful_completions), (2, 1));
    }

    #[test]
    fn an_archived_agent_takes_none() {
        let agent = agent();
        let archived = agent.then(agent.archive("x".into(), T));
        assert_eq!(
            code_of(archived.import_session(past(1, EndStatus::Completed), "x/1".into(), T)),
            "AGENT_ARCHIVED"
        );
    }
}
