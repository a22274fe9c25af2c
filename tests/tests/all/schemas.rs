//! Schemas that ask for more work than there is time, from tools, agents and their questions:
//! refused where they enter, with the host at work.

use agent_host_tests::guests::wasm;
use agent_host_tests::process::{Folder, Host, puppet, scripted, tells};
use agent_host_tests::world::runtime;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// The test program whose tool promises this.
fn promising(what: &str) -> Vec<u8> {
    let mut code = wasm("schemas");
    let marker = b"promises:a number.";
    let promise = format!("promises:{what}");
    let at = code
        .windows(marker.len())
        .position(|bytes| bytes == marker)
        .unwrap();
    code[at..at + marker.len()].copy_from_slice(promise.as_bytes());
    code
}

/// Definitions of which each refers to the next one.
fn chained(links: usize, by: impl Fn(Value) -> Value) -> Value {
    let next = |link: usize| by(json!({ "$ref": format!("#/$defs/d{}", link + 1) }));
    let mut definitions: Map<String, Value> = (1..links)
        .map(|link| (format!("d{link}"), next(link)))
        .collect();
    definitions.insert(format!("d{links}"), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/d1", "$defs": definitions })
}

/// Four kilobytes that come to 2^60 comparisons, and a path of references that is too long to be
/// followed; both fit a memo.
fn endless() -> [Value; 2] {
    [
        chained(60, |next| json!({ "allOf": [next.clone(), next] })),
        chained(1_000, |next| next),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_whose_promise_asks_too_much_is_refused_by_name_when_it_is_loaded() {
    for promise in ["long path", "doubling."] {
        let refused = format!(
            "{:?}",
            runtime().load(promising(promise)).await.unwrap_err()
        );
        assert!(
            refused.contains("promise.results") && refused.contains("cannot be used"),
            "{promise}: {refused}"
        );
    }
    runtime().load(promising("a number.")).await.unwrap();
}

/// Has the puppet do one thing in a session of its own, and returns the messages.
async fn messages_after(host: &Host, start: &Value) -> String {
    let session = host.open("puppet").await;
    let script = json!([{ "start": [start], "until": "any" }]);
    host.play(&session, &script).await;
    host.rest(&session).await["messages"].to_string()
}

async fn everything_that_asks_too_much_fails(host: &Host) {
    for schema in endless() {
        for start in [
            json!({ "key": "it", "tool": "ask", "args": { "schema": schema } }),
            json!({ "key": "it", "client": "question", "schema": schema }),
            json!({ "key": "it", "model": "", "schema": schema }),
        ] {
            let reported = messages_after(host, &start).await;
            tells(&reported, &["it failed", "can be used: "]);
        }
    }
    // A schema that doubles with every level of its document is compared with shallow ones.
    let nested = |levels: usize| (0..levels).fold(json!(1), |within, _| json!([within]));
    for (levels, expected) in [(3, "parts"), (50, "more than 1000000 comparisons")] {
        let reported = messages_after(
            host,
            &json!({ "key": "it", "tool": "promise", "args": { "result": nested(levels) } }),
        )
        .await;
        assert!(reported.contains(expected), "{levels}: {reported}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "the task is waited for")]
async fn schemas_without_end_fail_their_calls_while_the_host_answers_and_after_a_restart() {
    let schemas = json!({ "path": "by_levels.wasm" });
    let config = scripted(&json!([puppet()]), &[("schemas", schemas)]);
    let folder = Folder::new(config);
    std::fs::write(folder.path().join("by_levels.wasm"), promising("by levels")).unwrap();
    folder.warm(&["puppet"]).await;
    for _ in 0..2 {
        let host = Arc::new(folder.serve().await);
        let over = Arc::new(AtomicBool::new(false));
        let answers = Arc::new(AtomicU32::new(0));
        let watch = tokio::spawn({
            let host = host.clone();
            let over = over.clone();
            let answers = answers.clone();
            async move {
                while !over.load(Ordering::SeqCst) {
                    host.get("/healthz").gives(200).await;
                    answers.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        });
        everything_that_asks_too_much_fails(&host).await;
        over.store(true, Ordering::SeqCst);
        watch.await.unwrap();
        assert!(answers.load(Ordering::SeqCst) > 5);
        Arc::into_inner(host).unwrap().kill().await;
    }
}
