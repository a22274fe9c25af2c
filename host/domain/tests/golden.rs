//! Every kind of event that was ever stored can be read for ever, and reads as what it was.
//!
//! `golden/<kind>.json` holds payloads as they were stored, among them every form that the kind
//! has; none is ever changed or removed. `golden/<kind>.now.json` holds what they are today:
//! `AGENT_HOST_ACCEPT=1` writes it anew, for a change that is meant.

#![expect(
    clippy::unwrap_used,
    reason = "these are tests: what is not there fails them"
)]

use agent_host_domain::event::upcast::{retired, upcast};
use agent_host_domain::event::{Event, kinds};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[expect(clippy::disallowed_methods, reason = "said by whoever runs the tests")]
fn accepts() -> bool {
    std::env::var("AGENT_HOST_ACCEPT").is_ok_and(|value| value == "1")
}

/// The kinds of which there are files with this ending.
fn kept(ending: &str) -> BTreeSet<String> {
    let names = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter_map(|name| {
            name.strip_suffix(ending)
                .filter(|kind| !kind.ends_with(".now"))
                .map(str::to_owned)
        })
        .collect()
}

/// A stored payload as an event of today.
fn read(kind: &str, payload: Value) -> Event {
    let (newest, payload) = upcast(kind, payload).unwrap_or_else(|error| panic!("{kind}: {error}"));
    serde_json::from_value(json!({ "type": newest, "data": payload }))
        .unwrap_or_else(|error| panic!("{kind}: {error}"))
}

#[test]
fn what_was_stored_of_any_kind_and_version_reads_as_what_it_was() {
    for kind in kept(".json") {
        let stored = std::fs::read_to_string(folder().join(format!("{kind}.json"))).unwrap();
        let payloads: Vec<Value> = serde_json::from_str(&stored).unwrap();
        assert!(!payloads.is_empty(), "{kind}");
        let now: Vec<Value> = payloads
            .into_iter()
            .map(|payload| json!(read(&kind, payload)))
            .collect();
        // What is written today is read again as the same.
        for event in &now {
            let again = read(event["type"].as_str().unwrap(), event["data"].clone());
            assert_eq!(json!(again), *event, "{kind}");
        }
        let lines: Vec<String> = now.iter().map(Value::to_string).collect();
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        let file = folder().join(format!("{kind}.now.json"));
        if accepts() {
            std::fs::write(&file, &text).unwrap();
        }
        let noted = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            noted == text,
            "{kind}: what was stored reads differently now. Where that is meant: \
             AGENT_HOST_ACCEPT=1\nwas: {noted}\nis:  {text}"
        );
    }
}

#[test]
fn every_kind_that_is_or_was_written_has_its_stored_payloads() {
    let all: BTreeSet<String> = kinds()
        .iter()
        .copied()
        .chain(retired())
        .map(str::to_owned)
        .collect();
    let stored = kept(".json");
    let missing: Vec<&String> = all.difference(&stored).collect();
    assert!(
        missing.is_empty(),
        "no payloads of {missing:?}: put an array of them, one for each form, into \
         tests/golden/<kind>.json, and run the tests with AGENT_HOST_ACCEPT=1"
    );
    let unknown: Vec<&String> = stored.difference(&all).collect();
    assert!(
        unknown.is_empty(),
        "{unknown:?} cannot be read any more: retire a kind in `event/upcast.rs` instead of \
         removing it"
    );
    // The other test is just writing them when it is told to.
    assert!(
        accepts() || kept(".now.json") == all,
        "what they are today: AGENT_HOST_ACCEPT=1"
    );
}
