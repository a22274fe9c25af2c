//! Purge of runs: their messages, their work and their inputs. Imported turns count as if a run had
//! made them.

use super::blobs::named_no_more;
use super::room::{Room, some_rows};
use super::run_events::{RunEvents, ToErase};
use super::searchable_rows::forget;
use super::streams::note_loss;
use super::{BEHIND_ALL, ROWS_PER_COMMIT_MAX, Tally, erase_event, usage};
use crate::event_row::{StoredEvent, event};
use crate::projections::{first_again, names_blobs};
use crate::read::queue::tree_of;
use crate::sql::{self, Cells, FromRow, Sql, args};
use crate::streams;
use crate::texts;
use domain::event::Event;
use domain::id::{AgentId, InputId, RunId, SessionId, Stream};

/// Erases part of a run, as much as fits into one transaction: these events and, after the last of
/// them, its other rows. Returns the version up to which all events are erased. That is 0 when only
/// counting is left, and none when all is done.
pub(super) fn erase(
    sql: &Sql<'_>,
    mut events: RunEvents,
    committed: Option<u64>,
    tally: &mut Tally,
) -> sql::Result<Option<u64>> {
    if !events.catch_up(sql)? {
        return Ok(Some(events.after));
    }
    if let Some(meter) = &events.usage {
        usage::erase(sql, events.run, meter, tally)?;
    }
    for part in &events.to_erase {
        match part {
            ToErase::Input(input) => erase_input(sql, events.purge, *input, tally)?,
            ToErase::Event(position) => {
                erase_event(sql, *position, tally)?;
            }
        }
    }
    if let Some(version) = events.goes_on_after() {
        return Ok(Some(version));
    }
    if !erase_beside(sql, events.run, committed, tally)? {
        return Ok(Some(BEHIND_ALL));
    }
    let Some(kept) = events.kept_of_all() else {
        return Ok(Some(0));
    };
    finish(sql, events.run, committed.is_some(), kept, tally)?;
    Ok(None)
}

/// Removes the other rows of a run, as many as fit into one transaction. Returns whether all are
/// removed.
fn erase_beside(
    sql: &Sql<'_>,
    run: RunId,
    committed: Option<u64>,
    tally: &mut Tally,
) -> sql::Result<bool> {
    // The index needs the words of the messages that it loses.
    if let Some(position) = committed
        && !forget(sql, position, &mut Room::of_commit(ROWS_PER_COMMIT_MAX))?
    {
        return Ok(false);
    }
    Ok(erase_messages(sql, run, tally)?
        && erase_tasks(sql, run)?
        && named_no_more(sql, Stream::Run(run))?)
}

/// Removes messages of a run, as many as fit into one transaction. Returns whether that is all.
fn erase_messages(sql: &Sql<'_>, run: RunId, tally: &mut Tally) -> sql::Result<bool> {
    let (messages, is_all) = some_rows(
        sql,
        "SELECT id, bytes FROM messages WHERE run = ?1 LIMIT ?2",
        args![run, ROWS_PER_COMMIT_MAX],
        Room::of_commit(ROWS_PER_COMMIT_MAX),
        |(_, bytes): &(u64, u64)| *bytes,
    )?;
    for (message, _) in &messages {
        texts::remove_message(sql, run, *message)?;
    }
    tally.erased.messages += messages.len() as u64;
    Ok(is_all)
}

/// Removes tasks that a run handed over, as many as fit into one transaction. Returns whether that
/// is all.
fn erase_tasks(sql: &Sql<'_>, run: RunId) -> sql::Result<bool> {
    let tasks = sql.execute(
        "DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE run = ?1 LIMIT ?2)",
        args![run, ROWS_PER_COMMIT_MAX],
    )?;
    Ok(tasks < ROWS_PER_COMMIT_MAX)
}

/// Removes the rest of a run once its events are erased, except for so many writes.
fn finish(
    sql: &Sql<'_>,
    run: RunId,
    has_turn: bool,
    kept: u64,
    tally: &mut Tally,
) -> sql::Result<()> {
    sql.execute(
        "DELETE FROM spawned WHERE session IN (SELECT s.id FROM inputs i CROSS JOIN sessions s ON \
         s.id = i.session WHERE i.by_run = ?1 AND s.first_input = i.id)",
        [run],
    )?;
    for text in [
        "DELETE FROM operations WHERE run = ?1",
        "DELETE FROM snapshots WHERE stream = (SELECT number FROM streams WHERE stream_kind = 'run' AND stream_id = \
         ?1)",
    ] {
        sql.execute(text, [run])?;
    }
    // Counted once, also when it is repeated after a crash.
    if sql.execute("DELETE FROM runs WHERE id = ?1", [run])? > 0 {
        tally.erased.turns += u64::from(has_turn);
        tally.kept.bucket_writes += kept;
        handed_on(sql, run)?;
    }
    Ok(())
}

