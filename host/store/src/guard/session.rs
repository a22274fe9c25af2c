//! Guards on a session: whether it is open, its head, its items and its files.

use super::question::{Answers, Question, Questions, ask};
use super::{Condition, Footprint, Resource, unless};
use crate::query::{Query, Row, Value};
use crate::read::queue::{read_waits, waits_query};
use crate::read::trees::shown_query;
use crate::sql::{self, Columns, unreadable};
use domain::digest::Digest;
use domain::dispatch::waits::circle;
use domain::id::{ConversationId, RunId, SessionId, TurnId};
use domain::user::UserId;
use std::str::FromStr;

/// Condition on a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionGuard {
    /// The session exists and no run of it is open.
    NoOpenRun(SessionId),
    /// The session's head and revision are still these.
    Head {
        /// The session.
        session: SessionId,
        /// Its head.
        head: Option<TurnId>,
        /// Its revision.
        revision: u64,
    },
    /// The session exists and was neither completed nor terminated, and its agent is not archived.
    Open(SessionId),
    /// The session exists and was not deleted, and its agent is not archived.
    Exists(SessionId),
    /// The session has no file of this content and name.
    FileAbsent {
        /// The session.
        session: SessionId,
        /// The content.
        digest: Digest,
        /// The name.
        name: String,
    },
    /// The session has at most this number of files, with at most this total of bytes, before this
    /// commit.
    FilesAtMost {
        /// The session.
        session: SessionId,
        /// Maximum number of files.
        files: u64,
        /// Maximum number of bytes.
        bytes: u64,
    },
    /// The awaited session does not wait for the waiting one, directly or through others. Only open
    /// operations count.
    MayWait {
        /// The session that is to wait.
        session: SessionId,
        /// The session that it would wait for.
        for_session: SessionId,
    },
    /// No session of another user was opened in the conversation since it was last checked.
    ConversationOf {
        /// The conversation.
        conversation: ConversationId,
        /// The user.
        user: UserId,
        /// The position of the last event before that check.
        since: u64,
    },
    /// The session exists and was not deleted, and the turn is in its thread or was made in it: no
    /// purge takes the turn away.
    Shows {
        /// The session.
        session: SessionId,
        /// The turn.
        turn: TurnId,
    },
}

