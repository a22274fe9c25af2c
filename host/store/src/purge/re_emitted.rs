//! Events that repeat data which would be lost with events about to be erased. They follow those in
//! the same stream, so that folding the remaining events gives the same result.

use super::outside::{Gone, InboundMessages, TriggerEvent};
use crate::commit::{Commit, Expected};
use crate::event_row::event;
use crate::projections::trigger_events::NO_TRIGGER_EVENT;
use crate::read::inbound_messages::received_at;
use crate::sql::{self, Sql, args, row, select};
use crate::streams;
use domain::digest::{Digest, Salt};
use domain::event::{
    ConnectorReceived, Event, InboundMessageOutcome, InboundMessagesSettled, NewEvent, SkipReason,
    Subject, TriggerEventsSkipped, TriggerFired,
};
use domain::id::{ConnectorId, EventId, SessionId, Stream, TriggerEventId, TriggerId};
use domain::path::ConnectorName;
use domain::time::Timestamp;
use domain::trigger::{TriggerName, TriggerState};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Events for one stream.
#[derive(Debug)]
pub(super) struct ReEmitted {
    stream: Stream,
    /// The version of the stream from which they follow.
    version: u64,
    events: Vec<Again>,
    /// The time of the last event that was stored when they were made.
    time: Timestamp,
}

/// One of these events, with the session that it is about.
#[derive(Debug)]
struct Again {
    event: Event,
    session: Option<SessionId>,
}

impl ReEmitted {
    /// Returns the commit that stores them, if their stream has had no other event meanwhile.
    pub(super) fn commit(&self) -> Commit {
        let events = self.events.iter().map(|again| NewEvent {
            id: EventId(Uuid::now_v7()),
            event: again.event.clone(),
            subject: Subject {
                session: again.session,
                ..Subject::default()
            },
            actor: "host".to_owned(),
            causation: None,
            correlation: None,
            time: self.time,
            salt: Salt(*Uuid::new_v4().as_bytes()),
        });
        Commit::new().append(
            self.stream,
            Expected::Version(self.version),
            events.collect(),
        )
    }

    /// Returns these events as an append to a stream; none if the list is empty.
    fn from_events(sql: &Sql<'_>, stream: Stream, events: Vec<Again>) -> sql::Result<Option<Self>> {
        if events.is_empty() {
            return Ok(None);
        }
        let version = sql.number(
            "SELECT version FROM events WHERE stream = ?1 ORDER BY version DESC LIMIT 1",
            [streams::number(sql, stream)?],
        )?;
        let time = sql.number("SELECT time FROM events ORDER BY position DESC LIMIT 1", [])?;
        Ok(Some(Self {
            stream,
            version,
            events,
            time: Timestamp(time),
        }))
    }
}

row! {
    /// The data of a trigger that single events decide.
    struct Deciding from "triggers" {
        name: TriggerName,
        next_due: Option<Timestamp>,
        due_position: u64,
        state_format: Option<u32>,
        state: Option<Vec<u8>>,
        state_position: Option<u64>,
    }
}

fn deciding(sql: &Sql<'_>, trigger: &str) -> sql::Result<Option<Deciding>> {
    sql.one(select!(Deciding, "WHERE name = ?1"), [trigger])
}

/// Returns the positions of the events that decide when a trigger is due, and its state.
pub(super) fn decisive_of_trigger(sql: &Sql<'_>, trigger: &str) -> sql::Result<Vec<u64>> {
    let found = deciding(sql, trigger)?;
    Ok(found.map_or_else(Vec::new, |trigger| {
        let state = trigger.state_position.into_iter();
        state.chain([trigger.due_position]).collect()
    }))
}

/// Returns the position of the event with the cursor of a connector's next poll.
pub(super) fn cursor_position(sql: &Sql<'_>, connector: &str) -> sql::Result<Option<u64>> {
    let position = sql.one::<Option<u64>>(
        "SELECT cursor_position FROM connectors WHERE id = ?1",
        [ConnectorId::of_name(connector)],
    )?;
    Ok(position.flatten())
}

/// Returns the data of triggers that have to be re-emitted before trigger events of theirs are
/// erased.
pub(super) fn by_triggers(
    sql: &Sql<'_>,
    trigger_events: &[Gone<TriggerEvent>],
) -> sql::Result<Vec<ReEmitted>> {
    let mut going: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for trigger_event in trigger_events {
        going
            .entry(&trigger_event.what.trigger)
            .or_default()
            .extend(&trigger_event.events);
    }
    let mut all = Vec::new();
    for (name, positions) in going {
        let Some(trigger) = deciding(sql, name)? else {
            continue;
        };
        let events = of_trigger(sql, trigger, &positions)?;
        let stream = Stream::Trigger(TriggerId::of_name(name));
        all.extend(ReEmitted::from_events(sql, stream, events)?);
    }
    Ok(all)
}

