//! Grants that do not fit: folders at the wrong place, requests that a tool did not declare, and
//! other code than was given them before.
//!
//! The first mistakes of authors: files that are no plugin of this host.

use super::{err, folder, run};
use agent_host_tests::guests::{test_program, wasm};
use agent_host_tests::process::{Folder, Host, acting, puppets};
use domain::digest::Digest;
use serde_json::{Value, json};

/// A configuration with these folders for `effects`, whose tools write to `/data/log`, and with
/// `reach`, whose tool of the same name sends requests that it does not declare.
fn config(directories: &Value) -> Value {
    let call = |tool: &str| {
        let steps = json!([
            { "start": [{ "key": "t", "tool": tool, "args": {} }] },
            { "reply": "done" },
        ]);
        acting(tool, &steps)
    };
    let mut config = puppets(&json!([call("put"), call("reach")]));
    config["components"]["effects"] =
        json!({ "path": test_program("effects"), "directories": directories });
    config["components"]["reach"] = json!({ "path": test_program("reach") });
    config
}

/// Lets an agent make its call.
async fn call(host: &Host, agent: &str) {
    let path = format!("{}/messages?wait_s=30", host.open(agent).await);
    let answer = host.post(&path, &json!({ "content": "go" })).await;
    assert!(answer.status < 300, "{answer:?}");
}

/// A missing folder and a wrong place are in the ledger, in the check and in what is suggested.
/// Only the first is a refusal: with a folder, the call may have failed for another reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_folder_and_a_wrong_place_are_told_everywhere() {
    let elsewhere = json!([{ "path": "files", "at": "/workspace", "access": "read-write" }]);
    for (directories, audited, recorded, suggested) in [
        (
            json!([]),
            "refused files.read by notGranted  no folder is granted",
            "files.read was refused once by notGranted, last for put: no folder is granted",
            r#""directories": [{"path":"data/{user}","at":"/data","access":"read-write"}]"#,
        ),
        (
            elsewhere,
            "granted files.read by grant  nothing was opened in /workspace",
            "a call that failed may miss a folder, once, last of put: nothing was opened in \
             /workspace",
            "a call opened /data/log, and folders are only granted at /workspace",
        ),
    ] {
        let (folder, host) =
            Folder::serving(config(&directories), &["puppet", "effects", "reach"]).await;
        call(&host, "put").await;
        let audit = "audit --component effects";
        folder.prints(audit, 0, &[audited]).await;
        let recorded = format!("recorded {recorded}");
        let check = "component check effects";
        folder.prints(check, None, &[&recorded]).await;
        let suggest = "component suggest effects";
        folder.prints(suggest, 0, &[suggested]).await;
        host.kill().await;
    }
}

/// A tool that sends requests without declaring it is told just that, whatever is granted.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_a_tool_does_not_declare_are_told_as_that() {
    let (folder, host) = Folder::serving(config(&json!([])), &["puppet", "effects", "reach"]).await;
    call(&host, "reach").await;
    let refused = "refused net.http by notAsked (its tool does not declare net.http)  ";
    folder
        .prints("audit --component reach", 0, &[refused])
        .await;
    let note = "note: reach uses net.http and does not declare it: no grant opens it";
    let suggested = folder
        .prints("component suggest reach", None, &[note])
        .await;
    assert!(!suggested.contains("\"network\""), "{suggested}");
    let recorded = "net.http was refused once by notAsked (the tool does not declare net.http)";
    folder
        .prints("component check reach", None, &[recorded])
        .await;
    host.kill().await;
}

/// A component that imports HTTP and has no tool that declares it is told so by the check, which
/// fails. Refusals fail it with another code.
#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_components_fails_for_refusals_and_for_undeclared_imports() {
    let folder = Folder::new(config(&json!([])));
    folder.warm(&["puppet", "effects", "reach"]).await;
    let refused = "the check found 2 refused capabilities";
    folder
        .complains("component check effects", 3, &[refused])
        .await;
    let undeclared = patched("matrix", b"net.http", b"env.read");
    std::fs::write(folder.path().join("mine.wasm"), undeclared).unwrap();
    let mut config = config(&json!([]));
    config["components"]["mine"] = json!({
        "path": "mine.wasm", "network": [{ "host": "example.com" }], "environment": { "A": "b" },
        "directories": [{ "path": "files", "at": "/workspace", "access": "read-write" }],
        "keyValue": [{ "bucket": "notes", "access": "read-write" }],
    });
    folder.configure(config);
    let warning = "warning  it imports wasi:http, and none of its tools declares net.http: every \
                   request is refused, also what is granted now";
    let checked = folder.prints("component check mine", 1, &[warning]).await;
    let open = "open to tools that declare net.http";
    assert!(!checked.contains(open), "{checked}");
}

