//! Triggers in their present state, and their usage.

use super::ReadError;
use crate::sql::{self, Cells, FromRow, Json, Sql, args, named, row, select};
use crate::store::{Maintenance, Store};
use domain::event::{PauseReason, TriggerOrigin};
use domain::id::{AgentId, InputId, RunId, SessionId, TriggerEventId, TriggerId};
use domain::time::Timestamp;
use domain::trigger::{Failures, TriggerName, TriggerSpec, TriggerState};
use domain::user::UserId;

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
    /// Its owner: the user who made it, or the user that the configuration names.
    pub user: Option<UserId>,
    /// Time of its latest definition.
    pub defined: Timestamp,
    /// Time of its removal; none while it exists.
    pub removed: Option<Timestamp>,
    /// The next trigger event of its schedule.
    pub next_due: Option<Timestamp>,
    /// The reason why it is not fired.
    pub paused: Option<PauseReason>,
    /// The state that it keeps.
    pub state: Option<TriggerState>,
    /// Its failures in a row.
    pub failures: Failures,
    /// Open trigger events: accepted, and neither processed nor given up.
    pub pending: u64,
    /// Time of its latest trigger run on record.
    pub last_fired: Option<Timestamp>,
    /// Time of the latest event of its stream.
    pub updated: Timestamp,
    /// Version of its stream.
    pub version: u64,
}

/// A filter for triggers. A trigger has to match every field that is set.
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
    /// Trigger runs that made any message.
    pub trigger_runs: u64,
    /// Number of runs that took in one of its messages.
    pub runs: u64,
    /// Tokens that these runs have drawn.
    pub tokens: u64,
}

row! {
    /// Numbers of triggers and of their trigger events.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct TriggerCounts from "triggers" {
        /// Triggers that are there.
        pub there: u64 = "count(*)",
        /// Triggers that the host paused, because they or their schedule failed too often.
        pub given_up: u64 =
            "count(*) FILTER (WHERE paused_kind IN ('failures', 'schedule'))",
        /// Triggers whose breaker is open.
        pub resting: u64 = "count(*) FILTER (WHERE open_until IS NOT NULL)",
        /// Trigger events that are not done with.
        pub open_trigger_events: u64 =
            "(SELECT count(*) FROM trigger_events WHERE state IN ('waiting', 'fired'))",
    }
}

row! {
    /// A message of a trigger on its way through a session.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct TriggerTurn from "inputs i" {
        /// The trigger.
        pub trigger: TriggerName = "i.trigger_name",
        /// The trigger event.
        pub trigger_event: TriggerEventId = "i.trigger_event",
        /// The input that carries the message.
        pub input: InputId = "i.id",
        /// The session that took it.
        pub session: SessionId = "i.session",
        /// Time at which the session took it.
        pub accepted: Timestamp = "i.arrived",
        /// The run that took it in.
        pub run: Option<RunId> = "i.run",
        /// True if it waits, or its run has not ended.
        pub is_open: bool = "i.state IN ('waiting', 'claimed')",
        /// True if the trigger was reported as stuck with this trigger event.
        pub is_reported: bool =
            "coalesce((SELECT o.stuck FROM trigger_events o WHERE o.id = i.trigger_event), 0)",
    }
}

impl TriggerRow {
    const COLUMNS: &str = "t.id, t.name, t.spec, t.origin, t.user_id, t.defined_at, t.next_due, \
                           t.paused, t.state_format, t.state, t.failures, t.schedule_errors, \
                           t.open_until, (SELECT count(*) FROM trigger_events o WHERE o.trigger_name = \
                           t.name AND o.state IN ('waiting', 'fired')) AS pending, (SELECT \
                           max(o.fired_at) FROM trigger_events o WHERE o.trigger_name = t.name AND \
                           o.fired_at IS NOT NULL) AS last_fired, coalesce((SELECT e.time FROM \
                           events e WHERE e.stream = (SELECT st.number FROM streams st WHERE st.stream_kind \
                           = 'trigger' AND st.stream_id = t.id) ORDER BY e.version DESC \
                           LIMIT 1), 0) AS updated, coalesce((SELECT e.version FROM events e \
                           WHERE e.stream = (SELECT st.number FROM streams st WHERE st.stream_kind \
                           = 'trigger' AND st.stream_id = t.id) ORDER BY e.version DESC LIMIT 1), \
                           0) AS version, t.removed_at";
    const FROM: &str = "triggers t";
}

impl FromRow for TriggerRow {
    fn read(cells: &mut Cells<'_, '_>) -> sql::Result<Self> {
        Ok(Self {
            id: cells.next("id")?,
            name: cells.next("name")?,
            spec: cells.next::<Json<_>>("spec")?.0,
            origin: cells.next::<Json<_>>("origin")?.0,
            user: cells.next("user_id")?,
            defined: cells.next("defined_at")?,
            next_due: cells.next("next_due")?,
            paused: cells.next::<Option<Json<_>>>("paused")?.map(|json| json.0),
            state: cells
                .next::<Option<_>>("state_format")?
                .zip(cells.next("state")?)
                .map(|(format, bytes)| TriggerState { format, bytes }),
            failures: Failures {
                in_a_row: cells.next("failures")?,
                schedule_errors: cells.next("schedule_errors")?,
                open_until: cells.next("open_until")?,
            },
            pending: cells.next("pending")?,
            last_fired: cells.next("last_fired")?,
            updated: cells.next("updated")?,
            version: cells.next("version")?,
            removed: cells.next("removed_at")?,
        })
    }
}

