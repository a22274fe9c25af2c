//! The configuration of a host that serves: it is read again when its file changes, on request and
//! on SIGHUP, and each turn runs under one whole of it.

mod agreeing;
mod design;
mod under_load;
mod under_way;
use agent_host_tests::patience::found;
use agent_host_tests::process::{
    DEMO_COMPONENTS, Folder, Host, Reply, effects, puppets, script, tells,
};
use domain::digest::Digest;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A configuration with the puppet, the tools that it may use, and other keys over it.
fn config(tools: &Value, more: &Value) -> Value {
    let mut config = puppets(&json!([{
        "agentId": "puppet", "displayName": "Puppet", "component": "puppet",
        "toolAllowlist": tools,
    }]));
    config["components"]["effects"] = effects();
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// Puts a configuration into its place at one moment, as editors do.
fn put(folder: &Folder, text: &str) {
    let next = folder.path().join("next.tmp");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, folder.config_file()).unwrap();
}

/// The same, of a configuration that the folder's host serves with its own server.
fn text_of(mut config: Value) -> String {
    config["server"] = json!({ "listen": "127.0.0.1:0", "dataDir": "data" });
    config.to_string()
}

async fn started(config: Value) -> (Folder, Host) {
    Folder::serving(config, &["puppet", "effects"]).await
}

fn inspect() -> Value {
    json!([{ "start": [{ "key": "t", "tool": "look" }] }])
}

#[track_caller]
fn reload(host: &Host) -> Reply {
    host.post("/api/config/reload", &json!({}))
}

/// The events of changes, the oldest first.
async fn changes(host: &Host) -> Vec<Value> {
    host.events_of("config.reloaded.v1").await
}

/// Waits until the refusal of a configuration whose file changed is on record.
async fn refused_file(host: &Host, words: &str) -> Value {
    let is_it = |event: &Value| {
        event["data"]["because"] == "file" && event["data"]["reason"].to_string().contains(words)
    };
    found(async || {
        let refused = host.events_of("config.refused.v1").await;
        refused.into_iter().find(is_it)
    })
    .await
}

/// Waits until so many changes are on record.
async fn changed(host: &Host, count: usize) -> Vec<Value> {
    found(async || {
        let changes = changes(host).await;
        (changes.len() >= count).then_some(changes)
    })
    .await
}

