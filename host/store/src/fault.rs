//! Named places at which a test can make the process die as if by `kill -9`, or the code panic.
//!
//! With `AGENT_HOST_CRASH_AT=name` in the environment the process aborts when it first passes that
//! place, with `name:N` the N-th time. `panic@name:N` panics instead, `panic@name:N..M` at each of
//! these passages, `panic@name:N..` from the N-th on. Without debug assertions all of this is
//! compiled to nothing.

use crate::sql::{self, Failure};
use domain::event::Event;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The crash points of this crate, for a test that goes through all of them.
pub const CRASH_POINTS: &[&str] = &[
    "store.commit.begin",
    "store.commit.inserted",
    "store.commit.committed",
    "store.open.created",
    "store.migrate",
    "store.open.migrated",
    "store.open.marked",
    "store.snapshot",
    "store.backup",
    "store.checkpoint",
    "store.rebuild.folded",
    "store.rebuild.compared",
    "store.rebuild.replaced",
    "store.rebuild.committed",
    "store.purge.begin",
    "store.purge.unsaved",
    "store.purge.erased",
    "store.purge.rewritten",
];

/// Passes the fault point of this name. Exits here without unwinding, or panics, if the environment
/// asks for it.
///
/// # Panics
/// If the environment asks for it.
#[inline]
pub fn point(name: &str) {
    static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    if !cfg!(debug_assertions) {
        return;
    }
    let wanted = WANTED.get_or_init(|| variable("AGENT_HOST_CRASH_AT").map(|text| parse(&text)));
    let Some(wanted) = wanted.as_ref().filter(|wanted| wanted.name == name) else {
        return;
    };
    let passage = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if passage < wanted.first || passage > wanted.last {
        return;
    }
    match wanted.fault {
        InjectedFault::Death => std::process::abort(),
        InjectedFault::Panic => panic!("a test wants a panic at {name}, passage {passage}"),
    }
}

/// A text that a test searches for in payloads, once it was read from the environment.
type Words = OnceLock<Option<String>>;

#[expect(
    clippy::disallowed_methods,
    reason = "set by tests, never by an operator"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Returns whether a payload contains the text in a variable of the environment. No payload does
/// without debug assertions.
#[inline]
fn has_words(words: &'static Words, name: &str, payload: impl FnOnce() -> Vec<u8>) -> bool {
    cfg!(debug_assertions)
        && words
            .get_or_init(|| variable(name))
            .as_ref()
            .is_some_and(|words| contains(&payload(), words))
}

/// Returns an event as JSON.
fn json(event: Option<&Event>) -> Vec<u8> {
    serde_json::to_vec(&event).unwrap_or_default()
}

fn contains(payload: &[u8], words: &str) -> bool {
    payload
        .windows(words.len())
        .any(|chunk| chunk == words.as_bytes())
}

/// Returns whether a test wants an event with this payload to be impossible to store.
/// `AGENT_HOST_UNSTORABLE` has the text to search for.
pub(crate) fn is_unstorable(payload: &[u8]) -> bool {
    static WORDS: Words = Words::new();

    has_words(&WORDS, "AGENT_HOST_UNSTORABLE", || payload.to_vec())
}

/// Panics as a faulty projection would, on an event that contains the text in
/// `AGENT_HOST_PANICS_ON`.
pub(crate) fn project(event: Option<&Event>) {
    static WORDS: Words = Words::new();

    let is_unwanted = has_words(&WORDS, "AGENT_HOST_PANICS_ON", || json(event))
        || (cfg!(test) && contains(&json(event), PANICS_IN_TESTS));
    assert!(!is_unwanted, "a test wants a panic on this event");
}

/// The text on which a projection panics in the tests of this crate.
pub(crate) const PANICS_IN_TESTS: &str = "a projection panics on this";

