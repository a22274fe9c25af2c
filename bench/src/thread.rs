//! Conversations of any length, made through the store's own commits.

use crate::view::{NOON, basis};
use broker::replay::snapshot;
use domain::authority::Permissions;
use domain::basis::Basis;
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::digest::{Digest, Salt};
use domain::event::{
    AgentCreated, Event, InputAccepted, NewEvent, PluginEmitted, PreferencesUpdated, RunEnded,
    RunStarted, RunStepped, SessionOpened, Source, Subject, TurnCommitted, UserAssigned,
};
use domain::id::{AgentId, ConversationId, EventId, InputId, RunId, SessionId, Stream, TurnId};
use domain::limits::TurnLimits;
use domain::message::{Draft, Message, Role};
use domain::operation::CallUsage;
use domain::path::AgentConfig;
use domain::role::AgentRole as UserRole;
use domain::run::Run;
use domain::step::Decision;
use domain::turn::{TurnEnd, TurnNode, TurnPlace, jumps_over};
use domain::user::UserId;
use store::{Commit, EMPTY_STATE, Expected, Store};
use uuid::Uuid;

/// The text of every message.
const WORDS: &str = "A sentence of the length that people write when they ask for something, \
                     and then some more of it.";
/// Turns of one commit.
const TURNS_PER_COMMIT: usize = 250;
/// Other events of one commit.
const EVENTS_PER_COMMIT: usize = 1_000;
/// Events between two snapshots of a run, as the broker keeps them.
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
            agent_type: None,
            agent,
            definition: DefinitionId("assistant".to_owned()),
            path: format!("/local/{agent}"),
            kind: None,
            config: AgentConfig::default(),
            parent: None,
            owner_user_id: UserId::local(),
            name: "Assistant".to_owned(),
            denies: Default::default(),
            permissions: Permissions::default(),
            created_at: NOON,
        });
        let opened = conversation.opened();
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

    /// Adds turns, each of so many messages, to a conversation that has none; its head.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn talk(
        self,
        store: &Store,
        turns: usize,
        messages: u64,
    ) -> anyhow::Result<Option<TurnId>> {
        let mut nodes: Vec<TurnNode> = Vec::with_capacity(turns);
        while nodes.len() < turns {
            let mut commit = Commit::new();
            for _ in 0..TURNS_PER_COMMIT.min(turns - nodes.len()) {
                let (with, node) = self.turn(commit, &nodes, messages);
                commit = with;
                nodes.push(node);
            }
            store.commit(commit).await?;
        }
        Ok(nodes.last().map(|node| node.id))
    }

    /// One turn, from the user's message to the reply, as the broker commits it.
    fn turn(self, commit: Commit, before: &[TurnNode], messages: u64) -> (Commit, TurnNode) {
        let run = RunId(Uuid::now_v7());
        let input = InputId(Uuid::now_v7());
        let parent = before.last();
        let first = parent.map_or(1, |parent| parent.last_message + 1);
        let heard = Draft::text(Role::User, "api", WORDS).at(first, Salt::default());
        let said: Vec<Message> = (first + 1..first + messages)
            .map(|id| Draft::text(Role::Assistant, "model:m", WORDS).at(id, Salt::default()))
            .collect();
        let node = after(before, run, std::iter::once(&heard).chain(&said));
        let accepted = self.input_accepted(input);
        let ended = RunEnded {
            run,
            session: self.session,
            end: TurnEnd::Replied,
            code: None,
            reason: None,
            turn: Some(node.id),
            stopped: Vec::new(),
            said: Vec::new(),
            inputs: vec![input],
            compacts: false,
            time: NOON,
        };
        let events = [
            Event::RunStarted(Box::new(self.started(run, input, parent))),
            Event::RunStepped(Box::new(stepped(run, heard, said))),
            Event::RunEnded(ended),
        ];
        let committed = TurnCommitted {
            session: self.session,
            turn: node.clone(),
            revision: node.depth,
            untrusted: Some(false),
            inputs: vec![input],
            compacts: false,
            time: NOON,
        };
        let session = Stream::Session(self.session);
        let commit = commit
            .append(
                session,
                Expected::Any,
                vec![self.event(Event::InputAccepted(accepted), None)],
            )
            .append(
                Stream::Run(run),
                Expected::New,
                events
                    .into_iter()
                    .map(|event| self.event(event, Some(run)))
                    .collect(),
            )
            .append(
                session,
                Expected::Any,
                vec![self.event(Event::TurnCommitted(committed), Some(run))],
            );
        (commit, node)
    }

    fn started(self, run: RunId, input: InputId, parent: Option<&TurnNode>) -> RunStarted {
        RunStarted {
            compacts: None,
            compacted: None,
            hints: Vec::new(),
            overrides: None,
            session_config: None,
            session_expires_at: None,
            run,
            session: self.session,
            agent: self.agent,
            definition: DefinitionId("assistant".to_owned()),
            session_type: "chat".to_owned(),
            component: Digest::of(b"component"),
            resolved_config: None,
            base: parent.map(|parent| parent.id),
            base_message: parent.map_or(0, |parent| parent.last_message),
            revision: parent.map_or(0, |parent| parent.depth),
            session_state: Digest::of(EMPTY_STATE),
            claimed: vec![input],
            permissions: Permissions::default(),
            collected: false,
            overflow: None,
            limits: TurnLimits::default(),
            accounts: Default::default(),
            deadline: None,
            reply_to: None,
            depth: 0,
            spawn_depth: 0,
            hops: 0,
            priority: Priority::default(),
            denies: Default::default(),
            untrusted: false,
            user_id: UserId::local(),
            model: None,
            generation: domain::sampling::GenerationSettings::default(),
            time: NOON,
        }
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

    /// Opens a further session of the agent, and returns it.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn begin_another(self, store: &Store) -> anyhow::Result<Self> {
        let other = Self {
            session: SessionId(Uuid::new_v4()),
            ..self
        };
        let opened = vec![other.event(other.opened(), None)];
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
                    vec![other.event(other.opened(), None)],
                );
            }
            store.commit(commit).await?;
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
            user_id: None,
            input,
            session: self.session,
            source: Source::Api,
            message: Some(Draft::text(Role::User, "api", WORDS)),
            model: None,
            waits_for: None,
            priority: None,
            labels: domain::message_labels::MessageLabels::default(),
            time: NOON,
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

    fn opened(self) -> Event {
        Event::SessionOpened(SessionOpened {
            config: None,
            conversation: ConversationId(Uuid::nil()),
            user_id: UserId::local(),
            session: self.session,
            agent: self.agent,
            session_type: "chat".to_owned(),
            name: None,
            head: None,
            persona: None,
            model: None,
            started_by: "user:local".to_owned(),
            time: NOON,
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

/// The turn that follows on others.
fn after<'a>(
    before: &[TurnNode],
    run: RunId,
    messages: impl Iterator<Item = &'a Message>,
) -> TurnNode {
    let messages: Vec<Digest> = messages.map(Message::digest).collect();
    let parent = before.last();
    let find = |id: TurnId| before.iter().rev().find(|node| node.id == id);
    let place = |node: &TurnNode| TurnPlace {
        depth: node.depth,
        jump_depth: node.jump.and_then(find).map_or(0, |jump| jump.depth),
    };
    let over = parent.and_then(|parent| {
        let jump = find(parent.jump?)?;
        jumps_over(place(parent), place(jump)).then_some(jump.jump)
    });
    let last = parent.map_or(0, |parent| parent.last_message);
    let mut node = TurnNode {
        id: TurnId(Digest([0; 32])),
        parent: parent.map(|parent| parent.id),
        jump: over.unwrap_or(parent.map(|parent| parent.id)),
        depth: parent.map_or(0, |parent| parent.depth) + 1,
        run,
        first_message: last + 1,
        last_message: last + messages.len() as u64,
        messages,
        session_state: Digest::of(EMPTY_STATE),
        end: TurnEnd::Replied,
        usage: domain::model::Usage::default(),
        models: Vec::new(),
    };
    node.id = node.compute_id();
    node
}

fn stepped(run: RunId, heard: Message, said: Vec<Message>) -> RunStepped {
    RunStepped {
        run,
        step: 0,
        basis: Basis {
            seed: Basis::seed(run, 0),
            ..basis()
        },
        settled: Vec::new(),
        claimed: Vec::new(),
        hops: 0,
        news: Vec::new(),
        heard: vec![heard],
        history_untrusted: false,
        decision: Decision::Reply { parts: Vec::new() },
        effects: Vec::new(),
        memo: None,
        said,
        started: Vec::new(),
        stopped: Vec::new(),
        answers: Digest::of(&[]),
        usage: CallUsage::default(),
        time: NOON,
    }
}
