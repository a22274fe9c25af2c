//! Runs: what was said and done in them, and what they took in. What was imported counts as if it
//! had been said in one.

use super::blobs::named_no_more;
use super::searchable_rows::forget;
use super::streams::note_loss;
use super::{EVENTS_PER_COMMIT_MAX, Tally, erase_event, usage};
use crate::event_row::decode_at;
use crate::projections::{first_again, names_blobs};
use crate::read::dispatches::tree_of;
use crate::sql::{Columns, Sql, int, limit};
use domain::event::Event;
use domain::id::{AgentId, InputId, RunId, SessionId, Stream};
use rusqlite::params;

/// Erases what fits into one transaction of a run, of its events those after this version. Returns
/// the version up to which nothing is left to erase; none when that is all.
pub(super) fn erase(
    sql: &Sql<'_>,
    run: RunId,
    committed: Option<u64>,
    after: u64,
    tally: &mut Tally,
) -> rusqlite::Result<Option<u64>> {
    if let Some(position) = committed {
        forget(sql, position)?;
    }
    let id = run.to_string();
    let stream = format!("run/{id}");
    usage::erase(sql, run, &stream, tally)?;
    tally.erased.messages += sql.execute("DELETE FROM messages WHERE run = ?1", [&id])? as u64;
    // What a tool keeps for others than this session is theirs.
    let events = sql.rows(
        "SELECT version, position, kind, payload FROM events WHERE stream = ?1 AND version > ?2 AND \
         payload IS NOT NULL AND (kind <> 'keyvalue.written.v1' OR json_extract(CAST(payload AS \
         TEXT), '$.place.scope') = 'session') ORDER BY version LIMIT ?3",
        params![stream, int(after), limit(EVENTS_PER_COMMIT_MAX)],
        |row| Ok((row.uint(0)?, row.uint(1)?, decode_at(row, 2)?)),
    )?;
    for (_, position, event) in &events {
        for input in event.iter().flat_map(taken_in) {
            erase_input(sql, input, tally)?;
        }
        erase_event(sql, *position, tally)?;
    }
    if let Some((version, ..)) = events.get(EVENTS_PER_COMMIT_MAX - 1) {
        return Ok(Some(*version));
    }
    finish(sql, &id, &stream, committed.is_some(), tally)?;
    Ok(None)
}

/// Removes the data beside the events of a run.
fn finish(
    sql: &Sql<'_>,
    run: &str,
    stream: &str,
    has_turn: bool,
    tally: &mut Tally,
) -> rusqlite::Result<()> {
    sql.execute(
        "DELETE FROM spawned WHERE by_session = (SELECT session FROM runs WHERE id = ?1) AND ?1 = \
         (SELECT i.by_run FROM sessions s JOIN inputs i ON i.id = s.first_input WHERE s.id = \
         spawned.session)",
        [run],
    )?;
    named_no_more(sql, stream)?;
    for text in [
        "DELETE FROM operations WHERE run = ?1",
        "DELETE FROM tasks WHERE run = ?1",
        "DELETE FROM snapshots WHERE stream = 'run/' || ?1",
    ] {
        sql.execute(text, [run])?;
    }
    // Counted once, also when it is done again after a crash.
    if sql.execute("DELETE FROM runs WHERE id = ?1", [run])? > 0 {
        tally.erased.turns += u64::from(has_turn);
        tally.kept.bucket_writes += sql.number(
            "SELECT count(*) FROM events WHERE stream = ?1 AND payload IS NOT NULL",
            [stream],
        )?;
        handed_on(sql, run)?;
    }
    Ok(())
}

