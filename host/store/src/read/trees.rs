//! Trees of turns as a user sees them: which turns, under which labels, and where two threads part.
//!
//! A user who may see a session sees the turns of its thread, and those that were committed in it
//! before it was cleared or forked from. No other turn is visible, even to a user who knows its id.

use super::blobs::content;
use super::turns::{NODE_COLUMNS, node, parent, root};
use super::{Clearance, ReadError};
use crate::event_row::event;
use crate::query::{Query, Value};
use crate::sql::{self, Sql, args, named, row, text};
use crate::sqlite::ids;
use crate::store::Store;
use crate::streams;
use crate::texts::Packed;
use domain::compaction::Mark;
use domain::digest::Digest;
use domain::event::Event;
use domain::id::{AgentId, InputId, RunId, SessionId, Stream, TurnId};
use domain::message::{Message, MessageId};
use domain::time::Timestamp;
use domain::transcript::TranscriptTurn;
use domain::turn::TurnNode;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of turns of one tree that are read; further turns are not shown.
const TREE_TURNS_MAX: usize = 200_000;

row! {
    /// A session as a label on a turn.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SessionLabel {
        /// The session.
        pub id: SessionId = "s.id",
        /// Its agent.
        pub agent: AgentId = "s.agent",
        /// Name of the session.
        pub name: Option<String> = "s.name",
    }
}

/// A turn of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeTurn {
    /// Its node.
    pub node: TurnNode,
    /// The session in which it was committed, or for which it was imported.
    pub session: SessionId,
    /// Time at which it was committed.
    pub time: Timestamp,
    /// The sessions with this head that the user may see.
    pub labels: Vec<SessionLabel>,
    /// First message in it.
    pub text: String,
    /// The inputs that its run claimed.
    pub inputs: Vec<InputId>,
    /// True if it is a compaction of its thread.
    pub compacts: bool,
}

/// A turn with all its known data.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenTurn {
    /// The turn.
    pub turn: TreeTurn,
    /// The visible turns that follow it.
    pub children: Vec<TurnId>,
    /// Its messages in order; none in place of an erased message.
    pub messages: Vec<Option<Message>>,
}

/// Point where two threads part.
#[derive(Debug, Clone, PartialEq)]
pub struct Parting {
    /// The last turn of both; none when they have nothing in common.
    pub common: Option<TurnId>,
    /// The turns of the first alone, in order, each with its messages.
    pub left: Vec<(TurnNode, Vec<Option<Message>>)>,
    /// The turns of the second alone.
    pub right: Vec<(TurnNode, Vec<Option<Message>>)>,
}

