//! Tests of what another configuration leaves behind, and of what it opens to others.

use super::{InForce, Kept, KeptConnector, KeptDefinition, LeftBehind, left_behind};
use crate::config::{Finding, Loaded, load};
use domain::grant::BucketScope;
use serde_json::{Value, json};
use std::path::Path;
use store::KeptBucket;

fn loaded(folder: &Path, components: &str) -> Loaded {
    let file = folder.join("c.toml");
    // A file without a word is refused.
    std::fs::write(&file, format!("# c\n{components}")).unwrap();
    load(&file, []).unwrap()
}

fn configured(folder: &Path, components: &Value) -> Loaded {
    let file = folder.join("c.json");
    std::fs::write(&file, json!({ "components": components }).to_string()).unwrap();
    load(&file, []).unwrap()
}

fn in_force(loaded: &Loaded) -> InForce {
    let config = &loaded.config;
    let components = config.components.iter();
    let agents = config.agents.iter();
    InForce {
        grants: components
            .map(|(name, component)| (name.clone(), component.grant(name, loaded.folder())))
            .collect(),
        connectors: config.connectors.keys().map(ToString::to_string).collect(),
        definitions: agents.map(|it| it.agent_id.0.clone()).collect(),
    }
}

fn left(before: Option<&InForce>, after: &Loaded, buckets: &[KeptBucket]) -> LeftBehind {
    let kept = Kept {
        buckets: buckets.to_vec(),
        ..Kept::default()
    };
    left_behind(before, after, &kept)
}

fn lines(findings: &[Finding]) -> Vec<String> {
    let lines = findings.iter();
    lines
        .map(|it| format!("{}: {}", it.key, it.message))
        .collect()
}

fn keys(component: &str, bucket: &str, scope: BucketScope, keys: u64) -> KeptBucket {
    KeptBucket {
        component: component.to_owned(),
        bucket: bucket.to_owned(),
        scope,
        keys,
    }
}

const BEFORE: &str = "[components.lists]\nkeyValue = [{ bucket = \"lists\", access = \
                      \"read-write\" }]\n";

#[test]
fn keys_that_another_scope_bucket_or_component_leaves_behind_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let before = in_force(&loaded(dir.path(), BEFORE));
    let kept = [
        keys("lists", "lists", BucketScope::Agent, 12),
        // Nothing led to it before either.
        keys("lists", "old", BucketScope::Agent, 3),
    ];
    for (after, reported) in [
        (BEFORE.to_owned(), None),
        (
            BEFORE.replace("access", "scope = \"user\", access"),
            Some("12 keys of the bucket `lists` of scope `agent` stay behind: the grant has"),
        ),
        (
            BEFORE.replace("\"lists\"", "\"other\""),
            Some("`lists` is granted no bucket of that name"),
        ),
        (
            BEFORE.replace("components.lists", "components.files"),
            Some("no entry of `components` is called `lists`"),
        ),
        (
            "[components.lists]\n".to_owned(),
            Some("granted no bucket of that name"),
        ),
    ] {
        let after = loaded(dir.path(), &after);
        let found = left(Some(&before), &after, &kept).by_change;
        assert_eq!(found.len(), usize::from(reported.is_some()), "{found:?}");
        let reported = reported.unwrap_or_default();
        assert!(
            found.iter().all(|it| it.message.contains(reported)),
            "{found:?}"
        );
    }
    // Of a stopped host nobody knows what was granted.
    let after = loaded(dir.path(), BEFORE);
    assert_eq!(left(None, &after, &kept).by_change.len(), 1);
    // What was left behind before is no part of the change.
    let anyway = lines(&left(Some(&before), &after, &kept).anyway);
    assert!(
        anyway.len() == 1 && anyway[0].contains("3 keys of the bucket `old`"),
        "{anyway:?}"
    );
}

