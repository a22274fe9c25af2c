//! `agent-host dev`, the program itself: it takes up changed components and grants while it serves,
//! keeps what was served when something is wrong, and says which.

use agent_host_tests::guests::{root, wasm};
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, PATIENCE, Printed, puppet, puppets, tells};
use domain::digest::Digest;
use domain::manifest::Manifest;
use serde_json::{Value, json};
use std::time::Instant;

/// The component of the tools, from the folder.
const TOOLS: &str = "tools.wasm";

/// A configuration with the puppet, and with tools from a file in the folder.
fn config(grant: &Value) -> Value {
    let mut config = puppets(&json!([puppet(),]));
    let mut tools = json!({ "path": TOOLS });
    tools
        .as_object_mut()
        .unwrap()
        .extend(grant.as_object().unwrap().clone());
    config["components"]["tools"] = tools;
    config
}

/// A grant of the folder that the tools write to.
fn a_folder() -> Value {
    json!({ "directories": [{ "path": "files", "at": "/data", "access": "read-write" }] })
}

/// The `effects`, whose tools end with `DONE` in place of `done`.
fn shouting_effects() -> Vec<u8> {
    let mut code = wasm("effects");
    let at = code
        .windows(5)
        .position(|bytes| bytes == b" done")
        .expect("the tool's words");
    code[at..at + 5].copy_from_slice(b" DONE");
    code
}

/// A component whose manifest tells this version.
fn versioned(code: &[u8], version: &str) -> Vec<u8> {
    let manifest = json!({ "manifest": 1, "version": version }).to_string();
    let manifest = Manifest::parse(manifest.as_bytes()).unwrap();
    runtime::stamped(code, &manifest).unwrap()
}

fn digest(code: &[u8]) -> String {
    Digest::of(code).reference()
}

/// Puts a component into its place, as a build does.
fn build(folder: &Folder, code: &[u8]) {
    let built = folder.path().join("built.tmp");
    std::fs::write(&built, code).unwrap();
    std::fs::rename(built, folder.path().join(TOOLS)).unwrap();
}

/// The turn after a change.
struct Next {
    /// The report of the change.
    changed: Value,
    /// The reply.
    reported: String,
    /// The time at which it was there.
    at: Instant,
}

async fn started(folder: &Folder, more: &[&str]) -> (Host, Printed) {
    let (host, mut printed) = folder
        .start_dev(more)
        .await
        .unwrap_or_else(|ended| panic!("{}", ended.said));
    printed.event("watching").await;
    (host, printed)
}

/// Has the puppet play steps, and returns its report.
async fn play(host: &Host, session: &str, steps: &Value) -> String {
    let words = json!({ "content": json!({ "steps": steps }).to_string() });
    let said = host
        .post(&format!("{session}/messages?wait_s=30"), &words)
        .await;
    let reply = said.body.pointer("/reply/text");
    reply
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{said:?}"))
        .to_owned()
}

/// Returns the lines of the ledger on a tool, the oldest first.
async fn ledger_of(host: &Host, tool: &str) -> Vec<Value> {
    let path = format!("/api/audit?component=tools&tool={tool}&limit=1000");
    let listed = host.get(&path).await;
    listed.body["lines"].as_array().unwrap().clone()
}