impl Store {
    /// A turn that a user sees, through sessions of one agent or of any; none when there is no such
    /// turn, or they do not see it.
    pub async fn seen_turn(
        &self,
        clearance: &Clearance,
        agent: Option<AgentId>,
        turn: TurnId,
    ) -> Result<Option<SeenTurn>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let Some(tree) = VisibleTree::read(sql, &clearance, agent, turn)? else {
                return Ok(None);
            };
            if !tree.turns.contains(&turn) {
                return Ok(None);
            }
            let Some(shown) = tree.turn(sql, turn)? else {
                return Ok(None);
            };
            let of_turn = "SELECT id FROM turns WHERE parent = ?1 ORDER BY id";
            let mut children = sql.all::<TurnId>(of_turn, [turn])?;
            children.retain(|child| tree.turns.contains(child));
            let messages = messages(sql, &shown.node)?;
            Ok(Some(SeenTurn {
                turn: shown,
                children,
                messages,
            }))
        })
        .await
    }

    /// Returns a session through which a user sees a turn, of one agent or of any: the session that
    /// made the turn, or one with the turn in its thread. None if the turn does not exist or the
    /// user does not see it.
    pub async fn session_showing(
        &self,
        clearance: &Clearance,
        agent: Option<AgentId>,
        turn: TurnId,
    ) -> Result<Option<SessionId>, ReadError> {
        let clearance = clearance.clone();
        self.read(
            move |sql| match VisibleTree::read(sql, &clearance, agent, turn)? {
                Some(tree) => tree.through(sql, turn),
                None => Ok(None),
            },
        )
        .await
    }

    /// The turns of a turn's tree that a user sees: each after its parent, after one of them, at
    /// most `limit`.
    pub async fn tree(
        &self,
        clearance: &Clearance,
        of: TurnId,
        after: Option<TurnId>,
        limit: usize,
    ) -> Result<Vec<TreeTurn>, ReadError> {
        let clearance = clearance.clone();
        self.read(move |sql| {
            let Some(tree) = VisibleTree::read(sql, &clearance, None, of)? else {
                return Ok(Vec::new());
            };
            let shown = tree.order.iter().filter(|turn| tree.turns.contains(turn));
            let rest = shown
                .skip_while(|turn| after.is_some_and(|after| after != **turn))
                .skip(usize::from(after.is_some()));
            let turns: Vec<Option<TreeTurn>> = rest
                .take(limit)
                .map(|turn| tree.turn(sql, *turn))
                .collect::<sql::Result<_>>()?;
            Ok(turns.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns the last common turn of the threads of two turns. None if either continues alone for
    /// more than `max` turns.
    pub async fn parting(
        &self,
        left: Option<TurnId>,
        right: Option<TurnId>,
        max: usize,
    ) -> Result<Option<Parting>, ReadError> {
        self.read(move |sql| {
            let at = |turn: Option<TurnId>| turn.map_or(Ok(None), |turn| node(sql, turn));
            let mut a = at(left)?;
            let mut b = at(right)?;
            let mut of_left = Vec::new();
            let mut of_right = Vec::new();
            while a.as_ref().map(|node| node.id) != b.as_ref().map(|node| node.id) {
                let depth = |node: &Option<TurnNode>| node.as_ref().map_or(0, |node| node.depth);
                let (side, gone) = if depth(&a) >= depth(&b) {
                    (&mut a, &mut of_left)
                } else {
                    (&mut b, &mut of_right)
                };
                let Some(here) = side.take() else { break };
                if gone.len() == max {
                    return Ok(None);
                }
                *side = at(here.parent)?;
                let said = messages(sql, &here)?;
                gone.push((here, said));
            }
            of_left.reverse();
            of_right.reverse();
            Ok(Some(Parting {
                common: a.map(|node| node.id),
                left: of_left,
                right: of_right,
            }))
        })
        .await
    }
}

/// A tree of turns as a user sees it.
pub(super) struct VisibleTree {
    /// Every turn of the tree, each after its parent.
    pub(super) order: Vec<TurnId>,
    /// Turns that the user sees.
    pub(super) turns: HashSet<TurnId>,
    labels: HashMap<TurnId, Vec<SessionLabel>>,
    /// The visible sessions in which turns of it were made.
    committed_in: HashSet<SessionId>,
}

impl VisibleTree {
    /// Reads the tree of a turn; none when there is no such turn.
    pub(super) fn read(
        sql: &Sql<'_>,
        clearance: &Clearance,
        agent: Option<AgentId>,
        turn: TurnId,
    ) -> sql::Result<Option<Self>> {
        let Some(TurnId(root)) = root(sql, turn)? else {
            return Ok(None);
        };
        let all = sql.all::<(TurnId, Option<TurnId>, SessionId)>(
            "SELECT id, parent, session FROM turns WHERE root = ?1 ORDER BY depth, id LIMIT ?2",
            args![root, TREE_TURNS_MAX],
        )?;
        let labels = labels_of(sql, root, clearance, agent)?;
        let committed_in = makers_of(sql, root, clearance, agent)?;
        let mut turns: HashSet<TurnId> = labels.keys().copied().collect();
        // A user who sees a turn sees its thread. Children come after their parents, so this goes
        // backwards.
        for (id, parent, session) in all.iter().rev() {
            if turns.contains(id) || committed_in.contains(session) {
                turns.insert(*id);
                turns.extend(*parent);
            }
        }
        Ok(Some(Self {
            order: all.into_iter().map(|(id, ..)| id).collect(),
            turns,
            labels,
            committed_in,
        }))
    }

    /// Returns a session through which one of its turns is seen.
    fn through(&self, sql: &Sql<'_>, turn: TurnId) -> sql::Result<Option<SessionId>> {
        let maker = sql.one::<SessionId>("SELECT session FROM turns WHERE id = ?1", [turn])?;
        let maker = maker.filter(|maker| self.committed_in.contains(maker));
        if maker.is_some() {
            return Ok(maker);
        }
        for label in self.labels.values().filter_map(|labels| labels.first()) {
            if sql.ask(&shown_query(label.id, &turn))?.number()? > 0 {
                return Ok(Some(label.id));
            }
        }
        Ok(None)
    }

    fn turn(&self, sql: &Sql<'_>, id: TurnId) -> sql::Result<Option<TreeTurn>> {
        let text = text!(
            "SELECT ",
            NODE_COLUMNS,
            ", session, time FROM turns WHERE id = ?1"
        );
        let found: Option<(TurnNode, SessionId, Timestamp)> = sql.one(text, [id])?;
        let Some((node, session, time)) = found else {
            return Ok(None);
        };
        let first: Option<Packed<Message>> = sql.one(
            "SELECT message FROM messages WHERE run = ?1 ORDER BY id LIMIT 1",
            [node.run],
        )?;
        let inputs = inputs(sql, node.run)?;
        let labels = self.labels.get(&id).cloned().unwrap_or_default();
        Ok(Some(TreeTurn {
            node,
            session,
            time,
            labels,
            inputs,
            compacts: first
                .as_ref()
                .is_some_and(|first| Mark::of(&first.0).is_some()),
            text: first.map(|first| first.0.text()).unwrap_or_default(),
        }))
    }
}

/// Reads the inputs that a run claimed, from the event of its end. An imported turn has no run.
fn inputs(sql: &Sql<'_>, run: RunId) -> sql::Result<Vec<InputId>> {
    let text = "SELECT kind, payload FROM events WHERE stream = ?1 AND kind = 'run.ended.v1' ORDER \
                BY version DESC LIMIT 1";
    Ok(
        match event(sql, text, [streams::number(sql, Stream::Run(run))?])? {
            Some(Event::RunEnded(ended)) => ended.inputs,
            Some(_) | None => Vec::new(),
        },
    )
}

/// Reads the labels on the turns of a tree from the sessions that a user may see.
fn labels_of(
    sql: &Sql<'_>,
    root: Digest,
    clearance: &Clearance,
    agent: Option<AgentId>,
) -> sql::Result<HashMap<TurnId, Vec<SessionLabel>>> {
    let text = text!(
        "SELECT t.id, ",
        SessionLabel::COLUMNS,
        " FROM turns t CROSS JOIN sessions s ON s.head = t.id JOIN access a ON a.agent = s.agent \
         AND a.user_id = :user_id WHERE t.root = :root AND s.status != 'deleted' AND (a.role != \
         'mentee' OR s.user_id = :user_id) AND (:agent IS NULL OR s.agent = :agent) AND s.agent \
         NOT IN ",
        ids!("hidden"),
        " ORDER BY s.created_at, s.id"
    );
    let params = named![
        root,
        user_id = clearance.user(),
        agent,
        hidden = clearance.hidden()
    ];
    let heads: Vec<(TurnId, SessionLabel)> = sql.all(text, params)?;
    let mut labels: HashMap<TurnId, Vec<SessionLabel>> = HashMap::new();
    for (turn, label) in heads {
        labels.entry(turn).or_default().push(label);
    }
    Ok(labels)
}

/// Reads the sessions that a user may see and in which turns of a tree were made.
fn makers_of(
    sql: &Sql<'_>,
    root: Digest,
    clearance: &Clearance,
    agent: Option<AgentId>,
) -> sql::Result<HashSet<SessionId>> {
    let sessions = sql.all(
        text!(
            "SELECT s.id FROM (SELECT DISTINCT session FROM turns WHERE root = :root) t CROSS JOIN \
         sessions s ON s.id = t.session JOIN access a ON a.agent = s.agent AND a.user_id = \
         :user_id WHERE s.status != 'deleted' AND (a.role != 'mentee' OR s.user_id = :user_id) AND \
         (:agent IS NULL OR s.agent = :agent) AND s.agent NOT IN ",
            ids!("hidden")
        ),
        named![
            root,
            user_id = clearance.user(),
            agent,
            hidden = clearance.hidden()
        ],
    )?;
    Ok(sessions.into_iter().collect())
}

/// The query for whether a session was not deleted and shows a turn: in its thread, or because the
/// turn was made in it. The thread is walked by jumps, in a logarithmic number of steps.
pub(crate) fn shown_query(session: SessionId, turn: &TurnId) -> Query<'_> {
    let text = "WITH RECURSIVE walked (id) AS (SELECT head FROM sessions WHERE id = ?1 UNION ALL \
                SELECT CASE WHEN jumped.depth >= goal.depth THEN here.jump ELSE here.parent END \
                FROM walked CROSS JOIN turns goal ON goal.id = ?2 CROSS JOIN turns here ON here.id \
                = walked.id LEFT JOIN turns jumped ON jumped.id = here.jump WHERE here.depth > \
                goal.depth) SELECT CASE WHEN made.session = s.id THEN 1 ELSE EXISTS (SELECT 1 FROM \
                walked WHERE walked.id = ?2) END FROM turns made CROSS JOIN sessions s WHERE \
                made.id = ?2 AND s.id = ?1 AND s.status != 'deleted'";
    Query::new(text, [Value::id(&session), Value::digest(&turn.0)])
}

/// Returns a turn's messages, as many as it commits to; none in place of a message that no longer
/// exists.
pub(crate) fn messages(sql: &Sql<'_>, node: &TurnNode) -> sql::Result<Vec<Option<Message>>> {
    let there: Vec<Packed<Message>> =
        sql.all("SELECT message FROM messages WHERE run = ?1", [node.run])?;
    let mut there: HashMap<MessageId, Message> = there
        .into_iter()
        .map(|Packed(message)| (message.id, message))
        .collect();
    Ok((node.first_message..)
        .take(node.messages.len())
        .map(|id| there.remove(&id))
        .collect())
}

/// Turns with the objects that they refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnBundle {
    /// Each after its parent.
    pub turns: Vec<TranscriptTurn>,
    /// The bytes of those of their blobs that are stored here.
    pub blobs: BTreeMap<Digest, Vec<u8>>,
}

/// Result of checking turns to be imported against those that are here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// They may be imported. For each, true if it is already stored, exactly as it would be
    /// imported.
    Known(Vec<bool>),
    /// This one is here as another, or its run is.
    Clash(TurnId),
}