/// Counts the work for an erased run against the tree of the agent that does it, and lets it wait
/// for no room any more. Folding the events again does the same.
fn handed_on(sql: &Sql<'_>, run: RunId) -> sql::Result<()> {
    let text = "SELECT i.id, s.agent FROM inputs i JOIN sessions s ON s.id = i.session WHERE \
                i.by_run = ?1";
    for (input, agent) in sql.all::<(InputId, AgentId)>(text, [run])? {
        let tree = tree_of(sql, agent)?;
        sql.execute(
            "UPDATE inputs SET tree = ?2, blocked = 0 WHERE id = ?1",
            args![input, tree],
        )?;
        sql.execute(
            "DELETE FROM wakes WHERE subject = ?1 AND kind = 'blocked'",
            [input],
        )?;
    }
    Ok(())
}

/// Returns the bytes of an input's content that [`erase_input`] would erase; none if it is already
/// erased, or its session is not deleted.
pub(super) fn input_bytes(sql: &Sql<'_>, input: InputId) -> sql::Result<Option<u64>> {
    let text = "SELECT e.bytes FROM inputs i JOIN sessions s ON s.id = \
                i.session JOIN events e ON e.position = i.position WHERE i.id = ?1 AND s.status = \
                'deleted'";
    sql.one::<u64>(text, [input])
}

/// The flag whether a stored event names blobs. An event that cannot be read may name some.
struct NamesBlobs(bool);

impl FromRow for NamesBlobs {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        let names = StoredEvent::read(cells).map(|it| it.0.as_ref().is_some_and(names_blobs));
        Ok(Self(names.unwrap_or(true)))
    }
}

/// An input of a session that was deleted goes with the run that took it in.
fn erase_input(sql: &Sql<'_>, purge: Stream, input: InputId, tally: &mut Tally) -> sql::Result<()> {
    let text = "SELECT i.position, s.id, s.purged, e.kind, e.payload FROM inputs i JOIN sessions s \
                ON s.id = i.session JOIN events e ON e.position = i.position WHERE i.id = ?1 AND \
                s.status = 'deleted'";
    let found: Option<(u64, SessionId, bool, NamesBlobs)> = sql.one(text, [input])?;
    let Some((position, session, purged, NamesBlobs(named))) = found else {
        return Ok(());
    };
    erase_event(sql, position, tally)?;
    remove_input(sql, input)?;
    if purged {
        return Ok(());
    }
    let stream = Stream::Session(session);
    if sql.exists(
        "SELECT 1 FROM sessions WHERE id = ?1 AND first_input = ?2",
        args![session, input],
    )? {
        // No event before it is left.
        let text = "SELECT kind, payload FROM events WHERE stream = ?1 AND version > (SELECT \
                    version FROM events WHERE position = ?2) AND kind = \
                    'session.input.accepted.v1' AND payload IS NOT NULL ORDER BY version LIMIT 1";
        let first = match event(sql, text, args![streams::number(sql, stream)?, position])? {
            Some(Event::InputAccepted(accepted)) => Some(accepted),
            _ => None,
        };
        first_again(sql, session, first.as_ref())?;
    }
    if named {
        note_loss(sql, purge, stream)?;
    }
    Ok(())
}

/// Removes the rows of an input, except its event.
pub(super) fn remove_input(sql: &Sql<'_>, input: InputId) -> sql::Result<()> {
    sql.execute("DELETE FROM inputs WHERE id = ?1", [input])?;
    sql.write("DELETE FROM wakes WHERE subject = ?1", [input])
}

/// Erases turns that were imported in one commit, with all their data, in one transaction. One
/// event has their content, and a later one keeps their places in the tree.
pub(super) fn erase_import(
    sql: &Sql<'_>,
    purge: Stream,
    position: u64,
    tally: &mut Tally,
) -> sql::Result<()> {
    let text = "SELECT kind, payload FROM events WHERE position = ?1";
    let found = event(sql, text, [position])?;
    let Some(Event::TurnsImported(imported)) = found else {
        return Ok(());
    };
    forget(sql, position, &mut Room::endless())?;
    for it in &imported.turns {
        let messages = "SELECT id FROM messages WHERE run = ?1";
        for message in sql.all::<u64>(messages, [it.turn.run])? {
            texts::remove_message(sql, it.turn.run, message)?;
            tally.erased.messages += 1;
        }
    }
    tally.erased.turns += imported.turns.len() as u64;
    erase_event(sql, position, tally)?;
    note_loss(sql, purge, Stream::Session(imported.session))
}
