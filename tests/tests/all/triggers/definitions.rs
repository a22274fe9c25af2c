//! Triggers as they are made, changed, paused and removed, over the API and by the configuration.
//!
//! Triggers from the command line: what an operator sees of them and does with them.

use super::scene::{Scene, config, trigger, webhook, with};
use agent_host_tests::process::Answer;
use reqwest::Method;
use serde_json::{Value, json};

fn every(interval: &str) -> Value {
    trigger(&json!({ "schedule": { "every": interval }, "message": "Hello." }))
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status, answer.text("code"))
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_was_removed_is_gone_and_its_name_free_again() {
    let scene = Scene::new(&json!({})).await;
    scene.make("tick", &every("10m")).await;
    scene.run("tick").await;
    scene.done("tick", 1).await;
    let exists = scene.asked_to_make("tick", &every("1h")).await;
    assert_eq!(code(&exists), is(409, "TRIGGER_EXISTS"));
    let rows = [
        "DELETE /api/triggers/tick => 200",
        "GET /api/triggers/tick => 404 TRIGGER_NOT_FOUND",
        "DELETE /api/triggers/tick => 404 TRIGGER_NOT_FOUND",
        "POST /api/triggers/tick/run => 404 TRIGGER_NOT_FOUND",
        "POST /api/triggers/tick/pause => 404 TRIGGER_NOT_FOUND",
    ];
    scene.host.answers(&[], &rows).await;
    let listed = scene.host.get("/api/triggers").await;
    assert_eq!(listed.body["triggers"], json!([]));
    scene.make("tick", &every("1h")).await;
    assert_eq!(scene.runs("tick").await.len(), 1, "its runs stay");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_of_the_configuration_is_changed_there_and_nowhere_else() {
    let scene = Scene::new(&json!({ "tick": every("10m"), "gone": every("10m") })).await;
    let line = scene.host.line();
    let spec = json!({ "spec": every("1h") });
    let path = "/api/triggers/tick";
    for (method, body) in [(Method::PUT, Some(&spec)), (Method::DELETE, None)] {
        let answer = line.ask(method.clone(), path, body).await;
        assert_eq!(code(&answer), is(409, "TRIGGER_CONFIGURED"), "{method}");
    }
    let taken = scene.asked_to_make("tick", &every("1h")).await;
    assert_eq!(code(&taken), is(409, "TRIGGER_CONFIGURED"));
    scene.make("over-the-api", &every("1h")).await;
    let before = scene.shown("tick").await;
    assert_eq!(before["origin"], "configuration");
    scene
        .folder
        .configure(config(&json!({ "tick": every("2h") })));
    scene
        .until("the change", async || {
            let shown = scene.shown("tick").await;
            (shown["spec"]["schedule"]["every"] == "2h").then_some(())
        })
        .await;
    let after = scene.shown("tick").await;
    let due = |shown: &Value| shown["next_due_at"].as_str().map(str::to_owned);
    assert!(due(&after) > due(&before));
    let gone = scene.host.get("/api/triggers/gone").await;
    assert_eq!(code(&gone), is(404, "TRIGGER_NOT_FOUND"));
    assert_eq!(scene.shown("over-the-api").await["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_over_the_api_is_changed_whole_and_keeps_its_runs() {
    let scene = Scene::new(&json!({})).await;
    scene.make("tick", &every("10m")).await;
    scene.run("tick").await;
    scene.done("tick", 1).await;
    let other = with(every("1h"), &json!({ "message": "Good evening." }));
    let spec = json!({ "spec": other });
    let line = scene.host.line();
    let changed = line.put("/api/triggers/tick", &spec).gives(200).await;
    assert_eq!(changed.body["spec"]["message"], "Good evening.");
    let scene = scene.restarted_after(0).await;
    assert_eq!(scene.shown("tick").await["spec"]["schedule"]["every"], "1h");
    scene.run("tick").await;
    scene.done("tick", 2).await;
    let reported = scene.reported("tick").await;
    let texts: Vec<&Value> = reported.iter().map(|it| &it["text"]).collect();
    assert_eq!(texts, ["Hello.", "Good evening."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_and_run_their_own_triggers_and_make_none() {
    let of = |user: &str| with(every("10m"), &json!({ "user": user }));
    let scene = Scene::new(&json!({ "of-ada": of("ada"), "of-bob": of("bob") })).await;
    let ada = scene.host.user("ada", &["read", "write"]).await;
    let listed = ada.get("/api/triggers").await;
    let listed = listed.body["triggers"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["name"], "of-ada");
    let run = |name: &str| {
        let path = format!("/api/triggers/{name}/run");
        ada.ask(Method::POST, &path, None)
    };
    assert_eq!(run("of-ada").await.status, 202);
    let others = run("of-bob").await;
    assert_eq!(code(&others), is(404, "TRIGGER_NOT_FOUND"));
    let new = json!({ "name": "mine", "spec": of("ada") });
    ada.post("/api/triggers", &new).gives(403).await;
    scene.done("of-ada", 1).await;
    let sessions = scene.sessions("of-ada").await;
    let seen = ada.get(&sessions[0]).await;
    assert_eq!(seen.status, 200, "it is a chat of hers: {seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_a_trigger_is_refused_with_the_field_and_the_fix() {
    let scene = Scene::new(&json!({})).await;
    let hmac = json!({ "auth": { "hmac": { "secret": "none", "scheme": "github" } } });
    for (spec, status, field) in [
        (every("5s"), 422, "/spec/schedule/every"),
        (
            trigger(&json!({
                "schedule": { "at": "2020-01-01T00:00:00Z" }, "message": "Hello.",
            })),
            422,
            "/spec/schedule/at",
        ),
        (
            with(every("1h"), &json!({ "component": "none" })),
            404,
            "/spec/component",
        ),
        (
            with(every("1h"), &json!({ "component": "puppet" })),
            404,
            "/spec/component",
        ),
        (
            with(every("1h"), &json!({ "component": "webhook" })),
            422,
            "/spec/component",
        ),
        (
            trigger(&json!({ "webhook": hmac })),
            422,
            "/spec/webhook/auth",
        ),
        (
            trigger(&json!({ "files": { "folder": "/etc" } })),
            422,
            "/spec/files/folder",
        ),
        (
            webhook(&json!({ "configuration": { "onyl": [] } })),
            422,
            "/spec/configuration",
        ),
    ] {
        let refused = scene.asked_to_make("wrong", &spec).await;
        assert_eq!(refused.status, status, "{spec}: {refused:?}");
        assert_eq!(refused.text("field"), field, "{spec}: {refused:?}");
    }
    let listed = scene.host.get("/api/triggers").await;
    assert_eq!(listed.body["triggers"], json!([]));
}

/// A host with a trigger that is due in a year.
async fn scene() -> Scene {
    let yearly = json!({ "schedule": { "every": "365d" }, "message": "A year has passed." });
    Scene::new(&json!({ "yearly": trigger(&yearly) })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_is_listed_run_paused_and_looked_back_at_from_the_command_line() {
    let scene = scene().await;
    let folder = &scene.folder;
    let listed = folder
        .prints("trigger list", 0, &["  schedule  active  "])
        .await;
    assert!(listed.starts_with("yearly "), "{listed}");
    let ran = folder.prints("trigger run yearly", 0, &[]).await;
    assert!(
        ran.starts_with("yearly is fired; the trigger event is "),
        "{ran}"
    );
    scene.done("yearly", 1).await;
    let parts = ["  done ", "  run by local  ", "-> session "];
    folder.prints("trigger history yearly", 0, &parts).await;
    folder
        .prints("trigger pause yearly", 0, &[" paused "])
        .await;
    let resumed = folder.prints("trigger resume yearly --json", 0, &[]).await;
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!(resumed["state"], "active");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_command_on_a_trigger_names_the_command_that_helps() {
    let scene = scene().await;
    for (command, code, reported) in [
        ("trigger remove yearly", Some(3), "`trigger pause`"),
        ("trigger show nowhere", Some(3), "`trigger list`"),
        ("trigger run nowhere", Some(3), "`trigger list`"),
        ("trigger history nowhere", Some(3), "`trigger list`"),
        (
            "audit --agent trigger:nowhere",
            None,
            "no trigger `nowhere` now",
        ),
    ] {
        scene.folder.complains(command, code, &[reported]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_says_what_fires_next_and_the_explanation_what_it_may() {
    let scene = scene().await;
    let next = "  trigger     yearly (schedule) fires next: 20";
    scene.folder.prints("config check", 0, &[next]).await;
    let parts = [
        "the trigger yearly calls schedule@",
        "the log, a frozen clock and seeded randomness, and nothing else",
        "its messages go to the agent puppet",
    ];
    let explain = "grants explain --trigger yearly";
    scene.folder.prints(explain, 0, &parts).await;
}
