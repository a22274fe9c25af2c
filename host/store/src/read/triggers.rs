//! Triggers as they are now, and what they have used.

use super::ReadError;
use crate::sql::{Columns, Sql, int, limit as rows};
use crate::store::Store;
use domain::event::{PauseReason, TriggerOrigin};
use domain::id::{AgentId, InputId, OccasionId, RunId, SessionId, TriggerId};
use domain::time::Timestamp;
use domain::trigger::{Failures, TriggerName, TriggerSpec, TriggerState};
use domain::user::UserId;
use rusqlite::{Row, params};

/// A trigger.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerRow {
    /// Its id.
    pub id: TriggerId,
    /// Its name.
    pub name: TriggerName,
    /// Its definition.
    pub spec: Box<TriggerSpec>,
    /// Its origin.
    pub origin: TriggerOrigin,
    /// The user to whom it belongs: the one who made it, or the one that the configuration names.
    pub user: Option<UserId>,
    /// Time of its latest definition.
    pub defined: Timestamp,
    /// Time at which it was removed; none while it is there.
    pub removed: Option<Timestamp>,
    /// The next occasion of its schedule.
    pub next_due: Option<Timestamp>,
    /// The reason why it is not fired.
    pub paused: Option<PauseReason>,
    /// The state that it keeps.
    pub state: Option<TriggerState>,
    /// Its failures in a row.
    pub failures: Failures,
    /// Occasions that are open: accepted, and neither dealt with nor given up.
    pub pending: u64,
    /// Time of its latest firing on record.
    pub last_fired: Option<Timestamp>,
    /// Time of the latest event of its stream.
    pub updated: Timestamp,
    /// Version of its stream.
    pub version: u64,
}

/// The triggers that are meant. One has to match every field that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TriggerFilter {
    /// The user whose triggers are wanted; all users without one.
    pub user: Option<UserId>,
    /// The kind that is wanted ([`domain::trigger::TriggerKind::key`]).
    pub kind: Option<String>,
}

/// The usage of a trigger since a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TriggerUsage {
    /// Firings that made any message.
    pub firings: u64,
    /// Runs that took in a message of it.
    pub runs: u64,
    /// Tokens that these runs have drawn.
    pub tokens: u64,
}

/// Numbers of triggers and of their occasions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TriggerCounts {
    /// Triggers that are there.
    pub there: u64,
    /// Triggers that the host paused, because they or their schedule failed too often.
    pub given_up: u64,
    /// Triggers whose breaker is open.
    pub held_up: u64,
    /// Occasions that are not done with.
    pub open_occasions: u64,
}

/// A message of a trigger on its way through a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerTurn {
    /// The trigger.
    pub trigger: TriggerName,
    /// The occasion.
    pub occasion: OccasionId,
    /// The input that carries the message.
    pub input: InputId,
    /// The session that took it.
    pub session: SessionId,
    /// Time at which the session took it.
    pub accepted: Timestamp,
    /// The run that took it in.
    pub run: Option<RunId>,
    /// True if it waits, or its run has not ended.
    pub is_open: bool,
    /// True if the trigger was reported as stuck with this occasion.
    pub is_reported: bool,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, t.name, t.spec, t.origin, t.user_id, t.defined_at, t.next_due, t.paused, \
             t.state_format, t.state, t.failures, t.schedule_errors, t.open_until, (SELECT \
             count(*) FROM occasions o WHERE o.trigger_name = t.name AND o.state IN ('waiting', \
             'fired')), (SELECT max(o.fired_at) FROM occasions o WHERE o.trigger_name = t.name AND \
             o.fired_at IS NOT NULL), coalesce((SELECT e.time FROM events e WHERE e.stream = \
             'trigger/' || t.id ORDER BY e.version DESC LIMIT 1), 0), coalesce((SELECT e.version \
             FROM events e WHERE e.stream = 'trigger/' || t.id ORDER BY e.version DESC LIMIT 1), \
             0), t.removed_at FROM triggers t ",
            $rest
        )
    };
}

const BY_NAME: &str =
    select!("WHERE t.removed_at IS NULL AND t.name > ?1 ORDER BY t.name LIMIT ?2");
const BY_KIND: &str =
    select!("WHERE t.removed_at IS NULL AND t.kind = ?3 AND t.name > ?1 ORDER BY t.name LIMIT ?2");
