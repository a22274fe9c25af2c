//! The host's side of a program in a model's place: what it does for its prompt, and what it tells
//! of a turn.
//!
//! The supervisor of a program by itself, with orders that no host would give.

use super::Scene;
use agent_host_tests::process::{Frame, program};
use agent_host_tests::skip::{WITHOUT_SCRIPT, needed, terminals};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A scene whose agent may use tools that list items.
async fn with_lists() -> Scene {
    let scene = Scene::new(json!({})).await;
    let mut config = scene.config();
    config["agents"][0]["toolAllowlist"] = json!(["todo_*"]);
    config["components"] = json!({ "lists": {
        "keyValue": [{ "bucket": "lists", "scope": "user", "access": "read-write" }],
    } });
    scene.folder.configure(config);
    scene.folder.warm(&["lists"]).await;
    scene
}

#[tokio::test(flavor = "multi_thread")]
async fn no_tool_lists_items_for_a_program_that_is_told_of_none() {
    let scene = with_lists().await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    assert_eq!(host.reply(&session, "hello").await, "fresh: hello");
    let (agent, _) = session.split_once("/sessions/").unwrap();
    let prompt = host.get(&format!("{agent}/prompt")).await.body;
    let parts = prompt["parts"].as_array().unwrap().iter();
    assert!(parts.map(|part| &part["name"]).eq(["base"]), "{prompt}");
    let audit = host.get("/api/audit?limit=1000").await.body;
    let lines = audit["lines"].as_array().unwrap();
    let is_listing = |line: &Value| line["tool"] == "todo_items";
    assert!(!lines.iter().any(is_listing), "{audit}");
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_own_calls_are_shown_while_they_are_made() {
    let scene = Scene::new(json!({})).await;
    let host = scene.start().await;
    let session = host.open("assistant").await;
    let stream = session.replacen("/sessions/", "/stream?session=", 1);
    let mut frames = host.follow(&stream, None).await;
    frames.until("connected").await;
    host.turn(&session, "hello").gives(200).await;
    let frames = frames.until("stream_complete").await;
    let own = frames
        .iter()
        .filter(|frame| frame.event == "program_tool_call");
    let own: Vec<&Value> = own.map(|frame| &frame.data).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert_eq!(own[0]["tool"], "Read", "{own:?}");
    assert!(own[0]["operation_id"].is_string(), "{own:?}");
    let is_the_hosts = |frame: &&Frame| frame.event.starts_with("tool_");
    assert_eq!(frames.iter().filter(is_the_hosts).count(), 0);
    assert!(host.stop().await.success(), "{}", scene.folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_turn_of_a_program_names_the_limit_or_the_programs_own_words() {
    for (word, limits, expected) in [
        (
            "hang",
            json!({ "turnMsMax": 1_000, "graceMs": 300 }),
            "it took longer than `limits.turnMsMax`",
        ),
        (
            "flood",
            json!({ "outputBytesMax": 100_000, "graceMs": 300 }),
            "it wrote more than `limits.outputBytesMax`",
        ),
        (
            "swarm",
            json!({ "processesMax": 20, "graceMs": 300 }),
            "it had more processes than `limits.processesMax`",
        ),
        (
            "half",
            json!({}),
            "ended before its end was told; at last it said:",
        ),
        (
            "error",
            json!({}),
            "the program reports: \"API Error: 401\"",
        ),
    ] {
        let scene = Scene::new(limits).await;
        let host = scene.start().await;
        let session = host.open("assistant").await;
        let said = host.turn(&session, word).gives(200).await.body;
        assert_eq!(said["outcome"], "failed", "{word}: {said}");
        let ended = host.story(&session, "run.ended.v1").await;
        let reason = ended[0]["reason"].as_str().unwrap();
        assert!(reason.contains(expected), "{word}: {reason}");
        assert!(!reason.contains("status"), "{word}: {reason}");
        // Everybody who may read sees how a model does, and not what was said in somebody's turn.
        let models = host.get("/api/models").await.body;
        let models = models.to_string();
        let reported = expected.split(": \"").next().unwrap().trim_end_matches(':');
        assert!(models.contains(reported), "{word}: {models}");
        if let Some((_, words)) = reason.split_once(": \"") {
            let words = words.split('"').next().unwrap();
            assert!(
                !words.is_empty() && !models.contains(words),
                "{word}: {models}"
            );
        }
        scene.nothing_is_left().await;
        assert!(host.stop().await.success(), "{}", scene.folder.log());
    }
}

/// The order to run a line of a shell in a folder, as the host writes it.
fn order(folder: &Path, line: &str) -> Value {
    json!({
        "program": "/bin/sh", "arguments": ["-c", line],
        "environment": { "PATH": "/usr/local/bin:/usr/bin:/bin" }, "folder": folder,
        "temporary": folder.join("tmp"),
        "processes_max": 50, "memory_bytes_max": 1_u64 << 30, "grace_ms": 300,
        "confinement": {
            "read": ["/usr", "/bin", "/lib", "/lib64", "/proc"],
            "write": ["/dev", folder], "is_required": false,
            "cpu_s_max": 60, "file_bytes_max": 1_000_000,
        },
    })
}

/// The order grants the program all devices: it is the session that keeps it from the terminal.
#[test]
fn a_program_cannot_reach_the_terminal_of_the_host() {
    let Some(()) = needed(terminals(), WITHOUT_SCRIPT) else {
        return;
    };
    let dir = TempDir::new().unwrap();
    let at = |name: &str| dir.path().join(name);
    let inspection = "if (: > /dev/tty) 2>/dev/null; then echo reached; else echo apart; fi";
    let line = format!("{inspection} > program");
    std::fs::write(at("order"), format!("{}\n", order(dir.path(), &line))).unwrap();
    // The end of its input would end the program.
    let run = format!(
        "{inspection} > shell; \
         (cat order; for _ in $(seq 400); do [ -s program ] && break; sleep 0.05; done) \
         | \"$SUPERVISOR\" keep-program"
    );
    let status = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &run])
        .arg("/dev/null")
        .current_dir(dir.path())
        .env("SHELL", "/bin/sh")
        .env("SUPERVISOR", program())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let reported = |name: &str| std::fs::read_to_string(at(name)).unwrap_or_default();
    assert_eq!(
        reported("shell"),
        "reached\n",
        "there is a terminal: {status}"
    );
    assert_eq!(reported("program"), "apart\n", "{status}");
}

/// Children that come and go, and neither hear `SIGTERM` nor are in the program's group.
#[test]
fn nothing_of_a_program_that_has_ended_is_left() {
    let dir = TempDir::new().unwrap();
    let mark = dir.path().to_str().unwrap();
    let child = r#"trap "" TERM; while :; do (sleep 0.01); done"#;
    let line = format!(
        "i=0; while [ $i -lt 12 ]; do setsid sh -c '{child}' {mark} & i=$((i+1)); done; sleep 0.2"
    );
    let mut supervisor = Command::new(program())
        .arg("keep-program")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Open until it has ended: the end of its input would end the program.
    let mut input = supervisor.stdin.take().unwrap();
    writeln!(input, "{}", order(dir.path(), &line)).unwrap();
    let status = supervisor.wait().unwrap();
    assert_eq!(
        status.code(),
        Some(0),
        "the program's own end, and nothing left"
    );
    let left = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            command
                .split(|byte| *byte == 0)
                .any(|word| word == mark.as_bytes())
        });
    assert_eq!(left.count(), 0);
}
