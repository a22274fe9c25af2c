//! Sessions as labels: how they are called and what they point to.

use crate::EMPTY_STATE;
use crate::sql::{Columns, Sql, int, to_json};
use domain::digest::Digest;
use domain::event::{
    Event, InputsDropped, QueueConfigured, SessionAttributed, SessionCleared, SessionDeleted,
    SessionPinned, SessionRenamed,
};
use domain::id::SessionId;
use domain::session_label::merge;
use rusqlite::params;
use serde_json::{Map, Value};

/// Something was said of a session.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> rusqlite::Result<()> {
    match event {
        Event::SessionRenamed(it) => renamed(sql, it),
        Event::SessionPinned(it) => pinned(sql, it),
        Event::SessionAttributed(it) => attributed(sql, it),
        Event::SessionCleared(it) => cleared(sql, it),
        Event::SessionDeleted(it) => deleted(sql, it),
        Event::QueueConfigured(it) => configured(sql, it),
        // The others have projections of their own.
        _ => Ok(()),
    }
}

fn renamed(sql: &Sql<'_>, it: &SessionRenamed) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET name = ?2, updated_at = ?3 WHERE id = ?1";
    sql.write(
        text,
        params![it.session.to_string(), it.name, int(it.time.0)],
    )
}

/// Records that a session was pinned, or is not any more.
fn pinned(sql: &Sql<'_>, it: &SessionPinned) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET pinned_at = ?2, updated_at = ?3 WHERE id = ?1";
    sql.write(
        text,
        params![
            it.session.to_string(),
            it.pinned.then_some(int(it.time.0)),
            int(it.time.0)
        ],
    )
}

/// Keys were merged into its attributes; `null` takes a key away.
fn attributed(sql: &Sql<'_>, it: &SessionAttributed) -> rusqlite::Result<()> {
    let attributes = merge(needs_attributes(sql, it.session)?, &it.attributes);
    let attributes = if attributes.is_empty() {
        None
    } else {
        Some(to_json(&attributes)?)
    };
    sql.write(
        "UPDATE sessions SET attributes = ?2, updated_at = ?3 WHERE id = ?1",
        params![it.session.to_string(), attributes, int(it.time.0)],
    )
}

/// Reads the attributes into which others are merged.
fn needs_attributes(sql: &Sql<'_>, session: SessionId) -> rusqlite::Result<Map<String, Value>> {
    let text = "SELECT attributes FROM sessions WHERE id = ?1";
    let there = sql.row(text, [session.to_string()], |row| row.json_opt(0))?;
    Ok(there.flatten().unwrap_or_default())
}

/// Points a session to an empty thread again.
fn cleared(sql: &Sql<'_>, it: &SessionCleared) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET head = NULL, head_message = 0, state = ?2, revision = ?3, \
         last_snippet = NULL, updated_at = ?4 WHERE id = ?1",
        params![
            it.session.to_string(),
            Digest::of(EMPTY_STATE).0,
            int(it.revision),
            int(it.time.0)
        ],
    )
}

fn deleted(sql: &Sql<'_>, it: &SessionDeleted) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET status = 'deleted', updated_at = ?2 WHERE id = ?1";
    sql.write(text, params![it.session.to_string(), int(it.time.0)])
}

fn configured(sql: &Sql<'_>, it: &QueueConfigured) -> rusqlite::Result<()> {
    let text = "UPDATE sessions SET queue = ?2, updated_at = ?3 WHERE id = ?1";
    sql.write(
        text,
        params![it.session.to_string(), to_json(&it.queue)?, int(it.time.0)],
    )
}

pub(super) fn dropped(sql: &Sql<'_>, it: &InputsDropped) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET overflow = ?2 WHERE id = ?1",
        params![it.session.to_string(), to_json(&it.overflow)?],
    )
}

/// Clears the drops from a queue after a turn has reported them.
pub(super) fn overflow_reported(sql: &Sql<'_>, session: SessionId) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE sessions SET overflow = NULL WHERE id = ?1",
        [session.to_string()],
    )
}
