//! Folders that each user, agent or session has of its own: nobody finds what another one has,
//! whatever their ids are and whatever is planted.

use crate::files::{House, kinds};
use crate::fixture::{assert_faulted, done, failed};
use agent_host_runtime::{Called, FolderError};
use domain::event::BoundaryVerdict;
use domain::grant::{Access, DirectoryGrant, Owner, Owners, owner_name};
use domain::tool::ToolError;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// Users of whom each would be another one, or somewhere else, if their ids were names.
const USERS: [&str; 12] = [
    "ann",
    "Ann",
    "ANN",
    "%41nn",
    "ann/../bob",
    "bob",
    "..",
    ".",
    "/etc",
    "a\0nn",
    "ann ",
    "ann\n",
];

fn user(user: &str) -> Owners<'_> {
    Owners {
        user,
        agent: "agent",
        session: "session",
    }
}

/// The three kinds of grants, each of a folder for every owner.
fn owned(house: &House, below: &str) -> [DirectoryGrant; 3] {
    kinds(house).map(|grant| DirectoryGrant {
        path: house.sandbox.join(below),
        ..grant
    })
}

fn keeps(text: &str) -> Value {
    json!([
        { "op": "open", "on": "/s", "path": "diary", "as": "d", "create": true, "write": true },
        { "op": "write", "on": "d", "text": text },
    ])
}

fn reads() -> Value {
    json!([
        { "op": "list", "on": "/s" },
        { "op": "open", "on": "/s", "path": "diary", "as": "d" },
        { "op": "read", "on": "d" },
    ])
}

fn answers(called: &Called) -> Vec<String> {
    serde_json::from_str(&done(called)).unwrap()
}

#[tokio::test]
async fn no_user_finds_what_another_one_keeps_whatever_their_names_are() {
    for kind in 0..3 {
        let house = House::new().await;
        let grant = [owned(&house, "{user}")[kind].clone()];
        house.open(&grant).unwrap();
        for name in USERS {
            let called = house.called_for(user(name), &grant, &reads()).await;
            assert_eq!(
                answers(&called),
                ["", "no-entry", "`d` is not open"],
                "{name:?}"
            );
            let text = format!("of {name}");
            let called = house.called_for(user(name), &grant, &keeps(&text)).await;
            assert_eq!(answers(&called)[0], "ok", "{name:?}");
        }
        let long = "x".repeat(3_000);
        let longer = "x".repeat(3_001);
        for name in [&long, &longer] {
            let called = house.called_for(user(name), &grant, &reads()).await;
            assert_eq!(answers(&called)[0], "");
            house.called_for(user(name), &grant, &keeps(name)).await;
        }
        // Opened anew, as after a restart, all of it is where it was.
        house.open(&grant).unwrap();
        for name in USERS {
            let called = house.called_for(user(name), &grant, &reads()).await;
            let text = format!("of {name}");
            assert_eq!(answers(&called), ["diary", "ok", &text], "{name:?}");
        }
        let base = fs::read_dir(&house.sandbox).unwrap().count();
        assert_eq!(base, 1 + USERS.len() + 2, "`folder`, and one for each user");
        let mode = fs::metadata(house.sandbox.join("ann"))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);
    }
}

#[tokio::test]
async fn agents_and_sessions_have_folders_of_their_own_too_and_both_together() {
    let house = House::new().await;
    let grant = [DirectoryGrant {
        path: house.sandbox.join("by/{agent}/notes/{session}"),
        ..house.whole()
    }];
    fs::create_dir(house.sandbox.join("by")).unwrap();
    house.open(&grant).unwrap();
    for (agent, session) in [("a", "1"), ("a", "2"), ("b", "1")] {
        let owners = Owners {
            user: "ann",
            agent,
            session,
        };
        let text = format!("{agent} {session}");
        let called = house.called_for(owners, &grant, &keeps(&text)).await;
        assert_eq!(answers(&called)[0], "ok");
        let kept = format!("by/{agent}/notes/{session}/diary");
        assert_eq!(house.text(&kept), text);
    }
}

#[tokio::test]
async fn the_record_of_a_call_names_the_granted_path_and_the_folder_of_its_own() {
    let house = House::new().await;
    let grant = [owned(&house, "{user}")[0].clone()];
    house.open(&grant).unwrap();
    let called = house.called_for(user("Ann"), &grant, &keeps("x")).await;
    let [folder] = called.decided.folders.as_slice() else {
        panic!("{:?}", called.decided)
    };
    assert_eq!(folder.at, "/s");
    assert_eq!(PathBuf::from(&folder.granted), house.sandbox.join("{user}"));
    assert_eq!(PathBuf::from(&folder.folder), house.sandbox.join("%41nn"));
    let called = house
        .called_for(user("Ann"), &[house.whole()], &keeps("x"))
        .await;
    assert!(called.decided.folders.is_empty(), "one that all share");
}