const BY_USER: &str = select!(
    "WHERE t.removed_at IS NULL AND t.user_id = ?3 AND t.name > ?1 AND (?4 IS NULL OR t.kind = \
     ?4) ORDER BY t.name LIMIT ?2"
);

macro_rules! select_turn {
    ($rest:literal) => {
        concat!(
            "SELECT i.trigger_name, i.occasion, i.id, i.session, i.arrived, i.run, i.state IN \
             ('waiting', 'claimed'), coalesce((SELECT o.stuck FROM occasions o WHERE o.id = \
             i.occasion), 0) FROM inputs i ",
            $rest
        )
    };
}

impl Store {
    /// Returns a trigger, also one that was removed; none when there never was one.
    pub async fn trigger(&self, name: &TriggerName) -> Result<Option<TriggerRow>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| sql.row(select!("WHERE t.name = ?1"), [name], read))
            .await
    }

    /// Returns the definition of a trigger that is fired: it is there, enabled and not paused.
    pub async fn fired_trigger(
        &self,
        name: &TriggerName,
    ) -> Result<Option<Box<TriggerSpec>>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| {
            let text = "SELECT spec FROM triggers WHERE name = ?1 AND enabled = 1 AND paused IS \
                        NULL AND removed_at IS NULL";
            sql.row(text, [name], |row| row.json(0))
        })
        .await
    }

    /// Returns triggers that are there, in the order of their names, after one, at most `limit`.
    pub async fn triggers(
        &self,
        filter: TriggerFilter,
        after: Option<TriggerName>,
        limit: usize,
    ) -> Result<Vec<TriggerRow>, ReadError> {
        let after = after.map(|name| name.to_string()).unwrap_or_default();
        self.read(move |sql| {
            let TriggerFilter { user, kind } = filter;
            match (user, kind) {
                (Some(user), kind) => sql.rows(
                    BY_USER,
                    params![after, rows(limit), user.as_str(), kind],
                    read,
                ),
                (None, Some(kind)) => sql.rows(BY_KIND, params![after, rows(limit), kind], read),
                (None, None) => sql.rows(BY_NAME, params![after, rows(limit)], read),
            }
        })
        .await
    }

    /// Returns triggers whose next occasion is due, the earliest first, at most `limit`: those
    /// that are enabled and not paused.
    pub async fn due_triggers(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TriggerRow>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                select!(
                    "WHERE t.next_due <= ?1 AND t.enabled = 1 AND t.paused IS NULL ORDER BY \
                     t.next_due, t.name LIMIT ?2"
                ),
                params![int(now.0), rows(limit)],
                read,
            )
        })
        .await
    }

    /// Returns the time of the earliest next occasion of a trigger that is enabled and not paused,
    /// also when it lies in the past.
    pub async fn next_trigger_due(&self) -> Result<Option<Timestamp>, ReadError> {
        self.point_read(|sql| {
            let text = "SELECT next_due FROM triggers WHERE next_due IS NOT NULL AND enabled = 1 \
                        AND paused IS NULL ORDER BY next_due, name LIMIT 1";
            sql.row(text, [], |row| Ok(Timestamp(row.uint(0)?)))
        })
        .await
    }

    /// Returns the number of all triggers. The time grows with it.
    pub async fn trigger_count(&self) -> Result<u64, ReadError> {
        self.read(|sql| sql.number("SELECT count(*) FROM triggers WHERE removed_at IS NULL", []))
            .await
    }

    /// Returns how many triggers there are, how many of them rest, and the occasions that are open.
    pub async fn trigger_counts(&self) -> Result<TriggerCounts, ReadError> {
        self.read(|sql| {
            let text = "SELECT count(*), count(*) FILTER (WHERE json_extract(paused, '$.kind') IN \
                        ('failures', 'schedule')), count(*) FILTER (WHERE open_until IS NOT NULL), \
                        (SELECT count(*) FROM occasions WHERE state IN ('waiting', 'fired')) FROM \
                        triggers WHERE removed_at IS NULL";
            let counts = sql.row(text, [], |row| {
                Ok(TriggerCounts {
                    there: row.uint(0)?,
                    given_up: row.uint(1)?,
                    held_up: row.uint(2)?,
                    open_occasions: row.uint(3)?,
                })
            })?;
            Ok(counts.unwrap_or_default())
        })
        .await
    }

    /// Returns the number of triggers that belong to a user.
    pub async fn triggers_of_user(&self, user: &UserId) -> Result<u64, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM triggers WHERE user_id = ?1 AND removed_at IS NULL",
                [user.as_str()],
            )
        })
        .await
    }

    /// Returns triggers that an agent made and that are there, in the order of their names, at most
    /// `limit`.
    pub async fn triggers_made_by(
        &self,
        agent: AgentId,
        limit: usize,
    ) -> Result<Vec<TriggerRow>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                select!("WHERE t.removed_at IS NULL AND t.agent = ?1 ORDER BY t.name LIMIT ?2"),
                params![agent.to_string(), rows(limit)],
                read,
            )
        })
        .await
    }

    /// Returns what a trigger has used since a time. A purge takes away what its sessions used.
    pub async fn trigger_usage(
        &self,
        name: &TriggerName,
        since: Timestamp,
    ) -> Result<TriggerUsage, ReadError> {
        let name = name.to_string();
        self.read(move |sql| usage(sql, &name, since)).await
    }

    /// Returns the latest message of a trigger that a session took; none without any.
    pub async fn latest_trigger_turn(
        &self,
        name: &TriggerName,
    ) -> Result<Option<TriggerTurn>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| {
            sql.row(
                select_turn!("WHERE i.trigger_name = ?1 ORDER BY i.arrived DESC LIMIT 1"),
                [name],
                read_turn,
            )
        })
        .await
    }

    /// Returns messages of triggers that sessions took before a time and that have come to no end,
    /// the oldest first, at most `limit`. Those of occasions that were reported are left out.
    pub async fn open_trigger_turns(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<TriggerTurn>, ReadError> {
        self.read(move |sql| {
            sql.rows(
                select_turn!(
                    "WHERE i.trigger_name IS NOT NULL AND i.state IN ('waiting', 'claimed') AND \
                     i.arrived < ?1 AND NOT EXISTS (SELECT 1 FROM occasions o WHERE o.id = \
                     i.occasion AND o.stuck = 1) ORDER BY i.arrived LIMIT ?2"
                ),
                params![int(before.0), rows(limit)],
                read_turn,
            )
        })
        .await
    }
}

