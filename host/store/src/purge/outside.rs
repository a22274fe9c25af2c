//! Purge of what reached a session from outside, and of what was sent there of it: occasions of
//! triggers, arrivals, deliveries.
//!
//! An event goes as a whole. What else rests on one is said by another event first ([`Carried`]):
//! when a trigger is due and what it keeps, where a connector's next poll goes on, and what arrived
//! for others at the same time.

use super::carried::{self, Carried};
use super::room::Room;
use super::{EVENTS_PER_COMMIT_MAX, Store, Tally, erase_event};
use crate::commit::CommitError;
use crate::projections::deliveries;
use crate::sql::{self, Sql, args, named, row, select};
use crate::streams;
use domain::id::{ConnectorId, DeliveryId, OccasionId, SessionId, Stream, TriggerId};

/// Occasions, arrivals or deliveries that a reader looks for at a time.
const FOUND_MAX: usize = 64;

/// Something that goes, with the events that have it.
#[derive(Debug)]
pub(super) struct Gone<T> {
    pub(super) what: T,
    /// The positions of its events.
    pub(super) events: Vec<u64>,
}

row! {
    /// An occasion of a trigger.
    #[derive(Debug)]
    pub(super) struct Occasion {
        pub(super) id: OccasionId,
        pub(super) trigger: String = "trigger_name",
    }
}

/// Messages that arrived with one event.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) connector: String,
}

