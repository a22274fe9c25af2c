//! An agent's beginning and end: created, archived.

use super::Agent;
use crate::events::event::{AgentArchived, Event};
use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;

/// Default reason for archiving an agent.
pub const ARCHIVE_REASON: &str = "User requested reset";

/// The default name of an agent: its type in title case.
#[must_use]
pub fn default_name(agent_type: &str) -> String {
    let words = agent_type
        .split(['-', '_', ' '])
        .filter(|word| !word.is_empty())
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| {
                first.to_uppercase().chain(letters).collect()
            })
        });
    words
        .chain(std::iter::once("Agent".to_owned()))
        .collect::<Vec<String>>()
        .join(" ")
}

impl Agent {
    /// Returns whether the agent is archived.
    #[must_use]
    pub fn is_archived(&self) -> bool {
        self.archived.is_some()
    }

    /// Refuses every command on an archived agent except reading it.
    ///
    /// # Errors
    /// It is archived.
    pub fn is_active(&self) -> Result<(), Refusal> {
        if !self.is_archived() {
            return Ok(());
        }
        let message = format!(
            "Agent {} is archived: it can be looked at, and takes no commands",
            self.id
        );
        Err(Refusal::new(ErrorCode::AgentArchived, message))
    }

    /// Archives it: its stream is kept, its path becomes free.
    ///
    /// # Errors
    /// It is archived already, or a structured session is active.
    pub fn archive(&self, reason: String, now: Timestamp) -> Result<Event, Refusal> {
        if self.is_archived() {
            return Err(Refusal::new(
                ErrorCode::AgentArchived,
                "Agent is already archived",
            ));
        }
        if self.active_session.is_some() {
            return Err(Refusal::new(
                ErrorCode::SessionAlreadyActive,
                "Cannot archive: terminate active session first",
            ));
        }
        Ok(Event::AgentArchived(AgentArchived {
            agent: self.id,
            path: self.path.clone(),
            reason,
            archived_at: now,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, agent, code_of, with_session};
    use super::*;

    #[test]
    fn a_name_follows_from_the_type() {
        assert_eq!(default_name("tutor"), "Tutor Agent");
        assert_eq!(default_name("reading-list"), "Reading List Agent");
        assert_eq!(default_name(""), "Agent");
    }

    #[test]
    fn an_archived_agent_stays_archived_and_says_why() {
        let agent = agent();
        let archived = agent.then(agent.archive(ARCHIVE_REASON.into(), Timestamp(9)));
        assert!(archived.is_archived() && archived.updated_at == Timestamp(9));
        assert_eq!(
            archived.archived.as_ref().unwrap().reason,
            "User requested reset"
        );
        let again = archived.archive("again".into(), T).unwrap_err();
        assert_eq!(
            (again.code.as_str(), again.message.as_str()),
            ("AGENT_ARCHIVED", "Agent is already archived")
        );
        assert_eq!(code_of(archived.is_active()), "AGENT_ARCHIVED");
    }

    #[test]
    fn an_agent_with_an_active_session_is_not_archived() {
        let refused = with_session().archive("now".into(), T).unwrap_err();
        assert_eq!(
            refused.message,
            "Cannot archive: terminate active session first"
        );
    }
}