fn of_trigger(sql: &Sql<'_>, trigger: Deciding, going: &BTreeSet<u64>) -> sql::Result<Vec<Again>> {
    let mut events = Vec::new();
    if going.contains(&trigger.due_position) {
        let time = time_of(sql, trigger.due_position)?;
        events.push(Event::TriggerEventsSkipped(TriggerEventsSkipped {
            name: trigger.name.clone(),
            due: trigger.next_due.unwrap_or(time),
            count: 0,
            reason: SkipReason::Missed,
            next_due: trigger.next_due,
            time,
        }));
    }
    let state = trigger.state_format.zip(trigger.state);
    if let (Some(position), Some((format, bytes))) = (trigger.state_position, state)
        && going.contains(&position)
    {
        events.push(Event::TriggerFired(TriggerFired {
            name: trigger.name,
            trigger_event: NO_TRIGGER_EVENT,
            component: component_of(sql, position)?,
            messages: Vec::new(),
            state: Some(TriggerState { format, bytes }),
            rejected: None,
            took_us: 0,
            time: time_of(sql, position)?,
        }));
    }
    Ok(events
        .into_iter()
        .map(|event| Again {
            event,
            session: None,
        })
        .collect())
}

fn time_of(sql: &Sql<'_>, position: u64) -> sql::Result<Timestamp> {
    let text = "SELECT time FROM events WHERE position = ?1";
    Ok(Timestamp(sql.number(text, [position])?))
}

/// Returns the code of the component that was fired with an event.
fn component_of(sql: &Sql<'_>, position: u64) -> sql::Result<Digest> {
    let text = "SELECT kind, payload FROM events WHERE position = ?1";
    Ok(match event(sql, text, [position])? {
        Some(Event::TriggerFired(fired)) => fired.component,
        _ => Digest([0; 32]),
    })
}

/// Returns the data of connectors that have to be re-emitted before inbound messages for a session
/// are erased: inbound messages of others in the same events, and the cursor of the next poll.
pub(super) fn by_connectors(
    sql: &Sql<'_>,
    session: SessionId,
    inbound_messages: &[Gone<InboundMessages>],
) -> sql::Result<Vec<ReEmitted>> {
    let mut going: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for gone in inbound_messages {
        going
            .entry(&gone.what.connector)
            .or_default()
            .extend(&gone.events);
    }
    let mut all = Vec::new();
    for (name, positions) in going {
        let cursor = cursor_position(sql, name)?;
        let mut events = Vec::new();
        for position in positions {
            let others = others_of(sql, session, position)?;
            let decides = cursor == Some(position);
            if !others.is_empty() || decides {
                events.extend(of_connector(sql, position, others, decides)?);
            }
        }
        let stream = Stream::Connector(ConnectorId::of_name(name));
        all.extend(ReEmitted::from_events(sql, stream, events)?);
    }
    Ok(all)
}

/// An inbound message that stays.
struct Other {
    id: TriggerEventId,
    settled: Option<Settled>,
}

/// Its outcome.
struct Settled {
    outcome: InboundMessageOutcome,
    time: Timestamp,
    session: Option<SessionId>,
}

/// Returns the inbound messages of one event that are not for a session.
fn others_of(sql: &Sql<'_>, session: SessionId, position: u64) -> sql::Result<Vec<Other>> {
    let text = select!(
        StoredOther,
        "WHERE position = ?1 AND session IS DISTINCT FROM ?2 ORDER BY place"
    );
    let others: Vec<StoredOther> = sql.all(text, args![position, session])?;
    let others = others.into_iter().map(|it| Other {
        id: it.id,
        settled: it
            .outcome
            .zip(it.settled_at)
            .map(|(outcome, time)| Settled {
                outcome,
                time,
                session: it.session,
            }),
    });
    Ok(others.collect())
}

row! {
    struct StoredOther from "inbound_messages" {
        id: TriggerEventId,
        outcome: Option<InboundMessageOutcome> as json_opt,
        settled_at: Option<Timestamp>,
        session: Option<SessionId>,
    }
}

fn of_connector(
    sql: &Sql<'_>,
    position: u64,
    others: Vec<Other>,
    has_cursor: bool,
) -> sql::Result<Vec<Again>> {
    let Some(before) = received_at(sql, position)? else {
        return Ok(Vec::new());
    };
    let stays = |id: &TriggerEventId| others.iter().any(|other| other.id == *id);
    let again = ConnectorReceived {
        connector: before.connector.clone(),
        inbound_messages: before
            .inbound_messages
            .into_iter()
            .filter(|inbound_message| stays(&inbound_message.id))
            .collect(),
        cursor: before.cursor.filter(|_| has_cursor),
        time: before.time,
    };
    let mut events = vec![Again {
        event: Event::ConnectorReceived(again),
        session: None,
    }];
    events.extend(
        others
            .into_iter()
            .filter_map(|other| other.settled_again(&before.connector)),
    );
    Ok(events)
}

impl Other {
    fn settled_again(self, connector: &ConnectorName) -> Option<Again> {
        let Settled {
            outcome,
            time,
            session,
        } = self.settled?;
        Some(Again {
            event: Event::InboundMessagesSettled(InboundMessagesSettled {
                connector: connector.clone(),
                inbound_messages: vec![self.id],
                outcome,
                time,
            }),
            session,
        })
    }
}
