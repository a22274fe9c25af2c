//! Purge of agents: the events about a session in an agent's own stream, and all else beside its
//! sessions.

use super::blobs::named_no_more;
use super::buckets::erase_entries;
use super::searchable_rows::forget;
use super::sessions::{REQUESTS_PER_COMMIT_MAX, forget_requests};
use super::streams::note_loss;
use super::{BEHIND_ALL, EVENTS_PER_COMMIT_MAX, Store, Tally, erase_event};
use crate::event_row::decode_at;
use crate::read::ReadError;
use crate::sql::{Columns, Sql, int, limit};
use domain::event::Event;
use domain::grant::BucketScope;
use domain::id::{AgentId, SessionId};
use rusqlite::params;

/// Events of an agent that a reader looks at in one go.
const EVENTS_SEEN: usize = 4_096;

/// Erases events of an agent's stream about a session, as many as fit into one transaction. Returns
/// whether that is all. If the session is a structured one, the agent is to be folded again from
/// what is left: its places in the agent's counts and history cannot be taken back otherwise.
pub(super) fn erase_of_session(
    sql: &Sql<'_>,
    agent: AgentId,
    session: SessionId,
    tally: &mut Tally,
) -> rusqlite::Result<bool> {
    let stream = format!("agent/{agent}");
    // Word for word as in the index.
    let text = "SELECT position, kind, payload FROM events WHERE stream = ?1 AND \
                coalesce(json_extract(CAST(payload AS TEXT), '$.session_id'), \
                json_extract(CAST(payload AS TEXT), '$.session.session_id'), \
                json_extract(CAST(payload AS TEXT), '$.session')) = ?2 AND payload IS NOT NULL AND \
                kind IN ('agent.session.started.v1', 'agent.session.completed.v1', \
                'agent.session.terminated.v1', 'agent.session.imported.v1', \
                'agent.execution.suspended.v1', 'agent.execution.resumed.v1', \
                'agent.client.action.requested.v1', 'agent.client.response.received.v1', \
                'agent.client.action.withdrawn.v1', 'agent.note.remembered.v1') ORDER BY position \
                LIMIT ?3";
    let read = |row: &rusqlite::Row<'_>| Ok((row.uint(0)?, decode_at(row, 1)?));
    let events = sql.rows(
        text,
        params![stream, session.to_string(), limit(EVENTS_PER_COMMIT_MAX)],
        read,
    )?;
    let mut is_other = false;
    for (position, event) in &events {
        forget(sql, *position, usize::MAX)?;
        erase_event(sql, *position, tally)?;
        let event = event.as_ref();
        is_other |= event.is_some_and(|event| !matches!(event, Event::NoteRemembered(_)));
    }
    // What is left of an agent that is purged itself is known.
    if is_other && !is_purged(sql, agent)? {
        note_loss(sql, &stream)?;
    }
    Ok(events.len() < EVENTS_PER_COMMIT_MAX)
}

/// Returns whether an agent is purged, or about to be.
fn is_purged(sql: &Sql<'_>, agent: AgentId) -> rusqlite::Result<bool> {
    sql.exists(
        "SELECT 1 FROM agents WHERE id = ?1 AND purged",
        [agent.to_string()],
    )
}

/// Writes of tools to the buckets of an agent, as many as one transaction erases.
pub(super) struct Writes {
    agent: AgentId,
    positions: Vec<u64>,
    /// The position up to which the agent's events were looked at.
    seen: u64,
    /// True if there were no further events.
    is_all: bool,
}

impl Store {
    /// Finds the writes after this position. All events of the agent have to be looked at, so a
    /// reader does that, page by page.
    pub(super) async fn bucket_writes(
        &self,
        agent: AgentId,
        after: u64,
    ) -> Result<Writes, ReadError> {
        let mut writes = Writes {
            agent,
            positions: Vec::new(),
            seen: after,
            is_all: false,
        };
        while !writes.is_all && writes.positions.len() < EVENTS_PER_COMMIT_MAX {
            let page = self.read(move |sql| {
                writes.read_page(sql, EVENTS_SEEN)?;
                Ok(writes)
            });
            writes = page.await?;
        }
        Ok(writes)
    }
}

impl Writes {
    /// Goes on through at most so many events.
    fn read_page(&mut self, sql: &Sql<'_>, events_max: usize) -> rusqlite::Result<()> {
        let page = sql.rows(
            "SELECT position, iif(kind = 'keyvalue.written.v1', json_extract(CAST(payload AS TEXT), \
             '$.place.scope') IS 'agent' AND json_extract(CAST(payload AS TEXT), '$.place.of') IS \
             ?1, 0) FROM events WHERE agent = ?1 AND position > ?2 ORDER BY position LIMIT ?3",
            params![self.agent.to_string(), int(self.seen), limit(events_max)],
            |row| Ok((row.uint(0)?, row.get::<_, bool>(1)?)),
        )?;
        self.is_all = page.len() < events_max;
        for (position, is_write) in page {
            self.seen = position;
            if is_write {
                self.positions.push(position);
            }
            if self.positions.len() == EVENTS_PER_COMMIT_MAX {
                self.is_all = false;
                break;
            }
        }
        Ok(())
    }
}

/// Erases what tools keep for an agent: these writes to its buckets and, after the last of them,
/// what the buckets hold, as much as fits. Returns the position of the last event that was looked
/// at; none when that is all.
pub(super) fn erase_buckets(
    sql: &Sql<'_>,
    mut writes: Writes,
    tally: &mut Tally,
) -> rusqlite::Result<Option<u64>> {
    if writes.is_all {
        // Whatever came since a reader looked.
        writes.read_page(sql, EVENTS_PER_COMMIT_MAX)?;
    }
    for position in &writes.positions {
        erase_event(sql, *position, tally)?;
    }
    if !writes.is_all {
        return Ok(Some(writes.seen));
    }
    let agent = writes.agent.to_string();
    let is_done = erase_entries(sql, BucketScope::Agent, &agent, tally)?;
    Ok((!is_done).then_some(writes.seen))
}

/// Erases what fits into one transaction of an agent's stream, of its events those after this
/// version. Returns the version up to which nothing is left to erase; none when that is all.
pub(super) fn erase(
    sql: &Sql<'_>,
    agent: AgentId,
    after: u64,
    tally: &mut Tally,
) -> rusqlite::Result<Option<u64>> {
    let stream = format!("agent/{agent}");
    let events = sql.rows(
        "SELECT version, position FROM events WHERE stream = ?1 AND version > ?2 AND payload IS NOT \
         NULL AND kind NOT IN ('purge.begun.v1', 'purge.done.v1') ORDER BY version LIMIT ?3",
        params![stream, int(after), limit(EVENTS_PER_COMMIT_MAX)],
        |row| Ok((row.uint(0)?, row.uint(1)?)),
    )?;
    for (_, position) in &events {
        forget(sql, *position, usize::MAX)?;
        erase_event(sql, *position, tally)?;
    }
    if let Some((version, _)) = events.get(EVENTS_PER_COMMIT_MAX - 1) {
        return Ok(Some(*version));
    }
    let requests = forget_requests(sql, &agent.to_string())?;
    tally.erased.requests += requests;
    if requests >= REQUESTS_PER_COMMIT_MAX {
        return Ok(Some(BEHIND_ALL));
    }
    // Nothing of it is left that could name a blob.
    if !named_no_more(sql, &stream)? {
        return Ok(Some(BEHIND_ALL));
    }
    sql.execute("DELETE FROM snapshots WHERE stream = ?1", [&stream])?;
    Ok(None)
}
