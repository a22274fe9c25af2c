//! `chat` against a running host: with a key of a user's, with lines that are piped in, and at a
//! terminal.
//!
//! The terminal is one of `script`, of util-linux: the program under test has a controlling
//! terminal of a known width, and what is typed reaches it as keys do.

mod terminal;

use agent_host_tests::process::{DEMO_COMPONENTS, Folder, Host, PATIENCE, tells};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use terminal::Terminal;

/// Answer of the model.
const SCRIPT: &str = r##"
[[rule]]
when = { userContains = "break" }
reply.fail = "refused"

[[rule]]
when = { userContains = "slowly" }
reply.text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty twenty-one twenty-two twenty-three twenty-four twenty-five twenty-six twenty-seven twenty-eight twenty-nine thirty thirty-one the-end"
reply.delayMs = 400

[[rule]]
when = { userContains = "style" }
reply.text = "# Title\n\nSome **bold** words and `code` that are more than one line of forty columns has room for.\n\n- item\n"

[[rule]]
when = { user = '(?s)^(?P<all>.*)$' }
reply.text = "You said: ${all}"
"##;

/// A host with one agent that answers from the script.
async fn host() -> (Folder, Host) {
    let folder = Folder::new(json!({
        "agents": [{ "agentId": "assistant", "displayName": "Assistant", "toolAllowlist": [] }],
        "providers": { "scripted": { "kind": "scripted", "script": "script.toml" } },
        "models": { "m": { "provider": "scripted", "model": "m" } },
    }));
    std::fs::write(folder.path().join("script.toml"), SCRIPT).unwrap();
    let host = folder.serve().await;
    (folder, host)
}

