//! Routing: from the address of words to the session that takes them.
//!
//! A message has one address. Its levels, from the most exact, are a thread, a session, an agent, a
//! persona, smart routing, and a strategy that selects an agent if none is named. An address that
//! is unknown at its level is refused and never falls through to the next.
//!
//! A session that is begun for a message is in one commit with it. So are its agent, if that is
//! made as well, and the key of the request: see [`super::beginning`].

use super::arriving::Arriving;
use super::beginning::Beginning;
use super::messages::{
    Accepting, Remembered, asked, check_content, check_labels, directive, with_requests,
};
use super::once::Once;
use super::queue::{Configured, NamedSession, QueueChange};
use super::switch_origin::Leaving;
use super::{Address, By, Error, Messages, PostMessage, PostOutcome, Request, Target, Whom};
use crate::boxed::boxed;
use crate::core::fresh;
use crate::refusals::{changing, key_reused, no_thread_found, no_turn_there, session_unknown};
use domain::delegate::Priority;
use domain::error_code::{ErrorCode, ErrorKind};
use domain::event::AgentCreated;
use domain::id::{AgentId, SessionId, TurnId};
use domain::message::{Part, text_of};
use domain::message_labels::MessageLabels;
use domain::persona::{Persona, PersonaId};
use domain::queue::{Directive, QueueOverride};
use domain::refusal::Refusal;
use domain::role::Right;
use domain::routing::{Candidate, Pick, explain, pick};
use domain::user::UserId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use store::{Addressee, Among, ChatWith, SessionRow, SessionStatus};

/// Number of attempts to find a destination while others begin the same session or agent.
const TRIES_MAX: u32 = 5;

/// A command that posts a message to an address.
#[derive(Debug, Clone)]
pub struct PostRouted {
    /// The address.
    pub to: Address,
    /// The content of the message.
    pub content: Vec<Part>,
    /// The model that this turn uses.
    pub model: Option<String>,
    /// The treatment of the message while the agent is busy, if it names one.
    pub queue: QueueOverride,
    /// Its urgency among the inputs that wait in its session.
    pub priority: Option<Priority>,
    /// Labels that the sender put on it.
    pub labels: MessageLabels,
    /// The user who posts it.
    pub user: UserId,
    /// A key that makes a repeated request the same request, for seven days.
    pub idempotency_key: Option<String>,
}

/// A candidate thread.
#[derive(Debug, Clone, PartialEq)]
pub struct Meant {
    /// Its session.
    pub row: SessionRow,
    /// The search result, with its score.
    pub candidate: Candidate,
}

/// The result of routing words.
#[derive(Debug, Clone, PartialEq)]
pub enum Routed {
    /// Accepted words.
    Accepted(RoutedReceipt),
    /// Several threads are close. The sender has to choose one by its session.
    Unclear(Vec<Meant>),
}

/// The receipt for words that were routed, accepted and are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedReceipt {
    /// Their result: an input, or new settings of the session's queue.
    pub said: PostOutcome,
    /// The agent whose session takes them.
    pub agent: AgentId,
    /// The session.
    pub session: SessionId,
    /// The reason for this session; none for one accepted before reasons were remembered.
    pub why: Option<String>,
    /// True if the session was begun for them.
    pub is_new: bool,
}

/// The choice of a session for words, as it is remembered under the request's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) agent: AgentId,
    pub(super) session: SessionId,
    pub(super) why: String,
    pub(super) is_new: bool,
}

impl Route {
    pub(super) fn receipt(self, said: PostOutcome) -> RoutedReceipt {
        RoutedReceipt {
            said,
            agent: self.agent,
            session: self.session,
            why: Some(self.why),
            is_new: self.is_new,
        }
    }
}

/// The things that go with words on their way to a session.
#[derive(Clone, Copy)]
pub(super) struct Routing<'a> {
    /// The directive of the queue that they are, instead of a message.
    pub(super) directive: Option<Directive>,
    /// The request under its key.
    pub(super) request: Option<&'a Request>,
    /// The session that their user leaves with them, if they switch from one.
    pub(super) leaving: Option<Leaving>,
    /// Their provenance; none for words of a caller of the API.
    pub(super) arriving: Option<&'a Arriving>,
}

/// The remembered answer to a routed request.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Answered {
    Accepted(Remembered),
    Configured(Configured),
}

/// The result of looking for a destination.
pub(super) enum FoundDestination {
    There(Route),
    ToBegin(Box<Beginning>),
    Several(Vec<Meant>),
}

impl FoundDestination {
    fn there(agent: AgentId, session: SessionId, why: impl Into<String>) -> Self {
        Self::There(Route {
            agent,
            session,
            why: why.into(),
            is_new: false,
        })
    }
}

