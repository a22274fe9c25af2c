//! The agent aggregate: an agent as the fold of its stream. Its transitions are in the modules
//! below, one file each. Each transition reads the agent and returns events, or a refusal.
//!
//! Transcripts are not part of it: they are turns and messages. Every fold keeps the seven
//! invariants of the design. At most one session is active; an execution state exists only while it
//! waits; an answer names its question. No session starts while another is active; none is active
//! when the agent is archived; each user has one role; a user is PRIMARY.

pub mod assignment;
pub mod configure;
pub mod describe;
pub mod end_session;
pub mod import_session;
pub mod lifecycle;
pub mod memory;
pub mod milestones;
pub mod respond;
pub mod start_session;
pub mod suspend;
#[cfg(test)]
mod tests;
pub mod visibility;

use crate::access::user::UserId;
use crate::agents::authority::{Denies, Permissions};
use crate::agents::definition::DefinitionId;
use crate::agents::path::{AgentConfig, AgentPath, PathKind};
use crate::agents::role::AgentRole;
use crate::agents::session::{ActiveSession, EndStatus, HISTORY_MAX, PastSession, Phase};
use crate::events::event::{AgentCreated, Event};
use crate::values::id::{AgentId, OperationId};
use crate::values::time::Timestamp;
use assignment::Assignment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An agent as the fold of its stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The definition from which it was made.
    pub definition: DefinitionId,
    /// The agent's type, such as `tutor`.
    pub agent_type: String,
    /// Its address.
    pub path: AgentPath,
    /// The kind of that address.
    pub kind: PathKind,
    /// Configuration of the agent besides its address.
    #[serde(default, skip_serializing_if = "AgentConfig::is_empty")]
    pub config: AgentConfig,
    /// The user who created it. A user's rights to the agent are determined by the assignments
    /// alone.
    pub owner_user_id: UserId,
    /// Its name.
    pub name: String,
    /// Time and reason of its archiving; none for an active agent.
    pub archived: Option<Archived>,
    /// Its users, in the order in which they were assigned.
    pub assignments: Vec<Assignment>,
    /// Denials of the agents that spawned it. They bind this agent too, for its whole life.
    #[serde(default, skip_serializing_if = "Denies::is_empty")]
    pub denies: Denies,
    /// Permissions of all turns that spawned it, by personas, roles and paths. They bind this agent
    /// too, for its whole life.
    #[serde(default, skip_serializing_if = "Permissions::are_all")]
    pub permissions: Permissions,
    /// Its own system prompt, in place of its definition's.
    pub system_prompt_override: Option<String>,
    /// Its own settings, over those of its definition.
    pub settings: Map<String, Value>,
    /// Preferences that it remembers for all its users.
    pub preferences: Map<String, Value>,
    /// True if any of its memories, for any user, was learned in a turn that rests on content from
    /// outside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remembers_untrusted: bool,
    /// Preferences that it remembers for each user.
    pub user_preferences: BTreeMap<UserId, Map<String, Value>>,
    /// Number of structured sessions that it has begun.
    pub total_sessions: u64,
    /// Number of client actions that were answered.
    pub total_interactions: u64,
    /// Number of structured sessions that ended well.
    pub successful_completions: u64,
    /// The structured session that occupies its slot.
    pub active_session: Option<ActiveSession>,
    /// The sessions that ended last, latest first: [`HISTORY_MAX`] at most.
    pub session_history: Vec<PastSession>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time at which its stream last changed the agent.
    pub updated_at: Timestamp,
    /// Time at which a structured session last began or continued.
    pub last_interaction_at: Option<Timestamp>,
}

/// Time and reason of an agent's archiving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// Time of archiving.
    pub at: Timestamp,
    /// The reason.
    pub reason: String,
}

impl Agent {
    /// The agent after one more event of its stream; none before it is created.
    #[must_use]
    pub fn apply(agent: Option<Self>, event: &Event) -> Option<Self> {
        match (agent, event) {
            (_, Event::AgentCreated(created)) => Some(Self::created(created)),
            (agent, event) => agent.map(|mut agent| {
                agent.advance(event);
                agent
            }),
        }
    }

