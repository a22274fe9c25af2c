//! Temperature, limit, stop sequences and effort, from the configuration to the provider's request.

use super::{Peer, folder};
use agent_host_tests::process::tells;
use serde_json::{Value, json};

/// Agents of the peer in both dialects, with settings of their own.
fn agents(peer: &Peer) -> Value {
    let generation =
        json!({ "temperature": 0.5, "maxTokens": 300, "stop": ["END"], "reasoningEffort": "low" });
    let agent = |id: &str, model: &str| {
        json!({
            "agentId": id, "displayName": id, "toolAllowlist": [], "model": model,
            "generation": generation, "modelAllowlist": ["*"],
        })
    };
    json!({
        "agents": [agent("set", "main"), agent("claude", "claude")],
        "providers": {
            "anthropic": { "kind": "anthropic", "baseUrl": peer.base(), "apiKeyFile": "key" },
        },
        "models": { "claude": { "provider": "anthropic", "model": "c-1" } },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_have_the_settings_of_definition_and_session_in_their_dialect() {
    let peer = Peer::start();
    let folder = folder(&peer, agents(&peer)).await;
    let host = folder.serve().await;
    let of_session = json!({ "config": { "generation": {
        "temperature": 0.0, "max_tokens": 1_000, "stop": [],
    } } });
    for (agent, opening) in [
        ("plain", json!({})),
        ("set", json!({})),
        ("claude", json!({})),
        ("set", of_session),
    ] {
        let session = host.open_with(agent, &opening).await;
        host.turn(&session, "hello").gives(200).await;
    }
    let [plain, set, claude, session] = peer.bodies().try_into().unwrap();
    for field in ["temperature", "stop", "reasoning_effort"] {
        assert_eq!(plain.get(field), None, "{plain}");
    }
    assert_eq!(set["temperature"], 0.5, "{set}");
    assert_eq!(set["max_tokens"], 300, "{set}");
    assert_eq!(set["stop"], json!(["END"]), "{set}");
    assert_eq!(set["reasoning_effort"], "low", "{set}");
    assert_eq!(claude["temperature"], 0.5, "{claude}");
    assert_eq!(claude["max_tokens"], 300, "{claude}");
    assert_eq!(claude["stop_sequences"], json!(["END"]), "{claude}");
    assert_eq!(claude["output_config"]["effort"], "low", "{claude}");
    assert_eq!(session["temperature"], 0.0, "{session}");
    assert_eq!(
        session["max_tokens"], 300,
        "a limit is only narrowed: {session}"
    );
    assert_eq!(session.get("stop"), None, "{session}");
    assert_eq!(session["reasoning_effort"], "low", "{session}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_setting_that_the_provider_does_not_take_is_refused_with_its_field() {
    let peer = Peer::start();
    let folder = folder(&peer, agents(&peer)).await;
    let host = folder.serve().await;
    for (agent, generation, field) in [
        (
            "claude",
            json!({ "temperature": 1.5 }),
            "/config/generation/temperature",
        ),
        (
            "claude",
            json!({ "reasoning_effort": "minimal" }),
            "/config/generation/reasoning_effort",
        ),
        (
            "set",
            json!({ "stop": ["1", "2", "3", "4", "5"] }),
            "/config/generation/stop",
        ),
        (
            "set",
            json!({ "max_tokens": 0 }),
            "/config/generation/max_tokens",
        ),
        ("set", json!({ "temprature": 1 }), "/config/generation"),
    ] {
        let body = json!({ "config": { "generation": generation } });
        let refused = host
            .post(&format!("/api/agents/{agent}/sessions"), &body)
            .gives(422)
            .await;
        assert_eq!(refused.text("field"), field, "{refused:?}");
    }
    // A message may name another model: then it is known only when the request is made.
    let hot = json!({ "config": { "generation": { "temperature": 1.5 } } });
    let session = host.open_with("set", &hot).await;
    let message = json!({ "content": "hello", "model": "claude" });
    host.post(&format!("{session}/messages?wait_s=30"), &message)
        .gives(200)
        .await;
    let id = session.rsplit('/').next().unwrap();
    let events = host.get(&format!("/api/events?limit=1000&session={id}"));
    let events = events.await.body.to_string();
    tells(&events, &["`temperature` is not for provider `anthropic`"]);
    assert_eq!(peer.bodies(), Vec::<Value>::new());
    drop(host);
    let mut wrong = agents(&peer);
    wrong["agents"][1]["generation"]["temperature"] = json!(1.5);
    let folder = super::folder(&peer, wrong).await;
    let checked = folder.run(&["config", "check"]).await;
    assert_eq!(checked.status.code(), Some(2), "{checked:?}");
    let reported = String::from_utf8_lossy(&checked.stderr).into_owned();
    tells(
        &reported,
        &["agents[2].generation.temperature", "it takes 0 to 1"],
    );
}

/// An agent of the default model whose settings the model `claude` does not take.
fn hot(id: &str) -> Value {
    json!({
        "agentId": id, "displayName": id, "toolAllowlist": [],
        "generation": { "temperature": 1.5 }, "modelAllowlist": ["*"],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definitions_settings_are_checked_against_the_model_of_its_role() {
    let peer = Peer::start();
    for (role, unfit) in [
        ("user", Some(1)),
        ("subagent", Some(2)),
        ("code", Some(2)),
        ("memory", Some(3)),
        ("memorySearch", None),
        ("research", None),
    ] {
        let mut config = agents(&peer);
        let mut read = hot("read");
        read["memory"] = json!({ "agent": "reader" });
        config["agents"] = json!([read, hot("coder"), hot("reader")]);
        config["roles"] = json!({ role: "claude" });
        let folder = folder(&peer, config).await;
        let checked = folder.run(&["config", "check"]).await;
        let reported = String::from_utf8_lossy(&checked.stderr).into_owned();
        let code = if unfit.is_some() { 2 } else { 0 };
        assert_eq!(checked.status.code(), Some(code), "{role}: {reported}");
        if let Some(index) = unfit {
            let field = format!("agents[{index}].generation.temperature: ");
            assert!(reported.contains(&field), "{role}: {reported}");
            assert!(
                reported.contains("model of their role"),
                "{role}: {reported}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_no_model_that_does_not_take_its_agents_settings() {
    let peer = Peer::start();
    let mut config = agents(&peer);
    config["agents"] = json!([hot("set")]);
    let folder = folder(&peer, config).await;
    let host = folder.serve().await;
    let with = |generation: Value| json!({ "generation": generation });
    let sessions = "/api/agents/set/sessions";
    for (body, field) in [
        (json!({ "model": "claude" }), "/model"),
        (
            json!({ "model": "claude", "config": with(json!({ "max_tokens": 9 })) }),
            "/model",
        ),
        (
            json!({ "model": "claude", "config": with(json!({ "temperature": 1.2 })) }),
            "/config/generation/temperature",
        ),
        (json!({ "config": with(json!([])) }), "/config/generation"),
    ] {
        let refused = host.post(sessions, &body).await;
        assert_eq!(refused.status, 422, "{body}: {refused:?}");
        assert_eq!(refused.text("field"), field, "{body}: {refused:?}");
    }
    let cool = json!({ "model": "claude", "config": with(json!({ "temperature": 1.0 })) });
    host.open_with("set", &cool).await;
    let session = host.open("set").await;
    let fork = host.post(&format!("{session}/fork"), &json!({ "model": "claude" }));
    let refused = fork.await;
    refused.has(422, &json!({ "field": "/model" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_of_a_session_are_for_the_model_of_its_agents_role() {
    let peer = Peer::start();
    let mut config = agents(&peer);
    config["roles"] = json!({ "user": "claude" });
    let folder = folder(&peer, config).await;
    let host = folder.serve().await;
    let mut body = json!({ "config": { "generation": { "temperature": 1.5 } } });
    let refused = host.post("/api/agents/set/sessions", &body).await;
    refused.has(422, &json!({ "field": "/config/generation/temperature" }));
    body["model"] = json!("main");
    host.open_with("set", &body).await;
}
