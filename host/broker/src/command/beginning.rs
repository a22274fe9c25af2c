//! The beginning of a chat together with its first message, in one commit.
//!
//! The commit contains the session, its agent if that is made with it, the words and the request's
//! key. So two equal requests at the same moment begin one session, and no session is left without
//! the words that it was begun for.

use super::agents::making;
use super::arriving;
use super::generation::Turns;
use super::messages::Remembered;
use super::queue::Configured;
use super::route::{Route, Routing};
use super::{
    Error, InputReceipt, Messages, PostOutcome, PostRouted, Request, RoutedReceipt, Target,
};
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{agent_not_found, changing, queue_full};
use crate::shared::guards::allowed;
use crate::shared::guards::passed_limit;
use domain::agent::Agent;
use domain::error_code::ErrorKind;
use domain::event::{AgentCreated, Event, InputAccepted, QueueConfigured, SessionOpened};
use domain::id::{AgentId, InputId, SessionId, Stream, TurnId};
use domain::message::text_of;
use domain::persona::PersonaId;
use domain::queue::{Arriving, Condition, Overflow, Queue, QueueOverride, WaitKind};
use domain::role::Right;
use domain::time::Timestamp;
use domain::user::UserId;
use store::{
    AgentGuard, ChatWith, Clash, Commit, CommitError, Expected, Guard, Key, SessionGuard, UserGuard,
};

/// A chat that will be begun for some words.
pub(super) struct Beginning {
    pub(super) agent: AgentId,
    /// The agent, if it is made as well.
    pub(super) made: Option<AgentCreated>,
    /// The turn that it continues, and a session that shows this turn to the user.
    pub(super) head: Option<(TurnId, SessionId)>,
    pub(super) persona: Option<PersonaId>,
    pub(super) name: Option<String>,
    /// The reason for a new session, for people.
    pub(super) why: String,
    /// The chat that the words would otherwise go to. It must still be absent when this one is
    /// begun. None for words that begin a chat of their own.
    pub(super) absent: Option<ChatWith>,
}

/// The first content of a new chat.
enum First {
    /// Words, as an input of this kind.
    Words(InputId, WaitKind),
    /// Settings of its queue.
    Queue(QueueOverride),
}

impl First {
    fn input(&self) -> Option<InputId> {
        match self {
            Self::Words(input, _) => Some(*input),
            Self::Queue(_) => None,
        }
    }

    /// Returns the key with the answer to the request, as it is remembered.
    fn remembered(&self, request: &Request, route: Route) -> Key {
        match self {
            Self::Words(input, _) => request.answered(&Remembered {
                input: *input,
                dropped: Vec::new(),
                route: Some(route),
            }),
            Self::Queue(queue) => request.answered(&Configured {
                queue: *queue,
                route: Some(route),
            }),
        }
    }

    fn event(
        &self,
        command: &PostRouted,
        arriving: Option<&arriving::Arriving>,
        session: SessionId,
        now: Timestamp,
    ) -> Event {
        match self {
            Self::Words(input, kind) => Event::InputAccepted(InputAccepted {
                user_id: command.user.clone(),
                message: Some(arriving::draft(
                    arriving,
                    &command.user,
                    command.content.clone(),
                )),
                model: command.model.clone(),
                waits_for: (*kind != WaitKind::Steer).then(|| kind.clone()),
                priority: command.priority,
                labels: command.labels.clone(),
                ..InputAccepted::of(session, *input, arriving::source(arriving), now)
            }),
            Self::Queue(queue) => Event::QueueConfigured(QueueConfigured {
                session,
                queue: *queue,
                time: now,
            }),
        }
    }
}

