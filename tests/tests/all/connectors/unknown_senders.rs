//! People whom nobody knows: ignored, refused politely, or paired with a user by a code.

use super::scene::{ADA, Scene, UNKNOWN_SENDER, get, texts};
use agent_host_tests::process::{Line, Reply, shows};
use serde_json::{Value, json};

/// Enters a code, for oneself or for the user in the body.
#[track_caller]
fn enter(line: &Line, code: &str, body: &Value) -> Reply {
    let path = format!("/api/pairings/{code}");
    line.post(&path, body)
}

/// Returns the code that a person was told, as the operator sees it.
async fn code(scene: &Scene) -> String {
    let listed = scene.host.get("/api/pairings").await;
    let [pairing] = listed.body["pairings"].as_array().unwrap().as_slice() else {
        panic!("{listed:?}")
    };
    shows(
        pairing,
        &json!({ "target_id": "8", "name": "P8", "chat": "8" }),
    );
    pairing["code"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_whom_nobody_knows_hears_nothing_by_default() {
    let scene = Scene::new().await;
    scene.telegram.say(UNKNOWN_SENDER, "Is anybody there?");
    scene.all_polled().await;
    assert!(scene.telegram.quiet().await.is_empty());
    assert!(scene.outbound_messages().await.is_empty());
    assert_eq!(scene.state().await["last_received_at"], Value::Null);
    assert!(!scene.keeps("Is anybody there?"), "it is stored nowhere");
}

/// Nobody is to hear it, and so nobody can read it in the host's files either.
#[tokio::test(flavor = "multi_thread")]
async fn words_of_strangers_and_of_unknown_groups_are_stored_nowhere() {
    for unknown in ["refuse", "pair"] {
        let scene = Scene::connected(json!({ "unknown": unknown })).await;
        scene
            .telegram
            .say(UNKNOWN_SENDER, "the words of a stranger");
        scene.telegram.messages(1).await;
        scene
            .telegram
            .say_in(-200, UNKNOWN_SENDER, "the words of a group");
        scene.telegram.say(ADA, "the words of Ada");
        scene.telegram.messages(2).await;
        scene.all_polled().await;
        assert!(scene.keeps("the words of Ada"), "{unknown}");
        assert!(!scene.keeps("the words of a stranger"), "{unknown}");
        assert!(!scene.keeps("the words of a group"), "{unknown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_whom_nobody_knows_is_refused_once_in_the_operators_words() {
    let refusing = json!({ "unknown": "refuse", "refusal": "This is a private bot." });
    let scene = Scene::connected(refusing).await;
    for _ in 0..3 {
        scene.telegram.say(UNKNOWN_SENDER, "Is anybody there?");
        scene.telegram.messages(1).await;
    }
    let sent = scene.telegram.sent();
    assert_eq!((sent[0].chat.as_str(), sent.len()), ("8", 1), "{sent:?}");
    assert_eq!(scene.telegram.quiet().await, ["This is a private bot."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_pairs_a_person_and_only_what_they_say_then_is_heard() {
    let scene = Scene::connected(json!({ "unknown": "pair" })).await;
    scene.telegram.say(UNKNOWN_SENDER, "a secret from before");
    let reported = scene.telegram.messages(1).await.remove(0);
    let code = code(&scene).await;
    assert_eq!(reported.chat, "8");
    assert!(
        reported.text.contains(&format!("<b>{code}</b>")),
        "{reported:?}"
    );
    // Whom they are is said by the operator, or by a user of themselves.
    let bob = scene.user("bob").await;
    let for_carol = enter(&bob, &code, &json!({ "user": "carol" })).await;
    assert_eq!(for_carol.text("code"), "SCOPE_MISSING");
    let spaced = format!("{}-{}", &code[..4], code[4..].to_lowercase());
    let paired = enter(&bob, &spaced, &json!({})).await;
    assert_eq!(
        paired.body,
        json!({ "key": "telegram:8", "user_id": "bob" })
    );
    let again = enter(&bob, &code, &json!({})).await;
    assert_eq!(
        again.text("code"),
        "PAIRING_NOT_FOUND",
        "a code counts once"
    );
    scene.telegram.say(UNKNOWN_SENDER, "It is me.");
    let reported = scene.telegram.messages(2).await.remove(1);
    assert_eq!(
        (reported.chat.as_str(), reported.text.as_str()),
        ("8", "said It is me.")
    );
    let session = scene.session("bob", "/bob/telegram").await;
    assert_eq!(texts(&session, "user"), ["It is me."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_not_guessed_and_one_that_was_declined_does_not_count() {
    let scene = Scene::connected(json!({ "unknown": "pair" })).await;
    scene.telegram.say(UNKNOWN_SENDER, "hello");
    scene.telegram.messages(1).await;
    let code = code(&scene).await;
    let mallory = scene.user("mallory").await;
    let mut codes = Vec::new();
    for _ in 0..11 {
        let guessed = enter(&mallory, "22222222", &json!({})).await;
        codes.push(guessed.text("code"));
    }
    assert_eq!(codes[9..], ["PAIRING_NOT_FOUND", "TOO_MANY_GUESSES"]);
    let right = enter(&mallory, &code, &json!({})).await;
    assert_eq!(right.text("code"), "TOO_MANY_GUESSES");
    let operator = scene.host.line();
    let path = format!("/api/pairings/{code}");
    operator.delete(&path).gives(204).await;
    let late = enter(&operator, &code, &json!({ "user": "bob" })).await;
    assert_eq!(late.text("code"), "PAIRING_NOT_FOUND");
    let keys = get(&operator, "/api/users/bob/connectors").await;
    assert_eq!(keys["connectors"], json!([]));
}
