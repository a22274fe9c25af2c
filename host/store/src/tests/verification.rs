//! Verification finds whatever was changed behind the store's back, and where.

use super::recalling::note;
use super::sample::{Sample, erase, take_turn};
use crate::sql::{Columns, Connection, Sql};
use crate::{Verification, verify};
use std::fs::File;
use std::os::unix::fs::FileExt;

async fn three_turns() -> Sample {
    let sample = Sample::begun().await;
    let mut turn = take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    turn = take_turn(&sample.store, 1, Some(&turn), 2, "again", "good evening").await;
    take_turn(&sample.store, 1, Some(&turn), 3, "once more", "good night").await;
    sample.recall(1, "morning", 10).await;
    let sound = sample.verify().await.unwrap();
    assert_eq!(
        (sound.events, sound.turns, sound.erased, sound.fault),
        (17, 3, 0, None)
    );
    sample
}

async fn tampered(statement: &str) -> Verification {
    let sample = three_turns().await;
    Connection::open(sample.database())
        .unwrap()
        .execute_batch(statement)
        .unwrap();
    sample.verify().await.unwrap()
}

async fn check(statement: &str, position: u64, problem: &str) {
    let found = tampered(statement).await;
    let fault = found
        .fault
        .unwrap_or_else(|| panic!("{statement}: not found"));
    assert_eq!(
        (fault.position, found.events),
        (position, position - 1),
        "{statement}"
    );
    assert!(
        fault.problem.contains(problem),
        "{statement}: {}",
        fault.problem
    );
}

#[tokio::test]
async fn a_damaged_page_is_found_without_looking_at_what_events_say() {
    let sample = Sample::begun().await;
    // What was closed is one file.
    let sample = sample.reopen().await;
    assert_eq!(sample.damage().await.unwrap(), None);
    let sample = sample.reopen().await;
    let raw = sample.connection();
    let number =
        |query: &str| u64::from(raw.query_row(query, [], |row| row.get::<u32>(0)).unwrap());
    let page = number("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'");
    let bytes = number("PRAGMA page_size");
    let file = File::options().write(true).open(sample.database()).unwrap();
    file.write_all_at(&vec![0xff; bytes as usize], (page - 1) * bytes)
        .unwrap();
    let found = sample.damage().await.unwrap().expect("the damage");
    assert!(found.contains(&page.to_string()), "{found}");
}

#[tokio::test]
async fn a_changed_payload_is_found() {
    check(
        "UPDATE events SET payload = CAST(replace(CAST(payload AS TEXT), 'hello', 'hallo') AS \
         BLOB) WHERE position = 3",
        3,
        "what it says",
    )
    .await;
}

#[tokio::test]
async fn a_changed_column_is_found() {
    check(
        "UPDATE events SET actor = 'user:eve' WHERE position = 5",
        5,
        "hash",
    )
    .await;
    check(
        "UPDATE events SET time = time + 1 WHERE position = 6",
        6,
        "hash",
    )
    .await;
    check(
        "UPDATE events SET session = NULL WHERE position = 2",
        2,
        "hash",
    )
    .await;
}

#[tokio::test]
async fn a_deleted_row_is_found() {
    check("DELETE FROM events WHERE position = 4", 4, "missing").await;
    check("DELETE FROM events WHERE position = 17", 17, "missing").await;
    check("DELETE FROM events WHERE position > 10", 11, "missing").await;
}

#[tokio::test]
async fn swapped_rows_are_found() {
    let swap = "UPDATE events SET position = -1 WHERE position = 8; UPDATE events SET position = 8 \
                WHERE position = 9; \
                UPDATE events SET position = 9 WHERE position = -1;";
    check(swap, 8, "hash").await;
}

#[tokio::test]
async fn an_added_row_is_found() {
    let add = "INSERT INTO events (position, stream, version, id, kind, session, run, actor, \
               causation, correlation, time, salt, payload, payload_digest, hash, bytes) SELECT 18, \
               1, 9, id, kind, session, run, actor, causation, correlation, time, salt, \
               payload, payload_digest, hash, bytes FROM events WHERE position = 17;";
    check(add, 18, "hash").await;
}

/// An event names its streams by numbers; its hash commits to their names.
#[tokio::test]
async fn a_stream_under_another_number_is_found() {
    let of_session = "stream_kind = 'session'";
    let first = "hash does not follow";
    check(
        "UPDATE streams SET stream_id = randomblob(16) WHERE stream_kind = 'session'",
        2,
        first,
    )
    .await;
    check(
        "UPDATE streams SET stream_id = x'00' WHERE stream_kind = 'session'",
        2,
        first,
    )
    .await;
    check(
        "UPDATE streams SET stream_kind = 'connector' WHERE stream_kind = 'session'",
        2,
        first,
    )
    .await;
    check(
        "UPDATE streams SET stream_kind = 'x' WHERE stream_kind = 'agent'",
        1,
        first,
    )
    .await;
    check(
        "UPDATE streams SET stream_kind = 'run' WHERE stream_kind = 'session'",
        2,
        first,
    )
    .await;
    check(
        "DELETE FROM streams WHERE stream_kind = 'session'",
        2,
        first,
    )
    .await;
    check("UPDATE streams SET number = number + 100", 1, first).await;
    check(
        &format!(
            "DELETE FROM streams WHERE {of_session}; UPDATE streams SET stream_kind = 'session', \
                  number = 2 WHERE stream_kind = 'run' AND number = 3"
        ),
        2,
        first,
    )
    .await;
}

