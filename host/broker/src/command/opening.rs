//! Opening a session, with an agent that exists or that is made in the same commit.

use super::Whom;
use super::agents::making;
use super::once::Once;
use super::switch_origin::Leaving;
use super::{By, Error, NewSession, Request, SYSTEM_PROMPT, SessionView, Sessions, Target};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{busy, changing, session_active, spawned};
use crate::resolved_config::Sealed;
use crate::shared::error::invalid;
use crate::shared::guards::allowed;
use crate::shared::guards::passed_limit;
use domain::agent::Agent;
use domain::agent::configure::check_name;
use domain::agent::start_session::Beginning;
use domain::digest::Digest;
use domain::error_code::ErrorCode;
use domain::event::{AgentCreated, Event, InputAccepted, SessionOpened, Source};
use domain::id::{AgentId, ConversationId, SessionId, Stream};
use domain::refusal::Refusal;
use domain::role::{AgentRole, Right};
use domain::session::CHAT;
use domain::time::Timestamp;
use std::io;
use store::{AgentGuard, Clash, Commit, CommitError, Expected, Guard, SessionGuard};

/// The largest configuration that a session is opened with, in bytes of JSON.
pub(super) const CONFIG_BYTES_MAX: usize = 256 << 10;
/// Number of tries of an opening while others make the same agent at the same time.
const TRIES_MAX: u32 = 5;

