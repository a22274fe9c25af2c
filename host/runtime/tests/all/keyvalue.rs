//! Buckets: a call reads through what it has written, hands it over when it returns, and leaves
//! nothing when it does not.

use crate::fixture::{Fixture, Kept, details, done, limits, tool_call};
use agent_host_runtime::{Called, Component, Outcome};
use domain::bucket::{BATCH_KEYS_MAX, KEYS_WRITTEN_MAX, WrittenEntry, WrittenValue};
use domain::event::BoundaryVerdict;
use domain::grant::{Access, Bound, BucketGrant, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use domain::secret::{Secret, Secrets};
use serde_json::{Value, json};
use std::sync::Arc;

/// Two buckets, of which one is read-only.
fn bound() -> Bound {
    let large = BucketGrant {
        bytes_max: 64 << 20,
        keys_max: 1_000_000,
        ..BucketGrant::new("notes", Access::ReadWrite)
    };
    Bound {
        key_value: vec![large, BucketGrant::new("other", Access::ReadOnly)],
        ..Bound::default()
    }
}

fn kept(entries: &[(&str, &str, &str)]) -> Arc<Kept> {
    let kept = Kept::default();
    let entries = entries.iter().map(|(bucket, key, value)| {
        (
            ((*bucket).to_owned(), (*key).to_owned()),
            value.as_bytes().to_vec(),
        )
    });
    kept.entries.lock().unwrap().extend(entries);
    Arc::new(kept)
}

async fn call(
    fixture: &Fixture,
    overlay: &Component,
    kept: &Arc<Kept>,
    arguments: Value,
) -> Called {
    fixture
        .call_keeping(
            overlay,
            &bound(),
            tool_call("keep", &arguments.to_string()),
            kept,
        )
        .await
}

fn entry(key: &str, value: &str) -> WrittenEntry {
    WrittenEntry {
        key: key.to_owned(),
        value: WrittenValue::Text(value.to_owned()),
    }
}

#[tokio::test]
async fn no_secret_of_the_host_gets_into_a_bucket_or_the_ledger_whoever_it_is_granted_to() {
    let secret = "SK-CANARY-42";
    let values = [("github".to_owned(), Secret::parse(secret).unwrap())];
    let fixture = Fixture::with(|config| config.secrets = Secrets::new(values));
    let overlay = fixture.load("shelf").await;
    let hidden = "************";
    let operations = json!([
        ["set", secret, format!("it is {secret}")],
        ["set", "b", format!("0x00{}", hex(secret))],
        ["in", secret, ["get", "a"]]
    ]);
    let called = call(&fixture, &overlay, &kept(&[]), json!({ "do": operations })).await;
    assert!(!done(&called).contains(secret));
    let [(_, entries)] = called.written.buckets.as_slice() else {
        panic!("{:?}", called.written)
    };
    let bytes = WrittenEntry {
        key: "b".to_owned(),
        value: WrittenValue::Hex(format!("\0{hidden}").into_bytes()),
    };
    assert_eq!(
        entries.as_slice(),
        [entry(hidden, &format!("it is {hidden}")), bytes]
    );
    let details = details(&called.decided);
    assert!(
        !details.join(" ").contains(secret) && details.iter().any(|detail| detail.contains(hidden)),
        "{details:?}"
    );
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_call_reads_what_it_has_written_and_hands_it_over_at_its_end() {
    let (fixture, overlay) = Fixture::of("shelf").await;
    let stored = kept(&[
        ("notes", "a", "1"),
        ("notes", "b", "2"),
        ("other", "a", "another"),
    ]);
    let operations = json!([
        ["get", "a"],
        ["set", "a", "new"],
        ["get", "a"],
        ["delete", "b"],
        ["get", "b"],
        ["exists", "b"],
        ["set", "c", "3"],
        ["add", "n", 4],
        ["add", "n", 5],
        ["get-many", ["c", "b", "n"]],
        ["keys"],
        ["in", "other", ["get", "a"]],
    ]);
    let called = call(&fixture, &overlay, &stored, json!({ "do": operations })).await;
    assert_eq!(
        done(&called),
        "1 | ok | new | ok | - | false | ok | 4 | 9 | c=3,-,n=9 | a,c,n | another"
    );
    let gone = WrittenEntry {
        key: "b".to_owned(),
        value: WrittenValue::Deleted,
    };
    let [(grant, entries)] = called.written.buckets.as_slice() else {
        panic!("{:?}", called.written)
    };
    assert_eq!(
        (grant.bucket.as_str(), entries.as_slice()),
        (
            "notes",
            &[entry("a", "new"), gone, entry("c", "3"), entry("n", "9")][..]
        )
    );
    assert_eq!(
        stored.leased(),
        ["notes"],
        "what may be written is held until it is committed, what may only be read is not"
    );
    drop(called);
    assert!(stored.leased().is_empty());
    assert_eq!(
        stored.entries.lock().unwrap().len(),
        3,
        "the runtime itself writes nothing"
    );
}

#[tokio::test]
async fn a_call_that_does_not_return_leaves_nothing_written_and_nothing_held() {
    let (fixture, overlay) = Fixture::of("shelf").await;
    for then in ["trap", "fail", "sleep", "spin"] {
        let stored = kept(&[]);
        let limits = limits(|it| {
            it.cpu_ms_max = 100;
            it.wall_ms_max = 500;
        });
        let arguments = json!({ "do": [["set", "a", "1"]], "then": then }).to_string();
        let called = fixture
            .call_keeping(
                &overlay,
                &Bound { limits, ..bound() },
                tool_call("keep", &arguments),
                &stored,
            )
            .await;
        assert!(
            !matches!(called.outcome, Outcome::Returned(Ok(_))),
            "{then}: {:?}",
            called.outcome
        );
        assert!(
            called.written.buckets.is_empty() && stored.leased().is_empty(),
            "{then}: {:?}",
            called.written
        );
    }
    let stored = kept(&[("notes", "a", "1")]);
    let called = call(
        &fixture,
        &overlay,
        &stored,
        json!({ "do": [["get", "a"], ["set", "b", "x"], ["delete", "b"]] }),
    )
    .await;
    assert_eq!(done(&called), "1 | ok | ok");
    assert!(
        called.written.buckets.is_empty() && stored.leased().is_empty(),
        "a call that has nothing to write keeps nobody waiting"
    );
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_the_hosts_fault() {
    let (fixture, overlay) = Fixture::of("shelf").await;
    let broken = Arc::new(Kept {
        broken: true,
        ..Kept::default()
    });
    let called = call(&fixture, &overlay, &broken, json!({ "do": [["get", "a"]] })).await;
    let Outcome::Faulted { detail, .. } = called.outcome else {
        panic!("{:?}", called.outcome)
    };
    assert_eq!(detail, "a bucket could not be read: the disk is gone");
}

#[tokio::test]
async fn every_limit_says_which_it_is_and_is_on_record() {
    let (fixture, overlay) = Fixture::of("shelf").await;
    let stored = kept(&[
        ("notes", "word", "one"),
        ("notes", "full", &u64::MAX.to_string()),
    ]);
    for n in 0..40 {
        stored.entries.lock().unwrap().insert(
            ("notes".to_owned(), format!("large{n}")),
            vec![b'x'; VALUE_BYTES_MAX],
        );
    }
    let large: Vec<String> = (0..40).map(|n| format!("large{n}")).collect();
    let long = "k".repeat(KEY_BYTES_MAX + 1);
    let many = vec!["k"; BATCH_KEYS_MAX + 1];
    for (operation, said, limit) in [
        (json!(["set", "", "x"]), "a key is not empty", None),
        (json!(["get", ""]), "a key is not empty", None),
        (
            json!(["get", long]),
            "limit: a key has at most 256 bytes",
            Some("keyBytes: wasi:keyvalue/store.get `notes`"),
        ),
        (
            json!(["fill", "a", VALUE_BYTES_MAX + 1]),
            "limit: a value has at most 65536 bytes",
            Some("valueBytes: wasi:keyvalue/store.set `notes`"),
        ),
        (
            json!(["get-many", many]),
            "limit: a batch has at most 1000 keys",
            Some("batchKeys: wasi:keyvalue/batch.get-many `notes`"),
        ),
        (
            json!(["get-many", large]),
            "limit: a batch reads at most 2097152 bytes, keys included",
            Some("batchBytes: wasi:keyvalue/batch.get-many `notes`"),
        ),
        (
            json!(["add", "word", 1]),
            "the value is not a number: digits only, at most 18446744073709551615",
            None,
        ),
        (
            json!(["add", "full", 1]),
            "the sum is over 18446744073709551615",
            None,
        ),
    ] {
        let called = call(&fixture, &overlay, &stored, json!({ "do": [operation] })).await;
        assert_eq!(done(&called), format!("no: {said}"));
        let limited: Vec<_> = called
            .decided
            .decisions
            .iter()
            .filter(|it| it.verdict == BoundaryVerdict::Limited)
            .map(|it| it.detail.as_str())
            .collect();
        assert_eq!(limited, limit.into_iter().collect::<Vec<_>>(), "{said}");
    }
    let fills: Vec<Value> = (0..17)
        .map(|n| json!(["fill", format!("k{n}"), VALUE_BYTES_MAX]))
        .collect();
    let said = done(&call(&fixture, &overlay, &stored, json!({ "do": fills })).await);
    assert!(
        said.ends_with(" | no: limit: a call writes at most 1048576 bytes, keys included"),
        "{said}"
    );
    let said = done(
        &call(
            &fixture,
            &overlay,
            &stored,
            json!({ "do": [["many", "k", KEYS_WRITTEN_MAX + 1]] }),
        )
        .await,
    );
    assert_eq!(said, "no: limit: a call writes at most 10000 keys");
}
