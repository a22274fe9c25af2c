//! Providers that are programs: every mistake of their config, and calls where nothing may be
//! started.

use crate::setting::prompt;
use agent_host_llm::{Config, Gateway, NoDeltas};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A folder with a program, a folder for it, and one that it is installed in.
fn scene() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["work", "work/inner", "bin"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    for name in ["bin/claude", "bin/text", "work/claude"] {
        let mode = if name == "bin/text" { 0o644 } else { 0o755 };
        let path = dir.path().join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    dir
}

fn config(kind: &str, more: &Value, program: &Value) -> Config {
    let mut whole = json!({
        "enabled": true, "path": "bin/claude", "folder": "work", "home": "homes",
    });
    merge(&mut whole, program);
    let mut provider = json!({ "kind": kind, "program": whole });
    merge(&mut provider, more);
    let config = json!({
        "providers": { "p": provider },
        "models": { "m": { "provider": "p", "model": "large" } },
    });
    serde_json::from_value(config).unwrap()
}

/// Sets the fields of an object; null takes one out.
fn merge(object: &mut Value, more: &Value) {
    let object = object.as_object_mut().unwrap();
    for (name, value) in more.as_object().unwrap() {
        if value.is_null() {
            object.remove(name);
        } else {
            object.insert(name.clone(), value.clone());
        }
    }
}

fn set_up(dir: &Path, config: Config) -> Result<Gateway, String> {
    Gateway::new(config, dir, &|_| None).map_err(|error| error.to_string())
}

#[test]
fn every_mistake_of_a_program_is_named_by_its_key() {
    let dir = scene();
    for (kind, more, reported) in [
        (
            "claude-cli",
            json!({ "program": null }),
            "program`: missing",
        ),
        ("codex-cli", json!({ "baseUrl": "http://x" }), "baseUrl`"),
        ("pi-cli", json!({ "script": "x" }), "script`"),
        (
            "openai-compatible",
            json!({ "baseUrl": "http://127.0.0.1:1" }),
            "program`: has no meaning",
        ),
    ] {
        let error = set_up(dir.path(), config(kind, &more, &json!({}))).unwrap_err();
        let reported = format!("`providers.p.{reported}");
        assert!(error.contains(&reported), "{kind} {more}: {error}");
    }
    for (kind, program, key, reported) in [
        ("codex-cli", json!({ "login": true }), "login", ""),
        ("claude-cli", json!({ "path": "bin/none" }), "path", ""),
        (
            "claude-cli",
            json!({ "path": "bin" }),
            "path",
            "it is not a file",
        ),
        ("claude-cli", json!({ "path": "bin/text" }), "path", ""),
        ("claude-cli", json!({ "folder": "none" }), "folder", ""),
        (
            "claude-cli",
            json!({ "folder": "bin/claude" }),
            "folder",
            "it is not a folder",
        ),
        ("claude-cli", json!({ "home": "work/homes" }), "home", ""),
        ("claude-cli", json!({ "home": "." }), "home", ""),
        (
            "claude-cli",
            json!({ "path": "work/claude" }),
            "",
            "the program's own file is in it",
        ),
        (
            "claude-cli",
            json!({ "readFolders": ["bin", "none"] }),
            "readFolders[1]",
            "",
        ),
        (
            "claude-cli",
            json!({ "environment": ["LANG", "sk-key"] }),
            "environment[1]",
            "",
        ),
        (
            "claude-cli",
            json!({ "variables": { "A=B": "x" } }),
            "variables.A=B",
            "",
        ),
        (
            "claude-cli",
            json!({ "limits": { "turnMsMax": 0 } }),
            "limits.turnMsMax",
            "",
        ),
        // What it would misread, or reach elsewhere.
        ("pi-cli", json!({ "tools": ["read", ""] }), "tools[1]", ""),
        ("pi-cli", json!({ "tools": ["--x"] }), "tools[0]", ""),
        (
            "pi-cli",
            json!({ "variables": { "HOME": "/srv" } }),
            "variables.HOME",
            "",
        ),
        (
            "pi-cli",
            json!({ "environment": ["LANG", "TMPDIR"] }),
            "environment[1]",
            "",
        ),
        (
            "claude-cli",
            json!({ "variables": { "CLAUDE_CONFIG_DIR": "/x" } }),
            "variables.CLAUDE_CONFIG_DIR",
            "",
        ),
        (
            "codex-cli",
            json!({ "variables": { "CODEX_HOME": "/x" } }),
            "variables.CODEX_HOME",
            "",
        ),
        (
            "claude-cli",
            json!({ "variables": { "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "" } }),
            "variables.CLAUDE_CODE_DISABLE_FILE_MENTIONS",
            "",
        ),
        (
            "claude-cli",
            json!({ "environment": ["CLAUDE_CODE_DISABLE_ATTACHMENTS"] }),
            "environment[0]",
            "",
        ),
    ] {
        let error = set_up(dir.path(), config(kind, &json!({}), &program)).unwrap_err();
        let key = match key {
            "" => String::new(),
            key => format!("`providers.p.program.{key}`"),
        };
        assert!(
            error.contains(&key) && error.contains(reported),
            "{kind} {program}: {error}"
        );
    }
    let fine = json!({ "variables": { "PATH": "/bin" }, "tools": ["Bash(git log:*)"] });
    set_up(dir.path(), config("claude-cli", &json!({}), &fine)).unwrap();
}

#[test]
fn a_program_of_each_kind_is_set_up_and_takes_no_settings() {
    let dir = scene();
    for kind in ["claude-cli", "codex-cli", "pi-cli"] {
        let gateway = set_up(dir.path(), config(kind, &json!({}), &json!({}))).unwrap();
        assert!(gateway.resolve(None).unwrap().is_program, "{kind}");
        let sampling = serde_json::from_value(json!({ "temperature": 0.5 })).unwrap();
        let unfit = gateway.check_sampling(None, &sampling).unwrap_err();
        assert_eq!(unfit.field, "temperature", "{kind}");
        let unfit = gateway.check_reply_limit(None, Some(5)).unwrap_err();
        assert_eq!(unfit.field, "maxTokens", "{kind}");
        assert_eq!(gateway.check_reply_limit(None, None), Ok(()), "{kind}");
        let mut limited = config(kind, &json!({}), &json!({}));
        limited.models.get_mut("m").unwrap().max_tokens = Some(5);
        let error = set_up(dir.path(), limited).unwrap_err();
        assert!(error.contains("`models.m.maxTokens`"), "{kind}: {error}");
        let mut option = config(kind, &json!({}), &json!({}));
        option.models.get_mut("m").unwrap().model = "--help".to_owned();
        let error = set_up(dir.path(), option).unwrap_err();
        assert!(error.contains("`models.m.model`"), "{kind}: {error}");
    }
    let only_read = json!({ "path": "work/claude", "readOnly": true });
    set_up(dir.path(), config("claude-cli", &json!({}), &only_read)).unwrap();
}

#[tokio::test]
async fn where_nothing_may_be_started_every_call_is_refused() {
    let dir = scene();
    for (program, reported) in [
        (json!({ "enabled": false }), "not switched on"),
        (json!({}), "no programs are started here"),
    ] {
        let gateway = set_up(dir.path(), config("claude-cli", &json!({}), &program)).unwrap();
        let completion = gateway.complete(&prompt(), &NoDeltas).await;
        let failure = completion.result.unwrap_err();
        assert_eq!(failure.code(), "model-refused");
        assert!(
            !failure.retryable() && failure.report().contains(reported),
            "{}",
            failure.report()
        );
        assert_eq!(completion.attempts.len(), 1, "and is not made again");
        assert!(!dir.path().join("homes").exists());
    }
}
