//! Hosts that are started on a data folder restored from a backup: nothing of what was under way is
//! done again unasked.

use super::exhaustion::config;
use agent_host_tests::patience::until;
use agent_host_tests::process::{Folder, Host, PATIENCE, Session, shows, tells};
use serde_json::{Value, json};
use std::process::Output;
use std::time::Duration;
use tokio::time::sleep;

/// Returns the calls that have begun, tool by tool.
fn begun(folder: &Folder) -> Vec<String> {
    let begun = folder
        .effects()
        .into_iter()
        .filter_map(|line| line.split_once(" begin ").map(|(tool, _)| tool.to_owned()));
    let mut begun: Vec<String> = begun.collect();
    begun.sort();
    begun
}

/// Puts the backup in the place of the data folder, as after a loss of the disk: with nothing done
/// in it, under the same configuration.
async fn restore(folder: &Folder) {
    let backup = folder.path().join("backup.sqlite");
    let data = folder.data();
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::remove_file(folder.path().join("files/log")).unwrap_or_default();
    folder
        .succeeds(&[
            "restore",
            backup.to_str().unwrap(),
            "--data",
            data.to_str().unwrap(),
        ])
        .await;
    folder.warm(&["puppet", "effects"]).await;
}

async fn back_up(folder: &Folder) {
    let backup = folder.path().join("backup.sqlite");
    let made: Output = folder.run(&["backup", backup.to_str().unwrap()]).await;
    assert!(made.status.success(), "{made:?}");
}

/// A host that was backed up in the middle of a turn, and the path of the session. Two calls were
/// begun, and an input waited for the turn's end. The host has done all of it since.
async fn backed_up() -> (Folder, Session) {
    let (folder, host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let session = host.open("puppet").await;
    let call = |tool: &str| json!({ "key": tool, "tool": tool, "args": { "sleep": 3_000 } });
    host.play(
        &session,
        &json!([{ "until": "all", "start": [call("put"), call("send")] }]),
    )
    .await;
    until(async || begun(&folder).len() >= 2).await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "after", "tool": "send" }] }]),
    )
    .await;
    back_up(&folder).await;
    host.rest(&session).await;
    assert_eq!(begun(&folder), ["put", "send", "send"]);
    assert!(host.stop().await.success(), "{}", folder.log());
    (folder, session)
}

/// Returns the messages of a session.
async fn said(host: &Host, session: &Session) -> String {
    let path = format!("/api/sessions/{}?from=1&to=100", session.id());
    host.get(&path).await.body["messages"].to_string()
}