#[tokio::test]
async fn a_link_that_one_user_planted_leads_to_no_other_user() {
    for kind in 0..3 {
        let house = House::new().await;
        let grant = [owned(&house, "{user}")[kind].clone()];
        house.open(&grant).unwrap();
        house
            .called_for(user("bob"), &grant, &keeps("private"))
            .await;
        let bob = house.sandbox.join("bob");
        // What the tool of one user can plant, and what it can ask for; then what it could not.
        let plants = json!([
            { "op": "symlink", "on": "/s", "path": "up", "to": "../bob" },
            { "op": "symlink", "on": "/s", "path": "it", "to": "../bob/diary" },
            { "op": "symlink", "on": "/s", "path": "far", "to": bob.to_str().unwrap() },
        ]);
        house.called_for(user("ann"), &grant, &plants).await;
        for (name, target) in [("in", "../bob"), ("at", "../bob/diary")] {
            symlink(target, house.sandbox.join("ann").join(name)).unwrap();
        }
        let paths = [
            "up/diary",
            "it",
            "far/diary",
            "in/diary",
            "at",
            "../bob/diary",
            "in/../diary",
        ];
        for path in paths {
            let asks = json!([
                { "op": "hammer", "on": "/s", "path": path, "follow": true, "times": 1 },
                { "op": "open", "on": "/s", "path": path, "as": "o", "follow": true, "write": true },
                { "op": "rename", "on": "/s", "path": path, "to": "stolen" },
                { "op": "link", "on": "/s", "path": path, "to": "stolen", "follow": true },
            ]);
            let called = house.called_for(user("ann"), &grant, &asks).await;
            let answers = answers(&called);
            assert!(
                !answers[0].contains("private") && answers[1] != "ok",
                "{path}: {answers:?}"
            );
        }
        assert_eq!(house.text("bob/diary"), "private");
        // Nor does the link get to where the next user is looked up.
        let called = house.called_for(user("up"), &grant, &reads()).await;
        assert_eq!(answers(&called)[0], "");
    }
}

#[tokio::test]
async fn what_has_an_owners_name_and_is_no_folder_is_refused_and_on_record() {
    let house = House::new().await;
    let grant = [owned(&house, "{user}")[0].clone()];
    house.open(&grant).unwrap();
    house
        .called_for(user("bob"), &grant, &keeps("private"))
        .await;
    symlink("bob", house.sandbox.join("ann")).unwrap();
    symlink("../outside", house.sandbox.join("eve")).unwrap();
    fs::write(house.sandbox.join("tom"), "").unwrap();
    for name in ["ann", "eve", "tom"] {
        let called = house.called_for(user(name), &grant, &reads()).await;
        assert_eq!(failed(&called), ToolError::Denied, "{name}");
        let [decision] = called.decided.decisions.as_slice() else {
            panic!("{:?}", called.decided)
        };
        assert_eq!(decision.capability, "files.read");
        assert_eq!(decision.verdict, BoundaryVerdict::Refused);
        assert!(
            decision
                .detail
                .contains(&format!("/{name}` is not a folder")),
            "{decision:?}"
        );
    }
}

#[tokio::test]
async fn a_call_without_a_user_has_no_folder_of_one_and_that_is_on_record() {
    let house = House::new().await;
    let grant = [owned(&house, "{user}")[0].clone()];
    house.open(&grant).unwrap();
    let called = house.called_for(user(""), &grant, &reads()).await;
    assert_eq!(failed(&called), ToolError::Denied);
    let detail = &called.decided.decisions[0].detail;
    assert!(detail.contains("the call has no user"), "{detail}");
    assert_eq!(fs::read_dir(&house.sandbox).unwrap().count(), 1);
}