#[tokio::test]
async fn a_payload_that_goes_without_its_digest_is_found() {
    check(
        "UPDATE events SET payload = NULL, salt = NULL WHERE position = 3",
        3,
        "hash",
    )
    .await;
}

#[tokio::test]
async fn an_erased_payload_leaves_the_chain_intact() {
    let sample = three_turns().await;
    erase(&sample, "position IN (3, 8)");
    let found = sample.verify().await.unwrap();
    assert_eq!((found.events, found.erased), (17, 2));
    // What follows from it has to go with it: a purge sees to that.
    let fault = found.fault.unwrap();
    assert!(
        fault.position == 0 && fault.problem.contains("the events themselves are whole"),
        "{}",
        fault.problem
    );
}

#[tokio::test]
async fn what_was_erased_is_gone_and_everything_else_can_still_be_read() {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    erase(&sample, "kind = 'session.input.accepted.v1'");
    let events = sample
        .events(0, crate::EventFilter::default(), 100)
        .await
        .unwrap();
    assert_eq!(
        events
            .iter()
            .filter(|event| event.event.is_none())
            .map(|event| event.kind.as_str())
            .collect::<Vec<_>>(),
        ["session.input.accepted.v1"]
    );
    assert_eq!(
        sample.store.input(super::sample::input(1)).await.unwrap(),
        None
    );
    sample.rebuild().await.unwrap();
}

#[tokio::test]
async fn a_damaged_turn_is_found_and_named() {
    for (statement, problem) in [
        (
            "UPDATE messages SET message = CAST(replace(CAST(message AS TEXT), 'good evening', 'good evenyng') AS BLOB)",
            "message 4 is not the one that it commits to",
        ),
        (
            "UPDATE turns SET depth = 7 WHERE depth = 2",
            "is not among the turns before it",
        ),
        (
            "UPDATE turns SET outcome = 'aborted' WHERE depth = 2",
            "its id follows from other content",
        ),
        (
            "UPDATE turns SET jump = NULL WHERE depth = 2",
            "its jump pointer",
        ),
        (
            "UPDATE turns SET used = 'x' WHERE depth = 2",
            "cannot be read",
        ),
        (
            "UPDATE turns SET messages = x'00' WHERE depth = 2",
            "cannot be read",
        ),
        (
            "UPDATE turns SET root = X'00' WHERE depth = 2",
            "hangs on no tree",
        ),
    ] {
        let sample = Sample::begun().await;
        let first = take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
        let second = take_turn(&sample.store, 1, Some(&first), 2, "again", "good evening").await;
        take_turn(
            &sample.store,
            1,
            Some(&second),
            3,
            "once more",
            "good night",
        )
        .await;
        Connection::open(sample.database())
            .unwrap()
            .execute_batch(statement)
            .unwrap();
        let fault = sample
            .verify()
            .await
            .unwrap()
            .fault
            .unwrap_or_else(|| panic!("{statement}: not found"));
        assert!(
            fault.problem.contains(&second.id.to_string()) && fault.problem.contains(problem),
            "{statement}: {}",
            fault.problem
        );
    }
}

/// Changes something that is no event.
async fn check_beside(statement: &str, problem: &str) {
    let fault = tampered(statement)
        .await
        .fault
        .unwrap_or_else(|| panic!("{statement}: not found"));
    assert_eq!(fault.position, 0, "{statement}");
    assert!(
        fault.problem.contains(problem),
        "{statement}: {}",
        fault.problem
    );
}

#[tokio::test]
async fn what_was_changed_beside_the_events_is_found() {
    check_beside("UPDATE blobs SET bytes = X'7b7e'", "blob").await;
    check_beside("DELETE FROM blobs", "missing").await;
    check_beside(
        "UPDATE messages SET message = CAST(replace(CAST(message AS TEXT), 'hello', 'hallo') AS BLOB)",
        "`messages`",
    )
    .await;
    check_beside(
        "UPDATE inputs SET state = 'waiting', run = NULL",
        "`inputs`",
    )
    .await;
    check_beside("UPDATE sessions SET open_run = x'00'", "`sessions`").await;
    check_beside("DELETE FROM runs", "`runs`").await;
    check_beside("DELETE FROM agents", "`agents`").await;
    check_beside(
        "INSERT INTO wakes VALUES (x'00', 'timer', x'01', 1)",
        "`wakes`",
    )
    .await;
    check_beside(
        "DELETE FROM recall_index_data WHERE id = (SELECT max(id) FROM recall_index_data)",
        "recall_index",
    )
    .await;
}

#[tokio::test]
async fn what_was_said_since_a_connection_last_searched_is_no_damage() {
    let sample = Sample::begun().await;
    let connection = sample.connection();
    // Each is indexed by itself.
    let note = async || {
        sample
            .in_agent(1, [note(1, "prefers green tea to coffee")])
            .await;
        sample.recall(1, "tea", 1).await;
    };
    for _ in 0..20 {
        note().await;
    }
    let found: i64 = connection
        .query_row(
            "SELECT count(*) FROM recall_index WHERE recall_index MATCH 'tea'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(found, 20);
    for _ in 0..20 {
        note().await;
    }
    assert_eq!(verify::whole(&Sql::new(&connection)).unwrap().fault, None);
}
