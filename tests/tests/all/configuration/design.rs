//! The design's example configuration as it is written: the prompts that a provider receives, and
//! the calls that are refused.

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Host};
use agent_host_tests::prompt::prompt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// The prompts that the provider has received.
type Received = Arc<Mutex<Vec<Value>>>;

fn said(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// Answers as a model that makes the call that it is told to make.
fn answer(prompt: &Value) -> Value {
    let last = prompt["messages"].as_array().unwrap().last().unwrap();
    let words = last["content"].as_str().unwrap_or_default();
    match words.strip_prefix("call ") {
        Some(call) if last["role"] == "user" => {
            let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
            json!({
                "role": "assistant", "content": null,
                "tool_calls": [{
                    "id": "c", "type": "function",
                    "function": { "name": name, "arguments": arguments },
                }],
            })
        }
        _ => said(&format!("I heard: {words}")),
    }
}

async fn serve(mut stream: TcpStream, received: Received) -> std::io::Result<()> {
    let Some(prompt) = prompt(&mut stream).await? else {
        return Ok(());
    };
    let message = answer(&prompt);
    received.lock().unwrap().push(prompt);
    let finish = if message["tool_calls"].is_array() {
        "tool_calls"
    } else {
        "stop"
    };
    let body = json!({
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }], "model": "m",
    });
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.to_string().as_bytes()).await?;
    stream.shutdown().await
}

/// The example's configuration with such a provider.
#[expect(
    clippy::disallowed_methods,
    reason = "the tasks end with the test's runtime"
)]
async fn configured(received: &Received) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shared = received.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, shared.clone()));
        }
    });
    let example = std::fs::read(root().join("examples/reading-list/agent-host.json")).unwrap();
    let mut config: Value = serde_json::from_slice(&example).unwrap();
    config.as_object_mut().unwrap().remove("server");
    let base = format!("http://{address}/v1");
    config["providers"] = json!({ "own": { "kind": "openai-compatible", "baseUrl": base } });
    config["models"] = json!({ "m": { "provider": "own", "model": "m" } });
    config
}

/// Says something to an agent in a session of its own, and returns the reply.
async fn say(host: &Host, agent: &str, words: &str) -> String {
    let path = format!("/api/agents/{agent}/sessions");
    let opened = host.post(&path, &json!({ "session_type": "chat" })).await;
    let opened = opened.unwrap();
    assert_eq!(opened.status, 201, "{opened:?}");
    let path = format!(
        "/api/agents/{}/sessions/{}/messages?wait_s=30",
        opened.text("agent_id"),
        opened.text("id")
    );
    let said = host.post(&path, &json!({ "content": words })).await;
    let said = said.unwrap();
    let reply = said.body.pointer("/reply/text").and_then(Value::as_str);
    reply.unwrap_or_else(|| panic!("{said:?}")).to_owned()
}

