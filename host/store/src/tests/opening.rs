//! Opening: after a crash at any point, and what is refused because it cannot be trusted.

use super::sample::{
    NOON, Sample, agent, commit, new, noise, open, options, run, session, take_turn,
};
use crate::open::QUICK_CHECK_BYTES_MAX;
use crate::sql::{Columns, Connection};
use crate::{CRASH_POINTS, Commit, Expected, OpenError, ReadError, Snapshot, Store};
use domain::event::READER;
use domain::id::Stream;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn refused(dir: &Path) -> OpenError {
    let error = Store::open(dir, options()).expect_err("it opened");
    assert!(!error.advice().is_empty());
    error
}

/// The files of a store as a crash leaves them: copied while it is open, without its shared memory.
fn crashed(sample: &Sample) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["store.db", "store.db-wal", "store-id"] {
        fs::copy(sample.dir.path().join(name), copy.path().join(name)).unwrap();
    }
    copy
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

async fn ten_commits() -> Sample {
    let sample = Sample::begun().await;
    for n in 0..8 {
        sample.in_run(n, [noise(1)]).await;
    }
    sample
}

#[tokio::test]
async fn a_data_directory_is_its_owners_and_one_process_has_it() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("new/data");
    let store = open(&dir);
    store
        .commit(commit(Stream::Run(run(1)), [noise(1)]))
        .await
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert!(matches!(refused(&dir), OpenError::Locked { .. }));
    store.close().await;
    let log = fs::metadata(dir.join("store.db-wal")).map_or(0, |log| log.len());
    assert_eq!(log, 0, "a store that was closed is one file");
    assert_eq!(open(&dir).verify().await.unwrap().events, 1);
}

#[tokio::test]
async fn a_store_that_was_not_closed_opens_with_everything_in_it() {
    let sample = ten_commits().await;
    let copy = crashed(&sample);
    let again = open(copy.path());
    assert_eq!(*again.durable().borrow(), 10);
    assert_eq!(again.verify().await.unwrap().fault, None);
    assert!(again.agent(agent(1)).await.unwrap().is_some());
    assert_eq!(
        again
            .commit(commit(Stream::Run(run(1)), [noise(2)]))
            .await
            .unwrap()
            .versions,
        [(Stream::Run(run(1)), 2)]
    );
}

#[tokio::test]
async fn a_store_knows_whether_who_worked_on_it_ended_as_told() {
    let sample = Sample::new();
    assert!(sample.was_ended(), "nobody has worked on a new one");
    sample.begin_work().await.unwrap();
    let sample = sample.reopen().await;
    assert!(!sample.was_ended(), "it was closed, and nobody had said so");
    sample.begin_work().await.unwrap();
    sample.end_work().await.unwrap();
    let copy = crashed(&sample);
    assert!(open(copy.path()).was_ended());
    sample.begin_work().await.unwrap();
    let copy = crashed(&sample);
    assert!(!open(copy.path()).was_ended());
}

#[tokio::test]
async fn the_note_of_looks_outlasts_a_crash_until_it_is_removed() {
    let sample = Sample::new();
    assert_eq!(sample.noted_inspections().await.unwrap(), BTreeMap::new());
    let inspections = BTreeMap::from([(session(1), 2), (session(2), 1)]);
    sample.note_inspections(inspections.clone()).await.unwrap();
    let copy = crashed(&sample);
    assert_eq!(
        open(copy.path()).noted_inspections().await.unwrap(),
        inspections
    );
    sample.note_inspections(BTreeMap::new()).await.unwrap();
    let copy = crashed(&sample);
    let left = open(copy.path()).noted_inspections().await.unwrap();
    assert_eq!(left, BTreeMap::new());
}

#[tokio::test]
async fn a_large_store_that_was_not_closed_is_to_be_looked_over() {
    let sample = Sample::new();
    assert!(!sample.needs_integrity_check());
    sample
        .commit(Commit::new().blob(vec![1; QUICK_CHECK_BYTES_MAX as usize + 1]))
        .await
        .unwrap();
    let sample = sample.reopen().await;
    assert!(!sample.needs_integrity_check(), "it was closed");
    sample.in_run(1, [noise(1)]).await;
    let copy = crashed(&sample);
    let again = open(copy.path());
    assert!(again.needs_integrity_check());
    assert_eq!(again.damage().await.unwrap(), None);
}

