//! Conversations of any length, made through the store's own commits.

mod thread_plan;

pub(crate) use thread_plan::BLOBS_OF_TURN;

use crate::view::NOON;
use broker::Clock;
use broker::replay::snapshot;
use domain::authority::Permissions;
use domain::definition::DefinitionId;
use domain::digest::{Digest, Salt};
use domain::event::{
    AgentCreated, Event, InputAccepted, NewEvent, PluginEmitted, PreferencesUpdated, SessionOpened,
    SessionRenamed, Source, Subject, UserAssigned,
};
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId, Stream, TurnId};
use domain::message::{Draft, Role};
use domain::path::{AgentConfig, PathKind};
use domain::role::AgentRole as UserRole;
use domain::run::Run;
use domain::user::UserId;
use futures::future::try_join_all;
use store::{Commit, EMPTY_STATE, Expected, Key, Store};
use uuid::Uuid;

/// The text of every message.
const WORDS: &str = "A sentence of the length that people write when they ask for something, \
                     and then some more of it.";
/// Other events of one commit.
const EVENTS_PER_COMMIT: usize = 1_000;
/// Requests that are made at the same time.
const REQUESTS_AT_ONCE: usize = 250;
/// Events between two snapshots of a run.
const SNAPSHOT_EVENTS: u64 = 64;

/// An agent with a session that nothing was said in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversation {
    pub(crate) agent: AgentId,
    pub(crate) session: SessionId,
}

