//! Purge of a session's traffic with the outside: trigger events, inbound messages and the
//! resulting outbound messages.
//!
//! An event is erased as a whole. Other data that depend on it are first re-emitted in another
//! event ([`ReEmitted`]): when a trigger is due, and its state.

use super::re_emitted::{self, ReEmitted};
use super::room::Room;
use super::{EVENTS_PER_COMMIT_MAX, Store, Tally, erase_event};
use crate::commit::CommitError;
use crate::projections::outbound_messages;
use crate::sql::{self, Sql, args, named, row, select};
use crate::streams;
use domain::id::{ConnectorId, OutboundMessageId, SessionId, Stream, TriggerEventId, TriggerId};

/// Maximum number of trigger events, inbound messages or outbound messages per scan.
const FOUND_MAX: usize = 64;

/// Something that goes, with the events that have it.
#[derive(Debug)]
pub(super) struct Gone<T> {
    pub(super) what: T,
    /// The positions of its events.
    pub(super) events: Vec<u64>,
}

row! {
    /// An event of a trigger.
    #[derive(Debug)]
    pub(super) struct TriggerEvent {
        pub(super) id: TriggerEventId,
        pub(super) trigger: String = "trigger_name",
    }
}

row! {
    /// A message that was sent or will be.
    #[derive(Debug)]
    pub(super) struct OutboundMessage from "outbound_messages" {
        id: OutboundMessageId,
        connector: String,
        chat: String,
        /// The position of its first event.
        position: u64,
        /// The position of its latest event.
        last: u64,
    }
}

/// The records that one transaction erases.
#[derive(Debug)]
struct Outside {
    session: SessionId,
    trigger_events: Vec<Gone<TriggerEvent>>,
    /// The positions of the events with messages that arrived.
    inbound_messages: Vec<u64>,
    outbound_messages: Vec<Gone<OutboundMessage>>,
    re_emitted: Vec<ReEmitted>,
    /// True if a trigger event is not processed yet: its other messages would be lost.
    is_resting: bool,
    /// True if nothing else is left.
    is_all: bool,
}

impl Store {
    /// Erases part of it, as much as fits into one transaction. Returns whether all is erased.
    /// Fails as busy while a trigger event is being processed with a message that the session took.
    pub(super) async fn erase_outside(
        &self,
        purge: Stream,
        session: SessionId,
    ) -> Result<bool, CommitError> {
        let outside = self.read(move |sql| Outside::find(sql, session)).await?;
        if outside.is_resting {
            return Err(CommitError::Busy);
        }
        for re_emitted in &outside.re_emitted {
            match self.commit(re_emitted.commit()).await {
                // Something happened there since it was read.
                Err(CommitError::Conflict(_)) => return Err(CommitError::Busy),
                committed => committed?,
            };
        }
        self.transact_for(purge, move |sql, tally| outside.erase(sql, tally))
            .await
    }
}

impl Outside {
    fn find(sql: &Sql<'_>, session: SessionId) -> sql::Result<Self> {
        let mut found = Self {
            session,
            trigger_events: Vec::new(),
            inbound_messages: Vec::new(),
            outbound_messages: Vec::new(),
            re_emitted: Vec::new(),
            is_resting: false,
            is_all: true,
        };
        let mut room = Room::of_commit(EVENTS_PER_COMMIT_MAX);
        found.find_trigger_events(sql, &mut room)?;
        found.find_inbound_messages(sql, &mut room)?;
        found.find_outbound_messages(sql, &mut room)?;
        found.re_emitted = re_emitted::by_triggers(sql, &found.trigger_events)?;
        Ok(found)
    }

