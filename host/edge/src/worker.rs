//! One worker for every kind of durable work item: trigger events, inbound and outbound messages.
//!
//! An item is accepted in a commit, and its outcome is stored in another. So a worker keeps nothing
//! that a crash could lose: it reads what is due, and processes a few items at a time, and of one
//! source one after the other. However many items are accepted at once, the work on them is
//! bounded, and a source that waits delays no other. A start after a crash continues in the same
//! way.
//!
//! A kind brings what is due, its call and its settlement.

use crate::core::{Core, panic_text};
use domain::time::Timestamp;
use futures::FutureExt;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use store::ReadError;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Milliseconds until items are read again that could not be read.
const TROUBLE_MS: u64 = 1_000;
/// Milliseconds until an item over which the host panicked is processed again.
const PANIC_MS: u64 = 5_000;
/// Maximum number of remembered waiting sources. Beyond it, they are tried again.
const WAITS_MAX: usize = 10_000;

/// The next work on a source after an attempt at one of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next item that is due, or this one when it is due again.
    GoOn,
    /// The same item, after so many milliseconds.
    Again {
        /// The time to wait.
        ms: u64,
    },
}

/// A kind of work items.
pub(crate) trait WorkItemKind: Clone + Send + Sync + 'static {
    /// A chat or a trigger: its items are processed one after the other.
    type Source: Clone + Eq + Hash + Send + Sync + 'static;
    /// An item as it was read.
    type Item: Send + 'static;

    /// The items, as the log names them.
    const NAME: &'static str;
    /// Items that are processed at a time.
    const AT_ONCE: usize;
    /// The longest sleep, in milliseconds. A clock that was set is noticed after it.
    const SLEEP_MS_MAX: u64;

    fn core(&self) -> &Core;

    fn source(item: &Self::Item) -> Self::Source;

    /// Reads items that may be processed now, the longest due first: at least as many as there is
    /// `room` for, if there are so many of sources that the desk takes.
    fn due(
        &self,
        now: Timestamp,
        room: usize,
        desk: &Desk<Self::Source>,
    ) -> impl Future<Output = Result<Vec<Self::Item>, ReadError>> + Send;

    /// Returns the earliest time after `now` at which there may be more to do.
    fn next_after(
        &self,
        now: Timestamp,
    ) -> impl Future<Output = Result<Option<Timestamp>, ReadError>> + Send;

    /// Returns whether one more item of a source is within the limits of the kind.
    fn has_place(&self, _source: &Self::Source, _desk: &Desk<Self::Source>) -> bool {
        true
    }

    /// Processes an item after so many failures in a row of its source.
    fn process(&self, item: Self::Item, failures: u32) -> impl Future<Output = Next> + Send;

    /// Waits until items were accepted, or may be processed that could not before.
    fn woken(&mut self) -> impl Future<Output = ()> + Send;
}

/// The sources with an item in progress, and those that wait.
pub(crate) struct Desk<S> {
    at_work: HashSet<S>,
    /// Nothing depends on it: after a start none waits.
    waits: HashMap<S, Wait>,
}

/// The wait of a source whose item is tried again.
struct Wait {
    until: Instant,
    /// Failures in a row.
    failures: u32,
}

impl<S: Clone + Eq + Hash> Desk<S> {
    pub(crate) fn new() -> Self {
        Self {
            at_work: HashSet::new(),
            waits: HashMap::new(),
        }
    }

    /// Returns the sources with an item in progress.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = &S> {
        self.at_work.iter()
    }

    /// Returns the sources of which nothing is taken now.
    pub(crate) fn not_now(&self) -> impl Iterator<Item = &S> {
        let now = Instant::now();
        let waiting = self.waits.iter().filter(move |(_, wait)| wait.until > now);
        self.at_work().chain(waiting.map(|(source, _)| source))
    }

    fn takes(&self, source: &S) -> bool {
        let now = Instant::now();
        let is_waiting = self.waits.get(source).is_some_and(|it| it.until > now);
        !is_waiting && !self.at_work.contains(source)
    }

    /// Begins the work on an item of a source. Returns the failures in a row before it.
    pub(crate) fn begin(&mut self, source: S) -> u32 {
        let failures = self.waits.get(&source).map_or(0, |wait| wait.failures);
        self.at_work.insert(source);
        failures
    }

    fn end(&mut self, source: S, next: Next) {
        self.at_work.remove(&source);
        let before = self.waits.remove(&source);
        let Next::Again { ms } = next else { return };
        if self.waits.len() >= WAITS_MAX {
            self.waits.clear();
        }
        let wait = Wait {
            until: Instant::now() + Duration::from_millis(ms),
            failures: before.map_or(0, |wait| wait.failures).saturating_add(1),
        };
        self.waits.insert(source, wait);
    }

    /// Ends all waits. The failures still count.
    fn end_waits(&mut self) {
        let now = Instant::now();
        self.waits.values_mut().for_each(|wait| wait.until = now);
    }

    /// Returns the time until the next source has waited long enough.
    fn next_in(&self) -> Option<Duration> {
        let now = Instant::now();
        let ends = self.waits.values().map(|wait| wait.until);
        let first = ends.filter(|until| *until > now).min()?;
        Some(first.saturating_duration_since(now))
    }
}