#[tokio::test]
async fn a_database_that_is_gone_or_cut_off_never_becomes_a_new_one() {
    let sample = ten_commits().await;
    sample.close().await;
    let database = sample.database();
    let whole = fs::read(&database).unwrap();
    fs::remove_file(&database).unwrap();
    assert!(matches!(
        refused(sample.dir.path()),
        OpenError::Missing { .. }
    ));
    fs::write(&database, b"").unwrap();
    assert!(matches!(
        refused(sample.dir.path()),
        OpenError::Missing { .. }
    ));
    for bytes in [100, 4_096, whole.len() / 2, whole.len() - 4_096] {
        fs::write(&database, &whole[..bytes]).unwrap();
        let error = refused(sample.dir.path());
        assert!(
            matches!(error, OpenError::Corrupt { .. }),
            "{bytes}: {error:?}"
        );
    }
    fs::write(&database, &whole).unwrap();
    assert_eq!(*open(sample.dir.path()).durable().borrow(), 10);
}

#[tokio::test]
async fn a_database_of_another_store_or_of_a_newer_program_is_refused() {
    let one = ten_commits().await;
    let other = ten_commits().await;
    one.store.close().await;
    other.store.close().await;
    fs::copy(other.database(), one.database()).unwrap();
    assert!(matches!(refused(one.dir.path()), OpenError::Foreign { .. }));
    Connection::open(other.database())
        .unwrap()
        .execute_batch("PRAGMA user_version = 77")
        .unwrap();
    assert!(matches!(
        refused(other.dir.path()),
        OpenError::Newer { found: 77, .. }
    ));
}

/// So is a data folder of before the formats began anew: it is left as it is, and the advice says
/// how to take its sessions along.
#[tokio::test]
async fn a_data_folder_of_before_is_refused_with_the_way_to_take_its_sessions_along() {
    for statement in [
        "DELETE FROM meta WHERE name = 'baseline'; PRAGMA user_version = 19",
        "UPDATE meta SET value = 'another' WHERE name = 'baseline'",
    ] {
        let sample = ten_commits().await;
        let backup = sample.dir.path().join("backup");
        let connection = sample.connection();
        connection.execute_batch(statement).unwrap();
        sample.backup(&backup).await.unwrap();
        sample.close().await;
        drop(connection);
        let before = fs::read(sample.database()).unwrap();
        let error = refused(sample.dir.path());
        assert!(matches!(error, OpenError::Before { .. }), "{error}");
        assert!(
            error.to_string().contains("before the first release"),
            "{error}"
        );
        for command in ["agent-host session export", "agent-host session import"] {
            assert!(error.advice().contains(command), "{}", error.advice());
        }
        assert!(matches!(
            crate::kept_at_rest(sample.dir.path()),
            Err(OpenError::Before { .. })
        ));
        let restored = crate::restore(&backup, &sample.dir.path().join("restored")).unwrap_err();
        let reported = restored.to_string();
        assert!(reported.contains("before the first release"), "{reported}");
        assert!(fs::read(sample.database()).unwrap() == before, "it changed");
    }
}

#[tokio::test]
async fn a_store_that_demands_a_newer_reader_is_refused_by_an_older_one() {
    let sample = ten_commits().await;
    let backup = sample.dir.path().join("backup");
    let demand = |demanded: u64| {
        let connection = sample.connection();
        connection
            .execute(
                "UPDATE meta SET value = ?1 WHERE name = 'oldest_reader'",
                [demanded.to_string()],
            )
            .unwrap()
    };
    assert_eq!(
        demand(READER + 6),
        1,
        "a store names the program that made it"
    );
    sample.backup(&backup).await.unwrap();
    sample.close().await;
    let error = refused(sample.dir.path());
    assert!(
        matches!(error, OpenError::Demanding { demanded, known } if (demanded, known) == (READER + 6, READER)),
        "{error}"
    );
    let reported = error.to_string();
    assert!(
        reported.contains(&(READER + 6).to_string())
            && reported.contains(&format!("reader {READER}")),
        "{reported}"
    );
    assert!(error.advice().contains("newer"), "{}", error.advice());
    // Neither is a store made of a backup of it.
    let restored = crate::restore(&backup, &sample.dir.path().join("restored")).unwrap_err();
    assert!(
        restored.to_string().contains(&(READER + 6).to_string()),
        "{restored}"
    );
    // What an older program left is taken over, and no longer permits that one.
    demand(READER - 1);
    open(sample.dir.path()).close().await;
    let text = "SELECT value FROM meta WHERE name = 'oldest_reader'";
    let now: String = Connection::open(sample.database())
        .unwrap()
        .query_row(text, [], |row| row.get(0))
        .unwrap();
    assert_eq!(now, READER.to_string());
}