impl Sessions<'_> {
    /// Opens a session. A structured one takes its agent's slot, and the agent is stepped at once.
    ///
    /// # Errors
    /// An unknown agent or type; another structured session is active; the user may not.
    #[boxed]
    pub async fn open(&self, command: NewSession) -> Result<SessionView, Error> {
        let request = opening_request(&command)?;
        let act = self.open_now(&command, request.as_ref(), None);
        let (agent, session) = match self.requests().once(request.as_ref(), act).await? {
            Once::Now(opened) => opened,
            // The agent may differ from the one that would be chosen, or made, now.
            Once::Before(session) => (self.row(session).await?.agent, session),
        };
        self.get(&command.user, &Target::Agent(agent), session, None)
            .await
    }

    /// Opens a session, under the ids of the command. It records the session that its user leaves,
    /// if they switch to it.
    pub(super) async fn open_now(
        &self,
        command: &NewSession,
        request: Option<&Request>,
        leaving: Option<Leaving>,
    ) -> Result<(AgentId, SessionId), Error> {
        for _ in 0..TRIES_MAX {
            if let Some(opened) = self.try_opening(command, request, leaving).await? {
                return Ok(opened);
            }
        }
        Err(busy("an agent is being made at this moment; try again shortly").into())
    }

    /// Opens a session. None if another request has made its agent, or another user has begun its
    /// conversation, in between: the caller checks again.
    async fn try_opening(
        &self,
        command: &NewSession,
        request: Option<&Request>,
        leaving: Option<Leaving>,
    ) -> Result<Option<(AgentId, SessionId)>, Error> {
        let whom = self
            .agents()
            .find_or_make(&command.user, &command.target, Right::Interact)
            .await?;
        let kind = whom.kind();
        let (agent, role, is_spawned, made) = match whom {
            Whom::There(row, role) => (row.agent, role, row.parent.is_some(), None),
            Whom::New(created) => {
                let agent = Agent::apply(None, &Event::AgentCreated((*created).clone()));
                let unmade = || Error::unavailable(io::Error::other("an agent cannot be made"));
                let agent = agent.ok_or_else(unmade)?;
                (agent, AgentRole::Primary, false, Some(*created))
            }
        };
        check_prompt(command, role)?;
        let session_type = self.session_type(&agent, command.session_type.clone())?;
        // Archiving the topmost agent does not check this agent's slot.
        if is_spawned && session_type != CHAT {
            return Err(spawned(agent.id).into());
        }
        self.models().check_generation(command, &agent, kind)?;
        check_label(command.name.as_deref())?;
        let conversation = command.ids.conversation;
        let joining = self.joining(&command.user, conversation).await?;
        let is_new = made.is_some();
        let planned = PlannedSession {
            command,
            agent: &agent,
            made,
            session: command.ids.session.unwrap_or_else(fresh::session),
            conversation: conversation.unwrap_or_else(fresh::conversation),
            session_type,
            leaving,
            now: self.core.now(),
        };
        let session = planned.session;
        let is_structured = planned.is_structured();
        let may_open = self.access().may_open(&command.user, planned.now);
        let mut commit = self.opening(planned)?;
        let guards = may_open.chain(joining.map(Guard::from));
        commit.guards.extend(guards);
        commit.key = request.map(|request| request.answered(&session));
        let committed = if is_structured {
            self.core.commit_work(session, commit).await
        } else {
            self.store().commit(commit).await
        };
        match committed {
            Ok(_) => {}
            Err(CommitError::Conflict(conflict)) => match passed_limit(&conflict.clash) {
                Some(refusal) => return Err(refusal.into()),
                None if conflict.clash == Clash::Stream(Stream::Session(session)) => {
                    return Err(session_exists(session).into());
                }
                None if is_new || is_conversation(&conflict.clash) => return Ok(None),
                // Another changed the agent in between: a second check finds the reason.
                None => return Err(self.refused_opening(command, agent.id).await),
            },
            Err(error) => return Err(error.into()),
        }
        // Its time limit may be the next timer that is due.
        self.core.timers.notify_one();
        Ok(Some((agent.id, session)))
    }

    /// Returns the commit that opens a session.
    fn opening(&self, planned: PlannedSession<'_>) -> Result<Commit, Error> {
        let config = sealed_config(planned.command)?;
        let digest = config.as_ref().map(|config| config.digest);
        let context = Context::by(&planned.command.user, planned.now).about(
            planned.agent.id,
            Some(planned.session),
            None,
        );
        let mut events = vec![Event::SessionOpened(planned.opened(digest))];
        let leaving = planned.leaving;
        events.extend(leaving.map(|leaving| leaving.to_new(planned.session, None, planned.now)));
        let mut slot = Vec::new();
        if planned.is_structured() {
            slot.push(context.event(self.slot_taken(&planned)?));
            events.push(Event::InputAccepted(planned.first_input()));
        } else if planned.command.time_limit_s.is_some() {
            return Err(invalid(
                "a chat has no time limit; open a structured session or leave it out",
                "/time_limit_s",
            ));
        }
        let agent = planned.agent.id;
        let session = planned.session;
        let mut commit = room(planned).append(
            Stream::Session(session),
            Expected::New,
            context.events(events),
        );
        // The session goes first: its row must be there when the slot's event sets its end.
        if !slot.is_empty() {
            commit = commit.append(Stream::Agent(agent), Expected::Any, slot);
        }
        commit.blobs = config
            .into_iter()
            .map(|config| config.bytes.to_vec())
            .collect();
        Ok(commit)
    }

    /// Returns the event by which a structured session takes its agent's slot.
    fn slot_taken(&self, planned: &PlannedSession<'_>) -> Result<Event, Error> {
        let policy = self
            .agents()
            .definition(&planned.agent.definition)?
            .session_policy(&planned.session_type);
        let beginning = Beginning {
            session_id: planned.session,
            conversation_id: planned.conversation,
            session_type: planned.session_type.clone(),
            started_by: planned.command.user.clone(),
            time_limit_ms: policy.time_limit_ms(planned.command.time_limit_s),
            items_imported: 0,
        };
        Ok(planned.agent.start_session(beginning, planned.now)?)
    }

    /// Returns the reason why a structured session could not be opened, as its agent is now.
    async fn refused_opening(&self, command: &NewSession, agent: AgentId) -> Error {
        let found = match self
            .agents()
            .find_for(&command.user, &Target::Agent(agent), Right::Interact)
            .await
        {
            Ok((row, _)) => row.agent,
            Err(error) => return error,
        };
        match found.active_session {
            Some(_) => session_active(agent).into(),
            None => changing("the agent").into(),
        }
    }

    fn session_type(&self, agent: &Agent, asked: Option<String>) -> Result<String, Error> {
        let definition = self.agents().definition(&agent.definition)?;
        let types = self.core.served().catalogue.session_types(&definition);
        match asked {
            None => Ok(types.into_iter().next().unwrap_or_else(|| CHAT.to_owned())),
            Some(asked) if types.contains(&asked) => Ok(asked),
            Some(asked) => {
                let message = format!(
                    "this agent leads no `{asked}` sessions; it leads: {}",
                    types.join(", ")
                );
                Err(invalid(message, "/session_type"))
            }
        }
    }
}

