//! The quota of a granted folder: what is over it fails for the guest alone, and nothing gets
//! around it.

use crate::files::{House, Loot, really};
use domain::event::BoundaryVerdict;
use domain::grant::DirectoryGrant;
use serde_json::{Value, json};
use std::fs;

const OVER: &str = "insufficient-space";

fn quota(house: &House, bytes_max: u64, files_max: u32) -> DirectoryGrant {
    DirectoryGrant {
        bytes_max: Some(bytes_max),
        files_max: Some(files_max),
        ..house.whole()
    }
}

fn made(path: &str, name: &str) -> Value {
    json!({ "op": "open", "on": "/s", "path": path, "as": name, "create": true, "write": true })
}

#[tokio::test]
async fn every_way_to_write_meets_the_quota_and_a_hole_counts_like_bytes() {
    let house = House::new().await.with("there", &"x".repeat(500));
    let exabyte: u64 = 1 << 60;
    let ops = json!([
        made("f", "f"),
        { "op": "size", "on": "f", "size": exabyte },
        { "op": "size", "on": "f", "size": u64::MAX },
        { "op": "write", "on": "f", "text": "x", "offset": exabyte },
        { "op": "write", "on": "f", "text": "x", "offset": u64::MAX },
        { "op": "write-stream", "on": "f", "text": "x", "offset": exabyte },
        { "op": "write", "on": "f", "text": "x".repeat(501), "offset": 0 },
        { "op": "append", "on": "f", "text": "x".repeat(501) },
        { "op": "zeroes", "on": "f", "bytes": 501 },
        { "op": "stat", "on": "/s", "path": "f" },
        { "op": "append", "on": "f", "text": "x".repeat(500) },
        { "op": "append", "on": "f", "text": "x" },
        { "op": "write", "on": "f", "text": "y", "offset": 499 },
        { "op": "symlink", "on": "/s", "path": "l", "to": "f" },
        { "op": "size", "on": "f", "size": 400 },
        { "op": "size", "on": "f", "size": 501 },
        { "op": "write", "on": "f", "text": "z", "offset": 499 },
    ]);
    let loot = house.burgle(&[quota(&house, 1_000, 10)], ops).await;
    let mut expected = vec!["ok"];
    expected.extend([OVER; 8]);
    expected.extend(["file 0", "ok", OVER, "1", OVER, "ok", OVER, "1"]);
    assert_eq!(loot.answers, expected);
    assert_eq!(loot.says("files.write", BoundaryVerdict::Limited), "/s/f");
    assert_eq!(really(&house.sandbox), (1_000, 3));
}

