//! A session's status: whether it takes messages, and how many wait.

use crate::query::{Query, Row, Value};
use crate::sql::{self, Columns, unreadable};
use domain::id::SessionId;
use std::str::FromStr;

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