impl Conversation {
    /// Begins one.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn begin(store: &Store) -> anyhow::Result<Self> {
        let conversation = Self {
            agent: AgentId(Uuid::new_v4()),
            session: SessionId(Uuid::new_v4()),
        };
        let Self { agent, session } = conversation;
        let created = Event::AgentCreated(AgentCreated {
            agent_type: "assistant".to_owned(),
            agent,
            definition: DefinitionId("assistant".to_owned()),
            path: format!("/local/agent/{agent}").parse()?,
            kind: PathKind::Agent,
            config: AgentConfig::default(),
            parent: None,
            owner_user_id: UserId::local(),
            name: "Assistant".to_owned(),
            denies: Default::default(),
            permissions: Permissions::default(),
            created_at: NOON,
        });
        let opened = conversation.opened(None);
        let commit = Commit::new()
            .append(
                Stream::Agent(agent),
                Expected::New,
                vec![conversation.event(created, None)],
            )
            .append(
                Stream::Session(session),
                Expected::New,
                vec![conversation.event(opened, None)],
            )
            .blob(EMPTY_STATE.to_vec());
        store.commit(commit).await?;
        Ok(conversation)
    }

    fn event(self, event: Event, run: Option<RunId>) -> NewEvent {
        new(
            event,
            Subject {
                agent: Some(self.agent),
                session: Some(self.session),
                run,
            },
        )
    }

    /// Opens a further session of the agent, which goes on from a turn if there is one, and returns
    /// it.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn begin_another(
        self,
        store: &Store,
        head: Option<TurnId>,
    ) -> anyhow::Result<Self> {
        let other = Self {
            session: SessionId(Uuid::new_v4()),
            ..self
        };
        let opened = vec![other.event(other.opened(head), None)];
        let commit = Commit::new().append(Stream::Session(other.session), Expected::New, opened);
        store.commit(commit).await?;
        Ok(other)
    }

    /// Opens so many further sessions of the agent, in which nothing is said.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn open_more(self, store: &Store, sessions: usize) -> anyhow::Result<()> {
        for begun in (0..sessions).step_by(EVENTS_PER_COMMIT) {
            let mut commit = Commit::new();
            for _ in begun..sessions.min(begun + EVENTS_PER_COMMIT) {
                let other = Self {
                    session: SessionId(Uuid::new_v4()),
                    ..self
                };
                commit = commit.append(
                    Stream::Session(other.session),
                    Expected::New,
                    vec![other.event(other.opened(None), None)],
                );
            }
            store.commit(commit).await?;
        }
        Ok(())
    }

    /// Renames the session so often, each time by a request with an idempotency key of its own.
    ///
    /// That happens now and not at noon, because keys are forgotten after a week.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn rename(self, store: &Store, times: usize) -> anyhow::Result<()> {
        let time = Clock::system().now();
        let renaming = |n: usize| {
            let renamed = Event::SessionRenamed(SessionRenamed {
                session: self.session,
                name: Some(format!("Name {n}")),
                time,
            });
            let event = NewEvent {
                time,
                ..self.event(renamed, None)
            };
            let request = format!("name {n} of {}", self.session);
            let key = Key {
                source: "user:local".to_owned(),
                request: Digest::of(request.as_bytes()),
                key: request,
                reply: WORDS.as_bytes().to_vec(),
                about: Some(self.session),
            };
            let stream = Stream::Session(self.session);
            let commit = Commit::new().append(stream, Expected::Any, vec![event]);
            store.commit(commit.key(key))
        };
        for begun in (0..times).step_by(REQUESTS_AT_ONCE) {
            let some = begun..times.min(begun + REQUESTS_AT_ONCE);
            try_join_all(some.map(renaming)).await?;
        }
        Ok(())
    }

    /// Accepts so many messages that wait, in one commit.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn hear(self, store: &Store, messages: usize) -> anyhow::Result<()> {
        let accepted = |_| {
            self.event(
                Event::InputAccepted(self.input_accepted(InputId(Uuid::now_v7()))),
                None,
            )
        };
        let events = (0..messages).map(accepted).collect();
        store
            .commit(Commit::new().append(Stream::Session(self.session), Expected::Any, events))
            .await?;
        Ok(())
    }

    /// The user's message.
    fn input_accepted(self, input: InputId) -> InputAccepted {
        InputAccepted {
            message: Some(Draft::text(Role::User, "api", WORDS)),
            ..InputAccepted::of(self.session, input, Source::Api, NOON)
        }
    }

    /// Changes the agent's preferences so often: events of its own stream.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn prefer(self, store: &Store, times: usize) -> anyhow::Result<()> {
        let event = |n: usize| {
            let preferences = serde_json::json!({ "language": "English", "changed": n });
            self.event(
                Event::PreferencesUpdated(PreferencesUpdated {
                    updated_at: NOON,
                    user_id: None,
                    untrusted: false,
                    agent: self.agent,
                    preferences,
                }),
                None,
            )
        };
        for begun in (0..times).step_by(EVENTS_PER_COMMIT) {
            let events = (begun..times.min(begun + EVENTS_PER_COMMIT))
                .map(event)
                .collect();
            store
                .commit(Commit::new().append(Stream::Agent(self.agent), Expected::Any, events))
                .await?;
        }
        Ok(())
    }

    /// Assigns so many users to the agent, and has it remember so many bytes of each.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn share(
        self,
        store: &Store,
        users: usize,
        bytes: usize,
    ) -> anyhow::Result<()> {
        for n in 0..users {
            let user: UserId = format!("user{n}").parse()?;
            let assigned = UserAssigned {
                agent: self.agent,
                user_id: user.clone(),
                role: UserRole::Shared,
                assigned_by: UserId::local(),
                assigned_at: NOON,
            };
            let preferences = serde_json::json!({ "learned": "x".repeat(bytes) });
            let learned = PreferencesUpdated {
                updated_at: NOON,
                untrusted: false,
                user_id: Some(user),
                agent: self.agent,
                preferences,
            };
            let events = [
                Event::UserAssigned(assigned),
                Event::PreferencesUpdated(learned),
            ]
            .map(|event| self.event(event, None));
            store
                .commit(Commit::new().append(
                    Stream::Agent(self.agent),
                    Expected::Any,
                    events.into(),
                ))
                .await?;
        }
        Ok(())
    }

    /// Begins a run whose stream gets so many events, and keeps what the broker would keep of it.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn run(self, store: &Store, events: usize) -> anyhow::Result<RunId> {
        let id = RunId(Uuid::now_v7());
        let input = InputId(Uuid::now_v7());
        let started = self.started(id, input, None);
        let run = Run::begin(started.clone());
        let stream = Stream::Run(id);
        let first = self.event(Event::RunStarted(Box::new(started)), Some(id));
        store
            .commit(Commit::new().append(stream, Expected::New, vec![first]))
            .await?;
        let emitted = |n: usize| {
            let emitted = PluginEmitted {
                name: "plugin.bench.event".to_owned(),
                data: serde_json::json!({ "n": n }),
            };
            self.event(Event::PluginEmitted(emitted), Some(id))
        };
        for version in (1..events).step_by(EVENTS_PER_COMMIT) {
            let some: Vec<NewEvent> = (version..events.min(version + EVENTS_PER_COMMIT))
                .map(emitted)
                .collect();
            let last = (version + some.len()) as u64;
            let mut commit = Commit::new().append(stream, Expected::Any, some);
            commit.snapshots.extend(
                snapshot(&run, last - last % SNAPSHOT_EVENTS).map(|snapshot| (stream, snapshot)),
            );
            store.commit(commit).await?;
        }
        Ok(id)
    }

    fn opened(self, head: Option<TurnId>) -> Event {
        Event::SessionOpened(SessionOpened {
            head,
            ..SessionOpened::chat(
                self.agent,
                self.session,
                ConversationId(Uuid::nil()),
                UserId::local(),
                NOON,
            )
        })
    }
}

/// An event that is about something.
pub(crate) fn new(event: Event, subject: Subject) -> NewEvent {
    NewEvent {
        id: EventId(Uuid::now_v7()),
        event,
        subject,
        actor: "user:local".to_owned(),
        causation: None,
        correlation: None,
        time: NOON,
        salt: Salt(*Uuid::new_v4().as_bytes()),
    }
}