#[tokio::test]
async fn a_flood_of_writes_ends_at_the_quota() {
    let house = House::new().await;
    let ops = json!([made("f", "f"), { "op": "fill", "on": "f", "bytes": 10 << 20 }]);
    let loot = house.burgle(&[quota(&house, 100_000, 10)], ops).await;
    assert!(loot.answers[1].ends_with(OVER), "{:?}", loot.answers);
    assert_eq!(loot.says("files.write", BoundaryVerdict::Limited), "/s/f");
    let (bytes, _) = really(&house.sandbox);
    assert!((90_000..=100_000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn a_flood_of_files_ends_at_the_quota() {
    let house = House::new().await;
    let loot = house
        .burgle(
            &[quota(&house, 1, 1_000)],
            json!([{ "op": "breed", "on": "/s", "count": 100_000 }]),
        )
        .await;
    // The folder that is there counts.
    assert_eq!(loot.answers, ["999 made, quota"]);
    assert_eq!(
        loot.says("files.write", BoundaryVerdict::Limited),
        "/s/bred-999"
    );
    let more = json!([
        { "op": "mkdir", "on": "/s", "path": "d" },
        { "op": "symlink", "on": "/s", "path": "l", "to": "x" },
        { "op": "link", "on": "/s", "path": "bred-0", "to": "l" },
        made("n", "n"),
        { "op": "rename", "on": "/s", "path": "bred-0", "to": "bred-1" },
        { "op": "mkdir", "on": "/s", "path": "d" },
        { "op": "rmdir", "on": "/s", "path": "d" },
        made("n", "n"),
        made("n", "again"),
    ]);
    let loot = house.burgle(&[quota(&house, 1, 1_000)], more).await;
    assert_eq!(
        loot.answers,
        [
            "quota", "quota", "quota", "quota", "ok", "ok", "ok", "ok", "ok"
        ]
    );
    assert_eq!(really(&house.sandbox).1, 1_000);
}

#[tokio::test]
async fn what_is_removed_is_given_back_once_and_the_account_stays_exact() {
    let house = House::new().await.with("old", &"o".repeat(300));
    let ops = json!([
        made("a", "a"),
        { "op": "append", "on": "a", "text": "x".repeat(200) },
        { "op": "link", "on": "/s", "path": "a", "to": "b" },
        { "op": "unlink", "on": "/s", "path": "a" },
        { "op": "append", "on": "a", "text": "x".repeat(100) },
        made("c", "c"),
        { "op": "write", "on": "c", "text": "x".repeat(50), "offset": 50 },
        { "op": "close", "on": "c" },
        { "op": "rename", "on": "/s", "path": "c", "to": "old" },
        { "op": "open", "on": "/s", "path": "b", "as": "t", "write": true, "truncate": true },
        { "op": "write", "on": "t", "text": "x".repeat(10), "offset": 0 },
        { "op": "rename", "on": "/s", "path": "folder", "to": "moved" },
        { "op": "mkdir", "on": "/s", "path": "moved/in" },
        { "op": "rmdir", "on": "/s", "path": "moved/in" },
        { "op": "symlink", "on": "/s", "path": "l", "to": "0123456789" },
        made("rest", "rest"),
        { "op": "append", "on": "rest", "text": "x".repeat(881) },
        { "op": "append", "on": "rest", "text": "x".repeat(880) },
        { "op": "append", "on": "rest", "text": "x" },
    ]);
    let loot = house.burgle(&[quota(&house, 1_000, 5)], ops).await;
    let (last, rest) = loot.answers.split_at(16);
    assert!(
        last.iter()
            .all(|answer| !answer.contains('-') && answer != "quota"),
        "{last:?}"
    );
    assert_eq!(rest, [OVER, "ok", OVER]);
    assert_eq!(really(&house.sandbox), (1_000, 5));
}

#[tokio::test]
async fn an_unlinked_file_counts_until_nobody_has_it_open() {
    let house = House::new().await;
    let grant = quota(&house, 1_000, 10);
    let full = "x".repeat(1_000);
    let ops = json!([
        made("f", "f"),
        { "op": "append", "on": "f", "text": full },
        { "op": "unlink", "on": "/s", "path": "f" },
        made("g", "g"),
        { "op": "append", "on": "g", "text": "x" },
        { "op": "close", "on": "f" },
        { "op": "append", "on": "g", "text": full },
        { "op": "open", "on": "/s", "path": "g", "as": "h" },
        { "op": "close", "on": "g" },
        made("over", "o"),
        { "op": "rename", "on": "/s", "path": "over", "to": "g" },
        { "op": "append", "on": "o", "text": "x" },
        { "op": "close", "on": "h" },
        { "op": "append", "on": "o", "text": full },
    ]);
    let loot = house.burgle(&[grant], ops).await;
    assert_eq!(
        loot.answers,
        [
            "ok", "ok", "ok", "ok", OVER, "ok", "ok", "ok", "ok", "ok", "ok", OVER, "ok", "ok"
        ]
    );
}

#[tokio::test]
async fn calls_at_the_same_time_share_one_quota() {
    let house = House::new().await;
    let grant = [quota(&house, 100_000, 6)];
    let call = |n: u32| {
        let ops =
            json!([made(&format!("f{n}"), "f"), { "op": "fill", "on": "f", "bytes": 40_000 }]);
        house.burgle(&grant, ops)
    };
    let loots = tokio::join!(
        call(0),
        call(1),
        call(2),
        call(3),
        call(4),
        call(5),
        call(6),
        call(7)
    );
    let loots = <[Loot; 8]>::from(loots);
    // One folder is there, so five calls get a file, and two of those all that they want.
    assert_eq!(
        loots
            .iter()
            .filter(|loot| loot.answers[0] == "quota")
            .count(),
        3
    );
    let (bytes, files) = really(&house.sandbox);
    assert!(bytes <= 100_000 && bytes > 80_000, "{bytes}");
    assert_eq!(files, 6);
}

#[tokio::test]
async fn what_is_there_already_counts_and_a_folder_that_is_over_can_be_emptied() {
    let house = House::new().await;
    for n in 0..20 {
        fs::write(house.sandbox.join(format!("old-{n}")), "old").unwrap();
    }
    let remove = |n: u32| json!({ "op": "unlink", "on": "/s", "path": format!("old-{n}") });
    let mut ops = vec![
        made("new", "n"),
        json!({ "op": "open", "on": "/s", "path": "old-0", "as": "o", "write": true }),
    ];
    ops.push(json!({ "op": "write", "on": "o", "text": "new", "offset": 0 }));
    ops.push(json!({ "op": "append", "on": "o", "text": "x" }));
    ops.extend((1..17).map(remove));
    ops.push(made("new", "n"));
    ops.push(made("newer", "n"));
    let loot = house
        .burgle(&[quota(&house, 1_000, 6)], Value::from(ops))
        .await;
    assert_eq!(loot.answers[..4], ["quota", "ok", "3", OVER]);
    assert!(loot.answers[4..20].iter().all(|answer| answer == "ok"));
    assert_eq!(loot.answers[20..], ["ok", "quota"]);
}

#[tokio::test]
async fn folders_in_folders_end_before_they_cannot_be_counted() {
    let house = House::new().await;
    let mut ops = vec![json!({ "op": "open", "on": "/s", "path": "folder", "as": "d1" })];
    for depth in 1..200 {
        ops.push(json!({ "op": "mkdir", "on": format!("d{depth}"), "path": "d" }));
        ops.push(json!({ "op": "open", "on": format!("d{depth}"), "path": "d", "as": format!("d{}", depth + 1) }));
    }
    let loot = house
        .burgle(&[quota(&house, 1_000, 10_000)], Value::from(ops))
        .await;
    assert!(loot.answers.contains(&"quota".to_owned()));
    loot.says("files.write", BoundaryVerdict::Limited);
    // And then it is counted.
    let again = house
        .burgle(
            &[quota(&house, 1_000, 10_000)],
            json!([made("f", "f"), { "op": "append", "on": "f", "text": "x" }]),
        )
        .await;
    assert_eq!(again.answers, ["ok", "ok"]);
}

#[tokio::test]
async fn a_grant_without_a_quota_keeps_the_account_of_one_that_has_it() {
    let house = House::new().await;
    let limited = quota(&house, 100, 10);
    let patterned = DirectoryGrant {
        deny: vec!["x".parse().unwrap()],
        at: "/p".into(),
        ..house.whole()
    };
    let ops = json!([
        made("f", "f"),
        { "op": "append", "on": "f", "text": "x" },
        { "op": "open", "on": "/p", "path": "g", "as": "g", "create": true, "write": true },
        { "op": "append", "on": "g", "text": "x".repeat(99) },
        { "op": "append", "on": "f", "text": "x" },
    ]);
    let loot = house.burgle(&[limited, patterned], ops).await;
    assert_eq!(loot.answers, ["ok", "ok", "ok", "ok", OVER]);
}