impl Maintenance {
    /// Returns the number of triggers, the number of paused or disabled ones, and the number of
    /// open trigger events.
    pub async fn trigger_counts(&self) -> Result<TriggerCounts, ReadError> {
        self.read(|sql| {
            let text = select!(TriggerCounts, "WHERE removed_at IS NULL");
            let counts: Option<TriggerCounts> = sql.one(text, [])?;
            Ok(counts.unwrap_or_default())
        })
        .await
    }
}

impl Store {
    /// Returns a trigger, also a removed one; none if it never existed.
    pub async fn trigger(&self, name: &TriggerName) -> Result<Option<TriggerRow>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| sql.one(select!(TriggerRow, "WHERE t.name = ?1"), [name]))
            .await
    }

    /// Returns the definition of an active trigger: it exists, is enabled and is not paused.
    pub async fn fired_trigger(
        &self,
        name: &TriggerName,
    ) -> Result<Option<Box<TriggerSpec>>, ReadError> {
        let name = name.to_string();
        self.point_read(move |sql| {
            let text = "SELECT spec FROM triggers WHERE name = ?1 AND enabled = 1 AND paused IS \
                        NULL AND removed_at IS NULL";
            sql.json(text, [name])
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
            match user {
                Some(user) => {
                    let text = select!(
                        TriggerRow,
                        "WHERE t.removed_at IS NULL AND t.user_id = :user AND t.name > :after AND \
                         (:kind IS NULL OR t.kind = :kind) ORDER BY t.name LIMIT :limit"
                    );
                    let params = named![user, after, kind, limit];
                    sql.all(text, params)
                }
                None => {
                    let text = select!(
                        TriggerRow,
                        "WHERE t.removed_at IS NULL AND (:kind IS NULL OR t.kind = :kind) AND \
                         t.name > :after ORDER BY t.name LIMIT :limit"
                    );
                    sql.all(text, named![kind, after, limit])
                }
            }
        })
        .await
    }

    /// Returns triggers whose next trigger event is due, the earliest first, at most `limit`: those
    /// that are enabled and not paused.
    pub async fn due_triggers(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TriggerRow>, ReadError> {
        self.read(move |sql| {
            sql.all(
                select!(
                    TriggerRow,
                    "WHERE t.next_due <= ?1 AND t.enabled = 1 AND t.paused IS NULL ORDER BY \
                     t.next_due, t.name LIMIT ?2"
                ),
                args![now, limit],
            )
        })
        .await
    }

    /// Returns the time of the earliest next event of a trigger that is enabled and not paused,
    /// also when it lies in the past.
    pub async fn next_trigger_due(&self) -> Result<Option<Timestamp>, ReadError> {
        self.point_read(|sql| {
            let text = "SELECT next_due FROM triggers WHERE next_due IS NOT NULL AND enabled = 1 \
                        AND paused IS NULL ORDER BY next_due, name LIMIT 1";
            sql.one::<Timestamp>(text, [])
        })
        .await
    }

    /// Returns the number of all triggers. The cost grows with that number.
    pub async fn trigger_count(&self) -> Result<u64, ReadError> {
        self.read(|sql| sql.number("SELECT count(*) FROM triggers WHERE removed_at IS NULL", []))
            .await
    }

    /// Returns the number of triggers that belong to a user.
    pub async fn triggers_of_user(&self, user: &UserId) -> Result<u64, ReadError> {
        let user = user.clone();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM triggers WHERE user_id = ?1 AND removed_at IS NULL",
                [user],
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
            sql.all(
                select!(
                    TriggerRow,
                    "WHERE t.removed_at IS NULL AND t.agent = ?1 ORDER BY t.name LIMIT ?2"
                ),
                args![agent, limit],
            )
        })
        .await
    }

    /// Returns the usage of a trigger since a time. A purge subtracts the usage of the purged
    /// sessions.
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
            sql.one(
                select!(
                    TriggerTurn,
                    "WHERE i.trigger_name = ?1 ORDER BY i.arrived DESC LIMIT 1"
                ),
                [name],
            )
        })
        .await
    }

    /// Returns messages of triggers that sessions took before a time and whose turns have not
    /// ended, the oldest first, at most `limit`. Messages of reported trigger events are left out.
    pub async fn open_trigger_turns(
        &self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<TriggerTurn>, ReadError> {
        self.read(move |sql| {
            sql.all(
                select!(
                    TriggerTurn,
                    "WHERE i.trigger_name IS NOT NULL AND i.state IN ('waiting', 'claimed') AND \
                     i.arrived < ?1 AND NOT EXISTS (SELECT 1 FROM trigger_events o WHERE o.id = \
                     i.trigger_event AND o.stuck = 1) ORDER BY i.arrived LIMIT ?2"
                ),
                args![before, limit],
            )
        })
        .await
    }
}

fn usage(sql: &Sql<'_>, name: &str, since: Timestamp) -> sql::Result<TriggerUsage> {
    let trigger_runs = sql.number(
        "SELECT count(*) FROM trigger_events WHERE trigger_name = ?1 AND fired_at >= ?2 AND messages > \
         0",
        args![name, since],
    )?;
    let text = "SELECT count(*), coalesce(sum(tokens), 0) FROM runs WHERE id IN (SELECT run FROM \
                inputs WHERE trigger_name = ?1 AND arrived >= ?2 AND run IS NOT NULL)";
    let drawn: Option<(u64, u64)> = sql.one(text, args![name, since])?;
    let (runs, tokens) = drawn.unwrap_or_default();
    Ok(TriggerUsage {
        trigger_runs,
        runs,
        tokens,
    })
}
