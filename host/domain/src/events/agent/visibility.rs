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
mod tests {
    use super::super::tests::{T, agent, user};
    use super::*;
    use crate::events::event::Subject;
    use crate::values::digest::Digest;
    use crate::values::id::EventId;
    use serde_json::json;
    use uuid::Uuid;

    fn recorded(event: Event, session: Option<SessionId>) -> Recorded {
        Recorded {
            position: 1,
            stream: String::new(),
            version: 1,
            id: EventId(Uuid::nil()),
            kind: String::new(),
            event: Some(event),
            subject: Subject {
                session,
                ..Subject::default()
            },
            actor: String::new(),
            causation: None,
            correlation: None,
            time: T,
            hash: Digest([0; 32]),
        }
    }

    #[test]
    fn a_mentee_sees_their_own_sessions_and_little_else() {
        let agent = agent();
        let bob = user("bob");
        let session = SessionId(Uuid::from_u128(9));
        let renamed = agent.rename("Ada".into(), T).unwrap().unwrap();
        let prompt = agent.override_prompt(Some("x".into()), T).unwrap().unwrap();
        let others = agent
            .assign_user(user("carol"), AgentRole::Shared, user("alice"), T)
            .unwrap();
        let own = agent
            .assign_user(bob.clone(), AgentRole::Mentee, user("alice"), T)
            .unwrap();
        for (event, of, sees) in [
            (renamed.clone(), Some(session), Sight::IfTheirs(session)),
            (renamed, None, Sight::Shown),
            (prompt, None, Sight::Hidden),
            (others, None, Sight::Hidden),
            (own, None, Sight::Shown),
        ] {
            let recorded = recorded(event, of);
            assert_eq!(sight(AgentRole::Mentee, &bob, &recorded), sees);
            for role in [AgentRole::Primary, AgentRole::Shared, AgentRole::Observer] {
                assert_eq!(sight(role, &bob, &recorded), Sight::Shown);
            }
        }
    }

    #[test]
    fn what_an_agent_remembers_of_a_user_is_seen_by_them_and_the_primaries() {
        let keys = json!({ "level": 2 }).as_object().unwrap().clone();
        let reported = agent()
            .update_preferences(keys, Some(user("bob")), T)
            .unwrap()
            .unwrap();
        let session = SessionId(Uuid::from_u128(9));
        let knows = agent().after(&reported);
        let transferred = knows
            .transfer_memory(&user("bob"), user("alice"), T)
            .unwrap();
        let cases = [
            recorded(reported.clone(), None),
            recorded(reported, Some(session)),
            recorded(transferred, None),
        ];
        for (role, who, sees) in [
            (AgentRole::Primary, "alice", Sight::Shown),
            (AgentRole::Shared, "carol", Sight::Hidden),
            (AgentRole::Observer, "dan", Sight::Hidden),
            (AgentRole::Mentee, "eve", Sight::Hidden),
            (AgentRole::Mentee, "bob", Sight::Shown),
            (AgentRole::Shared, "bob", Sight::Shown),
        ] {
            for reported in &cases {
                assert_eq!(sight(role, &user(who), reported), sees, "{who}");
            }
        }
    }
}
