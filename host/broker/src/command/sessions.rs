//! Commands on sessions: show one, list them, save a half-filled widget.

use super::once::Plan;
use super::{Error, SessionView, Sessions, Target};
use crate::boxed::boxed;
use crate::refusals::{
    agent_archived, conversation_taken, not_suspended, session_not_found, session_purged,
};
use crate::shared::error::invalid;
use crate::shared::guards::in_session;
use crate::shared::runs::load_run;
use domain::agent::Agent;
use domain::agent::milestones::questions;
use domain::event::{Event, Recorded, UiSaved};
use domain::id::{AgentId, ConversationId, OperationId, SessionId};
use domain::refusal::Refusal;
use domain::role::{AgentRole, Right};
use domain::run::{Open, Run};
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::Value;
use store::{
    Addressee, AgentRow, Door, HistoryFilter, SessionFilter, SessionGuard, SessionRow,
    SessionStatus, UserSessionFilter,
};

/// The largest saved state of a half-filled widget, in bytes of JSON.
const PARTIAL_STATE_BYTES_MAX: usize = 64 << 10;
/// Number of messages that an inspection of a session shows unless asked for others.
const MESSAGES_SHOWN: u64 = 100;
/// Number of messages that an inspection of a session shows at most.
const MESSAGES_MAX: u64 = 1_000;
/// Number of items that an inspection of a session shows at most.
const ITEMS_SHOWN: usize = 200;