    /// The agent after one more event.
    #[must_use]
    pub fn after(&self, event: &Event) -> Self {
        let mut after = self.clone();
        after.advance(event);
        after
    }

    /// Makes an agent from its first event, which also makes its creator PRIMARY.
    #[must_use]
    pub fn created(created: &AgentCreated) -> Self {
        let owner = created.owner_user_id.clone();
        let primary = Assignment {
            user_id: owner.clone(),
            role: AgentRole::Primary,
            assigned_at: created.created_at,
            assigned_by: owner.clone(),
        };
        Self {
            id: created.agent,
            definition: created.definition.clone(),
            agent_type: created.agent_type.clone(),
            path: created.path.clone(),
            kind: created.kind,
            config: created.config.clone(),
            owner_user_id: owner,
            name: created.name.clone(),
            archived: None,
            assignments: vec![primary],
            denies: created.denies.clone(),
            permissions: created.permissions.clone(),
            remembers_untrusted: false,
            system_prompt_override: None,
            settings: Map::new(),
            preferences: Map::new(),
            user_preferences: BTreeMap::new(),
            total_sessions: 0,
            total_interactions: 0,
            successful_completions: 0,
            active_session: None,
            session_history: Vec::new(),
            created_at: created.created_at,
            updated_at: created.created_at,
            last_interaction_at: None,
        }
    }

    fn advance(&mut self, event: &Event) {
        match event {
            Event::AgentArchived(it) => {
                self.archived = Some(Archived {
                    at: it.archived_at,
                    reason: it.reason.clone(),
                });
                self.changed(it.archived_at);
            }
            Event::UserAssigned(it) => {
                self.assignments.push(Assignment {
                    user_id: it.user_id.clone(),
                    role: it.role,
                    assigned_at: it.assigned_at,
                    assigned_by: it.assigned_by.clone(),
                });
                self.changed(it.assigned_at);
            }
            Event::RoleChanged(it) => {
                for assignment in self
                    .assignments
                    .iter_mut()
                    .filter(|assignment| assignment.user_id == it.user_id)
                {
                    assignment.role = it.role;
                    assignment.assigned_by.clone_from(&it.changed_by);
                }
                self.changed(it.changed_at);
            }
            Event::UserUnassigned(it) => {
                self.assignments
                    .retain(|assignment| assignment.user_id != it.user_id);
                // Memories of a user are removed with the user.
                self.user_preferences.remove(&it.user_id);
                self.changed(it.unassigned_at);
            }
            Event::SessionImported(it) => {
                self.total_sessions += 1;
                self.total_interactions += it.session.interactions;
                self.successful_completions += u64::from(it.session.status == EndStatus::Completed);
                self.remember(it.session.clone());
                self.changed(it.imported_at);
            }
            event => self.advance_settings(event),
        }
    }

    /// Applies changes of the agent's memory and settings.
    fn advance_settings(&mut self, event: &Event) {
        match event {
            Event::PreferencesUpdated(it) => {
                let keys = match &it.user_id {
                    None => &mut self.preferences,
                    Some(user) => self.user_preferences.entry(user.clone()).or_default(),
                };
                keys.extend(it.preferences.as_object().cloned().unwrap_or_default());
                self.remembers_untrusted |= it.untrusted;
                self.changed(it.updated_at);
            }
            Event::PreferencesTransferred(it) => {
                self.user_preferences
                    .entry(it.to.clone())
                    .or_default()
                    .extend(it.preferences.clone());
                self.changed(it.transferred_at);
            }
            Event::AgentRenamed(it) => {
                self.name.clone_from(&it.name);
                self.changed(it.renamed_at);
            }
            Event::AgentConfigured(it) => {
                self.config.clone_from(&it.config);
                self.changed(it.updated_at);
            }
            Event::PromptOverridden(it) => {
                self.system_prompt_override.clone_from(&it.system_prompt);
                self.changed(it.overridden_at);
            }
            Event::SettingsUpdated(it) => {
                self.settings = configure::merged(&self.settings, &it.settings);
                self.changed(it.updated_at);
            }
            event => self.advance_session(event),
        }
    }