    /// Finds trigger events of which the session took a message.
    fn find_trigger_events(&mut self, sql: &Sql<'_>, room: &mut Room) -> sql::Result<()> {
        let found: Vec<FoundTriggerEvent> = sql.all(
            select!(
                FoundTriggerEvent,
                "WHERE id IN (SELECT trigger_event FROM trigger_event_sessions WHERE session = ?1 UNION \
                 SELECT trigger_event FROM inputs WHERE session = ?1 AND trigger_event IS NOT NULL) ORDER BY \
                 is_open, position LIMIT ?2"
            ),
            args![self.session, FOUND_MAX],
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for FoundTriggerEvent {
            trigger_event,
            first,
            fired,
            posted,
            failed,
            is_open,
        } in found
        {
            let last = Some(first).max(fired).max(posted).max(failed);
            if is_open {
                // Open ones come last.
                self.is_resting = self.trigger_events.is_empty();
                self.is_all = false;
                return Ok(());
            }
            let stream = Stream::Trigger(TriggerId::of_name(&trigger_event.trigger));
            let id = trigger_event.id.to_string();
            let events = events_of(sql, stream, &id, [Some(first), last])?;
            let Some(events) = taken(room, events) else {
                self.is_all = false;
                return Ok(());
            };
            self.trigger_events.push(Gone {
                what: trigger_event,
                events,
            });
        }
        Ok(())
    }

    /// Finds events with messages that the session took, or that answered its questions.
    fn find_inbound_messages(&mut self, sql: &Sql<'_>, room: &mut Room) -> sql::Result<()> {
        let found: Vec<(u64, u64)> = sql.all(
            "SELECT a.position, e.bytes FROM inbound_messages a CROSS JOIN events e ON e.position \
             = a.position WHERE a.session = ?1 LIMIT ?2",
            args![self.session, FOUND_MAX],
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for event in found {
            let Some(events) = taken(room, vec![event]) else {
                self.is_all = false;
                return Ok(());
            };
            self.inbound_messages.extend(events);
        }
        Ok(())
    }

    /// Finds the messages that the session sent.
    fn find_outbound_messages(&mut self, sql: &Sql<'_>, room: &mut Room) -> sql::Result<()> {
        let found: Vec<OutboundMessage> = sql.all(
            select!(OutboundMessage, "WHERE session = ?1 LIMIT ?2"),
            args![self.session, FOUND_MAX],
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for outbound_message in found {
            let Some(events) = taken(room, outbound_message.events(sql)?) else {
                self.is_all = false;
                return Ok(());
            };
            self.outbound_messages.push(Gone {
                what: outbound_message,
                events,
            });
        }
        Ok(())
    }

    /// Erases the found data, except those that other data depend on by now. Returns whether that
    /// is all.
    fn erase(self, sql: &Sql<'_>, tally: &mut Tally) -> sql::Result<bool> {
        let mut is_done = self.is_all;
        for trigger_event in &self.trigger_events {
            is_done &= erase_trigger_event(sql, trigger_event, tally)?;
        }
        for event in &self.inbound_messages {
            erase_inbound_message(sql, *event, tally)?;
        }
        for outbound_message in &self.outbound_messages {
            is_done &= erase_outbound_message(sql, outbound_message, tally)?;
        }
        Ok(is_done)
    }
}

row! {
    /// A trigger event, with the positions between which its events are.
    struct FoundTriggerEvent from "trigger_events" {
        trigger_event: TriggerEvent as row,
        first: u64 = "position",
        fired: Option<u64>,
        posted: Option<u64>,
        failed: Option<u64>,
        is_open: bool = "state IN ('waiting', 'fired')",
    }
}

/// Returns the positions of the events of a trigger event or of an outbound message, from its first
/// event to its last, and how long each is.
fn events_of(
    sql: &Sql<'_>,
    stream: Stream,
    id: &str,
    [first, last]: [Option<u64>; 2],
) -> sql::Result<Vec<(u64, u64)>> {
    sql.all(
        "SELECT position, bytes FROM events WHERE stream = :stream AND version BETWEEN (SELECT \
         version FROM events WHERE position = :first) AND (SELECT version FROM events WHERE \
         position = :last) AND payload IS NOT NULL AND kind IN ('trigger.event.accepted.v1', \
         'trigger.fired.v1', 'trigger.event.failed.v1', 'trigger.posted.v1', \
         'connector.outbound.queued.v1', 'connector.outbound.started.v1', \
         'connector.outbound.settled.v1', 'connector.outbound.requeued.v1') AND about = :id",
        named![stream = streams::number(sql, stream)?, first, last, id],
    )
}

impl OutboundMessage {
    fn events(&self, sql: &Sql<'_>) -> sql::Result<Vec<(u64, u64)>> {
        let stream = Stream::Connector(ConnectorId::of_name(&self.connector));
        let id = self.id.to_string();
        events_of(sql, stream, &id, [self.position, self.last].map(Some))
    }
}

/// Reserves room for an outbound message, and returns the message with its events; none if it does
/// not exist or is being sent.
pub(super) fn outbound_message_of(
    sql: &Sql<'_>,
    id: OutboundMessageId,
    room: &mut Room,
) -> sql::Result<Option<Gone<OutboundMessage>>> {
    let text = select!(OutboundMessage, "WHERE id = ?1 AND state <> 'started'");
    let Some(what): Option<OutboundMessage> = sql.one(text, [id])? else {
        return Ok(None);
    };
    let events = taken(room, what.events(sql)?);
    Ok(events.map(|events| Gone { what, events }))
}

/// Reserves room for some events, and returns their positions; none if there is no room left.
fn taken(room: &mut Room, events: Vec<(u64, u64)>) -> Option<Vec<u64>> {
    if room.is_full() {
        return None;
    }
    let take = |(position, bytes)| {
        room.take(bytes);
        position
    };
    Some(events.into_iter().map(take).collect())
}

fn erase_trigger_event(
    sql: &Sql<'_>,
    gone: &Gone<TriggerEvent>,
    tally: &mut Tally,
) -> sql::Result<bool> {
    let TriggerEvent { id, trigger } = &gone.what;
    let decisive = re_emitted::decisive_of_trigger(sql, trigger)?;
    if gone.events.iter().any(|event| decisive.contains(event)) {
        return Ok(false);
    }
    erase_events(sql, &gone.events, tally)?;
    sql.execute("DELETE FROM trigger_events WHERE id = ?1", [id])?;
    sql.execute(
        "DELETE FROM trigger_event_sessions WHERE trigger_event = ?1",
        [id],
    )?;
    Ok(true)
}

/// Erases the inbound message that an event has.
pub(super) fn erase_inbound_message(
    sql: &Sql<'_>,
    event: u64,
    tally: &mut Tally,
) -> sql::Result<()> {
    sql.execute("DELETE FROM inbound_messages WHERE position = ?1", [event])?;
    erase_event(sql, event, tally).map(drop)
}

/// Erases an outbound message. An unsent one is not sent, and its chat continues with the next.
pub(super) fn erase_outbound_message(
    sql: &Sql<'_>,
    gone: &Gone<OutboundMessage>,
    tally: &mut Tally,
) -> sql::Result<bool> {
    let OutboundMessage {
        id,
        connector,
        chat,
        last,
        ..
    } = &gone.what;
    let deleted = sql.execute(
        "DELETE FROM outbound_messages WHERE id = ?1 AND last = ?2",
        args![id, *last],
    )?;
    if deleted == 0 {
        return Ok(false);
    }
    erase_events(sql, &gone.events, tally)?;
    outbound_messages::OPEN.find_first(sql, [connector, chat])?;
    Ok(true)
}

fn erase_events(sql: &Sql<'_>, events: &[u64], tally: &mut Tally) -> sql::Result<()> {
    for event in events {
        erase_event(sql, *event, tally)?;
    }
    Ok(())
}
