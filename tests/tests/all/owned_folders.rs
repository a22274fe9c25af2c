//! Folders of which each user has one of its own, on the whole host: two users of one agent never
//! see each other's files, also over a crash; the ledger names the folder. A purge removes those of
//! a session or an agent.

use agent_host_tests::guests::test_program;
use agent_host_tests::process::{Folder, Host, Line, puppet};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A host whose puppets have a burglar in folders of users, of sessions and of agents.
async fn house() -> (Folder, Host) {
    let folder = Folder::new(json!({
        "agents": [
            puppet(),
            { "agentId": "other", "displayName": "Other", "component": "puppet" },
        ],
        "components": {
            "puppet": { "path": test_program("puppet"), "agents": ["*"] },
            "burglar": { "path": test_program("burglar"), "directories": [
                { "path": "files/{user}", "at": "/mine", "access": "read-write" },
                { "path": "scratch/{user}/{session}", "at": "/tmp", "access": "read-write", "filesMax": 5 },
                { "path": "work/{agent}", "at": "/work", "access": "read-write" },
            ] },
        },
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    }));
    for base in ["scratch", "work"] {
        std::fs::create_dir(folder.path().join(base)).unwrap();
    }
    folder.warm(&["puppet", "burglar"]).await;
    let host = folder.serve().await;
    (folder, host)
}

/// The path of a new session of an agent of this user's own.
async fn session(line: &Line) -> String {
    let new = json!({ "session_type": "chat" });
    let at = "/api/agents/puppet/sessions";
    let opened = line.post(at, &new).gives(201).await;
    let agent = opened.text("agent_id");
    let id = opened.text("session_id");
    format!("/api/agents/{agent}/sessions/{id}")
}

/// A call of the tool that does these operations.
fn burgles(ops: &Value) -> Value {
    json!({ "key": "t", "tool": "burgle", "args": { "ops": ops } })
}

/// A turn that makes one call and replies with what came of it.
fn script(call: &Value) -> String {
    json!({ "steps": [{ "start": [call] }] }).to_string()
}

