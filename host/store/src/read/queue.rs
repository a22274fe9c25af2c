//! A session's queue: the waiting inputs as the rules of the queue see them, and the state that the
//! acceptance of an input depends on.

use super::ReadError;
use crate::guard::QueueSeen;
use crate::query::{Query, Rows, Value};
use crate::sql::{self, Columns, Sql, args, row, select, unreadable};
use crate::store::Store;
use domain::dispatch::blocked::{BlockedDelegation, BlockedQueue};
use domain::dispatch::waits::Waits;
use domain::id::{AgentId, InputId, RunId, SessionId};
use domain::queue::{Queue, WaitKind, WaitingInput};
use domain::time::Timestamp;
use domain::user::UserId;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A session's queue at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRow {
    /// Inputs that wait; of reminders only those that are due.
    pub queue: Queue<InputId>,
    /// The rest of the state that the queue's rules use. A commit that depends on it guards it.
    pub seen: QueueSeen,
}

impl Store {
    /// A session's queue; none when there is no such session.
    pub async fn queue(
        &self,
        session: SessionId,
        now: Timestamp,
    ) -> Result<Option<QueueRow>, ReadError> {
        self.point_read(move |sql| {
            let Some(mut seen) = read_status(&sql.ask(&status_query(session))?)? else {
                return Ok(None);
            };
            let text = select!(
                WaitingRow,
                "WHERE session_number = (SELECT number FROM sessions WHERE id = ?1) AND state = \
                 'waiting' AND (due IS NULL OR due <= ?2) ORDER BY position"
            );
            let waiting: Vec<WaitingRow> = sql.all(text, args![session, now])?;
            let waiting: Vec<WaitingInput<InputId>> = waiting
                .into_iter()
                .map(WaitingRow::read)
                .collect::<sql::Result<_>>()?;
            // Computed from the rows that were read, so that a guard on them covers the decision.
            seen.queued = waiting
                .iter()
                .filter(|it| matches!(it.kind, WaitKind::Queued(_)))
                .map(|it| it.id)
                .collect();
            Ok(Some(QueueRow {
                queue: Queue {
                    waiting,
                    overflow: seen.overflow.clone(),
                },
                seen,
            }))
        })
        .await
    }

    /// Returns whether an input that is to end the run waits in a session.
    pub async fn is_interrupted(&self, session: SessionId) -> Result<bool, ReadError> {
        self.point_read(move |sql| {
            let text = "SELECT 1 FROM inputs WHERE session = ?1 AND state = 'waiting' AND \
                        wait_kind = 'interrupt'";
            sql.exists(text, [session])
        })
        .await
    }
}

/// The query for the state that the acceptance of a session's input depends on, without its inputs.
pub(crate) fn status_query(session: SessionId) -> Query<'static> {
    Query::new(
        "SELECT open_run, overflow, EXISTS (SELECT 1 FROM agents WHERE agents.id = sessions.agent \
         AND agents.slot = sessions.id AND agents.slot_phase = 'awaiting_client_action') FROM sessions WHERE id = ?1",
        [Value::id(&session)],
    )
}

/// Reads the row that answers [`status_query`]. None if the session does not exist.
pub(crate) fn read_status(rows: &Rows) -> sql::Result<Option<QueueSeen>> {
    let status = rows.first().map(|row| {
        Ok(QueueSeen {
            run: row.get(0)?,
            awaits_client: row.get(2)?,
            queued: Vec::new(),
            overflow: row.json_opt(1)?.unwrap_or_default(),
        })
    });
    status.transpose()
}

row! {
    /// An input that waits.
    struct WaitingRow from "inputs" {
        id: InputId,
        arrived: Timestamp,
        priority: String,
        waits_for: WaitKind as json,
        user_id: UserId,
    }
}

impl WaitingRow {
    fn read(self) -> sql::Result<WaitingInput<InputId>> {
        Ok(WaitingInput {
            id: self.id,
            arrived: self.arrived,
            priority: serde_json::from_value(self.priority.into())
                .map_err(|error| unreadable("priority", error))?,
            user: self.user_id,
            kind: self.waits_for,
        })
    }
}

/// Waiting delegations that are read of one tree, at most: more than may wait.
const BLOCKED_MAX: usize = 1_000;

/// Number of open dispatches of a run and of the tree of agents that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandedOver {
    /// By the run.
    pub by_run: u64,
    /// By all runs of the tree's agents.
    pub in_tree: u64,
    /// Delegations of the tree that wait for room; they are not among the others.
    pub queued: u64,
    /// The tree: its topmost agent.
    pub tree: AgentId,
}

impl Store {
    /// Returns the number of open dispatches of a run and its tree: detached or not, waited for or
    /// not.
    pub async fn handed_over(&self, run: RunId, agent: AgentId) -> Result<HandedOver, ReadError> {
        self.read(move |sql| {
            let tree = tree_of(sql, agent)?;
            Ok(HandedOver {
                by_run: sql.ask(&open_by_run_query(run))?.number()?,
                in_tree: sql.ask(&open_in_tree_query(tree))?.number()?,
                queued: sql.ask(&blocked_query(tree))?.number()?,
                tree,
            })
        })
        .await
    }

