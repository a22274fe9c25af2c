//! Visibility of an agent's events to a user. It is the role matrix, applied to all stored events,
//! whether read live or later.

use crate::access::user::UserId;
use crate::agents::role::AgentRole;
use crate::events::event::{Event, PreferencesTransferred, PreferencesUpdated, Recorded};
use crate::values::id::SessionId;

/// Visibility of an event to a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The user sees it.
    Shown,
    /// The user does not see it.
    Hidden,
    /// The user sees it if this session is theirs.
    IfTheirs(SessionId),
}

/// Returns whether a user in a role sees an event of an agent.
#[must_use]
pub fn sight(role: AgentRole, user: &UserId, recorded: &Recorded) -> Sight {
    // Knowledge about a user is visible to that user and to PRIMARY users only, also when the agent
    // learned it in a session.
    if let Some(Event::PreferencesUpdated(PreferencesUpdated {
        user_id: Some(of), ..
    })) = &recorded.event
    {
        return if role == AgentRole::Primary || of == user {
            Sight::Shown
        } else {
            Sight::Hidden
        };
    }
    if let Some(Event::PreferencesTransferred(PreferencesTransferred { from, to, .. })) =
        &recorded.event
    {
        return if role == AgentRole::Primary || [from, to].contains(&user) {
            Sight::Shown
        } else {
            Sight::Hidden
        };
    }
    if let Some(session) = recorded.subject.session {
        return if role.sees_all_sessions() {
            Sight::Shown
        } else {
            Sight::IfTheirs(session)
        };
    }
    let shown = match &recorded.event {
        _ if role.sees_all_sessions() => true,
        Some(Event::AgentCreated(_) | Event::AgentRenamed(_) | Event::AgentArchived(_)) => true,
        Some(Event::UserAssigned(it)) => it.user_id == *user,
        Some(Event::RoleChanged(it)) => it.user_id == *user,
        Some(Event::UserUnassigned(it)) => it.user_id == *user,
        Some(Event::SessionImported(it)) => it.session.started_by == *user,
        _ => false,
    };
    if shown { Sight::Shown } else { Sight::Hidden }
}

#[cfg(test)]
mod tests;
