//! Triggers of the configuration: compared with those that are recorded, at each start and whenever
//! another configuration is served.
//!
//! An unchanged trigger keeps the next time of its schedule, so times that came due while no host
//! ran are handled by its policy. Triggers that were made over the API stay.

use super::{Shared, by_hand, recording};
use crate::journal::Context;
use broker::Error;
use domain::event::{Event, PauseReason, TriggerDefined, TriggerOrigin, TriggerRemoved};
use domain::time::Timestamp;
use domain::trigger::{TriggerKind, TriggerName, TriggerSpec};
use std::collections::BTreeMap;
use store::{Commit, TriggerFilter, TriggerRow};

/// Triggers that are read at a time.
const PAGE: usize = 500;
/// Triggers whose change is one commit.
const BATCH_MAX: usize = 200;
/// The actor of changes by the configuration.
const ACTOR: &str = "host";

/// The events that are recorded of one trigger.
struct Change {
    name: TriggerName,
    events: Vec<Event>,
}

/// Compares the triggers of the configuration with the recorded ones, and records the difference.
/// Returns the inactive triggers with open trigger events.
///
/// # Errors
/// The store cannot be read or rejects a commit. Changes recorded until then stay, and the next
/// comparison does the rest.
pub(super) async fn compare(shared: &Shared) -> Result<Vec<TriggerName>, Error> {
    let _defining = shared.defining.lock().await;
    let core = &shared.core;
    let settings = core.settings();
    let now = core.now();
    let mut left: BTreeMap<&TriggerName, &TriggerSpec> = settings.triggers.iter().collect();
    let mut changes: Vec<Change> = Vec::new();
    let mut blocked: Vec<TriggerName> = Vec::new();
    let mut after: Option<TriggerName> = None;
    loop {
        let read = core.store().triggers(TriggerFilter::default(), after, PAGE);
        let page = read.await?;
        let changed = page
            .iter()
            .filter_map(|row| change_of(row, left.remove(&row.name), now));
        changes.extend(changed);
        let open = page.iter().filter(|row| row.pending > 0);
        let still = open.filter(|row| by_hand::is_blocked(row, now));
        blocked.extend(still.map(|row| row.name.clone()));
        after = page.last().map(|row| row.name.clone());
        if page.len() < PAGE {
            break;
        }
    }
    changes.extend(left.into_iter().map(|(name, spec)| Change {
        name: name.clone(),
        events: configured(name, spec, now),
    }));
    let are_changed = !changes.is_empty();
    record(shared, changes, now).await?;
    if are_changed {
        shared.changed();
    }
    Ok(blocked)
}

/// Returns the recorded change of an existing trigger; none if nothing has changed.
fn change_of(row: &TriggerRow, spec: Option<&TriggerSpec>, now: Timestamp) -> Option<Change> {
    let name = row.name.clone();
    let events = match (&row.origin, spec) {
        (TriggerOrigin::Configuration, Some(spec)) if *spec == *row.spec => return None,
        (TriggerOrigin::Configuration, Some(spec)) => configured(&name, spec, now),
        (TriggerOrigin::Configuration, None) => {
            vec![Event::TriggerRemoved(TriggerRemoved {
                name: name.clone(),
                by: None,
                time: now,
            })]
        }
        (TriggerOrigin::Api { .. } | TriggerOrigin::Agent { .. }, Some(_)) => {
            tracing::error!(
                trigger.name = %name,
                "a trigger of this name was made over the API, so the one of the configuration is \
                 left out; remove one of them, or give it another name"
            );
            return None;
        }
        (TriggerOrigin::Api { .. } | TriggerOrigin::Agent { .. }, None) => return None,
    };
    Some(Change { name, events })
}

fn configured(name: &TriggerName, spec: &TriggerSpec, now: Timestamp) -> Vec<Event> {
    defined(name, spec, TriggerOrigin::Configuration, now)
}

/// Returns the events that define a trigger as given. A schedule without any time is over from the
/// start, and one that cannot be computed is paused; events record both.
pub(super) fn defined(
    name: &TriggerName,
    spec: &TriggerSpec,
    origin: TriggerOrigin,
    now: Timestamp,
) -> Vec<Event> {
    let next = next_due(name, spec, now);
    let pause = match &next {
        Ok(None) if matches!(spec.on, TriggerKind::Schedule(_)) => Some(PauseReason::Done),
        Ok(_) => None,
        Err(error) => Some(PauseReason::Schedule {
            errors: 1,
            error: error.clone(),
        }),
    };
    let defined = TriggerDefined {
        name: name.clone(),
        spec: Box::new(spec.clone()),
        origin,
        next_due: next.ok().flatten(),
        time: now,
    };
    let mut events = vec![Event::TriggerDefined(defined)];
    events.extend(pause.map(|reason| recording::paused(name, reason, now)));
    events
}

/// Returns the first event of a trigger's schedule after its definition or resumption.
///
/// # Errors
/// The reason why it cannot be computed.
pub(super) fn next_due(
    name: &TriggerName,
    spec: &TriggerSpec,
    now: Timestamp,
) -> Result<Option<Timestamp>, String> {
    let schedule = spec.schedule().map_err(|error| error.to_string())?;
    let Some(schedule) = schedule else {
        return Ok(None);
    };
    schedule
        .next(name, now, now)
        .map_err(|error| error.to_string())
}

async fn record(shared: &Shared, changes: Vec<Change>, now: Timestamp) -> Result<(), Error> {
    let context = Context::new(ACTOR, now);
    let mut changes = changes.into_iter().peekable();
    while changes.peek().is_some() {
        let mut commit = Commit::new();
        for change in changes.by_ref().take(BATCH_MAX) {
            commit = recording::append(commit, &change.name, &context, change.events);
        }
        store::point("edge.define.before");
        shared.core.store().commit(commit).await?;
        store::point("edge.define.after");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn spec(on: &serde_json::Value) -> TriggerSpec {
        let mut written = json!({ "user": "ada", "target": { "agent": "assistant" } });
        let map = written.as_object_mut().unwrap();
        map.extend(on.as_object().unwrap().clone());
        serde_json::from_value(written).unwrap()
    }

    fn kinds(events: &[Event]) -> Vec<&'static str> {
        let kind = |event: &Event| match event {
            Event::TriggerDefined(_) => "defined",
            Event::TriggerPaused(it) => match it.reason {
                PauseReason::Done => "done",
                PauseReason::Schedule { .. } => "schedule",
                PauseReason::User { .. } | PauseReason::Failures { .. } => "other",
            },
            _ => "else",
        };
        events.iter().map(kind).collect()
    }

    #[test]
    fn a_schedule_is_defined_with_its_next_trigger_event_or_over_at_once() {
        let name: TriggerName = "morning".parse().unwrap();
        let every = spec(&json!({ "schedule": { "every": "1h" } }));
        let events = configured(&name, &every, NOW);
        assert_eq!(kinds(&events), ["defined"]);
        let Event::TriggerDefined(defined) = &events[0] else {
            panic!("{events:?}");
        };
        assert_eq!(defined.next_due, Some(NOW.plus_ms(3_600_000)));
        let past = spec(&json!({ "schedule": { "at": "2020-01-01T00:00:00Z" } }));
        assert_eq!(kinds(&configured(&name, &past, NOW)), ["defined", "done"]);
        let events = spec(&json!({ "events": { "on": ["input.dead"] } }));
        assert_eq!(kinds(&configured(&name, &events, NOW)), ["defined"]);
    }
}
