//! Conversations of any length, made through the store's own commits.

use crate::view::{NOON, basis};
use domain::basis::Basis;
use domain::definition::DefinitionId;
use domain::delegate::Priority;
use domain::digest::{Digest, Salt};
use domain::event::{
    AgentCreated, Event, InputAccepted, NewEvent, RunEnded, RunStarted, RunStepped, SessionOpened, Source, Subject, TurnCommitted,
};
use domain::id::{AgentId, EventId, InputId, RunId, SessionId, Stream, TurnId};
use domain::limits::TurnLimits;
use domain::message::{Draft, Message, Role};
use domain::operation::CallUsage;
use domain::step::Decision;
use domain::turn::{Place, TurnEnd, TurnNode, jumps_over};
use store::{Commit, EMPTY_STATE, Expected, Store};
use uuid::Uuid;

/// What every message says.
const WORDS: &str = "A sentence of the length that people write when they ask for something, and then some more of it.";
/// Turns of one commit.
const TURNS_PER_COMMIT: usize = 250;

/// An agent with a session that nothing was said in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversation {
    agent: AgentId,
    pub(crate) session: SessionId,
}

impl Conversation {
    /// Begins one.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn begin(store: &Store) -> anyhow::Result<Self> {
        let conversation = Self { agent: AgentId(Uuid::new_v4()), session: SessionId(Uuid::new_v4()) };
        let Self { agent, session } = conversation;
        let created = Event::AgentCreated(AgentCreated {
            agent,
            definition: DefinitionId("assistant".to_owned()),
            path: format!("/local/{agent}"),
            parent: None,
            owner_user_id: "local".to_owned(),
            name: "Assistant".to_owned(),
            denies: Default::default(),
            created_at: NOON,
        });
        let opened = Event::SessionOpened(SessionOpened {
            session,
            agent,
            session_type: "chat".to_owned(),
            name: None,
            head: None,
            model: None,
            started_by: "user:local".to_owned(),
            time: NOON,
        });
        let commit = Commit::new()
            .append(Stream::Agent(agent), Expected::New, vec![conversation.event(created, None)])
            .append(Stream::Session(session), Expected::New, vec![conversation.event(opened, None)])
            .blob(EMPTY_STATE.to_vec());
        store.commit(commit).await?;
        Ok(conversation)
    }

    /// Adds turns, each of so many messages, to a conversation that has none; its head.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn talk(self, store: &Store, turns: usize, messages: u64) -> anyhow::Result<Option<TurnId>> {
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

    /// One turn, from the user's words to the reply, as the broker commits it.
    fn turn(self, commit: Commit, before: &[TurnNode], messages: u64) -> (Commit, TurnNode) {
        let (run, input) = (RunId(Uuid::now_v7()), InputId(Uuid::now_v7()));
        let parent = before.last();
        let first = parent.map_or(1, |parent| parent.last_message + 1);
        let heard = Draft::text(Role::User, "api", WORDS).at(first, Salt::default());
        let said: Vec<Message> =
            (first + 1..first + messages).map(|id| Draft::text(Role::Assistant, "model:m", WORDS).at(id, Salt::default())).collect();
        let node = after(before, run, std::iter::once(&heard).chain(&said));
        let accepted = InputAccepted {
            input,
            session: self.session,
            source: Source::Api,
            message: Some(Draft::text(Role::User, "api", WORDS)),
            model: None,
            time: NOON,
        };
        let ended = RunEnded {
            run,
            session: self.session,
            end: TurnEnd::Replied,
            code: None,
            reason: None,
            turn: Some(node.id),
            stopped: Vec::new(),
            said: Vec::new(),
            time: NOON,
        };
        let events = [
            Event::RunStarted(Box::new(self.started(run, input, parent))),
            Event::RunStepped(Box::new(stepped(run, heard, said))),
            Event::RunEnded(ended),
        ];
        let committed = TurnCommitted { session: self.session, turn: node.clone(), revision: node.depth, time: NOON };
        let session = Stream::Session(self.session);
        let commit = commit
            .append(session, Expected::Any, vec![self.event(Event::InputAccepted(accepted), None)])
            .append(Stream::Run(run), Expected::New, events.into_iter().map(|event| self.event(event, Some(run))).collect())
            .append(session, Expected::Any, vec![self.event(Event::TurnCommitted(committed), Some(run))]);
        (commit, node)
    }

    fn started(self, run: RunId, input: InputId, parent: Option<&TurnNode>) -> RunStarted {
        RunStarted {
            run,
            session: self.session,
            agent: self.agent,
            definition: DefinitionId("assistant".to_owned()),
            session_type: "chat".to_owned(),
            component: Digest::of(b"component"),
            outfit: None,
            base: parent.map(|parent| parent.id),
            base_message: parent.map_or(0, |parent| parent.last_message),
            revision: parent.map_or(0, |parent| parent.depth),
            session_state: Digest::of(EMPTY_STATE),
            claimed: vec![input],
            limits: TurnLimits::default(),
            deadline: None,
            reply_to: None,
            depth: 0,
            hops: 0,
            priority: Priority::default(),
            denies: Default::default(),
            user_id: "local".to_owned(),
            model: None,
            time: NOON,
        }
    }

    fn event(self, event: Event, run: Option<RunId>) -> NewEvent {
        NewEvent {
            id: EventId(Uuid::now_v7()),
            event,
            subject: Subject { agent: Some(self.agent), session: Some(self.session), run },
            actor: "user:local".to_owned(),
            causation: None,
            correlation: None,
            time: NOON,
            salt: Salt(*Uuid::new_v4().as_bytes()),
        }
    }
}

/// The turn that follows on others.
fn after<'a>(before: &[TurnNode], run: RunId, messages: impl Iterator<Item = &'a Message>) -> TurnNode {
    let messages: Vec<Digest> = messages.map(Message::digest).collect();
    let parent = before.last();
    let find = |id: TurnId| before.iter().rev().find(|node| node.id == id);
    let place = |node: &TurnNode| Place { depth: node.depth, jump_depth: node.jump.and_then(find).map_or(0, |jump| jump.depth) };
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
        basis: Basis { seed: Basis::seed(run, 0), ..basis() },
        settled: Vec::new(),
        claimed: Vec::new(),
        hops: 0,
        news: Vec::new(),
        heard: vec![heard],
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
