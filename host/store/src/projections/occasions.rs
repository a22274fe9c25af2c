//! Occasions of triggers: how far each has come, and the history.

use crate::sql::{self, Sql, args, insert, named, row, select};
use domain::event::{
    OccasionAccepted, OccasionFailed, OccasionsSkipped, PostedMessage, TriggerFired, TriggerPosted,
};
use domain::id::OccasionId;
use domain::trigger::TriggerName;
use uuid::Uuid;

/// The occasion of a firing that comes of none: a purge leaves it, so that the trigger keeps what
/// it kept.
pub(crate) const NO_OCCASION: OccasionId = OccasionId(Uuid::nil());

pub(super) fn accepted(sql: &Sql<'_>, it: &OccasionAccepted, position: u64) -> sql::Result<()> {
    sql.write(
        "INSERT INTO occasions (position, id, trigger_name, state, is_first, next_try) VALUES \
         (:position, :occasion, :trigger_name, 'waiting', NOT EXISTS (SELECT 1 FROM occasions \
         WHERE trigger_name = :trigger_name AND state IN ('waiting', 'fired')), :time)",
        named![
            position,
            occasion = it.occasion,
            trigger_name = it.name,
            time = it.time
        ],
    )
}

/// Occasions were passed over: a line of the history.
pub(super) fn skipped(sql: &Sql<'_>, it: &OccasionsSkipped, position: u64) -> sql::Result<()> {
    if it.count == 0 {
        return Ok(());
    }
    insert!(
        sql,
        occasions {
            position,
            trigger_name: it.name,
            state: "skipped",
            next_try: it.due
        }
    )
}

/// The trigger was fired. Without messages that is all.
pub(super) fn fired(sql: &Sql<'_>, it: &TriggerFired, position: u64) -> sql::Result<()> {
    let state = match (&it.rejected, it.messages.is_empty()) {
        (Some(_), _) => "rejected",
        (None, true) => "done",
        (None, false) => "fired",
    };
    sql.execute(
        "UPDATE occasions SET state = :state, is_first = is_first AND :state = 'fired', attempts = \
         0, next_try = :next_try, fired = :fired, fired_at = :next_try, messages = :messages WHERE \
         id = :id",
        named![
            id = it.occasion,
            state,
            next_try = it.time,
            fired = position,
            messages = it.messages.len()
        ],
    )?;
    find_first(sql, it.name.as_str())
}

pub(super) fn failed(sql: &Sql<'_>, it: &OccasionFailed, position: u64) -> sql::Result<()> {
    sql.execute(
        "UPDATE occasions SET state = CASE WHEN :retry_at IS NULL THEN 'given_up' ELSE state END, \
         is_first = is_first AND :retry_at IS NOT NULL, attempts = :attempts, failed = :failed, \
         next_try = coalesce(:retry_at, next_try) WHERE id = :id",
        named![
            id = it.occasion,
            attempts = it.attempt,
            failed = position,
            retry_at = it.retry_at
        ],
    )?;
    find_first(sql, it.name.as_str())
}

/// The messages were handed over.
pub(super) fn posted(sql: &Sql<'_>, it: &TriggerPosted, position: u64) -> sql::Result<()> {
    let id = it.occasion;
    sql.execute(
        "UPDATE occasions SET state = 'done', is_first = 0, posted = ?2 WHERE id = ?1",
        args![id, position],
    )?;
    for result in &it.results {
        let PostedMessage::Accepted { session, .. } = result else {
            continue;
        };
        insert!(
            sql,
            occasion_sessions {
                session,
                occasion: id
            },
            "ON CONFLICT DO NOTHING"
        )?;
    }
    find_first(sql, it.name.as_str())
}

/// A turn that the occasion began does not come to an end.
pub(super) fn stuck(sql: &Sql<'_>, occasion: OccasionId) -> sql::Result<()> {
    sql.write("UPDATE occasions SET stuck = 1 WHERE id = ?1", [occasion])
}

/// Nothing comes of a trigger's open occasions.
pub(super) fn given_up(sql: &Sql<'_>, name: &TriggerName) -> sql::Result<()> {
    sql.write(
        "UPDATE occasions SET state = 'given_up', is_first = 0 WHERE trigger_name = ?1 AND state \
         IN ('waiting', 'fired')",
        [name],
    )
}

/// Marks the oldest open occasion of a trigger as the first. It stays that until it is open no
/// more.
pub(crate) fn find_first(sql: &Sql<'_>, name: &str) -> sql::Result<()> {
    match needs_oldest(sql, name)? {
        Some(Oldest {
            position,
            is_first: false,
        }) => sql.write(
            "UPDATE occasions SET is_first = 1 WHERE position = ?1",
            [position],
        ),
        Some(_) | None => Ok(()),
    }
}

row! {
    /// The oldest open occasion of a trigger.
    struct Oldest from "occasions" {
        position: u64,
        is_first: bool,
    }
}

fn needs_oldest(sql: &Sql<'_>, name: &str) -> sql::Result<Option<Oldest>> {
    sql.one(
        select!(
            Oldest,
            "WHERE trigger_name = ?1 AND state IN ('waiting', 'fired') ORDER BY position LIMIT 1"
        ),
        [name],
    )
}
