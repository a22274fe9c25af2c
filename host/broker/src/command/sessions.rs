//! Commands on sessions: open, look at, list, end, cancel.

use super::agents::invalid;
use super::{Broker, Error, NewSession, SessionView, Target};
use crate::core::fresh;
use crate::driver::{Signal, load_run};
use crate::journal::Context;
use crate::refusals::{no_active_session, session_active, session_not_found};
use domain::event::{Event, InputAccepted, SessionOpened, SlotTaken, SlotTerminated, Source};
use domain::id::{SessionId, Stream};
use domain::run::settle::question;
use runtime::Described;
use store::{AgentRow, Clash, Commit, CommitError, Expected, Guard, SessionRow};
use tokio::sync::oneshot;

/// Messages that a look at a session shows unless asked for others.
const MESSAGES_SHOWN: u64 = 100;
/// Messages that a look at a session shows at most.
const MESSAGES_MAX: u64 = 1_000;
/// How often a command is tried again when others change the same thing at the same time.
const TRIES_MAX: u32 = 5;

impl Broker {
    /// Opens a session. A structured one takes its agent's slot, and the agent is stepped at once.
    ///
    /// # Errors
    /// An unknown agent or type; another structured session is active.
    pub async fn open_session(&self, command: NewSession) -> Result<SessionView, Error> {
        let agent = self.find_or_create(&command.user, &command.target).await?;
        let session_type = self.session_type(&agent, command.session_type)?;
        if let Some(model) = &command.model
            && let Err(unknown) = self.core.gateway.resolve(Some(model))
        {
            return Err(invalid(unknown.to_string(), "/model"));
        }
        let now = self.core.now();
        let (id, session) = (agent.agent.id, fresh::session());
        let structured = session_type != "chat";
        let opened = SessionOpened {
            session,
            agent: id,
            session_type: session_type.clone(),
            name: command.name,
            head: None,
            model: command.model,
            started_by: format!("user:{}", command.user),
            time: now,
        };
        let mut events = vec![Event::SessionOpened(opened)];
        let mut commit = Commit::new();
        let context = Context::new(format!("user:{}", command.user), now).about(id, Some(session), None);
        if structured {
            let input = fresh::input();
            events.push(Event::InputAccepted(InputAccepted {
                input,
                session,
                source: Source::Opening,
                message: None,
                model: None,
                time: now,
            }));
            let taken = SlotTaken { agent: id, session_id: session, session_type, started_at: now };
            commit = commit.guard(Guard::SlotFor { agent: id, session }).append(
                Stream::Agent(id),
                Expected::Any,
                vec![context.event(Event::SlotTaken(taken))],
            );
        }
        commit = commit.append(Stream::Session(session), Expected::New, context.events(events));
        let committed = if structured { self.core.commit_work(session, commit).await } else { self.core.store.commit(commit).await };
        match committed {
            Ok(_) => {}
            Err(CommitError::Conflict(conflict)) if matches!(conflict.clash, Clash::Guard(Guard::SlotFor { .. })) => {
                return Err(session_active(id).into());
            }
            Err(error) => return Err(error.into()),
        }
        self.session(&command.user, &Target::Agent(id), session, None).await
    }

    fn session_type(&self, agent: &AgentRow, asked: Option<String>) -> Result<String, Error> {
        let definition = self.definition(&agent.agent.definition)?;
        let entry = self.core.catalogue.entry(&definition.component);
        let types = match entry.map(|entry| entry.component.describes()) {
            Some(Described::Agent(description)) => description.session_types.clone(),
            _ => Vec::new(),
        };
        let types = if types.is_empty() { vec!["chat".to_owned()] } else { types };
        match asked {
            None => Ok(types.into_iter().next().unwrap_or_else(|| "chat".to_owned())),
            Some(asked) if types.contains(&asked) => Ok(asked),
            Some(asked) => {
                let message = format!("this agent leads no `{asked}` sessions; it leads: {}", types.join(", "));
                Err(invalid(message, "/session_type"))
            }
        }
    }

    /// An agent's sessions, the most recently updated first.
    ///
    /// # Errors
    /// There is no such agent.
    pub async fn sessions(&self, user: &str, target: &Target, limit: usize) -> Result<Vec<SessionRow>, Error> {
        let agent = self.find(user, target).await?;
        Ok(self.core.store.sessions(agent.agent.id, limit).await?)
    }