/// A file that is replaced while the host is stopped is told before anything runs with its grant,
/// and from then on until somebody pins it.
#[tokio::test(flavor = "multi_thread")]
async fn code_that_is_replaced_while_no_host_runs_is_told_before_and_after_the_start() {
    let mut config = config(&json!([]));
    config["components"]["effects"]["path"] = json!("effects.wasm");
    let folder = Folder::new(config.clone());
    folder.warm(&["puppet", "effects", "reach"]).await;
    let file = folder.path().join("effects.wasm");
    let old = wasm("effects");
    // A section at its end that says nothing: other bytes, the same tools.
    let new = [old.clone(), vec![0, 2, 1, b'x']].concat();
    let before = Digest::of(&old).reference();
    let checked = async || folder.prints("component check effects", None, &[]).await;

    std::fs::write(&file, &old).unwrap();
    let lines = checked().await;
    assert!(!lines.contains("  changed  "), "never started: {lines}");
    let host = folder.serve().await;
    assert!(host.stop().await.success(), "{}", folder.log());
    let lines = checked().await;
    assert!(!lines.contains("  changed  "), "nothing changed: {lines}");

    std::fs::write(&file, &new).unwrap();
    let reported = format!("  changed  the last start gave this grant to {before};");
    let lines = checked().await;
    assert!(lines.contains(&reported), "{reported}: {lines}");
    let host = folder.serve().await;
    let reported = format!("  changed  this grant was given to {before} before;");
    let lines = checked().await;
    assert!(lines.contains(&reported), "while it runs: {lines}");
    host.kill().await;
    let lines = checked().await;
    assert!(lines.contains(&reported), "after a crash: {lines}");
    let printed = folder
        .run(&["component", "check", "effects", "--json"])
        .await;
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(printed["replaces"], json!(before), "{printed}");

    // Another grant makes nobody look at the code.
    config["components"]["effects"]["network"] = json!([{ "host": "a.example" }]);
    folder.configure(config.clone());
    let host = folder.serve().await;
    assert_eq!(replaces(&host).await, json!(before));
    let lines = checked().await;
    assert!(lines.contains(&reported), "with another grant: {lines}");
    assert!(host.stop().await.success(), "{}", folder.log());

    config["components"]["effects"]["sha256"] = json!(Digest::of(&new).hex());
    folder.configure(config);
    let host = folder.serve().await;
    assert_eq!(replaces(&host).await, Value::Null, "it is pinned");
    let lines = checked().await;
    assert!(!lines.contains("  changed  "), "it is pinned: {lines}");
}

/// Returns what the running host says which code the component `effects` took the place of.
async fn replaces(host: &Host) -> Value {
    let listed = host.get("/api/components").await;
    let listed = listed.body["components"].as_array().unwrap();
    let effects = listed.iter().find(|it| it["name"] == "effects").unwrap();
    effects["replaces"].clone()
}

/// A call that ends at its first refusal is repeated with a stand-in for the answer, and what it
/// would do next is told as well. All of it was only ever refused, and is in no line to paste.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_after_a_refused_request_and_its_next_ones_are_suggested() {
    let folder = Folder::new(config(&json!([])));
    folder.warm(&["puppet", "effects", "reach"]).await;
    let arguments = json!({ "url": "https://a.example/x", "then": "https://b.example/y" });
    let call = json!({ "tool": "fetch", "arguments": arguments });
    std::fs::write(folder.path().join("calls.jsonl"), call.to_string()).unwrap();
    let refused = "refused; add to these lists of components.reach only what is meant:\n  \
                   network: {\"host\":\"a.example\",\"path\":\"/x\"}\n  \
                   network: {\"host\":\"b.example\",\"path\":\"/y\"}\n";
    let suggest = "component suggest reach --calls calls.jsonl";
    let suggested = folder.prints(suggest, None, &[refused]).await;
    assert!(!suggested.contains("\"network\""), "{suggested}");
}

/// The name of the interface that a component of tools exports, and that of a later version.
const TOOLS: [&[u8]; 2] = [
    b"agent-host:plugin/tools@0.2.0",
    b"agent-host:plugin/tools@0.3.0",
];