/// Returns the request under its key; none without a key.
fn opening_request(command: &NewSession) -> Result<Option<Request>, Error> {
    // The target is recorded as it was named: the definition may mean another agent of the user's
    // by now.
    let asked = serde_json::json!({
        "open": command.target.named(),
        "session_type": command.session_type,
        "name": command.name,
        "model": command.model,
        "config": command.config,
        "time_limit_s": command.time_limit_s,
        "session_id": command.ids.session,
        "conversation_id": command.ids.conversation,
    });
    let by = By::new(&command.user, command.idempotency_key.as_ref());
    Request::of(by, &asked)
}

/// Returns the refusal of an id that a session has, or had.
fn session_exists(session: SessionId) -> Refusal {
    let message = format!(
        "there is a session `{session}` already; choose another UUID, or leave it out for a new one"
    );
    Refusal::new(ErrorCode::SessionExists, message)
}

fn is_conversation(clash: &Clash) -> bool {
    let Clash::Guard(Guard::Session(guard)) = clash else {
        return false;
    };
    matches!(guard, SessionGuard::ConversationOf { .. })
}

/// Checks that the user may give a session a system prompt of its own, if the command has one.
fn check_prompt(command: &NewSession, role: AgentRole) -> Result<(), Error> {
    if command
        .config
        .as_ref()
        .is_some_and(|config| config.contains_key(SYSTEM_PROMPT))
    {
        role.permits(Right::Configure)
            .map_err(|refusal| refusal.at("/config/system_prompt"))?;
    }
    Ok(())
}

/// A session that is about to be opened.
struct PlannedSession<'a> {
    command: &'a NewSession,
    agent: &'a Agent,
    /// The event that makes the agent, if it is made in the same commit.
    made: Option<AgentCreated>,
    session: SessionId,
    conversation: ConversationId,
    session_type: String,
    /// The session that its user leaves, if they switch to it.
    leaving: Option<Leaving>,
    now: Timestamp,
}

impl PlannedSession<'_> {
    fn is_structured(&self) -> bool {
        self.session_type != CHAT
    }

    /// Returns the event that opens it.
    fn opened(&self, config: Option<Digest>) -> SessionOpened {
        SessionOpened {
            session_type: self.session_type.clone(),
            name: self.command.name.clone(),
            model: self.command.model.clone(),
            config,
            ..SessionOpened::chat(
                self.agent.id,
                self.session,
                self.conversation,
                self.command.user.clone(),
                self.now,
            )
        }
    }

    /// Returns the input with which a structured session begins.
    fn first_input(&self) -> InputAccepted {
        InputAccepted {
            user_id: self.command.user.clone(),
            ..InputAccepted::of(self.session, fresh::input(), Source::Opening, self.now)
        }
    }
}

/// Returns the configuration of a new session; none if nothing is configured.
fn sealed_config(command: &NewSession) -> Result<Option<Sealed>, Error> {
    let config = command
        .config
        .as_ref()
        .filter(|config| !config.is_empty())
        .map(Sealed::json);
    if config
        .as_ref()
        .is_some_and(|config| config.bytes.len() > CONFIG_BYTES_MAX)
    {
        return Err(invalid(
            format!("what a session is opened with has at most {CONFIG_BYTES_MAX} bytes as JSON"),
            "/config",
        ));
    }
    Ok(config)
}

/// Begins the commit of an opening.
///
/// The agent is made. Or it exists, the user may use it, and for a structured session its slot is
/// free.
fn room(planned: PlannedSession<'_>) -> Commit {
    let agent = planned.agent.id;
    let session = planned.session;
    let user = &planned.command.user;
    let is_structured = planned.is_structured();
    match planned.made {
        // No other session has ever had its slot.
        Some(made) => making(user, made),
        None => {
            let commit = Commit::new()
                .guard(AgentGuard::Active(agent))
                .guard(allowed(agent, user));
            if is_structured {
                commit.guard(AgentGuard::SlotFor { agent, session })
            } else {
                commit
            }
        }
    }
}

pub(super) fn check_label(name: Option<&str>) -> Result<(), Error> {
    match name {
        Some(name) => Ok(check_name(name)?),
        None => Ok(()),
    }
}