impl Messages<'_> {
    /// Routes words and accepts them. When this returns, they are durable and will be processed.
    ///
    /// # Errors
    /// The addressee does not exist, or the user may not write to it; those of posting a message.
    #[boxed]
    pub async fn post_routed(&self, command: PostRouted) -> Result<Routed, Error> {
        let directive = self.checked(&command)?;
        let asked = asked(
            json!({ "to": command.to.named() }),
            &command.content,
            command.model.as_deref(),
        );
        let asked = with_requests(asked, command.queue, command.priority, &command.labels);
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        let request = Request::of(by, &asked)?;
        let routing = Routing {
            directive,
            request: request.as_ref(),
            leaving: None,
            arriving: None,
        };
        let act = self.route(command, routing);
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(routed) => Ok(routed),
            Once::Before(answered) => self.routed_before(answered).await,
        }
    }

    /// Checks words for any session. Returns the directive of the queue that they are, if any.
    pub(super) fn checked(&self, command: &PostRouted) -> Result<Option<Directive>, Error> {
        let directive = directive(
            &command.content,
            command.model.as_deref(),
            command.priority,
            command.queue,
        )?;
        check_labels(&command.labels, directive)?;
        if directive.is_none() {
            check_content(&command.content)?;
        }
        Ok(directive)
    }

    /// Finds the session for words that were checked, and accepts them there.
    pub(super) async fn route(
        &self,
        command: PostRouted,
        routing: Routing<'_>,
    ) -> Result<Routed, Error> {
        let mut gone: Option<Refusal> = None;
        for _ in 0..TRIES_MAX {
            match self.destination(&command, routing).await? {
                FoundDestination::Several(several) => match gone {
                    None => return Ok(Routed::Unclear(several)),
                    // A repeat whose first request has landed is answered like that one.
                    Some(refusal) => return Err(refusal.into()),
                },
                FoundDestination::There(destination) => {
                    if matches!(command.to, Address::Session(_)) {
                        return self.send(command, destination, routing).await;
                    }
                    match self.send(command.clone(), destination, routing).await {
                        // It was ended or deleted since it was chosen, and the request did not name
                        // it: the message goes to another one.
                        Err(Error::Refused(refusal)) if is_gone(&refusal) => gone = Some(refusal),
                        sent => return sent,
                    }
                }
                // None if another request was quicker.
                FoundDestination::ToBegin(beginning) => {
                    if let Some(receipt) = self.begin(&command, *beginning, routing).await? {
                        return Ok(Routed::Accepted(receipt));
                    }
                    gone = None;
                }
            }
        }
        Err(gone.unwrap_or_else(|| changing("the agent")).into())
    }

    /// Accepts words in a session that exists.
    async fn send(
        &self,
        command: PostRouted,
        to: Route,
        routing: Routing<'_>,
    ) -> Result<Routed, Error> {
        let request = routing.request;
        let session = to.session;
        let target = Target::Agent(to.agent);
        let route = Some(to.clone());
        let said = if let Some(directive) = routing.directive {
            let at = NamedSession {
                user: &command.user,
                target: &target,
                session,
            };
            let configured = self
                .queue()
                .try_configuring(at, QueueChange::Direct(directive), request, route)
                .await?;
            PostOutcome::Configured(self.queue().said(configured.queue))
        } else {
            let row = self
                .sessions()
                .for_words(&command.user, &target, session)
                .await?;
            let input = fresh::input();
            let noted = match routing.leaving {
                Some(leaving) => leaving.to(&row, Some(input), self.core.now())?,
                None => None,
            };
            let labels = command.labels;
            let command = PostMessage {
                target,
                session,
                content: command.content,
                model: command.model,
                queue: command.queue,
                priority: command.priority,
                user: command.user,
                idempotency_key: command.idempotency_key,
            };
            let accepting = Accepting {
                command,
                to: &Addressee::from(&row),
                input,
                request,
                route,
                noted,
                arriving: routing.arriving,
                labels,
                limits: Vec::new(),
            };
            PostOutcome::Accepted(self.accept(accepting).await?)
        };
        Ok(Routed::Accepted(to.receipt(said)))
    }

    /// Answers a repeated request like the first time, whatever would be chosen now.
    pub(super) async fn routed_before(&self, answered: Answered) -> Result<Routed, Error> {
        let (said, route) = match answered {
            Answered::Accepted(remembered) => {
                let receipt = self.as_before(&remembered).await?;
                let session = receipt.session;
                let said = PostOutcome::Accepted(receipt);
                let Some(route) = remembered.route else {
                    return Ok(Routed::Accepted(RoutedReceipt {
                        said,
                        agent: self.sessions().row(session).await?.agent,
                        session,
                        why: None,
                        is_new: false,
                    }));
                };
                (said, Some(route))
            }
            Answered::Configured(Configured { queue, route }) => {
                (PostOutcome::Configured(self.queue().said(queue)), route)
            }
        };
        let route = route.ok_or_else(key_reused)?;
        Ok(Routed::Accepted(route.receipt(said)))
    }

    /// Returns the session to which words would go, and the reason, without sending them.
    ///
    /// None if a session would have to be begun, which this does not do, or if several threads are
    /// close.
    ///
    /// # Errors
    /// The addressee does not exist, or the user may not write to it.
    #[boxed]
    pub async fn where_to(
        &self,
        user: &UserId,
        to: &Address,
        text: &str,
    ) -> Result<Option<(SessionId, String)>, Error> {
        match self.find_destination(user, to, text).await? {
            FoundDestination::There(route) => Ok(Some((route.session, route.why))),
            FoundDestination::Several(_) | FoundDestination::ToBegin(_) => Ok(None),
        }
    }

    /// Returns the personas that a user may write to.
    #[must_use]
    pub fn personas(&self, user: &UserId) -> Vec<Arc<Persona>> {
        self.core
            .served()
            .catalogue
            .personas()
            .filter(|persona| persona.admits(user))
            .cloned()
            .collect()
    }

    /// Returns the destination of words. Words that begin a session of their own have no other
    /// destination.
    async fn destination(
        &self,
        command: &PostRouted,
        routing: Routing<'_>,
    ) -> Result<FoundDestination, Error> {
        let text = text_of(&command.content);
        let found = self
            .find_destination(&command.user, &command.to, &text)
            .await?;
        match routing.arriving.and_then(|it| it.isolated.as_ref()) {
            Some(isolated) => self.apart(&command.to, found, isolated).await,
            None => Ok(found),
        }
    }

    async fn find_destination(
        &self,
        user: &UserId,
        to: &Address,
        text: &str,
    ) -> Result<FoundDestination, Error> {
        match to {
            Address::Thread(turn) => self.at_turn(user, *turn).await,
            Address::Session(session) => {
                let row = self.store().session(*session).await?;
                let row = row
                    .filter(|row| row.status != SessionStatus::Deleted)
                    .ok_or_else(|| no_session(*session))?;
                // A user does not learn which sessions another user's agent has.
                match self
                    .sessions()
                    .for_command(user, &Target::Agent(row.agent), row.id)
                    .await
                {
                    Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {
                        return Err(no_session(*session).into());
                    }
                    found => found?,
                };
                Ok(FoundDestination::there(row.agent, row.id, "it was named"))
            }
            Address::Agent(target) => self.with_agent(user, target).await,
            Address::Persona(id) => self.with_persona(user, id).await,
            Address::Found(strategy) => {
                let found = self.paths().fetch(user, *strategy).await?;
                let agent = found.living.row.agent.id;
                self.with_agent(user, &Target::Agent(agent)).await
            }
            Address::Smart {
                about,
                agent,
                persona,
            } => {
                let mut among = Among {
                    agent: None,
                    persona: persona.clone(),
                };
                if let Some(target) = agent {
                    let found = self.agents().find_for(user, target, Right::Interact).await;
                    let (row, _) = found.map_err(|error| naming(error, "/to/smart/agent"))?;
                    among.agent = Some(row.agent.id);
                }
                if let Some(persona) = persona {
                    self.persona_of(user, persona)?;
                }
                self.by_what_is_said(user, among, about.as_deref().unwrap_or(text))
                    .await
            }
        }
    }

    /// Returns the session whose head is a turn, or a new one that begins there.
    async fn at_turn(&self, user: &UserId, turn: TurnId) -> Result<FoundDestination, Error> {
        let no_turn = || Error::from(no_turn_there(turn));
        let own = self.store().chat_at(user, turn).await?;
        let made_in = match own {
            Some(_) => own,
            None => self.store().session_of_turn(turn).await?,
        };
        let (agent, session) = made_in.ok_or_else(no_turn)?;
        let row = match self
            .sessions()
            .for_command(user, &Target::Agent(agent), session)
            .await
        {
            Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {
                return Err(no_turn());
            }
            found => found?,
        };
        if own.is_some() {
            let why = "it is at that turn";
            return Ok(FoundDestination::there(agent, session, why));
        }
        // A thread that is led as a persona is only for those whom the persona admits.
        if let Some(persona) = &row.persona {
            self.persona_of(user, persona)?;
        }
        let why = "no session of yours is at that turn: this one was forked from it".to_owned();
        let absent = Some(ChatWith::Turn(turn));
        let head = Some((turn, session));
        Ok(FoundDestination::ToBegin(Box::new(Beginning {
            agent,
            made: None,
            head,
            persona: row.persona,
            name: None,
            why,
            absent,
        })))
    }

    async fn with_agent(&self, user: &UserId, target: &Target) -> Result<FoundDestination, Error> {
        let found = self.agent_or_new(user, target).await;
        let (agent, made) = found.map_err(|error| naming(error, "/to/agent"))?;
        if made.is_none()
            && let Some(session) = self.store().latest_chat(user, agent).await?
        {
            let why = "it is your latest chat with that agent";
            return Ok(FoundDestination::there(agent, session, why));
        }
        let why = "you had no chat with that agent".to_owned();
        let absent = Some(ChatWith::Agent(agent));
        Ok(FoundDestination::ToBegin(Box::new(Beginning {
            agent,
            made,
            head: None,
            persona: None,
            name: None,
            why,
            absent,
        })))
    }

    async fn with_persona(&self, user: &UserId, id: &PersonaId) -> Result<FoundDestination, Error> {
        let persona = self.persona_of(user, id)?;
        if let Some((agent, session)) = self.store().main_session(user, id).await? {
            let why = "it is your main session with that persona";
            return Ok(FoundDestination::there(agent, session, why));
        }
        let found = self
            .agent_or_new(user, &Target::Definition(persona.agent.clone()))
            .await;
        let (agent, made) = found.map_err(|error| naming(error, "/to/persona"))?;
        let name = Some(persona.display_name.clone());
        let why = "you had no session with that persona".to_owned();
        let absent = Some(ChatWith::Persona(id.clone()));
        Ok(FoundDestination::ToBegin(Box::new(Beginning {
            agent,
            made,
            head: None,
            persona: Some(id.clone()),
            name,
            why,
            absent,
        })))
    }

    async fn agent_or_new(
        &self,
        user: &UserId,
        target: &Target,
    ) -> Result<(AgentId, Option<AgentCreated>), Error> {
        Ok(
            match self
                .agents()
                .find_or_make(user, target, Right::Interact)
                .await?
            {
                Whom::There(row, _) => (row.agent.id, None),
                Whom::New(created) => (created.agent, Some(*created)),
            },
        )
    }

    async fn by_what_is_said(
        &self,
        user: &UserId,
        among: Among,
        text: &str,
    ) -> Result<FoundDestination, Error> {
        let clearance = self.access().clearance(user).await?;
        let found = self.store().speaks_of(&clearance, among, text).await?;
        match pick(&found, self.core.now()) {
            Pick::None => Err(no_thread_found().into()),
            Pick::One { best, next } => {
                let row = self.sessions().row(best.session).await?;
                let why = explain(&best, next.as_ref());
                Ok(FoundDestination::there(row.agent, row.id, why))
            }
            Pick::Several(candidates) => {
                let mut several = Vec::new();
                for candidate in candidates {
                    let row = self.sessions().row(candidate.session).await?;
                    several.push(Meant { row, candidate });
                }
                Ok(FoundDestination::Several(several))
            }
        }
    }

    /// Returns a persona that a user may write to. Any other persona looks absent.
    fn persona_of(&self, user: &UserId, id: &PersonaId) -> Result<Arc<Persona>, Refusal> {
        let served = self.core.served();
        let persona = served
            .catalogue
            .persona(id)
            .filter(|persona| persona.admits(user));
        persona.cloned().ok_or_else(|| {
            let personas = self.personas(user);
            let known: Vec<&str> = personas.iter().map(|persona| persona.id.as_str()).collect();
            let message = format!(
                "there is no persona `{id}`; there are: {}",
                known.join(", ")
            );
            Refusal::new(ErrorCode::PersonaNotFound, message)
        })
    }
}

fn no_session(session: SessionId) -> Refusal {
    session_unknown(session).at("/to/session")
}

/// Puts the blame on the part of the address that names the agent, if the agent is not there or
/// cannot be made.
fn naming(error: Error, field: &str) -> Error {
    match error {
        Error::Refused(refusal)
            if refusal.field.is_some()
                || matches!(refusal.kind(), ErrorKind::NotFound | ErrorKind::Gone) =>
        {
            refusal.at(field).into()
        }
        error => error,
    }
}

/// Tells whether a session was refused because it takes no messages any more.
fn is_gone(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        ErrorCode::SessionClosed | ErrorCode::SessionNotFound | ErrorCode::SessionPurged
    )
}