row! {
    /// A message that was sent, or is to be.
    #[derive(Debug)]
    pub(super) struct Delivery from "deliveries" {
        id: DeliveryId,
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
    occasions: Vec<Gone<Occasion>>,
    arrivals: Vec<Gone<Arrivals>>,
    deliveries: Vec<Gone<Delivery>>,
    carried: Vec<Carried>,
    /// True if an occasion is not dealt with yet: its other messages would be lost.
    is_held_up: bool,
    /// True if there is nothing else.
    is_all: bool,
}

impl Store {
    /// Erases what fits into one transaction. Returns whether that is all. It is busy while an
    /// occasion is dealt with of which the session took a message.
    pub(super) async fn erase_outside(
        &self,
        purge: Stream,
        session: SessionId,
    ) -> Result<bool, CommitError> {
        let outside = self.read(move |sql| Outside::find(sql, session)).await?;
        if outside.is_held_up {
            return Err(CommitError::Busy);
        }
        for carried in &outside.carried {
            match self.commit(carried.commit()).await {
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
            occasions: Vec::new(),
            arrivals: Vec::new(),
            deliveries: Vec::new(),
            carried: Vec::new(),
            is_held_up: false,
            is_all: true,
        };
        let mut room = Room::of_commit(EVENTS_PER_COMMIT_MAX);
        found.find_occasions(sql, &mut room)?;
        found.find_arrivals(sql, &mut room)?;
        found.find_deliveries(sql, &mut room)?;
        found.carried = carried::by_triggers(sql, &found.occasions)?;
        found
            .carried
            .extend(carried::by_connectors(sql, session, &found.arrivals)?);
        Ok(found)
    }

    /// Finds occasions of which the session took a message.
    fn find_occasions(&mut self, sql: &Sql<'_>, room: &mut Room) -> sql::Result<()> {
        let found: Vec<FoundOccasion> = sql.all(
            select!(
                FoundOccasion,
                "WHERE id IN (SELECT occasion FROM occasion_sessions WHERE session = ?1 UNION \
                 SELECT occasion FROM inputs WHERE session = ?1 AND occasion IS NOT NULL) ORDER BY \
                 is_open, position LIMIT ?2"
            ),
            args![self.session, FOUND_MAX],
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for FoundOccasion {
            occasion,
            first,
            fired,
            posted,
            failed,
            is_open,
        } in found
        {
            let last = Some(first).max(fired).max(posted).max(failed);
            if is_open {
                // Those that are open come last.
                self.is_held_up = self.occasions.is_empty();
                self.is_all = false;
                return Ok(());
            }
            let stream = Stream::Trigger(TriggerId::of_name(&occasion.trigger));
            let stream = streams::number(sql, stream)?;
            let events = sql.all(
                "SELECT position, bytes FROM events WHERE stream = :stream AND version \
                 BETWEEN (SELECT version FROM events WHERE position = :position) AND (SELECT \
                 version FROM events WHERE position = :to) AND payload IS NOT NULL AND kind IN \
                 ('trigger.occasion.accepted.v1', 'trigger.fired.v1', \
                 'trigger.occasion.failed.v1', 'trigger.posted.v1') AND about = :id",
                named![
                    stream,
                    position = first,
                    to = last,
                    id = occasion.id.to_string()
                ],
            )?;
            match taken(room, events) {
                Some(events) => self.occasions.push(Gone {
                    what: occasion,
                    events,
                }),
                None => {
                    self.is_all = false;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Finds events with messages that the session took, or that answered its questions.
    fn find_arrivals(&mut self, sql: &Sql<'_>, room: &mut Room) -> sql::Result<()> {
        let found: Vec<(String, u64, u64)> = sql.all(
            "SELECT DISTINCT a.connector, a.position, e.bytes FROM arrivals \
             a CROSS JOIN events e ON e.position = a.position WHERE a.session = ?1 LIMIT ?2",
            args![self.session, FOUND_MAX],
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for (connector, position, bytes) in found {
            let what = Arrivals { connector };
            match taken(room, vec![(position, bytes)]) {
                Some(events) => self.arrivals.push(Gone { what, events }),
                None => {
                    self.is_all = false;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Finds what the session sent.
    fn find_deliveries(&mut self, sql: &Sql<'_>, room: &mut Room) -> sql::Result<()> {
        let found: Vec<Delivery> = sql.all(
            select!(Delivery, "WHERE session = ?1 LIMIT ?2"),
            args![self.session, FOUND_MAX],
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for delivery in found {
            let events = events_of(sql, &delivery)?;
            match taken(room, events) {
                Some(events) => self.deliveries.push(Gone {
                    what: delivery,
                    events,
                }),
                None => {
                    self.is_all = false;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Erases what was found, except what something else rests on by now. Returns whether that is
    /// all there is.
    fn erase(self, sql: &Sql<'_>, tally: &mut Tally) -> sql::Result<bool> {
        let mut is_done = self.is_all;
        for occasion in &self.occasions {
            is_done &= erase_occasion(sql, occasion, tally)?;
        }
        for arrivals in &self.arrivals {
            is_done &= erase_arrivals(sql, self.session, arrivals, tally)?;
        }
        for delivery in &self.deliveries {
            is_done &= erase_delivery(sql, delivery, tally)?;
        }
        Ok(is_done)
    }
}

row! {
    /// An occasion, with the positions between which its events are.
    struct FoundOccasion from "occasions" {
        occasion: Occasion as row,
        first: u64 = "position",
        fired: Option<u64>,
        posted: Option<u64>,
        failed: Option<u64>,
        is_open: bool = "state IN ('waiting', 'fired')",
    }
}

/// Returns the positions of a delivery's events, and how long each is.
fn events_of(sql: &Sql<'_>, delivery: &Delivery) -> sql::Result<Vec<(u64, u64)>> {
    let stream = Stream::Connector(ConnectorId::of_name(&delivery.connector));
    sql.all(
        "SELECT position, bytes FROM events WHERE stream = :stream AND version BETWEEN \
         (SELECT version FROM events WHERE position = :position) AND (SELECT version FROM events \
         WHERE position = :to) AND payload IS NOT NULL AND kind IN \
         ('connector.delivery.queued.v1', 'connector.delivery.started.v1', \
         'connector.delivery.settled.v1', 'connector.delivery.requeued.v1') AND about = :id",
        named![
            stream = streams::number(sql, stream)?,
            position = delivery.position,
            to = delivery.last,
            id = delivery.id.to_string()
        ],
    )
}

/// Takes room for a delivery that goes, and returns it with its events; none if it is not there, or
/// is being sent.
pub(super) fn delivery_of(
    sql: &Sql<'_>,
    id: DeliveryId,
    room: &mut Room,
) -> sql::Result<Option<Gone<Delivery>>> {
    let text = select!(Delivery, "WHERE id = ?1 AND state <> 'started'");
    let Some(what): Option<Delivery> = sql.one(text, [id])? else {
        return Ok(None);
    };
    let events = taken(room, events_of(sql, &what)?);
    Ok(events.map(|events| Gone { what, events }))
}

/// Takes room for the events of something, and returns their positions; none if there is no room
/// left.
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

fn erase_occasion(sql: &Sql<'_>, gone: &Gone<Occasion>, tally: &mut Tally) -> sql::Result<bool> {
    let Occasion { id, trigger } = &gone.what;
    let decisive = carried::decisive_of_trigger(sql, trigger)?;
    if gone.events.iter().any(|event| decisive.contains(event)) {
        return Ok(false);
    }
    erase_events(sql, &gone.events, tally)?;
    sql.execute("DELETE FROM occasions WHERE id = ?1", [id])?;
    sql.execute("DELETE FROM occasion_sessions WHERE occasion = ?1", [id])?;
    Ok(true)
}

fn erase_arrivals(
    sql: &Sql<'_>,
    session: SessionId,
    gone: &Gone<Arrivals>,
    tally: &mut Tally,
) -> sql::Result<bool> {
    let cursor = carried::cursor_position(sql, &gone.what.connector)?;
    for event in &gone.events {
        let has_others = sql.exists(
            "SELECT 1 FROM arrivals WHERE position = ?1 AND session IS DISTINCT FROM ?2",
            args![*event, session],
        )?;
        if has_others || cursor == Some(*event) {
            return Ok(false);
        }
        sql.execute("DELETE FROM arrivals WHERE position = ?1", [*event])?;
    }
    erase_events(sql, &gone.events, tally)?;
    Ok(true)
}

/// Erases a delivery. If it was not sent yet, it is not sent, and its chat goes on with the next.
pub(super) fn erase_delivery(
    sql: &Sql<'_>,
    gone: &Gone<Delivery>,
    tally: &mut Tally,
) -> sql::Result<bool> {
    let Delivery {
        id,
        connector,
        chat,
        last,
        ..
    } = &gone.what;
    let deleted = sql.execute(
        "DELETE FROM deliveries WHERE id = ?1 AND last = ?2",
        args![id, *last],
    )?;
    if deleted == 0 {
        return Ok(false);
    }
    erase_events(sql, &gone.events, tally)?;
    deliveries::find_first(sql, connector, chat)?;
    Ok(true)
}

fn erase_events(sql: &Sql<'_>, events: &[u64], tally: &mut Tally) -> sql::Result<()> {
    for event in events {
        erase_event(sql, *event, tally)?;
    }
    Ok(())
}
