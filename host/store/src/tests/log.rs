//! Bound of the write-ahead log: it holds however long reads go on, and what would be in its way
//! reads a copy.

use super::sample::{Sample, accepted, commit, noise, options, run};
use crate::sql::Columns;
use crate::verify::beside;
use crate::{Options, ReadError, Store, restore};
use domain::event::Source;
use domain::id::Stream;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The bound of the log in these tests.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// Bytes that one commit adds, roughly.
const COMMIT_BYTES: usize = 256 << 10;

fn log_bytes(dir: &Path) -> u64 {
    fs::metadata(dir.join("store.db-wal")).map_or(0, |log| log.len())
}

/// Commits several times as much as the log may hold; the most that it held.
async fn much(store: &Store, dir: &Path) -> u64 {
    much_in_between(store, dir, Duration::ZERO).await
}

/// The same with a pause after each commit, in which reads end and others begin.
async fn much_in_between(store: &Store, dir: &Path, pause: Duration) -> u64 {
    let mut most = 0;
    for n in 0..80_u8 {
        let mut blob = vec![7; COMMIT_BYTES];
        blob[0] = n;
        store
            .commit(commit(Stream::Run(run(1)), [noise(u64::from(n))]).blob(blob))
            .await
            .unwrap();
        most = most.max(log_bytes(dir));
        tokio::time::sleep(pause).await;
    }
    most
}

/// A read without an end, which tells when it has begun.
async fn read_without_end(
    store: Store,
    begun: tokio::sync::oneshot::Sender<()>,
) -> Result<i64, ReadError> {
    let endless = store.read(|sql| {
        sql.connection()
            .query_row("SELECT position FROM head", [], |_| Ok(()))?;
        let _ = begun.send(());
        let text = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT \
                    count(*) FROM n";
        sql.connection().query_row(text, [], |row| row.get(0))
    });
    endless.await
}

/// Reads one after the other without a pause until commits are over, each of them for so long or
/// until it is ended; the number of those that were ended.
async fn read_again_and_again(store: Store, is_over: Arc<AtomicBool>, each: Duration) -> u64 {
    let mut ended = 0;
    while !is_over.load(Ordering::Relaxed) {
        let is_over = Arc::clone(&is_over);
        let read = store.read(move |sql| {
            let text = "WITH RECURSIVE n (i) AS (SELECT position FROM head UNION ALL SELECT i + 1 \
                        FROM n LIMIT 10000) SELECT count(*) FROM n";
            let begun = Instant::now();
            while begun.elapsed() < each && !is_over.load(Ordering::Relaxed) {
                sql.connection()
                    .query_row(text, [], |row| row.get::<i64>(0))?;
            }
            Ok(())
        });
        match read.await {
            Ok(()) => {}
            Err(ReadError::InTheWay) => ended += 1,
            Err(error) => panic!("{error}"),
        }
    }
    ended
}

/// Looks at one row again and again until commits are over: with every other look on the caller's
/// thread.
async fn inspect_repeatedly(store: Store, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let inspection = "SELECT 1 FROM head WHERE id = 1";
        assert!(store.read(|sql| sql.exists(inspection, [])).await.unwrap());
        let there = store.point_read(|sql| sql.exists(inspection, [])).await;
        assert!(there.unwrap());
        tokio::task::yield_now().await;
    }
}

/// Opens a store whose log has a small bound, and lets another program begin to read it.
fn locked(dir: &Path) -> (Store, crate::sql::Connection) {
    let store = Store::open(
        dir,
        Options {
            log_bytes_max: LOG_BYTES_MAX,
            ..options()
        },
    )
    .unwrap();
    let outsider = crate::sql::Connection::open(dir.join("store.db")).unwrap();
    outsider
        .execute_batch("BEGIN; SELECT position FROM head")
        .unwrap();
    (store, outsider)
}

