//! Services that are down, limit the rate, lose answers, refuse messages or revoke the token.
//!
//! Connectors from the command line: what an operator sees of them, and the test of one.

use super::scene::{ADA, AGENT, Scene, Wanted, choice, get};
use super::telegram_server::Fault;
use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{script, tells};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// Time within which others are served while an acknowledgement waits for its answer. It is given
/// up after 5 seconds.
const MEANWHILE: Duration = Duration::from_millis(4_500);

/// Returns the one outbound message of the latest turn of Ada's, as the turn shows it.
async fn of_turn(scene: &Scene) -> Value {
    let ada = scene.user("ada").await;
    let session = scene.session("ada", AGENT).await;
    let turn = session["turn_id"].as_str().unwrap();
    let turn = get(&ada, &format!("/api/turns/{turn}")).await;
    turn["outbound_messages"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_was_down_gets_and_gives_everything_when_it_is_back() {
    let scene = Scene::new().await;
    let slow = json!([{ "start": [{ "key": "t", "timer": 500 }] }]);
    scene.telegram.say(ADA, &script(&slow));
    until(async || scene.state().await["last_received_at"].is_string()).await;
    scene.telegram.server.go_down();
    scene.telegram.say(ADA, "said while it was down");
    let failed = scene.until_outbound_message("failed").await;
    assert!(failed["retry_at"].is_string(), "{failed}");
    scene.telegram.server.come_up();
    let sent = scene.telegram.messages(2).await;
    let reported: Vec<&str> = sent.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(reported, ["t elapsed", "said said while it was down"]);
    found(async || {
        let state = scene.until_state("polling").await;
        (state["outbound_messages_waiting"] == 0).then_some(())
    })
    .await;
    assert_eq!(scene.telegram.quiet().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_cannot_be_reached_is_told_with_that_as_the_reason() {
    let hears = json!({
        "user": "local", "target": { "agent": "assistant" },
        "events": { "on": ["connector.down"] }, "message": "A connector is down.",
    });
    let scene = Scene::with(Wanted {
        triggers: json!({ "hears": hears }),
        ..Wanted::default()
    })
    .await;
    scene.until_state("polling").await;
    scene.telegram.server.go_down();
    let state = scene.until_state("failing").await;
    let reason = state["reason"].as_str().unwrap();
    tells(&reason, &["cannot be reached"]);
    let status = scene.host.get("/api/status").await.body;
    let outage = &status["outages"][0];
    assert_eq!(
        (&outage["kind"], &outage["name"]),
        (&json!("connector"), &json!("telegram")),
        "{status}"
    );
    // It is told after three polls, which all warned of the same.
    let log = scene.folder.log();
    let warned = log
        .lines()
        .filter(|line| line.contains(" guest: ") && line.contains("cannot be reached"));
    assert_eq!(warned.count(), 1, "{log}");
    let fired = async || {
        let history = scene.host.get("/api/triggers/hears/history").await;
        let runs = history.body["runs"].as_array()?.clone();
        let is_done = runs.first()?["state"] == "done";
        is_done.then_some(runs)
    };
    found(fired).await;
    scene.telegram.server.come_up();
    scene.until_state("polling").await;
    let runs = found(fired).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(
        runs[0]["trigger_event"]["name"], "connector.down",
        "{runs:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_limits_the_rate_gets_its_time_and_the_order_of_a_chat_is_kept() {
    let scene = Scene::new().await;
    scene.telegram.fail("sendMessage", &[Fault::Limited(3)]);
    scene.telegram.say(ADA, "one");
    scene.until_outbound_message("failed").await;
    scene.telegram.say(ADA, "two");
    let sent = scene.telegram.messages(2).await;
    let reported: Vec<&str> = sent.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(reported, ["said one", "said two"]);
    let refused = scene.telegram.calls("sendMessage").remove(0).at;
    let waited = sent[0].at.duration_since(refused);
    assert!(waited >= Duration::from_millis(2_900), "{waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_was_revoked_is_told_as_the_trouble_of_the_connector() {
    let scene = Scene::new().await;
    assert_eq!(scene.state().await["state"], "polling");
    scene.telegram.revoke();
    let state = scene.until_state("unauthorised").await;
    let reason = state["reason"].as_str().unwrap();
    tells(&reason, &["Unauthorized"]);
    assert!(state["since"].is_string(), "{state}");
    assert!(
        !scene.folder.log().contains(super::telegram_server::TOKEN),
        "the token is in no line of the log"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_service_refuses_is_a_dead_letter_until_it_is_requeued() {
    let scene = Scene::new().await;
    let wrong = Fault::Wrong("Bad Request: chat not found");
    scene.telegram.fail("sendMessage", &[wrong]);
    scene.telegram.say(ADA, "hello");
    let dead = scene.until_outbound_message("dead").await;
    assert!(
        dead["reason"].as_str().unwrap().contains("chat not found"),
        "{dead}"
    );
    assert_eq!(of_turn(&scene).await["state"], "dead");
    assert_eq!(scene.state().await["outbound_messages_dead"], 1);
    let path = "/api/connectors/telegram/outbound-messages?state=queued";
    let none = scene.host.get(path).await;
    assert_eq!(none.body["outbound_messages"], json!([]));
    // What comes behind it goes on meanwhile.
    scene.telegram.say(ADA, "again");
    scene.telegram.messages(1).await;
    scene.requeue(&dead).gives(202).await;
    let reported = scene.telegram.messages(2).await.remove(1).text;
    assert_eq!(reported, "said hello");
    until(async || scene.state().await["outbound_messages_dead"] == 0).await;
    scene
        .requeue(&dead)
        .refused(409, "OUTBOUND_MESSAGE_NOT_DEAD")
        .await;
}

/// Returns what a scene wants in which the trigger `hears` hears of an event of the host's.
fn hearing(event: &str, message: &str) -> Wanted {
    let hears = json!({
        "user": "local", "target": { "agent": "assistant" },
        "events": { "on": [event] }, "message": message,
    });
    Wanted {
        triggers: json!({ "hears": hears }),
        ..Wanted::default()
    }
}

/// Waits until the latest run of the trigger `hears` is done; the trigger runs, the latest first.
async fn heard(scene: &Scene) -> Vec<Value> {
    found(async || {
        let history = scene.host.get("/api/triggers/hears/history").await;
        let runs = history.body["runs"].as_array()?.clone();
        (runs.first()?["state"] == "done").then_some(runs)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_answer_was_lost_is_unknown_and_not_sent_again_by_itself() {
    let scene = Scene::with(hearing(
        "outbound.unknown",
        "Look after {{payload.data.chat}}.",
    ))
    .await;
    scene.telegram.fail("sendMessage", &[Fault::Lost]);
    scene.telegram.say(ADA, "hello");
    let unknown = scene.until_outbound_message("unknown").await;
    assert_eq!(of_turn(&scene).await["state"], "unknown");
    assert_eq!(scene.telegram.quiet().await, ["said hello"]);
    scene.requeue(&unknown).gives(202).await;
    assert_eq!(scene.telegram.messages(2).await.len(), 2);
    scene.until_outbound_message("delivered").await;
    let runs = heard(&scene).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!(
        runs[0]["trigger_event"]["name"], "outbound.unknown",
        "{runs:?}"
    );
    let log = scene.folder.log();
    let reported = "nobody knows whether a message was sent";
    tells(&log, &[reported]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_answer_holds_back_one_chat_and_no_other() {
    let scene = Scene::new().await;
    scene.bind("telegram:9", "bob").await;
    scene.telegram.fail("sendMessage", &[Fault::Silence]);
    scene.telegram.say(ADA, "hello");
    scene.telegram.called("sendMessage").await;
    scene.telegram.say(9, "me too");
    let sent = scene.telegram.messages(1).await.remove(0);
    assert_eq!(
        (sent.chat.as_str(), sent.text.as_str()),
        ("9", "said me too")
    );
    scene.until_state("polling").await;
    let outbound_messages = scene.outbound_messages().await;
    let of_ada = outbound_messages
        .iter()
        .find(|it| it["chat"] == "7")
        .unwrap();
    assert_eq!(of_ada["state"], "started", "{of_ada}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_of_a_connector_reaches_the_user_whose_key_it_has() {
    let scene = Scene::new().await;
    let test = json!({ "user": "ada", "text": "Do you hear me?" });
    let path = "/api/connectors/telegram/test";
    scene.host.post(path, &test).gives(202).await;
    let sent = scene.telegram.messages(1).await.remove(0);
    assert_eq!(
        (sent.chat.as_str(), sent.text.as_str()),
        ("7", "Do you hear me?")
    );
    let nobody = json!({ "user": "nobody", "text": "Do you hear me?" });
    let refused = scene.host.post(path, &nobody).await;
    assert_eq!(refused.text("code"), "CONNECTOR_KEY_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_without_an_answer_holds_nobody_up_and_is_not_repeated() {
    let scene = Scene::new().await;
    scene
        .telegram
        .say(ADA, &choice(&["tea", "coffee"].map(str::to_owned)));
    let asked = scene.telegram.messages(1).await.remove(0);
    scene
        .telegram
        .fail("answerCallbackQuery", &[Fault::Silence]);
    scene.telegram.press(ADA, &asked.buttons()[1].1);
    scene.telegram.messages(2).await;
    scene.telegram.called("answerCallbackQuery").await;
    // The next poll, and the reply to what it brings.
    scene.telegram.say(ADA, "hello");
    let reply = scene.telegram.messages(3).await.remove(2);
    assert_eq!(reply.text, "said hello");
    let began = scene.telegram.calls("answerCallbackQuery").remove(0).at;
    let took = reply.at.duration_since(began);
    assert!(took < MEANWHILE, "{took:?}");
    tokio::time::sleep(MEANWHILE).await;
    assert_eq!(scene.telegram.calls("answerCallbackQuery").len(), 1);
    assert_eq!(scene.state().await["state"], "polling");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outbound_message_that_was_given_up_is_told_to_the_trigger_that_hears_of_it() {
    let message = "{{payload.data.connector}} {{payload.data.chat}}: {{payload.data.reason}}";
    let scene = Scene::with(hearing("outbound.dead", message)).await;
    let wrong = Fault::Wrong("Bad Request: chat not found");
    scene.telegram.fail("sendMessage", &[wrong]);
    scene.telegram.say(ADA, "hello");
    scene.until_outbound_message("dead").await;
    let run = heard(&scene).await.remove(0);
    assert_eq!(run["trigger_event"]["name"], "outbound.dead", "{run}");
    let agent = run["messages"][0]["agent_id"].as_str().unwrap();
    let session = run["messages"][0]["session_id"].as_str().unwrap();
    let path = format!("/api/agents/{agent}/sessions/{session}");
    let reported = found(async || {
        let seen = scene.host.get(&path).await.body;
        let messages = seen["messages"].as_array()?.iter();
        let mut reported = messages.filter(|message| message["origin"] == "trigger:hears");
        reported.next().cloned()
    })
    .await;
    let text = reported["text"].as_str().unwrap();
    assert!(
        text.starts_with("telegram 7: ") && text.contains("chat not found"),
        "{text}"
    );
    assert_eq!(
        reported["untrusted"], true,
        "the service's words are anybody's"
    );
}

/// Tests the connector.
const TEST: &str = "connector test telegram --user ada Hello.";

/// Returns the lines of the ledger that a filter leaves.
async fn ledger(scene: &Scene, filter: &str) -> Vec<Value> {
    let audit = format!("audit --json {filter}");
    let lines = scene.folder.prints(&audit, 0, &[]).await;
    let lines = lines.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_from_the_command_line_fails_with_what_holds_the_message_up() {
    let scene = Scene::new().await;
    scene.folder.prints(TEST, 0, &["  delivered  "]).await;
    assert_eq!(scene.telegram.messages(1).await.remove(0).text, "Hello.");
    scene.telegram.revoke();
    scene.until_state("unauthorised").await;
    let stalled = ["the message is not sent", "Unauthorized"];
    scene.folder.complains(TEST, 1, &stalled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_names_the_connector_and_no_run_where_there_is_none() {
    let scene = Scene::new().await;
    scene.folder.prints(TEST, 0, &[]).await;
    let lines = ledger(&scene, "--agent connector:telegram").await;
    let is_sent = |line: &Value| line["tool"] == "connector.send";
    assert!(lines.iter().any(is_sent), "{lines:?}");
    let has_run = |line: &Value| line.get("run_id").is_some();
    assert!(!lines.iter().any(has_run), "{lines:?}");
    let explain = "grants explain --connector telegram";
    let secret = "secret telegram for 127.0.0.1";
    scene.folder.prints(explain, 0, &[secret]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_of_a_run_has_what_was_sent_for_it() {
    let scene = Scene::new().await;
    scene.telegram.say(ADA, "hello");
    let delivered = scene.until_outbound_message("delivered").await;
    let run = delivered["cause"]["run_id"].as_str().unwrap();
    let lines = ledger(&scene, &format!("--run {run}")).await;
    assert!(lines.iter().all(|line| line["run_id"] == run), "{lines:?}");
    let is_sent = |line: &&Value| line["tool"] == "connector.send";
    let sent: Vec<&Value> = lines.iter().filter(is_sent).collect();
    let is_of_connector = |line: &&Value| line["definition"] == "connector:telegram";
    assert!(
        !sent.is_empty() && sent.iter().all(is_of_connector),
        "{lines:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_connector_has_is_refused_with_those_that_there_are() {
    let scene = Scene::new().await;
    let names = ["`nope`", "`telegram`"];
    scene
        .folder
        .complains("connector bind alice nope:5", 3, &names)
        .await;
    let path = "/api/users/alice/connectors/nope:5";
    let line = scene.host.line();
    let put = line.ask(Method::PUT, path, None).await;
    put.has(
        404,
        &json!({ "code": "CONNECTOR_NOT_FOUND", "field": "path:key" }),
    );
    for (command, code, reported) in [
        (
            "connector outbound-messages nope",
            Some(3),
            "`connector list`",
        ),
        (
            "connector pairings --connector nope",
            Some(3),
            "`connector list`",
        ),
        (
            "connector test nope --user ada",
            Some(3),
            "`connector list`",
        ),
        (
            "audit --agent connector:nope",
            None,
            "no connector `nope` now",
        ),
    ] {
        scene.folder.complains(command, code, &[reported]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_on_a_connector_names_what_there_is() {
    let scene = Scene::new().await;
    for (command, reported) in [
        (
            "connector outbound-messages telegram --state sent",
            "queued, started, failed, delivered, unknown, dead",
        ),
        (
            "connector requeue telegram first",
            "`connector outbound-messages telegram`",
        ),
        (
            "connector test telegram --user bob",
            "`connector bind bob telegram:ID`",
        ),
        ("connector unbind ada telegram:8", "`connector list ada`"),
        ("connector unpair ABCD2345", "`connector pairings`"),
        ("audit --agent connector:", "connector:<name>"),
    ] {
        scene.folder.complains(command, 3, &[reported]).await;
    }
    // Not by spaces: the name of the user has one.
    let output = scene.folder.run(&["audit", "--user", "a b"]).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    tells(&said, &["is no user id"]);
}