impl Store {
    /// Returns the export of the thread that ends in `head`, or of all parts of its tree that a
    /// user sees. None when the export exceeds `bytes_max`.
    pub async fn turn_bundle(
        &self,
        head: TurnId,
        tree_of: Option<Clearance>,
        bytes_max: usize,
    ) -> Result<Option<TurnBundle>, ReadError> {
        self.read(move |sql| {
            let wanted = match tree_of {
                Some(clearance) => match VisibleTree::read(sql, &clearance, None, head)? {
                    Some(tree) => tree
                        .order
                        .iter()
                        .filter(|turn| tree.turns.contains(turn))
                        .copied()
                        .collect(),
                    None => Vec::new(),
                },
                None => thread(sql, head)?,
            };
            let mut turns = Vec::new();
            let mut blobs = BTreeMap::new();
            let mut bytes = 0;
            for id in wanted {
                let Some(turn) = turn(sql, id)? else { continue };
                bytes += turn
                    .messages
                    .iter()
                    .flatten()
                    .map(|message| serde_json::to_vec(message).map_or(0, |text| text.len()))
                    .sum::<usize>();
                for digest in turn.blobs() {
                    if !blobs.contains_key(&digest)
                        && let Some(content) = content(sql, digest)?
                    {
                        bytes += content.len();
                        blobs.insert(digest, content);
                    }
                }
                if bytes > bytes_max {
                    return Ok(None);
                }
                turns.push(turn);
            }
            Ok(Some(TurnBundle { turns, blobs }))
        })
        .await
    }

