//! What an operator is shown: warnings about the configuration, names that exist, agents that are hidden, and what sessions wait for.

use agent_host_tests::guests::root;
use agent_host_tests::process::{Folder, Host, PATIENCE, program};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::sleep;

fn config(agents: &Value) -> Value {
    let puppet = root().join("tests/programs/target/wasm32-wasip2/release/puppet.wasm");
    json!({
        "agents": agents,
        "components": { "puppet": { "path": puppet, "models": ["*"], "agents": ["*"] }, "files": {} },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    })
}

fn agent(id: &str, more: &Value) -> Value {
    let mut agent = json!({ "agentId": id, "displayName": id, "component": "puppet" });
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_that_matches_nothing_is_told_by_the_check_and_at_the_start() {
    let agents = json!([agent("a", &json!({ "toolAllowlist": ["read_file"] })), agent("b", &json!({ "toolDenylist": ["read_fiel"] }))]);
    let folder = Folder::new(config(&agents));
    folder.warm(&["puppet", "files"]).await;
    let (key, message) = ("agents[1].toolDenylist[0]", "`read_fiel` matches no tool; the nearest is `read_file`");
    let told = format!("warning: {key}: {message}\n");
    let checked = folder.run(&["config", "check", "--json"]).await;
    assert!(err(&checked).contains(&told), "{checked:?}");
    let findings = document(&checked)["findings"].clone();
    assert!(findings.as_array().unwrap().contains(&json!({ "severity": "warning", "key": key, "message": message })), "{findings}");
    let host = folder.start(None).await.unwrap();
    assert!(host.stop().await.success(), "{}", folder.log());
    assert_eq!(folder.log().matches(&told).count(), 1, "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_not_there_is_told_with_those_that_are_each_once() {
    let folder = Folder::new(config(&json!([])));
    let inspected = folder.run(&["component", "inspect", "nope"]).await;
    assert_eq!(inspected.status.code(), Some(2));
    assert!(
        err(&inspected).contains("there is no component `nope`; known are assistant, files, lists, puppet, tutor, web, worker\n"),
        "{inspected:?}"
    );
}

/// Begins a session; its agent.
async fn open(host: &Host, definition: &str) -> String {
    let answer = host.post(&format!("/api/agents/{definition}/sessions"), &json!({})).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.text("agent_id")
}

fn ids(list: &Value, name: &str) -> BTreeSet<String> {
    list["agents"].as_array().or(list["sessions"].as_array()).unwrap().iter().map(|it| it[name].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_agent_is_left_out_of_lists_unless_all_are_asked_for() {
    let folder = Folder::new(config(&json!([agent("shown", &json!({})), agent("hidden", &json!({ "uiVisible": false }))])));
    folder.warm(&["puppet", "files"]).await;
    let host = folder.start(None).await.unwrap();
    let (mut shown, mut hidden) = (BTreeSet::from([open(&host, "shown").await]), BTreeSet::from([open(&host, "hidden").await]));
    for (definition, agents) in [("shown", &mut shown), ("hidden", &mut hidden)] {
        for number in 0..4 {
            let new = json!({ "definition": definition, "path": format!("/local/agent/{definition}-{number}") });
            agents.insert(host.post("/api/agents", &new).await.unwrap().text("id"));
        }
    }
    let all: BTreeSet<String> = shown.union(&hidden).cloned().collect();
    assert_eq!(ids(&host.get("/api/agents").await.unwrap().body, "id"), shown);
    assert_eq!(ids(&host.get("/api/agents?all=true").await.unwrap().body, "id"), all);
    // A page is filled whatever is hidden in between.
    let mut pages = Vec::new();
    let mut after = String::new();
    loop {
        let page = host.get(&format!("/api/agents?limit=2{after}")).await.unwrap().body;
        pages.push(page["agents"].as_array().unwrap().len());
        let Some(next) = page["next_after"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(pages.iter().sum::<usize>(), 5, "{pages:?}");
    assert!(pages.iter().take(2).all(|page| *page == 2), "{pages:?}");
    // Whoever names it finds it.
    for id in &hidden {
        assert_eq!(host.get(&format!("/api/agents/{id}")).await.unwrap().status, 200);
    }
    let listed = document(&folder.run(&["session", "list", "--json"]).await);
    assert!(ids(&listed, "agent_id").is_subset(&shown) && ids(&listed, "agent_id").len() == 1, "{listed}");
    let listed = document(&folder.run(&["session", "list", "--all", "--json"]).await);
    assert_eq!(ids(&listed, "agent_id").len(), 2, "{listed}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_for_its_client_says_so() {
    let folder = Folder::new(config(&json!([agent("puppet", &json!({}))])));
    folder.warm(&["puppet", "files"]).await;
    let host = folder.start(None).await.unwrap();
    let begun = host.post("/api/agents/puppet/sessions", &json!({})).await.unwrap();
    let session = format!("/api/agents/{}/sessions/{}", begun.text("agent_id"), begun.text("id"));
    assert_eq!(begun.body["run_status"], Value::Null);
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "client": "free_text" }] }] });
    host.post(&format!("{session}/messages"), &json!({ "content": asks.to_string() })).await.unwrap();
    let waiting = async {
        loop {
            let seen = host.get(&session).await.unwrap().body;
            let asked = !seen["client_actions"].as_array().unwrap().is_empty();
            assert!(asked || seen["run_status"] != "awaiting_client", "{seen}");
            if asked {
                break seen;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let seen = tokio::time::timeout(PATIENCE, waiting).await.expect("a question in time");
    assert_eq!((&seen["status"], &seen["run_status"]), (&json!("open"), &json!("awaiting_client")));
    for command in [&["session", "show", &begun.text("id")][..], &["session", "list"]] {
        let shown = folder.run(command).await;
        let first = String::from_utf8_lossy(&shown.stdout).lines().next().unwrap_or_default().to_owned();
        assert_eq!(first.split_whitespace().nth(2), Some("awaiting_client"), "{shown:?}");
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Pipes something into a command, which ends with its input.
async fn piped(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove("RUST_LOG").kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).await.unwrap();
    tokio::time::timeout(PATIENCE, child.wait_with_output()).await.expect("an end in time").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_tells_input_that_is_no_text_and_how_to_go_on_as_one_can_type_it() {
    let folder = Folder::new(config(&json!([agent("a", &json!({}))])));
    folder.warm(&["puppet", "files"]).await;
    let host = folder.start(None).await.unwrap();
    let chat = || {
        let mut chat = Command::new(program());
        chat.args(["chat", "--config"]).arg(folder.path().join("agent-host.json"));
        chat
    };
    let failed = piped(&mut chat(), b"\n\xff\xfe\n").await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(err(&failed).contains("error: line 2 of the input is not UTF-8\n"), "{failed:?}");
    let ended = piped(&mut chat(), b"").await;
    let told = err(&ended).lines().find_map(|line| line.strip_prefix("go on with: ").map(str::to_owned)).expect("how to go on");
    let goes_on = piped(Command::new("sh").args(["-c", &told]), b"").await;
    assert!(goes_on.status.success() && err(&goes_on).contains(&told), "{told}: {goes_on:?}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_the_host_of_its_data_folder_wherever_that_listens() {
    let folder = Folder::new(config(&json!([agent("a", &json!({}))])));
    folder.warm(&["puppet", "files"]).await;
    let host = folder.start(None).await.unwrap();
    let list = || {
        let mut list = Command::new(program());
        // As if the host had been started with `--listen`: nobody is where the configuration says.
        list.args(["session", "list", "--config"])
            .arg(folder.path().join("agent-host.json"))
            .env("AGENT_HOST__SERVER__LISTEN", "127.0.0.1:9");
        list
    };
    let found = piped(&mut list(), b"").await;
    assert!(found.status.success(), "{found:?}");
    assert!(host.stop().await.success(), "{}", folder.log());
    let missed = piped(&mut list(), b"").await;
    assert_eq!(missed.status.code(), Some(4), "{missed:?}");
    assert!(err(&missed).contains("no host is running at http://127.0.0.1:9\n"), "{missed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_the_events_can_be_made_again_while_no_host_runs() {
    let folder = Folder::new(config(&json!([agent("a", &json!({}))])));
    folder.warm(&["puppet", "files"]).await;
    let host = folder.start(None).await.unwrap();
    open(&host, "a").await;
    let rebuild = ["verify", "--rebuild"];
    let refused = folder.run(&rebuild).await;
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    assert!(host.stop().await.success(), "{}", folder.log());
    rusqlite::Connection::open(folder.data().join("store.db")).unwrap().execute("DELETE FROM sessions", []).unwrap();
    let found = folder.run(&["verify"]).await;
    assert_eq!(found.status.code(), Some(1), "{found:?}");
    assert!(err(&found).contains("the table `sessions` is not what the events say"), "{found:?}");
    for command in [rebuild.as_slice(), &["verify"]] {
        let made = folder.run(command).await;
        assert!(made.status.success(), "{made:?}");
    }
}