fn call(tool: &str) -> Value {
    json!([{ "start": [{ "key": "t", "tool": tool }] }])
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_code_is_called_in_the_next_turn_and_a_turn_under_way_ends_with_the_old() {
    let folder = Folder::new(config(&a_folder()));
    let old = versioned(&wasm("effects"), "0.1.0");
    let new = versioned(&shouting_effects(), "0.2.0");
    build(&folder, &old);
    folder.warm(&["puppet"]).await;
    let (host, mut printed) = started(&folder, &[]).await;
    let first = host.open("puppet").await;
    let steps = json!([
        { "until": "all", "start": [{ "key": "a", "tool": "look" }] },
        { "until": "all", "start": [{ "key": "t", "timer": 10_000 }] },
        { "until": "all", "start": [{ "key": "b", "tool": "look" }] },
    ]);
    let swap = async {
        until(async || !folder.effects().is_empty()).await;
        build(&folder, &new);
        let changed = printed.event("component").await;
        let second = host.open("puppet").await;
        let reported = play(&host, &second, &call("look")).await;
        Next {
            changed,
            reported,
            at: Instant::now(),
        }
    };
    let under_way = async {
        let reported = play(&host, &first, &steps).await;
        (reported, Instant::now())
    };
    let ((under_way, ended), next) = tokio::join!(under_way, swap);
    assert!(next.at < ended, "the next turn was over before that one");
    let Next {
        changed,
        reported: next,
        ..
    } = next;
    assert_eq!(under_way.matches("look done").count(), 2, "{under_way}");
    tells(&next, &["look DONE"]);
    assert_eq!(
        changed["code"],
        json!({ "before": digest(&old), "after": digest(&new) })
    );
    assert_eq!(changed["component"], "tools");
    let calls = ledger_of(&host, "look").await;
    let mut versions: Vec<(Value, Value)> = calls
        .iter()
        .map(|call| (call["code"].clone(), call["version"].clone()))
        .collect();
    versions.dedup();
    let of_old = (json!(digest(&old)), json!("0.1.0"));
    let of_new = (json!(digest(&new)), json!("0.2.0"));
    assert_eq!(versions, [of_old.clone(), of_new, of_old]);

    // Another program in its place: what it offers, imports and asks for is told.
    build(&folder, &wasm("echo"));
    let changed = printed.event("component").await;
    assert_eq!(
        changed["asked"]["removed"],
        json!(["files.read", "files.write"])
    );
    let imports = |changed: &Value, which: &str| changed["imports"][which].to_string();
    let progress = "\"agent-host:plugin/progress@";
    assert!(imports(&changed, "added").contains(progress), "{changed}");
    assert!(
        !imports(&changed, "removed").contains(progress),
        "{changed}"
    );
    let names = |which: &str| changed["tools"][which].as_array().unwrap().clone();
    assert!(names("added").contains(&json!("echo")), "{changed}");
    assert!(names("removed").contains(&json!("look")), "{changed}");
    let third = host.open("puppet").await;
    let reported = play(&host, &third, &call("echo")).await;
    tells(&reported, &["parts {}"]);
    let gone = play(&host, &third, &call("look")).await;
    tells(&gone, &["there is no tool `look`"]);

    build(&folder, &new);
    let changed = printed.event("component").await;
    assert!(imports(&changed, "removed").contains(progress), "{changed}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_told_once_and_the_old_code_serves() {
    let folder = Folder::new(config(&a_folder()));
    build(&folder, &wasm("effects"));
    folder.warm(&["puppet", "effects"]).await;
    let (host, mut printed) = started(&folder, &[]).await;
    let session = host.open("puppet").await;
    build(&folder, b"\0asm this is no component");
    let refused = printed.event("refused").await;
    assert_eq!(refused["subject"], "tools", "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("components.tools: cannot load"),
        "{refused}"
    );
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look done"]);

    // A change elsewhere is taken up all the same, and the error is not told again.
    folder.configure(config(&json!({})));
    let next = printed.find(|it| !it["event"].is_null());
    let next = tokio::time::timeout(PATIENCE, next).await.unwrap().unwrap();
    assert_eq!(next["event"], "component", "{next}");
    assert_eq!(next["code"]["before"], next["code"]["after"], "{next}");
    build(&folder, &shouting_effects());
    let next = printed.event("component").await;
    assert_ne!(next["code"]["before"], next["code"]["after"], "{next}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_taken_out_of_the_file_refuses_the_next_call() {
    let folder = Folder::new(config(&a_folder()));
    build(&folder, &wasm("effects"));
    folder.warm(&["puppet", "effects"]).await;
    let (host, mut printed) = started(&folder, &[]).await;
    let session = host.open("puppet").await;
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look done"]);

    folder.configure(config(&json!({})));
    let changed = printed.event("component").await;
    let refused: Vec<&Value> = changed["review"]["capabilities"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["status"] == "refused")
        .map(|it| &it["capability"])
        .collect();
    assert_eq!(refused, ["files.read", "files.write"], "{changed}");
    let line = changed["review"]["lines"][0]["line"].as_str().unwrap();
    assert!(line.contains("directories"), "the line to paste: {changed}");
    let calls = folder.effects().len();
    let reported = play(&host, &session, &call("look")).await;
    assert!(!reported.contains("look done"), "{reported}");
    assert_eq!(folder.effects().len(), calls, "it reached no file");

    // A file that is no configuration, and keys that are read at a start.
    std::fs::write(folder.config_file(), "{ \"agents\": 7 }").unwrap();
    let refused = printed.event("refused").await;
    assert_eq!(refused["subject"], "configuration");
    let reported = play(&host, &session, &call("look")).await;
    assert!(!reported.contains("look done"), "{reported}");
    let mut other = config(&a_folder());
    other["server"] = json!({ "listen": "127.0.0.1:1", "dataDir": "elsewhere" });
    other["limits"] = json!({ "hopsMax": 3 });
    folder.configure(other);
    let named = printed.event("needs_restart").await;
    let keys = ["server.dataDir", "server.listen"];
    assert_eq!(named["keys"], json!(keys));
    printed.event("component").await;
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look done"]);
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_stays_in_force_while_code_changes() {
    let pinned = |code: &[u8]| {
        let mut grant = a_folder();
        grant["sha256"] = json!(Digest::of(code).hex());
        config(&grant)
    };
    let folder = Folder::new(pinned(&wasm("effects")));
    build(&folder, &wasm("effects"));
    folder.warm(&["puppet", "effects"]).await;
    let (host, mut printed) = started(&folder, &[]).await;
    let session = host.open("puppet").await;
    build(&folder, &shouting_effects());
    let refused = printed.event("refused").await;
    assert!(refused.to_string().contains("`sha256` pins"), "{refused}");
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look done"]);
    folder.configure(pinned(&shouting_effects()));
    printed.event("component").await;
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look DONE"]);
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_built_when_they_change_and_a_failed_build_leaves_the_old_code() {
    let folder = Folder::new(config(&a_folder()));
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, bytes: &[u8]| std::fs::write(at(name), bytes).unwrap();
    std::fs::create_dir(at("src")).unwrap();
    // The source is the component, but for a line that says that it is broken.
    write("src/source", &wasm("effects"));
    let command = "echo building >&2; ! grep -qx broken src/mark && cp src/source built.tmp && mv \
                   built.tmp tools.wasm";
    write("src/mark", b"fine");
    folder.warm(&["puppet", "effects"]).await;
    let (host, mut printed) = started(&folder, &["--watch", "src", "--build", command]).await;
    let session = host.open("puppet").await;
    let reported = play(&host, &session, &call("look")).await;
    assert!(
        reported.contains("look done"),
        "built before the start: {reported}"
    );

    write("src/mark", b"broken\n");
    write("src/source", &shouting_effects());
    let failed = printed.event("build_failed").await;
    assert!(
        failed["error"].as_str().unwrap().contains("exit status: 1"),
        "{failed}"
    );
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look done"]);

    write("src/mark", b"fine\n");
    printed.event("built").await;
    printed.event("component").await;
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look DONE"]);
    assert!(folder.log().contains("building\n"), "its output is shown");
    assert!(host.stop().await.success());
}

/// Neither is a source: the folder, in which a tool writes, and the rules, which are read at a
/// start.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_writes_builds_nothing_and_changed_rules_are_named_for_a_restart() {
    let grant = json!({ "directories": [
        { "path": "src/out", "at": "/data", "access": "read-write" },
    ] });
    let folder = Folder::new(config(&grant));
    std::fs::create_dir_all(folder.path().join("src/out")).unwrap();
    build(&folder, &wasm("effects"));
    folder.warm(&["puppet", "effects"]).await;
    let (host, mut printed) = started(&folder, &["--watch", "src", "--build", "true"]).await;
    let session = host.open("puppet").await;
    let reported = play(&host, &session, &call("look")).await;
    tells(&reported, &["look done"]);
    assert!(folder.path().join("src/out/log").is_file());
    let script = folder.path().join("script.toml");
    let rules = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, format!("{rules}\n# Changed.\n")).unwrap();
    // A build would have come before.
    let next = printed.find(|it| !it["event"].is_null());
    let next = tokio::time::timeout(PATIENCE, next).await.unwrap().unwrap();
    assert_eq!(next["event"], "needs_restart", "{next}");
    assert_eq!(next["keys"], json!(["providers.scripted.script"]));
    std::fs::write(folder.path().join("src/source"), "changed").unwrap();
    printed.event("built").await;
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_listens_on_loopback_alone_and_says_what_is_wrong_with_its_options() {
    let folder = Folder::new(config(&json!({})));
    let file = root().join("Cargo.toml").display().to_string();
    for (arguments, words) in [
        (
            &["dev", "--listen", "0.0.0.0:0"][..],
            &["server.listen: 0.0.0.0:0", "--listen 127.0.0.1:0"][..],
        ),
        (&["dev", "--watch", "src"], &["--build"]),
        (
            &["dev", "--build", "true", "--watch", &file],
            &["--watch", "is not a folder"],
        ),
    ] {
        let ended = folder.run(arguments).await;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {said}");
        for words in words {
            assert!(said.contains(words), "{arguments:?}: {said}");
        }
    }
}
