//! A session's queue: the waiting inputs as the rules of the queue see them, and the state that the
//! acceptance of an input depends on.

use super::ReadError;
use crate::guard::QueueSeen;
use crate::query::{Query, Rows, Value};
use crate::sql::{self, Columns, args, row, select, unreadable};
use crate::store::Store;
use domain::id::{InputId, SessionId};
use domain::queue::{Queue, WaitKind, WaitingInput};
use domain::time::Timestamp;
use domain::user::UserId;

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