    /// One session with messages: those asked for (first and last, inclusive), or the last hundred.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn session(
        &self,
        user: &str,
        target: &Target,
        session: SessionId,
        messages: Option<(u64, u64)>,
    ) -> Result<SessionView, Error> {
        let row = self.session_of(user, target, session).await?;
        let run = match row.open_run {
            Some(run) => Some(load_run(&self.core.store, run).await?.0),
            None => None,
        };
        let head = run.as_ref().map_or(row.head_message, domain::run::Run::head);
        let (first, last) = messages.unwrap_or((head.saturating_sub(MESSAGES_SHOWN - 1), head));
        let (first, last) = (first.max(1), last.min(head).min(first.max(1) + MESSAGES_MAX - 1));
        let mut shown = Vec::new();
        if first <= row.head_message {
            shown = self.core.store.messages(row.head, first, last.min(row.head_message)).await?;
        }
        let open = run.iter().flat_map(|run| run.open.values());
        Ok(SessionView {
            run: row.open_run,
            open: open.clone().map(|open| open.operation.clone()).collect(),
            asking: open.filter_map(|open| Some((open.operation.id, question(open)?.clone()))).collect(),
            messages: {
                let own = run.iter().flat_map(|run| &run.messages).filter(|message| message.id >= first && message.id <= last);
                shown.extend(own.map(|message| message.as_ref().clone()));
                shown
            },
            row,
        })
    }

    pub(super) async fn session_of(&self, user: &str, target: &Target, session: SessionId) -> Result<SessionRow, Error> {
        let (agent, row) = tokio::join!(self.find(user, target), self.core.store.session(session));
        let agent = agent?;
        match row? {
            Some(row) if row.agent == agent.agent.id => Ok(row),
            _ => Err(session_not_found(session).into()),
        }
    }

    /// Ends the structured session that holds the agent's slot.
    ///
    /// # Errors
    /// None is active.
    pub async fn terminate_current(&self, user: &str, target: &Target, reason: Option<String>) -> Result<SessionRow, Error> {
        let reason = reason.unwrap_or_else(|| "User terminated".to_owned());
        for _ in 0..TRIES_MAX {
            let agent = self.find(user, target).await?;
            let Some((session, _)) = agent.agent.slot else { return Err(no_active_session().into()) };
            if !self.abort(session, reason.clone()).await? {
                match self.terminate_idle(&agent, session, &reason).await {
                    Ok(()) => {}
                    Err(Error::Unavailable(_)) => continue,
                    Err(error) => return Err(error),
                }
            }
            let row = self.core.store.session(session).await?;
            return row.ok_or_else(|| session_not_found(session).into());
        }
        Err(crate::refusals::busy("the session is changing at this moment; try again shortly").into())
    }

    /// Ends a structured session between two turns.
    async fn terminate_idle(&self, agent: &AgentRow, session: SessionId, reason: &str) -> Result<(), Error> {
        let now = self.core.now();
        let id = agent.agent.id;
        let event = Event::SlotTerminated(SlotTerminated { agent: id, session_id: session, reason: reason.to_owned(), terminated_at: now });
        let context = Context::new(format!("user:{}", agent.agent.owner_user_id), now).about(id, Some(session), None);
        let commit = Commit::new().guard(Guard::NoOpenRun(session)).guard(Guard::SessionOpen(session)).append(
            Stream::Agent(id),
            Expected::Any,
            vec![context.event(event)],
        );
        self.core.store.commit(commit).await?;
        Ok(())
    }

    /// Stops a session's open run, without a successor. False when none was open.
    ///
    /// # Errors
    /// There is no such session.
    pub async fn cancel(&self, user: &str, target: &Target, session: SessionId, reason: Option<String>) -> Result<bool, Error> {
        let row = self.session_of(user, target, session).await?;
        self.abort(row.id, reason.unwrap_or_else(|| "User cancelled".to_owned())).await
    }

    async fn abort(&self, session: SessionId, reason: String) -> Result<bool, Error> {
        let (done, aborted) = oneshot::channel();
        self.core.signal(session, Signal::Abort { reason, done }).await;
        crate::command::answered(&self.core, aborted).await
    }
}