/// Has a turn of the line's user make one call. Returns what the turn replied.
async fn turn(line: &Line, session: &str, call: Value) -> String {
    let path = format!("{session}/messages?wait_s=30");
    let said = json!({ "content": script(&call) });
    let answer = line.post(&path, &said).await;
    let text = answer.body["reply"]["text"].as_str();
    text.unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

/// Has the tool do these operations in a turn of the line's user. Returns what the turn replied.
async fn burgle(line: &Line, session: &str, ops: Value) -> String {
    turn(line, session, burgles(&ops)).await
}

fn keeps(text: &str) -> Value {
    json!([
        { "op": "open", "on": "/mine", "path": "diary", "as": "d", "create": true, "write": true },
        { "op": "write", "on": "d", "text": text },
        { "op": "open", "on": "/tmp", "path": "scrap", "as": "s", "create": true, "write": true },
        { "op": "open", "on": "/work", "path": "plan", "as": "p", "create": true, "write": true },
    ])
}

fn inspections() -> Value {
    json!([
        { "op": "list", "on": "/mine" },
        { "op": "hammer", "on": "/mine", "path": "diary", "times": 1 },
        { "op": "hammer", "on": "/mine", "path": "../alice/diary", "follow": true, "times": 1 },
        { "op": "hammer", "on": "/mine", "path": "planted/diary", "follow": true, "times": 1 },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn two_users_of_a_tool_never_see_each_others_files() {
    let (folder, host) = house().await;
    let scopes = ["read", "write"];
    let alice = host.user("alice", &scopes).await;
    let capital = host.user("Alice", &scopes).await;
    let bob = host.user("bob", &scopes).await;
    for (line, text) in [(&alice, "of alice"), (&bob, "of bob")] {
        let session = session(line).await;
        burgle(line, &session, keeps(text)).await;
    }
    let plants = json!([
        { "op": "symlink", "on": "/mine", "path": "planted", "to": "../alice" },
    ]);
    burgle(&bob, &session(&bob).await, plants).await;
    let _ = std::os::unix::fs::symlink("../alice", folder.path().join("files/bob/planted"));
    let seen = burgle(&bob, &session(&bob).await, inspections()).await;
    assert!(
        seen.contains("of bob") && !seen.contains("of alice"),
        "{seen}"
    );
    let seen = burgle(&capital, &session(&capital).await, inspections()).await;
    assert!(!seen.contains("of "), "{seen}");
    let kept = |name: &str| {
        let path = folder.path().join("files").join(name).join("diary");
        std::fs::read_to_string(path).unwrap_or_default()
    };
    assert_eq!(
        [kept("alice"), kept("bob"), kept("%41lice")],
        ["of alice", "of bob", ""]
    );

    host.kill().await;
    let host = folder.serve().await;
    let alice = host.user("alice", &scopes).await;
    let seen = burgle(&alice, &session(&alice).await, inspections()).await;
    assert!(
        seen.contains("of alice") && !seen.contains("of bob"),
        "{seen}"
    );
    // The operator finds out which folder it was, and under which grant.
    let ledger = host
        .get("/api/audit?component=burglar&user=alice&capability=files.read")
        .await;
    let line = ledger.body["lines"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    let path = |name: &str| PathBuf::from(line[name].as_str().unwrap());
    assert!(path("folder").ends_with("files/alice"), "{line}");
    assert!(path("folder_granted").ends_with("files/{user}"), "{line}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purged_session_loses_its_granted_folder_and_others_keep_theirs() {
    let (folder, host) = house().await;
    let line = host.line();
    let [gone, kept] = [session(&line).await, session(&line).await];
    for session in [&gone, &kept] {
        burgle(&line, session, keeps("x")).await;
    }
    let own = |session: &str| {
        let id = session.rsplit('/').next().unwrap();
        folder.path().join("scratch/local").join(id)
    };
    assert!(own(&gone).join("scrap").is_file() && own(&kept).join("scrap").is_file());
    let deleted = line.delete(&gone).await;
    assert!(deleted.status < 300, "{deleted:?}");
    assert!(own(&gone).exists(), "a deleted session is only hidden");
    let parts: Vec<&str> = gone.split('/').collect();
    let purge = json!({ "agent_id": parts[3], "session_id": parts[5] });
    // What cannot be removed keeps the purge open, and the answer says what to do.
    std::fs::create_dir_all(own(&gone).join("d/".repeat(300))).unwrap();
    let stuck = host.post("/api/purges", &purge).await;
    assert_eq!(stuck.text("code"), "BUSY", "{stuck:?}");
    assert!(stuck.text("detail").contains("remove it"), "{stuck:?}");
    std::fs::remove_dir_all(own(&gone).join("d")).unwrap();
    host.post("/api/purges", &purge).gives(200).await;
    assert!(!own(&gone).exists() && own(&kept).join("scrap").is_file());
    assert_eq!(
        std::fs::read_to_string(folder.path().join("files/local/diary")).unwrap(),
        "x"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// An agent goes with its folders, those of its sessions, and those of the agents below it. What
/// its user and other agents keep stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_purged_agent_loses_its_granted_folders_and_those_below_it() {
    let (folder, host) = house().await;
    let line = host.line();
    let alice = host.user("alice", &["read", "write"]).await;
    let [gone, kept] = [session(&line).await, session(&alice).await];
    burgle(&line, &gone, keeps("x")).await;
    burgle(&alice, &kept, keeps("y")).await;
    let hands_on = json!({
        "key": "w", "tool": "dispatch_to_agent",
        "args": { "target": "other", "content": script(&burgles(&keeps("z"))), "wait": true },
    });
    turn(&line, &gone, hands_on).await;
    let names = |of: &str| -> BTreeSet<String> {
        let entries = std::fs::read_dir(folder.path().join(of)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    };
    let [agent, other] = [&gone, &kept].map(|path| path.split('/').nth(3).unwrap().to_owned());
    let had = names("work");
    assert!(had.contains(&agent) && had.contains(&other), "{had:?}");
    assert_eq!(had.len(), 3, "the agent below has its own: {had:?}");
    assert_eq!(names("scratch/local").len(), 2);

    let over = json!({ "reason": "over" });
    let at = format!("/api/agents/{agent}/archive");
    line.post(&at, &over).gives(200).await;
    assert_eq!(names("work").len(), 3, "an archived agent has only ended");
    let purge = json!({ "agent_id": agent });
    host.post("/api/purges", &purge).gives(200).await;
    assert_eq!(names("work"), BTreeSet::from([other]));
    assert!(names("scratch/local").is_empty());
    assert_eq!(names("scratch/alice").len(), 1);
    let diary = |user: &str| {
        let path = folder.path().join("files").join(user).join("diary");
        std::fs::read_to_string(path).unwrap()
    };
    assert_eq!([diary("local"), diary("alice")], ["z", "y"]);
    assert!(host.stop().await.success(), "{}", folder.log());
}