/// Waits until the writer has the log begin anew by itself.
async fn begun_anew(store: &Store) {
    let anew = async {
        while store.log_state().failing.is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), anew)
        .await
        .expect("the log begins anew");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_never_ends_leaves_the_log_within_its_bound() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(
        dir.path(),
        Options {
            log_bytes_max: LOG_BYTES_MAX,
            ..options()
        },
    )
    .unwrap();
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let read = tokio::spawn(read_without_end(store.clone(), begun));
    has_begun.await.unwrap();
    let most = much(&store, dir.path()).await;
    assert!(
        most < LOG_BYTES_MAX + 4 * COMMIT_BYTES as u64,
        "{most} bytes"
    );
    let ended = tokio::time::timeout(Duration::from_secs(60), read)
        .await
        .expect("the read is ended")
        .unwrap();
    assert!(matches!(ended, Err(ReadError::InTheWay)), "{ended:?}");
    let state = store.log_state();
    assert_eq!(
        (state.reads_ended, state.failing, state.bytes_max),
        (1, None, LOG_BYTES_MAX)
    );
    assert!(
        store
            .read(|sql| sql.exists("SELECT 1 FROM head WHERE id = 1", []))
            .await
            .unwrap(),
        "others are read"
    );
}

/// A read that begins while the writer waits must not take the place of the one that it waits for.
/// Looks at single rows are not ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_follow_each_other_leave_the_log_within_its_bound() {
    for readers in [1, 4] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(
            dir.path(),
            Options {
                log_bytes_max: LOG_BYTES_MAX,
                readers,
                ..options()
            },
        )
        .unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let reads = [10, 30, 70].map(|ms| {
            let each = Duration::from_millis(ms);
            tokio::spawn(read_again_and_again(
                store.clone(),
                Arc::clone(&is_over),
                each,
            ))
        });
        let inspections = tokio::spawn(inspect_repeatedly(store.clone(), Arc::clone(&is_over)));
        let most = much_in_between(&store, dir.path(), Duration::from_millis(10)).await;
        is_over.store(true, Ordering::Relaxed);
        inspections.await.expect("no look is ended");
        let mut ended = 0;
        for read in reads {
            ended += read.await.unwrap();
        }
        assert!(
            most < LOG_BYTES_MAX + 4 * COMMIT_BYTES as u64,
            "{most} bytes beside {readers} threads that read"
        );
        let state = store.log_state();
        assert_eq!((state.reads_ended, state.failing), (ended, None));
    }
}

/// Reads that follow each other are not what holds the log then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_that_follow_each_other_are_spared_while_somebody_else_holds_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _outsider) = locked(dir.path());
    let is_over = Arc::new(AtomicBool::new(false));
    let reads = tokio::spawn(read_again_and_again(
        store.clone(),
        Arc::clone(&is_over),
        Duration::MAX,
    ));
    assert!(much(&store, dir.path()).await > LOG_BYTES_MAX);
    let ended = store.log_state().reads_ended;
    // Longer than a read goes on that is in the way.
    tokio::time::sleep(Duration::from_millis(300)).await;
    much(&store, dir.path()).await;
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(reads.await.unwrap(), ended);
}

#[tokio::test]
async fn a_log_that_somebody_else_holds_is_told_of_until_it_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (store, outsider) = locked(dir.path());
    assert!(much(&store, dir.path()).await > LOG_BYTES_MAX);
    let state = store.log_state();
    assert!(
        state.bytes > LOG_BYTES_MAX && state.failing.is_some(),
        "{state:?}"
    );
    outsider.execute_batch("ROLLBACK").unwrap();
    begun_anew(&store).await;
}

