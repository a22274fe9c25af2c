//! Granted folders are what they were when the host started, even if others have their names by
//! then. Nothing is opened that is not a file.

use crate::files::{House, kinds};
use agent_host_runtime::FolderError;
use domain::grant::{Access, DirectoryGrant};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Calls that open what would keep their threads: more than there are threads for waiting.
const CALLS: usize = 600;

fn inspections() -> Value {
    json!([
        { "op": "open", "on": "/s", "path": "secret", "as": "o", "follow": true },
        { "op": "read", "on": "o" },
        { "op": "open", "on": "/s", "path": "new", "as": "n", "create": true, "write": true },
    ])
}

#[tokio::test]
async fn a_swapped_folder_leads_where_it_led_at_the_start() {
    for kind in 0..3 {
        let house = House::new().await.with("secret", "harmless");
        let grant = [kinds(&house)[kind].clone()];
        house.open(&grant).unwrap();
        fs::rename(&house.sandbox, house.beside("moved")).unwrap();
        for target in ["outside", "/etc", "data"] {
            symlink(target, &house.sandbox).unwrap();
            assert_eq!(
                house.answers(&grant, &inspections()).await,
                ["ok", "harmless", "ok"]
            );
            fs::remove_file(&house.sandbox).unwrap();
        }
        assert!(house.beside("moved/new").is_file() && !house.beside("outside/new").exists());
        // Opened anew, the path is what it is by then.
        fs::rename(house.beside("moved"), &house.sandbox).unwrap();
        house.open(&grant).unwrap();
        assert_eq!(
            house.answers(&grant, &inspections()).await,
            ["ok", "harmless", "ok"]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_swapped_during_calls_leads_nowhere_else() {
    let house = House::new().await.with("secret", "harmless");
    symlink("outside", house.beside("link")).unwrap();
    let grants = kinds(&house);
    house.open(&grants).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let over = over.clone();
        let folder = house.beside("");
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for (from, to) in [
                    ("sandbox", "kept"),
                    ("link", "sandbox"),
                    ("sandbox", "link"),
                    ("kept", "sandbox"),
                ] {
                    fs::rename(folder.join(from), folder.join(to)).unwrap();
                }
            }
        })
    };
    let ops =
        json!([{ "op": "hammer", "on": "/s", "path": "secret", "follow": true, "times": 200 }]);
    for grant in grants {
        for _ in 0..5 {
            assert_eq!(
                house.answers(std::slice::from_ref(&grant), &ops).await,
                ["harmless"]
            );
        }
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

#[tokio::test]
async fn folders_below_a_writable_one_are_not_opened() {
    let house = House::new().await;
    let nested =
        |path: &str, access| DirectoryGrant::whole(house.sandbox.join(path), "/in", access);
    let read = Access::ReadOnly;
    let write = Access::ReadWrite;
    symlink("sandbox/folder", house.beside("by-link")).unwrap();
    // The writer of the sandbox decides where this leads.
    symlink("sandbox/turn", house.beside("by-turn")).unwrap();
    symlink("../outside", house.sandbox.join("turn")).unwrap();
    let linked = |name: &str, access| DirectoryGrant::whole(house.beside(name), "/in", access);
    for (outer, inner, refused) in [
        (write, nested("folder", read), true),
        (write, nested("folder", write), true),
        (write, nested("folder/../../outside", read), true),
        (write, linked("by-link", read), true),
        (write, linked("by-turn", read), true),
        (write, linked("sandbox", write), false),
        (write, linked("outside", write), false),
        (read, nested("folder", read), false),
        (read, nested("folder", write), false),
    ] {
        let outer = DirectoryGrant {
            access: outer,
            ..house.whole()
        };
        for granted in [
            [outer.clone(), inner.clone()],
            [inner.clone(), outer.clone()],
        ] {
            let opened = house.open(&granted);
            assert_eq!(
                matches!(opened, Err(FolderError::Nested { .. })),
                refused,
                "{granted:?}: {opened:?}"
            );
            assert!(refused || opened.is_ok(), "{granted:?}: {opened:?}");
        }
    }
}

#[tokio::test]
async fn folders_of_the_host_itself_are_not_opened() {
    let house = House::new().await;
    for made in ["data/in", "cache/in"] {
        fs::create_dir_all(house.beside(made)).unwrap();
    }
    symlink("data", house.beside("by-link")).unwrap();
    let grant = |path: &Path, access| DirectoryGrant::whole(path, "/d", access);
    for access in [Access::ReadOnly, Access::ReadWrite] {
        for name in [
            "data",
            "data/in",
            "by-link",
            "by-link/in",
            "cache",
            "cache/in",
            "",
        ] {
            let opened = house.open(&[grant(&house.beside(name), access)]);
            assert!(
                matches!(opened, Err(FolderError::Own { .. })),
                "{name}: {opened:?}"
            );
        }
        house
            .open(&[grant(&house.beside("outside"), access)])
            .unwrap();
    }
}

#[tokio::test]
async fn pipes_sockets_and_devices_are_not_opened() {
    let house = House::new().await;
    let make = |name: &str, kind| {
        mknodat(
            CWD,
            house.sandbox.join(name),
            kind,
            Mode::from_raw_mode(0o666),
            rustix::fs::makedev(1, 3),
        )
    };
    make("pipe", FileType::Fifo).unwrap();
    let _socket = UnixListener::bind(house.sandbox.join("socket")).unwrap();
    symlink("pipe", house.sandbox.join("to-pipe")).unwrap();
    let mut names = vec!["pipe", "socket"];
    // Only an administrator makes devices.
    names.extend(
        make("device", FileType::CharacterDevice)
            .is_ok()
            .then_some("device"),
    );
    let open =
        |name: &str| json!({ "op": "open", "on": "/s", "path": name, "as": "o", "follow": true });
    let writing = |name: &str, how: &str| {
        let mut op = open(name);
        op["write"] = json!(true);
        op[how] = json!(true);
        op
    };
    for grant in kinds(&house) {
        let grant = [grant];
        house.open(&grant).unwrap();
        for name in &names {
            let ops = json!([
                open(name),
                writing(name, "write"),
                writing(name, "create"),
                writing(name, "truncate")
            ]);
            assert_eq!(
                house.answers(&grant, &ops).await,
                ["not-permitted"; 4],
                "{name}"
            );
            let inspected = house
                .answers(&grant, &json!([{ "op": "stat", "on": "/s", "path": name }]))
                .await;
            assert!(inspected[0].starts_with("other"), "{inspected:?}");
        }
        if !grant[0].has_patterns() {
            assert_eq!(
                house.answers(&grant, &json!([open("to-pipe")])).await,
                ["not-permitted"]
            );
        }
        let touch = json!([{ "op": "touch", "on": "/s", "path": "pipe", "follow": true }]);
        assert_eq!(house.answers(&grant, &touch).await, ["ok"]);
    }
    let grant = [house.whole()];
    let ops = json!([open("pipe"), writing("pipe", "truncate")]);
    house.open(&grant).unwrap();
    for _ in 0..CALLS {
        assert_eq!(house.answers(&grant, &ops).await, ["not-permitted"; 2]);
    }
}
