//! The operator's view: warnings about the configuration, names that exist, agents that are hidden,
//! and what sessions wait for.

use agent_host_tests::guests::{test_program, wasm};
use agent_host_tests::patience::found;
use agent_host_tests::process::{
    Folder, Host, Line, PATIENCE, Session, program, script, scripted, shows,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

fn config(agents: &Value) -> Value {
    scripted(agents, &[("files", json!({}))])
}

fn agent(id: &str, more: &Value) -> Value {
    let mut agent = json!({ "agentId": id, "displayName": id, "component": "puppet" });
    agent
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    agent
}

/// A host with puppets of these names.
async fn serving(agents: &[&str]) -> (Folder, Host) {
    let agents: Vec<Value> = agents.iter().map(|id| agent(id, &json!({}))).collect();
    Folder::serving(config(&json!(agents)), &["puppet", "files"]).await
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
    let agents = json!([
        agent("a", &json!({ "toolAllowlist": ["read_file"] })),
        agent("b", &json!({ "toolDenylist": ["read_fiel"] }))
    ]);
    let mut config = config(&agents);
    config["components"]["files"]["confirm"] = json!(["write_*", "read_fiel"]);
    let folder = Folder::new(config);
    folder.warm(&["puppet", "files"]).await;
    let key = "agents[1].toolDenylist[0]";
    let message = "`read_fiel` matches no tool; the nearest is `read_file`";
    let reported = format!("warning: {key}: {message}\n");
    let confirms = "warning: components.files.confirm[1]: `read_fiel` matches no tool of this \
                    component; the nearest is `read_file`\n";
    let texts = [&*reported, confirms];
    folder.complains("config check --json", 0, &texts).await;
    let checked = folder.run(&["config", "check", "--json"]).await;
    let findings = document(&checked)["findings"].clone();
    assert!(
        findings
            .as_array()
            .unwrap()
            .contains(&json!({ "severity": "warning", "key": key, "message": message })),
        "{findings}"
    );
    let host = folder.serve().await;
    assert!(host.stop().await.success(), "{}", folder.log());
    for text in texts {
        assert_eq!(folder.log().matches(text).count(), 1, "{}", folder.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_not_there_is_told_with_those_that_are_each_once() {
    let folder = Folder::new(config(&json!([])));
    let known = "there is no component `nope`; known are assistant, code, coder, evaluator, \
                 external, files, files-watch, heartbeat, lists, memory, puppet, reading-list, \
                 researcher, schedule, slack, telegram, thought, tutor, web, webhook, whatsapp, \
                 worker\n";
    folder
        .complains("component inspect nope", 2, &[known])
        .await;
}

/// Begins a session; its agent.
async fn open(host: &Host, definition: &str) -> String {
    let answer = host
        .post(&format!("/api/agents/{definition}/sessions"), &json!({}))
        .gives(201)
        .await;
    answer.text("agent_id")
}

fn ids(list: &Value, name: &str) -> BTreeSet<String> {
    list["agents"]
        .as_array()
        .or(list["sessions"].as_array())
        .unwrap()
        .iter()
        .map(|it| it[name].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_agent_is_left_out_of_lists_unless_all_are_asked_for() {
    let (folder, host) = Folder::serving(
        config(&json!([
            agent("shown", &json!({})),
            agent("hidden", &json!({ "uiVisible": false }))
        ])),
        &["puppet", "files"],
    )
    .await;
    let mut shown = BTreeSet::from([open(&host, "shown").await]);
    let mut hidden = BTreeSet::from([open(&host, "hidden").await]);
    for (definition, agents) in [("shown", &mut shown), ("hidden", &mut hidden)] {
        for number in 0..4 {
            let new = json!({
                "definition": definition, "path": format!("/local/agent/{definition}-{number}"),
            });
            agents.insert(host.post("/api/agents", &new).await.text("id"));
        }
    }
    let all: BTreeSet<String> = shown.union(&hidden).cloned().collect();
    assert_eq!(ids(&host.get("/api/agents").await.body, "id"), shown);
    assert_eq!(ids(&host.get("/api/agents?all=true").await.body, "id"), all);
    // A page is filled whatever is hidden in between.
    let mut pages = Vec::new();
    let mut after = String::new();
    loop {
        let page = host.get(&format!("/api/agents?limit=2{after}")).await.body;
        pages.push(page["agents"].as_array().unwrap().len());
        let Some(next) = page["next_after"].as_str() else {
            break;
        };
        after = format!("&after={next}");
    }
    assert_eq!(pages.iter().sum::<usize>(), 5, "{pages:?}");
    assert!(pages.iter().take(2).all(|page| *page == 2), "{pages:?}");
    // It is found by its name.
    for id in &hidden {
        host.get(&format!("/api/agents/{id}")).gives(200).await;
    }
    let listed = document(&folder.run(&["session", "list", "--json"]).await);
    assert!(
        ids(&listed, "agent_id").is_subset(&shown) && ids(&listed, "agent_id").len() == 1,
        "{listed}"
    );
    let listed = document(&folder.run(&["session", "list", "--all", "--json"]).await);
    assert_eq!(ids(&listed, "agent_id").len(), 2, "{listed}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_for_its_client_says_so() {
    let (folder, host) = serving(&["puppet"]).await;
    let begun = host.post("/api/agents/puppet/sessions", &json!({})).await;
    let session = Session::of(&begun);
    assert_eq!(begun.body["run_status"], Value::Null);
    let asks = json!({ "steps": [{ "start": [{ "key": "q", "client": "question" }] }] });
    host.say(&session, &asks.to_string()).await;
    let seen = found(async || {
        let seen = host.get(&session).await.body;
        let asked = seen["pending_action"].is_object();
        assert!(asked || seen["run_status"] != "awaiting_client", "{seen}");
        asked.then_some(seen)
    })
    .await;
    shows(
        &seen,
        &json!({ "status": "active", "run_status": "awaiting_client" }),
    );
    for command in [
        &["session", "show", &begun.text("session_id")][..],
        &["session", "list"],
    ] {
        let shown = folder.run(command).await;
        let first = String::from_utf8_lossy(&shown.stdout)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        assert_eq!(
            first.split_whitespace().nth(2),
            Some("awaiting_client"),
            "{shown:?}"
        );
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// Pipes something into a command, which ends with its input.
async fn piped(command: &mut Command, input: &[u8]) -> Output {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("RUST_LOG")
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).await.unwrap();
    tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .expect("an end in time")
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_tells_input_that_is_no_text_and_how_to_go_on_as_one_can_type_it() {
    let (folder, host) = serving(&["a"]).await;
    let chat = || {
        let mut chat = Command::new(program());
        chat.args(["chat", "--config"])
            .arg(folder.path().join("agent-host.json"));
        chat
    };
    let failed = piped(&mut chat(), b"\n\xff\xfe\n").await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    assert!(
        err(&failed).contains("error: line 2 of the input is not UTF-8\n"),
        "{failed:?}"
    );
    let ended = piped(&mut chat(), b"").await;
    let reported = err(&ended)
        .lines()
        .find_map(|line| line.strip_prefix("go on with: ").map(str::to_owned))
        .expect("how to go on");
    let goes_on = piped(Command::new("sh").args(["-c", &reported]), b"").await;
    assert!(
        goes_on.status.success() && err(&goes_on).contains(&reported),
        "{reported}: {goes_on:?}"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_the_host_of_its_data_folder_wherever_that_listens() {
    let (folder, host) = serving(&["a"]).await;
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
    assert!(
        err(&missed).contains("no host is running at http://127.0.0.1:9\n"),
        "{missed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_finds_the_host_of_the_data_folder_that_it_names() {
    let mut config = config(&json!([agent("a", &json!({}))]));
    config["server"] = json!({ "listen": "127.0.0.1:0", "dataDir": "elsewhere" });
    let folder = Folder::new(config);
    folder.warm(&["puppet", "files"]).await;
    let data = folder.data();
    let named = ["--data", data.to_str().unwrap()];
    let host = folder.start_with(&named, None).await.unwrap();
    let mine = open(&host, "a").await;
    let list = ["session", "list", "--json"];
    let found = folder.run(&[&list[..], &named].concat()).await;
    assert!(document(&found).to_string().contains(&mine), "{found:?}");
    let missed = folder.run(&list).await;
    assert_eq!(missed.status.code(), Some(4), "{missed:?}");
    let mut chat = folder.program(&[&["chat"][..], &named].concat());
    let ended = piped(&mut chat, b"").await;
    assert!(ended.status.success(), "{ended:?}");
    assert!(err(&ended).contains(&named.join(" ")), "{ended:?}");
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_of_before_ends_the_start_with_the_way_out() {
    let (folder, host) = serving(&["a"]).await;
    assert!(host.stop().await.success(), "{}", folder.log());
    rusqlite::Connection::open(folder.data().join("store.db"))
        .unwrap()
        .execute_batch("DELETE FROM meta WHERE name = 'baseline'; PRAGMA user_version = 19")
        .unwrap();
    let ended = folder.start(None).await.unwrap_err();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.said);
    for words in ["before the first release", "agent-host session export"] {
        assert!(ended.said.contains(words), "{words}: {}", ended.said);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_from_the_events_can_be_made_again_with_and_without_a_host() {
    let (folder, host) = serving(&["a"]).await;
    let mine = open(&host, "a").await;
    let database = || {
        let database = rusqlite::Connection::open(folder.data().join("store.db")).unwrap();
        database.busy_timeout(Duration::from_secs(5)).unwrap();
        database
    };
    let forget = || assert_eq!(database().execute("DELETE FROM sessions", []).unwrap(), 1);
    let missing = json!([{ "table": "sessions", "changed": 0, "missing": 1, "superfluous": 0 }]);
    let intact = || folder.run(&["verify"]);

    forget();
    let sessions = format!("/api/agents/{mine}/sessions");
    assert_eq!(host.get(&sessions).await.body["sessions"], json!([]));
    assert!(err(&intact().await).contains("the table `sessions` is not what the events say"));
    let made = document(&folder.run(&["rebuild", "--json"]).await);
    shows(&made, &json!({ "state": "done", "replaced": missing }));
    assert_eq!(
        host.get(&sessions).await.body["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(intact().await.status.success());
    let reported = folder.prints("rebuild", None, &[]).await;
    assert!(
        reported.ends_with("everything was as they say\n"),
        "{reported}"
    );
    forget();
    assert!(folder.run(&["verify", "--rebuild"]).await.status.success());
    assert!(host.stop().await.success(), "{}", folder.log());

    forget();
    let reported = "sessions: 0 rows had changed, 1 were missing, 0 were too many\n";
    folder.prints("rebuild", None, &[reported]).await;
    forget();
    assert!(folder.run(&["verify", "--rebuild"]).await.status.success());
    assert!(intact().await.status.success());
    // All that it needs is in the folder: it wants no configuration.
    let mut bare = Command::new(program());
    bare.env_clear().env("HOME", folder.data());
    bare.args(["verify", "--data"]).arg(folder.data());
    let verified = Folder::run_within(PATIENCE, bare).await;
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}

/// Changes the configuration of a folder.
fn reconfigure(folder: &Folder, change: impl FnOnce(&mut Value)) {
    let file = folder.path().join("agent-host.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(&file, config.to_string()).unwrap();
}

/// Commands about components tell what is asked, granted and used, with lines to paste.
#[tokio::test(flavor = "multi_thread")]
async fn commands_about_components_tell_asked_granted_and_used_with_lines_to_paste() {
    let mut config = config(&json!([agent("a", &json!({}))]));
    let folder =
        json!([{ "path": "files", "at": "/notes", "access": "read-write", "filesMax": 9 }]);
    config["components"]["files"] =
        json!({ "directories": folder, "limits": { "cpuMsMax": 2_000 } });
    config["components"]["reach"] = json!({
        "path": test_program("reach"),
        "directories": folder,
    });
    let folder = Folder::new(config);
    folder.warm(&["puppet", "files", "lists", "reach"]).await;

    // A built-in component that the configuration does not name is known to each of them.
    let line = r#""keyValue": [{"bucket":"lists","scope":"user","access":"read-write"}]"#;
    let texts = [
        "  refused  lists.read",
        "  refused  lists.write",
        "  add to `components`:\n    \"lists\": {\n",
        line,
    ];
    let checked = folder.prints("component check lists", 3, &texts).await;
    assert_eq!(checked.matches("keyValue").count(), 1, "{checked}");
    let checked = folder.run(&["component", "check", "lists", "--json"]).await;
    let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
    shows(
        &checked,
        &json!({ "capabilities/0/line": line, "lines/0/line": line }),
    );
    assert!(
        checked["imports"]
            .as_array()
            .unwrap()
            .iter()
            .all(|import| import["interface"].is_string()),
        "{checked}"
    );

    let digest = domain::digest::Digest::of(&wasm("files"));
    let texts = [
        &*format!("  pin      \"sha256\": \"{digest}\"\n"),
        "/files at /notes (read-write",
        "  limit    cpuMsMax = 2000",
    ];
    folder.prints("component inspect files", 0, &texts).await;

    let calls = folder.path().join("calls.jsonl");
    let suggest = "component suggest files --calls calls.jsonl";
    std::fs::write(
        &calls,
        "{\"tool\":\"list_files\",\"arguments\":{\"path\":\".\"}}\n",
    )
    .unwrap();
    let line =
        r#""directories": [{"path":"files","at":"/notes","access":"read-only","filesMax":9}]"#;
    let texts = [
        "put into components.files in place of `directories`:\n",
        line,
    ];
    let suggested = folder.prints(suggest, 0, &texts).await;
    assert!(!suggested.contains("failed here"), "{suggested}");
    std::fs::write(&calls, "\n{\"tool\":\"lst_files\"}\n").unwrap();
    let texts = ["calls.jsonl:2: ", "no tool `lst_files`; known are"];
    folder.complains(suggest, 2, &texts).await;

    // What a tool needs that writes a placeholder and opens no folder.
    let arguments = json!({
        "url": "https://api.github.com/user", "headers": [["authorization", "{{secret.github}}"]],
    });
    std::fs::write(
        &calls,
        json!({ "tool": "send_request", "arguments": arguments }).to_string(),
    )
    .unwrap();
    let suggest = "component suggest reach --calls calls.jsonl --json";
    let suggested: Value = serde_json::from_str(&folder.prints(suggest, 0, &[]).await).unwrap();
    let secret = json!({
        "secret": "name", "host": "api.github.com", "slot": { "header": "authorization" },
    });
    assert_eq!(suggested["grant"], json!({}), "{suggested}");
    let expected = json!({
        "refused/0/value": { "host": "api.github.com" }, "refused/1/value": secret,
    });
    shows(&suggested, &expected);

    // The same code is loaded when it is pinned, and no other.
    reconfigure(&folder, |config| {
        config["components"]["files"]["sha256"] = json!(digest)
    });
    folder.prints("config check", 0, &[]).await;
    let other = domain::digest::Digest::of(b"other");
    reconfigure(&folder, |config| {
        config["components"]["files"]["sha256"] = json!(other)
    });
    let texts = ["components.files", &digest.hex(), &other.hex()];
    for command in ["config check", "serve"] {
        folder.complains(command, 1, &texts).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_about_grants_and_the_ledger_tell_what_decided_and_what_would_change() {
    let mut config = config(&json!([
        agent("a", &json!({ "toolDenylist": ["delete_*"] })),
        agent("worker", &json!({})),
        agent(
            "skilled",
            &json!({ "toolExposure": "skills", "skillAllowlist": ["files"] })
        ),
    ]));
    config["components"]["web"] = json!({});
    let (folder, host) = Folder::serving(config, &["puppet", "files", "web"]).await;

    for (agent_and_tool, reported) in [
        (
            "a bash",
            "refused: `bash`, by toolExposure; set agents[0].toolExposure to `skills` or `mixed`\n",
        ),
        (
            "skilled bash",
            "  the skill files: `files-cli` calls delete_file, ",
        ),
        (
            "skilled bash",
            "  not the skill web, by skillAllowlist; add `web` to agents[2].skillAllowlist\n",
        ),
        (
            "skilled read_file",
            "offered as a skill: it is called by `files-cli read_file` in `bash`\n",
        ),
        (
            "a web_fetch",
            "refused inside the call: `net.http` is not granted\n",
        ),
        (
            "a web_fetch",
            "  add to components.web (choose the hosts):\n    \"network\": \
             [{\"host\":\"example.com\"}]\n",
        ),
        (
            "a delete_file",
            "refused: `delete_file`, by toolDenylist; take `delete_*` out of \
             agents[0].toolDenylist[0]\n",
        ),
        ("a delegate", "a calls delegate of the host itself\n"),
        ("a delegate", "  work of worker\n"),
    ] {
        let explain = format!("grants explain {agent_and_tool}");
        folder.prints(&explain, 0, &[reported]).await;
    }
    let unknown = "neither a component nor the host offers the tool `fetch`; known are";
    folder
        .complains("grants explain a fetch", 2, &[unknown])
        .await;
    let same = "grants the same as the running host";
    folder.prints("grants diff", 0, &[same]).await;
    std::fs::copy(
        folder.path().join("agent-host.json"),
        folder.path().join("old.json"),
    )
    .unwrap();
    reconfigure(&folder, |config| {
        config["agents"][0]["toolDenylist"] = json!(["delete_*", "read_file"])
    });
    for command in ["grants diff", "grants diff --against old.json"] {
        let changed = folder.prints(command, 0, &[]).await;
        let difference: Vec<&str> = changed.lines().skip(1).collect();
        assert_eq!(difference, ["+ agents.a.toolDenylist = \"read_file\""]);
    }

    let session = host.open("a").await;
    let steps =
        json!([{ "start": [{ "key": "t", "tool": "delete_file", "args": { "path": "x" } }] }]);
    host.play(&session, &steps).await;
    let reported = async {
        loop {
            let audit = "audit --json --verdict refused --agent a";
            let audited = folder.prints(audit, 0, &[]).await;
            if !audited.is_empty() {
                break audited;
            }
        }
    };
    let reported = tokio::time::timeout(PATIENCE, reported)
        .await
        .expect("a refusal on record in time");
    let line: Value = serde_json::from_str(reported.lines().next().unwrap()).unwrap();
    shows(
        &line,
        &json!({ "verdict": "refused", "rule": "toolDenylist" }),
    );
    shows(
        &line,
        &json!({ "definition": "a", "capability": "tools.call" }),
    );

    let wrong = "`denied` is none; known are granted, refused, limited, done";
    folder
        .complains("audit --verdict denied", 3, &[wrong])
        .await;
    let unknown = ["no tool `delet_file` now", "the nearest is `delete_file`"];
    folder
        .complains("audit --tool delet_file", 0, &unknown)
        .await;
    assert_eq!(folder.prints("audit --tool delet_file", 0, &[]).await, "");
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// The lines of the ledger that tell of readings of an agent.
async fn reading_lines(host: &Host, agent: &str) -> Vec<Value> {
    let page = host
        .get(&format!(
            "/api/audit?limit=1000&capability=operator.read&agent={agent}"
        ))
        .await;
    page.body["lines"].as_array().unwrap().clone()
}

/// Returns those lines: the reader and the request of each.
async fn readings(host: &Host, agent: &str) -> Vec<(String, String)> {
    let lines = reading_lines(host, agent).await;
    lines
        .iter()
        .map(|line| {
            (
                line["user_id"].as_str().unwrap().to_owned(),
                line["detail"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_reads_any_agent_and_each_reading_is_in_the_ledger() {
    let (folder, host) = serving(&["a"]).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write", "admin"]).await;
    let begun = alice.post("/api/agents/a/sessions", &json!({})).await;
    let id = begun.text("agent_id");
    let session = begun.text("session_id");
    let path = format!("/api/agents/{id}");
    let of_session = format!("{path}/sessions/{session}");
    let steps = json!([
        { "start": [{ "key": "m", "model": "x" }] },
        { "reply": "a secret of mine" },
    ]);
    alice.play(&of_session, &steps).await;
    let turn = found(async || {
        let shown = alice.get(&of_session).await;
        shown.body["turn_id"]
            .as_str()
            .filter(|_| shown.body.to_string().contains("a secret of mine"))
            .map(str::to_owned)
    })
    .await;
    assert_eq!(
        readings(&host, &id).await,
        [],
        "users' own readings are nobody's business"
    );

    // Each line of her turn names her, and the filter finds it.
    let lines = host.get("/api/audit?user=alice").await.body["lines"].clone();
    let lines = lines.as_array().unwrap();
    assert!(
        !lines.is_empty()
            && lines
                .iter()
                .all(|line| line["user_id"] == "alice" && line["agent_id"] == *id),
        "{lines:?}"
    );
    assert_eq!(
        host.get("/api/audit?user=bob").await.body["lines"],
        json!([])
    );

    // What a line names can be looked at, and each inspection is on record when the answer is
    // there.
    let mut expected = Vec::new();
    for (request, what) in [
        (path.clone(), "/api/agents/{id}".to_owned()),
        (
            format!("{path}/sessions"),
            "/api/agents/{id}/sessions".to_owned(),
        ),
        (
            of_session.clone(),
            "/api/agents/{id}/sessions/{sid}".to_owned(),
        ),
        (
            format!("{of_session}/tree"),
            "/api/agents/{id}/sessions/{sid}/tree".to_owned(),
        ),
        (
            format!("/api/sessions/{session}"),
            "/api/sessions/{sid}".to_owned(),
        ),
        (
            format!("/api/turns/{turn}"),
            format!("/api/turns/{{turn_id}} turn {turn}"),
        ),
    ] {
        let shown = host.get(&request).await;
        assert_eq!(shown.status, 200, "{request}: {shown:?}");
        expected.push(("local".to_owned(), format!("GET {what}")));
        assert_eq!(readings(&host, &id).await, expected, "{request}");
    }
    assert!(
        host.get(&of_session)
            .await
            .body
            .to_string()
            .contains("a secret of mine")
    );
    let mut frames = host.follow(&format!("{path}/stream?after=0"), None).await;
    assert!(frames.receive().await.is_some());
    assert_eq!(
        readings(&host, &id).await.last().unwrap().1,
        "GET /api/agents/{id}/stream"
    );
    drop(frames);

    // Only reads: nothing is said or changed in a user's name, and lists stay each user's own.
    let before = readings(&host, &id).await.len();
    let message = json!({ "content": "from somebody else" });
    host.post(&format!("{of_session}/messages"), &message)
        .gives(404)
        .await;
    host.post(&format!("{path}/archive"), &json!({}))
        .gives(404)
        .await;
    assert_eq!(
        ids(&host.get("/api/agents").await.body, "id"),
        BTreeSet::new()
    );
    assert_eq!(readings(&host, &id).await.len(), before);

    // An administrator's key is no operator: it finds nothing, and what its lists show is on record
    // as well.
    bob.get(&path).gives(404).await;
    bob.get(&of_session).gives(404).await;
    bob.get("/api/events").gives(200).await;
    assert_eq!(
        readings(&host, &id).await[before..],
        [("bob".to_owned(), "GET /api/events".to_owned())]
    );

    // Commands print it.
    let audited = ["operator  bob read", "GET /api/events"];
    folder.prints("audit --user bob", None, &audited).await;
    assert!(host.stop().await.success(), "{}", folder.log());

    // Rules on paths hide nothing from the operator's reading, and nothing is on record that was
    // not shown.
    reconfigure(&folder, |config| {
        config["pathRules"] = json!([{ "subtree": "/alice/**", "access": "none" }])
    });
    let host = folder.serve().await;
    host.get(&of_session).gives(200).await;
    host.get("/api/agents/019a0000-0000-7000-8000-000000000000")
        .gives(404)
        .await;
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A session of a user's in which something was said and answered.
struct ChatSession {
    session: Session,
    turn: String,
}

impl ChatSession {
    /// The session with those below it, as an event stream from the first event on.
    fn stream(&self) -> String {
        let id = self.session.id();
        let agent = self.session.agent();
        format!("{agent}/stream?view=log&session={id}&spawned=true&after=0")
    }
}

/// Begins a session and says something in it.
async fn exchange(user: &Line, definition: &str, steps: &Value) -> ChatSession {
    let session = user.open(definition).await;
    say(user, &session, steps).await;
    let turn = user.get(&session).await.text("turn_id");
    ChatSession { session, turn }
}

/// Says something and waits for the answer.
async fn say(user: &Line, session: &str, steps: &Value) {
    let answer = user.turn(session, &script(steps)).await;
    answer.has(200, &json!({ "outcome": "replied" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_sides_of_a_comparison_that_the_operator_reads_are_in_the_ledger() {
    let (folder, host) = serving(&["a", "b"]).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let bob = host.user("bob", &["read", "write"]).await;
    let first = exchange(&alice, "a", &json!([{ "reply": "said by a" }])).await;
    let second = exchange(&alice, "b", &json!([{ "reply": "said by b" }])).await;
    let others = exchange(&bob, "b", &json!([{ "reply": "not hers" }])).await;
    let diff = |with: &str| format!("{}/diff?with={with}", first.session);
    alice.get(&diff(second.session.id())).gives(200).await;
    assert_eq!(
        readings(&host, second.session.agent_id()).await,
        [],
        "users' own readings are nobody's business"
    );

    let request = "GET /api/agents/{id}/sessions/{sid}/diff";
    let mut expected = Vec::new();
    for (with, detail) in [
        (second.session.id(), request.to_owned()),
        (&second.turn, format!("{request} turn {}", second.turn)),
    ] {
        let shown = host.get(&diff(with)).await;
        assert!(
            shown.status == 200 && shown.body.to_string().contains("said by b"),
            "{shown:?}"
        );
        expected.push((json!("local"), json!(second.session.id()), json!(detail)));
        let lines = reading_lines(&host, second.session.agent_id()).await;
        let reported: Vec<_> = lines
            .iter()
            .map(|line| {
                (
                    line["user_id"].clone(),
                    line["session_id"].clone(),
                    line["detail"].clone(),
                )
            })
            .collect();
        assert_eq!(reported, expected);
    }
    assert_eq!(
        readings(&host, first.session.agent_id()).await,
        vec![("local".to_owned(), request.to_owned()); 2]
    );

    // The user as whom the operator reads does not see it, so neither is it shown nor on record.
    for with in [others.session.id(), &others.turn] {
        host.get(&diff(with)).gives(404).await;
    }
    assert_eq!(readings(&host, others.session.agent_id()).await, []);
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_whose_events_a_stream_shows_the_operator_is_in_the_ledger_before() {
    let (folder, host) = serving(&["a", "b"]).await;
    let alice = host.user("alice", &["read", "write"]).await;
    let work = json!({ "steps": [{ "reply": "done below" }] }).to_string();
    let steps = json!([{ "start": [{ "key": "d", "agent": "b", "text": work }] }]);
    let exchange = exchange(&alice, "a", &steps).await;
    let mut frames = host.follow(&exchange.stream(), None).await;
    let mut seen = Vec::new();
    // What was there before the operator came, and what came to be while they follow.
    for _ in 0..2 {
        let below = async {
            loop {
                let data = frames.receive().await.expect("a frame").data;
                let agent = data["agent_id"].as_str().unwrap_or_default().to_owned();
                if !data["spawned"].is_null() && !seen.contains(&agent) {
                    break agent;
                }
            }
        };
        let below = tokio::time::timeout(PATIENCE, below)
            .await
            .expect("an event of an agent below");
        assert_eq!(
            readings(&host, &below).await,
            [("local".to_owned(), "GET /api/agents/{id}/stream".to_owned())]
        );
        seen.push(below);
        say(&alice, &exchange.session, &steps).await;
    }
    for below in &seen {
        assert_eq!(readings(&host, below).await.len(), 1, "once for a stream");
    }
    drop(frames);
    assert!(host.stop().await.success(), "{}", folder.log());
}
