//! Rebuilding while the store serves: what is wrong is replaced, nothing is lost, and a crash
//! leaves one or the other.

use super::buckets::{place, written};
use super::opening::{DIR, in_another_process};
use super::projections::everything;
use super::recalling::note;
use super::sample::{
    NOON, Sample, accepted, agent, commit, input, message, noise, open, opened, run, run_begun,
    run_started, session, stepped, take_turn, timer,
};
use crate::sql::{Columns, Connection};
use crate::{CRASH_POINTS, RebuildError, RebuildState, Rebuilt, Replaced, Store};
use domain::event::{Event, Source};
use domain::grant::BucketScope;
use domain::id::Stream;
use domain::message::Role;
use domain::turn::TurnNode;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A store with a conversation and a note.
async fn filled() -> Sample {
    let sample = Sample::begun().await;
    let turn = take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    take_turn(
        &sample.store,
        1,
        Some(&turn),
        2,
        "and then",
        "this happened",
    )
    .await;
    sample.in_agent(1, [note(1, "likes tea")]).await;
    sample
}

/// Changes something behind the store's back.
fn damage(database: &Path, statement: &str) {
    let connection = Connection::open(database).unwrap();
    connection
        .set_busy_timeout(Duration::from_secs(60))
        .unwrap();
    connection.execute_batch(statement).unwrap();
}

fn replaced(table: &'static str, [changed, missing, superfluous]: [u64; 3]) -> Replaced {
    Replaced {
        table,
        changed,
        missing,
        superfluous,
    }
}

#[tokio::test]
async fn a_start_with_its_first_step_leaves_the_rows_of_both() {
    let mut rows = Vec::new();
    for is_together in [true, false] {
        let sample = Sample::begun().await;
        for n in [1, 2] {
            let said = accepted(n, 1, Source::Api, "hello");
            sample.append(Stream::Session(session(1)), vec![said]).await;
        }
        let heard = vec![message(1, Role::User, "hello")];
        let mut step = stepped(run(1), heard, Vec::new(), vec![timer(run(1), "t", NOON)]);
        step.claimed = vec![input(2)];
        let claimed = vec![input(1)];
        let events = if is_together {
            vec![run_begun(step, 1, None, claimed), noise(1)]
        } else {
            let started = run_started(run(1), 1, None, claimed);
            vec![started, Event::RunStepped(Box::new(step))]
        };
        sample.append(Stream::Run(run(1)), events).await;
        rows.push(everything(&sample.database()));
    }
    assert_eq!(rows[0], rows[1]);
}

#[tokio::test]
async fn a_store_that_is_as_its_events_say_is_left_as_it_is() {
    let sample = filled().await;
    let before = everything(&sample.database());
    assert_eq!(sample.rebuild_state(), RebuildState::Never);
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        rebuilt,
        Rebuilt {
            events: 13,
            replaced: Vec::new(),
            index_replaced: false,
            paused: Duration::ZERO
        }
    );
    assert_eq!(sample.rebuild_state(), RebuildState::Done(rebuilt));
    assert_eq!(everything(&sample.database()), before);
    assert!(!sample.dir.path().join("rebuild.db").exists());
    // It notes nothing any more, and can do it again.
    let left = sample
        .read(|sql| {
            sql.rows("SELECT name FROM temp.sqlite_schema", [], |row| {
                row.get::<String>(0)
            })
        })
        .await
        .unwrap();
    assert!(left.is_empty(), "{left:?}");
    sample.rebuild().await.unwrap();
}

#[tokio::test]
async fn what_was_changed_is_replaced_and_told_table_by_table() {
    for (statement, table, [changed, missing, superfluous], index) in [
        (
            "UPDATE sessions SET open_run = x'00'",
            "sessions",
            [1, 0, 0],
            true,
        ),
        ("DELETE FROM runs", "runs", [0, 2, 0], false),
        (
            "UPDATE inputs SET state = 'waiting', run = NULL",
            "inputs",
            [2, 0, 0],
            false,
        ),
        (
            "UPDATE messages SET message = CAST(replace(CAST(message AS TEXT), 'hello', 'hallo') AS BLOB)",
            "messages",
            [1, 0, 0],
            true,
        ),
        (
            "DELETE FROM turns WHERE depth = 2",
            "turns",
            [0, 1, 0],
            false,
        ),
        (
            "INSERT INTO wakes VALUES (x'00', 'timer', x'01', 1)",
            "wakes",
            [0, 0, 1],
            false,
        ),
        (
            "UPDATE agents SET path = '/eve'",
            "agents",
            [1, 0, 0],
            false,
        ),
        (
            "DELETE FROM recall WHERE id = (SELECT max(id) FROM recall)",
            "recall",
            [0, 1, 0],
            true,
        ),
        (
            "INSERT INTO operations VALUES (x'00', x'01', x'02', NULL, 0, 0, NULL, 'time', 0)",
            "operations",
            [0, 0, 1],
            false,
        ),
        (
            "INSERT INTO usage VALUES (1, x'00', 'u', 'm', x'01', 1, 1, 0, 2, 3, 0, 4, 5, 6, 0, 0), (1, \
             x'00', 'u', 'n', x'01', 1, 1, 0, 2, 3, 0, 4, 5, 6, 0, 0)",
            "usage",
            [0, 0, 2],
            false,
        ),
        (
            "UPDATE messages SET id = id + 10 WHERE role = 'user'",
            "messages",
            [0, 2, 2],
            true,
        ),
    ] {
        let sample = filled().await;
        let before = everything(&sample.database());
        damage(&sample.database(), statement);
        assert_ne!(everything(&sample.database()), before, "{statement}");
        let rebuilt = sample.rebuild().await.unwrap();
        assert_eq!(
            rebuilt.replaced,
            [replaced(table, [changed, missing, superfluous])],
            "{statement}"
        );
        assert_eq!(rebuilt.index_replaced, index, "{statement}");
        assert_eq!(everything(&sample.database()), before, "{statement}");
        take_turn(
            &sample.store,
            1,
            sample.turn_of(2).await.as_ref(),
            3,
            "go on",
            "it does",
        )
        .await;
        assert_eq!(sample.verify().await.unwrap().fault, None, "{statement}");
    }
}

