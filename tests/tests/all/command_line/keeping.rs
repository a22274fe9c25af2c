//! The supervisor of a program by itself, with orders that no host would give.

use agent_host_tests::process::program;
use agent_host_tests::skip::{WITHOUT_SCRIPT, needed, terminals};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

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