impl Condition for SessionGuard {
    fn questions(&self) -> Questions<'_> {
        match self {
            Self::NoOpenRun(session) => ask(
                "SELECT open_run FROM sessions WHERE id = ?1",
                [Value::id(session)],
            ),
            Self::Head { session, .. } => ask(
                "SELECT head, revision FROM sessions WHERE id = ?1",
                [Value::id(session)],
            ),
            Self::Open(session) => [Some(Question::AcceptanceStatus(*session)), None],
            Self::Exists(session) => ask(
                "SELECT 1 FROM sessions JOIN agents ON agents.id = sessions.agent WHERE \
                 sessions.id = ?1 AND sessions.status != 'deleted' AND agents.active",
                [Value::id(session)],
            ),
            Self::FileAbsent {
                session,
                digest,
                name,
            } => ask(
                "SELECT 1 FROM files WHERE session = ?1 AND digest = ?2 AND name = ?3",
                [Value::id(session), Value::digest(digest), Value::text(name)],
            ),
            Self::FilesAtMost { session, .. } => ask(
                "SELECT count(*), coalesce(sum(bytes), 0) FROM files WHERE session = ?1",
                [Value::id(session)],
            ),
            Self::MayWait { for_session, .. } => {
                [Some(Question::Other(waits_query(*for_session))), None]
            }
            // The number of a session is the position of its first event.
            Self::ConversationOf {
                conversation,
                user,
                since,
            } => ask(
                "SELECT 1 FROM sessions WHERE number > ?1 AND conversation = ?2 AND user_id != ?3",
                [
                    Value::number(*since),
                    Value::id(conversation),
                    Value::text(user.as_str()),
                ],
            ),
            Self::Shows { session, turn } => {
                [Some(Question::Other(shown_query(*session, turn))), None]
            }
        }
    }

    fn judge(&self, [rows, _]: &Answers) -> sql::Result<Option<String>> {
        Ok(match self {
            Self::NoOpenRun(_) => match rows.first() {
                Some(row) => {
                    let run: Option<RunId> = row.get(0)?;
                    run.map(|run| format!("run {run} is open"))
                }
                None => Some(NO_SESSION.to_owned()),
            },
            Self::Head { head, revision, .. } => match rows.first() {
                Some(row) => {
                    let found = row.digest_opt(0)?.map(TurnId);
                    let found_revision = row.uint(1)?;
                    unless(found == *head && found_revision == *revision, || {
                        format!("its head is {found:?} at revision {found_revision}")
                    })
                }
                None => Some(NO_SESSION.to_owned()),
            },
            Self::Open(_) => {
                let session_status = rows.first().map(AcceptanceStatus::from_row).transpose()?;
                let status = session_status.map(|session_status| session_status.status);
                unless(status == Some(Status::Open), || {
                    format!("it is {}", status.map_or("not there", Status::as_str))
                })
            }
            Self::Exists(_) => unless(!rows.is_empty(), || "it is not there".to_owned()),
            Self::FileAbsent { .. } => unless(rows.is_empty(), || "it is there".to_owned()),
            Self::FilesAtMost { files, bytes, .. } => {
                let found_files = rows.number()?;
                let found_bytes = rows.first().map_or(Ok(0), |row| row.uint(1))?;
                unless(found_files <= *files && found_bytes <= *bytes, || {
                    format!("it has {found_files} of {found_bytes} bytes")
                })
            }
            Self::MayWait {
                session,
                for_session,
            } => circle(&read_waits(rows)?, *session, *for_session)
                .map(|sessions| format!("{} sessions would wait for each other", sessions.len())),
            Self::ConversationOf { .. } => {
                unless(rows.is_empty(), || "it is another user's".to_owned())
            }
            Self::Shows { .. } => unless(rows.number()? > 0, || {
                "it does not show that turn".to_owned()
            }),
        })
    }

    fn footprint(&self) -> Footprint {
        match self {
            Self::NoOpenRun(session)
            | Self::Head { session, .. }
            | Self::Open(session)
            | Self::Exists(session)
            | Self::FileAbsent { session, .. }
            | Self::FilesAtMost { session, .. } => vec![Resource::Session(*session)],
            Self::MayWait {
                session,
                for_session,
            } => vec![
                Resource::Session(*session),
                Resource::Session(*for_session),
                Resource::Waits,
            ],
            Self::ConversationOf { conversation, .. } => {
                vec![Resource::Conversation(*conversation)]
            }
            Self::Shows { session, turn } => {
                vec![Resource::Session(*session), Resource::Turn(*turn)]
            }
        }
    }
}

/// Description of a session that is not there.
const NO_SESSION: &str = "there is no such session";

/// State of a session that decides whether it takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AcceptanceStatus {
    pub(crate) status: Status,
    /// Inputs that wait, reminders included.
    pub(crate) waiting: u64,
    /// True if an open run of the session takes in no messages where it waits.
    pub(crate) is_deaf: bool,
}

/// Status of a session: whether it takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Open,
    OfArchivedAgent,
    Ended,
    Deleted,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::OfArchivedAgent => "of an archived agent",
            Self::Ended => "ended",
            Self::Deleted => "deleted",
        }
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [
            Self::Open,
            Self::OfArchivedAgent,
            Self::Ended,
            Self::Deleted,
        ]
        .into_iter()
        .find(|status| status.as_str() == text)
        .ok_or_else(|| format!("`{text}` is no status of a session"))
    }
}

impl AcceptanceStatus {
    /// The query for a session's status. No row: there is no such session.
    pub(crate) fn query(session: SessionId) -> Query<'static> {
        let text = "SELECT CASE WHEN NOT a.active THEN 'of an archived agent' WHEN a.active AND \
                    s.status = 'open' THEN 'open' WHEN s.status = 'deleted' THEN 'deleted' ELSE \
                    'ended' END, (SELECT count(*) FROM inputs i WHERE i.session_number = s.number \
                    AND i.state = 'waiting'), s.open_run IS NOT NULL AND NOT s.hears FROM sessions \
                    s LEFT JOIN agents a ON a.id = s.agent WHERE s.id = ?1";
        Query::new(text, [Value::id(&session)])
    }

    /// Reads the row that answers [`AcceptanceStatus::query`].
    pub(crate) fn from_row(row: &Row) -> sql::Result<Self> {
        Ok(Self {
            status: row
                .text(0)?
                .parse()
                .map_err(|error: String| unreadable(0, error))?,
            waiting: row.uint(1)?,
            is_deaf: row.get(2)?,
        })
    }

    /// Returns the row that this was read from.
    pub(crate) fn to_row(self) -> Row {
        Row::new([
            Value::text(self.status.as_str()),
            Value::number(self.waiting),
            Value::Integer(self.is_deaf.into()),
        ])
    }
}
