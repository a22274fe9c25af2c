//! Events of the host as trigger events: the stored events are read in their order, and become
//! trigger events of the triggers that subscribe to them.
//!
//! The position up to which they were read is stored in the commit that accepts the trigger events.
//! So a restart misses none and hears none twice. While no trigger hears events, none are read.

mod facts;
mod origin;

use super::{Shared, recording};
use crate::core::Core;
use crate::journal::Context;
use broker::Error;
use domain::digest::Digest;
use domain::event::{Event, SkipReason, TriggerEventsSkipped};
use domain::id::{Stream, TriggerId};
use domain::time::Timestamp;
use domain::trigger::{
    CHAIN_MAX, EventsSpec, HostEvent, HostEventKind, TriggerEvent, TriggerKind, TriggerName,
};
use facts::{Happened, happened};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{
    Clash, Commit, CommitError, EventFilter, Guard, Key, Snapshot, TriggerFilter, TriggerGuard,
    TriggerRow,
};
use tokio::sync::watch;

/// Events that are read at a time: a single one may have megabytes.
const PAGE: usize = 64;
/// Triggers that are read at a time.
const TRIGGERS_PAGE: usize = 500;
/// Maximum number of triggers that subscribe to events. Further ones get none, which is logged.
const SUBSCRIBERS_MAX: usize = 1_000;
/// Number of events without a subscriber after which the position of reading is stored.
const UNHEARD_MAX: u64 = 2_000;
/// Milliseconds until events are read again that could not be read.
const TROUBLE_MS: u64 = 1_000;
/// The layout of the stored position of reading.
const FORMAT: u32 = 1;
/// The name of the stream under which that is stored. No trigger has such a name.
const STREAM: &str = "host:events";

/// A trigger that hears events.
#[derive(Debug, Clone)]
struct Subscriber {
    name: TriggerName,
    spec: EventsSpec,
    /// Time of its definition: it gets later events only.
    defined: Timestamp,
    /// Version of its stream.
    version: u64,
}

/// The point up to which events were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ReadUpTo {
    /// The position of the last that was read.
    position: u64,
    /// False if no trigger subscribed to events since.
    is_heard: bool,
}

/// Reads events until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut changed = shared.changed.subscribe();
    loop {
        changed.mark_unchanged();
        match listen(&shared, &mut changed).await {
            Ok(Ended::Changed) => {}
            Ok(Ended::Closed) => return,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "events of the host cannot be read for triggers"
                );
                if !shared.core.sleep_ms(TROUBLE_MS).await {
                    return;
                }
            }
        }
    }
}

/// The reason why events are not read on.
enum Ended {
    /// Other triggers may hear them now.
    Changed,
    /// No more events will follow.
    Closed,
}

/// Reads events for the triggers that hear them now, until there are others.
///
/// It ends between two commits only: a commit under way could land after another reading has begun,
/// which would accept the same events again.
async fn listen(shared: &Shared, changed: &mut watch::Receiver<u64>) -> Result<Ended, Error> {
    let core = &shared.core;
    let subscribers = subscribers(core).await?;
    let known = read_up_to(core).await?;
    if subscribers.is_empty() {
        if let Some(known) = known.filter(|known| known.is_heard) {
            let silent = ReadUpTo {
                is_heard: false,
                ..known
            };
            let commit = Commit::new().snapshot(stream(), snapshot(silent));
            core.store().commit(commit).await?;
        }
        return Ok(ended(changed.changed().await.is_ok()));
    }
    let position = match known.filter(|known| known.is_heard) {
        Some(known) => known.position,
        None => first_position(core, &subscribers).await?,
    };
    let mut listening = Listening {
        shared,
        subscribers,
        position,
        stored: known.map_or(0, |known| known.position),
    };
    let mut durable = core.store().durable();
    loop {
        let until = *durable.borrow_and_update();
        while listening.position < until {
            listening.hear_page(until).await?;
            if changed.has_changed().unwrap_or(true) {
                return Ok(Ended::Changed);
            }
        }
        tokio::select! {
            more = durable.changed() => if more.is_err() {
                return Ok(Ended::Closed);
            },
            changed = changed.changed() => return Ok(ended(changed.is_ok())),
        }
    }
}

fn ended(is_changed: bool) -> Ended {
    if is_changed {
        Ended::Changed
    } else {
        Ended::Closed
    }
}