fn usage(sql: &Sql<'_>, name: &str, since: Timestamp) -> rusqlite::Result<TriggerUsage> {
    let firings = sql.number(
        "SELECT count(*) FROM occasions WHERE trigger_name = ?1 AND fired_at >= ?2 AND messages > \
         0",
        params![name, int(since.0)],
    )?;
    let drawn = sql.row(
        "SELECT count(*), coalesce(sum(tokens), 0) FROM runs WHERE id IN (SELECT run FROM inputs \
         WHERE trigger_name = ?1 AND arrived >= ?2 AND run IS NOT NULL)",
        params![name, int(since.0)],
        |row| Ok((row.uint(0)?, row.uint(1)?)),
    )?;
    let (runs, tokens) = drawn.unwrap_or_default();
    Ok(TriggerUsage {
        firings,
        runs,
        tokens,
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<TriggerRow> {
    let format: Option<u32> = row.get(8)?;
    let bytes: Option<Vec<u8>> = row.get(9)?;
    Ok(TriggerRow {
        id: row.id(0)?,
        name: row.id(1)?,
        spec: row.json(2)?,
        origin: row.json(3)?,
        user: row.id_opt(4)?,
        defined: Timestamp(row.uint(5)?),
        next_due: row.uint_opt(6)?.map(Timestamp),
        paused: row.json_opt(7)?,
        state: format
            .zip(bytes)
            .map(|(format, bytes)| TriggerState { format, bytes }),
        failures: Failures {
            in_a_row: row.get(10)?,
            schedule_errors: row.get(11)?,
            open_until: row.uint_opt(12)?.map(Timestamp),
        },
        pending: row.uint(13)?,
        last_fired: row.uint_opt(14)?.map(Timestamp),
        updated: Timestamp(row.uint(15)?),
        version: row.uint(16)?,
        removed: row.uint_opt(17)?.map(Timestamp),
    })
}

fn read_turn(row: &Row<'_>) -> rusqlite::Result<TriggerTurn> {
    Ok(TriggerTurn {
        trigger: row.id(0)?,
        occasion: row.id(1)?,
        input: row.id(2)?,
        session: row.id(3)?,
        accepted: Timestamp(row.uint(4)?),
        run: row.id_opt(5)?,
        is_open: row.get(6)?,
        is_reported: row.get(7)?,
    })
}
