//! Turns of a conversation, as the broker commits them.

use super::{Conversation, WORDS};
use crate::view::{NOON, basis};
use domain::basis::Basis;
use domain::definition::DefinitionId;
use domain::digest::{Digest, Salt};
use domain::event::{Event, InputAccepted, RunEnded, RunStarted, RunStepped, TurnCommitted};
use domain::id::{InputId, RunId, Stream, TurnId};
use domain::message::{Draft, Message, Part, Role};
use domain::operation::CallUsage;
use domain::step::Decision;
use domain::turn::{TurnEnd, TurnNode, TurnPlace, jumps_over};
use store::{Commit, EMPTY_STATE, Expected, Store};
use uuid::Uuid;

/// Blobs that each turn of [`Conversation::exchange_with_blobs`] brings and no other names.
pub(crate) const BLOBS_OF_TURN: u64 = 3;
/// Turns of one commit.
const TURNS_PER_COMMIT: usize = 250;

/// Turns to be made.
#[derive(Debug, Clone, Copy)]
struct ThreadPlan {
    turns: usize,
    /// Messages of each.
    messages: u64,
    /// True if each names blobs of its own; otherwise all name the one that is always there.
    has_blobs: bool,
}

/// Content that one turn brings and names.
struct Content {
    scene: Vec<u8>,
    settings: Vec<u8>,
    /// Shown by the user's message.
    picture: Vec<u8>,
}

impl Content {
    fn new(run: RunId) -> Self {
        let content = |name: &str| format!("the {name} of the run {run}: {WORDS}").into_bytes();
        Self {
            scene: content("scene"),
            settings: content("settings"),
            picture: content("picture"),
        }
    }

    fn part(&self) -> Part {
        Part::Blob {
            digest: Digest::of(&self.picture),
            media_type: "image/png".to_owned(),
            size: self.picture.len() as u64,
        }
    }

    fn into_blobs(self) -> [Vec<u8>; BLOBS_OF_TURN as usize] {
        [self.scene, self.settings, self.picture]
    }
}

