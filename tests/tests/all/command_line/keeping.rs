//! The keeper of a program by itself, with orders that no host would give.

use agent_host_tests::process::program;
use agent_host_tests::skip::{WITHOUT_SCRIPT, needed, terminals};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The order to run a line of a shell in a folder, as the host writes it.
fn order(folder: &Path, line: &str) -> Value {
    json!({
        "program": "/bin/sh", "arguments": ["-c", line],
        "environment": { "PATH": "/usr/local/bin:/usr/bin:/bin" }, "folder": folder,
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
    let look = "if (: > /dev/tty) 2>/dev/null; then echo reached; else echo apart; fi";
    let line = format!("{look} > program");
    std::fs::write(at("order"), format!("{}\n", order(dir.path(), &line))).unwrap();
    // The end of its input would end the program.
    let run = format!(
        "{look} > shell; \
         (cat order; for _ in $(seq 400); do [ -s program ] && break; sleep 0.05; done) \
         | \"$KEEPER\" keep-program"
    );
    let status = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &run])
        .arg("/dev/null")
        .current_dir(dir.path())
        .env("SHELL", "/bin/sh")
        .env("KEEPER", program())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    let told = |name: &str| std::fs::read_to_string(at(name)).unwrap_or_default();
    assert_eq!(told("shell"), "reached\n", "there is a terminal: {status}");
    assert_eq!(told("program"), "apart\n", "{status}");
}
