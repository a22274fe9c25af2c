//! Manifests that become lines for people, and lines of a configuration.

use super::{about, as_config, merged, of_wants};
use crate::command::component::lines::{Missing, Place};
use crate::config::ComponentConfig;
use domain::grant::Grant;
use domain::manifest::Manifest;
use serde_json::json;

fn manifest() -> Manifest {
    let document = json!({
        "manifest": 1, "version": "0.2.0", "authors": ["Ann", "Bo"], "licence": "MIT",
        "wants": {
            "hosts": [
                { "host": "api.example.com", "reason": "reads" },
                { "host": "b.example.com", "methods": ["POST"], "reason": "writes" }
            ],
            "folders": [{ "at": "/data/in", "access": "read-write", "reason": "keeps" }],
            "buckets": [{ "bucket": "plans", "access": "read-only", "reason": "looks" }],
            "secrets": [{
                "secret": "key", "host": "api.example.com", "header": "x-key",
                "reason": "signs in"
            }]
        }
    });
    Manifest::parse(document.to_string().as_bytes()).unwrap()
}

fn texts(lines: &[super::Line]) -> Vec<String> {
    lines.iter().map(|line| line.text(true)).collect()
}

#[test]
fn a_manifest_is_shown_with_every_want_and_its_reason() {
    assert_eq!(
        about(&manifest()),
        [
            "  version  0.2.0",
            "  author   Ann, Bo",
            "  licence  MIT",
            "  would like requests to api.example.com (GET, HEAD): reads",
            "  would like requests to b.example.com (POST): writes",
            "  would like a folder at /data/in (read-write): keeps",
            "  would like the bucket plans (read-only): looks",
            "  would like a secret for api.example.com (x-key): signs in",
        ]
    );
}

#[test]
fn what_a_manifest_wants_becomes_the_exact_lines_of_a_grant() {
    let lines = of_wants(&manifest().wants, &ComponentConfig::default());
    let reported = texts(&lines);
    assert_eq!(
        reported,
        [
            "directories = [{ path = \"in/{user}\", at = \"/data/in\", access = \"read-write\" }]  \
             # choose the folder",
            "network = [{ host = \"api.example.com\" }, { host = \"b.example.com\", methods = \
             [\"POST\"] }]",
            "keyValue = [{ bucket = \"plans\", scope = \"user\", access = \"read-only\" }]",
            "secrets = [{ secret = \"key\", host = \"api.example.com\", slot = { header = \
             \"x-key\" } }]  # name one of `secrets`",
        ]
    );
    let table: String = reported.iter().map(|line| format!("{line}\n")).collect();
    assert!(toml::from_str::<ComponentConfig>(&table).is_ok(), "{table}");
}

#[test]
fn what_is_granted_already_stays_and_is_not_wanted_again() {
    let grant: Grant = serde_json::from_value(json!({
        "directories": [{ "path": "/srv", "at": "/data/in", "access": "read-write" }],
        "network": [
            { "host": "api.example.com" },
            { "host": "b.example.com", "methods": ["POST"], "redirects": 1 }
        ],
        "keyValue": [{ "bucket": "plans", "access": "read-write" }],
        "secrets": [{
            "secret": "mine", "host": "api.example.com", "slot": { "header": "x-key" }
        }],
    }))
    .unwrap();
    let lines = of_wants(&manifest().wants, &as_config(&grant));
    assert_eq!(texts(&lines), Vec::<String>::new());
}

#[test]
fn a_folder_that_users_share_is_wanted_for_each_unless_its_component_shares_it() {
    let grant: Grant = serde_json::from_value(json!({
        "directories": [{ "path": "/srv", "at": "/data/in", "access": "read-only" }],
    }))
    .unwrap();
    for (scope, path) in [(None, "/srv/{user}"), (Some("component"), "/srv")] {
        let mut folder = json!({ "at": "/data/in", "access": "read-write", "reason": "keeps" });
        if let Some(scope) = scope {
            folder["scope"] = json!(scope);
        }
        let wanted = wants(&json!({ "folders": [folder] }));
        let lines = of_wants(&wanted.wants, &as_config(&grant));
        let expected = json!([{ "path": path, "at": "/data/in", "access": "read-write" }]);
        assert_eq!(lines[0].value, expected);
    }
}

fn wants(wants: &serde_json::Value) -> Manifest {
    let document = json!({ "manifest": 1, "wants": wants });
    Manifest::parse(document.to_string().as_bytes()).unwrap()
}