/// Returns the triggers that hear events and are fired.
async fn subscribers(core: &Core) -> Result<Vec<Subscriber>, Error> {
    let mut subscribers = Vec::new();
    let mut after: Option<TriggerName> = None;
    loop {
        let filter = TriggerFilter {
            kind: Some("events".to_owned()),
            ..TriggerFilter::default()
        };
        let page = core.store().triggers(filter, after, TRIGGERS_PAGE).await?;
        after = page.last().map(|row| row.name.clone());
        subscribers.extend(page.iter().filter_map(subscriber));
        if subscribers.len() > SUBSCRIBERS_MAX {
            tracing::error!(
                max = SUBSCRIBERS_MAX,
                "too many triggers hear events; the last by name hear none"
            );
            subscribers.truncate(SUBSCRIBERS_MAX);
            return Ok(subscribers);
        }
        if page.len() < TRIGGERS_PAGE {
            return Ok(subscribers);
        }
    }
}

fn subscriber(row: &TriggerRow) -> Option<Subscriber> {
    match &row.spec.on {
        TriggerKind::Events(spec) if row.spec.enabled && row.paused.is_none() => Some(Subscriber {
            name: row.name.clone(),
            spec: spec.clone(),
            defined: row.defined,
            version: row.version,
        }),
        _ => None,
    }
}

/// Returns the position after which the first triggers that subscribe to events begin: that of the
/// last event about any of them, which defines the subscription.
async fn first_position(core: &Core, subscribers: &[Subscriber]) -> Result<u64, Error> {
    let mut first = *core.store().durable().borrow();
    for subscriber in subscribers {
        let stream = Stream::Trigger(subscriber.name.id());
        let before = subscriber.version.saturating_sub(1);
        let events = core.store().stream(stream, before, 1).await?;
        let positions = events.iter().map(|recorded| recorded.position);
        first = positions.fold(first, u64::min);
    }
    Ok(first)
}

fn stream() -> Stream {
    Stream::Trigger(TriggerId::of_name(STREAM))
}

fn snapshot(read: ReadUpTo) -> Snapshot {
    Snapshot {
        version: read.position,
        format: FORMAT,
        state: serde_json::to_vec(&read).unwrap_or_default(),
    }
}

async fn read_up_to(core: &Core) -> Result<Option<ReadUpTo>, Error> {
    let snapshot = core.store().snapshot(stream()).await?;
    let snapshot = snapshot.filter(|snapshot| snapshot.format == FORMAT);
    Ok(snapshot.and_then(|it| serde_json::from_slice(&it.state).ok()))
}

/// The reading of events for triggers.
struct Listening<'a> {
    shared: &'a Shared,
    subscribers: Vec<Subscriber>,
    /// The position of the last event that was read.
    position: u64,
    /// The same, as it is stored.
    stored: u64,
}

/// An event of the host for a trigger.
struct Heard {
    name: TriggerName,
    event: HostEvent,
}