/// Counts the work for an erased run against the tree of the agent that does it, and lets it wait
/// for no room any more. Folding the events again does the same.
fn handed_on(sql: &Sql<'_>, run: &str) -> rusqlite::Result<()> {
    let text = "SELECT i.id, s.agent FROM inputs i JOIN sessions s ON s.id = i.session WHERE \
                i.by_run = ?1";
    for (input, agent) in sql.rows(text, [run], |row| {
        Ok((row.id::<InputId>(0)?, row.id::<AgentId>(1)?))
    })? {
        let tree = tree_of(sql, agent)?;
        sql.execute(
            "UPDATE inputs SET tree = ?2, held = 0 WHERE id = ?1",
            params![input.to_string(), tree.to_string()],
        )?;
        sql.execute(
            "DELETE FROM wakes WHERE subject = ?1 AND kind = 'held'",
            [input.to_string()],
        )?;
    }
    Ok(())
}

/// Returns the inputs that a run took in with an event.
fn taken_in(event: &Event) -> Vec<InputId> {
    match event {
        Event::RunStarted(started) => started.claimed.clone(),
        Event::RunStepped(stepped) => stepped.claimed.clone(),
        _ => Vec::new(),
    }
}

/// An input of a session that was deleted goes with the run that took it in.
fn erase_input(sql: &Sql<'_>, input: InputId, tally: &mut Tally) -> rusqlite::Result<()> {
    let id = input.to_string();
    let text = "SELECT i.position, s.id, s.purged, e.kind, e.payload FROM inputs i JOIN sessions s \
                ON s.id = i.session JOIN events e ON e.position = i.position WHERE i.id = ?1 AND \
                s.status = 'deleted'";
    let found = sql.row(text, [&id], |row| {
        let event = decode_at(row, 3);
        Ok((
            row.uint(0)?,
            row.id::<SessionId>(1)?,
            row.get::<_, bool>(2)?,
            // An event that cannot be read may name some.
            event.map_or(true, |event| event.as_ref().is_some_and(names_blobs)),
        ))
    })?;
    let Some((position, session, purged, named)) = found else {
        return Ok(());
    };
    erase_event(sql, position, tally)?;
    remove_input(sql, &id)?;
    if purged {
        return Ok(());
    }
    let stream = format!("session/{session}");
    if sql.exists(
        "SELECT 1 FROM sessions WHERE id = ?1 AND first_input = ?2",
        params![session.to_string(), id],
    )? {
        // Nothing before it is left.
        let text = "SELECT kind, payload FROM events WHERE stream = ?1 AND version > (SELECT \
                    version FROM events WHERE position = ?2) AND kind = \
                    'session.input.accepted.v1' AND payload IS NOT NULL ORDER BY version LIMIT 1";
        let next = sql.row(text, params![stream, int(position)], |row| {
            decode_at(row, 0)
        })?;
        let first = match next.flatten() {
            Some(Event::InputAccepted(accepted)) => Some(accepted),
            _ => None,
        };
        first_again(sql, session, first.as_ref())?;
    }
    if named {
        note_loss(sql, &stream)?;
    }
    Ok(())
}

/// Removes the data of an input beside its event.
pub(super) fn remove_input(sql: &Sql<'_>, input: &str) -> rusqlite::Result<()> {
    sql.execute("DELETE FROM inputs WHERE id = ?1", [input])?;
    sql.write("DELETE FROM wakes WHERE subject = ?1", [input])
}

/// Erases turns that were imported, with all that came with them. Their places in the tree are kept
/// by an event that came after.
pub(super) fn erase_import(
    sql: &Sql<'_>,
    position: u64,
    tally: &mut Tally,
) -> rusqlite::Result<()> {
    let found = sql
        .row(
            "SELECT kind, payload FROM events WHERE position = ?1",
            [int(position)],
            |row| decode_at(row, 0),
        )?
        .flatten();
    let Some(Event::TurnsImported(imported)) = found else {
        return Ok(());
    };
    forget(sql, position)?;
    for it in &imported.turns {
        tally.erased.messages += sql.execute(
            "DELETE FROM messages WHERE run = ?1",
            [it.turn.run.to_string()],
        )? as u64;
    }
    tally.erased.turns += imported.turns.len() as u64;
    erase_event(sql, position, tally)?;
    note_loss(sql, &Stream::Session(imported.session).to_string())
}
