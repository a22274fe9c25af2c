//! Triggers: who sees and uses which, and what is refused.

use super::host::{Host, TOKEN};
use super::scopes::key;
use domain::digest::Salt;
use domain::event::{Event, NewEvent, Subject, TriggerDefined, TriggerOrigin};
use domain::id::{EventId, Stream};
use domain::time::Timestamp;
use domain::trigger::TriggerName;
use domain::user::Scope;
use serde_json::{Value, json};
use store::{Commit, Expected};
use uuid::Uuid;

/// Puts a trigger of a user on record, as if it had been made when its component was there.
async fn define(host: &Host, name: &str, user: &str) {
    let name: TriggerName = name.parse().unwrap();
    let spec = json!({
        "user": user, "schedule": { "every": "1h" }, "target": { "agent": "assistant" },
        "message": "hello",
    });
    let defined = Event::TriggerDefined(TriggerDefined {
        name: name.clone(),
        spec: Box::new(serde_json::from_value(spec).unwrap()),
        origin: TriggerOrigin::Api {
            user: user.parse().unwrap(),
        },
        next_due: Some(Timestamp(u64::from(u32::MAX) * 1_000)),
        time: Timestamp(1),
    });
    let event = NewEvent {
        id: EventId(Uuid::now_v7()),
        event: defined,
        subject: Subject::default(),
        actor: format!("user:{user}"),
        causation: None,
        correlation: None,
        time: Timestamp(1),
        salt: Salt([1; 16]),
    };
    let commit = Commit::new().append(Stream::Trigger(name.id()), Expected::Any, vec![event]);
    host.store.commit(commit).await.unwrap();
}

fn names(list: &Value) -> Vec<&str> {
    let triggers = list["triggers"].as_array().unwrap();
    triggers
        .iter()
        .map(|trigger| trigger["name"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_their_triggers_and_the_operator_all() {
    let host = Host::start().await;
    define(&host, "a-morning", "alice").await;
    define(&host, "b-evening", "bob").await;
    let alice = key(&host, "alice", &[Scope::Read, Scope::Write]).await;
    let all = host.get("/api/triggers").await.json();
    assert_eq!(names(&all), ["a-morning", "b-evening"]);
    let first = host.get("/api/triggers?limit=1").await.json();
    assert_eq!(
        (names(&first), first["next_after"].as_str()),
        (vec!["a-morning"], Some("a-morning"))
    );
    let rest = host
        .get("/api/triggers?limit=1&after=a-morning")
        .await
        .json();
    assert_eq!(
        (names(&rest), &rest["next_after"]),
        (vec!["b-evening"], &Value::Null)
    );
    let own = host.get_with(&alice, "/api/triggers").await.json();
    assert_eq!(names(&own), ["a-morning"]);
    let shown = host
        .get_with(&alice, "/api/triggers/a-morning")
        .await
        .json();
    assert_eq!(
        (
            &shown["kind"],
            &shown["state"],
            &shown["user_id"],
            &shown["origin"]
        ),
        (
            &json!("schedule"),
            &json!("active"),
            &json!("alice"),
            &json!("api")
        )
    );
    for path in ["/api/triggers/b-evening", "/api/triggers/b-evening/history"] {
        let hidden = host.get_with(&alice, path).await;
        assert_eq!(hidden.json()["code"], "TRIGGER_NOT_FOUND", "{path}");
    }
    let others = host.get_with(&alice, "/api/triggers?user=bob").await;
    assert_eq!(others.json()["field"], "query:user");
    let bobs = host
        .get("/api/triggers?user=bob&kind=schedule")
        .await
        .json();
    assert_eq!(names(&bobs), ["b-evening"]);
    let none = host.get("/api/triggers?kind=webhook").await.json();
    assert_eq!(names(&none), Vec::<&str>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_pauses_resumes_and_removes_their_trigger_and_no_other() {
    let host = Host::start().await;
    define(&host, "a-morning", "alice").await;
    define(&host, "b-evening", "bob").await;
    let alice = key(&host, "alice", &[Scope::Read, Scope::Write]).await;
    let post = async |path: &str, headers: &[&str]| {
        host.send_with(&alice, "POST", path, headers, "").await
    };
    let paused = post("/api/triggers/a-morning/pause", &[]).await;
    assert_eq!(paused.json()["state"], "paused", "{}", paused.body);
    assert_eq!(paused.json()["pause"]["user_id"], "alice");
    let resumed = post("/api/triggers/a-morning/resume", &[]).await;
    assert_eq!(resumed.json()["state"], "active", "{}", resumed.body);
    for command in ["pause", "resume", "run"] {
        let path = format!("/api/triggers/b-evening/{command}");
        let hidden = post(&path, &[]).await;
        assert_eq!(hidden.json()["code"], "TRIGGER_NOT_FOUND", "{command}");
    }
    let path = "/api/triggers/a-morning";
    let once = ["idempotency-key: away"];
    for _ in 0..2 {
        let removed = host.send_with(&alice, "DELETE", path, &once, "").await;
        assert_eq!(removed.status, 200, "{}", removed.body);
    }
    assert_eq!(host.get(path).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_that_cannot_be_is_refused_with_its_field() {
    let host = Host::start().await;
    let spec = json!({ "schedule": { "every": "1h" }, "target": { "agent": "a" } });
    for (new, status, field) in [
        (
            json!({ "name": "No Name", "spec": spec }),
            422,
            Some("/name"),
        ),
        (json!({ "spec": spec }), 422, Some("/name")),
        (json!({ "name": "a" }), 422, Some("/spec")),
        (json!({ "name": "wake", "spec": spec }), 422, Some("/name")),
        // This host has no component that could deal with it.
        (
            json!({ "name": "a", "spec": spec }),
            404,
            Some("/spec/component"),
        ),
    ] {
        let refused = host.post_with(TOKEN, "/api/triggers", &new).await;
        assert_eq!(refused.status, status, "{new}: {}", refused.body);
        assert_eq!(refused.json()["field"].as_str(), field, "{}", refused.body);
    }
    let user = key(&host, "alice", &[Scope::Read, Scope::Write]).await;
    let new = json!({ "name": "a", "spec": spec });
    let refused = host.post_with(&user, "/api/triggers", &new).await;
    assert_eq!(refused.json()["code"], "SCOPE_MISSING");
}
