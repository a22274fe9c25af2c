//! Sessions as labels: their names and the turns that they point to.

use crate::EMPTY_STATE;
use crate::sql::{self, Sql, args, named, to_json};
use domain::digest::Digest;
use domain::event::{
    Event, InputsDropped, QueueConfigured, SessionAttributed, SessionCleared, SessionDeleted,
    SessionPinned, SessionRenamed,
};
use domain::id::SessionId;
use domain::session_label::merge;
use serde_json::{Map, Value};

/// Records a change of a session's labels.
pub(super) fn changed(sql: &Sql<'_>, event: &Event) -> sql::Result<()> {
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

fn renamed(sql: &Sql<'_>, it: &SessionRenamed) -> sql::Result<()> {
    let text = "UPDATE sessions SET name = :name, updated_at = :updated_at WHERE id = :id";
    sql.write(
        text,
        named![id = it.session, name = it.name, updated_at = it.time],
    )
}

/// Records that a session was pinned, or is not any more.
fn pinned(sql: &Sql<'_>, it: &SessionPinned) -> sql::Result<()> {
    let text = "UPDATE sessions SET pinned_at = :pinned_at, updated_at = :updated_at WHERE id = \
                :id";
    sql.write(
        text,
        named![
            id = it.session,
            pinned_at = it.pinned.then_some(it.time),
            updated_at = it.time
        ],
    )
}

/// Keys were merged into its attributes; `null` takes a key away.
fn attributed(sql: &Sql<'_>, it: &SessionAttributed) -> sql::Result<()> {
    let attributes = merge(needs_attributes(sql, it.session)?, &it.attributes);
    let attributes = if attributes.is_empty() {
        None
    } else {
        Some(to_json(&attributes)?)
    };
    sql.write(
        "UPDATE sessions SET attributes = :attributes, updated_at = :updated_at WHERE id = :id",
        named![id = it.session, attributes, updated_at = it.time],
    )
}

/// Reads the attributes into which others are merged.
fn needs_attributes(sql: &Sql<'_>, session: SessionId) -> sql::Result<Map<String, Value>> {
    let text = "SELECT attributes FROM sessions WHERE id = ?1";
    let there = sql.json(text, [session])?;
    Ok(there.unwrap_or_default())
}

/// Points a session to an empty thread again.
fn cleared(sql: &Sql<'_>, it: &SessionCleared) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET head = NULL, head_message = 0, state = :state, revision = :revision, \
         last_snippet = NULL, updated_at = :updated_at WHERE id = :id",
        named![
            id = it.session,
            state = Digest::of(EMPTY_STATE).0,
            revision = it.revision,
            updated_at = it.time
        ],
    )
}

fn deleted(sql: &Sql<'_>, it: &SessionDeleted) -> sql::Result<()> {
    let text = "UPDATE sessions SET status = 'deleted', updated_at = ?2 WHERE id = ?1";
    sql.write(text, args![it.session, it.time])
}

fn configured(sql: &Sql<'_>, it: &QueueConfigured) -> sql::Result<()> {
    let text = "UPDATE sessions SET queue = :queue, updated_at = :updated_at WHERE id = :id";
    sql.write(
        text,
        named![
            id = it.session,
            queue = to_json(&it.queue)?,
            updated_at = it.time
        ],
    )
}

pub(super) fn dropped(sql: &Sql<'_>, it: &InputsDropped) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET overflow = ?2 WHERE id = ?1",
        args![it.session, to_json(&it.overflow)?],
    )
}

/// Clears the drops from a queue after a turn has reported them.
pub(super) fn overflow_reported(sql: &Sql<'_>, session: SessionId) -> sql::Result<()> {
    sql.write(
        "UPDATE sessions SET overflow = NULL WHERE id = ?1",
        [session],
    )
}