/// The read of another program cannot be ended: nothing is gained by ending the store's own reads,
/// or by having commits wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_somebody_else_holds_ends_no_read_and_keeps_no_commit_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _outsider) = locked(dir.path());
    assert!(much(&store, dir.path()).await > LOG_BYTES_MAX);
    assert!(store.log_state().failing.is_some());
    let read = store.read(|sql| {
        let text = "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT \
                    100000) SELECT count(*) FROM n";
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(200) {
            sql.connection()
                .query_row(text, [], |row| row.get::<i64>(0))?;
        }
        Ok(())
    });
    read.await.expect("it is not in the way");
    assert_eq!(store.log_state().reads_ended, 0);
    let mut quickest = Duration::MAX;
    for n in 100..103 {
        // The writer tries again when it has had nothing to do for a second.
        tokio::time::sleep(Duration::from_millis(1_050)).await;
        let begun = Instant::now();
        store
            .commit(commit(Stream::Run(run(1)), [noise(n)]))
            .await
            .unwrap();
        quickest = quickest.min(begun.elapsed());
    }
    assert!(quickest < Duration::from_millis(250), "{quickest:?}");
}

/// A read of the store's own is in the way only once the other program has gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_in_the_way_is_ended_soon_after_somebody_else_let_go_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (store, outsider) = locked(dir.path());
    assert!(much(&store, dir.path()).await > LOG_BYTES_MAX);
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let read = tokio::spawn(read_without_end(store.clone(), begun));
    has_begun.await.unwrap();
    assert_eq!(store.log_state().reads_ended, 0);
    outsider.execute_batch("ROLLBACK").unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(20), read)
        .await
        .expect("the read is ended")
        .unwrap();
    assert!(matches!(ended, Err(ReadError::InTheWay)), "{ended:?}");
    begun_anew(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_beside_commits_is_not_in_the_way_of_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(
        dir.path(),
        Options {
            log_bytes_max: LOG_BYTES_MAX,
            ..options()
        },
    )
    .unwrap();
    much(&store, dir.path()).await;
    let files = tempfile::tempdir().unwrap();
    let backup = files.path().join("backup.db");
    let (copied, most) = tokio::join!(store.backup(&backup), much(&store, dir.path()));
    copied.unwrap();
    let state = store.log_state();
    assert!(
        most < LOG_BYTES_MAX + 4 * COMMIT_BYTES as u64 && state.reads_ended == 0,
        "{most} bytes, {state:?}"
    );
    let restored = restore(&backup, &files.path().join("restored")).unwrap();
    assert!((80..=160).contains(&restored.events), "{}", restored.events);
}

/// A store with so much in it that every inspection of all of it notices when it is to end.
async fn large() -> Sample {
    let sample = Sample::begun().await;
    for n in 0..20 {
        let inputs = (0..100).map(|m| accepted(1_000 + n * 100 + m, 1, Source::Api, "words"));
        sample
            .append(Stream::Session(super::sample::session(1)), inputs)
            .await;
    }
    sample
}

#[tokio::test]
async fn what_would_be_in_the_way_of_the_log_is_looked_at_in_a_copy() {
    let sample = large().await;
    let ends_next = || sample.log().ends_next.store(true, Ordering::Relaxed);
    let there = |name: &str| sample.dir.path().join(name).exists();
    ends_next();
    assert_eq!(sample.read_at_length(beside::problem).await.unwrap(), None);
    assert_eq!(
        (sample.log_state().reads_ended, there("copy.db")),
        (1, false)
    );
    ends_next();
    assert_eq!(
        sample.verify().await.unwrap().fault,
        None,
        "a chunk is tried again"
    );
    ends_next();
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        (
            rebuilt.replaced,
            sample.log_state().reads_ended,
            there("copy.db")
        ),
        (Vec::new(), 3, false)
    );
    // What is wrong is found in a copy as well.
    sample
        .execute("DELETE FROM inputs WHERE position = 100")
        .await;
    ends_next();
    let found = sample.read_at_length(beside::problem).await.unwrap();
    assert!(found.is_some_and(|problem| problem.contains("`inputs`")));
    ends_next();
    let rebuilt = sample.rebuild().await.unwrap();
    assert_eq!(
        rebuilt
            .replaced
            .iter()
            .map(|it| (it.table, it.missing))
            .collect::<Vec<_>>(),
        [("inputs", 1)]
    );
}
