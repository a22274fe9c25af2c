//! No statement looks through a table that grows for what it could look up: whatever a test has the
//! store do, the plan of each statement is looked at when it is first prepared.

use rusqlite::Connection;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Statements that may scan a table from one end to the other. Each has the beginning of the
/// statement, and the reason why that is no harm.
const LOOKED_THROUGH: &[(&str, &str)] = &[
    ("SELECT position FROM head", "one row"),
    ("SELECT name FROM sqlite_schema", "the tables"),
    ("SELECT name FROM temp.sqlite_schema", "the tables"),
    (
        "SELECT quick_check FROM",
        "whoever verifies wants everything looked at",
    ),
    (
        "SELECT id FROM turns WHERE parent IS NULL ORDER BY id",
        "whoever verifies wants everything looked at",
    ),
    (
        "SELECT id FROM turns t WHERE NOT EXISTS",
        "whoever verifies wants everything looked at",
    ),
    (
        "SELECT named.digest, named.stream",
        "whoever verifies wants everything looked at",
    ),
    (
        "SELECT time FROM events ORDER BY position DESC LIMIT 1",
        "the last one",
    ),
    (
        "SELECT due FROM wakes ORDER BY due LIMIT 1",
        "the first of an index",
    ),
    ("SELECT 1 FROM recall", "whether there is one"),
    (
        "SELECT id FROM sessions WHERE open_run IS NOT NULL UNION SELECT sessions.id FROM (SELECT \
         DISTINCT session_number",
        "the index has what is open, and nothing else",
    ),
    (
        "SELECT e.kind, e.payload, d.kind, d.payload FROM inputs",
        "the index has dead letters, of which the last ones are read",
    ),
    ("WITH RECURSIVE above", "what was found so far"),
    ("WITH RECURSIVE reached", "what was found so far"),
    ("WITH RECURSIVE walked", "what was found so far"),
    ("WITH RECURSIVE family", "what was found so far"),
    (
        "SELECT s.id FROM (SELECT DISTINCT session FROM turns WHERE root = ?1)",
        "what was found so far",
    ),
    ("INSERT INTO agents", "the agents above the new one"),
    (
        "UPDATE inputs SET by_run",
        "the agents above the one that does the work",
    ),
    (
        "DELETE FROM operations WHERE session",
        "those that are open",
    ),
    (
        "DELETE FROM idempotency WHERE about IS NULL",
        "the index has requests of versions that did not say what they are about, and nothing else",
    ),
    (
        "SELECT digest FROM blobs_to_look_at LIMIT",
        "so many of those that a purge is to look at",
    ),
    (
        "SELECT digest FROM blobs WHERE digest NOT IN",
        "all blobs, for tests",
    ),
];

/// Statements that were checked.
static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Panics when a statement looks through a table and must not.
pub(crate) fn check(connection: &Connection, text: &'static str) {
    let is_new = SEEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(text);
    if !is_new
        || LOOKED_THROUGH
            .iter()
            .any(|(begins, _)| text.starts_with(begins))
    {
        return;
    }
    for step in steps(connection, text) {
        // The rows of a subquery are what was found by its own steps.
        let is_harmless = step.contains("VIRTUAL TABLE")
            || step == "SCAN CONSTANT ROW"
            || step.starts_with("SCAN (subquery");
        let looks_through = step.starts_with("SCAN ") && !is_harmless;
        assert!(
            !looks_through,
            "`{text}` looks through a table ({step}): give it an index, or say in plans.rs why \
             that is no harm"
        );
    }
}

/// Returns SQLite's query plan for a statement, step by step; nothing for one that has no plan.
fn steps(connection: &Connection, text: &str) -> Vec<String> {
    let Ok(mut plan) = connection.prepare(&format!("EXPLAIN QUERY PLAN {text}")) else {
        return Vec::new();
    };
    let mut rows = plan.raw_query();
    let mut steps = Vec::new();
    while let Ok(Some(row)) = rows.next() {
        steps.push(row.get(3).unwrap());
    }
    steps
}

#[test]
fn a_statement_that_looks_through_a_table_is_found() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE grows (id INTEGER PRIMARY KEY, of TEXT)")
        .unwrap();
    assert_eq!(
        steps(&connection, "SELECT 1 FROM grows WHERE of = ?1"),
        ["SCAN grows"]
    );
    check(&connection, "SELECT 1 FROM grows WHERE id = ?1");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        check(&connection, "DELETE FROM grows WHERE of = ?1")
    }));
    assert!(caught.is_err());
}