    /// Checks turns to be imported against those that are here.
    pub async fn meet(&self, turns: Arc<Vec<TranscriptTurn>>) -> Result<Meeting, ReadError> {
        self.read(move |sql| {
            let mut known = Vec::with_capacity(turns.len());
            for turn in turns.iter() {
                let here = node(sql, turn.node.id)?;
                let clashes = match &here {
                    // An importer with less data than is stored cannot know what the turns refer
                    // to.
                    Some(here) => {
                        let stored = messages(sql, here)?.into_iter();
                        let written = stored.map(|message| message.map(Message::as_written));
                        *here != turn.node || !written.eq(turn.messages.iter().cloned())
                    }
                    None => is_run_known(sql, &turn.node)?,
                };
                if clashes {
                    return Ok(Meeting::Clash(turn.node.id));
                }
                known.push(here.is_some());
            }
            Ok(Meeting::Known(known))
        })
        .await
    }
}

/// A run has one turn. Another turn of the same run was made from the same messages, or on a copy
/// of this host.
fn is_run_known(sql: &Sql<'_>, node: &TurnNode) -> sql::Result<bool> {
    let run = node.run;
    Ok(
        sql.exists("SELECT 1 FROM messages WHERE run = ?1 LIMIT 1", [run])?
            || sql.exists("SELECT 1 FROM runs WHERE id = ?1", [run])?,
    )
}

/// The turns of a thread, its first one first.
fn thread(sql: &Sql<'_>, head: TurnId) -> sql::Result<Vec<TurnId>> {
    let mut turns = Vec::new();
    let mut at = Some(head);
    while let Some(turn) = at {
        turns.push(turn);
        at = parent(sql, turn)?;
    }
    turns.reverse();
    Ok(turns)
}

fn turn(sql: &Sql<'_>, id: TurnId) -> sql::Result<Option<TranscriptTurn>> {
    let text = text!("SELECT ", NODE_COLUMNS, ", time FROM turns WHERE id = ?1");
    let Some((node, committed)) = sql.one(text, [id])? else {
        return Ok(None);
    };
    let messages = messages(sql, &node)?;
    Ok(Some(TranscriptTurn {
        node,
        committed,
        messages,
    }))
}
