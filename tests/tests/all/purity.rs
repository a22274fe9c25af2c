//! The view of an assistant that only delegates: the prompts that a provider really received, over
//! a conversation with delegations, failures, and a worker that asks a model and calls tools.

use agent_host_tests::process::{Folder, Host, Session, tells};
use agent_host_tests::prompt::{Received, provider};
use domain::speaker::{Speaker, Trust};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Content of a file that the worker reads and says nothing of.
const RAW: &str = "raw-content-of-a-file-7c1e";
/// The name of that file, which only a listing has.
const NAME: &str = "listed-only-9d2f.txt";
/// The worker's reply about both.
const FOUND: &str = "the notes say: buy milk";

/// The tools of the worker: a component's, and the host's own for notes.
const WORKERS: [&str; 5] = [
    "read_file",
    "list_files",
    "memory_search",
    "memory_save",
    "memory_forget",
];

fn said(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// A reply that calls tools.
fn calling(calls: &[(&str, Value)]) -> Value {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let function = json!({ "name": call.0, "arguments": call.1.to_string() });
            json!({ "id": format!("call-{index}"), "type": "function", "function": function })
        })
        .collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn delegating(operation: &str) -> Value {
    let parameters = json!({ "path": "notes.txt" });
    let arguments = json!({ "target": "worker", "operation": operation, "parameters": parameters });
    calling(&[("delegate", arguments)])
}

/// Returns whether a prompt is the assistant's: it has one tool.
fn is_assistants(prompt: &Value) -> bool {
    let tools = prompt["tools"].as_array().into_iter().flatten();
    tools.clone().count() == 1
        && tools
            .clone()
            .all(|tool| tool["function"]["name"] == "delegate")
}

fn texts(message: &Value) -> String {
    message["content"]
        .as_str()
        .map_or_else(|| message["content"].to_string(), str::to_owned)
}

