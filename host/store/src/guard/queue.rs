//! Guards on the inputs of a session: the waiting ones, their number, and dropped ones.

use super::question::{Answers, Question, Questions, ask};
use super::session::AcceptanceStatus;
use super::{Condition, Footprint, Resource, unless};
use crate::query::{Query, Rows, Value};
use crate::read::queue::{read_status, status_query};
use crate::sql::{self, Columns};
use domain::id::{InputId, RunId, SessionId};
use domain::queue::{Overflow, OverflowNotice};
use domain::time::Timestamp;
use domain::user::UserId;

/// Condition on the inputs of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueGuard {
    /// No message waits in the session that would join its run
    /// ([`domain::queue::WaitKind::Steer`]), except those that the commit itself claims. A reminder
    /// counts once it is due. Messages that wait for the end of the run do not prevent it.
    NothingWaiting {
        /// The session.
        session: SessionId,
        /// The user whose messages count; none for all users.
        user: Option<UserId>,
        /// The current time.
        now: Timestamp,
        /// Inputs that the commit itself claims.
        except: Vec<InputId>,
    },
    /// At most so many inputs of the session wait before this commit, reminders included.
    WaitingAtMost {
        /// The session.
        session: SessionId,
        /// Maximum number of inputs.
        max: u64,
    },
    /// The thread of the session has at most so many messages before this commit, with those that
    /// wait. Messages of an open run are not counted yet.
    MessagesAtMost {
        /// The session.
        session: SessionId,
        /// Maximum number of messages.
        max: u64,
    },
    /// The session was active after some time, has an open run, or has an input that waits,
    /// reminders included, before this commit.
    ActiveAfter {
        /// The session.
        session: SessionId,
        /// The time.
        after: Timestamp,
    },
    /// The session's queue is still as it was read ([`crate::Store::queue`]), when the placement of
    /// the input was decided.
    Unchanged {
        /// The session.
        session: SessionId,
        /// The state of the queue as it was read.
        seen: Box<QueueSeen>,
    },
    /// The unreported drops from the session's queue amount to this notice, which is none without
    /// any.
    Unreported {
        /// The session.
        session: SessionId,
        /// The notice.
        notice: Option<OverflowNotice>,
    },
    /// The input was accepted and waits.
    InputWaiting(InputId),
    /// The input was put aside as a dead letter.
    InputDead(InputId),
    /// The input was put aside as a dead letter, and this is the latest run that claimed it and
    /// left a turn. Its effects would be repeated.
    InputDeadAfter {
        /// The input.
        input: InputId,
        /// The run; none if none left a turn.
        begun: Option<RunId>,
    },
}

/// State of the queue that the acceptance of an input depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSeen {
    /// The run that is open.
    pub run: Option<RunId>,
    /// True if the session holds its agent's slot and waits for its client.
    pub awaits_client: bool,
    /// The inputs of the queue proper ([`domain::queue::WaitKind::Queued`]), in the order of their
    /// acceptance.
    pub queued: Vec<InputId>,
    /// Dropped inputs that no turn has reported yet.
    pub overflow: Overflow,
}

