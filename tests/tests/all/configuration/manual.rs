//! What a changed file would do before it does it: shown, applied on request, and with what it
//! leaves behind; and folders that were replaced under a running host.

use super::{changes, config, inspect, put, reload, started};
use crate::all::keyvalue::shelved;
use agent_host_tests::process::{Folder, script, tells};
use serde_json::{Value, json};
use std::time::Duration;

/// The time in which a host that takes up its file has done so.
const TAKEN_UP: Duration = Duration::from_secs(3);

fn manual(mut config: Value) -> Value {
    config["server"] = json!({ "listen": "127.0.0.1:0", "dataDir": "data", "reload": "manual" });
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_file_waits_to_be_applied_and_its_changes_are_shown_before() {
    let folder = Folder::new(json!({}));
    put(
        &folder,
        &manual(config(&json!(["look"]), &json!({}))).to_string(),
    );
    folder.warm(&["puppet", "effects"]).await;
    let host = folder.serve().await;
    folder
        .prints("config diff", None, &["is what is in force"])
        .await;

    let wider = config(
        &json!(["look", "add_line"]),
        &json!({ "limits": { "hopsMax": 3 } }),
    );
    put(&folder, &manual(wider.clone()).to_string());
    tokio::time::sleep(TAKEN_UP).await;
    assert!(changes(&host).await.is_empty());
    let texts = [
        "+ agents.puppet.toolAllowlist = \"add_line\"",
        "~ limits.hopsMax: ",
        " -> 3",
    ];
    folder.prints("config diff", None, &texts).await;
    let texts = ["+ agents.puppet.toolAllowlist"];
    folder.prints("grants diff", None, &texts).await;
    folder.prints("config apply", 0, &[]).await;
    let change = changes(&host).await.remove(0);
    assert_eq!(change["data"]["because"], "request", "{change}");
    assert_eq!(change["data"]["user_id"], "local", "{change}");

    // One that would be refused says so, and stays out.
    let mut wrong = wider;
    wrong["components"]["effects"]["directories"][0]["path"] = json!("not-there");
    put(&folder, &manual(wrong).to_string());
    folder
        .complains("config diff", 3, &["there is no folder"])
        .await;
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_another_scope_leaves_behind_are_named_before_it_is_applied() {
    let folder = Folder::new(json!({}));
    put(&folder, &manual(shelved("agent")).to_string());
    folder.warm(&["puppet", "shelf"]).await;
    let host = folder.serve().await;
    let session = host.open("puppet").await;
    let keeps = json!({ "do": [["set", "a", "1"], ["set", "b", "2"]] });
    let steps = json!([{ "start": [{ "key": "t", "tool": "keep", "args": keeps }] }]);
    let reported = host.reply(&session, &script(&steps)).await;
    assert!(reported.contains("ok | ok"), "{reported}");
    put(&folder, &manual(shelved("user")).to_string());
    let behind = "components.shelf.keyValue: 2 keys of the bucket `notes` of scope `agent` stay \
                  behind";
    folder.prints("config diff", None, &[behind]).await;
    assert!(host.stop().await.success());
}

/// A handle outlives the name of its folder, and a reload opens what is there by now.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_was_replaced_is_told_and_opened_anew_by_a_reload() {
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let files = folder.path().join("files");
    std::fs::rename(&files, folder.path().join("files.old")).unwrap();
    std::fs::create_dir(&files).unwrap();
    let reported = "is not the one that the running host has open";
    folder.complains("config check", None, &[reported]).await;
    let check = "component check effects";
    folder.prints(check, None, &[reported]).await;

    let opened = reload(&host).gives(200).await;
    assert_eq!(
        opened.body["folders_opened"],
        json!([files.canonicalize().unwrap()]),
        "{opened:?}"
    );
    let checked = folder.complains("config check", None, &[]).await;
    assert!(!checked.contains(reported), "{checked}");
    let session = host.open("puppet").await;
    let reported = host.reply(&session, &script(&inspect())).await;
    assert!(reported.contains("look done"), "{reported}");
    assert!(files.join("log").exists(), "the new folder has its line");
    assert!(!folder.path().join("files.old/log").exists());

    // One that is gone is told to a model by its place, and never by its path on this machine.
    std::fs::remove_dir_all(&files).unwrap();
    let reported = host.reply(&session, &script(&inspect())).await;
    tells(&reported, &["the folder at `/data` cannot be opened"]);
    assert!(
        !reported.contains(&folder.path().display().to_string()),
        "{reported}"
    );
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_go_by_the_environment_of_the_running_host() {
    let mut with = config(&json!(["look"]), &json!({}));
    with["components"]["effects"]["environment"] = json!({ "REGION": { "env": "REGION_OF_TEST" } });
    let folder = Folder::new(with);
    folder.warm(&["puppet", "effects"]).await;
    let unset = "`REGION_OF_TEST` is not set";
    folder.complains("config check", None, &[unset]).await;
    let host = folder
        .start_in(&[], Some(("REGION_OF_TEST", "eu")))
        .await
        .unwrap();
    for command in ["config check", "doctor"] {
        let output = folder.run(&command.split(' ').collect::<Vec<_>>()).await;
        for told in [&output.stdout, &output.stderr] {
            let told = String::from_utf8_lossy(told);
            assert!(!told.contains("REGION_OF_TEST"), "{command}: {told}");
        }
    }
    folder.prints("config check", 0, &[]).await;
    assert!(host.stop().await.success());
}
