//! Occasions of triggers: how far each has come, and the history.

use crate::sql::{Columns, Sql, int, limit};
use domain::event::{
    OccasionAccepted, OccasionFailed, OccasionsSkipped, PostedMessage, TriggerFired, TriggerPosted,
};
use domain::id::OccasionId;
use domain::trigger::TriggerName;
use rusqlite::params;
use uuid::Uuid;

/// The occasion of a firing that comes of none: a purge leaves it, so that the trigger keeps what
/// it kept.
pub(crate) const NO_OCCASION: OccasionId = OccasionId(Uuid::nil());

pub(super) fn accepted(
    sql: &Sql<'_>,
    it: &OccasionAccepted,
    position: u64,
) -> rusqlite::Result<()> {
    sql.write(
        "INSERT INTO occasions (position, id, trigger_name, state, is_first, next_try) VALUES (?1, \
         ?2, ?3, 'waiting', NOT EXISTS (SELECT 1 FROM occasions WHERE trigger_name = ?3 AND state \
         IN ('waiting', 'fired')), ?4)",
        params![
            int(position),
            it.occasion.to_string(),
            it.name.as_str(),
            int(it.time.0)
        ],
    )
}

/// Occasions were passed over: a line of the history.
pub(super) fn skipped(sql: &Sql<'_>, it: &OccasionsSkipped, position: u64) -> rusqlite::Result<()> {
    if it.count == 0 {
        return Ok(());
    }
    sql.write(
        "INSERT INTO occasions (position, trigger_name, state, next_try) VALUES (?1, ?2, \
         'skipped', ?3)",
        params![int(position), it.name.as_str(), int(it.due.0)],
    )
}

/// The trigger was fired. Without messages that is all.
pub(super) fn fired(sql: &Sql<'_>, it: &TriggerFired, position: u64) -> rusqlite::Result<()> {
    let state = match (&it.rejected, it.messages.is_empty()) {
        (Some(_), _) => "rejected",
        (None, true) => "done",
        (None, false) => "fired",
    };
    sql.execute(
        "UPDATE occasions SET state = ?2, is_first = is_first AND ?2 = 'fired', attempts = 0, \
         next_try = ?3, fired = ?4, fired_at = ?3, messages = ?5 WHERE id = ?1",
        params![
            it.occasion.to_string(),
            state,
            int(it.time.0),
            int(position),
            limit(it.messages.len()),
        ],
    )?;
    find_first(sql, it.name.as_str())
}

pub(super) fn failed(sql: &Sql<'_>, it: &OccasionFailed, position: u64) -> rusqlite::Result<()> {
    sql.execute(
        "UPDATE occasions SET state = iif(?4 IS NULL, 'given_up', state), is_first = is_first AND \
         ?4 IS NOT NULL, attempts = ?2, failed = ?3, next_try = coalesce(?4, next_try) WHERE id = \
         ?1",
        params![
            it.occasion.to_string(),
            it.attempt,
            int(position),
            it.retry_at.map(|retry_at| int(retry_at.0)),
        ],
    )?;
    find_first(sql, it.name.as_str())
}

/// The messages were handed over.
pub(super) fn posted(sql: &Sql<'_>, it: &TriggerPosted, position: u64) -> rusqlite::Result<()> {
    let id = it.occasion.to_string();
    sql.execute(
        "UPDATE occasions SET state = 'done', is_first = 0, posted = ?2 WHERE id = ?1",
        params![id, int(position)],
    )?;
    for result in &it.results {
        let PostedMessage::Accepted { session, .. } = result else {
            continue;
        };
        sql.execute(
            "INSERT INTO occasion_sessions (session, occasion) VALUES (?1, ?2) ON CONFLICT DO \
             NOTHING",
            [&session.to_string(), &id],
        )?;
    }
    find_first(sql, it.name.as_str())
}

/// A turn that the occasion began does not come to an end.
pub(super) fn stuck(sql: &Sql<'_>, occasion: OccasionId) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE occasions SET stuck = 1 WHERE id = ?1",
        [occasion.to_string()],
    )
}

/// Nothing comes of a trigger's open occasions.
pub(super) fn given_up(sql: &Sql<'_>, name: &TriggerName) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE occasions SET state = 'given_up', is_first = 0 WHERE trigger_name = ?1 AND state \
         IN ('waiting', 'fired')",
        [name.as_str()],
    )
}

/// Marks the oldest open occasion of a trigger as the first. It stays that until it is open no
/// more.
pub(crate) fn find_first(sql: &Sql<'_>, name: &str) -> rusqlite::Result<()> {
    match needs_oldest(sql, name)? {
        Some(Oldest {
            position,
            is_first: false,
        }) => sql.write(
            "UPDATE occasions SET is_first = 1 WHERE position = ?1",
            [int(position)],
        ),
        Some(_) | None => Ok(()),
    }
}

/// The oldest open occasion of a trigger.
struct Oldest {
    position: u64,
    is_first: bool,
}

fn needs_oldest(sql: &Sql<'_>, name: &str) -> rusqlite::Result<Option<Oldest>> {
    sql.row(
        "SELECT position, is_first FROM occasions WHERE trigger_name = ?1 AND state IN ('waiting', \
         'fired') ORDER BY position LIMIT 1",
        [name],
        |row| {
            Ok(Oldest {
                position: row.uint(0)?,
                is_first: row.get(1)?,
            })
        },
    )
}