impl Condition for QueueGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::NothingWaiting {
                session,
                user,
                now,
                except,
            } => ask(
                "SELECT id FROM inputs WHERE session_number = (SELECT number FROM sessions WHERE \
                 id = ?1) AND state = 'waiting' AND words AND (due IS NULL OR due <= ?2) AND \
                 (wait_kind IS NULL OR wait_kind = 'steer') AND (?4 IS \
                 NULL OR user_id = ?4) ORDER BY position LIMIT ?3",
                [
                    Value::id(session),
                    Value::number(now.0),
                    Value::number(except.len() as u64 + 1),
                    user.as_ref()
                        .map_or(Value::Null, |user| Value::text(user.as_str())),
                ],
            ),
            Self::WaitingAtMost { session, .. } => {
                [Some(Question::AcceptanceStatus(*session)), None]
            }
            Self::MessagesAtMost { session, .. } => ask(
                "SELECT head_message + (SELECT count(*) FROM inputs i WHERE i.session_number = \
                 sessions.number AND i.state = 'waiting' AND i.words) FROM sessions WHERE id = ?1",
                [Value::id(session)],
            ),
            Self::ActiveAfter { session, .. } => ask(
                "SELECT updated_at, open_run IS NOT NULL OR EXISTS (SELECT 1 FROM inputs i WHERE \
                 i.session_number = sessions.number AND i.state = 'waiting') FROM sessions WHERE \
                 id = ?1",
                [Value::id(session)],
            ),
            Self::Unchanged { session, .. } => [
                Some(Question::Other(status_query(*session))),
                Some(Question::Other(Query::new(
                    "SELECT id FROM inputs WHERE session_number = (SELECT number FROM sessions \
                     WHERE id = ?1) AND state = 'waiting' AND wait_kind = 'queued' ORDER BY position",
                    [Value::id(session)],
                ))),
            ],
            Self::Unreported { session, .. } => ask(
                "SELECT overflow FROM sessions WHERE id = ?1",
                [Value::id(session)],
            ),
            Self::InputWaiting(input) | Self::InputDead(input) => {
                ask("SELECT state FROM inputs WHERE id = ?1", [Value::id(input)])
            }
            Self::InputDeadAfter { input, .. } => ask(
                "SELECT i.state, coalesce((SELECT id FROM runs WHERE id = i.run AND turn IS NOT \
                 NULL), i.begun_run) FROM inputs i WHERE i.id = ?1",
                [Value::id(input)],
            ),
        }
    }

    fn judge(&self, answers: &Answers) -> sql::Result<Option<String>> {
        let [rows, queued] = answers;
        Ok(match self {
            Self::NothingWaiting { except, .. } => {
                for row in rows.iter() {
                    let input: InputId = row.get(0)?;
                    if !except.contains(&input) {
                        return Ok(Some(format!("input {input} waits")));
                    }
                }
                None
            }
            Self::WaitingAtMost { max, .. } => {
                let session_status = rows.first().map(AcceptanceStatus::from_row).transpose()?;
                let waiting = session_status.map_or(0, |session_status| session_status.waiting);
                unless(waiting <= *max, || format!("{waiting} wait"))
            }
            Self::MessagesAtMost { max, .. } => {
                let messages = rows.first().map(|row| row.uint(0)).transpose()?;
                let messages = messages.unwrap_or(0);
                unless(messages <= *max, || format!("it has {messages} messages"))
            }
            Self::ActiveAfter { after, .. } => match rows.first() {
                Some(row) => {
                    let updated_at = Timestamp(row.uint(0)?);
                    let is_busy: bool = row.get(1)?;
                    unless(is_busy || updated_at > *after, || {
                        format!("it has been idle since {updated_at}")
                    })
                }
                None => Some("there is no such session".to_owned()),
            },
            Self::Unchanged { seen, .. } => {
                let queued = queued.iter().map(|row| row.get::<InputId>(0));
                let found = match read_status(rows)? {
                    Some(found) => Some(QueueSeen {
                        queued: queued.collect::<sql::Result<_>>()?,
                        ..found
                    }),
                    None => None,
                };
                unless(found.as_ref() == Some(&**seen), || {
                    "what waits in it has changed".to_owned()
                })
            }
            Self::Unreported { notice, .. } => {
                let overflow: Option<Overflow> = match rows.first() {
                    Some(row) => row.json_opt(0)?,
                    None => None,
                };
                let there = overflow.and_then(|overflow| overflow.notice());
                unless(there == *notice, || {
                    "something else is to be told".to_owned()
                })
            }
            Self::InputWaiting(_) => other_state(rows, "waiting")?,
            Self::InputDead(_) => other_state(rows, "dead")?,
            Self::InputDeadAfter { begun, .. } => match other_state(rows, "dead")? {
                Some(other) => Some(other),
                None => other_turn(rows, *begun)?,
            },
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::NothingWaiting { session, .. }
            | Self::WaitingAtMost { session, .. }
            | Self::MessagesAtMost { session, .. }
            | Self::ActiveAfter { session, .. }
            | Self::Unchanged { session, .. }
            | Self::Unreported { session, .. } => vec![Resource::Session(*session)],
            Self::InputWaiting(input)
            | Self::InputDead(input)
            | Self::InputDeadAfter { input, .. } => vec![Resource::Input(*input)],
        }
    }
}

/// Describes that an input began another turn than `begun`.
fn other_turn(rows: &Rows, begun: Option<RunId>) -> sql::Result<Option<String>> {
    let found = rows
        .first()
        .map(|row| row.get::<Option<RunId>>(1))
        .transpose()?;
    Ok(unless(found.flatten() == begun, || {
        "another turn had begun with it".to_owned()
    }))
}

/// Describes the state of an input when it is not the wanted one.
fn other_state(rows: &Rows, wanted: &str) -> sql::Result<Option<String>> {
    let state = rows.first().map(|row| row.text(0)).transpose()?;
    Ok(unless(state == Some(wanted), || {
        format!("it is {}", state.unwrap_or("not there"))
    }))
}
