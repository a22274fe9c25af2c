//! Events of triggers: those that are open, and the history.

use super::ReadError;
use crate::event_row::StoredEvent;
use crate::sql::{self, args, int, named, row, select, unreadable};
use crate::sqlite::texts;
use crate::store::Store;
use domain::event::{
    Event, PostedMessage, TriggerEventAccepted, TriggerEventsSkipped, TriggerFired,
};
use domain::id::{SessionId, TriggerEventId};
use domain::time::Timestamp;
use domain::trigger::{TriggerEvent, TriggerName};
use domain::user::UserId;
use serde_json::json;

/// The state of a trigger event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriggerEventState {
    /// Accepted. Its trigger has not been fired yet.
    Waiting,
    /// Its trigger was fired, and its messages have to be handed over.
    Fired,
    /// Dealt with.
    Done,
    /// The component rejected it.
    Rejected,
    /// Given up after its failures, or because its trigger was removed while it was not fired.
    GivenUp,
}

domain::words!(TriggerEventState {
    Waiting = "waiting",
    Fired = "fired",
    Done = "done",
    Rejected = "rejected",
    GivenUp = "given_up",
});

impl TriggerEventState {
    /// Returns whether it still needs processing.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Fired)
    }
}

/// A trigger event with its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerEventRow {
    /// Its id.
    pub trigger_event: TriggerEventId,
    /// The trigger.
    pub trigger: TriggerName,
    /// The trigger event itself.
    pub what: Box<TriggerEvent>,
    /// True if it comes from its trigger's schedule.
    pub scheduled: bool,
    /// The user who ran the trigger by hand; none for any other trigger event.
    pub run_by: Option<UserId>,
    /// Time of acceptance.
    pub accepted: Timestamp,
    /// Position of the event of its acceptance.
    pub position: u64,
    /// Its state.
    pub state: TriggerEventState,
    /// Number of the latest attempt that failed.
    pub attempts: u32,
    /// Time of the next attempt at the earliest.
    pub not_before: Timestamp,
    /// The trigger run that acknowledged it.
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
    /// A trigger event.
    TriggerEvent(Box<TriggerEventRow>),
    /// Trigger events that were passed over.
    Skipped {
        /// The record of them.
        skipped: TriggerEventsSkipped,
        /// Position of the event that records it.
        position: u64,
    },
}

impl TriggerRecord {
    /// Returns the position by which the history is read on.
    #[must_use]
    pub fn position(&self) -> u64 {
        match self {
            Self::TriggerEvent(row) => row.position,
            Self::Skipped { position, .. } => *position,
        }
    }
}

row! {
    /// A trigger event as it is stored. Its content and its outcome are in events.
    struct StoredTriggerEvent
        from
            "trigger_events o CROSS JOIN events a ON a.position = o.position LEFT JOIN events f ON \
             f.position = o.fired LEFT JOIN events p ON p.position = o.posted LEFT JOIN events l \
             ON l.position = o.failed"
    {
        accepted: StoredEvent as row = "a.kind, a.payload",
        fired: StoredEvent as row = "f.kind, f.payload",
        posted: StoredEvent as row = "p.kind, p.payload",
        failed: StoredEvent as row = "l.kind, l.payload",
        position: u64 = "o.position",
        state: String = "o.state",
        attempts: u32 = "o.attempts",
        next_try: Timestamp = "o.next_try",
        stuck: bool = "o.stuck",
    }
}

impl Store {
    /// Returns open trigger events that may be processed now, the longest waiting first, at most
    /// `limit`: of each trigger only the oldest, and none of the triggers in `without`. Triggers
    /// that are paused, disabled or blocked by their breaker are not fired; messages of earlier
    /// trigger runs are still handed over.
    pub async fn open_trigger_events(
        &self,
        now: Timestamp,
        limit: usize,
        without: &[&TriggerName],
    ) -> Result<Vec<TriggerEventRow>, ReadError> {
        let without = json!(without).to_string();
        self.read(move |sql| {
            sql.all_there(
                select!(
                    StoredTriggerEvent,
                    "WHERE o.is_first = 1 AND o.next_try <= :now AND o.trigger_name NOT IN ",
                    texts!(":without"),
                    " AND (o.state = 'fired' OR EXISTS (SELECT 1 FROM triggers t WHERE t.name = \
                     o.trigger_name AND t.enabled = 1 AND t.paused IS NULL AND (t.open_until IS \
                     NULL OR t.open_until <= :now))) ORDER BY o.next_try LIMIT :limit"
                ),
                named![now, limit, without],
                StoredTriggerEvent::trigger_event,
            )
        })
        .await
    }

