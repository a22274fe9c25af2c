//! The ingress: waiting inputs, dead letters, and the outcome of each input.

use super::ReadError;
use crate::event_row::StoredEvent;
use crate::sql::{self, Sql, args, int, named, row, select, text, unreadable};
use crate::store::Store;
use domain::connector::ReplyRoute;
use domain::event::{Event, InputAccepted, InputDead};
use domain::id::{AgentId, InputId, RunId, SessionId};
use domain::limits::WAITING_INPUTS_MAX;
use domain::time::Timestamp;
use domain::user::UserId;

/// State of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputState {
    /// It waits for a run. A reminder also waits for its due time.
    Waiting,
    /// A run is processing it.
    Claimed {
        /// The run.
        run: RunId,
    },
    /// A run processed it and ended.
    Consumed {
        /// The run.
        run: RunId,
    },
    /// It became a dead letter.
    Dead {
        /// The reason.
        reason: String,
        /// The latest run that processed this input and whose turn was committed; otherwise the run
        /// that claimed it. None if no run was stored for it.
        run: Option<RunId>,
        /// True if that run left a turn: requeueing the input would repeat the turn's effects.
        begun: bool,
    },
    /// It was cancelled while it waited, or as a dead letter.
    Cancelled {
        /// The run that a dead letter would name; none if no run had claimed it.
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
    /// The latest run that claimed it and left a turn; otherwise the latest run that claimed it.
    /// None if no run was stored for it.
    pub run: Option<RunId>,
    /// True if that run left a turn: requeueing the input would repeat the turn's effects.
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
        let inspection = move |sql: &Sql<'_>| {
            let text = text!(
                "SELECT ",
                StoredEvent::COLUMNS,
                " FROM inputs i JOIN events e ON e.position = i.position WHERE i.session_number = \
                 (SELECT number FROM sessions WHERE id = :session) AND i.state = 'waiting' AND \
                 (i.due IS NULL OR i.due <= :now) ORDER BY i.position LIMIT :limit"
            );
            sql.all_there(text, named![session, now, limit], accepted)
        };
        // An inspection of more may wait for the disk.
        if limit <= 2 * WAITING_INPUTS_MAX {
            self.point_read(inspection).await
        } else {
            self.read(inspection).await
        }
    }

    /// Returns an input and its state; none if it was never accepted, or was erased.
    pub async fn input(
        &self,
        id: InputId,
    ) -> Result<Option<(InputAccepted, InputState)>, ReadError> {
        self.point_read(move |sql| {
            let found: Option<StoredInput> =
                sql.one(select!(StoredInput, "WHERE i.id = ?1"), [id])?;
            let Some(input) = found else { return Ok(None) };
            let Some(accepted) = accepted(input.accepted)? else {
                return Ok(None);
            };
            let begun = input.begun;
            let state = match (input.state.as_str(), input.run) {
                ("waiting", _) => InputState::Waiting,
                ("claimed", Some(run)) => InputState::Claimed { run },
                ("consumed", Some(run)) => InputState::Consumed { run },
                ("dead", run) => InputState::Dead {
                    reason: reason(sql, input.died)?,
                    run: begun.or(run),
                    begun: begun.is_some(),
                },
                ("cancelled", run) => InputState::Cancelled {
                    run: begun.or(run),
                    begun: begun.is_some(),
                },
                ("dropped", _) => InputState::Dropped,
                (other, _) => {
                    return Err(unreadable(
                        "state",
                        format!("`{other}` is no state of an input"),
                    ));
                }
            };
            Ok(Some((accepted, state)))
        })
        .await
    }

    /// Returns a user's messages to agents from a chat, each with the position of the event that
    /// accepted it. They are in order, after a position, at most `limit`.
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
            let text = text!(
                "SELECT i.position, ",
                StoredEvent::COLUMNS,
                " FROM sessions s CROSS JOIN inputs i ON i.session = s.id CROSS JOIN events e ON \
                 e.position = i.position WHERE s.user_id = :user AND i.connector = :connector AND \
                 i.chat = :chat AND i.position > :after ORDER BY i.position LIMIT :limit"
            );
            let params = named![user, connector, chat, after, limit];
            sql.all_there(text, params, |(position, event): (u64, StoredEvent)| {
                Ok(accepted(event)?.map(|accepted| (position, accepted)))
            })
        })
        .await
    }

    /// The session of an input, and the position of the event that accepted it.
    pub async fn input_position(&self, id: InputId) -> Result<Option<(SessionId, u64)>, ReadError> {
        self.point_read(move |sql| {
            sql.one::<(_, u64)>("SELECT session, position FROM inputs WHERE id = ?1", [id])
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
            let text = select!(
                StoredDeath,
                "WHERE i.state = 'dead' AND i.died < ?2 ORDER BY i.died DESC LIMIT ?1"
            );
            let before = before.map_or(i64::MAX, int);
            sql.all_there(text, args![limit, before], StoredDeath::read)
        })
        .await
    }

    /// Returns a dead letter; none if the input does not exist or is not dead.
    pub async fn dead_input(&self, id: InputId) -> Result<Option<DeadInput>, ReadError> {
        self.read(move |sql| {
            let text = select!(StoredDeath, "WHERE i.id = ?1 AND i.state = 'dead'");
            sql.one_there(text, [id], StoredDeath::read)
        })
        .await
    }
}