/// Returns a program's code with one text in place of another of the same length.
pub(super) fn patched(program: &str, text: &[u8], by: &[u8]) -> Vec<u8> {
    assert_eq!(text.len(), by.len());
    let mut code = wasm(program);
    let found: Vec<usize> = code
        .windows(text.len())
        .enumerate()
        .filter_map(|(at, window)| (window == text).then_some(at))
        .collect();
    assert!(!found.is_empty(), "the text is there");
    for at in found {
        code[at..at + by.len()].copy_from_slice(by);
    }
    code
}

/// Every first mistake of an author is told with what it is instead and with the fix.
#[tokio::test(flavor = "multi_thread")]
async fn every_first_mistake_of_an_author_is_told_with_its_fix() {
    let folder = folder().await;
    let wat = |text: &str| wat::parse_str(text).unwrap();
    let program = r#"(component
        (component $c) (instance $i (instantiate $c))
        (export "wasi:cli/run@0.2.3" (instance $i)))"#;
    let filter = r#"(component
        (component $c) (instance $i (instantiate $c))
        (export "agent-host:plugin/filter@0.3.0" (instance $i)))"#;
    let twofold = r#"(component
        (component $c) (instance $i (instantiate $c))
        (export "agent-host:plugin/tools@0.2.0" (instance $i))
        (export "agent-host:plugin/trigger@0.2.0" (instance $i)))"#;
    for (code, what, fix) in [
        (
            wat("(module)"),
            "a core module",
            "build it with `cargo build --target wasm32-wasip2`",
        ),
        (
            b"\x7fELF\x02\x01\x01".to_vec(),
            "machine code",
            "build it with `cargo build --target wasm32-wasip2`",
        ),
        (
            wat(program),
            "it is a program that is run, and no plugin",
            "the world `agent-plugin`, `tool-plugin`, `trigger-plugin` or `connector-plugin`",
        ),
        (
            wat(filter),
            "the kind `filter` of version 0.3.0",
            "this host has 0.1.0 and 0.2.0; this host runs agents, tools, triggers and connectors",
        ),
        (
            wat(twofold),
            "`agent-host:plugin/tools@0.2.0` and `agent-host:plugin/trigger@0.2.0`",
            "make a component of each",
        ),
        (
            patched("echo", TOOLS[0], TOOLS[1]),
            "built for version 0.3.0 of `agent-host:plugin`",
            "this host has 0.1.0 and 0.2.0: build it against the WIT files of this host",
        ),
        (
            wasm("unknown-import"),
            "what this host does not have: acme:teleport/beam@1.0.0",
            "build it against the WIT files of this host",
        ),
        (
            patched("matrix", b"net.http", b"net.htpp"),
            "`matrix.capabilities` has `net.htpp`, which is no capability",
            "the nearest is `net.http`",
        ),
        (
            patched("effects", b"files.read", b"filed.read"),
            "has `filed.read`, which is no capability",
            "the nearest is `files.read`",
        ),
        (
            wasm("trap-in-describe"),
            "trapped in `describe`",
            "which gets no capability at all",
        ),
        (
            wasm("echo")[..1_000].to_vec(),
            "cut short",
            "build it again",
        ),
    ] {
        std::fs::write(folder.path().join("mine.wasm"), code).unwrap();
        let reported = run(
            &folder,
            &["component", "inspect", "mine.wasm"],
            super::SOUND,
        )
        .await;
        let text = err(&reported);
        assert!(
            reported.status.code() == Some(1) && text.contains(what) && text.contains(fix),
            "{what}\n{fix}\n{text}"
        );
    }
}

/// A file that was inspected once is not compiled again, whether there is a configuration or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_inspected_again_comes_from_the_cache() {
    let folder = folder().await;
    let file = folder.path().join("mine.wasm");
    std::fs::write(&file, wasm("echo")).unwrap();
    let entries = || {
        let cache = std::fs::read_dir(folder.path().join("data/component-cache")).unwrap();
        let named = |name: &str| name.starts_with(&Digest::of(&wasm("echo")).hex());
        cache
            .flatten()
            .filter(|entry| named(&entry.file_name().to_string_lossy()))
            .map(|entry| (entry.path(), entry.metadata().unwrap().modified().unwrap()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let inspect = ["component", "inspect", "mine.wasm"];
    let first = run(&folder, &inspect, super::SOUND).await;
    assert!(first.status.success(), "{}", err(&first));
    let kept = entries();
    assert!(!kept.is_empty());
    let second = run(&folder, &inspect, super::SOUND).await;
    assert_eq!((first.stdout, entries()), (second.stdout, kept));
}