fn chose(choice: &str, counts: [u64; 3], found: &[Value]) {
    let [turns, operations, inputs] = counts;
    let [one] = found else { panic!("{found:?}") };
    let expected = json!({
        "choice": choice, "turns": turns, "operations": operations, "inputs": inputs,
    });
    shows(one, &expected);
    assert!(
        one["made_at"]
            .as_str()
            .is_some_and(|time| time.ends_with('Z')),
        "{one}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_host_repeats_nothing_until_it_is_told_what_to_do() {
    let (folder, session) = backed_up().await;
    restore(&folder).await;
    let refused = folder.start(None).await.expect_err("it serves");
    assert_eq!(refused.status.code(), Some(3), "{}", refused.said);
    for reported in [
        "1 turns",
        "1 calls",
        "1 inputs",
        "serve --resume-effects",
        "serve --settle-unknown",
    ] {
        assert!(
            refused.said.contains(reported),
            "{reported}: {}",
            refused.said
        );
    }
    assert_eq!(begun(&folder), Vec::<String>::new());
    // Asked again it says the same: nothing has changed.
    assert_eq!(
        folder
            .start(None)
            .await
            .expect_err("it serves")
            .status
            .code(),
        Some(3)
    );

    // On: what was idempotent is sent again; of what must not be repeated nothing is known; what
    // waited has its turn.
    let host = folder
        .start_with(&["--resume-effects"], None)
        .await
        .unwrap();
    host.rest(&session).await;
    assert_eq!(
        begun(&folder),
        ["put", "send"],
        "the call that was begun is not made again, the one of the input that waited is"
    );
    let reported = said(&host, &session).await;
    tells(&reported, &["put done", "send unknown"]);
    chose(
        "resumed",
        [1, 1, 1],
        &host.data_of("host.restored.v1").await,
    );
    assert!(host.stop().await.success(), "{}", folder.log());
    let host = folder.start(None).await.expect("a host that is asked once");
    assert_eq!(host.data_of("host.restored.v1").await.len(), 1);
    assert!(host.stop().await.success(), "{}", folder.log());

    // Or: the results of all of it are unknown.
    restore(&folder).await;
    let host = folder
        .start_with(&["--settle-unknown"], None)
        .await
        .unwrap();
    host.rest(&session).await;
    assert_eq!(begun(&folder), Vec::<String>::new());
    let reported = said(&host, &session).await;
    tells(&reported, &["put unknown", "send unknown"]);
    let dead = host.get("/api/dead-letters").await.body["dead_letters"].clone();
    assert_eq!(dead.as_array().unwrap().len(), 1, "{dead}");
    assert!(dead.to_string().contains("restored from"), "{dead}");
    chose(
        "settled_unknown",
        [1, 1, 1],
        &host.data_of("host.restored.v1").await,
    );
    folder.over(host).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_host_in_which_nothing_was_under_way_just_starts() {
    let (folder, host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let session = host.open("puppet").await;
    host.play(
        &session,
        &json!([{ "start": [{ "key": "t", "tool": "send" }] }]),
    )
    .await;
    host.rest(&session).await;
    // A question waits for its user, not for the host.
    let questions = host.open("puppet").await;
    host.play(
        &questions,
        &json!([{ "start": [{ "key": "q", "client": "free_text" }] }]),
    )
    .await;
    until(async || said(&host, &session).await.contains("send done")).await;
    sleep(Duration::from_millis(300)).await;
    back_up(&folder).await;
    assert!(host.stop().await.success(), "{}", folder.log());

    restore(&folder).await;
    let host = folder.serve().await;
    chose(
        "nothing_open",
        [0, 0, 0],
        &host.data_of("host.restored.v1").await,
    );
    assert_eq!(begun(&folder), Vec::<String>::new());
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_that_is_cut_off_is_made_again() {
    let (folder, session) = backed_up().await;
    restore(&folder).await;
    // Dies when the first of its three commits is in the database and not acknowledged.
    let died = folder
        .start_with(&["--settle-unknown"], Some("store.commit.committed:1"))
        .await
        .expect_err("it serves");
    assert_eq!(died.status.code(), None, "{}", died.said);
    assert_eq!(
        folder
            .start(None)
            .await
            .expect_err("it serves")
            .status
            .code(),
        Some(3),
        "it asks for what is left"
    );
    let host = folder
        .start_with(&["--settle-unknown"], None)
        .await
        .unwrap();
    host.rest(&session).await;
    assert_eq!(begun(&folder), Vec::<String>::new());
    assert_eq!(host.data_of("host.restored.v1").await.len(), 1);
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// A model that hands two pieces of work over at once, and then repeats the last result.
const TWO_DELEGATIONS: &str = r#"
[[rule]]
when = { last = "tool" }
reply = { text = "It says: {result}" }

[[rule]]
[rule.reply]
text = "Let me look."
[[rule.reply.calls]]
tool = "delegate"
arguments = { target = "worker", operation = "read_file", parameters = { path = "a" } }
[[rule.reply.calls]]
tool = "delegate"
arguments = { target = "worker", operation = "read_file", parameters = { path = "b" } }
"#;

/// A delegation that waited for room in the backup may have been done since. Its caller learns that
/// nobody knows.
#[tokio::test(flavor = "multi_thread")]
async fn a_delegation_that_waited_in_the_backup_ends_as_unknown() {
    let work = json!([{ "start": [{ "key": "t", "timer": 3_000 }] }, { "reply": "done" }]);
    let mut config = config();
    // The agent is called as the helpers call it.
    config["agents"] = json!([
        {
            "agentId": "puppet", "displayName": "Assistant", "component": "assistant",
            "toolAllowlist": ["delegate"],
        },
        {
            "agentId": "worker", "displayName": "Worker", "component": "puppet",
            "settings": { "script": { "steps": work } },
        },
    ]);
    config["defaultModel"] = json!("m");
    config["limits"] = json!({ "childrenMax": 1 });
    let folder = Folder::new(config);
    std::fs::write(folder.path().join("script.toml"), TWO_DELEGATIONS).unwrap();
    folder.warm(&["assistant", "puppet", "effects"]).await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    host.say(&session, "go").await;
    until(async || {
        let queued = host.get("/api/tasks?state=QUEUED").await;
        queued.body["tasks"].get(0).is_some()
    })
    .await;
    back_up(&folder).await;
    assert!(host.stop().await.success(), "{}", folder.log());

    restore(&folder).await;
    folder.warm(&["assistant"]).await;
    let host = folder
        .start_with(&["--settle-unknown"], None)
        .await
        .unwrap();
    host.rest(&session).await;
    let reported = said(&host, &session).await;
    for expected in [
        r#"\"code\":\"TASK_UNKNOWN\""#,
        r#"\"taskState\":\"FAILED\""#,
        r#"\"success\":true"#,
    ] {
        assert!(reported.contains(expected), "{expected}: {reported}");
    }
    assert!(host.stop().await.success(), "{}", folder.log());
}

/// On another file system, with too little room for the whole: nothing is left of it, anywhere.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_finds_no_room_elsewhere_leaves_nothing_behind() {
    let (folder, _host) = Folder::serving(config(), &["puppet", "effects"]).await;
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = elsewhere.path().join("backup.sqlite");
    let back_up = |limit: &str| {
        let program = folder.program(&["backup", file.to_str().unwrap()]);
        let program = program.as_std();
        let mut limited = tokio::process::Command::new("bash");
        limited
            .args(["-c", &format!("ulimit -f {limit}; exec \"$@\""), "bash"])
            .arg(program.get_program())
            .args(program.get_args())
            .envs(
                program
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        Folder::run_within(PATIENCE, limited)
    };
    let left = || {
        let count = |path: &std::path::Path| match std::fs::read_dir(path) {
            Ok(entries) => entries.count(),
            Err(_) => 0,
        };
        (
            count(elsewhere.path()),
            count(&folder.data().join("backups")),
        )
    };
    let failed = back_up("16").await;
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let reported = String::from_utf8_lossy(&failed.stderr);
    tells(&reported, &["the backup cannot be written to"]);
    assert_eq!(left(), (0, 0));
    let made = back_up("unlimited").await;
    assert!(made.status.success(), "{made:?}");
    assert_eq!(left(), (1, 0));
    let folderless = folder.run(&["backup", "/nowhere/backup.sqlite"]).await;
    assert_eq!(folderless.status.code(), Some(1), "{folderless:?}");
    assert_eq!(left(), (1, 0), "that is noticed before anything is copied");
}
