//! A3 in granted folders: a burglar that looks for a way out by every path, through links and while
//! folders are swapped, and one that fills the disk.

use super::siege::Case;
use agent_host_tests::guests::wasm;
use domain::event::BoundaryVerdict;
use domain::grant::{Access, DirectoryGrant, Grant};
use domain::ruling::Rule;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const READ: &str = "files.read";
const WRITE: &str = "files.write";
/// Bytes and files of a folder with a quota.
const QUOTA: (u64, u32) = (64 << 10, 8);

/// A folder to be granted, and one beside it that is not granted.
struct House {
    folder: TempDir,
    sandbox: PathBuf,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = folder.path().join("sandbox");
        fs::create_dir_all(sandbox.join("folder")).unwrap();
        fs::write(sandbox.join("file"), "file").unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(folder.path().join("outside/secret"), "secret").unwrap();
        Self { folder, sandbox }
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    fn whole(&self) -> DirectoryGrant {
        DirectoryGrant::whole(&self.sandbox, "/s", Access::ReadWrite)
    }

    fn with_pattern(&self) -> DirectoryGrant {
        DirectoryGrant {
            deny: vec!["nothing".parse().unwrap()],
            ..self.whole()
        }
    }

    fn with_quota(&self) -> DirectoryGrant {
        DirectoryGrant {
            bytes_max: Some(QUOTA.0),
            files_max: Some(QUOTA.1),
            ..self.whole()
        }
    }

    /// Proves an attack of these operations in a folder that is granted so: each of them is
    /// answered as `is_harmless` says.
    async fn withstands(
        &self,
        attack: &'static str,
        grant: DirectoryGrant,
        ops: Value,
        is_harmless: fn(&str) -> bool,
        case: Says,
    ) {
        let grant = Grant {
            directories: vec![grant],
            ..Grant::default()
        };
        let answered = Case::of(attack, "parts [")
            .of_program(wasm("burglar"), "burgle", grant)
            .with(json!({ "ops": ops }));
        case(answered.answering(is_harmless)).prove().await;
        // What wasmtime's own tests ask after each attack.
        assert_eq!(
            fs::read_to_string(self.outside().join("secret")).unwrap(),
            "secret"
        );
        assert_eq!(
            fs::read_dir(self.outside()).unwrap().count(),
            1,
            "something was put outside"
        );
        assert!(
            !self.sandbox.join("stolen").exists(),
            "something was stolen"
        );
    }
}

/// Says what the ledger has of it.
type Says = fn(Case) -> Case;

/// Returns true for an error code in the form in which guests see them, such as `not-permitted`.
fn is_refused(answer: &str) -> bool {
    answer != "ok"
        && answer
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter == '-')
}

fn linked(sandbox: &Path, outside: &Path) {
    for (name, target) in [
        ("out", "../outside"),
        ("out-slash", "../outside/"),
        ("out-dot", "../outside/."),
        ("secret-link", "../outside/secret"),
        ("chain", "chain-2"),
        ("chain-2", "folder/../chain-3"),
        ("chain-3", "../outside"),
        ("absolute", outside.to_str().unwrap()),
        ("loop", "loop-2"),
        ("loop-2", "loop"),
        ("folder/up", "../.."),
        ("folder/middle", "../../outside"),
    ] {
        symlink(target, sandbox.join(name)).unwrap();
    }
}

/// Paths that lead out: by dots, from the root, and by a link that comes first, in the middle or
/// last.
fn detours(absolute: &str) -> Vec<String> {
    let detours = [
        "../outside/secret",
        "folder/../../outside/secret",
        "folder/./.././../outside/secret",
        "..",
        "/outside/secret",
        "//outside/secret",
        absolute,
        "out/secret",
        "out//secret",
        "out-slash/secret",
        "out-dot/./secret",
        "chain/secret",
        "absolute/secret",
        "loop/secret",
        "folder/up/outside/secret",
        "folder/middle/secret",
        "./folder/middle/../outside/secret",
        "out/../outside/secret",
        &format!("{}../outside/secret", "./".repeat(1_000)),
        &"a/".repeat(2_100),
        "secret-link/",
        "file/../../outside/secret",
        "out\0/secret",
    ];
    detours.map(str::to_owned).to_vec()
}

