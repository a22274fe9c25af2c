//! The agreement of a running host with a start and `config check` on which files they take.

use super::{config, inspect, put, reload, started, text_of};
use agent_host_tests::guests::wasm;
use agent_host_tests::process::{Folder, Host, script};
use domain::digest::Digest;
use serde_json::{Value, json};

/// Checks that `config check` refuses the file and `reload` does, by this key, and that nothing has
/// changed.
async fn refuse(folder: &Folder, host: &Host, key: &str) {
    let checked = folder.run(&["config", "check"]).await;
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(!checked.status.success(), "{key}: {said}");
    assert!(said.contains(key), "{key}: {said}");
    let refused = reload(host).await;
    assert_eq!(refused.status, 422, "{key}: {refused:?}");
    assert_eq!(refused.text("code"), "CONFIG_REFUSED");
    let reason = refused.text("detail");
    assert!(reason.contains(key), "{key}: {reason}");
    assert!(!reason.contains("restart the host"), "{key}: {reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_which_no_host_starts_is_refused_as_config_check_refuses_it() {
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let session = host.open("puppet").await;
    std::fs::write(folder.path().join("wrong.toml"), "rules = 7").unwrap();
    let scripted = |script: Value| {
        let mut provider = json!({ "kind": "scripted", "script": script });
        provider
            .as_object_mut()
            .unwrap()
            .retain(|_, value| !value.is_null());
        json!({ "providers": { "scripted": provider } })
    };
    let beside = |name: &str, provider: Value| {
        let rules = json!({ "kind": "scripted", "script": "script.toml" });
        json!({ "providers": { "scripted": rules, name: provider } })
    };
    let wrong = [
        (json!({ "providers": {} }), "models.m.provider"),
        (scripted(Value::Null), "providers.scripted.script"),
        (scripted(json!("nope.toml")), "providers.scripted.script"),
        (scripted(json!("wrong.toml")), "providers.scripted.script"),
        (
            beside(
                "a",
                json!({ "kind": "openai-compatible", "baseUrl": "not a url" }),
            ),
            "providers.a.baseUrl",
        ),
        (
            beside(
                "a",
                json!({ "kind": "anthropic", "apiKeyEnv": "NOT_SET_HERE" }),
            ),
            "providers.a.apiKeyEnv",
        ),
        (
            json!({ "limits": { "instancesMax": 0 } }),
            "limits.instancesMax",
        ),
        // Less than the code of a component that is served.
        (
            json!({ "limits": { "componentBytesMax": 65_536 } }),
            "components.effects",
        ),
        (json!({ "timeouts": { "totalMs": 0 } }), "timeouts.totalMs"),
        (
            json!({ "secrets": { "key": { "file": "nowhere" } } }),
            "secrets.key",
        ),
    ];
    for (more, key) in &wrong {
        // Of the same file, what is read again would take the tool away.
        put(&folder, &text_of(config(&json!([]), more)));
        refuse(&folder, &host, key).await;
        let reported = host.reply(&session, &script(&inspect())).await;
        assert!(reported.contains("look done"), "{key}: {reported}");
    }
    assert!(host.events_of("config.reloaded.v1").await.is_empty());

    // What both take is in force, but for what a start alone takes up.
    for (more, needs_restart) in [
        (
            json!({ "limits": { "instancesMax": 9 } }),
            json!(["limits.instancesMax"]),
        ),
        (
            beside(
                "more",
                json!({ "kind": "scripted", "script": "script.toml" }),
            ),
            json!(["providers"]),
        ),
        (json!({}), json!([])),
    ] {
        put(&folder, &text_of(config(&json!([]), &more)));
        folder.succeeds(&["config", "check"]).await;
        let taken = reload(&host).await;
        assert_eq!(taken.status, 200, "{taken:?}");
        assert_eq!(taken.body["needs_restart"], needs_restart, "{taken:?}");
    }
    let reported = host.reply(&session, &script(&inspect())).await;
    assert!(!reported.contains("look done"), "{reported}");
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_that_cannot_be_made_is_refused_and_another_needs_a_restart() {
    let (folder, host) = started(config(&json!(["look"]), &json!({}))).await;
    let keeping_data_in = |data: &str| {
        let mut config = config(&json!(["look"]), &json!({}));
        config["server"] = json!({ "listen": "127.0.0.1:0", "dataDir": data });
        config.to_string()
    };
    // A file is in its way.
    put(&folder, &keeping_data_in("script.toml/data"));
    refuse(&folder, &host, "cannot make the data folder").await;

    put(&folder, &keeping_data_in("elsewhere"));
    let taken = reload(&host).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    assert_eq!(taken.body["needs_restart"], json!(["server.dataDir"]));
    assert!(host.stop().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_code_under_the_same_path_needs_a_restart_and_is_named() {
    let with = |pin: Value| {
        let mut config = config(&json!(["look"]), &json!({}));
        config["components"]["effects"]["path"] = json!("tools.wasm");
        if !pin.is_null() {
            config["components"]["effects"]["sha256"] = pin;
        }
        config
    };
    let folder = Folder::new(with(Value::Null));
    let build = |code: &[u8]| std::fs::write(folder.path().join("tools.wasm"), code).unwrap();
    let code = wasm("effects");
    // A section at its end that says nothing makes it other code.
    let other = [code.clone(), vec![0, 2, 1, b'x']].concat();
    build(&code);
    folder.warm(&["puppet", "effects"]).await;
    let host = folder.serve().await;
    let needs_restart = async || {
        let taken = reload(&host).await;
        assert_eq!(taken.status, 200, "{taken:?}");
        taken.body["needs_restart"].clone()
    };
    assert_eq!(needs_restart().await, json!([]));
    build(&other);
    assert_eq!(needs_restart().await, json!(["components.effects.path"]));
    build(&code);
    assert_eq!(needs_restart().await, json!([]));

    build(b"no component");
    refuse(&folder, &host, "components.effects").await;
    build(&other);
    put(&folder, &text_of(with(json!(Digest::of(&code).hex()))));
    refuse(&folder, &host, "`sha256` pins").await;
    assert!(host.stop().await.success());
}
