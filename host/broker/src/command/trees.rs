//! The tree of turns: show a turn or a session's tree, compare two threads, fork a session.

use super::once::Plan;
use super::opening::check_label;
use super::{By, Error, Request, SessionView, Sessions, Target, Transcripts};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{changing, session_not_found, thread_empty, threads_apart, turn_not_found};
use crate::shared::error::invalid;
use crate::shared::guards::allowed;
use domain::event::{Event, SessionOpened};
use domain::id::{AgentId, RunId, SessionId, Stream, TurnId};
use domain::message::{Message, MessageId};
use domain::user::UserId;
use serde_json::json;
use std::ops::RangeInclusive;
use store::{
    AgentGuard, Commit, Expected, OutboundMessageRow, Parting, SeenTurn, SessionGuard, SessionRow,
    TreeTurn,
};

/// Number of turns that each of two compared threads may have after they part.
pub const DIFF_TURNS_MAX: usize = 1_000;
/// Outbound messages that are shown with one turn.
const OUTBOUND_MESSAGES_SHOWN_MAX: usize = 100;
/// The same with each turn of a tree.
const OUTBOUND_MESSAGES_LISTED_MAX: usize = 10;

/// The place where a fork begins, and the settings of the new session.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// The turn. Without: the session's head.
    pub turn: Option<TurnId>,
    /// A message of the session's thread, in place of a turn. The fork begins at its turn.
    pub message: Option<MessageId>,
    /// A label for people. Without: that of the session.
    pub name: Option<String>,
    /// The model that its turns use. Without: that of the session.
    pub model: Option<String>,
}

/// The thread that a session is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// Another session, of whichever agent.
    Session(SessionId),
    /// The thread of a turn.
    Turn(TurnId),
}

