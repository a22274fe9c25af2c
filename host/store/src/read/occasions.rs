//! Occasions of triggers: those that are open, and the history.

use super::ReadError;
use crate::event_row::decode_at;
use crate::sql::{Columns, int, limit as rows, unreadable};
use crate::store::Store;
use domain::event::{
    Event, OccasionAccepted, OccasionFailed, OccasionsSkipped, PostedMessage, TriggerFired,
    TriggerPosted,
};
use domain::id::{OccasionId, SessionId};
use domain::time::Timestamp;
use domain::trigger::{Occasion, TriggerName};
use domain::user::UserId;
use rusqlite::{Row, params};
use std::str::FromStr;

/// The state of an occasion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccasionState {
    /// Accepted: its trigger is to be fired.
    Waiting,
    /// Its trigger was fired: the messages are to be handed over.
    Fired,
    /// Dealt with.
    Done,
    /// The component rejected it.
    Rejected,
    /// Given up after its failures, or because its trigger was removed while it was not fired.
    GivenUp,
}

impl OccasionState {
    /// The state as a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Fired => "fired",
            Self::Done => "done",
            Self::Rejected => "rejected",
            Self::GivenUp => "given_up",
        }
    }

    /// Returns whether something is still to be done.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Fired)
    }
}

impl FromStr for OccasionState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [
            Self::Waiting,
            Self::Fired,
            Self::Done,
            Self::Rejected,
            Self::GivenUp,
        ]
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or_else(|| format!("`{text}` is no state of an occasion"))
    }
}

/// An occasion with what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct OccasionRow {
    /// Its id.
    pub occasion: OccasionId,
    /// The trigger.
    pub trigger: TriggerName,
    /// The occasion itself.
    pub what: Box<Occasion>,
    /// True if it is one of its trigger's schedule.
    pub scheduled: bool,
    /// The user who asked for it, for one that was run by hand.
    pub run_by: Option<UserId>,
    /// Time of acceptance.
    pub accepted: Timestamp,
    /// Position of the event of its acceptance.
    pub position: u64,
    /// Its state.
    pub state: OccasionState,
    /// Number of the latest attempt that failed.
    pub attempts: u32,
    /// Time before which it is not tried.
    pub not_before: Timestamp,
    /// The firing that acknowledged it.
    pub fired: Option<Box<TriggerFired>>,
    /// The outcomes of the messages, in their order.
    pub posted: Option<Vec<PostedMessage>>,
    /// The latest failure.
    pub last_error: Option<String>,
    /// True if its trigger was reported as stuck with it.
    pub stuck: bool,
}

/// An entry of a trigger's history.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerRecord {
    /// An occasion.
    Occasion(Box<OccasionRow>),
    /// Occasions that were passed over.
    Skipped {
        /// The record of them.
        skipped: OccasionsSkipped,
        /// Position of the event that says so.
        position: u64,
    },
}

impl TriggerRecord {
    /// Returns the position by which the history is read on.
    #[must_use]
    pub fn position(&self) -> u64 {
        match self {
            Self::Occasion(row) => row.position,
            Self::Skipped { position, .. } => *position,
        }
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT a.kind, a.payload, f.kind, f.payload, p.kind, p.payload, l.kind, l.payload, \
             o.position, o.state, o.attempts, o.next_try, o.stuck FROM occasions o CROSS JOIN \
             events a ON a.position = o.position LEFT JOIN events f ON f.position = o.fired LEFT \
             JOIN events p ON p.position = o.posted LEFT JOIN events l ON l.position = o.failed ",
            $rest
        )
    };
}