/// Chats with lines that are piped in.
async fn pipe(folder: &Folder, key: Option<&str>, arguments: &[&str], lines: &str) -> Output {
    let mut chat = folder.program(&[&["chat"][..], arguments].concat());
    chat.envs(key.map(|key| ("AGENT_HOST_TOKEN", key)));
    Folder::typed(chat, lines).await
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Issues a key for a user.
async fn key(host: &Host, scopes: &[&str]) -> String {
    let wanted = json!({ "user": "alice", "name": "chat", "scopes": scopes });
    host.post("/api/keys", &wanted).await.text("key")
}

/// The sessions of the host, by the command that lists them.
async fn sessions(folder: &Folder) -> Vec<Value> {
    let listed = folder.run(&["session", "list", "--json"]).await;
    let document: Value = serde_json::from_slice(&listed.stdout).unwrap();
    document["sessions"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_for_reading_and_writing_is_enough_to_chat() {
    let (folder, host) = host().await;
    let both = key(&host, &["read", "write"]).await;
    let said = pipe(&folder, Some(both.as_str()), &["--quiet"], "hello\n").await;
    assert!(said.status.success(), "{said:?}");
    assert_eq!(text(&said.stdout), "You said: hello\n");
    // Going on, too.
    let listed = folder
        .run_with(
            &["session", "list", "--json"],
            &[("AGENT_HOST_TOKEN", both.as_str())],
        )
        .await;
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let id = listed["sessions"][0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let arguments = ["--quiet", "--session", id.as_str()];
    let said = pipe(&folder, Some(both.as_str()), &arguments, "again\n").await;
    assert_eq!(text(&said.stdout), "You said: again\n", "{said:?}");
    // Each of the two alone is not, and the refusal names the other.
    for (scope, missing) in [("read", "write"), ("write", "read")] {
        let one = key(&host, &[scope]).await;
        let refused = pipe(&folder, Some(one.as_str()), &["--quiet"], "hello\n").await;
        assert_eq!(refused.status.code(), Some(3), "{refused:?}");
        assert!(text(&refused.stderr).contains(missing), "{refused:?}");
    }
    let help = text(&folder.run(&["chat", "--help"]).await.stdout);
    tells(&help, &["Needs a key with the scopes `read` and `write`"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_failed_is_the_exit_code_of_lines_that_are_piped_in() {
    let (folder, host) = host().await;
    let failed = pipe(&folder, None, &["--quiet"], "break\nhello\nbreak again\n").await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    // Each is told once, in the provider's own words, beside what the agent said.
    assert_eq!(text(&failed.stdout), "You said: hello\n", "{failed:?}");
    let reported = text(&failed.stderr);
    for words in [
        "the turn failed: ",
        "(model-refused)",
        "the rule file says so",
    ] {
        assert_eq!(reported.matches(words).count(), 2, "{words}: {failed:?}");
    }
    let well = pipe(&folder, None, &["--quiet"], "hello\n").await;
    assert_eq!(well.status.code(), Some(0), "{well:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_piped_out_is_as_the_agent_wrote_it() {
    let (folder, host) = host().await;
    let said = pipe(&folder, None, &["--quiet"], "style\n").await;
    let expected = "# Title\n\nSome **bold** words and `code` that are more than one line of forty \
                    columns has room for.\n\n- item\n";
    assert_eq!(text(&said.stdout), expected, "{said:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_markdown_wrapped_at_its_width() {
    let (folder, host) = host().await;
    let Some(mut terminal) = Terminal::start(&folder, &["chat"], &[]) else {
        return;
    };
    terminal.until("> ").await;
    terminal.press("style\r").await;
    let shown = terminal.until("item").await;
    assert!(shown.contains("\u{1b}[1;4mTitle\u{1b}[0m"), "{shown:?}");
    assert!(
        shown.contains(
            "Some \u{1b}[1mbold\u{1b}[0m words and \u{1b}[36mcode\u{1b}[0m that are more\r\n"
        ),
        "{shown:?}"
    );
    assert!(
        shown.contains("than one line of forty columns has room\r\n"),
        "{shown:?}"
    );
    terminal.until("> ").await;
    terminal.press("\u{4}").await;
    assert_eq!(terminal.end().await, Some(0));
    // Without colours it is as the agent wrote it.
    let mut terminal = Terminal::start(&folder, &["chat"], &[("NO_COLOR", "1")]).unwrap();
    terminal.until("> ").await;
    terminal.press("style\r").await;
    let shown = terminal.until("item").await;
    assert!(
        shown.contains("Some **bold** words and `code`"),
        "{shown:?}"
    );
    terminal.until("> ").await;
    terminal.press("\u{4}").await;
    assert_eq!(terminal.end().await, Some(0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_the_turn_first_and_leaves_when_none_is_in_progress() {
    let (folder, host) = host().await;
    let Some(mut terminal) = Terminal::start(&folder, &["chat"], &[]) else {
        return;
    };
    terminal.until("> ").await;
    terminal.press("slowly\r").await;
    terminal.until("one two").await;
    terminal.press("\u{3}").await;
    terminal.until("(stopping the turn").await;
    terminal.until("the turn was cancelled").await;
    let after = terminal.until("> ").await;
    assert!(!after.contains("the-end"), "{after:?}");
    let session = sessions(&folder).await.remove(0);
    assert_eq!(session["run_id"], Value::Null, "{session}");
    // The session goes on.
    terminal.press("hello\r").await;
    terminal.until("You said: hello").await;
    terminal.until("> ").await;
    terminal.press("\u{3}").await;
    terminal.until("go on with: ").await;
    assert_eq!(terminal.end().await, Some(0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_leaves_and_the_last_turn_is_the_exit_code() {
    let (folder, host) = host().await;
    let Some(mut terminal) = Terminal::start(&folder, &["chat"], &[]) else {
        return;
    };
    terminal.until("> ").await;
    terminal.press("break\r").await;
    terminal.until("the turn failed").await;
    terminal.until("> ").await;
    terminal.press("\u{4}").await;
    assert_eq!(terminal.end().await, Some(1));
    let mut terminal = Terminal::start(&folder, &["chat"], &[]).unwrap();
    terminal.until("> ").await;
    terminal.press("break\r").await;
    terminal.until("the turn failed").await;
    terminal.until("> ").await;
    terminal.press("hello\r").await;
    terminal.until("You said: hello").await;
    terminal.until("> ").await;
    terminal.press("slowly\r").await;
    terminal.until("one two").await;
    terminal.press("\u{3}").await;
    terminal.until("Ctrl-C again leaves").await;
    terminal.press("\u{3}").await;
    terminal.until("go on with: ").await;
    // The turn may have ended in between, as cancelled.
    let code = terminal.end().await;
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_edited_and_remembered_and_the_last_messages_are_shown() {
    let (folder, host) = host().await;
    let state = folder.path().join("state");
    let state = state.to_str().unwrap();
    let Some(mut terminal) = Terminal::start(&folder, &["chat"], &[("XDG_STATE_HOME", state)])
    else {
        return;
    };
    terminal.until("> ").await;
    // The cursor goes to the beginning of the line, and back by a letter at its end.
    terminal.press("ello\u{1}h\u{5}!x\u{7f}\r").await;
    terminal.until("You said: hello!").await;
    terminal.until("> ").await;
    terminal.press("\u{4}").await;
    assert_eq!(terminal.end().await, Some(0));
    let history = folder.path().join("state/agent-host/chat-history");
    let mode = std::fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let session = sessions(&folder).await.remove(0);
    let id = session["session_id"].as_str().unwrap();
    let arguments = ["chat", "--session", id];
    let mut terminal = Terminal::start(&folder, &arguments, &[("XDG_STATE_HOME", state)]).unwrap();
    terminal.until("> hello!").await;
    terminal.until("You said: hello!").await;
    terminal.until("> ").await;
    // The line before comes back from the file.
    terminal.press("\u{1b}[A").await;
    terminal.until("hello!").await;
    terminal.press(" twice\r").await;
    terminal.until("You said: hello! twice").await;
    terminal.until("> ").await;
    terminal.press("\u{4}").await;
    assert_eq!(terminal.end().await, Some(0));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_meanwhile_is_shown_above_the_line_that_is_typed() {
    let (folder, host) = host().await;
    let Some(mut terminal) = Terminal::start(&folder, &["chat"], &[]) else {
        return;
    };
    terminal.until("> ").await;
    terminal.press("half a li").await;
    terminal.until("half a li").await;
    let session = sessions(&folder).await.remove(0);
    let path = format!(
        "/api/agents/{}/sessions/{}/messages",
        session["agent_id"].as_str().unwrap(),
        session["session_id"].as_str().unwrap()
    );
    host.post(&path, &json!({ "content": "from elsewhere" }))
        .await;
    terminal.until("You said: from elsewhere").await;
    // The line is drawn again below it, and goes on.
    terminal.until("> half a li").await;
    terminal.press("ne\r").await;
    terminal.until("You said: half a line").await;
    terminal.until("> ").await;
    // A host that goes away leaves the terminal as it was.
    host.stop().await;
    terminal.until("the host is away").await;
    terminal.press("\u{3}").await;
    assert_eq!(terminal.end().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_workers_are_folded_away_unless_all_are_wanted() {
    let folder = Folder::demo();
    folder.warm(&DEMO_COMPONENTS).await;
    let host = folder
        .start_with(&["--listen", "127.0.0.1:0"], None)
        .await
        .unwrap();
    for _ in 0..3 {
        let said = pipe(&folder, None, &["--quiet"], "list files\n").await;
        assert!(said.status.success(), "{said:?}");
    }
    let listed = sessions(&folder).await;
    let paths = |listed: &[Value]| -> Vec<String> {
        listed
            .iter()
            .map(|it| it["agent_path"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(paths(&listed), ["/local/agent/assistant"; 3], "{listed:?}");
    let all = folder.run(&["session", "list", "--all", "--json"]).await;
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let all = paths(all["sessions"].as_array().unwrap());
    assert!(all.iter().any(|path| path.contains("/sub/")), "{all:?}");
    let two = folder.run(&["session", "list", "--limit", "2"]).await;
    assert_eq!(text(&two.stdout).lines().count(), 2, "{two:?}");
    assert!(
        text(&two.stderr).contains("--limit 4 shows them"),
        "{two:?}"
    );
    let none = folder.run(&["session", "list", "--limit", "0"]).await;
    assert_eq!(none.status.code(), Some(2), "{none:?}");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_host_is_told_by_status_and_doctor() {
    let (folder, host) = host().await;
    let said = pipe(&folder, None, &["--quiet"], "hello\n").await;
    assert!(said.status.success(), "{said:?}");
    let status = folder.run(&["status", "--json"]).await;
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["readiness"], "ready", "{status}");
    assert_eq!(status["sessions"]["open"], 1, "{status}");
    assert_eq!(status["inputs"]["waiting"], 0, "{status}");
    let lines = text(&folder.run(&["status"]).await.stdout);
    tells(&lines, &["sessions    1 open"]);
    // It compiles every component.
    let doctor = |arguments: &[&str]| {
        let arguments = [&["doctor"][..], arguments].concat();
        Folder::run_within(PATIENCE * 4, folder.program(&arguments))
    };
    let well = doctor(&["--json", "--ask-models"]).await;
    assert_eq!(well.status.code(), Some(0), "{well:?}");
    let document: Value = serde_json::from_slice(&well.stdout).unwrap();
    let message = |name: &str| {
        let findings = document["findings"].as_array().unwrap();
        let found = findings.iter().find(|it| it["name"] == name).unwrap();
        found["message"].as_str().unwrap().to_owned()
    };
    assert!(message("port").contains("a host runs at"), "{document}");
    assert!(message("components").contains("assistant"), "{document}");
    assert!(message("models").starts_with("m: "), "{document}");
    host.stop().await;
    let gone = folder.run(&["status"]).await;
    assert_eq!(gone.status.code(), Some(4), "{gone:?}");
    // A token that others may read, and a configuration that is none.
    let token = folder.data().join("token");
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o644)).unwrap();
    let cache = folder.data().join("component-cache");
    std::fs::remove_dir_all(&cache).unwrap();
    let ill = doctor(&[]).await;
    assert!(!cache.exists(), "it changes nothing");
    assert_eq!(ill.status.code(), Some(1), "{ill:?}");
    let lines = text(&ill.stdout);
    tells(
        &lines,
        &["ok    components", "fail  token", "fix: chmod 600 "],
    );
    std::fs::write(folder.config_file(), "{ \"agent\": [] }").unwrap();
    let ill = doctor(&[]).await;
    assert_eq!(ill.status.code(), Some(1), "{ill:?}");
    assert!(text(&ill.stdout).contains("fail  configuration"), "{ill:?}");
}
