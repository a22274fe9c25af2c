//! The order in which messages are sent: of a chat one after the other, and of many chats some at a
//! time.
//!
//! Due messages are read from the store, page by page, so that a start continues where the host
//! stopped. A message that was being sent at that moment is checked first: it is unknown whether it
//! was sent.

use super::sending::{self, Next};
use super::served::Served;
use super::{Shared, calls};
use crate::core::panic_text;
use domain::connector::ReplyRoute;
use domain::path::ConnectorName;
use domain::time::Timestamp;
use futures::FutureExt;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use store::{OutboundMessageRow, ReadError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Messages of one connector that are sent at a time.
const OF_CONNECTOR_MAX: usize = 8;
/// Messages that are read at a time, in addition to those that cannot be sent now.
const PAGE: usize = 64;
/// Maximum number of remembered waiting chats. Beyond it, the first of them are checked again.
const DEFERRED_MAX: usize = 10_000;
/// The longest sleep, in milliseconds. A clock that was set is noticed after it.
const SLEEP_MS_MAX: u64 = 10_000;
/// Milliseconds between two checks for due messages, while much is stored.
const POLL_MS: u64 = 20;
/// Milliseconds until due messages are read again after a failed read.
const TROUBLE_MS: u64 = 1_000;
/// Milliseconds until a message over which the host panicked is tried again.
const PANIC_MS: u64 = 5_000;

/// The messages that are sent now, and the chats that wait.
#[derive(Default)]
struct Desk {
    /// The chats into which a message is sent.
    at_work: HashSet<ReplyRoute>,
    /// The number of those of each connector.
    of_connectors: HashMap<ConnectorName, usize>,
    /// Connectors with messages that are not served.
    unserved: BTreeSet<ConnectorName>,
    /// The waiting chats, with the end of each wait. Nothing depends on it: after a start none
    /// waits.
    deferred: HashMap<ReplyRoute, Instant>,
}

impl Desk {
    fn takes(&self, chat: &ReplyRoute) -> bool {
        !self.at_work.contains(chat) && !self.deferred.contains_key(chat)
    }

    fn is_busy(&self, connector: &ConnectorName) -> bool {
        let at_work = self.of_connectors.get(connector).copied().unwrap_or(0);
        at_work >= OF_CONNECTOR_MAX
    }

    fn begin(&mut self, chat: &ReplyRoute) {
        self.at_work.insert(chat.clone());
        *self
            .of_connectors
            .entry(chat.connector.clone())
            .or_insert(0) += 1;
    }

    fn end(&mut self, chat: &ReplyRoute) {
        self.at_work.remove(chat);
        if let Some(count) = self.of_connectors.get_mut(&chat.connector) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.of_connectors.remove(&chat.connector);
            }
        }
    }

    fn hold(&mut self, chat: ReplyRoute, ms: u64) {
        if self.deferred.len() >= DEFERRED_MAX {
            self.deferred.clear();
        }
        let until = Instant::now() + Duration::from_millis(ms);
        self.deferred.insert(chat, until);
    }

    /// Lets go of the chats that have waited long enough. Returns their number.
    fn let_go(&mut self, now: Instant) -> usize {
        let before = self.deferred.len();
        self.deferred.retain(|_, until| *until > now);
        before - self.deferred.len()
    }

    /// Returns the time until the next chat has waited long enough.
    fn next_in(&self, now: Instant) -> Option<Duration> {
        let first = self.deferred.values().min()?;
        Some(first.saturating_duration_since(now))
    }
}

/// A message on which work begins.
struct Begun {
    served: Arc<Served>,
    row: OutboundMessageRow,
}

/// A message that is done with for now.
struct Done {
    chat: ReplyRoute,
    next: Next,
}