#[test]
fn files_that_another_path_or_no_grant_any_more_leaves_behind_are_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("exports/bob")).unwrap();
    let granted = |path: &str| {
        let folder = json!({ "path": path, "at": "/exports", "access": "read-write" });
        let file = dir.path().join("c.json");
        let config = json!({ "components": { "files": { "directories": [folder] } } });
        std::fs::write(&file, config.to_string()).unwrap();
        load(&file, []).unwrap()
    };
    let before = in_force(&granted("exports"));
    let owned = granted("exports/{user}");
    assert!(left(None, &owned, &[]).by_change.is_empty());
    std::fs::write(dir.path().join("exports/all.csv"), "x").unwrap();
    for (after, reported) in [
        // A folder of a user's name is that user's from now on.
        ("exports/{user}", ["1 entry of `", "` stays behind: "]),
        ("elsewhere", ["2 entries of `", "` stay behind: "]),
    ] {
        let found = left(Some(&before), &granted(after), &[]).by_change;
        let is_reported = |it: &Finding| {
            reported
                .iter()
                .all(|reported| it.message.contains(reported))
        };
        assert!(found.len() == 1 && is_reported(&found[0]), "{found:?}");
    }
    assert!(
        left(Some(&before), &granted("exports"), &[])
            .by_change
            .is_empty()
    );
    for (after, reported) in [
        (
            json!({ "files": {} }),
            Some("no folder at `/exports` any more"),
        ),
        (
            json!({}),
            Some("no entry of `components` is called `files`"),
        ),
        (
            json!({ "files": { "directories": [
                { "path": "elsewhere", "at": "/other", "access": "read-only" },
            ] } }),
            Some("no folder at `/exports` any more"),
        ),
        // The same folder at another place, and for a component of another name.
        (
            json!({ "files": { "directories": [
                { "path": "exports", "at": "/other", "access": "read-only" },
            ] } }),
            None,
        ),
        (
            json!({ "documents": { "path": "d.wasm", "directories": [
                { "path": "exports", "at": "/exports", "access": "read-only" },
            ] } }),
            None,
        ),
    ] {
        let file = dir.path().join("c.json");
        std::fs::write(&file, json!({ "components": after }).to_string()).unwrap();
        let found = left(Some(&before), &load(&file, []).unwrap(), &[]).by_change;
        assert_eq!(
            found.len(),
            usize::from(reported.is_some()),
            "{after}: {found:?}"
        );
        let reported = reported.unwrap_or_default();
        assert!(
            found.iter().all(|it| it.message.contains(reported)),
            "{found:?}"
        );
    }
    let found = left(None, &owned, &[]).by_change;
    assert!(found[0].message.contains("is found by nobody"), "{found:?}");
}

#[test]
fn a_folder_that_kept_users_apart_and_becomes_common_is_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["ws/bob/drafts", "ws/ann", "other"] {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    let folder = |path: &str| json!([{ "path": path, "at": "/w", "access": "read-write" }]);
    let granted = |path: &str| json!({ "files": { "directories": folder(path) } });
    let behind = "2 entries of `ROOT/ws/{user}` stay behind";
    for (was, now, reported) in [
        (
            "ws/{user}",
            "ws",
            vec!["2 entries of `ROOT/ws/{user}` were kept apart by user, and are common to all"],
        ),
        (
            "ws/{user}",
            "ws/bob",
            vec![
                "1 entry of `ROOT/ws/{user}` was kept apart by user, and is common to all users",
                "1 entry of `ROOT/ws/{user}` stays behind",
            ],
        ),
        (
            "ws/{user}",
            "other",
            vec![
                "what a tool keeps at `/w` was kept apart by user, and is common to all users",
                behind,
            ],
        ),
        (
            "ws/{user}",
            "ws/{agent}",
            vec!["common to all users of an agent from now on", behind],
        ),
        (
            "ws/{agent}",
            "ws",
            vec!["kept apart by agent, and are common to all agents"],
        ),
        // What is kept apart by session belongs to one user too.
        ("ws/{user}", "ws/{session}", vec![behind]),
        ("ws/{user}", "ws/{user}", vec![]),
        // What was there before is found again.
        ("ws", "ws/{user}", vec![]),
    ] {
        let before = in_force(&configured(dir.path(), &granted(was)));
        let after = configured(dir.path(), &granted(now));
        let found = lines(&left(Some(&before), &after, &[]).by_change);
        assert_eq!(found.len(), reported.len(), "{was} -> {now}: {found:?}");
        for (found, reported) in found.iter().zip(reported) {
            let reported = reported.replace("ROOT", &dir.path().display().to_string());
            assert!(found.contains(&reported), "{was} -> {now}: {found}");
        }
    }
    // Another component is granted what the users of this one have.
    let before = in_force(&configured(dir.path(), &granted("ws/{user}")));
    let mut both = granted("ws/{user}");
    both["documents"] = json!({ "path": "d.wasm", "directories": folder("ws") });
    let found = left(Some(&before), &configured(dir.path(), &both), &[]).by_change;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].key, "components.documents.directories");
}