/// Fails on an event as a faulty projection would.
///
/// The row of an event that contains the text in `AGENT_HOST_CONTRADICTS_ON` contradicts a stored
/// row. For an event with the text in `AGENT_HOST_MISREADS_ON`, a stored row cannot be read.
pub(crate) fn refuse(event: Option<&Event>) -> sql::Result<()> {
    static CONTRADICTS: Words = Words::new();
    static MISREADS: Words = Words::new();

    let reason = "a test wants it so";
    if has_words(&CONTRADICTS, "AGENT_HOST_CONTRADICTS_ON", || json(event)) {
        return Err(sql::Error::failed(Failure::Constraint, reason));
    }
    if has_words(&MISREADS, "AGENT_HOST_MISREADS_ON", || json(event)) {
        return Err(sql::unreadable("payload", reason));
    }
    Ok(())
}

/// Panics as a faulty fold would, on reading an event that contains the text in
/// `AGENT_HOST_READING_PANICS_ON`. Exits as if out of memory on an event with the text in
/// `AGENT_HOST_READING_DIES_ON`.
pub(crate) fn read(payload: &[u8]) {
    static PANICS: Words = Words::new();
    static DIES: Words = Words::new();

    if has_words(&DIES, "AGENT_HOST_READING_DIES_ON", || payload.to_vec()) {
        std::process::abort();
    }
    assert!(
        !has_words(&PANICS, "AGENT_HOST_READING_PANICS_ON", || payload.to_vec()),
        "a test wants a panic on reading this event"
    );
}

/// Dies as for want of memory, on a call with arguments that have the text in
/// `AGENT_HOST_PERFORMING_DIES_ON`.
pub fn perform(arguments: &str) {
    static DIES: Words = Words::new();

    if has_words(&DIES, "AGENT_HOST_PERFORMING_DIES_ON", || arguments.into()) {
        std::process::abort();
    }
}

/// Panics as a fault of the full-text index would, on words with [`UNINDEXABLE_IN_TESTS`].
pub(crate) fn index(words: &str) {
    assert!(
        !(cfg!(test) && words.contains(UNINDEXABLE_IN_TESTS)),
        "a test wants a panic on these words"
    );
}

/// The text on which indexing panics in the tests of this crate.
pub(crate) const UNINDEXABLE_IN_TESTS: &str = "indexing panics on this";

/// A fault to inject, with its place and the passage at which it happens.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    fault: InjectedFault,
    name: String,
    first: u64,
    last: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum InjectedFault {
    Death,
    Panic,
}

fn parse(text: &str) -> Wanted {
    let (fault, place) = match text.strip_prefix("panic@") {
        Some(place) => (InjectedFault::Panic, place),
        None => (InjectedFault::Death, text),
    };
    let (name, first, last) = passages(place).unwrap_or((place, 1, 1));
    Wanted {
        fault,
        name: name.to_owned(),
        first,
        last,
    }
}

/// A name, and the first and the last passage that are behind its colon.
fn passages(place: &str) -> Option<(&str, u64, u64)> {
    let (name, passages) = place.rsplit_once(':')?;
    match passages.split_once("..") {
        None => passages.parse().ok().map(|only| (name, only, only)),
        Some((first, "")) => Some((name, first.parse().ok()?, u64::MAX)),
        Some((first, last)) => Some((name, first.parse().ok()?, last.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::{InjectedFault, Wanted, parse};

    fn wanted(fault: InjectedFault, first: u64, last: u64) -> Wanted {
        Wanted {
            fault,
            name: "store.migrate".to_owned(),
            first,
            last,
        }
    }

    #[test]
    fn a_crash_point_is_named_with_or_without_a_passage() {
        assert_eq!(parse("store.migrate"), wanted(InjectedFault::Death, 1, 1));
        assert_eq!(parse("store.migrate:7"), wanted(InjectedFault::Death, 7, 7));
        assert_eq!(
            parse("panic@store.migrate"),
            wanted(InjectedFault::Panic, 1, 1)
        );
        assert_eq!(
            parse("panic@store.migrate:2..4"),
            wanted(InjectedFault::Panic, 2, 4)
        );
        assert_eq!(
            parse("panic@store.migrate:3.."),
            wanted(InjectedFault::Panic, 3, u64::MAX)
        );
    }
}