impl Sessions<'_> {
    /// Returns an agent's sessions, the most recently updated first, after a place between them.
    ///
    /// Users whose role shows only their own sessions get those.
    ///
    /// # Errors
    /// There is no such agent.
    #[boxed]
    pub async fn list(
        &self,
        user: &UserId,
        target: &Target,
        filter: SessionFilter,
        after: Option<(Timestamp, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        let (agent, role) = self.agents().find(user, target).await?;
        let filter = if role.sees_all_sessions() {
            filter
        } else {
            SessionFilter {
                user: Some(user.clone()),
                ..filter
            }
        };
        Ok(self
            .store()
            .sessions(agent.agent.id, filter, after, limit)
            .await?)
    }

    /// Returns an agent's ended structured sessions, the latest first, after a place between them.
    ///
    /// Users whose role shows only their own sessions get those.
    ///
    /// # Errors
    /// There is no such agent.
    #[boxed]
    pub async fn ended(
        &self,
        user: &UserId,
        target: &Target,
        of: Option<UserId>,
        after: Option<(Timestamp, SessionId)>,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        let (agent, role) = self.agents().find(user, target).await?;
        let sees_all = role.sees_all_sessions();
        let filter = HistoryFilter {
            user: if sees_all { of } else { Some(user.clone()) },
            deleted: sees_all,
        };
        let ended = self
            .store()
            .session_history(agent.agent.id, filter, after, limit)
            .await?;
        Ok(ended.into_iter().map(|ended| ended.row).collect())
    }

    /// Returns the sessions that a user began, with every agent that they are assigned to, the
    /// latest first.
    #[boxed]
    pub async fn of_user(
        &self,
        user: &UserId,
        filter: UserSessionFilter,
        limit: usize,
    ) -> Result<Vec<SessionRow>, Error> {
        let clearance = self.access().clearance(user).await?;
        let found = self.store().sessions_of_user(&clearance, filter, limit);
        Ok(found.await?)
    }

    /// Returns the condition for a user's session to begin a conversation, or to join one of
    /// theirs; none if the request names no conversation.
    ///
    /// # Errors
    /// The conversation is another user's.
    pub(super) async fn joining(
        &self,
        user: &UserId,
        conversation: Option<ConversationId>,
    ) -> Result<Option<SessionGuard>, Error> {
        let Some(conversation) = conversation else {
            return Ok(None);
        };
        let store = self.store();
        let since = *store.durable().borrow();
        if store.is_conversation_of_another(conversation, user).await? {
            return Err(conversation_taken(conversation).into());
        }
        Ok(Some(SessionGuard::ConversationOf {
            conversation,
            user: user.clone(),
            since,
        }))
    }

    /// Returns the items of a session, in order, after one of them.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn items(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Recorded>, Error> {
        let (row, _) = self.visible(user, target, session).await?;
        Ok(self.store().items(row.id, after, limit).await?)
    }

    /// Returns one session with messages: those from first to last, or without a range the last
    /// hundred.
    ///
    /// At most 1,000 messages are returned.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn get(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        messages: Option<(u64, u64)>,
    ) -> Result<SessionView, Error> {
        let position = *self.store().durable().borrow();
        let (row, agent) = self.visible(user, target, session).await?;
        let quarantined = self.core.quarantine.get(row.id);
        let run = self.shown_run(&row, quarantined.is_some()).await?;
        let head = run.as_ref().map_or(row.head_message, Run::head);
        let (first, last) = messages.unwrap_or((head.saturating_sub(MESSAGES_SHOWN - 1), head));
        let first = first.max(1);
        let last = last.min(head).min(first.saturating_add(MESSAGES_MAX - 1));
        let mut shown = Vec::new();
        if first <= row.head_message {
            shown = self
                .store()
                .messages(row.head, first, last.min(row.head_message))
                .await?;
        }
        let open = run.as_ref().map(in_order).unwrap_or_default();
        let config = match row.config {
            Some(digest) => self
                .store()
                .blob(digest)
                .await?
                .and_then(|bytes| serde_json::from_slice(&bytes).ok()),
            None => None,
        };
        let items = match row.items {
            0 => Vec::new(),
            _ => self.store().items(row.id, 0, ITEMS_SHOWN).await?,
        };
        Ok(SessionView {
            position,
            items,
            active: agent
                .active_session
                .filter(|active| active.session_id == row.id),
            config,
            run: row.open_run,
            quarantined,
            compacts: run
                .as_ref()
                .is_some_and(|run| run.started.compacts.is_some()),
            claimed: run.iter().flat_map(|run| run.claimed.clone()).collect(),
            open: open.iter().map(|open| open.operation.clone()).collect(),
            asking: run.as_ref().map(questions).unwrap_or_default(),
            messages: {
                let own = run
                    .iter()
                    .flat_map(|run| &run.messages)
                    .filter(|message| message.id >= first && message.id <= last);
                shown.extend(own.map(|message| message.as_ref().clone()));
                shown
            },
            row,
        })
    }

    /// Returns the open run of a session; none where a quarantined session's cannot be read.
    async fn shown_run(
        &self,
        row: &SessionRow,
        is_quarantined: bool,
    ) -> Result<Option<Run>, Error> {
        match row.open_run {
            None => Ok(None),
            // Reading it would end the process.
            Some(_) if is_quarantined && self.core.noted_inspections.are_over(row.id) => Ok(None),
            Some(run) => match load_run(self.store(), run).await {
                Ok((run, _)) => Ok(Some(run)),
                // The messages of its thread can be read all the same.
                Err(_) if is_quarantined => Ok(None),
                Err(failure) => Err(failure.into()),
            },
        }
    }

    /// Returns the agent of a session; none without such a session.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn agent_of(&self, session: SessionId) -> Result<Option<AgentId>, Error> {
        let row = self.store().session(session).await?;
        Ok(row.map(|row| row.agent))
    }

    /// Returns a session, whoever may see it.
    pub(super) async fn row(&self, session: SessionId) -> Result<SessionRow, Error> {
        let row = self.store().session(session).await?;
        row.ok_or_else(|| session_not_found(session).into())
    }

    /// Returns a session that a user may see, and its agent.
    pub(super) async fn visible(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<(SessionRow, Agent), Error> {
        let agents = self.agents();
        let (found, row) = tokio::join!(agents.find(user, target), self.store().session(session));
        let (agent, role) = found?;
        visible(row?, agent.agent.id, user, role, session)
            .map(|row| (row, agent.agent))
            .map_err(Error::from)
    }

    /// Returns a session for a command in it.
    ///
    /// Checks the user's role, the operator's rules, and that the agent takes words.
    pub(super) async fn for_command(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<SessionRow, Error> {
        self.commanded(user, target, session)
            .await
            .map(|(row, _)| row)
    }

    /// Returns a session for words in it, like [`Self::for_command`], if its agent's definition was
    /// not taken away.
    pub(super) async fn for_words(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<SessionRow, Error> {
        let (row, agent) = self.commanded(user, target, session).await?;
        self.access().has_definition(&agent)?;
        Ok(row)
    }

    async fn commanded(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<(SessionRow, AgentRow), Error> {
        let agents = self.agents();
        let (found, row) = tokio::join!(agents.find(user, target), self.store().session(session));
        let (agent, role) = found?;
        let row = visible(row?, agent.agent.id, user, role, session)?;
        role.permits(Right::Interact)?;
        self.access().may_command(user, agent.agent.path.as_str())?;
        if !agent.active {
            return Err(agent_archived(agent.agent.id).into());
        }
        self.access().takes_words(&agent).await?;
        Ok((row, agent))
    }

    /// Finds the session that a message is for, like [`Self::for_words`], but with one read
    /// of the store if nothing prevents the message.
    pub(super) async fn addressee(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<Addressee, Error> {
        if let Target::Agent(agent) = target
            && let Some(door) = self.store().door(user, *agent, session).await?
            && self.lets_in(user, &door)
        {
            return Ok(door.addressee);
        }
        // The rows themselves show the reason for a refusal.
        let row = self.for_words(user, target, session).await?;
        Ok(Addressee::from(&row))
    }

    /// Tells whether everything that [`Self::for_words`] asks of a message's sender holds.
    fn lets_in(&self, user: &UserId, door: &Door) -> bool {
        self.access().may_see(user, &door.path)
            && (door.role.sees_all_sessions() || door.user_id == *user)
            && door.role.permits(Right::Interact).is_ok()
            && self.access().may_command(user, &door.path).is_ok()
            && !door.kind.is_ephemeral()
            && self
                .core
                .served()
                .catalogue
                .definition(&door.definition)
                .is_some()
    }

    /// Saves the values that a client has filled in so far in the widget of an open question, for
    /// its next visit.
    ///
    /// # Errors
    /// There is no such session; no question waits, or another one does; the state is too large;
    /// the user may not.
    #[boxed]
    pub async fn save_ui(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        call: OperationId,
        partial_state: Value,
    ) -> Result<SessionView, Error> {
        if partial_state.to_string().len() > PARTIAL_STATE_BYTES_MAX {
            return Err(invalid(
                format!("at most {PARTIAL_STATE_BYTES_MAX} bytes are kept"),
                "/widget_partial_state",
            ));
        }
        let plan = || async {
            self.for_command(user, target, session).await?;
            let (row, agent) = self.visible(user, target, session).await?;
            let waits = agent
                .active_session
                .iter()
                .filter(|active| active.session_id == row.id);
            if !waits
                .flat_map(|active| active.phase.pending())
                .any(|action| action.tool_call_id == call)
            {
                return Err(not_suspended().at("/tool_call_id").into());
            }
            let now = self.core.now();
            let saved = Event::UiSaved(UiSaved {
                session,
                tool_call_id: call,
                partial_state: partial_state.clone(),
                time: now,
            });
            let commit = in_session(&row, user, now, [saved])
                .guard(SessionGuard::Open(session))
                .guards(self.access().may_store(user));
            Ok(Plan::new(commit, row.agent))
        };
        let agent = self.requests().attempt("the session", plan).await?;
        self.get(user, &Target::Agent(agent), session, None).await
    }
}

/// Returns an agent's session if a user in this role sees it.
///
/// Returns an error if it was deleted or purged, if it belongs to another agent, or if it belongs
/// to another user and the role shows only own sessions.
pub(super) fn visible(
    row: Option<SessionRow>,
    agent: AgentId,
    user: &UserId,
    role: AgentRole,
    id: SessionId,
) -> Result<SessionRow, Refusal> {
    let theirs =
        row.filter(|row| row.agent == agent && (role.sees_all_sessions() || row.user_id == *user));
    match theirs {
        Some(row) if row.purged => Err(session_purged(id)),
        Some(row) if row.status != SessionStatus::Deleted => Ok(row),
        Some(_) | None => Err(session_not_found(id)),
    }
}

/// Returns the open operations of a run in the order in which they were started.
fn in_order(run: &Run) -> Vec<&Open> {
    let mut open: Vec<&Open> = run.open.values().collect();
    open.sort_by_key(|open| (open.operation.step, open.operation.place));
    open
}