impl Listening<'_> {
    /// Reads a page of events, and accepts the trigger events that follow from them.
    async fn hear_page(&mut self, until: u64) -> Result<(), Error> {
        let core = &self.shared.core;
        let filter = EventFilter::default();
        let page = core.store().events(self.position, filter, PAGE).await?;
        let last = page.last().map_or(until, |recorded| recorded.position);
        let mut heard = Vec::new();
        for recorded in &page {
            let Some(happened) = happened(core, recorded, |kind| self.wants(kind)).await? else {
                continue;
            };
            let event = &happened.event;
            if event.name == HostEventKind::Budget80 {
                self.accept_once(&happened).await?;
            } else {
                heard.extend(self.subscribers_of(&happened).map(|name| Heard {
                    name,
                    event: event.clone(),
                }));
            }
        }
        if !heard.is_empty() || last.saturating_sub(self.stored) >= UNHEARD_MAX {
            self.accept(heard, last).await?;
            self.stored = last;
        }
        self.position = last;
        Ok(())
    }

    /// Returns whether any trigger hears events of a kind.
    fn wants(&self, kind: HostEventKind) -> bool {
        self.subscribers
            .iter()
            .any(|subscriber| subscriber.spec.on.contains(&kind))
    }

    fn subscribers_of(&self, happened: &Happened) -> impl Iterator<Item = TriggerName> {
        let subscribers = self.subscribers.iter().filter(|subscriber| {
            happened.event.time >= subscriber.defined
                && subscriber.spec.hears(&subscriber.name, &happened.heard())
        });
        let names: Vec<TriggerName> = subscribers
            .map(|subscriber| subscriber.name.clone())
            .collect();
        names.into_iter()
    }

    /// Accepts trigger events, in one commit with the position of reading. A trigger that is paused
    /// or gone by now gets none. If too many trigger events of a trigger wait, it is recorded that
    /// it missed some.
    async fn accept(&self, mut heard: Vec<Heard>, last: u64) -> Result<(), Error> {
        let core = &self.shared.core;
        let mut full: Vec<TriggerName> = Vec::new();
        let mut gone: Vec<TriggerName> = Vec::new();
        // Each conflict takes a trigger out.
        for _ in 0..=2 * self.subscribers.len() {
            heard.retain(|heard| !gone.contains(&heard.name));
            let commit = accepting(&heard, &full, core.now()).snapshot(
                stream(),
                snapshot(ReadUpTo {
                    position: last,
                    is_heard: true,
                }),
            );
            store::point("edge.heard.before");
            let committed = core.store().commit(commit).await;
            store::point("edge.heard.after");
            let conflict = match committed {
                Ok(_) => {
                    self.shared.open.notify_one();
                    return Ok(());
                }
                Err(CommitError::Conflict(conflict)) => conflict,
                Err(error) => return Err(error.into()),
            };
            match conflict.clash {
                Clash::Guard(Guard::Trigger(TriggerGuard::PendingAtMost { trigger, .. })) => {
                    full.push(trigger);
                }
                Clash::Guard(Guard::Trigger(TriggerGuard::NextDue { trigger, .. })) => {
                    gone.push(trigger);
                }
                _ => return Err(CommitError::Conflict(conflict).into()),
            }
        }
        Err(CommitError::Busy.into())
    }

    /// Accepts an event that is reported once, however often it is read.
    async fn accept_once(&self, happened: &Happened) -> Result<(), Error> {
        let core = &self.shared.core;
        for name in self.subscribers_of(happened) {
            let id = &happened.event.id;
            let key = Key {
                source: format!("trigger:{name}"),
                key: format!("event:{id}"),
                request: Digest::of(id.as_bytes()),
                reply: Vec::new(),
                about: None,
            };
            let heard = [Heard {
                name,
                event: happened.event.clone(),
            }];
            let commit = accepting(&heard, &[], core.now()).key(key);
            match core.store().commit(commit).await {
                Ok(_) => self.shared.open.notify_one(),
                // It was reported before, or no trigger subscribes to it any more.
                Err(CommitError::Replayed { .. } | CommitError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Returns the commit that accepts trigger events. Triggers with too many waiting ones miss theirs,
/// and an event at the end of a too long chain reaches none.
fn accepting(heard: &[Heard], full: &[TriggerName], now: Timestamp) -> Commit {
    let context = Context::new("host", now);
    let mut commit = Commit::new();
    for Heard { name, event } in heard {
        commit = commit.guard(TriggerGuard::NextDue {
            trigger: name.clone(),
            due: None,
        });
        let reason = match (event.chain > CHAIN_MAX, full.contains(name)) {
            (true, _) => Some(SkipReason::Chain),
            (false, true) => Some(SkipReason::Missed),
            (false, false) => None,
        };
        if let Some(reason) = reason {
            let missed = Event::TriggerEventsSkipped(TriggerEventsSkipped {
                name: name.clone(),
                due: event.time,
                count: 1,
                reason,
                next_due: None,
                time: now,
            });
            commit = recording::append(commit, name, &context, [missed]);
            continue;
        }
        let accepted = recording::accepted(name, TriggerEvent::Event(event.clone()), now);
        commit = recording::accept(commit, &context, accepted);
    }
    commit
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_heard_is_accepted_and_missed_where_too_much_waits() {
        let event = HostEvent {
            name: HostEventKind::InputDead,
            id: "7".to_owned(),
            time: Timestamp(5),
            data: json!({}),
            chain: 0,
        };
        let names: [TriggerName; 2] = ["a".parse().unwrap(), "b".parse().unwrap()];
        let heard = names.clone().map(|name| Heard {
            name,
            event: event.clone(),
        });
        let commit = accepting(&heard, &names[1..], Timestamp(9));
        let kinds: Vec<bool> = commit
            .appends
            .iter()
            .flat_map(|append| &append.events)
            .map(|event| matches!(event.event, Event::TriggerEventAccepted(_)))
            .collect();
        assert_eq!(kinds, [true, false]);
        assert_eq!(commit.guards.len(), 3);
    }
}