    /// Returns the earliest time after `now` at which an open trigger event may have to be
    /// processed: the time of its next attempt, or that at which a breaker lets its trigger be
    /// tried.
    pub async fn next_trigger_event_after(
        &self,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ReadError> {
        self.read(move |sql| {
            let attempt = "SELECT next_try FROM trigger_events WHERE is_first = 1 AND next_try > ?1 \
                           ORDER BY next_try LIMIT 1";
            let breaker = "SELECT open_until FROM triggers WHERE open_until > ?1 ORDER BY \
                           open_until LIMIT 1";
            let mut times = Vec::new();
            for text in [attempt, breaker] {
                times.extend(sql.one::<u64>(text, [now])?);
            }
            Ok(times.into_iter().min().map(Timestamp))
        })
        .await
    }

    /// Returns the open events of a trigger, the oldest first, at most `limit`.
    pub async fn open_trigger_events_of(
        &self,
        trigger: &TriggerName,
        limit: usize,
    ) -> Result<Vec<TriggerEventRow>, ReadError> {
        let trigger = trigger.to_string();
        self.read(move |sql| {
            sql.all_there(
                select!(
                    StoredTriggerEvent,
                    "WHERE o.trigger_name = ?1 AND o.state IN ('waiting', 'fired') ORDER BY \
                     o.position LIMIT ?2"
                ),
                args![trigger, limit],
                StoredTriggerEvent::trigger_event,
            )
        })
        .await
    }

    /// Returns the number of a trigger's open trigger events.
    pub async fn pending_trigger_events(&self, trigger: &TriggerName) -> Result<u64, ReadError> {
        let trigger = trigger.to_string();
        self.point_read(move |sql| {
            sql.number(
                "SELECT count(*) FROM trigger_events WHERE trigger_name = ?1 AND state IN ('waiting', \
                 'fired')",
                [trigger],
            )
        })
        .await
    }

    /// Returns a trigger event; none when it was never accepted, or erased.
    pub async fn trigger_event(
        &self,
        id: TriggerEventId,
    ) -> Result<Option<TriggerEventRow>, ReadError> {
        self.point_read(move |sql| {
            sql.one_there(
                select!(StoredTriggerEvent, "WHERE o.id = ?1"),
                [id],
                StoredTriggerEvent::trigger_event,
            )
        })
        .await
    }

    /// Returns the latest trigger event with a message to a session; none if the session got no
    /// such message.
    pub async fn trigger_event_of_session(
        &self,
        session: SessionId,
    ) -> Result<Option<TriggerEventId>, ReadError> {
        self.point_read(move |sql| {
            sql.one(
                "SELECT trigger_event FROM trigger_event_sessions WHERE session = ?1 ORDER BY trigger_event DESC \
                 LIMIT 1",
                [session],
            )
        })
        .await
    }

    /// Returns the history of a trigger, also of a removed one, the latest first, at most `limit`.
    /// It contains the entries before the position `before`, or all of them without one.
    pub async fn trigger_events_of(
        &self,
        trigger: &TriggerName,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<TriggerRecord>, ReadError> {
        let trigger = trigger.to_string();
        self.read(move |sql| {
            let text = select!(
                StoredTriggerEvent,
                "WHERE o.trigger_name = :trigger AND o.position < :before ORDER BY o.position DESC \
                 LIMIT :limit"
            );
            let before = before.map_or(i64::MAX, int);
            let params = named![trigger, before, limit];
            sql.all_there(text, params, StoredTriggerEvent::record)
        })
        .await
    }
}

impl StoredTriggerEvent {
    /// Returns the entry of a history; none if it is about to be erased.
    fn record(mut self) -> sql::Result<Option<TriggerRecord>> {
        match self.accepted.0.take() {
            Some(Event::TriggerEventAccepted(accepted)) => {
                let row = self.with_outcome(accepted)?;
                Ok(Some(TriggerRecord::TriggerEvent(Box::new(row))))
            }
            Some(Event::TriggerEventsSkipped(skipped)) => Ok(Some(TriggerRecord::Skipped {
                skipped,
                position: self.position,
            })),
            None => Ok(None),
            Some(_) => Err(unreadable(
                "kind",
                "the row of a trigger event names an event of another kind",
            )),
        }
    }

    /// Returns the trigger event; none if it is about to be erased.
    fn trigger_event(self) -> sql::Result<Option<TriggerEventRow>> {
        match self.record()? {
            Some(TriggerRecord::TriggerEvent(row)) => Ok(Some(*row)),
            None => Ok(None),
            Some(TriggerRecord::Skipped { .. }) => Err(unreadable(
                "kind",
                "the row of a trigger event names an event of another kind",
            )),
        }
    }

    fn with_outcome(self, accepted: TriggerEventAccepted) -> sql::Result<TriggerEventRow> {
        let fired = self.fired.only(
            |event| match event {
                Event::TriggerFired(fired) => Some(fired),
                _ => None,
            },
            "the row of a trigger run names an event of another kind",
        )?;
        let posted = self.posted.only(
            |event| match event {
                Event::TriggerPosted(posted) => Some(posted.results),
                _ => None,
            },
            "what was handed over is another event",
        )?;
        let last_error = self.failed.only(
            |event| match event {
                Event::TriggerEventFailed(failed) => Some(failed.error),
                _ => None,
            },
            "a failure is another event",
        )?;
        Ok(TriggerEventRow {
            trigger_event: accepted.trigger_event,
            trigger: accepted.name,
            what: accepted.what,
            scheduled: accepted.scheduled,
            run_by: accepted.run_by,
            accepted: accepted.time,
            position: self.position,
            state: TriggerEventState::from_word(&self.state)
                .ok_or_else(|| unreadable("state", "it is no state of a trigger event"))?,
            attempts: self.attempts,
            not_before: self.next_try,
            fired: fired.map(Box::new),
            posted,
            last_error,
            stuck: self.stuck,
        })
    }
}