impl Transcripts<'_> {
    /// Returns a turn that a user sees through any of their sessions, and what was sent to chats in
    /// it.
    ///
    /// # Errors
    /// There is no such turn, or they do not see it.
    #[boxed]
    pub async fn turn(
        &self,
        user: &UserId,
        turn: TurnId,
    ) -> Result<(SeenTurn, Vec<OutboundMessageRow>), Error> {
        let clearance = self.access().clearance(user).await?;
        let seen = self.store().seen_turn(&clearance, None, turn).await?;
        let seen = seen.ok_or_else(|| turn_not_found(turn))?;
        let runs = [seen.turn.node.run];
        let sent = self
            .store()
            .outbound_messages_of_runs(&runs, OUTBOUND_MESSAGES_SHOWN_MAX);
        Ok((seen, sent.await?))
    }

    /// Returns the agent and session in which a turn was made, whoever sees it.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn session_of(&self, turn: TurnId) -> Result<Option<(AgentId, SessionId)>, Error> {
        Ok(self.store().session_of_turn(turn).await?)
    }

    /// Returns the last turn and message of the thread that a session began with; none of one that
    /// began empty.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn base(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
    ) -> Result<Option<(TurnId, MessageId)>, Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        let Some(base) = row.base else {
            return Ok(None);
        };
        let turn = self.store().turn(base).await?;
        Ok(Some((base, turn.map_or(0, |turn| turn.last_message))))
    }

    /// Returns these messages of a session's thread, as it ends with a turn.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn thread(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        head: Option<TurnId>,
        messages: RangeInclusive<MessageId>,
    ) -> Result<Vec<Message>, Error> {
        self.sessions().visible(user, target, session).await?;
        let (first, last) = messages.into_inner();
        Ok(self.store().messages(head, first, last).await?)
    }

    /// Returns the turns of a session's tree that a user sees, each after its parent, after one of
    /// them.
    ///
    /// An empty thread has no turns. What was sent to chats in the turns is returned with them.
    ///
    /// # Errors
    /// There is no such session.
    #[boxed]
    pub async fn tree(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        after: Option<TurnId>,
        limit: usize,
    ) -> Result<(Vec<TreeTurn>, Vec<OutboundMessageRow>), Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        let Some(head) = row.head else {
            return Ok((Vec::new(), Vec::new()));
        };
        let clearance = self.access().clearance(user).await?;
        let turns = self.store().tree(&clearance, head, after, limit).await?;
        let runs: Vec<RunId> = turns.iter().map(|turn| turn.node.run).collect();
        let sent = self
            .store()
            .outbound_messages_of_runs(&runs, OUTBOUND_MESSAGES_LISTED_MAX);
        let sent = sent.await?;
        Ok((turns, sent))
    }

    /// Returns the place where the thread of a session and another one part.
    ///
    /// # Errors
    /// There is no such session, or none to compare it with that the user sees; they are too far
    /// apart.
    #[boxed]
    pub async fn parting(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        with: Other,
    ) -> Result<Parting, Error> {
        let (row, _) = self.sessions().visible(user, target, session).await?;
        let other = match with {
            Other::Turn(turn) => {
                let clearance = self.access().clearance(user).await?;
                let seen = self.store().seen_turn(&clearance, None, turn).await?;
                seen.ok_or_else(|| turn_not_found(turn).at("query:with"))?;
                Some(turn)
            }
            Other::Session(other) => {
                let not_found = || Error::from(session_not_found(other).at("query:with"));
                let row = self.store().session(other).await?;
                let agent = row.ok_or_else(not_found)?.agent;
                match self
                    .sessions()
                    .visible(user, &Target::Agent(agent), other)
                    .await
                {
                    Ok((row, _)) => row.head,
                    // A user does not learn which sessions another user's agent has.
                    Err(Error::Refused(_)) => return Err(not_found()),
                    Err(error) => return Err(error),
                }
            }
        };
        self.store()
            .parting(row.head, other, DIFF_TURNS_MAX)
            .await?
            .ok_or_else(|| threads_apart(DIFF_TURNS_MAX).into())
    }

    /// Opens a chat that continues from a turn of the session's thread, or of its agent.
    ///
    /// The user must see the turn.
    ///
    /// # Errors
    /// The session or turn does not exist; the thread is empty; the user has no right to it; the
    /// agent's definition was removed.
    #[boxed]
    pub async fn fork<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        session: SessionId,
        fork: Fork,
    ) -> Result<SessionView, Error> {
        let asked = json!({
            "fork": session,
            "target": target.named(),
            "turn": fork.turn,
            "message": fork.message,
            "name": fork.name,
            "model": fork.model,
        });
        let request = Request::of(by, &asked)?;
        let plan = || self.planned_fork(by.user, target, session, &fork);
        let (agent, forked) = self
            .requests()
            .carry_out(request.as_ref(), "the session", plan)
            .await?;
        self.sessions()
            .get(by.user, &Target::Agent(agent), forked, None)
            .await
    }

    /// Returns the commit that opens a fork, with its agent and itself.
    async fn planned_fork(
        &self,
        user: &UserId,
        target: &Target,
        session: SessionId,
        fork: &Fork,
    ) -> Result<Plan<(AgentId, SessionId)>, Error> {
        let row = self.sessions().for_words(user, target, session).await?;
        check_label(fork.name.as_deref())?;
        self.models()
            .check_for_words(user, session, fork.model.as_deref())
            .await?;
        self.models().check_generation_of_fork(&row, fork).await?;
        let (head, through) = self.forked_at(user, &row, fork).await?;
        let now = self.core.now();
        let forked = fresh::session();
        let agent = row.agent;
        let opened = SessionOpened {
            name: fork.name.clone().or(row.name),
            head: Some(head),
            persona: row.persona,
            model: fork.model.clone().or(row.model),
            ..SessionOpened::chat(agent, forked, fresh::conversation(), user.clone(), now)
        };
        let context = Context::by(user, now).about(agent, Some(forked), None);
        let mut commit = Commit::new()
            .guard(AgentGuard::Active(agent))
            .guard(SessionGuard::Exists(session))
            // A purge of it could otherwise remove the turn before the fork exists.
            .guard(SessionGuard::Shows {
                session: through,
                turn: head,
            })
            .guard(allowed(agent, user))
            .append(
                Stream::Session(forked),
                Expected::New,
                vec![context.event(Event::SessionOpened(opened))],
            );
        commit.guards.extend(self.access().may_open(user, now));
        Ok(Plan::new(commit, (agent, forked)))
    }

    /// Returns the turn from which a fork continues, and a session that shows it to the user.
    async fn forked_at(
        &self,
        user: &UserId,
        row: &SessionRow,
        fork: &Fork,
    ) -> Result<(TurnId, SessionId), Error> {
        match (fork.turn, fork.message) {
            (Some(_), Some(_)) => Err(invalid(
                "a fork begins at a turn or at a message: give one of them",
                "/message",
            )),
            (Some(turn), None) => {
                let clearance = self.access().clearance(user).await?;
                let showing = self
                    .store()
                    .session_showing(&clearance, Some(row.agent), turn);
                let through = showing
                    .await?
                    .ok_or_else(|| turn_not_found(turn).at("/turn_id"))?;
                Ok((turn, through))
            }
            (None, Some(message)) => {
                let found = match row.head {
                    Some(head) if message > 0 => self.store().turn_at(head, message).await?,
                    Some(_) | None => None,
                };
                let absent = format!(
                    "the session's thread has no message {message}; it has {}",
                    row.head_message
                );
                found
                    .map(|node| (node.id, row.id))
                    .ok_or_else(|| invalid(absent, "/message"))
            }
            (None, None) => row
                .head
                .map(|head| (head, row.id))
                .ok_or_else(|| thread_empty().into()),
        }
    }
}

impl Sessions<'_> {
    /// Returns the reason why a commit that was to begin something did not land: the user lost the
    /// right to it, or another commit was quicker.
    pub(super) async fn not_begun(&self, user: &UserId, target: &Target) -> Error {
        match self.may_begin(user, target).await {
            Err(error) => error,
            Ok(()) => changing("the agent").into(),
        }
    }
}