/// The names of the tools in a prompt.
fn tools(prompt: &Value) -> BTreeSet<&str> {
    let offered = prompt["tools"].as_array().into_iter().flatten();
    offered
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

/// Returns whether a prompt begins with the agent's own words.
fn is_of(prompt: &Value, agent: &Value) -> bool {
    let own = agent["systemPrompt"].as_str().unwrap();
    let system = &prompt["messages"][0];
    system["role"] == "system" && system["content"].to_string().contains(own)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_designs_example_says_what_a_provider_receives_and_what_is_refused() {
    let received = Received::default();
    let config = configured(&received).await;
    let agents = config["agents"].as_array().unwrap().clone();
    let folder = Folder::new(config);
    folder.warm(&["assistant", "web", "lists"]).await;
    let host = folder.start(None).await.unwrap();

    // agentId, uiVisible.
    let listed = host.get("/api/definitions").await.unwrap().body;
    for agent in &agents {
        let is = |listed: &Value| {
            listed["definition"] == agent["agentId"] && listed["ui_visible"] == agent["uiVisible"]
        };
        let mut all = listed["definitions"].as_array().unwrap().iter();
        assert!(all.any(is), "{agent}: {listed}");
    }

    // systemPrompt, and the tools that the lists leave of all.
    for agent in &agents {
        say(&host, agent["agentId"].as_str().unwrap(), "hello").await;
        let prompt = received.lock().unwrap().last().unwrap().clone();
        assert!(is_of(&prompt, agent), "{agent}: {prompt}");
        let tools = tools(&prompt);
        match agent["agentId"].as_str().unwrap() {
            "reading-list" => assert_eq!(
                tools,
                BTreeSet::from([
                    "reading_list_get",
                    "reading_list_list",
                    "reading_list_search"
                ])
            ),
            "todo" => assert!(
                tools.contains("todo_add") && tools.iter().all(|tool| tool.starts_with("todo_")),
                "{tools:?}"
            ),
            "journal" => assert!(tools.is_empty(), "{tools:?}"),
            _ => assert!(
                ["agents_message", "reading_list_delete", "todo_add"]
                    .iter()
                    .all(|tool| tools.contains(tool)),
                "{tools:?}"
            ),
        }
    }

    // displayName.
    let made = host.get("/api/agents").await.unwrap().body.to_string();
    for agent in &agents {
        let name = agent["displayName"].to_string();
        assert!(made.contains(&name), "{name}: {made}");
    }

    // toolAllowlist, toolDenylist, capabilityDenylist: what a model calls all the same.
    let refused = [
        ("reading-list", "reading_list_delete", "toolDenylist"),
        ("reading-list", "reading_list_add", "capabilityDenylist"),
        ("reading-list", "todo_add", "toolAllowlist"),
        ("reading-list", "agents_message", "toolAllowlist"),
        ("todo", "reading_list_list", "toolAllowlist"),
        ("journal", "todo_list", "toolAllowlist"),
    ];
    for (agent, tool, _) in refused {
        say(&host, agent, &format!("call {tool} {{\"title\":\"x\"}}")).await;
    }
    let audit = host.get("/api/audit?verdict=refused&limit=1000").await;
    let audit = audit.unwrap().body;
    let lines = audit["lines"].as_array().unwrap();
    for (agent, tool, rule) in refused {
        let is = |line: &Value| line["tool"] == tool && line["rule"] == rule;
        assert!(lines.iter().any(is), "{agent} {tool} {rule}: {audit}");
    }
    let told = say(&host, "reading-list", "call reading_list_list {}").await;
    assert!(told.contains("entries"), "{told}");
    assert!(!told.contains("\"x\""), "nothing was added: {told}");

    // Agents that may be asked by one without lists, by its own tool.
    let call = r#"call agents_message {"agentId":"todo","content":"good day"}"#;
    let told = say(&host, "general", call).await;
    assert!(told.contains("I heard: good day"), "{told}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_allowlist_of_the_design_leaves_these_agents_and_no_other() {
    let received = Received::default();
    let mut config = configured(&received).await;
    // The design's tool lists hide the tool by which agents are reached.
    config["agents"][0]["toolAllowlist"] = json!(null);
    let folder = Folder::new(config);
    folder.warm(&["assistant", "web", "lists"]).await;
    let host = folder.start(None).await.unwrap();
    for (agent, is_allowed) in [("todo", true), ("journal", true), ("general", false)] {
        let call = format!(
            "call agents_message {}",
            json!({ "agentId": agent, "content": "good day" })
        );
        let told = say(&host, "reading-list", &call).await;
        assert_eq!(
            told.contains("I heard: good day"),
            is_allowed,
            "{agent}: {told}"
        );
    }
    let audit = host.get("/api/audit?verdict=refused&limit=1000").await;
    let audit = audit.unwrap().body;
    let lines = audit["lines"].as_array().unwrap();
    assert!(
        lines.iter().any(|line| line["rule"] == "agentAllowlist"),
        "{audit}"
    );
    assert!(host.stop().await.success());
}