/// Sends messages until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut desk = Desk::default();
    let mut working: JoinSet<Done> = JoinSet::new();
    let mut replaced = shared.core.replacements();
    let mut stored = shared.core.store().durable();
    let mut is_recovering = true;
    loop {
        let now = Instant::now();
        // The abandoned attempt may have begun.
        is_recovering |= desk.let_go(now) > 0;
        let mut sleep_ms = SLEEP_MS_MAX;
        let begun = async {
            if is_recovering {
                recover(&shared, &mut desk, &mut working).await?;
                is_recovering = false;
            }
            begin(&shared, &mut desk, &mut working).await
        };
        match begun.await {
            Ok(next_ms) => sleep_ms = sleep_ms.min(next_ms),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "it cannot be read which messages are to be sent"
                );
                sleep_ms = TROUBLE_MS;
            }
        }
        let sleep = Duration::from_millis(sleep_ms);
        let sleep = desk.next_in(now).map_or(sleep, |next| sleep.min(next));
        tokio::select! {
            Some(done) = working.join_next() => {
                if let Ok(Done { chat, next }) = done {
                    desk.end(&chat);
                    if let Next::Again { ms } = next {
                        desk.hold(chat, ms);
                    }
                }
            }
            changed = replaced.changed() => {
                if changed.is_ok() {
                    // Connectors that were not served may be served by now.
                    desk.unserved.clear();
                    is_recovering = true;
                }
            }
            () = something_stored(&mut stored) => {}
            () = shared.outbox.notified() => {}
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

/// Waits until events were stored, which may include a message to send. Several within a moment are
/// reported once.
async fn something_stored(stored: &mut watch::Receiver<u64>) {
    if stored.changed().await.is_err() {
        // The store is closed, and the edge is about to stop.
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(Duration::from_millis(POLL_MS)).await;
}

/// Looks at the messages that were about to be sent when the host stopped.
async fn recover(
    shared: &Arc<Shared>,
    desk: &mut Desk,
    working: &mut JoinSet<Done>,
) -> Result<(), ReadError> {
    let mut after = 0;
    loop {
        let started = shared
            .core
            .store()
            .started_outbound_messages(after, PAGE)
            .await?;
        let Some(last) = started.last() else {
            return Ok(());
        };
        after = last.position;
        for row in started {
            let chat = route(&row);
            if !desk.takes(&chat) {
                continue;
            }
            // Messages of connectors that are not served wait: only their component can settle
            // them.
            if let Some(served) = shared.served.at_work(&row.connector) {
                spawn(shared, desk, working, Begun { served, row });
            }
        }
    }
}

/// Begins to send messages, as many as may be sent at a time. Returns the milliseconds after which
/// there may be more to do.
async fn begin(
    shared: &Arc<Shared>,
    desk: &mut Desk,
    working: &mut JoinSet<Done>,
) -> Result<u64, ReadError> {
    let now = shared.core.now();
    let mut sleep_ms = SLEEP_MS_MAX;
    loop {
        let NotNow { connectors, ms } = not_now(shared, desk, now);
        sleep_ms = sleep_ms.min(ms);
        let limit = PAGE + desk.deferred.len() + desk.at_work.len();
        let store = shared.core.store();
        // However many wait for these, the others have their turn.
        let due = store.due_outbound_messages(now, limit, &connectors).await?;
        let is_page_full = due.len() >= limit;
        let mut changes = false;
        for row in due {
            if working.len() >= calls::SENDINGS_MAX {
                return Ok(sleep_ms);
            }
            if !desk.takes(&route(&row)) || desk.is_busy(&row.connector) {
                continue;
            }
            let Some(served) = shared.served.at_work(&row.connector) else {
                changes |= desk.unserved.insert(row.connector);
                continue;
            };
            spawn(shared, desk, working, Begun { served, row });
            changes = true;
        }
        if !changes || !is_page_full {
            let next = store.next_outbound_message_after(now).await?;
            let next_ms = next.map_or(SLEEP_MS_MAX, |time| time.since_ms(now).max(1));
            return Ok(sleep_ms.min(next_ms));
        }
    }
}

/// The connectors through which nothing is sent now.
struct NotNow {
    connectors: BTreeSet<ConnectorName>,
    /// Milliseconds until something may be sent through the first connector whose service requested
    /// a pause.
    ms: u64,
}

fn not_now(shared: &Shared, desk: &Desk, now: Timestamp) -> NotNow {
    let mut connectors = desk.unserved.clone();
    let mut wait_ms = SLEEP_MS_MAX;
    for served in shared.served.all() {
        let deferred = served
            .lasting
            .health
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .deferred(now);
        if let Some(until) = deferred {
            wait_ms = wait_ms.min(until.since_ms(now).max(1));
        }
        if deferred.is_some() || desk.is_busy(&served.name) {
            connectors.insert(served.name.clone());
        }
    }
    NotNow {
        connectors,
        ms: wait_ms,
    }
}

fn route(row: &OutboundMessageRow) -> ReplyRoute {
    ReplyRoute {
        connector: row.connector.clone(),
        chat: row.chat.clone(),
    }
}

/// Begins to send a message.
fn spawn(shared: &Arc<Shared>, desk: &mut Desk, working: &mut JoinSet<Done>, begun: Begun) {
    let Begun { served, row } = begun;
    let chat = route(&row);
    desk.begin(&chat);
    let shared = shared.clone();
    working.spawn(store::in_background(async move {
        let outbound_message = row.outbound_message;
        let sent = AssertUnwindSafe(sending::deliver(&shared, &served, row)).catch_unwind();
        let next = sent.await.unwrap_or_else(|panic| {
            let panic = panic_text(panic.as_ref());
            tracing::error!(outbound_message.id = %outbound_message, panic, "an outbound message panicked");
            Next::Again { ms: PANIC_MS }
        });
        Done { chat, next }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(connector: &str, chat: &str) -> ReplyRoute {
        ReplyRoute {
            connector: connector.parse().unwrap(),
            chat: chat.to_owned(),
        }
    }

    #[test]
    fn one_message_is_sent_into_a_chat_at_a_time() {
        let mut desk = Desk::default();
        desk.begin(&chat("telegram", "a"));
        assert!(!desk.takes(&chat("telegram", "a")));
        assert!(desk.takes(&chat("telegram", "b")));
        desk.end(&chat("telegram", "a"));
        assert!(desk.takes(&chat("telegram", "a")));
        assert!(desk.of_connectors.is_empty());
    }

    #[test]
    fn one_connector_does_not_take_all_places() {
        let mut desk = Desk::default();
        let telegram = "telegram".parse().unwrap();
        for number in 0..OF_CONNECTOR_MAX {
            assert!(!desk.is_busy(&telegram));
            desk.begin(&chat("telegram", &number.to_string()));
        }
        assert!(desk.is_busy(&telegram));
        assert!(!desk.is_busy(&"slack".parse().unwrap()));
    }

    #[tokio::test]
    async fn a_chat_waits_until_its_time_has_come() {
        let mut desk = Desk::default();
        desk.hold(chat("telegram", "a"), 50);
        assert!(!desk.takes(&chat("telegram", "a")));
        let later = Instant::now() + Duration::from_millis(60);
        assert!(desk.next_in(Instant::now()).is_some());
        assert_eq!(desk.let_go(later), 1);
        assert_eq!(desk.next_in(later), None);
        assert!(desk.takes(&chat("telegram", "a")));
    }
}
