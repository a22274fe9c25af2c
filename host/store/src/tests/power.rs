//! Power failures: whatever of the unsynced end of the log a disk loses or tears, what was
//! acknowledged is there, and what is there is a beginning of what was committed.

use super::sample::{Sample, noise, open};
use crate::EventFilter;
use std::fs;

/// Unit that a disk writes atomically, in bytes.
const SECTOR_BYTES: usize = 512;

#[tokio::test]
async fn after_a_power_failure_what_was_acknowledged_is_there_and_nothing_else_half() {
    let sample = Sample::begun().await;
    let log = sample.dir.path().join("store.db-wal");
    // Length of the log and events, as each acknowledgement found them.
    let mut acknowledged = Vec::new();
    for n in 0..5 {
        let position = sample
            .in_run(n, (0..=n).map(|_| noise(1)))
            .await
            .last_position;
        acknowledged.push((fs::metadata(&log).unwrap().len(), position));
    }
    let all = sample.events(0, EventFilter::default(), 100).await.unwrap();
    let whole = fs::read(&log).unwrap();
    let (first, _) = acknowledged[0];
    let cuts = (usize::try_from(first).unwrap()..=whole.len()).step_by(SECTOR_BYTES);
    for (at, cut) in cuts.enumerate() {
        // The end is lost; or its last sector is torn, or was never written over.
        let mut left = whole[..cut].to_vec();
        match at % 3 {
            1 => left.extend([0xA5; SECTOR_BYTES]),
            2 => left.extend([0; SECTOR_BYTES]),
            _ => {}
        }
        let copy = tempfile::tempdir().unwrap();
        for name in ["store.db", "store-id"] {
            fs::copy(sample.dir.path().join(name), copy.path().join(name)).unwrap();
        }
        fs::write(copy.path().join("store.db-wal"), left).unwrap();
        let store = open(copy.path());
        let found = store.events(0, EventFilter::default(), 100).await.unwrap();
        let owed = acknowledged
            .iter()
            .filter(|(length, _)| *length <= cut as u64)
            .map(|(_, position)| *position)
            .max()
            .unwrap_or(0);
        assert!(
            found.len() as u64 >= owed,
            "cut at {cut}: {} of {owed} acknowledged events",
            found.len()
        );
        assert_eq!(found, all[..found.len()], "cut at {cut}");
        assert!(
            acknowledged
                .iter()
                .any(|(_, position)| *position == found.len() as u64),
            "cut at {cut}: half a commit"
        );
        assert_eq!(store.verify().await.unwrap().fault, None);
    }
}
