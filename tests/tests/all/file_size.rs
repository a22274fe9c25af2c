//! A limit on the size of files, as `ulimit -f` sets it: an error for the writer, and never the end
//! of the host.

use super::exhaustion::{config, say};
use agent_host_tests::process::Folder;
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Bytes that the largest file may still grow by.
const ROOM_BYTES: u64 = 1 << 20;
/// Time within which a host records again once it may.
const RECOVERED: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_grow_is_an_error_of_the_store_and_not_the_end_of_the_host() {
    let (folder, host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let session = host.open("puppet").await;
    let files = std::fs::read_dir(folder.data())
        .unwrap()
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with("store.db"));
    let largest = files
        .map(|file| file.metadata().unwrap().len())
        .max()
        .unwrap();
    let limit = |current| Rlimit {
        current,
        maximum: getrlimit(Resource::Fsize).maximum,
    };
    prlimit(
        Some(host.process()),
        Resource::Fsize,
        limit(Some(largest + ROOM_BYTES)),
    )
    .unwrap();

    let mut accepted = 0;
    let refused = loop {
        let answer = say(&host, &session, &"x".repeat(64 << 10)).await;
        if answer.status != 202 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 1_000, "no file reaches the limit");
    };
    refused.is_refusal(503, "STORE_UNAVAILABLE");
    assert_eq!(host.get(&session).await.status, 200, "reads go on");
    // The log takes no further line either.
    prlimit(Some(host.process()), Resource::Fsize, limit(Some(1))).unwrap();
    for _ in 0..3 {
        assert_eq!(say(&host, &session, "no room").await.status, 503);
    }

    prlimit(
        Some(host.process()),
        Resource::Fsize,
        limit(getrlimit(Resource::Fsize).maximum),
    )
    .unwrap();
    let patience = Instant::now() + RECOVERED;
    while say(&host, &session, "room again").await.status != 202 {
        assert!(
            Instant::now() < patience,
            "it does not recover: {}",
            folder.log()
        );
        sleep(Duration::from_millis(100)).await;
    }
    host.rest(&session).await;
    folder.over(host).await;
}
