//! Buckets: what was written last is what they hold, and how much it is.

use super::sample::{NOON, Sample, ada, erase, run, run_started, timer};
use crate::sql::Connection;
use crate::{Kept, KeptBucket, KeptConnector, KeptDefinition};
use domain::bucket::{BucketSize, WrittenEntry, WrittenValue};
use domain::event::{ConnectorKeyBound, Event, KeyValueWritten};
use domain::grant::{BucketPlace, BucketScope};

pub(super) fn place(component: &str, scope: BucketScope, of: &str) -> BucketPlace {
    BucketPlace {
        component: component.to_owned(),
        bucket: "notes".to_owned(),
        scope,
        of: of.to_owned(),
    }
}

pub(super) fn written(place: &BucketPlace, entries: &[(&str, Option<&[u8]>)]) -> Event {
    let entries = entries.iter().map(|(key, value)| WrittenEntry {
        key: (*key).to_owned(),
        value: WrittenValue::of(value.map(<[u8]>::to_vec)),
    });
    Event::KeyValueWritten(KeyValueWritten {
        run: run(1),
        operation: timer(run(1), "call", NOON).id,
        segment: 0,
        place: place.clone(),
        entries: entries.collect(),
        time: NOON,
    })
}

async fn filled() -> (Sample, BucketPlace) {
    let sample = Sample::begun().await;
    let own = place("shelf", BucketScope::User, "ada");
    let events = vec![
        run_started(run(1), 1, None, Vec::new()),
        written(
            &own,
            &[
                ("b", Some(b"12")),
                ("a", Some(b"\xff\x00\xff")),
                ("é", Some(b"")),
                ("gone", Some(b"x")),
                ("nul\0", Some(b"1")),
            ],
        ),
        written(
            &own,
            &[("b", Some(b"123")), ("gone", None), ("never", None)],
        ),
        written(
            &place("shelf", BucketScope::User, "grace"),
            &[("a", Some(b"hers"))],
        ),
        written(
            &place("other", BucketScope::User, "ada"),
            &[("a", Some(b"its"))],
        ),
        written(
            &place("shelf", BucketScope::Component, ""),
            &[("a", Some(b"all"))],
        ),
    ];
    sample.in_run(1, events).await;
    (sample, own)
}

#[tokio::test]
async fn a_bucket_holds_what_was_written_last_in_its_own_place() {
    let (sample, own) = filled().await;
    for _ in 0..2 {
        let store = &sample.store;
        for (key, value) in [
            ("a", Some(&b"\xff\x00\xff"[..])),
            ("b", Some(b"123")),
            ("é", Some(b"")),
            ("gone", None),
            ("never", None),
        ] {
            assert_eq!(
                store.bucket_value(&own, key).await.unwrap().as_deref(),
                value,
                "{key}"
            );
            assert_eq!(
                store.bucket_value_bytes(&own, key).await.unwrap(),
                value.map(|value| value.len() as u64),
                "{key}"
            );
        }
        let keys = ["b", "gone", "a", "b"].map(str::to_owned).to_vec();
        let values = async |bytes_max| store.bucket_values(&own, keys.clone(), bytes_max).await;
        let found = [Some(&b"123"[..]), None, Some(b"\xff\x00\xff"), Some(b"123")];
        assert_eq!(
            values(9).await.unwrap().unwrap(),
            found.map(|value| value.map(<[u8]>::to_vec))
        );
        assert_eq!(values(8).await.unwrap(), None);
        assert_eq!(
            store.bucket_size(&own).await.unwrap(),
            BucketSize { keys: 4, bytes: 15 }
        );
        assert_eq!(
            store.bucket_keys(&own, None, 10).await.unwrap(),
            ["a", "b", "nul\0", "é"]
        );
        assert_eq!(
            store.bucket_keys(&own, Some("a"), 2).await.unwrap(),
            ["b", "nul\0"]
        );
        let hers = place("shelf", BucketScope::User, "grace");
        assert_eq!(
            store.bucket_value(&hers, "a").await.unwrap().as_deref(),
            Some(&b"hers"[..])
        );
        let nobodys = place("shelf", BucketScope::Session, "ada");
        assert_eq!(
            store.bucket_size(&nobodys).await.unwrap(),
            BucketSize::default()
        );
        assert!(
            store
                .bucket_keys(&nobodys, None, 10)
                .await
                .unwrap()
                .is_empty()
        );
        store.rebuild().await.unwrap();
    }
    sample.is_sound().await;
}

#[tokio::test]
async fn a_value_that_was_changed_is_found() {
    for (statement, table) in [
        (
            "UPDATE bucket_entries SET value = CAST('124' AS BLOB) WHERE key = 'b'",
            "bucket_entries",
        ),
        ("UPDATE buckets SET keys = 3 WHERE of = 'ada'", "buckets"),
    ] {
        let (sample, _) = filled().await;
        Connection::open(sample.database())
            .unwrap()
            .execute_batch(statement)
            .unwrap();
        let fault = sample.verify().await.unwrap().fault.unwrap();
        assert!(
            fault.problem.contains(&format!("`{table}`")),
            "{statement}: {}",
            fault.problem
        );
    }
}

#[tokio::test]
async fn what_was_erased_is_not_in_its_bucket_after_a_rebuild() {
    let (sample, own) = filled().await;
    erase(&sample, "kind = 'keyvalue.written.v1' AND version = 3");
    sample.rebuild().await.unwrap();
    assert_eq!(
        sample.bucket_value(&own, "b").await.unwrap().as_deref(),
        Some(&b"12"[..]),
        "what the events that are left say"
    );
    assert_eq!(
        sample.bucket_size(&own).await.unwrap(),
        BucketSize { keys: 5, bytes: 19 }
    );
    sample.is_sound().await;
}

#[tokio::test]
async fn what_is_kept_under_names_of_the_configuration_is_counted() {
    let (sample, _) = filled().await;
    let bound = ["telegram:1", "telegram:2", "slack:U1"].map(|key| {
        Event::ConnectorKeyBound(ConnectorKeyBound {
            key: key.parse().unwrap(),
            user_id: ada(),
            bound_by: ada(),
            time: NOON,
        })
    });
    sample.in_host(bound).await;
    let Kept {
        buckets,
        connectors,
        definitions,
        users: _,
    } = sample.kept().await.unwrap();
    let bucket = |component: &str, scope, keys| KeptBucket {
        component: component.to_owned(),
        bucket: "notes".to_owned(),
        scope,
        keys,
    };
    assert_eq!(
        buckets,
        [
            bucket("shelf", BucketScope::Component, 1),
            bucket("other", BucketScope::User, 1),
            bucket("shelf", BucketScope::User, 5),
        ]
    );
    let connector = |name: &str, keys| KeptConnector {
        name: name.to_owned(),
        keys,
    };
    assert_eq!(
        connectors,
        [connector("slack", 1), connector("telegram", 2)]
    );
    let definition = KeptDefinition {
        name: "assistant".to_owned(),
        agents: 1,
        open_sessions: 1,
        open_turns: 1,
    };
    assert_eq!(definitions, [definition]);
}
