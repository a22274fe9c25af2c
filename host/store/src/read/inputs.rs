//! The ingress: what waits, what was put aside, what became of each input.

use super::ReadError;
use crate::event_row::decode_at;
use crate::sql::{Columns, Sql, int, limit as rows, unreadable};
use crate::store::Store;
use domain::connector::ReplyRoute;
use domain::event::{Event, InputAccepted, InputDead};
use domain::id::{AgentId, InputId, RunId, SessionId};
use domain::limits::WAITING_INPUTS_MAX;
use domain::time::Timestamp;
use domain::user::UserId;
use rusqlite::{Row, params};

/// State of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputState {
    /// It waits for a run. A reminder waits for its time as well.
    Waiting,
    /// A run deals with it.
    Claimed {
        /// The run.
        run: RunId,
    },
    /// A run dealt with it and ended.
    Consumed {
        /// The run.
        run: RunId,
    },
    /// It became a dead letter.
    Dead {
        /// The reason.
        reason: String,
        /// The last run that had begun to deal with it, and whose turn is kept, or else the one
        /// that had taken it in; none when no run was stored for it.
        run: Option<RunId>,
        /// True if that run left a turn: what the turn did would be done again with the input.
        begun: bool,
    },
    /// It was cancelled while it waited, or as a dead letter.
    Cancelled {
        /// The run that a dead letter would name; none if no run had taken it in.
        run: Option<RunId>,
        /// True if that run left a turn, which stays.
        begun: bool,
    },
    /// It was dropped from an overfull queue; a turn reports it.
    Dropped,
}

/// An input that was put aside.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadInput {
    /// Event of the input's death, with its reason and its time.
    pub dead: InputDead,
    /// Event of the input's acceptance.
    pub accepted: InputAccepted,
    /// Agent of its session; none when that was erased.
    pub agent: Option<AgentId>,
    /// The last run that had taken it in and left a turn. If none left one, the last that had taken
    /// it in; none when no run was stored for it.
    pub run: Option<RunId>,
    /// True if that run left a turn: what the turn did would be done again with the input.
    pub begun: bool,
    /// Position of the event of its death.
    pub position: u64,
}

impl Store {
    /// A session's inputs that wait, in the order in which they were accepted, at most `limit`.
    /// Reminders only when they are due.
    pub async fn waiting_inputs(
        &self,
        session: SessionId,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<InputAccepted>, ReadError> {
        let look = move |sql: &Sql<'_>| {
            let inputs = sql.rows(
                "SELECT e.kind, e.payload FROM inputs i JOIN events e ON e.position = i.position \
                 WHERE i.session_number = (SELECT number FROM sessions WHERE id = ?1) AND i.state \
                 = 'waiting' AND (i.due IS NULL OR i.due <= ?2) ORDER BY i.position LIMIT ?3",
                params![session.to_string(), int(now.0), rows(limit)],
                |row| accepted(row, 0),
            )?;
            Ok(inputs.into_iter().flatten().collect())
        };
        // A look at more may wait for the disk.
        if limit <= 2 * WAITING_INPUTS_MAX {
            self.point_read(look).await
        } else {
            self.read(look).await
        }
    }

    /// An input and how far it has come; none when it was never accepted, or erased.
    pub async fn input(
        &self,
        id: InputId,
    ) -> Result<Option<(InputAccepted, InputState)>, ReadError> {
        self.point_read(move |sql| {
            let found = sql.row(
                "SELECT e.kind, e.payload, i.state, i.run, i.died, coalesce((SELECT id FROM runs \
                 WHERE id = i.run AND turn IS NOT NULL), i.begun_run) FROM inputs i JOIN events e \
                 ON e.position = i.position WHERE i.id = ?1",
                [id.to_string()],
                |row| {
                    Ok((
                        accepted(row, 0)?,
                        row.get::<_, String>(2)?,
                        row.id_opt::<RunId>(3)?,
                        row.uint_opt(4)?,
                        row.id_opt::<RunId>(5)?,
                    ))
                },
            )?;
            let Some((Some(accepted), state, run, died, begun)) = found else {
                return Ok(None);
            };
            let state = match (state.as_str(), run) {
                ("waiting", _) => InputState::Waiting,
                ("claimed", Some(run)) => InputState::Claimed { run },
                ("consumed", Some(run)) => InputState::Consumed { run },
                ("dead", _) => InputState::Dead {
                    reason: reason(sql, died)?,
                    run: begun.or(run),
                    begun: begun.is_some(),
                },
                ("cancelled", _) => InputState::Cancelled {
                    run: begun.or(run),
                    begun: begun.is_some(),
                },
                ("dropped", _) => InputState::Dropped,
                (other, _) => {
                    return Err(unreadable(2, format!("`{other}` is no state of an input")));
                }
            };
            Ok(Some((accepted, state)))
        })
        .await
    }

