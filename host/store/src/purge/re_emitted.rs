//! Events that repeat data which would be lost with events about to be erased. They follow those in
//! the same stream, so that folding the remaining events gives the same result.

use super::outside::{Gone, TriggerEvent};
use crate::commit::{Commit, Expected};
use crate::event_row::event;
use crate::projections::trigger_events::NO_TRIGGER_EVENT;
use crate::sql::{self, Sql, row, select};
use crate::streams;
use domain::digest::{Digest, Salt};
use domain::event::{Event, NewEvent, SkipReason, Subject, TriggerEventsSkipped, TriggerFired};
use domain::id::{EventId, Stream, TriggerId};
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
    events: Vec<Event>,
    /// The time of the last event that was stored when they were made.
    time: Timestamp,
}

impl ReEmitted {
    /// Returns the commit that stores them, if their stream has had no other event meanwhile.
    pub(super) fn commit(&self) -> Commit {
        let events = self.events.iter().map(|event| NewEvent {
            id: EventId(Uuid::now_v7()),
            event: event.clone(),
            subject: Subject::default(),
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
    fn from_events(sql: &Sql<'_>, stream: Stream, events: Vec<Event>) -> sql::Result<Option<Self>> {
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

fn of_trigger(sql: &Sql<'_>, trigger: Deciding, going: &BTreeSet<u64>) -> sql::Result<Vec<Event>> {
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
    Ok(events)
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
