//! Sample events: a small vocabulary in which the tests tell their stories.

use crate::AgentFilter;
use crate::sql::{Columns, Connection, Sql};
use crate::{Commit, Committed, Expected, Options, Store};
use domain::basis::{Basis, Documents, LimitsLeft};
use domain::definition::DefinitionId;
use domain::digest::{Digest, Salt};
use domain::event::{
    AgentCreated, Event, InputAccepted, NewEvent, PluginEmitted, RunEnded, RunStarted, RunStepped,
    SessionOpened, Source, Subject, TurnCommitted,
};
use domain::id::ConversationId;
use domain::id::{AgentId, EventId, InputId, OperationId, RunId, SessionId, Stream, TurnId};
use domain::message::{Draft, Message, Role};
use domain::operation::{CallUsage, Operation, Performer};
use domain::path::{AgentConfig, AgentPath};
use domain::step::Decision;
use domain::time::Timestamp;
use domain::tool::EffectClass;
use domain::turn::{TurnEnd, TurnNode};
use domain::user::UserId;
use std::path::Path;
use uuid::Uuid;

pub(super) const NOON: Timestamp = Timestamp(1_700_000_000_000);

/// A store in a directory of its own.
pub(super) struct Sample {
    pub(super) dir: tempfile::TempDir,
    pub(super) store: Store,
}

impl Sample {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        Self { dir, store }
    }

    /// Returns the clearance of ada, from whom nothing is hidden.
    pub(super) async fn sees_all(&self) -> crate::Clearance {
        self.store.clearance(&ada(), None).await.unwrap()
    }

    /// Closes the store and opens it again.
    pub(super) async fn reopen(self) -> Self {
        self.store.close().await;
        let store = open(self.dir.path());
        Self {
            dir: self.dir,
            store,
        }
    }

    pub(super) fn database(&self) -> std::path::PathBuf {
        self.dir.path().join("store.db")
    }

    pub(super) async fn append(&self, stream: Stream, events: Vec<Event>) -> Committed {
        self.store.commit(commit(stream, events)).await.unwrap()
    }
}

pub(super) fn open(dir: &Path) -> Store {
    Store::open(dir, options()).unwrap()
}

pub(super) fn options() -> Options {
    Options {
        readers: 2,
        ballast_bytes: 64 << 10,
        ..Options::default()
    }
}

pub(super) fn agent(n: u128) -> AgentId {
    AgentId(Uuid::from_u128(0xa000 + n))
}

pub(super) fn session(n: u128) -> SessionId {
    SessionId(Uuid::from_u128(0xb000 + n))
}

pub(super) fn run(n: u128) -> RunId {
    RunId(Uuid::from_u128(0xc000 + n))
}

pub(super) fn input(n: u128) -> InputId {
    InputId(Uuid::from_u128(0xd000 + n))
}

/// Erases the payloads of some events, without what follows from them.
pub(super) fn erase(sample: &Sample, which: &str) {
    let connection = Connection::open(sample.database()).unwrap();
    let text = format!("SELECT position FROM events WHERE {which}");
    let mut positions = connection.prepare(&text).unwrap();
    let mut rows = positions.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        found.push(row.uint(0).unwrap());
    }
    for position in found {
        assert!(crate::event_row::erase(&Sql::new(&connection), position).unwrap());
    }
}

/// An event that is about nothing in particular.
pub(super) fn noise(n: u64) -> Event {
    Event::PluginEmitted(PluginEmitted {
        name: "plugin.sample.noise".to_owned(),
        data: serde_json::json!({ "n": n }),
    })
}

/// Gives an event all that it needs beside its payload.
pub(super) fn new(event: Event) -> NewEvent {
    let subject = match &event {
        Event::AgentCreated(created) => Subject {
            agent: Some(created.agent),
            ..Subject::default()
        },
        Event::SessionOpened(opened) => Subject {
            agent: Some(opened.agent),
            session: Some(opened.session),
            run: None,
        },
        Event::InputAccepted(accepted) => Subject {
            session: Some(accepted.session),
            ..Subject::default()
        },
        Event::RunStarted(started) => Subject {
            agent: Some(started.agent),
            session: Some(started.session),
            run: Some(started.run),
        },
        _ => Subject::default(),
    };
    NewEvent {
        id: EventId(Uuid::new_v4()),
        event,
        subject,
        actor: "user:ada".to_owned(),
        causation: None,
        correlation: Some(input(1)),
        time: NOON,
        salt: Salt(*Uuid::new_v4().as_bytes()),
    }
}