#[tokio::test]
async fn a_quota_is_that_of_each_owner() {
    let house = House::new().await;
    let grant = [DirectoryGrant {
        bytes_max: Some(10),
        files_max: Some(1),
        ..owned(&house, "{user}")[0].clone()
    }];
    house.open(&grant).unwrap();
    for name in ["ann", "bob"] {
        let called = house
            .called_for(user(name), &grant, &keeps("0123456789"))
            .await;
        assert_eq!(answers(&called), ["ok", "10"], "{name}");
        let more = json!([
            { "op": "open", "on": "/s", "path": "diary", "as": "d", "write": true },
            { "op": "write", "on": "d", "text": "x", "offset": 10 },
            { "op": "open", "on": "/s", "path": "other", "as": "o", "create": true, "write": true },
        ]);
        let called = house.called_for(user(name), &grant, &more).await;
        assert_eq!(
            answers(&called),
            ["ok", "insufficient-space", "quota"],
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_base_that_is_moved_or_gone_after_the_start_leads_nowhere_else() {
    let house = House::new().await;
    let grant = [owned(&house, "{user}")[0].clone()];
    house.open(&grant).unwrap();
    house.called_for(user("ann"), &grant, &keeps("x")).await;
    fs::rename(&house.sandbox, house.beside("moved")).unwrap();
    symlink("outside", &house.sandbox).unwrap();
    let called = house.called_for(user("bob"), &grant, &keeps("y")).await;
    assert_eq!(answers(&called)[0], "ok");
    assert!(house.beside("moved/bob/diary").is_file());
    fs::remove_dir_all(house.beside("moved")).unwrap();
    let called = house.called_for(user("bob"), &grant, &keeps("z")).await;
    assert_faulted(&called.outcome);
}

#[tokio::test]
async fn folders_that_could_be_an_owners_are_not_opened() {
    let house = House::new().await;
    let grant = |path: &str, access| DirectoryGrant {
        path: house.sandbox.join(path),
        access,
        ..house.whole()
    };
    let read = Access::ReadOnly;
    let write = Access::ReadWrite;
    for (one, other) in [
        (grant("{user}", write), grant("{session}", write)),
        (grant("{user}", read), grant("{agent}", read)),
        (grant("{user}", write), grant("folder", read)),
        (grant("{user}", write), grant("folder/{session}", read)),
    ] {
        for granted in [[one.clone(), other.clone()], [other, one]] {
            let opened = house.open(&granted);
            assert!(
                matches!(opened, Err(FolderError::Owned { .. })),
                "{opened:?}"
            );
        }
    }
    for granted in [
        [grant("{user}", write), grant("", write)],
        [grant("{user}", write), grant("{user}/in", read)],
    ] {
        let opened = house.open(&granted);
        assert!(
            matches!(opened, Err(FolderError::Nested { .. })),
            "{opened:?}"
        );
    }
    let unknown = house.open(&[grant("{usr}", read)]);
    assert!(
        matches!(unknown, Err(FolderError::Pattern { .. })),
        "{unknown:?}"
    );
    house
        .open(&[grant("{user}/a", write), grant("{user}/b", write)])
        .unwrap();
}

#[tokio::test]
async fn what_a_session_had_of_its_own_is_removed_with_it_and_nothing_else() {
    let house = House::new().await.with("folder/kept", "kept");
    let below = ["tmp/{session}", "by/{user}/{session}", "all/{user}"];
    for base in ["tmp", "by", "all"] {
        fs::create_dir(house.sandbox.join(base)).unwrap();
    }
    let grants = below.map(|below| DirectoryGrant {
        path: house.sandbox.join(below),
        ..house.whole()
    });
    house.open(&grants).unwrap();
    for (user, session) in [("ann", "s1"), ("bob", "s1"), ("ann", "s2")] {
        for grant in &grants {
            let owners = Owners {
                user,
                agent: "a",
                session,
            };
            let grant = std::slice::from_ref(grant);
            house.called_for(owners, grant, &keeps(user)).await;
        }
    }
    let own = house.sandbox.join("by/ann/s1");
    fs::create_dir_all(own.join("deep/er")).unwrap();
    for (name, target) in [("out", "../../../../outside"), ("back", "../../../folder")] {
        symlink(target, own.join(name)).unwrap();
        symlink(target, own.join("deep/er").join(name)).unwrap();
    }
    assert_eq!(house.remove_of(Owner::Session, "s1").await.unwrap(), 3);
    for (path, is_there) in [
        ("tmp/s1", false),
        ("by/ann/s1", false),
        ("by/bob/s1", false),
        ("tmp/s2/diary", true),
        ("by/ann/s2/diary", true),
        ("all/ann/diary", true),
        ("folder/kept", true),
    ] {
        assert_eq!(house.sandbox.join(path).exists(), is_there, "{path}");
    }
    assert_eq!(fs::read_dir(house.beside("outside")).unwrap().count(), 1);
    // Once more there is nothing to do, and a link in the place of a folder is left alone.
    assert_eq!(house.remove_of(Owner::Session, "s1").await.unwrap(), 0);
    symlink("../folder", house.sandbox.join("tmp/s9")).unwrap();
    assert_eq!(house.remove_of(Owner::Session, "s9").await.unwrap(), 0);
    assert_eq!(house.remove_of(Owner::Agent, "a").await.unwrap(), 0);
    assert_eq!(house.remove_of(Owner::User, "").await.unwrap(), 0);
    assert_eq!(house.text("folder/kept"), "kept");
}

#[tokio::test]
async fn a_folder_that_is_too_deep_is_not_removed_and_told_of() {
    let house = House::new().await;
    fs::create_dir(house.sandbox.join("tmp")).unwrap();
    let grant = [DirectoryGrant {
        path: house.sandbox.join("tmp/{session}"),
        ..house.whole()
    }];
    house.open(&grant).unwrap();
    let own = house.sandbox.join("tmp").join(owner_name("s1").unwrap());
    fs::create_dir_all(own.join("d/".repeat(300))).unwrap();
    let reported = house.remove_of(Owner::Session, "s1").await.unwrap_err();
    assert!(
        reported.to_string().contains("more than 256 folders"),
        "{reported}"
    );
}
