//! Tasks over HTTP and from the command line: work that agents hand to each other, looked at,
//! summed up, cancelled and purged.

use agent_host_tests::patience::{found, until};
use agent_host_tests::process::{Folder, Host, PATIENCE, Session, puppet, puppets, shows, tells};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A host whose worker plays these steps, whatever it is told.
async fn started(worker: Value) -> (Folder, Host) {
    started_with(worker, |_| {}).await
}

/// The same with another configuration.
async fn started_with(worker: Value, change: impl FnOnce(&mut Value)) -> (Folder, Host) {
    let agents = json!([
        puppet(),
        {
            "agentId": "worker", "displayName": "Worker", "component": "puppet",
            "settings": { "script": { "steps": worker } },
        },
    ]);
    let mut config = puppets(&agents);
    change(&mut config);
    Folder::serving(config, &["puppet"]).await
}

fn delegate(key: &str) -> Value {
    json!({
        "key": key, "tool": "delegate",
        "args": {
            "target": "worker", "operation": "list_files", "parameters": { "path": "/data" },
        },
    })
}

/// Opens a session and has its agent play some steps. Returns the path of the session.
async fn begun(host: &Host, steps: &Value) -> Session {
    let at = host.open("puppet").await;
    host.play(&at, steps).await;
    at
}

/// Waits until one task is in a state, and returns it.
async fn task_in(host: &Host, state: &str) -> Value {
    found(async || {
        let path = format!("/api/tasks?state={state}");
        let listed = host.get(&path).gives(200).await;
        listed.body["tasks"].get(0).cloned()
    })
    .await
}

