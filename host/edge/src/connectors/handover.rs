//! The order in which inbound messages are handed over: of a chat one after the other, and a few
//! chats at a time.
//!
//! The work is read from the store, so that a start continues where the host stopped. However many
//! messages are received at once, the work on them is bounded. A waiting chat delays no other one.

use super::Shared;
use super::served::Served;
use super::settling::{self, Next};
use crate::core::panic_text;
use domain::connector::{GATHERED_MS, ReplyRoute};
use domain::time::Timestamp;
use futures::FutureExt;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use store::ReadError;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Chats that are processed at a time.
const CHATS_MAX: usize = 32;
/// Chats that are read at a time, in addition to those in progress or waiting.
const PAGE: usize = 64;
/// Inbound messages of a chat that are processed before others have their turn.
const OF_CHAT_MAX: usize = 50;
/// Maximum number of remembered waiting chats. Beyond it, they are checked again.
const DEFERRED_MAX: usize = 10_000;
/// The longest sleep, in milliseconds. A clock that was set is noticed after it.
const SLEEP_MS_MAX: u64 = 10_000;
/// Milliseconds until inbound messages are read again that could not be read.
const TROUBLE_MS: u64 = 1_000;
/// Milliseconds until a chat over which the host panicked is processed again.
const PANIC_MS: u64 = 5_000;
/// Milliseconds for which inbound messages of a connector wait that is not served.
const UNSERVED_MS: u64 = 60_000;

/// The chats in progress, and the waiting ones.
#[derive(Default)]
struct Desk {
    at_work: HashSet<ReplyRoute>,
    /// The waiting chats, with the end of each wait. Nothing depends on it: after a start none
    /// waits.
    deferred: HashMap<ReplyRoute, Instant>,
    /// Failures in a row of chats that wait or are tried again.
    failures: HashMap<ReplyRoute, u32>,
}

impl Desk {
    fn takes(&self, chat: &ReplyRoute) -> bool {
        !self.at_work.contains(chat) && !self.deferred.contains_key(chat)
    }

    fn hold(&mut self, chat: ReplyRoute, ms: u64) {
        if self.deferred.len() >= DEFERRED_MAX {
            self.deferred.clear();
            self.failures.clear();
        }
        let until = Instant::now() + Duration::from_millis(ms);
        self.deferred.insert(chat, until);
    }

    /// Lets go of the chats that have waited long enough. Returns the time until the next has.
    fn let_go(&mut self, now: Instant) -> Option<Duration> {
        self.deferred.retain(|_, until| *until > now);
        let first = self.deferred.values().min()?;
        Some(first.saturating_duration_since(now))
    }