impl Store {
    /// Returns open occasions that may be dealt with now, those that wait longest first, at most
    /// `limit`: of each trigger only the oldest. Triggers that are paused, disabled or held up by
    /// their breaker are not fired; messages of those that were fired are still handed over.
    pub async fn open_occasions(
        &self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<OccasionRow>, ReadError> {
        self.read(move |sql| {
            let found = sql.rows(
                select!(
                    "WHERE o.is_first = 1 AND o.next_try <= ?1 AND (o.state = 'fired' OR EXISTS \
                     (SELECT 1 FROM triggers t WHERE t.name = o.trigger_name AND t.enabled = 1 AND \
                     t.paused IS NULL AND (t.open_until IS NULL OR t.open_until <= ?1))) ORDER BY \
                     o.next_try LIMIT ?2"
                ),
                params![int(now.0), rows(limit)],
                read_occasion,
            )?;
            Ok(found.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns the earliest time after `now` at which an open occasion may have to be dealt with:
    /// the time of its next attempt, or that at which a breaker lets its trigger be tried.
    pub async fn next_occasion_after(
        &self,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ReadError> {
        self.read(move |sql| {
            let attempt = "SELECT next_try FROM occasions WHERE is_first = 1 AND next_try > ?1 \
                           ORDER BY next_try LIMIT 1";
            let breaker = "SELECT open_until FROM triggers WHERE open_until > ?1 ORDER BY \
                           open_until LIMIT 1";
            let mut times = Vec::new();
            for text in [attempt, breaker] {
                times.extend(sql.row(text, [int(now.0)], |row| row.uint(0))?);
            }
            Ok(times.into_iter().min().map(Timestamp))
        })
        .await
    }

    /// Returns the open occasions of a trigger, the oldest first, at most `limit`.
    pub async fn open_occasions_of(
        &self,
        trigger: &TriggerName,
        limit: usize,
    ) -> Result<Vec<OccasionRow>, ReadError> {
        let trigger = trigger.to_string();
        self.read(move |sql| {
            let found = sql.rows(
                select!(
                    "WHERE o.trigger_name = ?1 AND o.state IN ('waiting', 'fired') ORDER BY \
                     o.position LIMIT ?2"
                ),
                params![trigger, rows(limit)],
                read_occasion,
            )?;
            Ok(found.into_iter().flatten().collect())
        })
        .await
    }

    /// Returns the number of a trigger's open occasions.
    pub async fn pending_occasions(&self, trigger: &TriggerName) -> Result<u64, ReadError> {
        let trigger = trigger.to_string();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM occasions WHERE trigger_name = ?1 AND state IN ('waiting', \
                 'fired')",
                [trigger],
            )
        })
        .await
    }

    /// Returns an occasion; none when it was never accepted, or erased.
    pub async fn occasion(&self, id: OccasionId) -> Result<Option<OccasionRow>, ReadError> {
        self.point_read(move |sql| {
            let found = sql.row(select!("WHERE o.id = ?1"), [id.to_string()], read_occasion)?;
            Ok(found.flatten())
        })
        .await
    }

    /// Returns the latest occasion of which a message went to a session; none when there is none.
    pub async fn occasion_of_session(
        &self,
        session: SessionId,
    ) -> Result<Option<OccasionId>, ReadError> {
        self.point_read(move |sql| {
            let found = sql.row(
                "SELECT max(occasion) FROM occasion_sessions WHERE session = ?1",
                [session.to_string()],
                |row| row.get::<_, Option<String>>(0),
            )?;
            Ok(found.flatten().and_then(|id| id.parse().ok()))
        })
        .await
    }

    /// Returns the history of a trigger, also of a removed one, the latest first, at most `limit`:
    /// what is before the position `before`; everything without one.
    pub async fn occasions_of(
        &self,
        trigger: &TriggerName,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TriggerRecord>, ReadError> {
        let trigger = trigger.to_string();
        self.read(move |sql| {
            let found = sql.rows(
                select!(
                    "WHERE o.trigger_name = ?1 AND o.position < ?2 ORDER BY o.position DESC LIMIT \
                     ?3"
                ),
                params![trigger, before.map_or(i64::MAX, int), rows(limit)],
                read_record,
            )?;
            Ok(found.into_iter().flatten().collect())
        })
        .await
    }
}

/// Reads an entry of a history; none when it is about to be erased.
fn read_record(row: &Row<'_>) -> rusqlite::Result<Option<TriggerRecord>> {
    Ok(match decode_at(row, 0)? {
        Some(Event::OccasionAccepted(accepted)) => {
            let row = with_outcome(row, accepted)?;
            Some(TriggerRecord::Occasion(Box::new(row)))
        }
        Some(Event::OccasionsSkipped(skipped)) => Some(TriggerRecord::Skipped {
            skipped,
            position: row.uint(8)?,
        }),
        None => None,
        Some(_) => return Err(unreadable(0, "an occasion points to another event")),
    })
}

/// Reads an occasion; none when it is about to be erased.
fn read_occasion(row: &Row<'_>) -> rusqlite::Result<Option<OccasionRow>> {
    match decode_at(row, 0)? {
        Some(Event::OccasionAccepted(accepted)) => with_outcome(row, accepted).map(Some),
        None => Ok(None),
        Some(_) => Err(unreadable(0, "an occasion points to another event")),
    }
}

fn with_outcome(row: &Row<'_>, accepted: OccasionAccepted) -> rusqlite::Result<OccasionRow> {
    let state = row.text(9)?.parse();
    Ok(OccasionRow {
        occasion: accepted.occasion,
        trigger: accepted.name,
        what: accepted.what,
        scheduled: accepted.scheduled,
        run_by: accepted.run_by,
        accepted: accepted.time,
        position: row.uint(8)?,
        state: state.map_err(|error: String| unreadable(9, error))?,
        attempts: row.get(10)?,
        not_before: Timestamp(row.uint(11)?),
        fired: fired(row)?.map(Box::new),
        posted: posted(row)?.map(|posted| posted.results),
        last_error: failed(row)?.map(|failed| failed.error),
        stuck: row.get(12)?,
    })
}

fn fired(row: &Row<'_>) -> rusqlite::Result<Option<TriggerFired>> {
    match event_at(row, 2)? {
        Some(Event::TriggerFired(fired)) => Ok(Some(fired)),
        None => Ok(None),
        Some(_) => Err(unreadable(2, "a firing is another event")),
    }
}

fn posted(row: &Row<'_>) -> rusqlite::Result<Option<TriggerPosted>> {
    match event_at(row, 4)? {
        Some(Event::TriggerPosted(posted)) => Ok(Some(posted)),
        None => Ok(None),
        Some(_) => Err(unreadable(4, "what was handed over is another event")),
    }
}

fn failed(row: &Row<'_>) -> rusqlite::Result<Option<OccasionFailed>> {
    match event_at(row, 6)? {
        Some(Event::OccasionFailed(failed)) => Ok(Some(failed)),
        None => Ok(None),
        Some(_) => Err(unreadable(6, "a failure is another event")),
    }
}

/// Reads the event whose kind and payload begin at a column; none where there is no row of it.
fn event_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Event>> {
    match row.text_opt(column)? {
        Some(_) => decode_at(row, column),
        None => Ok(None),
    }
}