impl Store {
    /// The turn of a run.
    async fn turn_of(&self, n: u128) -> Option<TurnNode> {
        let turn = self.run(run(n)).await.unwrap()?.turn?;
        self.turn(turn).await.unwrap()
    }
}

#[tokio::test]
async fn a_damaged_full_text_index_finds_everything_again_for_whoever_had_it_open() {
    for statement in [
        "DELETE FROM recall_index_data WHERE id > 10",
        "DELETE FROM recall_index_docsize WHERE id = (SELECT max(id) FROM recall_index_docsize)",
        "UPDATE recall_index_data SET block = x'00' WHERE id = 1",
        "INSERT INTO recall_index (recall_index) VALUES ('delete-all')",
    ] {
        let sample = filled().await;
        // Every connection has seen the index as it was.
        for _ in 0..8 {
            assert_eq!(sample.recall(1, "tea morning", 10).await.len(), 2);
        }
        damage(&sample.database(), statement);
        let rebuilt = sample.rebuild().await.unwrap();
        assert!(
            rebuilt.index_replaced && rebuilt.replaced.is_empty(),
            "{statement}: {rebuilt:?}"
        );
        for _ in 0..8 {
            assert_eq!(
                sample.recall(1, "tea morning", 10).await.len(),
                2,
                "{statement}"
            );
        }
        // The writer goes on with the index that is there now.
        for n in 0..40 {
            sample
                .in_agent(1, [note(1, &format!("likes tea number {n}"))])
                .await;
        }
        assert_eq!(
            sample.recall(1, "number", 100).await.len(),
            40,
            "{statement}"
        );
        assert_eq!(sample.verify().await.unwrap().fault, None, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_store_under_load_is_rebuilt_and_nothing_is_lost() {
    let sample = Sample::begun().await;
    for n in 2..6 {
        sample.in_session(n, [opened(n, 1, None)]).await;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (2..6)
        .map(|n| {
            let store = sample.store.clone();
            let enough = Arc::clone(&enough);
            tokio::spawn(async move {
                let mut turn = None;
                let mut turns = 0;
                while !enough.load(Ordering::Relaxed) {
                    turns += 1;
                    turn = Some(
                        take_turn(
                            &store,
                            n,
                            turn.as_ref(),
                            n * 100_000 + turns,
                            "what now",
                            "this happened",
                        )
                        .await,
                    );
                }
                turns
            })
        })
        .collect();
    // Writes that update what is there are noted as well as new rows.
    let notes = place("shelf", BucketScope::User, "ada");
    sample.begin_run(1, 1, []).await;
    let bucket_writer = {
        let store = sample.store.clone();
        let enough = Arc::clone(&enough);
        tokio::spawn(async move {
            while !enough.load(Ordering::Relaxed) {
                let writes = [
                    written(&notes, &[("a", Some(b"1")), ("b", Some(b"2"))]),
                    written(&notes, &[("a", Some(b"3")), ("b", None)]),
                ];
                for write in writes {
                    let write = commit(Stream::Run(run(1)), [write]);
                    store.commit(write).await.unwrap();
                }
            }
        })
    };
    let reads = {
        let store = sample.store.clone();
        let enough = Arc::clone(&enough);
        tokio::spawn(async move {
            while !enough.load(Ordering::Relaxed) {
                store.session(session(2)).await.unwrap().unwrap();
                store.recall(agent(1), None, "happened", 10).await.unwrap();
            }
        })
    };
    let mut durable = sample.durable();
    let mut repaired = 0;
    for round in 1..=5 {
        durable
            .wait_for(|position| *position > round * 300)
            .await
            .unwrap();
        // Nobody's turn is hurt by these, and what the writer makes of them since is wrong as well.
        damage(
            &sample.database(),
            "DELETE FROM recall WHERE id % 7 = 0; INSERT INTO wakes VALUES (x'00', 'timer', x'01', 1); \
             UPDATE agents SET sub_count = sub_count + 1; \
             UPDATE runs SET started_at = 1 WHERE outcome IS NOT NULL; DELETE FROM blob_references \
             WHERE stream % 10 = 9;",
        );
        let rebuilt = sample.rebuild().await.unwrap();
        repaired += rebuilt
            .replaced
            .iter()
            .map(|table| table.changed + table.missing + table.superfluous)
            .sum::<u64>();
        assert!(
            rebuilt.index_replaced,
            "the rows that it is made from were damaged"
        );
    }
    enough.store(true, Ordering::Relaxed);
    let mut turns = 0;
    for writer in writers {
        turns += writer.await.unwrap();
    }
    bucket_writer.await.unwrap();
    reads.await.unwrap();
    assert!(repaired > 5);
    let verified = sample.verify().await.unwrap();
    assert_eq!((verified.fault, u128::from(verified.turns)), (None, turns));
    // The same once more, now that nothing moves.
    let last = sample.rebuild().await.unwrap();
    assert_eq!((last.replaced, last.index_replaced), (Vec::new(), false));
    assert_eq!(last.events, *durable.borrow());
}

#[tokio::test]
async fn one_rebuild_goes_on_at_a_time_and_ends_with_the_store() {
    let sample = filled().await;
    for n in 10..40 {
        sample
            .commit(commit(Stream::Run(run(n)), vec![noise(1); 500]))
            .await
            .unwrap();
    }
    let first = sample.begin_rebuild().unwrap();
    assert!(matches!(sample.rebuild().await, Err(RebuildError::Running)));
    assert!(matches!(
        sample.rebuild_state(),
        RebuildState::Running { .. }
    ));
    sample.close().await;
    assert!(matches!(first.await.unwrap(), Err(RebuildError::Closed)));
    assert!(matches!(sample.rebuild().await, Err(RebuildError::Closed)));
    assert!(!sample.dir.path().join("rebuild.db").exists());
    assert_eq!(open(sample.dir.path()).verify().await.unwrap().fault, None);
}

#[tokio::test]
async fn an_event_that_cannot_be_read_leaves_everything_as_it_is() {
    let sample = filled().await;
    damage(
        &sample.database(),
        "UPDATE events SET kind = 'run.startled.v9' WHERE kind = 'run.started.v1'; DELETE FROM \
         runs;",
    );
    let before = everything(&sample.database());
    let error = sample.rebuild().await.unwrap_err();
    assert!(matches!(error, RebuildError::Database { .. }), "{error:?}");
    let RebuildState::Failed { reason } = sample.rebuild_state() else {
        panic!("{:?}", sample.rebuild_state())
    };
    assert!(
        reason.contains("event ")
            && reason.contains("`run.startled.v9`")
            && reason.contains("a newer version"),
        "{reason}"
    );
    assert_eq!(everything(&sample.database()), before);
    assert!(!sample.dir.path().join("rebuild.db").exists());
}

/// Rebuilds a damaged store until it dies.
#[tokio::test]
async fn rebuilds_until_it_dies() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let store = open(&PathBuf::from(dir).join("data"));
    store.rebuild().await.unwrap();
}

#[tokio::test]
async fn a_crash_of_a_rebuild_leaves_what_was_there_or_what_should_be() {
    for point in CRASH_POINTS
        .iter()
        .filter(|point| point.starts_with("store.rebuild."))
    {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let filled = filled().await;
        let right = everything(&filled.database());
        assert_eq!(
            filled
                .store
                .recall(agent(1), None, "morning", 10)
                .await
                .unwrap()
                .len(),
            1
        );
        filled.store.close().await;
        std::fs::rename(filled.dir.path(), &data).unwrap();
        let no_words = "INSERT INTO recall_index (recall_index) VALUES ('delete-all')";
        damage(
            &data.join("store.db"),
            &format!("DELETE FROM runs; UPDATE sessions SET name = 'x'; {no_words}"),
        );
        let wrong = everything(&data.join("store.db"));
        let died = in_another_process(
            "tests::rebuilding::rebuilds_until_it_dies",
            dir.path(),
            point,
        );
        assert!(!died.status.success(), "{point} was never passed");
        let store = open(&data);
        let found = everything(&data.join("store.db"));
        let done = *point == "store.rebuild.committed";
        assert_eq!(found == right, done, "{point}");
        assert_eq!(found == wrong, !done, "{point}");
        assert!(!data.join("rebuild.db").exists(), "{point}");
        assert_eq!(
            store.verify().await.unwrap().fault.is_none(),
            done,
            "{point}"
        );
        assert_eq!(
            store
                .recall(agent(1), None, "morning", 10)
                .await
                .unwrap()
                .len(),
            usize::from(done),
            "{point}"
        );
        assert_eq!(
            store.rebuild().await.unwrap().replaced.is_empty(),
            done,
            "{point}"
        );
        assert_eq!(
            store
                .recall(agent(1), None, "morning", 10)
                .await
                .unwrap()
                .len(),
            1,
            "{point}"
        );
        assert_eq!(everything(&data.join("store.db")), right, "{point}");
    }
}