fn operations(way: &str) -> Vec<Value> {
    let on = "/s";
    let open = json!({ "op": "open", "on": on, "path": way, "as": "o", "follow": true });
    if way.len() > 1_000 {
        return vec![open];
    }
    vec![
        open,
        json!({
            "op": "open", "on": on, "path": way, "as": "o", "follow": true, "write": true,
            "create": true, "truncate": true,
        }),
        json!({ "op": "stat", "on": on, "path": way, "follow": true }),
        json!({ "op": "touch", "on": on, "path": way, "follow": true }),
        json!({ "op": "rename", "on": on, "path": way, "to": "stolen" }),
        json!({ "op": "link", "on": on, "path": way, "to": "stolen" }),
        json!({ "op": "unlink", "on": on, "path": way }),
        json!({ "op": "rename", "on": on, "path": "file", "to": way }),
        json!({ "op": "symlink", "on": on, "path": way, "to": "file" }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burglar_finds_no_way_out_of_a_granted_folder() {
    let house = House::new();
    linked(&house.sandbox, &house.outside());
    let absolute = house.outside().join("secret");
    let ops: Vec<Value> = detours(absolute.to_str().unwrap())
        .iter()
        .flat_map(|way| operations(way))
        .collect();
    let says: Says = |case| {
        let refused = |case: Case, capability| {
            case.line(
                capability,
                BoundaryVerdict::Refused,
                Rule::NotGranted,
                "/s/../outside/secret",
            )
        };
        refused(refused(case, READ), WRITE)
    };
    for grant in [house.whole(), house.with_pattern()] {
        house
            .withstands(
                "a way out",
                grant,
                Value::from(ops.clone()),
                is_refused,
                says,
            )
            .await;
        assert_eq!(
            fs::read_to_string(house.sandbox.join("file")).unwrap(),
            "file"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burglar_finds_no_spelling_of_a_path_that_gets_around_a_deny() {
    let house = House::new();
    fs::create_dir(house.sandbox.join("secret")).unwrap();
    fs::write(house.sandbox.join("secret/key"), "key").unwrap();
    let spellings = [
        "secret",
        "secret/",
        "secret/.",
        "secret/key",
        "secret/key/",
        "./secret//key",
        "folder/../secret/key",
        "secret/../secret/key",
        "secret/../file",
        "secret/../../etc/passwd",
        "folder/x/../../../etc/passwd",
        "SECRET/key",
        "secret\u{200b}/key",
    ];
    let ops: Vec<Value> = spellings.iter().flat_map(|way| operations(way)).collect();
    let grant = DirectoryGrant {
        allow: Some(vec!["**".parse().unwrap()]),
        deny: vec!["secret".parse().unwrap()],
        ..house.whole()
    };
    let says: Says = |case| {
        let refused = |case: Case, capability| {
            case.line(
                capability,
                BoundaryVerdict::Refused,
                Rule::NotGranted,
                "/s/secret",
            )
        };
        refused(refused(case, READ), WRITE)
    };
    house
        .withstands("a spelling", grant, Value::from(ops), is_refused, says)
        .await;
    assert_eq!(
        fs::read_to_string(house.sandbox.join("secret/key")).unwrap(),
        "key"
    );
    assert_eq!(
        fs::read_to_string(house.sandbox.join("file")).unwrap(),
        "file"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burglar_gets_nowhere_while_a_folder_is_swapped_for_a_link() {
    let house = House::new();
    fs::create_dir(house.sandbox.join("swap")).unwrap();
    fs::write(house.sandbox.join("swap/secret"), "harmless").unwrap();
    symlink("../outside", house.sandbox.join("link")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let over = over.clone();
        let sandbox = house.sandbox.clone();
        std::thread::spawn(move || {
            let at = |name: &str| sandbox.join(name);
            while !over.load(Ordering::Relaxed) {
                for (from, to) in [
                    ("swap", "kept"),
                    ("link", "swap"),
                    ("swap", "link"),
                    ("kept", "swap"),
                ] {
                    fs::rename(at(from), at(to)).unwrap();
                }
            }
        })
    };
    let ops = json!([
        { "op": "hammer", "on": "/s", "path": "swap/secret", "follow": true, "times": 50 },
        {
            "op": "hammer", "on": "/s", "path": "swap/secret", "follow": true, "write": true,
            "times": 50,
        },
        { "op": "stat", "on": "/s", "path": "../outside/secret" },
    ]);
    let is_harmless = |answer: &str| {
        let harmless = [
            "harmless",
            "no-entry",
            "not-permitted",
            "not-directory",
            "loop",
            "busy",
        ];
        answer.split(',').all(|seen| harmless.contains(&seen))
    };
    let says: Says = |case| case.line(READ, BoundaryVerdict::Refused, Rule::NotGranted, "/s/");
    for grant in [house.whole(), house.with_pattern()] {
        house
            .withstands("a swap", grant, ops.clone(), is_harmless, says)
            .await;
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burglar_that_fills_a_folder_meets_its_quota_and_the_disk_does_not_notice() {
    let house = House::new();
    let ops = json!([
        { "op": "open", "on": "/s", "path": "f", "as": "f", "create": true, "write": true },
        { "op": "fill", "on": "f", "bytes": 1 << 20 },
        { "op": "size", "on": "f", "size": 1_u64 << 60 },
        { "op": "write", "on": "f", "text": "x", "offset": 1_u64 << 50 },
        { "op": "append", "on": "f", "text": "x".repeat(1_000) },
    ]);
    let is_harmless = |answer: &str| answer == "ok" || answer.ends_with("insufficient-space");
    let says: Says = |case| case.line(WRITE, BoundaryVerdict::Limited, Rule::Limits, "/s/f");
    house
        .withstands(
            "a flood of bytes",
            house.with_quota(),
            ops,
            is_harmless,
            says,
        )
        .await;
    let bytes = fs::metadata(house.sandbox.join("f")).unwrap().len();
    assert!((QUOTA.0 * 9 / 10..=QUOTA.0).contains(&bytes), "{bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burglar_that_makes_files_without_end_meets_the_quota_of_files() {
    let house = House::new();
    // What is there already counts: these, `file` and `folder`.
    for n in 2..QUOTA.1 {
        fs::write(house.sandbox.join(n.to_string()), "").unwrap();
    }
    let ops = json!([
        { "op": "breed", "on": "/s", "count": 1_000 },
        { "op": "mkdir", "on": "/s", "path": "d" },
        { "op": "symlink", "on": "/s", "path": "l", "to": "file" },
        { "op": "link", "on": "/s", "path": "file", "to": "l" },
        { "op": "open", "on": "/s", "path": "n", "as": "n", "create": true, "write": true },
    ]);
    let is_harmless = |answer: &str| answer == "quota" || answer == "0 made, quota";
    let says: Says = |case| case.line(WRITE, BoundaryVerdict::Limited, Rule::Limits, "/s/bred-0");
    house
        .withstands(
            "a flood of files",
            house.with_quota(),
            ops,
            is_harmless,
            says,
        )
        .await;
    assert_eq!(
        fs::read_dir(&house.sandbox).unwrap().count(),
        QUOTA.1 as usize
    );
}
