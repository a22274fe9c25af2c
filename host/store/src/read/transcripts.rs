//! Export of sessions to other hosts, and checks of imported turns against those that are here.

use super::blobs::content;
use super::trees::{VisibleTree, messages};
use super::turns::{NODE_COLUMNS, node, parent};
use super::{Clearance, ReadError};
use crate::sql::{self, Sql, text};
use crate::store::Store;
use domain::digest::Digest;
use domain::id::TurnId;
use domain::message::Message;
use domain::transcript::TranscriptTurn;
use domain::turn::TurnNode;
use std::collections::BTreeMap;
use std::sync::Arc;

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