impl Conversation {
    /// Adds turns, each of so many messages, to a conversation that has none; its head.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn exchange(
        self,
        store: &Store,
        turns: usize,
        messages: u64,
    ) -> anyhow::Result<Option<TurnId>> {
        let exchange = ThreadPlan {
            turns,
            messages,
            has_blobs: false,
        };
        self.commit_turns(store, exchange).await
    }

    /// The same with turns each of which brings [`BLOBS_OF_TURN`] blobs.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn exchange_with_blobs(
        self,
        store: &Store,
        turns: usize,
        messages: u64,
    ) -> anyhow::Result<Option<TurnId>> {
        let exchange = ThreadPlan {
            turns,
            messages,
            has_blobs: true,
        };
        self.commit_turns(store, exchange).await
    }

    async fn commit_turns(
        self,
        store: &Store,
        exchange: ThreadPlan,
    ) -> anyhow::Result<Option<TurnId>> {
        let mut nodes: Vec<TurnNode> = Vec::with_capacity(exchange.turns);
        while nodes.len() < exchange.turns {
            let mut commit = Commit::new();
            for _ in 0..TURNS_PER_COMMIT.min(exchange.turns - nodes.len()) {
                let (with, node) = self.turn(commit, &nodes, exchange);
                commit = with;
                nodes.push(node);
            }
            store.commit(commit).await?;
        }
        Ok(nodes.last().map(|node| node.id))
    }

    /// One turn, from the user's message to the reply, as the broker commits it.
    fn turn(self, commit: Commit, before: &[TurnNode], exchange: ThreadPlan) -> (Commit, TurnNode) {
        let run = RunId(Uuid::now_v7());
        let input = InputId(Uuid::now_v7());
        let parent = before.last();
        let content = exchange.has_blobs.then(|| Content::new(run));
        let first = parent.map_or(1, |parent| parent.last_message + 1);
        let mut draft = Draft::text(Role::User, "api", WORDS);
        draft.parts.extend(content.iter().map(Content::part));
        let heard = draft.clone().at(first, Salt::default());
        let said: Vec<Message> = (first + 1..first + exchange.messages)
            .map(|id| Draft::text(Role::Assistant, "model:m", WORDS).at(id, Salt::default()))
            .collect();
        let node = after(before, run, std::iter::once(&heard).chain(&said));
        let accepted = InputAccepted {
            message: Some(draft),
            ..self.input_accepted(input)
        };
        let events = [
            Event::RunStarted(Box::new(self.started(run, input, parent))),
            Event::RunStepped(Box::new(stepped(run, content.as_ref(), heard, said))),
            Event::RunEnded(self.ended(input, &node)),
        ];
        let committed = TurnCommitted {
            session: self.session,
            turn: node.clone(),
            revision: node.depth,
            untrusted: false,
            inputs: vec![input],
            compacts: false,
            time: NOON,
        };
        let session = Stream::Session(self.session);
        let mut commit = commit
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
        let blobs = content.into_iter().flat_map(Content::into_blobs);
        commit.blobs.extend(blobs);
        (commit, node)
    }

    /// The beginning of a run.
    pub(super) fn started(
        self,
        run: RunId,
        input: InputId,
        parent: Option<&TurnNode>,
    ) -> RunStarted {
        RunStarted {
            base: parent.map(|parent| parent.id),
            base_message: parent.map_or(0, |parent| parent.last_message),
            revision: parent.map_or(0, |parent| parent.depth),
            claimed: vec![input],
            ..RunStarted::of(
                run,
                self.session,
                self.agent,
                DefinitionId("assistant".to_owned()),
                Digest::of(b"component"),
                NOON,
            )
        }
    }

    fn ended(self, input: InputId, turn: &TurnNode) -> RunEnded {
        RunEnded {
            run: turn.run,
            session: self.session,
            end: TurnEnd::Replied,
            code: None,
            reason: None,
            turn: Some(turn.id),
            stopped: Vec::new(),
            said: Vec::new(),
            inputs: vec![input],
            compacts: false,
            time: NOON,
        }
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

fn stepped(
    run: RunId,
    content: Option<&Content>,
    heard: Message,
    said: Vec<Message>,
) -> RunStepped {
    let mut basis = Basis {
        seed: Basis::seed(run, 0),
        ..basis()
    };
    if let Some(content) = content {
        basis.documents.scene = Digest::of(&content.scene);
        basis.documents.settings = Digest::of(&content.settings);
    }
    RunStepped {
        run,
        step: 0,
        basis,
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
        ledger: Vec::new(),
        time: NOON,
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOBS_OF_TURN, Conversation};
    use domain::event::Event;
    use domain::message::Part;
    use std::collections::BTreeSet;
    use store::{EventFilter, Options, Store};

    #[tokio::test]
    async fn each_turn_brings_blobs_that_no_other_turn_names() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("data"), Options::default()).unwrap();
        let said = Conversation::begin(&store).await.unwrap();
        said.exchange_with_blobs(&store, 3, 2).await.unwrap();
        let events = store.events(0, EventFilter::default(), 100).await.unwrap();
        let mut named = BTreeSet::new();
        for recorded in events {
            let Some(Event::RunStepped(stepped)) = recorded.event else {
                continue;
            };
            named.extend([
                stepped.basis.documents.scene,
                stepped.basis.documents.settings,
            ]);
            let parts = stepped.heard.iter().flat_map(|message| &message.parts);
            named.extend(parts.filter_map(|part| match part {
                Part::Blob { digest, .. } => Some(*digest),
                Part::Text { .. } | Part::Call { .. } | Part::Opaque { .. } => None,
            }));
        }
        assert_eq!(named.len() as u64, 3 * BLOBS_OF_TURN);
        for digest in named {
            assert!(store.blob(digest).await.unwrap().is_some(), "{digest}");
        }
        store.close().await;
    }
}