    fn advance_session(&mut self, event: &Event) {
        match event {
            Event::SlotTaken(it) => {
                self.active_session = Some(ActiveSession {
                    session_id: it.session_id,
                    conversation_id: it.conversation_id,
                    session_type: it.session_type.clone(),
                    started_by: it.started_by.clone(),
                    started_at: it.started_at,
                    expires_at: it.expires_at,
                    phase: Phase::Active,
                    interactions: 0,
                    items_imported: it.items_imported,
                });
                self.total_sessions += 1;
                self.last_interaction_at = Some(it.started_at);
                self.changed(it.started_at);
            }
            Event::ExecutionSuspended(it) => {
                self.enter(
                    Phase::AwaitingClientAction {
                        pending: Box::new(it.pending_action.clone()),
                        further: Vec::new(),
                        execution: it.execution_state,
                    },
                    it.suspended_at,
                );
            }
            Event::ActionRequested(it) => {
                if let Some(Phase::AwaitingClientAction { further, .. }) = self.phase_mut() {
                    further.push(it.action.clone());
                }
                self.changed(it.requested_at);
            }
            Event::ExecutionResumed(it) => self.answered_action(it.tool_call_id, it.resumed_at),
            Event::ResponseReceived(it) => self.answered_action(it.tool_call_id, it.received_at),
            Event::ActionWithdrawn(it) => self.take_action(it.tool_call_id, it.withdrawn_at),
            Event::SlotCompleted(it) => {
                if let Some(session) = self.active_session.take() {
                    self.remember(session.ended(
                        EndStatus::Completed,
                        it.completed_at,
                        None,
                        Some(&it.summary),
                    ));
                    self.successful_completions += 1;
                }
                self.changed(it.completed_at);
            }
            Event::SlotTerminated(it) => {
                if let Some(session) = self.active_session.take() {
                    self.remember(session.ended(
                        EndStatus::Terminated,
                        it.terminated_at,
                        Some(it.reason.clone()),
                        None,
                    ));
                }
                self.changed(it.terminated_at);
            }
            // All other events are in other streams, or change nothing here.
            _ => {}
        }
    }

    fn changed(&mut self, at: Timestamp) {
        self.updated_at = self.updated_at.max(at);
    }

    fn phase_mut(&mut self) -> Option<&mut Phase> {
        self.active_session
            .as_mut()
            .map(|session| &mut session.phase)
    }

    fn enter(&mut self, phase: Phase, at: Timestamp) {
        if let Some(there) = self.phase_mut() {
            *there = phase;
        }
        self.changed(at);
    }

    fn answered_action(&mut self, call: OperationId, at: Timestamp) {
        self.take_action(call, at);
        if let Some(session) = &mut self.active_session {
            session.interactions += 1;
        }
        self.total_interactions += 1;
        self.last_interaction_at = Some(at);
    }

    /// Closes a question. After the last one the session is active again.
    fn take_action(&mut self, call: OperationId, at: Timestamp) {
        if let Some(phase) = self.phase_mut() {
            let mut waiting: Vec<_> = phase
                .pending()
                .filter(|action| action.tool_call_id != call)
                .cloned()
                .collect();
            match phase {
                Phase::AwaitingClientAction {
                    pending, further, ..
                } if !waiting.is_empty() => {
                    **pending = waiting.remove(0);
                    *further = waiting;
                }
                _ => *phase = Phase::Active,
            }
        }
        self.changed(at);
    }

    /// Adds a session in front. An imported session that ended before others goes to its place by
    /// time.
    fn remember(&mut self, session: PastSession) {
        let earlier = self
            .session_history
            .iter()
            .position(|past| past.completed_at <= session.completed_at);
        self.session_history
            .insert(earlier.unwrap_or(self.session_history.len()), session);
        self.session_history.truncate(HISTORY_MAX);
    }
}
