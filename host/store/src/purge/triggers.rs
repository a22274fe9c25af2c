//! Purge of the triggers that an agent made, with their whole streams.
//!
//! A name that another owner has taken over belongs to that owner, with its earlier history.

use super::room::{Room, some_rows};
use super::{BEHIND_ALL, EVENTS_PER_COMMIT_MAX, ROWS_PER_COMMIT_MAX, Store, Tally, erase_event};
use crate::commit::CommitError;
use crate::sql::{self, Sql, args, named, row, select};
use crate::streams;
use domain::id::{AgentId, Stream, TriggerId};
use uuid::Uuid;

row! {
    /// A trigger that goes.
    #[derive(Debug, Clone)]
    struct Trigger from "trigger_makers m" {
        id: TriggerId = "m.id",
        name: String = "m.name",
    }
}

impl Store {
    /// Erases the triggers that an agent made, transaction by transaction.
    pub(super) async fn erase_triggers_of(
        &self,
        purge: Stream,
        agent: AgentId,
    ) -> Result<(), CommitError> {
        let mut before = TriggerId(Uuid::nil());
        loop {
            let Some(trigger) = self.read(move |sql| next_of(sql, agent, before)).await? else {
                return Ok(());
            };
            before = trigger.id;
            let mut after = Some(0);
            while let Some(version) = after {
                let trigger = trigger.clone();
                after = self
                    .transact_for(purge, move |sql, tally| {
                        erase(sql, &trigger, version, tally)
                    })
                    .await?;
            }
        }
    }
}

/// Returns the next trigger, by id, that an agent made and that no other owner has taken over,
/// whether or not it still exists.
fn next_of(sql: &Sql<'_>, agent: AgentId, before: TriggerId) -> sql::Result<Option<Trigger>> {
    let text = select!(
        Trigger,
        "WHERE m.agent = ?1 AND m.id > ?2 AND NOT EXISTS (SELECT 1 FROM triggers t WHERE t.id = \
         m.id AND t.agent IS DISTINCT FROM ?1) ORDER BY m.id LIMIT 1"
    );
    sql.one(text, args![agent, before])
}

/// Erases part of a trigger, as much as fits into one transaction: its events after a version and,
/// after the last of them, its rows. Returns the version up to which no event is left; none when
/// all is erased.
fn erase(
    sql: &Sql<'_>,
    trigger: &Trigger,
    after: u64,
    tally: &mut Tally,
) -> sql::Result<Option<u64>> {
    let stream = streams::number(sql, Stream::Trigger(trigger.id))?;
    let (events, is_all) = some_rows(
        sql,
        "SELECT version, position, bytes FROM events WHERE stream = :stream AND version \
         > :version AND payload IS NOT NULL ORDER BY version LIMIT :limit",
        named![stream, version = after, limit = EVENTS_PER_COMMIT_MAX],
        Room::of_commit(EVENTS_PER_COMMIT_MAX),
        |(_, _, bytes): &(u64, u64, u64)| *bytes,
    )?;
    for (_, position, _) in &events {
        erase_event(sql, *position, tally)?;
    }
    if let Some((version, ..)) = events.last().filter(|_| !is_all) {
        return Ok(Some(*version));
    }
    if !erase_trigger_events(sql, &trigger.name)? {
        return Ok(Some(BEHIND_ALL));
    }
    for text in [
        "DELETE FROM triggers WHERE id = ?1",
        "DELETE FROM trigger_makers WHERE id = ?1",
        "DELETE FROM snapshots WHERE stream = (SELECT number FROM streams WHERE stream_kind = 'trigger' AND \
         stream_id = ?1)",
    ] {
        sql.execute(text, [trigger.id])?;
    }
    Ok(None)
}

/// Removes events of a trigger, as many as fit into one transaction. Returns whether that is
/// all.
fn erase_trigger_events(sql: &Sql<'_>, name: &str) -> sql::Result<bool> {
    let rows = ROWS_PER_COMMIT_MAX;
    sql.execute(
        "DELETE FROM trigger_event_sessions WHERE trigger_event IN (SELECT id FROM trigger_events WHERE \
         trigger_name = ?1 LIMIT ?2)",
        args![name, rows],
    )?;
    let trigger_events = sql.execute(
        "DELETE FROM trigger_events WHERE position IN (SELECT position FROM trigger_events WHERE \
         trigger_name = ?1 LIMIT ?2)",
        args![name, rows],
    )?;
    Ok(trigger_events < ROWS_PER_COMMIT_MAX)
}
