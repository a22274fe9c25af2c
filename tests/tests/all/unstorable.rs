//! Events that can never be stored, whenever it is tried: the turn that they belong to ends with a
//! reason, and the session goes on.

use super::exhaustion::{idle, open, say};
use agent_host_tests::process::{CONTRADICTS_ON, Folder, Host, MISREADS_ON, UNSTORABLE, puppets};
use serde_json::{Value, json};

/// The scripted model's reply, which no event may have in it.
const WORDS: &str = "hello from the model";

/// Returns the ends of a session's turns, and everything that its events say.
async fn ends(host: &Host, session: &str) -> (Vec<Value>, String) {
    let id = session.rsplit('/').next().unwrap();
    let events = host
        .get(&format!("/api/events?limit=1000&session={id}"))
        .await
        .unwrap()
        .body;
    let ended = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["type"] == "run.ended.v1");
    (
        ended.map(|event| event["data"].clone()).collect(),
        events.to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_something_can_never_be_stored_ends_and_the_session_goes_on() {
    let folder = Folder::new(puppets(
        &json!([{ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" }]),
    ));
    folder.warm(&["puppet"]).await;
    let host = folder
        .start_in(&[], Some((UNSTORABLE, WORDS)))
        .await
        .unwrap();
    let session = open(&host).await;
    let asks =
        json!({ "steps": [{ "start": [{ "key": "m", "model": "" }] }, { "reply": "never" }] });
    assert_eq!(say(&host, &session, &asks.to_string()).await.status, 202);
    idle(&host, &session).await;
    let replies = json!({ "steps": [{ "reply": "it goes on" }] });
    assert_eq!(say(&host, &session, &replies.to_string()).await.status, 202);
    let seen = idle(&host, &session).await;
    assert!(
        seen["messages"].to_string().contains("it goes on"),
        "{seen}"
    );
    let (ended, told) = ends(&host, &session).await;
    let [failed, replied] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(
        (&failed["end"], &replied["end"]),
        (&json!("failed"), &json!("replied"))
    );
    assert!(
        failed["reason"]
            .as_str()
            .unwrap()
            .contains("can never be stored"),
        "{failed}"
    );
    // The call of the model is on record with what it cost, once, and without what it said.
    assert_eq!(
        (
            told.matches("not-storable").count() >= 1,
            told.contains(WORDS)
        ),
        (true, false),
        "{told}"
    );
    assert_eq!(
        folder
            .log()
            .matches("a turn ends because something of it can never be stored")
            .count(),
        1,
        "{}",
        folder.log()
    );
    host.kill().await;
    let host = folder.start(None).await.unwrap();
    idle(&host, &session).await;
    assert_eq!(ends(&host, &session).await.0, ended);
    assert!(host.stop().await.success(), "{}", folder.log());
    assert!(folder.run(&["verify"]).await.status.success());
}

/// Has a turn ask a model on a host that cannot store something of it, until it has failed and the
/// next one has replied. Returns the number of tries, the failed turn and all that is told of it.
async fn failed_turn(folder: &Folder, variable: &str, refused: &str) -> (usize, Value, String) {
    let tries = || {
        folder
            .log()
            .matches("a session cannot go on just now; trying again")
            .count()
    };
    let before = tries();
    let host = folder
        .start_in(&[], Some((variable, refused)))
        .await
        .unwrap();
    let session = open(&host).await;
    let asks =
        json!({ "steps": [{ "start": [{ "key": "m", "model": "" }] }, { "reply": "never" }] });
    assert_eq!(say(&host, &session, &asks.to_string()).await.status, 202);
    idle(&host, &session).await;
    let tried = tries() - before;
    let replies = json!({ "steps": [{ "reply": "it goes on" }] });
    assert_eq!(say(&host, &session, &replies.to_string()).await.status, 202);
    let seen = idle(&host, &session).await;
    assert!(
        seen["messages"].to_string().contains("it goes on"),
        "{variable}: {seen}"
    );
    let (ended, told) = ends(&host, &session).await;
    let [failed, replied] = &ended[..] else {
        panic!("{variable}: {ended:?}")
    };
    assert_eq!(
        (&failed["end"], &failed["code"], &replied["end"]),
        (&json!("failed"), &json!("not-storable"), &json!("replied"))
    );
    assert!(host.stop().await.success(), "{}", folder.log());
    (tried, failed.clone(), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_commit_is_refused_five_times_in_a_row_ends_and_the_session_goes_on() {
    let folder = Folder::new(puppets(
        &json!([{ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" }]),
    ));
    folder.warm(&["puppet"]).await;
    for (variable, cause) in [
        (CONTRADICTS_ON, "it contradicts what is stored"),
        (MISREADS_ON, "something stored that cannot be read"),
    ] {
        let (tried, failed, told) = failed_turn(&folder, variable, WORDS).await;
        assert_eq!(tried, 5, "{variable}: {}", folder.log());
        assert!(
            failed["reason"].as_str().unwrap().contains(cause),
            "{variable}: {failed}"
        );
        assert!(!told.contains(WORDS), "{variable}: {told}");
    }
    assert!(folder.run(&["verify"]).await.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_no_further_attempt_can_be_stored_ends_and_the_session_goes_on() {
    let folder = Folder::new(puppets(
        &json!([{ "agentId": "puppet", "displayName": "Puppet", "component": "puppet" }]),
    ));
    let breaks_off = "[[rule]]\nreply = { text = \"half of\", fail = \"cut-short\" }\n";
    std::fs::write(folder.path().join("script.toml"), breaks_off).unwrap();
    folder.warm(&["puppet"]).await;
    for (variable, looks) in [(UNSTORABLE, 1), (CONTRADICTS_ON, 5), (MISREADS_ON, 5)] {
        // Only a further attempt says what its operation draws from then on.
        let (tried, failed, told) = failed_turn(&folder, variable, "\"drawn\":").await;
        assert_eq!(tried, looks, "{variable}: {}", folder.log());
        assert!(
            failed["reason"]
                .as_str()
                .unwrap()
                .contains("can never be stored"),
            "{variable}: {failed}"
        );
        assert!(
            !told.contains("operation.attempted.v1"),
            "{variable}: {told}"
        );
    }
    assert!(folder.run(&["verify"]).await.status.success());
}
