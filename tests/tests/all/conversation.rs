//! Conversations with the built-in agents, over real files.

use agent_host_tests::process::{Folder, puppet, puppets, shows};
use agent_host_tests::{Setup, World};
use domain::user::UserId;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn the_assistant_delegates_to_the_worker_whose_tools_read_real_files() {
    let world = World::new(Setup::default()).await;
    std::fs::write(world.dir.path().join("files/notes.txt"), "milk and bread").unwrap();
    let session = world.open("assistant").await;
    let reply = world.turn("assistant", session, "read notes.txt").await;
    assert!(
        reply.starts_with("It says: {") && reply.contains("milk and bread"),
        "{reply}"
    );
    let row = world.row(session).await;
    let assistant = world.store().agent(row.agent).await.unwrap().unwrap();
    let path = format!("{}/sub/0", assistant.agent.path);
    let worker = world.store().agent_at(&path).await.unwrap();
    assert!(worker.is_some(), "the worker stays readable after its task");
    // Its session is known as one that this one began, and what it did can be followed with it.
    let user = UserId::local();
    let clearance = world.store().clearance(&user, None).await.unwrap();
    let spawned = world.store().spawned(session, &clearance).await.unwrap();
    assert_eq!(
        spawned
            .iter()
            .map(|below| (below.by, below.depth, below.path.as_str()))
            .collect::<Vec<_>>(),
        [(session, 1, path.as_str())]
    );
    let events = world
        .store()
        .events_with_spawned(0, session, &clearance, 1_000)
        .await
        .unwrap();
    let steps = events
        .iter()
        .filter(|recorded| recorded.subject.session == Some(spawned[0].id))
        .filter_map(|recorded| recorded.event.as_ref()?.step());
    assert_eq!(steps.count(), 2, "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assistant_has_no_tool_but_delegate() {
    let world = World::new(Setup::default()).await;
    world.create("assistant").await;
    let view = world.agent("assistant").await;
    assert_eq!(view.tools, ["delegate"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tutor_session_asks_suspends_and_goes_on_after_a_restart() {
    let world = World::new(Setup::default()).await;
    let session = world.open_as("tutor", Some("learning")).await;
    let (call, action) = world.question("tutor", session).await;
    assert_eq!(action.widget, "multiple_choice");
    let world = world.restart(|_| ()).await;
    let (again, _) = world.question("tutor", session).await;
    assert_eq!(again, call, "the same question under the same id");
    let mut next = Some(call);
    while let Some(call) = next {
        world
            .answer("tutor", call, json!({ "index": 0 }))
            .await
            .unwrap();
        next = loop {
            let view = world.view("tutor", session).await;
            match view.asking.first().map(|asking| asking.tool_call_id) {
                Some(other) if other != call => break Some(other),
                _ if view.row.status == store::SessionStatus::Completed => break None,
                _ => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        };
    }
    let agent = world.agent("tutor").await.row.agent;
    assert_eq!(
        (agent.active_session, agent.successful_completions),
        (None, 1)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_accepted_once_however_often_it_is_sent_under_one_key() {
    let agent = puppet();
    let (_folder, host) = Folder::serving(puppets(&json!([agent])), &["puppet"]).await;
    let chat = json!({ "session_type": "chat" });
    let opened = host.post("/api/agents/puppet/sessions", &chat).await;
    let agent = opened.text("agent_id");
    let session = opened.text("session_id");
    let path = format!("/api/agents/{agent}/sessions/{session}/messages");
    let post = |key: &str, content: Value| {
        let body = json!({ "content": content });
        let request = host.request(Method::POST, &path);
        let request = request.header("Idempotency-Key", key).json(&body);
        host.send(request)
    };
    let first = post("k1", json!("hello")).gives(202).await;
    let receipt = first.body;
    shows(
        &receipt,
        &json!({ "replayed": false, "session_id": session }),
    );
    let position = receipt["position"].as_u64().unwrap();
    assert_eq!(
        receipt["stream_url"],
        format!("/api/agents/{agent}/stream?session={session}&after={position}")
    );
    let again = post("k1", json!("hello")).await.body;
    shows(
        &again,
        &json!({ "input_id": receipt["input_id"], "replayed": true }),
    );
    post("k1", json!("something else")).gives(409).await;
    let events = format!("/api/events?session={session}&after={}", position - 1);
    let events = host.get(&events).await.body;
    assert_eq!(events["events"][0]["type"], "session.input.accepted.v1");
    assert_eq!(events["events"][0]["data"]["message"]["text"], "hello");
    let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
    post("k2", parts).gives(202).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_turn_builds_on_the_first() {
    let world = World::new(Setup::default()).await;
    let session = world.open("assistant").await;
    for _ in 0..3 {
        world.turn("assistant", session, "hello").await;
    }
    let row = world.row(session).await;
    assert_eq!((row.revision, row.head_message), (3, 6));
    assert_eq!(
        world
            .store()
            .turn(row.head.unwrap())
            .await
            .unwrap()
            .unwrap()
            .depth,
        3
    );
    let verification = world.store().verify().await.unwrap();
    assert!(verification.fault.is_none(), "{verification:?}");
}
