//! Purge of agents: the events about a session in an agent's own stream, and all other data except
//! its sessions.

use super::blobs::named_no_more;
use super::room::{Room, some_rows};
use super::searchable_rows::forget;
use super::sessions::{REQUESTS_PER_COMMIT_MAX, forget_requests};
use super::streams::note_loss;
use super::{BEHIND_ALL, EVENTS_PER_COMMIT_MAX, Tally, erase_event};
use crate::event_row::StoredEvent;
use crate::sql::{self, Sql, named};
use crate::streams;
use domain::event::Event;
use domain::id::{AgentId, SessionId, Stream};

/// Erases events of an agent's stream about a session, as many as fit into one transaction. Returns
/// whether all are erased. If the session is structured, the agent has to be folded again from the
/// remaining events: its part in the agent's counts and history cannot be subtracted.
pub(super) fn erase_of_session(
    sql: &Sql<'_>,
    agent: AgentId,
    session: SessionId,
    tally: &mut Tally,
) -> sql::Result<bool> {
    let stream = Stream::Agent(agent);
    let text = "SELECT position, bytes, kind, payload FROM events WHERE stream = :stream \
                AND about = :session AND payload IS NOT NULL AND kind IN ('agent.session.started.v1', 'agent.session.completed.v1', \
                'agent.session.terminated.v1', 'agent.session.imported.v1', \
                'agent.execution.suspended.v1', 'agent.execution.resumed.v1', \
                'agent.client.action.requested.v1', 'agent.client.response.received.v1', \
                'agent.client.action.withdrawn.v1', 'agent.note.remembered.v1') ORDER BY position \
                LIMIT :limit";
    let (events, is_all) = some_rows(
        sql,
        text,
        named![
            stream = streams::number(sql, stream)?,
            session = session.to_string(),
            limit = EVENTS_PER_COMMIT_MAX
        ],
        Room::of_commit(EVENTS_PER_COMMIT_MAX),
        |(_, bytes, _): &(u64, u64, StoredEvent)| *bytes,
    )?;
    let mut is_other = false;
    for (position, _, StoredEvent(event)) in &events {
        forget(sql, *position, &mut Room::endless())?;
        erase_event(sql, *position, tally)?;
        let event = event.as_ref();
        is_other |= event.is_some_and(|event| !matches!(event, Event::NoteRemembered(_)));
    }
    // The remaining data of a purged agent are fixed.
    if is_other && !is_purged(sql, agent)? {
        note_loss(sql, Stream::Session(session), stream)?;
    }
    Ok(is_all)
}

/// Returns whether an agent is purged, or about to be.
fn is_purged(sql: &Sql<'_>, agent: AgentId) -> sql::Result<bool> {
    sql.exists("SELECT 1 FROM agents WHERE id = ?1 AND purged", [agent])
}

/// Erases part of an agent's stream, beginning after this version, as much as fits into one
/// transaction. Returns the version up to which all is erased; none when the whole stream is.
pub(super) fn erase(
    sql: &Sql<'_>,
    agent: AgentId,
    after: u64,
    tally: &mut Tally,
) -> sql::Result<Option<u64>> {
    let stream = Stream::Agent(agent);
    let number = streams::number(sql, stream)?;
    let (events, is_all) = some_rows(
        sql,
        "SELECT version, position, bytes FROM events WHERE stream = :stream AND version \
         > :version AND payload IS NOT NULL AND kind NOT IN ('purge.begun.v1', 'purge.done.v1') \
         ORDER BY version LIMIT :limit",
        named![
            stream = number,
            version = after,
            limit = EVENTS_PER_COMMIT_MAX
        ],
        Room::of_commit(EVENTS_PER_COMMIT_MAX),
        |(_, _, bytes): &(u64, u64, u64)| *bytes,
    )?;
    for (_, position, _) in &events {
        forget(sql, *position, &mut Room::endless())?;
        erase_event(sql, *position, tally)?;
    }
    if let Some((version, ..)) = events.last().filter(|_| !is_all) {
        return Ok(Some(*version));
    }
    let requests = forget_requests(sql, &agent.to_string())?;
    tally.erased.requests += requests;
    if requests >= REQUESTS_PER_COMMIT_MAX {
        return Ok(Some(BEHIND_ALL));
    }
    // No event of it is left that could name a blob.
    if !named_no_more(sql, stream)? {
        return Ok(Some(BEHIND_ALL));
    }
    sql.execute("DELETE FROM snapshots WHERE stream = ?1", [number])?;
    Ok(None)
}