    /// Returns the delegations that wait for room in the tree of agents that an input counts
    /// against, with that tree; none if none waits there.
    ///
    /// Only those count whose callers wait for them still.
    pub async fn blocked_beside(
        &self,
        input: InputId,
    ) -> Result<Option<(AgentId, BlockedQueue)>, ReadError> {
        let Some(tree) = self.tree_with_blocked(input).await? else {
            return Ok(None);
        };
        self.read(move |sql| {
            let waiting = waiting_for_room(sql, tree)?;
            if waiting.is_empty() {
                return Ok(None);
            }
            let mut open_by_run = HashMap::new();
            for blocked in &waiting {
                if let Entry::Vacant(place) = open_by_run.entry(blocked.by_run) {
                    place.insert(sql.ask(&open_by_run_query(blocked.by_run))?.number()?);
                }
            }
            let queue = BlockedQueue {
                open_in_tree: sql.ask(&open_in_tree_query(tree))?.number()?,
                open_by_run,
                waiting,
            };
            Ok(Some((tree, queue)))
        })
        .await
    }

    /// Returns the tree of agents that an input counts against, if delegations wait for room there.
    async fn tree_with_blocked(&self, input: InputId) -> Result<Option<AgentId>, ReadError> {
        self.point_read(move |sql| {
            let tree = sql.one::<Option<_>>(
                "SELECT i.tree FROM inputs i WHERE i.id = ?1 AND EXISTS (SELECT 1 FROM inputs h \
                 WHERE h.tree = i.tree AND h.state = 'waiting' AND h.blocked > 0)",
                [input],
            )?;
            Ok(tree.flatten())
        })
        .await
    }

    /// Returns whether an input was accepted to wait for room. If not, its turn can begin without
    /// any further check.
    pub async fn waits_for_room(&self, input: InputId) -> Result<bool, ReadError> {
        self.point_read(move |sql| {
            let text = "SELECT 1 FROM inputs WHERE id = ?1 AND blocked > 0";
            sql.exists(text, [input])
        })
        .await
    }

    /// Returns the waits among the sessions that a session waits for, directly or through others.
    pub async fn waits_of(&self, session: SessionId) -> Result<Vec<Waits>, ReadError> {
        self.read(move |sql| read_waits(&sql.ask(&waits_query(session))?))
            .await
    }
}

/// The query for the waits among the sessions that a session waits for.
pub(crate) fn waits_query(session: SessionId) -> Query<'static> {
    Query::new(
        "WITH RECURSIVE reached (id) AS (SELECT ?1 UNION SELECT operations.waits_for FROM reached \
         CROSS JOIN operations ON operations.session = reached.id WHERE operations.waits_for IS \
         NOT NULL) SELECT operations.session, operations.waits_for FROM reached CROSS JOIN \
         operations ON operations.session = reached.id WHERE operations.waits_for IS NOT NULL",
        [Value::id(&session)],
    )
}

/// Reads the rows that answer [`waits_query`]. See [`Store::waits_of`].
pub(crate) fn read_waits(rows: &Rows) -> sql::Result<Vec<Waits>> {
    let waits = rows.iter().map(|row| {
        Ok(Waits {
            session: row.get(0)?,
            for_session: row.get(1)?,
        })
    });
    waits.collect()
}

/// The topmost agent above one; that agent itself when none is above it.
pub(crate) fn tree_of(sql: &Sql<'_>, agent: AgentId) -> sql::Result<AgentId> {
    let top = sql.one(
        "WITH RECURSIVE above (id, parent) AS (SELECT id, parent FROM agents WHERE id = ?1 UNION \
         ALL SELECT agents.id, agents.parent FROM agents JOIN above ON agents.id = above.parent) \
         SELECT id FROM above WHERE parent IS NULL",
        [agent],
    )?;
    Ok(top.unwrap_or(agent))
}

/// The query for the number of open dispatches of a tree. Dispatches that wait for room do not
/// count.
pub(crate) fn open_in_tree_query(tree: AgentId) -> Query<'static> {
    Query::new(
        "SELECT count(*) FROM inputs WHERE tree = ?1 AND state IN ('waiting', 'claimed') AND \
         (state = 'claimed' OR blocked = 0)",
        [Value::id(&tree)],
    )
}

/// The query for the number of open dispatches of a run. Dispatches that wait for room do not
/// count.
pub(crate) fn open_by_run_query(run: RunId) -> Query<'static> {
    Query::new(
        "SELECT count(*) FROM inputs WHERE by_run = ?1 AND state IN ('waiting', 'claimed') AND \
         (state = 'claimed' OR blocked = 0)",
        [Value::id(&run)],
    )
}

/// The query for the number of delegations of a tree that wait for room.
pub(crate) fn blocked_query(tree: AgentId) -> Query<'static> {
    Query::new(
        "SELECT count(*) FROM inputs WHERE tree = ?1 AND state = 'waiting' AND blocked > 0",
        [Value::id(&tree)],
    )
}

/// Reads the delegations of a tree that wait for room, and whose callers wait for them.
fn waiting_for_room(sql: &Sql<'_>, tree: AgentId) -> sql::Result<Vec<BlockedDelegation>> {
    let text = "SELECT i.id, i.session, t.run FROM inputs i CROSS JOIN tasks t ON t.input = i.id \
                AND t.blocked > 0 CROSS JOIN operations o ON o.id = t.id WHERE i.tree = ?1 AND \
                i.state = 'waiting' AND i.blocked > 0 ORDER BY i.blocked DESC, i.position LIMIT ?2";
    let waiting = sql.all(text, args![tree, BLOCKED_MAX])?;
    let blocked = waiting
        .into_iter()
        .map(|(input, session, by_run)| BlockedDelegation {
            input,
            session,
            by_run,
        });
    Ok(blocked.collect())
}
