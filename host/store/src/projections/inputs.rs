//! The ingress: inputs from acceptance until a run has consumed them.

use crate::sql::{Columns, Sql, int, to_json};
use domain::event::{InputAccepted, Source};
use domain::id::{InputId, RunId};
use domain::time::Timestamp;
use rusqlite::params;

/// Records that an input was accepted and waits.
pub(super) fn accepted(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    due: Option<Timestamp>,
    position: u64,
) -> rusqlite::Result<()> {
    let from = Outside::of(&accepted.source);
    sql.write(
        "INSERT INTO inputs (id, session, session_number, position, state, words, due, waits_for, \
         priority, arrived, user_id, trigger_name, occasion, connector, chat) VALUES (?1, ?2, \
         (SELECT number FROM sessions WHERE id = ?2), ?3, 'waiting', ?4, ?5, ?6, ?7, ?8, ?9, ?10, \
         ?11, ?12, ?13)",
        params![
            accepted.input.to_string(),
            accepted.session.to_string(),
            int(position),
            accepted.source.may_join(),
            due.map(|due| int(due.0)),
            to_json(&accepted.waits_for())?,
            accepted.priority().as_str(),
            int(accepted.time.0),
            accepted.user_id.as_str(),
            from.trigger,
            from.occasion,
            from.connector,
            from.chat,
        ],
    )
}

/// The origin of an input outside: an occasion of a trigger, or a chat.
#[derive(Default)]
struct Outside<'a> {
    trigger: Option<&'a str>,
    occasion: Option<String>,
    connector: Option<&'a str>,
    chat: Option<&'a str>,
}

impl<'a> Outside<'a> {
    fn of(source: &'a Source) -> Self {
        match source {
            Source::Trigger {
                trigger, occasion, ..
            } => Self {
                trigger: Some(trigger.as_str()),
                occasion: Some(occasion.to_string()),
                ..Self::default()
            },
            Source::Connector { reply_to, .. } => Self {
                connector: Some(reply_to.connector.as_str()),
                chat: Some(&reply_to.chat),
                ..Self::default()
            },
            Source::Api
            | Source::Opening
            | Source::Dispatch { .. }
            | Source::LateReply { .. }
            | Source::Reminder { .. } => Self::default(),
        }
    }
}

/// Records that an input is work that a run handed over. It counts against that run and its tree of
/// agents until it has ended. Without a known run it counts against the tree of the agent that does
/// it.
pub(super) fn handed_over(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    by_run: Option<RunId>,
) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE inputs SET by_run = ?2, tree = (WITH RECURSIVE doer (agent) AS (SELECT \
         coalesce((SELECT agent FROM runs WHERE id = ?2), (SELECT agent FROM sessions WHERE id = \
         ?3))), above (id, parent) AS (SELECT agents.id, agents.parent FROM doer CROSS JOIN agents \
         ON agents.id = doer.agent UNION ALL SELECT agents.id, agents.parent FROM above CROSS JOIN \
         agents ON agents.id = above.parent) SELECT coalesce((SELECT id FROM above WHERE parent IS \
         NULL), doer.agent) FROM doer), held = coalesce((SELECT held FROM tasks WHERE input = ?1 \
         AND held > 0), 0) WHERE id = ?1",
        params![
            accepted.input.to_string(),
            by_run.map(|run| run.to_string()),
            accepted.session.to_string(),
        ],
    )
}

pub(super) fn claimed(sql: &Sql<'_>, input: InputId, run: RunId) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE inputs SET state = 'claimed', run = ?2 WHERE id = ?1",
        params![input.to_string(), run.to_string()],
    )
}

/// A run that dealt with some ended.
pub(super) fn consumed(sql: &Sql<'_>, run: RunId) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE inputs SET state = 'consumed' WHERE run = ?1 AND state = 'claimed'",
        [run.to_string()],
    )
}

/// Records that an input was cancelled or dropped; an event has the reason.
pub(super) fn gone(sql: &Sql<'_>, input: InputId, state: &str) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE inputs SET state = ?2 WHERE id = ?1",
        params![input.to_string(), state],
    )
}

/// Records that an input became a dead letter; the event at `position` has the reason.
pub(super) fn died(sql: &Sql<'_>, input: InputId, position: u64) -> rusqlite::Result<()> {
    sql.write(
        "UPDATE inputs SET state = 'dead', died = ?2 WHERE id = ?1",
        params![input.to_string(), int(position)],
    )
}

/// Makes an input wait again at its original place, and returns its due time. A run that left a
/// turn of it is remembered.
pub(super) fn requeued(sql: &Sql<'_>, input: InputId) -> rusqlite::Result<Option<Timestamp>> {
    let due = sql.row(
        "UPDATE inputs SET state = 'waiting', begun_run = coalesce((SELECT id FROM runs WHERE id = \
         inputs.run AND turn IS NOT NULL), begun_run), run = NULL, died = NULL WHERE id = ?1 \
         RETURNING due",
        [input.to_string()],
        |row| row.uint_opt(0),
    )?;
    Ok(due.flatten().map(Timestamp))
}