/// In PostgreSQL `user` is the role of the session: a statement that means the column would read
/// that instead, and no error would tell.
#[tokio::test]
async fn no_column_is_called_user() {
    let sample = Sample::new();
    sample.close().await;
    let connection = sample.connection();
    let text = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE \
                t.type = 'table'";
    let mut statement = connection.prepare(text).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut columns: Vec<(String, String)> = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        columns.push((row.get(0).unwrap(), row.get(1).unwrap()));
    }
    assert!(columns.contains(&("agent_users".to_owned(), "user_id".to_owned())));
    let found: Vec<_> = columns
        .iter()
        .filter(|(_, column)| column.eq_ignore_ascii_case("user"))
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn events_that_were_changed_or_cut_off_are_found_when_the_store_is_opened() {
    let statements = [
        "DELETE FROM events WHERE position = 10",
        "DELETE FROM events WHERE position = 5",
        "UPDATE events SET payload = x'7b7d' WHERE position = 5",
        "UPDATE events SET hash = zeroblob(32) WHERE position = 10",
        "UPDATE head SET position = 9",
    ];
    for statement in statements {
        let sample = ten_commits().await;
        sample.close().await;
        Connection::open(sample.database())
            .unwrap()
            .execute_batch(statement)
            .unwrap();
        let error = refused(sample.dir.path());
        assert!(
            matches!(error, OpenError::Corrupt { .. }),
            "{statement}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_flipped_bit_in_the_middle_of_the_log_does_not_silently_drop_commits() {
    let sample = ten_commits().await;
    let log = |copy: &tempfile::TempDir| copy.path().join("store.db-wal");
    let bytes = fs::metadata(sample.dir.path().join("store.db-wal"))
        .unwrap()
        .len() as usize;
    for at in [40, 48, 5_000, bytes / 3, bytes / 2] {
        let copy = crashed(&sample);
        flip(&log(&copy), at);
        let error = refused(copy.path());
        assert!(
            matches!(error, OpenError::Corrupt { .. }),
            "byte {at}: {error:?}"
        );
    }
    let copy = crashed(&sample);
    flip(&log(&copy), 13);
    assert!(
        matches!(refused(copy.path()), OpenError::Corrupt { .. }),
        "the header"
    );
    // The torn end that a power failure leaves is what a log is for.
    for cut in [1, 100, 4_000] {
        let copy = crashed(&sample);
        let file = OpenOptions::new().write(true).open(log(&copy)).unwrap();
        file.set_len((bytes - cut) as u64).unwrap();
        let again = open(copy.path());
        assert_eq!(*again.durable().borrow(), 9);
        assert_eq!(again.verify().await.unwrap().fault, None);
    }
}

#[tokio::test]
async fn a_flipped_bit_anywhere_in_the_database_is_never_taken_for_truth() {
    let sample = Sample::begun().await;
    take_turn(&sample.store, 1, None, 1, "hello", "good morning").await;
    let expected = everything(&sample.store).await.unwrap();
    sample.close().await;
    let whole = fs::read(sample.database()).unwrap();
    // Two bytes of each page, or seven where attacks are made whole.
    let step = match std::env::var_os("AGENT_HOST_ATTACKS") {
        Some(_) => 601,
        None => 2_039,
    };
    for at in (0..whole.len()).step_by(step) {
        fs::write(sample.database(), &whole).unwrap();
        flip(&sample.database(), at);
        // Refused, or the bit was in no event's way.
        let Ok(store) = Store::open(sample.dir.path(), options()) else {
            continue;
        };
        if store
            .verify()
            .await
            .is_ok_and(|found| found.fault.is_none())
        {
            // What cannot be read is not taken for anything.
            assert!(
                !everything(&store)
                    .await
                    .is_ok_and(|found| found != expected),
                "byte {at}"
            );
        }
    }
}

/// All that can be asked of a store, as text.
async fn everything(store: &Store) -> Result<String, ReadError> {
    let events = store.events(0, crate::EventFilter::default(), 100).await?;
    let session = store.session(session(1)).await?;
    let messages = store
        .messages(session.as_ref().and_then(|session| session.head), 1, 100)
        .await?;
    let state = store
        .blob(domain::digest::Digest::of(crate::EMPTY_STATE))
        .await?;
    Ok(format!(
        "{events:?} {session:?} {messages:?} {:?} {state:?}",
        store.agent(agent(1)).await?
    ))
}

#[tokio::test]
async fn whoever_is_just_leaving_a_data_directory_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let leaves = Arc::new(AtomicBool::new(false));
    let has_left = leaves.clone();
    let leaving = tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        leaves.store(true, Ordering::SeqCst);
        store.close().await;
    });
    let path = dir.path().to_owned();
    let again = tokio::task::spawn_blocking(move || open(&path))
        .await
        .unwrap();
    assert!(
        has_left.load(Ordering::SeqCst),
        "two had it at the same time"
    );
    leaving.await.unwrap();
    again
        .commit(commit(Stream::Run(run(1)), [noise(1)]))
        .await
        .unwrap();
}

