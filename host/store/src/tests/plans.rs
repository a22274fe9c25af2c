//! No statement looks through a table that grows for what it could look up: whatever a test has the
//! store do, the plan of each statement is looked at when it is first prepared.

use crate::sql::Connection;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A statement that may scan tables from one end to the other.
struct FullScan {
    /// The whole statement.
    statement: &'static str,
    /// The steps of its plan that scan, all of them.
    scans: &'static [&'static str],
    /// The reason why that is no harm.
    _reason: &'static str,
}

const FULL_SCANS: &[FullScan] = &[
    FullScan {
        statement: "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE \
                    VIRTUAL %' ORDER BY name",
        scans: &["SCAN sqlite_schema"],
        _reason: "it has a row for each table and index of the schema",
    },
    FullScan {
        statement: "SELECT name FROM temp.sqlite_schema",
        scans: &["SCAN temp.sqlite_schema"],
        _reason: "it has a row for each temporary table of one connection",
    },
    FullScan {
        statement: "SELECT id FROM turns WHERE parent IS NULL ORDER BY id",
        scans: &["SCAN turns USING INDEX sqlite_autoindex_turns_1"],
        _reason: "a verification looks at every turn afterwards",
    },
    FullScan {
        statement: "SELECT id FROM turns t WHERE NOT EXISTS (SELECT 1 FROM turns r WHERE r.id = \
                    t.root AND r.parent IS NULL) LIMIT 1",
        scans: &["SCAN t USING COVERING INDEX turns_by_root"],
        _reason: "a verification asks each turn for its tree",
    },
    FullScan {
        statement: "SELECT named.digest, streams.stream_kind, streams.stream_id FROM \
                    (SELECT digest, stream FROM blob_references UNION ALL SELECT ?1, NULL) named \
                    LEFT JOIN blobs ON blobs.digest = named.digest LEFT JOIN streams ON \
                    streams.number = named.stream WHERE blobs.digest IS NULL LIMIT 1",
        scans: &[
            "SCAN blob_references USING COVERING INDEX blob_references_by_digest",
            "SCAN named",
        ],
        _reason: "a verification asks for the blob of each reference",
    },
    FullScan {
        statement: "SELECT count(*) AS there, count(*) FILTER (WHERE paused_kind IN \
                    ('failures', 'schedule')) AS given_up, count(*) FILTER (WHERE \
                    open_until IS NOT NULL) AS resting, (SELECT count(*) FROM trigger_events WHERE \
                    state IN ('waiting', 'fired')) AS open_trigger_events FROM triggers WHERE \
                    removed_at IS NULL",
        scans: &[
            "SCAN triggers USING INDEX triggers_by_name",
            "SCAN trigger_events USING INDEX trigger_events_open",
        ],
        _reason: "an operator asks how many of all triggers rest",
    },
    FullScan {
        statement: "SELECT time FROM events ORDER BY position DESC LIMIT 1",
        scans: &["SCAN events"],
        _reason: "the scan ends at the first row, which is the last event",
    },
    FullScan {
        statement: "SELECT due FROM wakes ORDER BY due LIMIT 1",
        scans: &["SCAN wakes USING COVERING INDEX wakes_by_due"],
        _reason: "the scan ends at the first row of the index",
    },
    FullScan {
        statement: "SELECT 1 FROM recall",
        scans: &["SCAN recall"],
        _reason: "the scan ends at the first row",
    },
    FullScan {
        statement: "SELECT 1 FROM notes_index_docsize",
        scans: &["SCAN notes_index_docsize"],
        _reason: "the scan ends at the first row",
    },
    FullScan {
        statement: "SELECT id FROM sessions WHERE open_run IS NOT NULL UNION SELECT sessions.id \
                    FROM (SELECT DISTINCT session_number FROM inputs WHERE state = 'waiting' AND \
                    (due IS NULL OR due <= ?1)) AS waiting CROSS JOIN sessions ON sessions.number \
                    = waiting.session_number",
        scans: &[
            "SCAN sessions USING INDEX sessions_running",
            "SCAN inputs USING COVERING INDEX inputs_waiting",
            "SCAN waiting",
        ],
        _reason: "both indexes are partial: they have what is open or waits, and all of it is wanted",
    },
    FullScan {
        statement: "SELECT sessions.id FROM sessions CROSS JOIN agents ON agents.id = \
                    sessions.agent WHERE sessions.open_run IS NOT NULL AND agents.definition IN (SELECT value \
                    FROM json_each(:definitions))",
        scans: &["SCAN sessions USING INDEX sessions_running"],
        _reason: "the index is partial: it has what is open, and a definition is seldom taken away",
    },
    FullScan {
        statement: "SELECT id, user_id, input FROM tasks WHERE state IS NULL AND kind = 'delegate' \
                    LIMIT ?1",
        scans: &["SCAN tasks USING INDEX tasks_under_way"],
        _reason: "the index is partial: it has what is under way, and all of it is wanted",
    },
    FullScan {
        statement: "SELECT count(*) FROM sessions WHERE status = 'open'",
        scans: &["SCAN sessions"],
        _reason: "an operator asks how many there are, now and then",
    },
    FullScan {
        statement: "SELECT count(*) FROM sessions WHERE open_run IS NOT NULL",
        scans: &["SCAN sessions USING COVERING INDEX sessions_running"],
        _reason: "the index is partial: it has those that are wanted",
    },
    FullScan {
        statement: "SELECT count(*) FROM inputs WHERE state = 'waiting'",
        scans: &["SCAN inputs USING COVERING INDEX inputs_waiting"],
        _reason: "the index is partial: it has those that are wanted",
    },
    FullScan {
        statement: "SELECT count(*) FROM inputs WHERE state = 'dead'",
        scans: &["SCAN inputs USING COVERING INDEX inputs_dead"],
        _reason: "the index is partial: it has those that are wanted",
    },
    FullScan {
        statement: "SELECT count(*) FROM triggers WHERE removed_at IS NULL",
        scans: &["SCAN triggers USING INDEX triggers_by_name"],
        _reason: "the index is partial: it has those that are there, of which there is a limit",
    },
    FullScan {
        statement: "SELECT digest FROM blobs_to_inspect LIMIT ?1",
        scans: &["SCAN blobs_to_inspect"],
        _reason: "the scan ends after so many rows",
    },
    FullScan {
        statement: "SELECT digest FROM blobs WHERE digest NOT IN (SELECT digest FROM \
                    blob_references) AND digest <> ?1 LIMIT ?2",
        scans: &["SCAN blobs USING COVERING INDEX sqlite_autoindex_blobs_1"],
        _reason: "only tests ask",
    },
    FullScan {
        statement: "SELECT key FROM connector_keys",
        scans: &["SCAN connector_keys USING COVERING INDEX connector_keys_by_user"],
        _reason: "an operator asks what another configuration leaves behind, and all is counted",
    },
    FullScan {
        statement: "SELECT agents.definition, count(DISTINCT agents.id), count(sessions.id), \
                    count(sessions.open_run) FROM agents LEFT JOIN sessions ON sessions.agent = \
                    agents.id AND sessions.status = 'open' WHERE agents.active = 1 AND \
                    agents.definition NOT IN (SELECT id FROM made_definitions) GROUP BY 1",
        scans: &["SCAN agents USING INDEX agents_by_path"],
        _reason: "an operator asks what another configuration leaves behind, and all is counted",
    },
    FullScan {
        statement: "SELECT digest FROM text_uses",
        scans: &["SCAN text_uses"],
        _reason: "an operator has all that is stored verified",
    },
    FullScan {
        statement: "SELECT count(*) FROM user_storage",
        scans: &["SCAN user_storage USING COVERING INDEX sqlite_autoindex_user_storage_1"],
        _reason: "an operator asks what another configuration leaves behind, and all is counted",
    },
];