    /// Ends the work on a chat.
    fn end(&mut self, done: Done) {
        let Done { chat, next } = done;
        self.at_work.remove(&chat);
        match next {
            Next::GoOn => {
                self.failures.remove(&chat);
            }
            Next::Again { ms } => {
                let failures = self.failures.entry(chat.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                self.hold(chat, ms);
            }
        }
    }
}

/// A chat that is done with for now.
struct Done {
    chat: ReplyRoute,
    next: Next,
}

/// Hands inbound messages over until the edge stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut desk = Desk::default();
    let mut working: JoinSet<Done> = JoinSet::new();
    let mut replaced = shared.core.replacements();
    loop {
        let deferred = desk.let_go(Instant::now());
        let sleep_ms = match begin(&shared, &mut desk, &mut working).await {
            Ok(next_ms) => next_ms,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "inbound messages of connectors cannot be read"
                );
                TROUBLE_MS
            }
        };
        let sleep = Duration::from_millis(sleep_ms);
        let sleep = deferred.map_or(sleep, |deferred| sleep.min(deferred));
        tokio::select! {
            Some(done) = working.join_next() => {
                if let Ok(done) = done {
                    desk.end(done);
                }
            }
            changed = replaced.changed() => {
                if changed.is_ok() {
                    // Connectors that were not served may be served by now.
                    desk.deferred.clear();
                }
            }
            () = shared.arrived.notified() => {}
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

/// Begins to process chats, up to the maximum at a time. Returns the milliseconds after which there
/// may be more to do.
async fn begin(
    shared: &Arc<Shared>,
    desk: &mut Desk,
    working: &mut JoinSet<Done>,
) -> Result<u64, ReadError> {
    if working.len() >= CHATS_MAX {
        return Ok(SLEEP_MS_MAX);
    }
    let now = shared.core.now();
    // Messages within a moment of each other are gathered.
    let gathered = Timestamp(now.0.saturating_sub(GATHERED_MS));
    let limit = PAGE + desk.at_work.len() + desk.deferred.len();
    let store = shared.core.store();
    for open in store.open_chats(gathered, limit).await? {
        if working.len() >= CHATS_MAX {
            return Ok(SLEEP_MS_MAX);
        }
        let chat = ReplyRoute {
            connector: open.connector,
            chat: open.chat,
        };
        if !desk.takes(&chat) {
            continue;
        }
        match shared.served.at_work(&chat.connector) {
            Some(served) => {
                let failures = desk.failures.get(&chat).copied().unwrap_or(0);
                desk.at_work.insert(chat.clone());
                let shared = shared.clone();
                working.spawn(store::in_background(async move {
                    let next = deal_with(&shared, &served, &chat, failures).await;
                    Done { chat, next }
                }));
            }
            None => desk.hold(chat, UNSERVED_MS),
        }
    }
    let next = store.next_open_chat_after(gathered).await?;
    Ok(next.map_or(SLEEP_MS_MAX, |first| {
        let gathered = first.plus_ms(GATHERED_MS);
        gathered.since_ms(now).clamp(1, SLEEP_MS_MAX)
    }))
}

/// Deals with the inbound messages of a chat after so many failures in a row.
async fn deal_with(shared: &Shared, served: &Served, chat: &ReplyRoute, failures: u32) -> Next {
    let inbound_messages = match shared
        .core
        .store()
        .open_inbound_messages_in(chat, OF_CHAT_MAX)
        .await
    {
        Ok(inbound_messages) => inbound_messages,
        Err(error) => {
            tracing::warn!(
                connector.name = %served.name,
                error = &error as &dyn std::error::Error,
                "inbound messages of a chat cannot be read"
            );
            return Next::Again { ms: TROUBLE_MS };
        }
    };
    let settled = settling::settle(shared, served, inbound_messages, failures);
    let settled = AssertUnwindSafe(settled).catch_unwind().await;
    settled.unwrap_or_else(|panic| {
        let panic = panic_text(panic.as_ref());
        tracing::error!(connector.name = %served.name, panic, "an inbound message panicked");
        Next::Again { ms: PANIC_MS }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(connector: &str, chat: &str) -> ReplyRoute {
        ReplyRoute {
            connector: connector.parse().unwrap(),
            chat: chat.to_owned(),
        }
    }

    #[tokio::test]
    async fn a_chat_that_waits_holds_nobody_else_back() {
        let mut desk = Desk::default();
        desk.hold(route("telegram", "a"), 50);
        desk.at_work.insert(route("telegram", "b"));
        assert!(!desk.takes(&route("telegram", "a")));
        assert!(!desk.takes(&route("telegram", "b")));
        assert!(desk.takes(&route("telegram", "c")));
        assert!(desk.takes(&route("slack", "a")));
        let later = Instant::now() + Duration::from_millis(100);
        assert_eq!(desk.let_go(later), None);
        assert!(desk.takes(&route("telegram", "a")));
    }

    #[tokio::test]
    async fn failures_in_a_row_are_counted_until_one_is_dealt_with() {
        let mut desk = Desk::default();
        let chat = route("telegram", "a");
        for count in 1..=2 {
            let next = Next::Again { ms: 1 };
            let chat = chat.clone();
            desk.end(Done { chat, next });
            assert_eq!(desk.failures.values().copied().collect::<Vec<_>>(), [count]);
        }
        let next = Next::GoOn;
        desk.end(Done { chat, next });
        assert!(desk.failures.is_empty());
    }
}