#[test]
fn methods_that_a_granted_host_lacks_are_wanted_still() {
    let grant: Grant = serde_json::from_value(json!({
        "network": [{ "host": "b.example.com", "redirects": 1 }],
    }))
    .unwrap();
    let posting = wants(&json!({
        "hosts": [{ "host": "b.example.com", "methods": ["POST"], "reason": "writes" }]
    }));
    let lines = of_wants(&posting.wants, &as_config(&grant));
    assert_eq!(
        lines[0].value,
        json!([{ "host": "b.example.com", "methods": ["GET", "HEAD", "POST"], "redirects": 1 }])
    );
    assert_eq!(
        Place::in_toml("c").describe(&lines)[0],
        "put into components.c in place of `network`:"
    );
}

/// Without the address, the host would not start with the line.
#[test]
fn a_wanted_host_that_is_not_public_is_granted_with_its_address() {
    for (host, addresses) in [
        ("127.0.0.1", json!(["127.0.0.1"])),
        ("10.1.2.3", json!(["10.1.2.3"])),
        ("localhost", json!(["127.0.0.1", "::1"])),
    ] {
        let wanted = wants(&json!({ "hosts": [{ "host": host, "reason": "reads" }] }));
        let expected = json!([{ "host": host, "privateAddresses": addresses }]);
        let lines = of_wants(&wanted.wants, &ComponentConfig::default());
        assert_eq!(lines[0].value, expected);
        let grant: Grant =
            serde_json::from_value(json!({ "network": [{ "host": host }] })).unwrap();
        let lines = of_wants(&wanted.wants, &as_config(&grant));
        assert_eq!(lines[0].value, expected);
    }
}

#[test]
fn several_wants_of_one_host_are_all_in_the_line() {
    let twice = wants(&json!({
        "hosts": [
            { "host": "a.example.com", "reason": "reads" },
            { "host": "a.example.com", "methods": ["GET", "POST"], "reason": "writes" }
        ],
        "secrets": [
            { "secret": "key", "host": "a.example.com", "header": "x-key", "reason": "r" },
            { "secret": "id", "host": "a.example.com", "header": "x-id", "reason": "r" },
            { "secret": "again", "host": "a.example.com", "header": "X-Key", "reason": "r" }
        ]
    }));
    let lines = of_wants(&twice.wants, &ComponentConfig::default());
    let slot = |header: &str| json!({ "header": header });
    assert_eq!(
        lines[0].value,
        json!([{ "host": "a.example.com", "methods": ["GET", "HEAD", "POST"] }])
    );
    assert_eq!(
        lines[1].value,
        json!([
            { "secret": "key", "host": "a.example.com", "slot": slot("x-key") },
            { "secret": "id", "host": "a.example.com", "slot": slot("x-id") }
        ])
    );
}

#[test]
fn a_line_of_a_manifest_grants_what_is_refused_beyond_it_too() {
    let config = ComponentConfig::default();
    let refused = ["net.http", "env.read", "notes.write", "files.read"];
    let lines = merged(&manifest().wants, &config, &Missing::of(refused));
    let keys: Vec<&str> = lines.iter().map(|line| line.key).collect();
    assert_eq!(
        keys,
        [
            "directories",
            "environment",
            "keyValue",
            "network",
            "secrets"
        ]
    );
    assert_eq!(
        lines[0].text(true),
        "directories = [{ path = \"in/{user}\", at = \"/data/in\", access = \"read-write\" }]  \
         # choose the folder"
    );
    assert_eq!(
        lines[2].text(true),
        "keyValue = [{ bucket = \"plans\", scope = \"user\", access = \"read-only\" }, { bucket = \
         \"notes\", scope = \"user\", access = \"read-write\" }]"
    );
    assert!(lines[3].text(true).contains("api.example.com"));
}

/// The author's word goes before the usual.
#[test]
fn a_want_that_says_who_shares_it_is_granted_so() {
    let shared = wants(&json!({
        "folders": [
            { "at": "/all", "access": "read-only", "scope": "component", "reason": "r" },
            { "at": "/own", "access": "read-write", "scope": "session", "reason": "r" }
        ],
        "buckets": [
            { "bucket": "b", "access": "read-only", "scope": "agent", "reason": "r" }
        ]
    }));
    assert_eq!(
        about(&shared)[0],
        "  would like a folder at /all (read-only, one for all): r"
    );
    let lines = of_wants(&shared.wants, &ComponentConfig::default());
    assert_eq!(
        lines[0].value,
        json!([
            { "path": "all", "at": "/all", "access": "read-only" },
            { "path": "own/{session}", "at": "/own", "access": "read-write" }
        ])
    );
    assert_eq!(
        lines[1].value,
        json!([{ "bucket": "b", "scope": "agent", "access": "read-only" }])
    );
}