pub(super) fn commit(stream: Stream, events: Vec<Event>) -> Commit {
    expecting(stream, Expected::Any, events)
}

pub(super) fn expecting(stream: Stream, expected: Expected, events: Vec<Event>) -> Commit {
    Commit::new().append(stream, expected, events.into_iter().map(new).collect())
}

pub(super) fn created(n: u128, path: &str, parent: Option<AgentId>) -> Event {
    Event::AgentCreated(AgentCreated {
        agent_type: "assistant".to_owned(),
        agent: agent(n),
        definition: DefinitionId("assistant".to_owned()),
        path: path.parse().unwrap(),
        kind: path.parse::<AgentPath>().unwrap().kind(),
        config: AgentConfig::default(),
        parent,
        owner_user_id: ada(),
        name: "Assistant".to_owned(),
        denies: Default::default(),
        permissions: Default::default(),
        created_at: NOON,
    })
}

pub(super) fn opened(n: u128, of: u128, head: Option<TurnId>) -> Event {
    Event::SessionOpened(SessionOpened {
        head,
        started_by: "user:ada".to_owned(),
        ..SessionOpened::chat(
            agent(of),
            session(n),
            ConversationId(Uuid::nil()),
            UserId::local(),
            NOON,
        )
    })
}

pub(super) fn accepted(n: u128, to: u128, source: Source, text: &str) -> Event {
    Event::InputAccepted(InputAccepted {
        message: Some(Draft::text(Role::User, "api", text)),
        ..InputAccepted::of(
            session(to),
            input(n),
            source,
            NOON.plus_ms(u64::try_from(n).unwrap()),
        )
    })
}

pub(super) fn message(id: u64, role: Role, text: &str) -> Message {
    Draft::text(role, "api", text).at(id, Salt::default())
}

pub(super) fn timer(of: RunId, key: &str, due: Timestamp) -> Operation {
    Operation {
        id: OperationId::mint(of, 0, key),
        key: key.to_owned(),
        place: 0,
        step: 0,
        performer: Performer::Timer { due },
        effect: EffectClass::ReadOnly,
        time_limit_ms: None,
        deadline: None,
        answers: None,
        in_thread: false,
        reserved: Default::default(),
        approval: None,
    }
}

pub(super) fn run_started(
    of: RunId,
    in_session: u128,
    base: Option<&TurnNode>,
    claimed: Vec<InputId>,
) -> Event {
    Event::RunStarted(Box::new(RunStarted {
        base: base.map(|turn| turn.id),
        base_message: base.map_or(0, |turn| turn.last_message),
        revision: base.map_or(0, |turn| turn.depth),
        claimed,
        user_id: ada(),
        ..RunStarted::of(
            of,
            session(in_session),
            agent(1),
            DefinitionId("assistant".to_owned()),
            Digest::of(b"component"),
            NOON,
        )
    }))
}

/// The start of a run with its first step.
pub(super) fn run_begun(
    step: RunStepped,
    in_session: u128,
    base: Option<&TurnNode>,
    claimed: Vec<InputId>,
) -> Event {
    let mut begun = run_started(step.run, in_session, base, claimed);
    if let Event::RunStarted(started) = &mut begun {
        started.first_step = Some(Box::new(step));
    }
    begun
}

