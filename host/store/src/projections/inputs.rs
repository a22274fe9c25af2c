//! The ingress: inputs from acceptance until a run has consumed them.

use crate::sql::{self, Sql, args, named, to_json};
use domain::event::{InputAccepted, Source};
use domain::id::{InputId, RunId, TriggerEventId};
use domain::time::Timestamp;

/// Records that an input was accepted and waits.
pub(super) fn accepted(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    due: Option<Timestamp>,
    position: u64,
) -> sql::Result<()> {
    let from = Outside::of(&accepted.source);
    sql.write(
        "INSERT INTO inputs (id, session, session_number, position, state, words, due, waits_for, \
         priority, arrived, user_id, trigger_name, trigger_event, connector, chat) VALUES (:input, :id, \
         (SELECT number FROM sessions WHERE id = :id), :position, 'waiting', :may_join, :due, \
         :waits_for, :priority, :time, :user_id, :trigger, :trigger_event, :connector, :chat)",
        named![
            input = accepted.input,
            id = accepted.session,
            position,
            may_join = accepted.source.may_join(),
            due,
            waits_for = to_json(&accepted.waits_for())?,
            priority = accepted.priority().as_str(),
            time = accepted.time,
            user_id = accepted.user_id,
            trigger = from.trigger,
            trigger_event = from.trigger_event,
            connector = from.connector,
            chat = from.chat
        ],
    )
}

/// The origin of an input outside: an event of a trigger, or a chat.
#[derive(Default)]
struct Outside<'a> {
    trigger: Option<&'a str>,
    trigger_event: Option<TriggerEventId>,
    connector: Option<&'a str>,
    chat: Option<&'a str>,
}

impl<'a> Outside<'a> {
    fn of(source: &'a Source) -> Self {
        match source {
            Source::Trigger {
                trigger,
                trigger_event,
                ..
            } => Self {
                trigger: Some(trigger.as_str()),
                trigger_event: Some(*trigger_event),
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
/// the work.
pub(super) fn handed_over(
    sql: &Sql<'_>,
    accepted: &InputAccepted,
    by_run: Option<RunId>,
) -> sql::Result<()> {
    sql.write(
        "UPDATE inputs SET by_run = :by_run, tree = (WITH RECURSIVE doer (agent) AS (SELECT \
         coalesce((SELECT agent FROM runs WHERE id = :by_run), (SELECT agent FROM sessions WHERE \
         id = :id))), above (id, parent) AS (SELECT agents.id, agents.parent FROM doer CROSS JOIN \
         agents ON agents.id = doer.agent UNION ALL SELECT agents.id, agents.parent FROM above \
         CROSS JOIN agents ON agents.id = above.parent) SELECT coalesce((SELECT id FROM above \
         WHERE parent IS NULL), doer.agent) FROM doer), blocked = coalesce((SELECT blocked FROM tasks \
         WHERE input = :input AND blocked > 0), 0) WHERE id = :input",
        named![input = accepted.input, by_run, id = accepted.session],
    )
}

pub(super) fn claimed(sql: &Sql<'_>, input: InputId, run: RunId) -> sql::Result<()> {
    sql.write(
        "UPDATE inputs SET state = 'claimed', run = ?2 WHERE id = ?1",
        args![input, run],
    )
}

/// Records the end of a run that had claimed inputs.
pub(super) fn consumed(sql: &Sql<'_>, run: RunId) -> sql::Result<()> {
    sql.write(
        "UPDATE inputs SET state = 'consumed' WHERE run = ?1 AND state = 'claimed'",
        [run],
    )
}

/// Records that an input was cancelled or dropped; an event has the reason.
pub(super) fn gone(sql: &Sql<'_>, input: InputId, state: &str) -> sql::Result<()> {
    sql.write(
        "UPDATE inputs SET state = ?2 WHERE id = ?1",
        args![input, state],
    )
}

/// Records that an input became a dead letter; the event at `position` has the reason.
pub(super) fn died(sql: &Sql<'_>, input: InputId, position: u64) -> sql::Result<()> {
    sql.write(
        "UPDATE inputs SET state = 'dead', died = ?2 WHERE id = ?1",
        args![input, position],
    )
}

/// Makes an input wait again at its original place, and returns its due time. A run that left a
/// turn of it is remembered.
pub(super) fn requeued(sql: &Sql<'_>, input: InputId) -> sql::Result<Option<Timestamp>> {
    let due = sql.one::<Option<u64>>(
        "UPDATE inputs SET state = 'waiting', begun_run = coalesce((SELECT id FROM runs WHERE id = \
         inputs.run AND turn IS NOT NULL), begun_run), run = NULL, died = NULL WHERE id = ?1 \
         RETURNING due",
        [input],
    )?;
    Ok(due.flatten().map(Timestamp))
}
