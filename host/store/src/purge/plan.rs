//! Plan of a session's purge: the data that it removes, and the data that stay because others refer
//! to them.

use super::{PurgeItem, Store};
use crate::event_row::StoredEvent;
use crate::read::{ReadError, turns};
use crate::sql::{self, Sql, args, row, text};
use crate::streams;
use domain::event::{Event, ImportedTurn, TurnsImported};
use domain::id::{AgentId, RunId, SessionId, Stream, TurnId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct PurgePlan {
    /// Chunks to erase, in this order.
    pub items: Vec<PurgeItem>,
    /// Events that have to replace imports first, so that their turns keep their places. Imports
    /// that are already replaced are not among them.
    pub places: Vec<TurnsImported>,
    /// Turns that stay.
    pub kept_turns: u64,
}

row! {
    /// A turn that a session made or points to.
    #[derive(Debug, Clone)]
    struct Candidate {
        run: RunId,
        made_in: Option<SessionId> = "session",
    }
}

impl Store {
    /// Returns the plan for purging a session in the current state: of a deleted session, with its
    /// agent.
    pub async fn purge_plan(
        &self,
        agent: AgentId,
        session: SessionId,
    ) -> Result<PurgePlan, ReadError> {
        self.read(move |sql| plan(sql, agent, session)).await
    }

    /// Returns sessions of an agent, deleted or not, whose purge was not begun, at most `limit`.
    pub async fn unpurged_sessions(
        &self,
        agent: AgentId,
        limit: usize,
    ) -> Result<Vec<SessionId>, ReadError> {
        self.read(move |sql| {
            let text =
                "SELECT id FROM sessions WHERE agent = ?1 AND NOT purged ORDER BY id LIMIT ?2";
            sql.all(text, args![agent, limit])
        })
        .await
    }
}

fn plan(sql: &Sql<'_>, agent: AgentId, session: SessionId) -> sql::Result<PurgePlan> {
    let candidates = candidates(sql, session)?;
    let shown = shown_elsewhere(sql, &candidates)?;
    let mut erased: HashMap<TurnId, Candidate> = HashMap::new();
    let mut living: HashMap<SessionId, bool> = HashMap::new();
    for (turn, candidate) in &candidates {
        let mut made_by_others = false;
        if let Some(maker) = candidate.made_in {
            made_by_others = match living.get(&maker) {
                Some(is_living) => *is_living,
                None => {
                    let is_living = is_living(sql, maker)?;
                    living.insert(maker, is_living);
                    is_living
                }
            };
        }
        if !shown.contains(turn) && !made_by_others {
            erased.insert(*turn, candidate.clone());
        }
    }
    let makers: BTreeSet<SessionId> = erased
        .values()
        .filter_map(|turn| turn.made_in)
        .chain([session])
        .collect();
    let mut places = Vec::new();
    let mut imports = Vec::new();
    let mut imported_turns = HashSet::new();
    for maker in &makers {
        let stream = streams::number(sql, Stream::Session(*maker))?;
        for (position, imported) in imports_of(sql, stream)? {
            // The turns of one event are erased together or not at all.
            let is_erased = |it: &ImportedTurn| erased.contains_key(&it.turn.id);
            if imported.turns.iter().all(is_erased) {
                if !has_place(sql, stream, position)? {
                    places.push(without_words(&imported, position));
                }
                imports.push(PurgeItem::Import { position });
                imported_turns.extend(imported.turns.iter().map(|it| it.turn.id));
            }
            for it in &imported.turns {
                erased.remove(&it.turn.id);
            }
        }
    }
    let kept_turns = candidates
        .keys()
        .filter(|turn| !erased.contains_key(turn) && !imported_turns.contains(turn))
        .count() as u64;
    // Trigger events and inbound messages are found through the session's inputs, so they come
    // first.
    let mut items = vec![PurgeItem::Outside(session)];
    items.extend(runs(sql, session, &makers, &erased, &candidates)?);
    items.extend(imports);
    items.extend([
        PurgeItem::OfAgent { agent, session },
        PurgeItem::SessionBuckets(session),
        PurgeItem::Session(session),
        PurgeItem::Snippets(session),
        PurgeItem::Streams,
        PurgeItem::Blobs,
    ]);
    Ok(PurgePlan {
        items,
        places,
        kept_turns,
    })
}

/// The turns that were made in a session, and those of its thread.
fn candidates(sql: &Sql<'_>, session: SessionId) -> sql::Result<HashMap<TurnId, Candidate>> {
    let text = text!(
        "SELECT id, ",
        Candidate::COLUMNS,
        ", parent FROM turns WHERE session = ?1"
    );
    let made: Vec<(TurnId, Candidate, Option<TurnId>)> = sql.all(text, [session])?;
    let mut all: HashMap<TurnId, Candidate> = made
        .into_iter()
        .map(|(turn, candidate, _)| (turn, candidate))
        .collect();
    let head = sql.one::<Option<TurnId>>("SELECT head FROM sessions WHERE id = ?1", [session])?;
    let mut at = head.flatten();
    while let Some(turn) = at {
        let text = text!(
            "SELECT id, ",
            Candidate::COLUMNS,
            ", parent FROM turns WHERE id = ?1"
        );
        let found = sql.one(text, [turn])?;
        let Some((turn, candidate, parent)) = found else {
            break;
        };
        all.insert(turn, candidate);
        at = parent;
    }
    Ok(all)
}

/// Returns the turns in the threads of sessions that were not deleted, limited to turns of the same
/// trees.
fn shown_elsewhere(
    sql: &Sql<'_>,
    candidates: &HashMap<TurnId, Candidate>,
) -> sql::Result<HashSet<TurnId>> {
    let mut roots = BTreeSet::new();
    for turn in candidates.keys() {
        roots.extend(turns::root(sql, *turn)?);
    }
    let mut shown = HashSet::new();
    for root in roots {
        let heads = "SELECT t.id FROM turns t CROSS JOIN sessions s ON s.head = t.id WHERE t.root \
                     = ?1 AND s.status <> 'deleted'";
        for head in sql.all::<TurnId>(heads, [root])? {
            let mut at = Some(head);
            while let Some(turn) = at.filter(|turn| shown.insert(*turn)) {
                at = turns::parent(sql, turn)?;
            }
        }
    }
    Ok(shown)
}

fn is_living(sql: &Sql<'_>, session: SessionId) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM sessions WHERE id = ?1 AND status <> 'deleted'",
        [session],
    )
}