#[tokio::test]
async fn panics_in_the_writer() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let store = open(&PathBuf::from(dir).join("data"));
    store
        .commit(commit(Stream::Run(run(1)), [noise(1)]))
        .await
        .unwrap();
    store.execute("this is no statement").await;
}

#[tokio::test]
async fn a_writer_that_panics_ends_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let died = in_another_process("tests::opening::panics_in_the_writer", dir.path(), "");
    assert_eq!(died.status.signal(), Some(6), "aborted");
    assert_eq!(*open(&dir.path().join("data")).durable().borrow(), 1);
}

pub(super) fn in_another_process(test: &str, dir: &Path, crash_at: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(DIR, dir)
        .env("AGENT_HOST_CRASH_AT", crash_at)
        .output()
        .unwrap()
}

/// Names the directory to work in, in the process that is to die.
pub(super) const DIR: &str = "AGENT_HOST_STORE_TEST_DIR";

/// Works until it dies, and writes down each commit that was acknowledged.
#[tokio::test]
async fn works_until_it_dies() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let dir = PathBuf::from(dir);
    let store = open(&dir.join("data"));
    let mut ledger = OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("ledger"))
        .unwrap();
    for n in 0..40_u64 {
        let stream = Stream::Run(run(1));
        let snapshot = Snapshot {
            version: n,
            format: 1,
            state: Vec::new(),
        };
        let commit = Commit::new()
            .append(stream, Expected::Any, vec![new(noise(n)), new(noise(n))])
            .snapshot(stream, snapshot);
        let committed = store.commit(commit).await.unwrap();
        writeln!(ledger, "{}", committed.last_position).unwrap();
    }
    store
        .backup(&dir.join(format!("backup-{}.db", NOON.0)))
        .await
        .unwrap();
    store.close().await;
}

#[tokio::test]
async fn a_crash_at_any_point_loses_nothing_that_was_acknowledged() {
    // A rebuild and a purge have tests of their own.
    let elsewhere =
        |point: &&&str| point.starts_with("store.rebuild.") || point.starts_with("store.purge.");
    let points = CRASH_POINTS
        .iter()
        .filter(|point| !elsewhere(point))
        .map(|point| (*point).to_owned());
    let later = [
        "store.commit.begin:7",
        "store.commit.inserted:23",
        "store.commit.committed:39",
    ]
    .map(str::to_owned);
    for point in points.chain(later) {
        let dir = tempfile::tempdir().unwrap();
        let died = in_another_process("tests::opening::works_until_it_dies", dir.path(), &point);
        assert!(!died.status.success(), "{point} was never passed");
        let ledger = fs::read_to_string(dir.path().join("ledger")).unwrap_or_default();
        let acknowledged: u64 = ledger
            .lines()
            .last()
            .map_or(0, |line| line.parse().unwrap());
        let store = open(&dir.path().join("data"));
        let verified = store.verify().await.unwrap();
        assert_eq!(verified.fault, None, "{point}");
        // What was committed and not yet acknowledged may be there, whole.
        assert!(
            [acknowledged, acknowledged + 2].contains(&verified.events),
            "{point}: {acknowledged}, {}",
            verified.events
        );
        store
            .commit(commit(Stream::Run(run(1)), [noise(99)]))
            .await
            .unwrap();
        assert!(
            !dir.path().join(format!("backup-{}.db", NOON.0)).exists()
                || point == "store.checkpoint",
            "{point}: half a backup"
        );
    }
}