/// Statements that were checked.
static SEEN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Panics when a statement looks through a table and must not.
pub(crate) fn check(connection: &Connection, text: &'static str) {
    let is_new = SEEN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(text);
    if !is_new {
        return;
    }
    let scans = scans(connection, text);
    let is_harmless = scans.is_empty()
        || FULL_SCANS
            .iter()
            .any(|it| it.statement == text && it.scans == scans);
    assert!(
        is_harmless,
        "`{text}` looks through tables ({scans:?}): give them an index, or say in plans.rs why \
         that is no harm"
    );
}

/// Returns the steps of a statement's plan that look through a table.
fn scans(connection: &Connection, text: &str) -> Vec<String> {
    let mut steps = connection.plan(text);
    // The rows of a subquery, and of a table that the statement itself makes, are what was found by
    // their own steps.
    steps.retain(|step| {
        step.strip_prefix("SCAN ").is_some_and(|scanned| {
            !scanned.contains("VIRTUAL TABLE")
                && scanned != "CONSTANT ROW"
                && !scanned.starts_with("(subquery")
                && !is_made_by(text, scanned)
        })
    });
    steps
}

/// Returns whether a statement makes this table in its `WITH RECURSIVE`.
fn is_made_by(text: &str, table: &str) -> bool {
    text.split_once("WITH RECURSIVE ").is_some_and(|(_, made)| {
        made.starts_with(&format!("{table} (")) || made.contains(&format!(", {table} ("))
    })
}

#[test]
fn a_statement_that_looks_through_a_table_is_found() {
    let connection = Connection::open_in_memory().unwrap();
    connection
        .execute_batch("CREATE TABLE grows (id INTEGER PRIMARY KEY, of TEXT)")
        .unwrap();
    assert_eq!(
        connection.plan("SELECT 1 FROM grows WHERE of = ?1"),
        ["SCAN grows"]
    );
    check(&connection, "SELECT 1 FROM grows WHERE id = ?1");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        check(&connection, "DELETE FROM grows WHERE of = ?1")
    }));
    assert!(caught.is_err());
    let recursive = |from: &str| {
        format!(
            "WITH RECURSIVE found (id) AS (SELECT 1 UNION SELECT grows.id FROM found CROSS JOIN \
             grows ON grows.id = found.id + 1) SELECT id FROM {from}"
        )
    };
    assert_eq!(scans(&connection, &recursive("found")), [""; 0]);
    assert_eq!(scans(&connection, &recursive("grows")), ["SCAN grows"]);
}
