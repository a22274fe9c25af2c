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
use crate::sql::{Columns, Sql, int, limit};
use domain::id::{ConnectorId, DeliveryId, SessionId, Stream, TriggerId};
use rusqlite::{Row, params};

/// Occasions, arrivals or deliveries that a reader looks for at a time.
const FOUND_MAX: usize = 64;

/// Something that goes, with the events that have it.
#[derive(Debug)]
pub(super) struct Gone<T> {
    pub(super) what: T,
    /// The positions of its events.
    pub(super) events: Vec<u64>,
}

/// An occasion of a trigger.
#[derive(Debug)]
pub(super) struct Occasion {
    pub(super) id: String,
    pub(super) trigger: String,
}

/// Messages that arrived with one event.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) connector: String,
}

/// A message that was sent, or is to be.
#[derive(Debug)]
pub(super) struct Delivery {
    id: DeliveryId,
    connector: String,
    chat: String,
    /// The position of its latest event.
    last: u64,
}

/// The records that one transaction erases.
#[derive(Debug)]
struct Outside {
    session: String,
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
        let outside = self
            .read(move |sql| Outside::find(sql, &session.to_string()))
            .await?;
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
    fn find(sql: &Sql<'_>, session: &str) -> rusqlite::Result<Self> {
        let mut found = Self {
            session: session.to_owned(),
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
    fn find_occasions(&mut self, sql: &Sql<'_>, room: &mut Room) -> rusqlite::Result<()> {
        let found = sql.rows(
            "SELECT id, trigger_name, position, max(position, coalesce(fired, 0), coalesce(posted, \
             0), coalesce(failed, 0)), state IN ('waiting', 'fired') FROM occasions WHERE id IN \
             (SELECT occasion FROM occasion_sessions WHERE session = ?1 UNION SELECT occasion FROM \
             inputs WHERE session = ?1 AND occasion IS NOT NULL) ORDER BY 5, position LIMIT ?2",
            params![self.session, limit(FOUND_MAX)],
            |row| {
                let occasion = Occasion {
                    id: row.get(0)?,
                    trigger: row.get(1)?,
                };
                Ok((occasion, Range::read(row, 2)?, row.get::<_, bool>(4)?))
            },
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for (occasion, range, is_open) in found {
            if is_open {
                // Those that are open come last.
                self.is_held_up = self.occasions.is_empty();
                self.is_all = false;
                return Ok(());
            }
            let stream = Stream::Trigger(TriggerId::of_name(&occasion.trigger)).to_string();
            let events = sql.rows(
                "SELECT position, length(payload) FROM events WHERE stream = ?1 AND version \
                 BETWEEN (SELECT version FROM events WHERE position = ?2) AND (SELECT version FROM \
                 events WHERE position = ?3) AND payload IS NOT NULL AND kind IN \
                 ('trigger.occasion.accepted.v1', 'trigger.fired.v1', \
                 'trigger.occasion.failed.v1', 'trigger.posted.v1') AND \
                 json_extract(CAST(payload AS TEXT), '$.occasion') = ?4",
                params![stream, int(range.from), int(range.to), occasion.id],
                position_and_bytes,
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
    fn find_arrivals(&mut self, sql: &Sql<'_>, room: &mut Room) -> rusqlite::Result<()> {
        let found = sql.rows(
            "SELECT DISTINCT a.connector, a.position, coalesce(length(e.payload), 0) FROM arrivals \
             a CROSS JOIN events e ON e.position = a.position WHERE a.session = ?1 LIMIT ?2",
            params![self.session, limit(FOUND_MAX)],
            |row| {
                let arrivals = Arrivals {
                    connector: row.get(0)?,
                };
                Ok((arrivals, (row.uint(1)?, row.uint(2)?)))
            },
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for (what, event) in found {
            match taken(room, vec![event]) {
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
    fn find_deliveries(&mut self, sql: &Sql<'_>, room: &mut Room) -> rusqlite::Result<()> {
        let found = sql.rows(
            "SELECT id, connector, chat, position, last FROM deliveries WHERE session = ?1 LIMIT \
             ?2",
            params![self.session, limit(FOUND_MAX)],
            Delivery::read,
        )?;
        self.is_all &= found.len() < FOUND_MAX;
        for (delivery, range) in found {
            let events = events_of(sql, &delivery, &range)?;
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
    fn erase(self, sql: &Sql<'_>, tally: &mut Tally) -> rusqlite::Result<bool> {
        let mut is_done = self.is_all;
        for occasion in &self.occasions {
            is_done &= erase_occasion(sql, occasion, tally)?;
        }
        for arrivals in &self.arrivals {
            is_done &= erase_arrivals(sql, &self.session, arrivals, tally)?;
        }
        for delivery in &self.deliveries {
            is_done &= erase_delivery(sql, delivery, tally)?;
        }
        Ok(is_done)
    }
}

/// The positions between which the events of something are.
struct Range {
    from: u64,
    to: u64,
}

impl Range {
    /// Reads one from two columns.
    fn read(row: &Row<'_>, column: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            from: row.uint(column)?,
            to: row.uint(column + 1)?,
        })
    }
}

impl Delivery {
    /// Reads one from the columns `id, connector, chat, position, last`.
    fn read(row: &Row<'_>) -> rusqlite::Result<(Self, Range)> {
        let delivery = Self {
            id: DeliveryId(row.digest(0)?),
            connector: row.get(1)?,
            chat: row.get(2)?,
            last: row.uint(4)?,
        };
        Ok((delivery, Range::read(row, 3)?))
    }
}

/// Returns the positions of a delivery's events, and how long each is.
fn events_of(
    sql: &Sql<'_>,
    delivery: &Delivery,
    range: &Range,
) -> rusqlite::Result<Vec<(u64, u64)>> {
    let stream = Stream::Connector(ConnectorId::of_name(&delivery.connector)).to_string();
    sql.rows(
        "SELECT position, length(payload) FROM events WHERE stream = ?1 AND version BETWEEN \
         (SELECT version FROM events WHERE position = ?2) AND (SELECT version FROM events WHERE \
         position = ?3) AND payload IS NOT NULL AND kind IN ('connector.delivery.queued.v1', \
         'connector.delivery.started.v1', 'connector.delivery.settled.v1', \
         'connector.delivery.requeued.v1') AND json_extract(CAST(payload AS TEXT), \
         '$.delivery') = ?4",
        params![
            stream,
            int(range.from),
            int(range.to),
            delivery.id.to_string()
        ],
        position_and_bytes,
    )
}

/// Takes room for a delivery that goes, and returns it with its events; none if it is not there, or
/// is being sent.
pub(super) fn delivery_of(
    sql: &Sql<'_>,
    id: DeliveryId,
    room: &mut Room,
) -> rusqlite::Result<Option<Gone<Delivery>>> {
    let found = sql.row(
        "SELECT id, connector, chat, position, last FROM deliveries WHERE id = ?1 AND state <> \
         'started'",
        [id.0.0],
        Delivery::read,
    )?;
    let Some((what, range)) = found else {
        return Ok(None);
    };
    let events = taken(room, events_of(sql, &what, &range)?);
    Ok(events.map(|events| Gone { what, events }))
}

fn position_and_bytes(row: &Row<'_>) -> rusqlite::Result<(u64, u64)> {
    Ok((row.uint(0)?, row.uint(1)?))
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

fn erase_occasion(
    sql: &Sql<'_>,
    gone: &Gone<Occasion>,
    tally: &mut Tally,
) -> rusqlite::Result<bool> {
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
    session: &str,
    gone: &Gone<Arrivals>,
    tally: &mut Tally,
) -> rusqlite::Result<bool> {
    let cursor = carried::cursor_position(sql, &gone.what.connector)?;
    for event in &gone.events {
        let has_others = sql.exists(
            "SELECT 1 FROM arrivals WHERE position = ?1 AND session IS NOT ?2",
            params![int(*event), session],
        )?;
        if has_others || cursor == Some(*event) {
            return Ok(false);
        }
        sql.execute("DELETE FROM arrivals WHERE position = ?1", [int(*event)])?;
    }
    erase_events(sql, &gone.events, tally)?;
    Ok(true)
}

/// Erases a delivery. If it was not sent yet, it is not sent, and its chat goes on with the next.
pub(super) fn erase_delivery(
    sql: &Sql<'_>,
    gone: &Gone<Delivery>,
    tally: &mut Tally,
) -> rusqlite::Result<bool> {
    let Delivery {
        id,
        connector,
        chat,
        last,
    } = &gone.what;
    let deleted = sql.execute(
        "DELETE FROM deliveries WHERE id = ?1 AND last = ?2",
        params![id.0.0, int(*last)],
    )?;
    if deleted == 0 {
        return Ok(false);
    }
    erase_events(sql, &gone.events, tally)?;
    deliveries::find_first(sql, connector, chat)?;
    Ok(true)
}

fn erase_events(sql: &Sql<'_>, events: &[u64], tally: &mut Tally) -> rusqlite::Result<()> {
    for event in events {
        erase_event(sql, *event, tally)?;
    }
    Ok(())
}