impl Messages<'_> {
    /// Checks the model and the schema in the words of a chat that is about to begin.
    async fn check_requests_of_first(
        &self,
        command: &PostRouted,
        beginning: &Beginning,
    ) -> Result<(), Error> {
        self.check_reply_schema(&command.content).await?;
        let model = command.model.as_deref();
        if model.is_none() {
            return Ok(());
        }
        let there = match &beginning.made {
            Some(created) => Some((Agent::created(created), created.kind)),
            None => {
                let row = self.store().agent(beginning.agent).await?;
                row.map(|row| (row.agent, row.kind))
            }
        };
        let Some((agent, kind)) = there else {
            return Ok(());
        };
        let turns = Turns {
            agent: &agent,
            kind,
            persona: beginning.persona.as_ref(),
            user: &command.user,
        };
        self.models().check(turns, model)
    }

    /// Begins a chat for words, or for a directive of the queue.
    ///
    /// None if its agent, or a chat that would take the words, was created meanwhile.
    pub(super) async fn begin(
        &self,
        command: &PostRouted,
        beginning: Beginning,
        routing: Routing<'_>,
    ) -> Result<Option<RoutedReceipt>, Error> {
        self.check_requests_of_first(command, &beginning).await?;
        let session = fresh::session();
        let now = self.core.now();
        let agent = beginning.agent;
        let first = self.first(command, &routing)?;
        let is_made = beginning.made.is_some();
        let route = Route {
            agent,
            session,
            why: beginning.why.clone(),
            is_new: true,
        };
        let leaving = routing.leaving;
        let noted = leaving.map(|leaving| leaving.to_new(session, first.input(), now));
        let new = NewChat {
            session,
            first: &first,
            noted,
            arriving: routing.arriving,
        };
        let mut commit = opening(command, beginning, new, now);
        let may_open = self.access().may_open(&command.user, now);
        commit.guards.extend(may_open);
        let request = routing.request;
        commit.key = request.map(|request| first.remembered(request, route.clone()));
        store::point("broker.accept.before");
        let committed = self.core.commit_work(session, commit).await;
        store::point("broker.accept.after");
        let said = match (committed, first) {
            (Ok(committed), First::Words(input, waits_for)) => {
                if matches!(waits_for, WaitKind::Queued(_)) {
                    // Its debounce may be over before any other timer is due.
                    self.core.timers.notify_one();
                }
                PostOutcome::Accepted(InputReceipt {
                    input,
                    session,
                    position: committed.last_position,
                    waits_for,
                    dropped: Vec::new(),
                    replayed: false,
                })
            }
            (Ok(_), First::Queue(queue)) => PostOutcome::Configured(self.queue().said(queue)),
            (Err(CommitError::Conflict(conflict)), _) => {
                if let Some(refusal) = passed_limit(&conflict.clash) {
                    return Err(refusal.into());
                }
                let is_there = matches!(
                    conflict.clash,
                    Clash::Guard(
                        Guard::User(UserGuard::NoChat { .. })
                            | Guard::Session(SessionGuard::Shows { .. })
                    )
                );
                if is_made || is_there {
                    return Ok(None);
                }
                return Err(self.no_agent_for(&command.user, agent).await);
            }
            (Err(error), _) => return Err(error.into()),
        };
        Ok(Some(route.receipt(said)))
    }

    fn first(&self, command: &PostRouted, routing: &Routing<'_>) -> Result<First, Error> {
        if let Some(directive) = routing.directive {
            return Ok(First::Queue(directive.applied(QueueOverride::default())));
        }
        let settings = self.queue_settings(command.queue, QueueOverride::default());
        let nothing: Queue<InputId> = Queue {
            waiting: Vec::new(),
            overflow: Overflow::default(),
        };
        let text = text_of(&command.content);
        let arriving = Arriving {
            settings,
            route: None,
            text: &text,
            line: &arriving::line(routing.arriving, &text),
        };
        let accepted = nothing
            .arrive(&arriving, Condition::Free)
            .map_err(|full| queue_full(&full))?;
        Ok(First::Words(fresh::input(), accepted.kind))
    }

    /// Returns the refusal for a commit with an agent that another has changed meanwhile.
    async fn no_agent_for(&self, user: &UserId, agent: AgentId) -> Error {
        match self
            .agents()
            .find_for(user, &Target::Agent(agent), Right::Interact)
            .await
        {
            Ok(_) => changing("the agent").into(),
            Err(Error::Refused(refusal)) if refusal.kind() == ErrorKind::NotFound => {
                agent_not_found(&agent.to_string()).into()
            }
            Err(error) => error,
        }
    }
}

/// A chat that is opened.
struct NewChat<'a> {
    session: SessionId,
    first: &'a First,
    /// The event by which it records the session that its user leaves, if they switch to it.
    noted: Option<Event>,
    /// The provenance of its first content; none for words of a caller of the API.
    arriving: Option<&'a arriving::Arriving>,
}

/// Returns the commit that opens a chat with its first content.
fn opening(command: &PostRouted, beginning: Beginning, new: NewChat<'_>, now: Timestamp) -> Commit {
    let NewChat {
        session,
        first,
        noted,
        arriving,
    } = new;
    let agent = beginning.agent;
    let user = &command.user;
    let opened = SessionOpened {
        name: beginning.name,
        head: beginning.head.map(|(turn, _)| turn),
        persona: beginning.persona,
        started_by: arriving::started_by(arriving, user),
        ..SessionOpened::chat(agent, session, fresh::conversation(), user.clone(), now)
    };
    let context = Context::by(user, now).about(agent, Some(session), None);
    let opened = context.event(Event::SessionOpened(opened));
    let context = match first {
        First::Words(input, _) => context.following(Some(*input)),
        First::Queue(_) => context,
    };
    let content = [first.event(command, arriving, session, now)];
    let mut events = vec![opened];
    events.extend(context.events(noted.into_iter().chain(content)));
    let commit = match beginning.made {
        Some(made) => making(user, made),
        None => Commit::new()
            .guard(AgentGuard::Active(agent))
            .guard(allowed(agent, user)),
    };
    let shown = beginning
        .head
        .map(|(turn, session)| Guard::Session(SessionGuard::Shows { session, turn }));
    let absent = beginning.absent.map(|with| {
        Guard::User(UserGuard::NoChat {
            user: user.clone(),
            with,
        })
    });
    let mut commit = commit.append(Stream::Session(session), Expected::New, events);
    commit.guards.extend(absent);
    commit.guards.extend(shown);
    commit
}