/// Processes the items of a kind until the edge stops.
pub(crate) async fn run<K: WorkItemKind>(mut kind: K) {
    let mut desk = Desk::new();
    let mut working: JoinSet<(K::Source, Next)> = JoinSet::new();
    let mut replaced = kind.core().replacements();
    loop {
        let sleep_ms = match begin(&kind, &mut desk, &mut working).await {
            Ok(next_ms) => next_ms,
            Err(error) => {
                tracing::warn!(
                    kind = K::NAME,
                    error = &error as &dyn std::error::Error,
                    "it cannot be read what is to be done"
                );
                TROUBLE_MS
            }
        };
        let sleep = Duration::from_millis(sleep_ms);
        let sleep = desk.next_in().map_or(sleep, |next| sleep.min(next));
        tokio::select! {
            Some(done) = working.join_next() => {
                if let Ok((source, next)) = done {
                    desk.end(source, next);
                }
            }
            changed = replaced.changed() => {
                if changed.is_ok() {
                    // What was in the way may be gone.
                    desk.end_waits();
                }
            }
            () = kind.woken() => {}
            () = tokio::time::sleep(sleep) => {}
        }
    }
}

/// Begins to process items, up to the maximum at a time. Returns the milliseconds after which there
/// may be more to do.
async fn begin<K: WorkItemKind>(
    kind: &K,
    desk: &mut Desk<K::Source>,
    working: &mut JoinSet<(K::Source, Next)>,
) -> Result<u64, ReadError> {
    while working.len() < K::AT_ONCE {
        let now = kind.core().now();
        let room = K::AT_ONCE - working.len();
        let mut has_begun = false;
        for item in kind.due(now, room, desk).await? {
            let source = K::source(&item);
            let has_room = working.len() < K::AT_ONCE;
            if has_room && desk.takes(&source) && kind.has_place(&source, desk) {
                let failures = desk.begin(source.clone());
                let processed = process(kind.clone(), item, failures);
                let processed = processed.map(|next| (source, next));
                working.spawn(store::in_background(processed));
                has_begun = true;
            }
        }
        if !has_begun {
            let next = kind.next_after(now).await?;
            return Ok(next.map_or(K::SLEEP_MS_MAX, |time| {
                time.since_ms(now).clamp(1, K::SLEEP_MS_MAX)
            }));
        }
    }
    Ok(K::SLEEP_MS_MAX)
}

/// Processes an item. After a panic it is tried again.
async fn process<K: WorkItemKind>(kind: K, item: K::Item, failures: u32) -> Next {
    let processed = AssertUnwindSafe(kind.process(item, failures)).catch_unwind();
    processed.await.unwrap_or_else(|panic| {
        let panic = panic_text(panic.as_ref());
        tracing::error!(kind = K::NAME, panic, "the work on an item panicked");
        Next::Again { ms: PANIC_MS }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_item_of_a_source_is_processed_at_a_time_and_a_wait_holds_nobody_else_back() {
        let mut desk = Desk::new();
        desk.begin("a");
        desk.end("b", Next::Again { ms: 50 });
        let takes = |desk: &Desk<_>| ["a", "b", "c"].map(|source| desk.takes(&source));
        assert_eq!(takes(&desk), [false, false, true]);
        assert_eq!(desk.not_now().count(), 2);
        assert_eq!(desk.next_in(), Some(Duration::from_millis(50)));
        desk.end("a", Next::GoOn);
        tokio::time::advance(Duration::from_millis(50)).await;
        assert_eq!(takes(&desk), [true; 3]);
        assert_eq!((desk.next_in(), desk.not_now().count()), (None, 0));
    }

    #[tokio::test]
    async fn failures_in_a_row_are_counted_until_an_item_is_dealt_with() {
        let mut desk = Desk::new();
        for before in 0..3 {
            assert_eq!(desk.begin("a"), before);
            desk.end("a", Next::Again { ms: 1_000_000 });
            assert!(!desk.takes(&"a"));
            desk.end_waits();
            assert!(desk.takes(&"a"));
        }
        desk.end("a", Next::GoOn);
        assert_eq!(desk.begin("a"), 0);
    }

    #[tokio::test]
    async fn a_bounded_number_of_waits_is_remembered() {
        let mut desk = Desk::new();
        for source in 0..=WAITS_MAX {
            desk.end(source, Next::Again { ms: 1_000_000 });
        }
        assert_eq!(desk.not_now().count(), 1);
    }
}
