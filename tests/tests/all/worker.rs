//! The built-in worker: every operation that it has for `delegate`, from an assistant's model to
//! real files and a real server.

use super::web_search::{Site, settings};
use agent_host_tests::world::SCRIPT;
use agent_host_tests::{Setup, World};
use domain::delegate::Target;
use domain::egress::Method;
use domain::grant::Grant;
use domain::message::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One task, and words of its result.
struct Task {
    operation: &'static str,
    parameters: Value,
    brings: &'static str,
}

fn task(operation: &'static str, parameters: Value, brings: &'static str) -> Task {
    Task {
        operation,
        parameters,
        brings,
    }
}

/// Every operation of the worker with all of its parameters, each of which builds on those before
/// it.
fn tasks(site: &Site) -> Vec<Task> {
    let item = json!({
        "url": site.url("/open/items"), "method": "POST",
        "headers": { "x-trace": "t-1", "content-type": "application/json" },
        "body": "{\"title\": \"Tides\"}",
    });
    vec![
        task(
            "write_file",
            json!({ "path": "/data/notes/a.txt", "content": "milk\nbread", "createParents": true }),
            "wrote 10 bytes",
        ),
        task(
            "read_file",
            json!({ "path": "/data/notes/a.txt", "offset": 1, "limit": 1 }),
            "bread",
        ),
        task(
            "list_files",
            json!({ "path": "/data/notes", "pattern": "*.txt", "maxDepth": 1 }),
            "a.txt",
        ),
        task(
            "search_files",
            json!({ "path": "/data", "pattern": "mi.k", "recursive": true }),
            "milk",
        ),
        task(
            "delete_file",
            json!({ "path": "/data/notes", "recursive": true }),
            "and all that was in it",
        ),
        task(
            "web_search",
            json!({ "query": "tides", "maxResults": 2 }),
            "https://tides.example/2",
        ),
        task(
            "web_fetch",
            json!({ "url": site.url("/open/page") }),
            "High at noon",
        ),
        task(
            "web_fetch",
            json!({ "url": site.url("/open/page"), "method": "HEAD" }),
            "tides-1",
        ),
        task("web_fetch", item, "201"),
    ]
}

/// A JSON value as TOML writes it within a line.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name:?} = {}", toml(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
            value.to_string()
        }
    }
}

/// A model that hands task N to the worker when it is told `do N`, and repeats the result.
fn script(tasks: &[Task]) -> String {
    let rules = tasks.iter().enumerate().map(|(number, task)| {
        let arguments = json!({
            "target": "worker", "operation": task.operation, "parameters": task.parameters,
        });
        format!(
            "[[rule]]\nwhen = {{ last = \"user\", user = \"^do {number}$\" }}\n[[rule.reply.calls]]\n\
             tool = \"delegate\"\narguments = {}\n",
            toml(&arguments)
        )
    });
    rules.chain([SCRIPT.to_owned()]).collect()
}

async fn world(site: &Site, tasks: &[Task]) -> World {
    let reads = [Method::Get, Method::Head];
    let web = Grant {
        network: vec![
            site.grant(&reads, "/open/page"),
            site.grant(&reads, "/search"),
            site.grant(&[Method::Post], "/open/items"),
        ],
        environment: settings("searxng", site.url("/")),
        ..Grant::default()
    };
    World::new(Setup {
        components: vec!["assistant", "worker", "files", "web"],
        definitions: vec![
            json!({
                "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": ["delegate"],
            }),
            json!({
                "agentId": "worker", "displayName": "Worker", "component": "worker",
                "toolAllowlist": ["*_file", "*_files", "web_*"], "agentAllowlist": [],
            }),
        ],
        script: script(tasks),
        grants: vec![("web", web)],
        ..Setup::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_worker_runs_through_delegate_with_real_tools() {
    let site = Site::new();
    let tasks = tasks(&site);
    let tried: BTreeSet<&str> = tasks.iter().map(|task| task.operation).collect();
    let offered: BTreeSet<&str> = Target::Worker.operations().map(|rule| rule.name).collect();
    assert_eq!(tried, offered);

    let world = world(&site, &tasks).await;
    let session = world.open("assistant").await;
    for (number, task) in tasks.iter().enumerate() {
        let reply = world
            .turn("assistant", session, &format!("do {number}"))
            .await;
        let result: Value = reply
            .strip_prefix("It says: ")
            .and_then(|result| serde_json::from_str(result).ok())
            .unwrap_or_else(|| panic!("{}: {reply}", task.operation));
        assert_eq!(result["success"], true, "{}: {result}", task.operation);
        assert_eq!(result["metadata"]["operation"], task.operation);
        // Lists and pages are data, everything else is text.
        let brought = format!("{}{}", result["data"], result["output"]);
        assert!(
            brought.contains(task.brings),
            "{}: {result}",
            task.operation
        );
    }

    assert!(!world.dir.path().join("files/notes").exists());
    let asked = site.asked();
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "get /search?q=tides&format=json&pageno=1",
            "get /open/page",
            "head /open/page",
            "post /open/items",
        ]
    );
    assert!(asked[3].head.contains("\r\nx-trace: t-1\r\n"), "{asked:?}");
    assert_eq!(asked[3].body, "{\"title\": \"Tides\"}");
    // What the tools brought came from outside, and stays marked when an agent hands it on.
    let messages = world.messages(session).await;
    let results: Vec<bool> = messages
        .iter()
        .filter(|message| message.role == Role::Tool)
        .map(|message| message.untrusted)
        .collect();
    assert_eq!(results, vec![true; tasks.len()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_grant_covers_is_told_with_its_code_and_its_place() {
    let site = Site::new();
    let items = site.url("/open/items");
    let tasks = [
        task(
            "web_fetch",
            json!({ "url": items, "method": "DELETE" }),
            "`web_fetch` with DELETE to `127.0.0.1:",
        ),
        task(
            "read_file",
            json!({ "path": "/data/out/passwd" }),
            "`read_file` of `/data/out/passwd`: the call is not allowed",
        ),
    ];
    let world = world(&site, &tasks).await;
    let files = world.dir.path().join("files");
    std::fs::create_dir_all(&files).unwrap();
    std::os::unix::fs::symlink("/etc", files.join("out")).unwrap();
    let session = world.open("assistant").await;
    for (number, task) in tasks.iter().enumerate() {
        let reply = world
            .turn("assistant", session, &format!("do {number}"))
            .await;
        let result: Value = reply
            .strip_prefix("It says: ")
            .and_then(|result| serde_json::from_str(result).ok())
            .unwrap_or_else(|| panic!("{}: {reply}", task.operation));
        let error = &result["error"];
        assert_eq!(error["code"], "NOT_ALLOWED", "{result}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.starts_with(task.brings), "{result}");
    }
    assert!(site.asked().is_empty());
}
