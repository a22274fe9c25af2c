//! The first configuration of an operator, through the real program: `init`, a check, the host, a
//! message, and the usage of it.

use agent_host_tests::process::{PATIENCE, program};
use serde_json::Value;
use std::path::Path;
use std::process::{Output, Stdio};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// The program as somebody runs it whose home is this folder, and who has set nothing.
fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    let cleared = command.env_clear().env("HOME", home);
    cleared.current_dir(home).args(arguments);
    command.kill_on_drop(true);
    command
}

async fn run(home: &Path, arguments: &[&str]) -> Output {
    let reported = tokio::time::timeout(PATIENCE * 4, command(home, arguments).output()).await;
    reported.expect("an end in time").expect("it can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_configuration_is_checked_served_and_answers() {
    let home = TempDir::new().unwrap();
    let home = home.path();
    let reported = run(home, &["init"]).await;
    assert!(reported.status.success(), "{reported:?}");
    let config = home.join(".config/agent-host/config.toml");
    assert_eq!(
        text(&reported.stdout).lines().next().unwrap(),
        format!("wrote {}", config.display())
    );
    let next: Vec<String> = text(&reported.stderr)
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .map(str::to_owned)
        .collect();
    let ends = ["config check", "serve", "chat"];
    assert!(
        next.len() == 3 && next.iter().zip(ends).all(|(line, end)| line.ends_with(end)),
        "{next:?}"
    );

    let before = std::fs::read(&config).unwrap();
    let again = run(home, &["init"]).await;
    assert_eq!(again.status.code(), Some(2), "{again:?}");
    assert!(
        text(&again.stderr).contains("is there already"),
        "{again:?}"
    );
    assert_eq!(std::fs::read(&config).unwrap(), before);

    let checked = run(home, &["config", "check"]).await;
    assert!(checked.status.success(), "{checked:?}");
    // A variable that is empty is none.
    let named = config.to_str().unwrap();
    let mut checked = command(home, &["config", "check", "--config", named]);
    checked.envs([("AGENT_HOST_CONFIG", ""), ("AGENT_HOST_COMPONENTS", "")]);
    let checked = tokio::time::timeout(PATIENCE * 4, checked.output()).await;
    let checked = checked.expect("an end in time").expect("it can be run");
    assert!(checked.status.success(), "{checked:?}");
    let mut host = command(home, &["serve", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let state = home.join(".local/state/agent-host");
    let ready = async {
        while !state.join("address").exists()
            || !run(home, &["clock", "show"]).await.status.success()
        {
            assert!(host.try_wait().unwrap().is_none(), "the host has ended");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE * 2, ready)
        .await
        .expect("a host that is ready");

    let mut chat = command(home, &["--quiet", "chat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = chat.stdin.take().unwrap();
    input.write_all(b"good morning\n").await.unwrap();
    drop(input);
    let answer = chat.wait_with_output().await.unwrap();
    assert!(
        text(&answer.stdout).contains("You said: good morning"),
        "{answer:?}"
    );
    let usage = run(home, &["usage", "--by", "model", "--json"]).await;
    let usage: Value = serde_json::from_slice(&usage.stdout).unwrap();
    assert_eq!(usage["total"]["model_calls"], 1, "{usage}");
    assert_eq!(usage["usage"][0]["key"], "script", "{usage}");
    let table = text(
        &run(home, &["usage", "--agent", "/local/agent/assistant"])
            .await
            .stdout,
    );
    assert!(
        table.starts_with("day") && table.lines().count() == 3,
        "{table}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_in_a_folder_of_its_own_has_its_data_there() {
    let home = TempDir::new().unwrap();
    let reported = run(home.path(), &["init", "--dir", "my host"]).await;
    assert!(reported.status.success(), "{reported:?}");
    let folder = home.path().join("my host");
    let config = folder.join("config.toml");
    let named = format!("--config '{}'", config.display());
    assert!(
        text(&reported.stderr)
            .lines()
            .skip(1)
            .all(|line| line.ends_with(&named)),
        "{reported:?}"
    );
    let shown = std::fs::read_to_string(config).unwrap();
    assert!(shown.contains("\ndataDir = \"data\"\n"));
}
