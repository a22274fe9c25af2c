//! An agent's notes, listed and deleted, and the reading of a session on request.

use super::once::Plan;
use super::quarantine::driven;
use super::{By, Error, Memory, Request, Target};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::purge::rewrite;
use crate::refusals::{
    agent_archived, memory_not_configured, note_not_found, session_closed, session_structured,
};
use domain::event::{Event, MemoryDue, NoteForgotten};
use domain::id::{NoteId, SessionId, Stream};
use domain::limits::RECALL_HITS_MAX;
use domain::memory::{may_forget, may_see};
use domain::role::Right;
use domain::session::CHAT;
use domain::user::UserId;
use serde_json::json;
use store::{Commit, Expected, NoteRow, SessionGuard, SessionStatus};

/// The notes that are asked for.
#[derive(Debug, Clone, Default)]
pub struct WantedNotes {
    /// Search words, of which a note has to contain at least one. With words the best notes come
    /// first, otherwise the latest.
    pub words: Option<String>,
    /// Only notes that were kept before this position; not with words.
    pub before: Option<u64>,
    /// Maximum number of notes. With words it is never more than [`RECALL_HITS_MAX`].
    pub limit: usize,
}

impl Memory<'_> {
    /// Returns notes of an agent that the user may see.
    ///
    /// # Errors
    /// There is no such agent.
    #[boxed]
    pub async fn notes(
        &self,
        user: &UserId,
        target: &Target,
        wanted: WantedNotes,
    ) -> Result<Vec<NoteRow>, Error> {
        let (row, role) = self.agents().find(user, target).await?;
        let agent = row.agent.id;
        let only = (!role.sees_all_sessions()).then_some(user);
        let Some(words) = &wanted.words else {
            let notes = self
                .store()
                .notes(agent, only, wanted.before, wanted.limit)
                .await?;
            return Ok(notes);
        };
        let limit = u32::try_from(wanted.limit).unwrap_or(RECALL_HITS_MAX);
        let hits = self.store().recall_notes(agent, only, words, limit).await?;
        let named = hits.iter().filter_map(|hit| hit.note).collect();
        Ok(self.store().notes_named(agent, named).await?)
    }

    /// Deletes a note: its content is erased.
    ///
    /// # Errors
    /// The agent is archived; there is no such note that the user sees; their role does not allow
    /// it.
    #[boxed]
    pub async fn forget<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        note: NoteId,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "forget": note, "target": target.named() }))?;
        let plan = || self.planned_forgetting(by.user, target, note);
        self.requests()
            .carry_out(request.as_ref(), "the note", plan)
            .await?;
        rewrite(self.core).await;
        Ok(())
    }

    async fn planned_forgetting(
        &self,
        user: &UserId,
        target: &Target,
        note: NoteId,
    ) -> Result<Plan<()>, Error> {
        let (row, role) = self.agents().find(user, target).await?;
        self.access().may_command(user, row.agent.path.as_str())?;
        if !row.active {
            row.agent.is_active()?;
            return Err(agent_archived(row.agent.id).into());
        }
        let agent = row.agent.id;
        let found = self.store().note(agent, note).await?;
        let found = found
            .filter(|found| may_see(Some(role), found.user_id == *user))
            .ok_or_else(|| note_not_found(note))?;
        if !may_forget(Some(role), found.user_id == *user) {
            role.permits(Right::Teach)?;
        }
        let now = self.core.now();
        let context = Context::by(user, now).about(agent, Some(found.session), None);
        let forgotten = NoteForgotten {
            agent,
            note,
            position: found.position,
            session: found.session,
            user_id: user.clone(),
            time: now,
        };
        let commit = Commit::new().append(
            Stream::Agent(agent),
            Expected::Any,
            vec![context.event(Event::NoteForgotten(forgotten))],
        );
        Ok(Plan::new(commit, ()))
    }

    /// Makes the memory agent read the unread part of a chat, as soon as the chat has no open turn.
    ///
    /// # Errors
    /// The session does not exist or is no open chat; its agent's definition has no memory agent;
    /// the user has no right to it.
    #[boxed]
    pub async fn read_session<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
    ) -> Result<(), Error> {
        let request = Request::of(by, &json!({ "read": session, "target": target.named() }))?;
        let plan = || self.planned_reading(by.user, target, session);
        self.requests()
            .carry_out(request.as_ref(), "the session", plan)
            .await?;
        self.core.wake(session);
        Ok(())
    }

    async fn planned_reading(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<Plan<()>, Error> {
        let row = self.sessions().for_command(user, target, session).await?;
        driven(self.core, row.id)?;
        if row.status != SessionStatus::Open {
            return Err(session_closed().into());
        }
        if row.session_type != CHAT {
            return Err(session_structured("only chats are read into notes").into());
        }
        let agent = self.store().agent(row.agent).await?;
        let served = self.core.served();
        let definition = agent
            .as_ref()
            .and_then(|agent| served.catalogue.definition(&agent.agent.definition));
        if definition.is_none_or(|definition| definition.memory.is_none()) {
            return Err(memory_not_configured().into());
        }
        let now = self.core.now();
        let context = Context::by(user, now).about(row.agent, Some(session), None);
        let due = MemoryDue {
            session,
            due: Some(now),
            time: now,
        };
        let commit = Commit::new().guard(SessionGuard::Open(session)).append(
            Stream::Session(session),
            Expected::Any,
            vec![context.event(Event::MemoryDue(due))],
        );
        Ok(Plan::new(commit, ()))
    }
}
