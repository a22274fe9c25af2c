//! Named places at which a test can make the process die as if by `kill -9`.
//!
//! With `AGENT_HOST_CRASH_AT=name` in the environment the process aborts when it first passes that place, with `name:N` the N-th time.
//! Without debug assertions all of this is compiled to nothing.

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
];

/// Passes the place of this name: dies here, without unwinding, if the environment says so.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "set by tests, never by an operator")]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);

    let wanted = WANTED.get_or_init(|| std::env::var("AGENT_HOST_CRASH_AT").ok().map(|text| parse(&text)));
    let Some((wanted, passage)) = wanted else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *passage {
        std::process::abort();
    }
}

/// Passes the place of this name: nothing happens in a build without debug assertions.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_name: &str) {}

/// Passes the crash point of this name; see [`point`].
#[macro_export]
macro_rules! crash_point {
    ($name:expr) => {
        $crate::point($name)
    };
}

#[cfg(debug_assertions)]
fn parse(text: &str) -> (String, u64) {
    match text.rsplit_once(':').and_then(|(name, count)| Some((name, count.parse().ok()?))) {
        Some((name, count)) => (name.to_owned(), count),
        None => (text.to_owned(), 1),
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::parse;

    #[test]
    fn a_crash_point_is_named_with_or_without_a_passage() {
        assert_eq!(parse("store.migrate"), ("store.migrate".to_owned(), 1));
        assert_eq!(parse("store.migrate:7"), ("store.migrate".to_owned(), 7));
    }
}