fn keys(change: &Value) -> Vec<&str> {
    let differences = change["data"]["differences"].as_array().unwrap();
    differences
        .iter()
        .map(|difference| difference["key"].as_str().unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_in_force_for_the_next_turn_and_its_difference_on_record() {
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let session = host.open("puppet").await;
    let reported = host.reply(&session, &script(&inspect())).await;
    tells(&reported, &["look done"]);
    put(
        &folder,
        &text_of(config(&json!([]), &json!({ "limits": { "hopsMax": 3 } }))),
    );
    let first = changed(&host, 1).await.remove(0);
    assert_eq!(first["data"]["because"], "file", "{first}");
    assert_eq!(
        keys(&first),
        ["agents[puppet].toolAllowlist", "limits.hopsMax"]
    );
    let reported = host.reply(&session, &script(&inspect())).await;
    assert!(!reported.contains("look done"), "{reported}");

    // And back again, by a signal that need not wait for an inspection of the file.
    put(&folder, &text_of(config(&json!(["look"]), &json!({}))));
    host.signal(Signal::HUP);
    let second = changed(&host, 2).await.remove(1);
    assert_eq!(
        second["data"]["replaces"], first["data"]["configuration"],
        "{second}"
    );
    assert_eq!(second["data"]["configuration"], first["data"]["replaces"]);
    let reported = host.reply(&session, &script(&inspect())).await;
    tells(&reported, &["look done"]);
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_file_is_refused_whole_with_the_reason_and_nothing_changes() {
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let session = host.open("puppet").await;
    let before = reload(&host).gives(200).await;
    assert_eq!(before.text("configuration"), before.text("replaces"));
    let no_such_model = config(&json!([]), &json!({ "defaultModel": "nobody" }));
    let no_such_provider = config(
        &json!([]),
        &json!({
            "providers": { "other": { "kind": "scripted", "script": "script.toml" } },
            "models": { "m": { "provider": "other", "model": "m" } },
        }),
    );
    let no_such_code = config(
        &json!([]),
        &json!({ "components": { "puppet": { "path": "nowhere.wasm" } } }),
    );
    for (text, words) in [
        (String::new(), "is empty"),
        ("{ \"agents\": 7 }".to_owned(), "agents"),
        ("{ \"agents\": [".to_owned(), "agents"),
        (text_of(no_such_model), "nobody"),
        (text_of(no_such_provider), "models.m.provider"),
        (text_of(no_such_code), "components.puppet"),
    ] {
        put(&folder, &text);
        let refused = reload(&host).gives(422).await;
        assert_eq!(refused.text("code"), "CONFIG_REFUSED");
        let reason = refused.text("detail");
        assert!(reason.contains(words), "{words}: {reason}");
        let reported = host.reply(&session, &script(&inspect())).await;
        tells(&reported, &["look done"]);
    }
    let ended = folder.run(&["reload"]).await;
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    assert!(changes(&host).await.is_empty());

    put(&folder, &text_of(config(&json!([]), &json!({}))));
    let ended = folder.run(&["reload"]).await;
    let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    tells(&printed, &["sha256:"]);
    let change = changed(&host, 1).await.remove(0);
    assert_eq!(keys(&change), ["agents[puppet].toolAllowlist"]);
    let reported = host.reply(&session, &script(&inspect())).await;
    assert!(!reported.contains("look done"), "{reported}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_takes_agents_away_is_in_force_once_it_stayed_or_on_request() {
    let with = |agents: &[&str]| {
        let mut config = config(&json!(["look"]), &json!({}));
        let agents = agents
            .iter()
            .map(|id| json!({ "agentId": id, "displayName": id, "component": "puppet" }));
        config["agents"] = agents.collect();
        text_of(config)
    };
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    put(&folder, &with(&["puppet", "other"]));
    assert_eq!(changed(&host, 1).await.len(), 1, "what comes is there soon");

    // Cut while it was written, longer than a change that takes nobody away waits.
    put(&folder, &with(&["puppet"]));
    tokio::time::sleep(Duration::from_millis(700)).await;
    put(&folder, &with(&["puppet", "other"]));
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(changes(&host).await.len(), 1, "nobody was taken away");
    assert!(host.events_of("config.refused.v1").await.is_empty());

    put(&folder, &with(&["puppet"]));
    let gone = changed(&host, 2).await.remove(1);
    assert_eq!(gone["data"]["because"], "file", "{gone}");
    assert!(keys(&gone).contains(&"agents[other]"), "{gone}");

    // Whoever asks for it has it at once.
    put(&folder, &with(&["other"]));
    let taken = reload(&host).gives(200).await;
    assert_ne!(taken.text("configuration"), taken.text("replaces"));
    let gone = changed(&host, 3).await.remove(2);
    assert_eq!(gone["data"]["because"], "request", "{gone}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_the_beginning_of_what_is_served_is_in_force_once_it_stayed() {
    let folder = Folder::demo();
    folder.warm(&DEMO_COMPONENTS).await;
    let listen = ["--listen", "127.0.0.1:0"];
    let host = folder.start_with(&listen, None).await.unwrap();
    let demo = std::fs::read_to_string(folder.config_file()).unwrap();
    let cut = format!(
        "{demo}\n[[agents]]\nagentId = \"other\"\ndisplayName = \"Other\"\n\
         component = \"worker\"\ntoolAllowlist = [\"*_file\"]\n"
    );
    let whole = format!("{cut}toolDenylist = [\"delete_file\"]\n");
    put(&folder, &whole);
    assert_eq!(changed(&host, 1).await.len(), 1, "what comes is there soon");

    // Without its last line it would permit more, and is a configuration all the same.
    put(&folder, &cut);
    tokio::time::sleep(Duration::from_millis(700)).await;
    put(&folder, &whole);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(changes(&host).await.len(), 1, "nothing more was permitted");
    assert!(host.events_of("config.refused.v1").await.is_empty());

    put(&folder, &cut);
    let permitted = changed(&host, 2).await.remove(1);
    assert_eq!(permitted["data"]["because"], "file", "{permitted}");
    let denied = keys(&permitted);
    assert!(
        denied.iter().all(|key| key.starts_with("agents[other]")) && !denied.is_empty(),
        "{permitted}"
    );
    assert!(host.stop().await.success(), "{}", folder.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_configuration_is_on_record_with_the_reason_and_who_asked() {
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let present = reload(&host).await.text("configuration");
    put(
        &folder,
        &text_of(config(&json!([]), &json!({ "defaultModel": "nobody" }))),
    );
    let of_file = refused_file(&host, "nobody").await;
    assert_eq!(of_file["data"]["configuration"], present, "{of_file}");
    assert_eq!(of_file["data"]["user_id"], Value::Null, "{of_file}");
    assert_eq!(of_file["actor"], "host", "{of_file}");

    let refused = reload(&host).gives(422).await;
    let all = host.events_of("config.refused.v1").await;
    let asked = all
        .iter()
        .find(|event| event["data"]["because"] == "request");
    let asked = asked.unwrap_or_else(|| panic!("{all:?}"));
    assert_eq!(asked["data"]["reason"], refused.text("detail"), "{asked}");
    assert_eq!(asked["data"]["user_id"], "local", "{asked}");
    assert_eq!(asked["actor"], "user:local", "{asked}");

    // The same file for the same reason is recorded once, however often it is looked at.
    let by_file = |all: &[Value]| {
        let of_file = all
            .iter()
            .filter(|event| event["data"]["because"] == "file");
        of_file.count()
    };
    tokio::time::sleep(Duration::from_millis(600)).await;
    let all = host.events_of("config.refused.v1").await;
    assert_eq!(by_file(&all), 1, "{all:?}");
    assert!(changes(&host).await.is_empty());
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_restart_is_named_and_no_value_of_a_secret_is_on_record() {
    let with = |secrets: Value, more: Value| {
        let mut config = config(&json!(["look"]), &more);
        config["secrets"] = secrets;
        config
    };
    let (folder, host) = started(with(json!({}), json!({}))).await;
    // A secret where its name belongs keeps the file from being served, and is not told on.
    let mut pasted = with(json!({}), json!({}));
    pasted["components"]["effects"]["secrets"] = json!([{
        "secret": "canary-4711", "host": "peer.example", "slot": { "header": "authorization" },
    }]);
    put(&folder, &text_of(pasted));
    let refused = reload(&host).gives(422).await;
    let on_record = host.events_of("config.refused.v1").await;
    assert!(!on_record.is_empty());
    let said = json!([refused.body, on_record]).to_string() + &folder.log();
    tells(&said, &["components.effects.secrets[0].secret"]);
    assert!(!said.contains("canary-4711"), "{said}");

    let key = folder.path().join("key");
    std::fs::write(&key, "canary-4711").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let next = with(
        json!({ "weather": { "file": key } }),
        json!({
            "limits": { "instancesMax": 7, "hopsMax": 3 },
            "timeouts": { "totalMs": 1_000 },
        }),
    );
    put(&folder, &text_of(next));
    let answer = reload(&host).gives(200).await;
    assert_eq!(
        answer.body["needs_restart"],
        json!(["limits.instancesMax", "secrets", "timeouts"])
    );
    let change = changed(&host, 1).await.remove(0);
    assert_eq!(keys(&change), ["limits.hopsMax"]);
    let said = json!([answer.body, change]).to_string() + &folder.log();
    assert!(!said.contains("canary-4711"), "{said}");
    assert!(!said.contains(&key.display().to_string()), "{said}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_administrators_have_the_configuration_read_again() {
    let (_folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let other = host.user("ada", &["read", "write"]).await;
    other
        .post("/api/config/reload", &json!({}))
        .gives(403)
        .await;
    let admin = host.user("ada", &["admin"]).await;
    admin
        .post("/api/config/reload", &json!({}))
        .gives(200)
        .await;
    assert!(host.stop().await.success());
}

/// The events in a data folder whose host has ended.
async fn stored(data: &Path) -> Vec<domain::event::Event> {
    let data = data.to_owned();
    let opened = tokio::task::spawn_blocking(move || {
        store::Store::open(&data, store::Options::default()).unwrap()
    });
    let store = opened.await.unwrap();
    let mut all = Vec::new();
    let mut after = 0;
    loop {
        let filter = store::EventFilter::default();
        let page = store.events(after, filter, 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        after = last.position;
        all.extend(page.into_iter().filter_map(|recorded| recorded.event));
    }
    store.close().await;
    all
}

/// The digest with which a host begins, by the first change that replaced it.
fn first_of(events: &[domain::event::Event]) -> Option<Digest> {
    events.iter().find_map(|event| match event {
        domain::event::Event::ConfigReloaded(change) => Some(change.replaces),
        _ => None,
    })
}