async fn idle(host: &Host, at: &str) {
    until(async || {
        let seen = host.get(at).await.body;
        seen["revision"].as_u64() > Some(0) && seen["run_id"].is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_shown_summed_up_and_cancelled_and_goes_with_its_session() {
    let hour = json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]);
    let (folder, host) = started(hour).await;
    let at = begun(&host, &json!([{ "start": [delegate("a")] }])).await;
    let task = task_in(&host, "RUNNING").await;
    let id = task["task_id"].as_str().unwrap().to_owned();
    let shown = host.get(&format!("/api/tasks/{id}")).gives(200).await;
    let expected = json!({
        "target": "worker", "operation": "list_files", "parameters": r#"{"path":"/data"}"#,
    });
    shows(&shown.body, &expected);
    assert!(at.ends_with(shown.body["caller"]["session_id"].as_str().unwrap()));
    assert!(shown.body["started_at"].is_string() && shown.body["ended_at"].is_null());
    let by_session = shown.body["performer"]["session_id"].as_str().unwrap();
    let of_other = host.get(&format!("/api/tasks?session={by_session}")).await;
    assert_eq!(of_other.body["tasks"], json!([]));

    // The list of agents has the one that works for another only if it is asked for.
    for (query, count) in [("", 1), ("?spawned=true", 2)] {
        let listed = host.get(&format!("/api/agents{query}")).await;
        let agents = listed.body["agents"].as_array().unwrap();
        assert_eq!(agents.len(), count, "{query}: {listed:?}");
    }

    // An agent is named by its UUID or its path.
    let eve = host.user("eve", &["read", "write"]).await;
    let of_caller = |key: &str| shown.body["caller"][key].as_str().unwrap();
    let agent_path = of_caller("agent_path");
    let in_query = agent_path.replace('/', "%2F");
    for agent in [of_caller("agent_id"), in_query.as_str()] {
        let listed = host.get(&format!("/api/tasks?agent={agent}")).await;
        assert_eq!(listed.body["tasks"][0]["task_id"], json!(id));
        let summed = host.get(&format!("/api/tasks/stats?agent={agent}")).await;
        assert_eq!(summed.body["stats"][0]["count"], 1, "{agent}");
    }
    let cancel = format!("/api/tasks/{id}/cancel");
    let names: [(&str, &str); 2] = [("{id}", &id), ("{path}", &in_query)];
    let rows = [
        "GET /api/tasks?agent={path}none => 404 AGENT_NOT_FOUND",
        "GET /api/tasks/stats?agent={path}none => 404 AGENT_NOT_FOUND",
    ];
    host.answers(&names, &rows).await;
    // To others it is not there.
    let rows = [
        "GET /api/tasks?agent={path} => 404 AGENT_NOT_FOUND",
        "GET /api/tasks/stats?agent={path} => 404 AGENT_NOT_FOUND",
        "GET /api/tasks/{id} => 404 TASK_NOT_FOUND",
        "POST /api/tasks/{id}/cancel => 404 TASK_NOT_FOUND",
    ];
    eve.answers(&names, &rows).await;
    let listed = eve.get("/api/tasks").await;
    assert_eq!(listed.body["tasks"], json!([]));
    let summed = eve.get("/api/tasks/stats").await;
    assert_eq!(summed.body["stats"], json!([]));

    // Its caller is told, and goes on.
    let cancelled = host
        .post(&cancel, &json!({ "reason": "enough" }))
        .gives(200)
        .await;
    assert_eq!(cancelled.text("state"), "CANCELLED");
    idle(&host, &at).await;
    let session = at.rsplit('/').next().unwrap();
    let said = host
        .get(&format!("/api/sessions/{session}?from=1&to=100"))
        .await;
    let said = said.body["messages"].to_string();
    tells(&said, &[r#"\"taskState\":\"CANCELLED\""#]);
    host.post(&cancel, &json!({}))
        .refused(409, "TASK_SETTLED")
        .await;
    let stats = host.get("/api/tasks/stats").await.body;
    let sum = &stats["stats"][0];
    let expected = json!({
        "target": "worker", "operation": "list_files", "count": 1, "states": { "CANCELLED": 1 },
    });
    shows(sum, &expected);
    assert!(sum["p95_ms"].is_u64(), "{sum}");
    let later = host.get("/api/tasks/stats?from=2999-01-01T00:00:00Z").await;
    assert_eq!(later.body["stats"], json!([]));

    for (line, expected) in [
        ("task list", "CANCELLED"),
        (&*format!("task list --agent {agent_path}"), "CANCELLED"),
        (&*format!("task show {id}"), "list_files"),
        ("task stats", "worker list_files  tasks 1"),
    ] {
        folder.prints(line, None, &[expected]).await;
    }

    host.delete(&at).gives(200).await;
    let caller = &shown.body["caller"];
    let purge = json!({ "agent_id": caller["agent_id"], "session_id": caller["session_id"] });
    host.post("/api/purges", &purge).gives(200).await;
    let left = host.get("/api/tasks").await;
    assert_eq!(left.body["tasks"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_lists_tasks_a_page_after_the_other() {
    let hour = json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]);
    let (folder, host) = started(hour).await;
    begun(
        &host,
        &json!([{ "start": [delegate("a"), delegate("b"), delegate("c")] }]),
    )
    .await;
    task_in(&host, "RUNNING").await;
    let listed = host.get("/api/tasks").await.body;
    let tasks = listed["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 3, "{listed}");
    let mut after: Option<String> = None;
    for (place, task) in tasks.iter().enumerate() {
        let mut arguments = vec!["task", "list", "--limit", "1"];
        if let Some(after) = &after {
            arguments.extend(["--after", after.as_str()]);
        }
        let output = folder.run(&arguments).await;
        let reported = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            reported.starts_with(task["task_id"].as_str().unwrap()),
            "{output:?}"
        );
        assert_eq!(reported.lines().count(), 1, "{output:?}");
        let notice = String::from_utf8_lossy(&output.stderr).into_owned();
        after = notice
            .split_once("--after ")
            .and_then(|more| more.1.split_whitespace().next())
            .map(str::to_owned);
        assert_eq!(after.is_some(), place + 1 < tasks.len(), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_delegation_is_cancelled_is_told_so_as_a_result() {
    let hour = json!([{ "start": [{ "key": "t", "timer": 3_600_000 }] }]);
    let mut config = puppets(&json!([
        { "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": ["delegate"] },
        {
            "agentId": "worker", "displayName": "Worker", "component": "puppet",
            "settings": { "script": { "steps": hour } },
        },
    ]));
    config["defaultModel"] = json!("m");
    let (_folder, host) = Folder::serving(config, &["assistant", "puppet"]).await;
    let opened = host
        .post("/api/agents/assistant/sessions", &json!({}))
        .await;
    let session = opened.text("session_id");
    let at = format!("/api/agents/{}/sessions/{session}", opened.text("agent_id"));
    let said = json!({ "content": "read a" });
    host.post(&format!("{at}/messages"), &said).gives(202).await;
    let task = task_in(&host, "RUNNING").await;
    let id = task["task_id"].as_str().unwrap();
    let cancel = format!("/api/tasks/{id}/cancel");
    host.post(&cancel, &json!({})).gives(200).await;
    idle(&host, &at).await;
    let path = format!("/api/sessions/{session}?from=1&to=100");
    let said = host.get(&path).await.body["messages"].to_string();
    for reported in [
        r#"\"code\":\"TASK_FAILED\""#,
        r#"\"taskState\":\"CANCELLED\""#,
    ] {
        assert!(said.contains(reported), "{reported}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_turn_waits_for_a_person_is_paused() {
    let asks = json!([{ "start": [{ "key": "q", "client": "confirmation" }] }]);
    let (folder, host) = started(asks).await;
    begun(&host, &json!([{ "start": [delegate("a")] }])).await;
    let task = task_in(&host, "PAUSED").await;
    let id = task["task_id"].as_str().unwrap();
    let output = folder.run(&["task", "cancel", id]).await;
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(reported.contains("is CANCELLED"), "{output:?}");
    task_in(&host, "CANCELLED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_come_a_page_at_a_time_and_end_with_what_their_callers_were_told() {
    let (_folder, host) = started(json!([{ "reply": "done" }])).await;
    let both = json!([{ "until": "all", "start": [delegate("a"), delegate("b")] }]);
    let at = begun(&host, &both).await;
    idle(&host, &at).await;
    let first = host.get("/api/tasks?limit=1").await.body;
    assert_eq!(first["tasks"][0]["state"], "COMPLETED", "{first}");
    let after = first["next_after"].as_str().unwrap();
    let second = host.get(&format!("/api/tasks?limit=5&after={after}")).await;
    let second = second.body;
    assert_eq!(second["tasks"].as_array().unwrap().len(), 1, "{second}");
    assert!(second["next_after"].is_null());
    assert_ne!(first["tasks"][0]["task_id"], second["tasks"][0]["task_id"]);
    for (path, field) in [
        ("/api/tasks?state=BUSY", "query:state"),
        ("/api/tasks?after=x", "query:after"),
        ("/api/tasks/stats?from=yesterday", "query:from"),
    ] {
        let answer = host.get(path).refused(400, "INVALID_QUERY").await;
        assert_eq!(answer.text("field"), field);
    }
}

/// A delegation that waits for room is stored: a process that is killed meanwhile begins it after
/// its restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_waits_for_room_survives_the_death_of_the_process() {
    let work = json!([{ "start": [{ "key": "t", "timer": 1_000 }] }, { "reply": "done" }]);
    let agents = json!([
        puppet(),
        {
            "agentId": "worker", "displayName": "Worker", "component": "puppet",
            "settings": { "script": { "steps": work } },
        },
    ]);
    let mut config = puppets(&agents);
    config["limits"] = json!({ "childrenMax": 1 });
    let (folder, host) = Folder::serving(config, &["puppet"]).await;
    let both = json!([{ "until": "all", "start": [delegate("a"), delegate("b")] }]);
    let at = begun(&host, &both).await;
    let queued = task_in(&host, "QUEUED").await;
    assert!(queued["started_at"].is_null(), "{queued}");
    assert!(queued["deadline"].is_string(), "{queued}");
    host.kill().await;
    let host = folder.serve().await;
    idle(&host, &at).await;
    let ended = host.get("/api/tasks?state=COMPLETED").await.body;
    let tasks = ended["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{ended}");
    let times: Vec<&str> = tasks
        .iter()
        .map(|task| task["started_at"].as_str().unwrap())
        .collect();
    assert_ne!(times[0], times[1], "one after the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_and_its_sums_have_the_tokens_the_time_and_the_money_that_it_used() {
    let worker = json!([
        { "start": [{ "key": "m", "model": "say something" }] },
        { "reply": "done" },
    ]);
    let price = json!({ "inputPerMillion": 1_000.0, "outputPerMillion": 1_000.0 });
    let (_folder, host) = started_with(worker, |config| {
        config["models"]["m"]["price"] = price;
    })
    .await;
    let at = begun(&host, &json!([{ "start": [delegate("a")] }])).await;
    idle(&host, &at).await;
    let task = task_in(&host, "COMPLETED").await;
    let stats = host.get("/api/tasks/stats").await.body;
    let sum = &stats["stats"][0];
    for used in ["tokens", "cost_micros"] {
        assert!(task[used].as_u64() > Some(0), "{used}: {task}");
        assert_eq!(sum[used], task[used], "{stats}");
    }
    let took = task["duration_ms"].as_u64();
    assert!(took.is_some() && sum["p50_ms"].as_u64() >= took, "{stats}");
    assert_eq!(sum["states"], json!({ "COMPLETED": 1 }), "{stats}");
    assert_eq!(sum["failures"], 0, "{stats}");
    assert_eq!(stats["cut_off"], false, "{stats}");
}

/// The words of a task's agent, whole and while its model writes them, come to whoever follows the
/// caller, and name their task.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_delegate_says_streams_to_the_clients_of_its_caller() {
    let worker = json!([
        { "start": [{ "key": "m", "model": "say something" }], "effects": [{ "say": "Listen." }] },
        { "reply": "done" },
    ]);
    let (_folder, host) = started(worker).await;
    let chat = json!({ "session_type": "chat" });
    let opened = host.post("/api/agents/puppet/sessions", &chat).await;
    let agent = opened.text("agent_id");
    let session = opened.text("session_id");
    let path = format!("/api/agents/{agent}/stream?view=log&session={session}&spawned=true");
    let mut frames = host.follow(&path, None).await;
    let steps = json!({ "steps": [{ "start": [delegate("a")] }] });
    let said = json!({ "content": steps.to_string() });
    let at = format!("/api/agents/{agent}/sessions/{session}/messages");
    host.post(&at, &said).gives(202).await;
    let following = async {
        let mut of_task = Vec::new();
        loop {
            let frame = frames.receive().await.expect("a frame");
            if frame.data["spawned"].is_object() {
                of_task.push(frame.data.clone());
            }
            if frame.event == "run.ended.v1" && frame.data["session_id"] == json!(session) {
                return of_task;
            }
        }
    };
    let of_task = timeout(PATIENCE, following).await.expect("a turn's end");
    let task = task_in(&host, "COMPLETED").await;
    for frame in &of_task {
        assert_eq!(frame["spawned"]["task_id"], task["task_id"], "{frame}");
    }
    let whole = of_task
        .iter()
        .any(|frame| frame["ephemeral"] != json!(true) && frame.to_string().contains("Listen."));
    let streamed = of_task
        .iter()
        .any(|frame| frame["ephemeral"] == json!(true) && frame["kind"] == "text");
    assert!(whole && streamed, "{of_task:#?}");
}