/// A step in which nothing but messages and operations happened.
pub(super) fn stepped(
    of: RunId,
    heard: Vec<Message>,
    said: Vec<Message>,
    started: Vec<Operation>,
) -> RunStepped {
    let digest = Digest::of(crate::EMPTY_STATE);
    RunStepped {
        run: of,
        step: 0,
        basis: Basis {
            files: 0,
            documents: Documents::all_of(digest, digest),
            base: None,
            head: 0,
            session_state: digest,
            now: NOON,
            left: LimitsLeft {
                steps: 1,
                tool_calls: 1,
                tokens: 1,
            },
            seed: Basis::seed(of, 0),
        },
        settled: Vec::new(),
        claimed: Vec::new(),
        hops: 0,
        news: Vec::new(),
        heard,
        history_untrusted: false,
        decision: Decision::Reply { parts: Vec::new() },
        effects: Vec::new(),
        memo: None,
        said,
        started,
        stopped: Vec::new(),
        answers: digest,
        usage: CallUsage::default(),
        ledger: Vec::new(),
        time: NOON,
    }
}

pub(super) fn run_ended(of: RunId, in_session: u128, turn: TurnId) -> Event {
    Event::RunEnded(RunEnded {
        run: of,
        session: session(in_session),
        end: TurnEnd::Replied,
        code: None,
        reason: None,
        turn: Some(turn),
        stopped: Vec::new(),
        said: Vec::new(),
        inputs: Vec::new(),
        compacts: false,
        time: NOON.plus_ms(10),
    })
}

/// A turn after another one, with a jump pointer from the store.
pub(super) async fn turn_after(
    store: &Store,
    parent: Option<&TurnNode>,
    of: RunId,
    messages: &[Message],
) -> TurnNode {
    let (depth, jump, last) = match parent {
        Some(parent) => store.jump_for(parent.id).await.unwrap(),
        None => (1, None, 0),
    };
    let mut turn = TurnNode {
        id: TurnId(Digest([0; 32])),
        parent: parent.map(|turn| turn.id),
        jump,
        depth,
        run: of,
        first_message: last + 1,
        last_message: last + messages.len() as u64,
        messages: messages.iter().map(Message::digest).collect(),
        session_state: Digest::of(crate::EMPTY_STATE),
        end: TurnEnd::Replied,
        usage: domain::model::Usage::default(),
        models: Vec::new(),
    };
    turn.id = turn.compute_id();
    turn
}

pub(super) fn turn_committed(in_session: u128, turn: &TurnNode) -> Event {
    Event::TurnCommitted(TurnCommitted {
        session: session(in_session),
        turn: turn.clone(),
        revision: turn.depth,
        untrusted: false,
        inputs: Vec::new(),
        compacts: false,
        time: NOON.plus_ms(20),
    })
}

/// A whole turn of a session: the user says one thing and the assistant another.
pub(super) async fn take_turn(
    store: &Store,
    in_session: u128,
    parent: Option<&TurnNode>,
    n: u128,
    user: &str,
    assistant: &str,
) -> TurnNode {
    let first = parent.map_or(1, |turn| turn.last_message + 1);
    let said = message(first, Role::User, user);
    let reply = message(first + 1, Role::Assistant, assistant);
    let node = turn_after(store, parent, run(n), &[said.clone(), reply.clone()]).await;
    let accept = commit(
        Stream::Session(session(in_session)),
        vec![accepted(n, in_session, Source::Api, user)],
    );
    store.commit(accept).await.unwrap();
    let events = vec![
        run_started(run(n), in_session, parent, vec![input(n)]),
        Event::RunStepped(Box::new(stepped(
            run(n),
            vec![said],
            vec![reply],
            Vec::new(),
        ))),
        run_ended(run(n), in_session, node.id),
    ];
    let end = expecting(Stream::Run(run(n)), Expected::New, events).append(
        Stream::Session(session(in_session)),
        Expected::Any,
        vec![new(turn_committed(in_session, &node))],
    );
    store.commit(end).await.unwrap();
    node
}

/// An agent with a session that nothing was said in.
pub(super) async fn begin(sample: &Sample) {
    sample
        .append(
            Stream::Agent(agent(1)),
            vec![created(1, "/ada/assistant", None)],
        )
        .await;
    sample
        .append(Stream::Session(session(1)), vec![opened(1, 1, None)])
        .await;
}

/// Returns the user who owns all agents.
pub(super) fn ada() -> UserId {
    "ada".parse().unwrap()
}

/// Active agents of every sort.
pub(super) fn active() -> AgentFilter {
    AgentFilter {
        active: true,
        ..AgentFilter::default()
    }
}
