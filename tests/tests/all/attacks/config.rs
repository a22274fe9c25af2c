//! A8: what a careless or malicious operator writes: refused with its place and reason, or as little as it says.

use super::super::exhaustion::config;
use agent_host_tests::process::Folder;
use serde_json::{Value, json};

/// What a start says of a changed configuration, which the check refuses too.
async fn refused(what: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut config = config();
    change(&mut config);
    let folder = Folder::new(config);
    let checked = folder.run(&["config", "check"]).await;
    assert!(!checked.status.success(), "{what} passes the check: {checked:?}");
    not_started(what, &folder).await
}

async fn not_started(what: &str, folder: &Folder) -> String {
    let ended = folder.start(None).await.expect_err(what);
    assert!(!ended.said.contains("panicked at"), "{what}: {}", ended.said);
    assert!(matches!(ended.status.code(), Some(1 | 2)), "{what}: {ended:?}");
    ended.said
}

#[tokio::test(flavor = "multi_thread")]
async fn grants_that_cannot_be_meant_are_refused_with_their_place() {
    let network = |grant: Value| move |config: &mut Value| config["components"]["effects"]["network"] = json!([grant]);
    for (what, grant) in [
        ("any host, said once", json!({ "host": "*" })),
        ("a whole top-level domain, said once", json!({ "host": "*.com" })),
        ("a star inside", json!({ "host": "exa*mple.com" })),
        ("a URL as a host", json!({ "host": "https://example.com/" })),
        ("a host with a user", json!({ "host": "me@example.com" })),
        ("an address in another form", json!({ "host": "0x7f.1" })),
        ("no methods", json!({ "host": "example.com", "methods": [] })),
        ("no ports", json!({ "host": "example.com", "ports": [] })),
        ("another scheme", json!({ "host": "example.com", "schemes": ["file"] })),
        ("a path that climbs", json!({ "host": "example.com", "path": "/a/../b" })),
        ("too many redirects", json!({ "host": "example.com", "redirects": 6 })),
        ("all of the private addresses", json!({ "host": "example.com", "privateAddresses": ["0.0.0.0/0"] })),
        ("a key with a typing error", json!({ "host": "example.com", "metods": ["GET"] })),
    ] {
        let said = refused(what, network(grant)).await;
        assert!(said.contains("network"), "{what}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_that_hold_the_host_itself_or_lead_elsewhere_are_refused() {
    let directory = |path: &str, at: &str, access: &str| {
        let directory = json!({ "path": path, "at": at, "access": access });
        move |config: &mut Value| config["components"]["effects"]["directories"] = json!([directory])
    };
    for (what, path, at) in [
        ("the whole disk", "/", "/data"),
        ("the folder of the data", "data", "/data"),
        ("the folder around all of it", ".", "/data"),
        ("a folder that is not there", "nowhere", "/data"),
        ("a place that climbs", "files", "/data/../etc"),
        ("a place with a slash too many", "files", "/data/"),
        ("a place that is no path", "files", "data"),
        ("a place of dots", "files", "/./data"),
    ] {
        let said = refused(what, directory(path, at, "read-write")).await;
        assert!(said.contains("directories[0]"), "{what}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_nobody_knows_and_limits_out_of_range_are_refused() {
    for (what, change, named) in [
        ("a list with a typing error", json!({ "toolAlowlist": ["*"] }), "toolAlowlist"),
        ("another list with one", json!({ "tool_deny_list": ["*"] }), "tool_deny_list"),
        ("a list that is none", json!({ "toolDenylist": "*" }), "toolDenylist"),
        ("limits that nobody knows", json!({ "limits": { "stepMax": 1 } }), "stepMax"),
    ] {
        let said = refused(what, |config| config["agents"][0].as_object_mut().unwrap().extend(change.as_object().unwrap().clone())).await;
        assert!(said.contains(named), "{what}: {said}");
    }
    for (limit, value) in [
        ("memoryBytesMax", json!(0)),
        ("cpuMsMax", json!(-1)),
        ("wallMsMax", json!(1e30)),
        ("logBytesMax", json!("all")),
        ("cpuMs", json!(1)),
    ] {
        let said = refused(limit, |config| config["components"]["effects"]["limits"] = json!({ limit: value })).await;
        assert!(said.contains(limit), "{limit}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_comes_from_a_file_and_from_nowhere_else() {
    for path in [
        "https://example.com/tool.wasm",
        "oci://example.com/tool:latest",
        "nowhere.wasm",
        "script.toml",
        ".",
        "/dev/zero",
        "/proc/self/mem",
        "../../../etc/passwd",
    ] {
        let mut config = config();
        config["components"]["effects"]["path"] = json!(path);
        let said = not_started(path, &Folder::new(config)).await;
        assert!(said.contains("components.effects"), "{path}: {said}");
    }
}