/// Returns the imports of a session that are still there, with their positions.
fn imports_of(sql: &Sql<'_>, stream: Option<i64>) -> sql::Result<Vec<(u64, TurnsImported)>> {
    let text = "SELECT position, kind, payload FROM events WHERE stream = ?1 AND kind = \
                'session.turns.imported.v1' AND payload IS NOT NULL ORDER BY version";
    let found: Vec<(u64, StoredEvent)> = sql.all(text, [stream])?;
    Ok(found
        .into_iter()
        .filter_map(|(position, StoredEvent(event))| match event {
            Some(Event::TurnsImported(imported)) if imported.erased.is_none() => {
                Some((position, imported))
            }
            _ => None,
        })
        .collect())
}

fn has_place(sql: &Sql<'_>, stream: Option<i64>, position: u64) -> sql::Result<bool> {
    sql.exists(
        "SELECT 1 FROM events WHERE stream = ?1 AND kind = 'session.turns.imported.v1' AND payload \
         IS NOT NULL AND about = ?2",
        args![stream, position.to_string()],
    )
}

fn without_words(imported: &TurnsImported, position: u64) -> TurnsImported {
    let bare = |it: &ImportedTurn| ImportedTurn {
        turn: it.turn.clone(),
        committed: it.committed,
        messages: vec![None; it.messages.len()],
    };
    TurnsImported {
        turns: imported.turns.iter().map(bare).collect(),
        erased: Some(position),
        ..imported.clone()
    }
}

/// Returns the runs to erase: those of the turns, and those of the session that ended without a
/// turn.
fn runs(
    sql: &Sql<'_>,
    session: SessionId,
    makers: &BTreeSet<SessionId>,
    erased: &HashMap<TurnId, Candidate>,
    candidates: &HashMap<TurnId, Candidate>,
) -> sql::Result<Vec<PurgeItem>> {
    let mut committed: HashMap<RunId, u64> = HashMap::new();
    for maker in makers {
        let text = "SELECT position, kind, payload FROM events WHERE stream = ?1 AND kind = \
                    'session.turn.committed.v1' AND payload IS NOT NULL";
        let stream = streams::number(sql, Stream::Session(*maker))?;
        let found = sql.all::<(u64, StoredEvent)>(text, [stream])?;
        committed.extend(
            found
                .into_iter()
                .filter_map(|(position, event)| match event.0 {
                    Some(Event::TurnCommitted(it)) => Some((it.turn.run, position)),
                    _ => None,
                }),
        );
    }
    let mut runs: BTreeMap<RunId, Option<u64>> = erased
        .values()
        .map(|turn| (turn.run, committed.get(&turn.run).copied()))
        .collect();
    let kept: HashSet<RunId> = candidates
        .iter()
        .filter(|(turn, _)| !erased.contains_key(turn))
        .map(|(_, candidate)| candidate.run)
        .collect();
    for run in sql.all::<RunId>("SELECT id FROM runs WHERE session = ?1", [session])? {
        if !kept.contains(&run) {
            runs.entry(run)
                .or_insert_with(|| committed.get(&run).copied());
        }
    }
    Ok(runs
        .into_iter()
        .map(|(run, committed)| PurgeItem::Run { run, committed })
        .collect())
}