#[test]
fn a_bucket_that_kept_users_apart_and_becomes_common_is_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    let granted = |scope: &str| {
        let bucket = json!({ "bucket": "lists", "scope": scope, "access": "read-write" });
        configured(dir.path(), &json!({ "lists": { "keyValue": [bucket] } }))
    };
    for (was, now, reported) in [
        ("user", "component", Some("common to all users from now on")),
        (
            "user",
            "agent",
            Some("common to all users of an agent from now on"),
        ),
        (
            "session",
            "agent",
            Some("Keep `scope = \"session\"` to keep it apart"),
        ),
        (
            "agent",
            "component",
            Some("common to all agents from now on"),
        ),
        ("user", "session", None),
        ("agent", "user", None),
        ("user", "user", None),
    ] {
        let before = in_force(&granted(was));
        let found = lines(&left(Some(&before), &granted(now), &[]).by_change);
        assert_eq!(found.len(), usize::from(reported.is_some()), "{found:?}");
        let reported = reported.unwrap_or_default();
        assert!(found.iter().all(|it| it.contains(reported)), "{found:?}");
    }
}

#[test]
fn places_that_several_users_share_and_write_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = configured(
        dir.path(),
        &json!({ "files": {
            "directories": [
                { "path": "read", "at": "/r", "access": "read-only" },
                { "path": "own/{user}", "at": "/o", "access": "read-write" },
                { "path": "all", "at": "/a", "access": "read-write" },
            ],
            "keyValue": [
                { "bucket": "own", "scope": "user", "access": "read-write" },
                { "bucket": "read", "scope": "component", "access": "read-only" },
                { "bucket": "all", "scope": "component", "access": "read-write" },
            ],
        } }),
    );
    for (users, reported) in [
        (1, vec![]),
        (
            2,
            vec![
                "components.files.directories[2]: all users share `all`",
                "components.files.keyValue[2]: all users share the bucket `all`",
            ],
        ),
    ] {
        let kept = Kept {
            users,
            ..Kept::default()
        };
        let before = in_force(&loaded);
        for before in [None, Some(&before)] {
            let left = left_behind(before, &loaded, &kept);
            assert_eq!(lines(&left.by_change), [""; 0]);
            let found = lines(&left.anyway);
            assert_eq!(found.len(), reported.len(), "{found:?}");
            for (found, reported) in found.iter().zip(&reported) {
                assert!(found.starts_with(reported), "{found}");
            }
        }
    }
}

const NAMED: &str = "[connectors.telegram]\ncomponent = \"telegram\"\nagent = \"helper\"\n\
                     [[agents]]\nagentId = \"helper\"\ndisplayName = \"Helper\"\n";

#[test]
fn people_and_agents_of_a_name_that_goes_are_told_with_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let before = in_force(&loaded(dir.path(), NAMED));
    let kept = Kept {
        connectors: [("telegram", 3), ("old", 1)]
            .map(|(name, keys)| KeptConnector {
                name: name.to_owned(),
                keys,
            })
            .into(),
        definitions: [("helper", 2), ("gone", 0)]
            .map(|(name, open_turns)| KeptDefinition {
                name: name.to_owned(),
                agents: 1,
                open_sessions: 4,
                open_turns,
            })
            .into(),
        ..Kept::default()
    };
    let old = "connectors.old: 1 person is known as `old:ID`";
    let people = "connectors.telegram: 3 people are known as `telegram:ID`";
    let agents = "agents.helper: 1 agent is of this definition, with 4 open sessions and 2 open \
                  turns";
    for (after, by_change) in [
        (NAMED.to_owned(), vec![]),
        (NAMED.replace("s.telegram", "s.tg"), vec![people]),
        (NAMED.replace("\"helper\"", "\"other\""), vec![agents]),
        (String::new(), vec![people, agents]),
    ] {
        let after = loaded(dir.path(), &after);
        let left = left_behind(Some(&before), &after, &kept);
        // What went earlier is told of a stopped host alone as a change.
        let stopped = lines(&left_behind(None, &after, &kept).by_change);
        let by_change_of_stopped: Vec<&str> = match by_change.as_slice() {
            [first, rest @ ..] if *first == people => [&[people, old][..], rest].concat(),
            agents => [&[old][..], agents].concat(),
        };
        for (found, reported) in [
            (lines(&left.by_change), by_change),
            (lines(&left.anyway), vec![old]),
            (stopped, by_change_of_stopped),
        ] {
            assert_eq!(found.len(), reported.len(), "{found:?}");
            let mut both = found.iter().zip(&reported);
            assert!(
                both.all(|(found, reported)| found.starts_with(reported)),
                "{found:?}"
            );
        }
    }
}