row! {
    /// An input as it is stored. Its content is in the event that accepted it.
    struct StoredInput from "inputs i JOIN events e ON e.position = i.position" {
        accepted: StoredEvent as row,
        state: String = "i.state",
        run: Option<RunId> = "i.run",
        died: Option<u64> = "i.died",
        /// The latest run that claimed it and left a turn.
        begun: Option<RunId> = "coalesce((SELECT id FROM runs WHERE id = i.run AND turn IS NOT \
                                NULL), i.begun_run)",
    }
}

row! {
    /// A dead letter as it is stored.
    struct StoredDeath
        from
            "inputs i JOIN events e ON e.position = i.position JOIN events d ON d.position = \
             i.died"
    {
        accepted: StoredEvent as row,
        dead: StoredEvent as row = "d.kind, d.payload",
        agent: Option<AgentId> = "(SELECT agent FROM sessions WHERE id = i.session)",
        run: Option<RunId> = "i.run",
        begun: Option<RunId> = "coalesce((SELECT id FROM runs WHERE id = i.run AND turn IS NOT \
                                NULL), i.begun_run)",
        died: u64 = "i.died",
    }
}

impl StoredDeath {
    /// Returns the dead letter; none if it is about to be erased.
    fn read(self) -> sql::Result<Option<DeadInput>> {
        let Some((accepted, dead)) = accepted(self.accepted)?.zip(dead(self.dead)?) else {
            return Ok(None);
        };
        Ok(Some(DeadInput {
            dead,
            accepted,
            agent: self.agent,
            run: self.begun.or(self.run),
            begun: self.begun.is_some(),
            position: self.died,
        }))
    }
}

fn reason(sql: &Sql<'_>, died: Option<u64>) -> sql::Result<String> {
    let text = "SELECT kind, payload FROM events WHERE position = ?1";
    let dead = sql.one_there(text, [died], dead)?;
    Ok(dead.map(|dead| dead.reason).unwrap_or_default())
}

fn accepted(stored: StoredEvent) -> sql::Result<Option<InputAccepted>> {
    stored.only(
        |event| match event {
            Event::InputAccepted(accepted) => Some(accepted),
            _ => None,
        },
        "an input points to another event",
    )
}

fn dead(stored: StoredEvent) -> sql::Result<Option<InputDead>> {
    stored.only(
        |event| match event {
            Event::InputDead(dead) => Some(dead),
            _ => None,
        },
        "a dead input points to another event",
    )
}
