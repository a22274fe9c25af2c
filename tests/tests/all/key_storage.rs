//! Bytes that come with an API key where another task than the request's stores them: each of these
//! tasks has to be handed the key.

#[path = "../../../host/store/src/tests/key_rows.rs"]
mod key_rows;

use agent_host_tests::world::target;
use agent_host_tests::{Setup, World};
use broker::{By, PurgeOf, Respond, Target};
use domain::key::{Issuer, KeyId, NewKey};
use domain::user::{Scope, UserId};
use key_rows::bytes_of_rows;
use serde_json::json;
use store::under_api_key;

fn id(n: u8) -> KeyId {
    KeyId::of([n; 12])
}

/// Does something as a request with an API key does it.
async fn with_key<T>(n: u8, request: impl Future<Output = T>) -> T {
    under_api_key(Some(id(n)), request).await
}

fn rows_with(world: &World, n: u8) -> u64 {
    bytes_of_rows(&world.dir.path().join("data/store.db"), &id(n))
}

/// Returns the bytes that are counted for a key, which are those of its rows.
async fn counted(world: &World, n: u8, request: &str) -> u64 {
    let stored = world.store().stored_bytes_with(&id(n)).await.unwrap();
    assert!(stored > 0, "{request} came with no key");
    assert_eq!(stored, rows_with(world, n), "{request}");
    stored
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_task_stores_for_a_request_is_counted_for_its_key() {
    let world = World::new(Setup::default()).await;
    let me = UserId::local();
    let once = |key| By {
        user: &me,
        key: Some(key),
    };
    let puppet = target("puppet");
    let session = world.open("puppet").await;
    let steps = json!({ "steps": [
        { "start": [{ "key": "q", "client": "question" }] },
        { "start": [{ "key": "t", "timer": 3_600_000 }] },
    ] });
    with_key(1, world.say("puppet", session, &steps.to_string())).await;
    let said = counted(&world, 1, "a message").await;

    let (call, _) = world.question("puppet", session).await;
    let respond = Respond {
        target: puppet.clone(),
        call,
        session: None,
        response: json!(1),
        user: me.clone(),
        idempotency_key: Some("answer".to_owned()),
    };
    with_key(2, world.broker.runs().respond(respond))
        .await
        .unwrap();
    counted(&world, 2, "an answer").await;

    let runs = world.broker.runs();
    let cancel = runs.cancel(once("cancel"), &puppet, session, None);
    assert!(with_key(3, cancel).await.unwrap());
    counted(&world, 3, "a cancellation").await;
    world.idle(session).await;

    let chat = world.open("assistant").await;
    world.turn("assistant", chat, "hello").await;
    let assistant = target("assistant");
    let compact = runs.compact(once("compact"), &assistant, chat);
    with_key(4, compact).await.unwrap();
    world.idle(chat).await;
    counted(&world, 4, "a compaction").await;

    let issuer = Issuer {
        user: me.clone(),
        scopes: Scope::ALL.into(),
        key: None,
    };
    let asked = NewKey {
        user: me.clone(),
        name: String::new(),
        scopes: [Scope::Read].into(),
        lifetime_s: Some(3_600),
    };
    let keys = world.broker.keys();
    let issued = keys.issue(&issuer, asked, None).await.unwrap();
    let revoke = keys.revoke(&issuer, &issued.row.id, None);
    with_key(5, revoke).await.unwrap();
    counted(&world, 5, "a revocation").await;

    let row = world.row(session).await;
    let deleted = world
        .broker
        .sessions()
        .delete(By::from(&me), &puppet, session)
        .await;
    deleted.unwrap();
    let what = PurgeOf::Session(Target::Agent(row.agent), session);
    let purge = world.broker.purge(once("purge"), &what);
    with_key(6, purge).await.unwrap();
    counted(&world, 6, "a purge").await;

    // What was purged is given back to the keys that it came with, and nothing else is.
    for n in 1..=3 {
        let stored = world.store().stored_bytes_with(&id(n)).await.unwrap();
        assert_eq!(stored, rows_with(&world, n), "key {n}");
    }
    assert!(world.store().stored_bytes_with(&id(1)).await.unwrap() < said);
    counted(&world, 4, "the compaction of another session").await;
    counted(&world, 5, "the revocation").await;
}