    /// Returns what a user said to agents from a chat, each with the position of the event that
    /// accepted it, in order, after a position, at most `limit`.
    pub async fn inputs_of_chat(
        &self,
        user: &UserId,
        chat: &ReplyRoute,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(u64, InputAccepted)>, ReadError> {
        let user = user.clone();
        let ReplyRoute { connector, chat } = chat.clone();
        self.read(move |sql| {
            let found = sql.rows(
                "SELECT i.position, e.kind, e.payload FROM sessions s CROSS JOIN inputs i ON \
                 i.session = s.id CROSS JOIN events e ON e.position = i.position WHERE s.user_id = \
                 ?1 AND i.connector = ?2 AND i.chat = ?3 AND i.position > ?4 ORDER BY i.position \
                 LIMIT ?5",
                params![
                    user.as_str(),
                    connector.as_str(),
                    chat,
                    int(after),
                    rows(limit)
                ],
                |row| Ok((row.uint(0)?, accepted(row, 1)?)),
            )?;
            let there = |(position, accepted): (u64, Option<InputAccepted>)| {
                accepted.map(|accepted| (position, accepted))
            };
            Ok(found.into_iter().filter_map(there).collect())
        })
        .await
    }

    /// The session of an input, and the position of the event that accepted it.
    pub async fn input_position(&self, id: InputId) -> Result<Option<(SessionId, u64)>, ReadError> {
        self.point_read(move |sql| {
            sql.row(
                "SELECT session, position FROM inputs WHERE id = ?1",
                [id.to_string()],
                |row| Ok((row.id(0)?, row.uint(1)?)),
            )
        })
        .await
    }

    /// Inputs that were put aside, the latest first, at most `limit`. Only those that died before
    /// the position `before`; of all without one.
    pub async fn dead_inputs(
        &self,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<DeadInput>, ReadError> {
        self.read(move |sql| {
            let inputs = sql.rows(
                "SELECT e.kind, e.payload, d.kind, d.payload, (SELECT agent FROM sessions WHERE id \
                 = i.session), i.run, coalesce((SELECT id FROM runs WHERE id = i.run AND turn IS \
                 NOT NULL), i.begun_run), i.died FROM inputs i JOIN events e ON e.position = \
                 i.position JOIN events d ON d.position = i.died WHERE i.state = 'dead' AND i.died \
                 < ?2 ORDER BY i.died DESC LIMIT ?1",
                [rows(limit), before.map_or(i64::MAX, int)],
                dead_input,
            )?;
            Ok(inputs.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns a dead letter; none when there is no such input, or it is not one.
    pub async fn dead_input(&self, id: InputId) -> Result<Option<DeadInput>, ReadError> {
        self.read(move |sql| {
            let found = sql.row(
                "SELECT e.kind, e.payload, d.kind, d.payload, (SELECT agent FROM sessions WHERE id \
                 = i.session), i.run, coalesce((SELECT id FROM runs WHERE id = i.run AND turn IS \
                 NOT NULL), i.begun_run), i.died FROM inputs i JOIN events e ON e.position = \
                 i.position JOIN events d ON d.position = i.died WHERE i.id = ?1 AND i.state = \
                 'dead'",
                [id.to_string()],
                dead_input,
            )?;
            Ok(found.flatten())
        })
        .await
    }
}

fn dead_input(row: &Row<'_>) -> rusqlite::Result<Option<DeadInput>> {
    let Some((accepted, dead)) = accepted(row, 0)?.zip(dead(row, 2)?) else {
        return Ok(None);
    };
    let begun: Option<RunId> = row.id_opt(6)?;
    Ok(Some(DeadInput {
        dead,
        accepted,
        agent: row.id_opt(4)?,
        run: begun.or(row.id_opt(5)?),
        begun: begun.is_some(),
        position: row.uint(7)?,
    }))
}

fn reason(sql: &Sql<'_>, died: Option<u64>) -> rusqlite::Result<String> {
    let dead = sql.row(
        "SELECT kind, payload FROM events WHERE position = ?1",
        [died.map(int)],
        |row| dead(row, 0),
    )?;
    Ok(dead.flatten().map(|dead| dead.reason).unwrap_or_default())
}

fn accepted(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<InputAccepted>> {
    match decode_at(row, column)? {
        Some(Event::InputAccepted(accepted)) => Ok(Some(accepted)),
        None => Ok(None),
        Some(_) => Err(unreadable(column, "an input points to another event")),
    }
}

fn dead(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<InputDead>> {
    match decode_at(row, column)? {
        Some(Event::InputDead(dead)) => Ok(Some(dead)),
        None => Ok(None),
        Some(_) => Err(unreadable(column, "a dead input points to another event")),
    }
}