/// Answers as the assistant's model, or as the worker's.
fn answer(prompt: &Value) -> Value {
    let messages = prompt["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    let is_reported = last["role"] == "tool";
    if !is_assistants(prompt) {
        let asked = texts(last);
        return match asked.split_once(' ') {
            _ if is_reported => said(FOUND),
            Some(("call", name)) => calling(&[(name, json!({}))]),
            _ => calling(&[
                ("read_file", json!({ "path": "notes.txt" })),
                ("list_files", json!({ "path": "." })),
            ]),
        };
    }
    if is_reported {
        return said("That is what came of it.");
    }
    let asked = texts(last);
    match asked.split_once(' ') {
        Some(("delegate", operation)) => delegating(operation),
        Some(("call", name)) => calling(&[(name, json!({}))]),
        _ => said("Hello."),
    }
}

/// A host whose model is such a provider. Its worker asks the model too, and has real files.
async fn started() -> (Folder, Host, Received) {
    let received = Received::default();
    let base = provider(&received, |all| all.last().map(answer));
    let (folder, host) = started_at(&base, "one", &json!({})).await;
    (folder, host, received)
}

/// The same with the model of a provider, and the form in which it is shown operations.
async fn started_at(base: &str, operations: &str, model: &Value) -> (Folder, Host) {
    let mut alias = json!({ "provider": "own", "model": "m" });
    let more = model.as_object().unwrap().clone();
    alias.as_object_mut().unwrap().extend(more);
    let folder = Folder::new(json!({
        "agents": [
            {
                "agentId": "assistant", "displayName": "Assistant",
                "toolAllowlist": ["delegate"], "operations": operations,
            },
            {
                "agentId": "worker", "displayName": "Worker", "component": "assistant",
                "toolAllowlist": WORKERS, "agentAllowlist": [],
            },
        ],
        "components": {
            "files": {
                "directories": [{ "path": "files", "at": "/workspace", "access": "read-write" }],
            },
        },
        "providers": {
            "own": { "kind": "openai-compatible", "baseUrl": base },
        },
        "models": { "m": alias },
    }));
    std::fs::write(folder.path().join("files/notes.txt"), RAW).unwrap();
    std::fs::write(folder.path().join("files").join(NAME), "x").unwrap();
    folder.warm(&["assistant", "files"]).await;
    let host = folder.serve().await;
    (folder, host)
}

/// Opens a session with the assistant; its path.
async fn opened(host: &Host) -> Session {
    host.open("assistant").await
}

/// Says something, and waits until the session has nothing to do.
async fn say(host: &Host, session: &str, text: &str) {
    host.say(session, text).await;
    host.rest(session).await;
}

/// The last message that the assistant's model was shown, which is a result of a call.
fn last_result(received: &Received) -> String {
    last_result_where(received, is_assistants)
}

/// The last message of the last such prompt, which is a result of a call.
fn last_result_where(received: &Received, is_wanted: fn(&Value) -> bool) -> String {
    let received = received.lock().unwrap();
    let prompt = received.iter().rev().find(|it| is_wanted(it)).unwrap();
    let last = prompt["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool", "{prompt}");
    texts(last)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_assistants_model_never_sees_what_the_worker_did_to_get_there() {
    let (_folder, host, received) = started().await;
    let session = opened(&host).await;
    for text in [
        "hello",
        "delegate read_file",
        "delegate no_such_operation",
        "call read_file",
        "delegate read_file",
    ] {
        say(&host, &session, text).await;
    }
    let received = received.lock().unwrap();
    let worker: Vec<String> = received
        .iter()
        .filter(|it| !is_assistants(it))
        .map(|it| it["messages"].to_string())
        .collect();
    for raw in [RAW, NAME] {
        assert!(
            worker.iter().any(|it| it.contains(raw)),
            "{raw}: {worker:?}"
        );
    }
    let prompts: Vec<&Value> = received.iter().filter(|it| is_assistants(it)).collect();
    // The worker's reply rests on a file, so that it stands in a marked block.
    let delegate = Speaker::Tool {
        tool: "delegate".to_owned(),
    };
    let found = delegate.block(FOUND, Trust::Untrusted);
    // Five messages, four of them with a call whose result it was shown.
    assert_eq!(prompts.len(), 9, "{prompts:#?}");
    for prompt in &prompts {
        let text = prompt["messages"].to_string();
        for raw in [RAW, NAME] {
            assert!(!text.contains(raw), "{raw}: {text}");
        }
        for message in prompt["messages"].as_array().unwrap() {
            let role = message["role"].as_str().unwrap();
            assert!(
                ["system", "user", "assistant", "tool"].contains(&role),
                "{message}"
            );
            // The only calls are its own, and every result is paired with one of them.
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let name = call["function"]["name"].as_str().unwrap();
                assert!(["delegate", "read_file"].contains(&name), "{message}");
            }
            if role == "tool" {
                let reported = texts(message);
                assert!(
                    reported == found
                        || reported.starts_with("Error (INVALID_OPERATION)")
                        || reported.starts_with("Error (INVALID_PARAMETERS)"),
                    "{message}"
                );
            }
        }
    }
    let last = prompts.last().unwrap()["messages"].to_string();
    assert!(
        last.contains(FOUND) && last.contains("INVALID_OPERATION"),
        "{last}"
    );
}

/// The names of the tools that the worker's model was last offered.
fn tools_of_worker(received: &Received) -> BTreeSet<String> {
    let received = received.lock().unwrap();
    let prompt = received.iter().rev().find(|it| !is_assistants(it)).unwrap();
    let tools = prompt["tools"].as_array().into_iter().flatten();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_that_only_delegates_is_told_that_no_other_tool_exists() {
    let (_folder, host, received) = started().await;
    let session = opened(&host).await;
    say(&host, &session, "delegate read_file").await;
    let offered = tools_of_worker(&received);
    assert_eq!(offered, BTreeSet::from(WORKERS.map(str::to_owned)));
    // Whoever looks at the prompt is shown the tool too, and what it costs.
    let (agent, id) = session.split_once("/sessions/").unwrap();
    let path = format!("{agent}/prompt?session={id}");
    let shown = host.get(&path).await.body;
    let tools = shown["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["delegate"], "{shown}");
    let parts = shown["parts"].as_array().unwrap().iter();
    let costs = parts.chain(tools).map(|it| it["tokens"].as_u64().unwrap());
    assert_eq!(shown["tokens"], costs.sum::<u64>(), "{shown}");
    assert!(tools[0]["tokens"].as_u64().unwrap() > 0, "{shown}");
    // The names of operations are calls of `delegate`, whoever has such a tool.
    let operations = ["read_file", "list_files", "write_file"];
    for name in operations {
        say(&host, &session, &format!("call {name}")).await;
        let reported = last_result(&received);
        assert!(
            reported.starts_with("Error (INVALID_PARAMETERS)"),
            "{reported}"
        );
        let call = format!("This would do: {name} {{\"path\":\"<path>\"");
        tells(&reported, &[&call]);
    }
    let others = [
        // Tools of the host.
        "agents_message",
        "dispatch_to_agent",
        "reply_to_caller",
        // Names that the host keeps for tools of its own: no component may offer one.
        "system_status",
        "system_delegate",
        // There are no such tools.
        "no_such_tool",
        "delegate2",
        "Delegate",
    ];
    // Those of the worker are there: it was offered them.
    let of_worker = WORKERS
        .into_iter()
        .filter(|name| !operations.contains(name));
    for name in of_worker.chain(others) {
        say(&host, &session, &format!("call {name}")).await;
        let reported = last_result(&received);
        assert!(
            reported.contains(&format!("TOOL_NOT_AVAILABLE): there is no tool `{name}`")),
            "{name}: {reported}"
        );
        assert!(
            reported.ends_with("available are: delegate"),
            "{name}: {reported}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_outside_an_agents_list_is_told_to_its_model_as_one_that_is_not_there() {
    let (_folder, host, received) = started().await;
    let session = host.open("worker").await;
    let mut reported = Vec::new();
    // A tool of a component that is there, one of the host's own, and none at all.
    for name in ["write_file", "delegate", "no_such_tool"] {
        say(&host, &session, &format!("call {name}")).await;
        let result = last_result_where(&received, |it| !is_assistants(it));
        assert!(
            result.contains("TOOL_NOT_AVAILABLE")
                && result.contains(&format!("there is no tool `{name}`; available are: ")),
            "{name}: {result}"
        );
        for known in WORKERS {
            assert!(result.contains(known), "{name}: {result}");
        }
        reported.push(result.replace(name, "it"));
    }
    assert_eq!(reported[0], reported[2]);
    // The rule is on record all the same.
    let audit = host.get("/api/audit?limit=1000").await.body;
    let rule_of = |name: &str| {
        let mut lines = audit["lines"].as_array().unwrap().iter();
        let line = lines.find(|line| line["detail"] == name);
        line.unwrap_or_else(|| panic!("{name}: {audit}"))["rule"].clone()
    };
    assert_eq!(rule_of("write_file"), "toolAllowlist");
    assert_eq!(rule_of("no_such_tool"), "unknown");
}

/// Returns whether a prompt is shown operations as tools.
fn is_by_operation(prompt: &Value) -> bool {
    let mut tools = prompt["tools"].as_array().into_iter().flatten();
    tools.any(|tool| tool["function"]["name"] == "delete_file")
}

/// An alias says that its model is shown operations as tools. A call of one is a task of the
/// worker's, and the record has a call of `delegate`.
#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_shown_as_a_tool_is_delegated_all_the_same() {
    let received = Received::default();
    let base = provider(&received, |all| {
        let prompt = all.last()?;
        let last = prompt["messages"].as_array()?.last()?;
        Some(match (is_by_operation(prompt), last["role"] == "tool") {
            (true, true) => said("That is what came of it."),
            (true, false) => calling(&[("read_file", json!({ "path": "notes.txt" }))]),
            (false, _) => said(FOUND),
        })
    });
    let suits = json!({ "operations": "byOperation" });
    let (_folder, host) = started_at(&base, "auto", &suits).await;
    let session = opened(&host).await;
    say(&host, &session, "What do the notes say?").await;
    assert_eq!(last_result_where(&received, is_by_operation), FOUND);
    let prompt = received.lock().unwrap()[0].clone();
    let tools = prompt["tools"].as_array().unwrap();
    let read = tools
        .iter()
        .find(|it| it["function"]["name"] == "read_file")
        .unwrap();
    let schema = &read["function"]["parameters"];
    assert_eq!(schema["required"], json!(["path"]), "{schema}");
    assert!(
        tools.iter().all(|it| it["function"]["name"] != "delegate"),
        "{prompt}"
    );
    let shown = host.get(&session).await.body;
    let messages = shown["messages"].as_array().unwrap();
    let mut results = messages
        .iter()
        .filter(|message| message["answers"].is_object());
    let result = results.next().unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(result["answers"]["name"], "delegate", "{shown}");
    let tasks = host.get("/api/tasks").await.body;
    assert!(
        tasks.to_string().contains(r#""operation":"read_file""#),
        "{tasks}"
    );
}
