//! Granted folders against a burglar: nothing outside of them is reached, nothing denied is seen,
//! and the audit record says what was tried.

use crate::fixture::{Fixture, assert_trapped, done, tool_call};
use agent_host_runtime::{Called, Component, FolderError, ToolCall};
use domain::event::BoundaryVerdict;
use domain::grant::{Access, Bound, DirectoryGrant, Owner, Owners};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A folder to be granted, and one beside it that is not granted.
pub(crate) struct House {
    fixture: Fixture,
    burglar: Arc<Component>,
    pub(crate) sandbox: PathBuf,
}

/// The results of a call's operations, and the decisions in the audit record.
pub(crate) struct Loot {
    pub(crate) answers: Vec<String>,
    pub(crate) decided: Vec<(String, BoundaryVerdict, String)>,
}

fn burgling(ops: &Value) -> ToolCall {
    tool_call("burgle", &json!({ "ops": ops }).to_string())
}

impl House {
    pub(crate) async fn new() -> Self {
        let (fixture, burglar) = Fixture::of("burglar").await;
        let sandbox = fixture.folder.path().join("sandbox");
        fs::create_dir_all(sandbox.join("folder")).unwrap();
        fs::create_dir(fixture.folder.path().join("outside")).unwrap();
        fs::write(fixture.folder.path().join("outside/secret"), "secret").unwrap();
        Self {
            fixture,
            burglar,
            sandbox,
        }
    }

    pub(crate) fn with(self, path: &str, content: &str) -> Self {
        let path = self.sandbox.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn whole(&self) -> DirectoryGrant {
        DirectoryGrant::whole(&self.sandbox, "/s", Access::ReadWrite)
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.sandbox.join(path)).unwrap()
    }

    async fn called(&self, directories: &[DirectoryGrant], ops: &Value) -> Called {
        let fixture = &self.fixture;
        fixture.runtime.open_folders(directories, &[]).unwrap();
        let called = self.called_with(burgling(ops), directories).await;
        self.assert_secure();
        called
    }

    pub(crate) async fn burgle(&self, directories: &[DirectoryGrant], ops: Value) -> Loot {
        let called = self.called(directories, &ops).await;
        let answers = serde_json::from_str(&done(&called)).unwrap();
        let decisions = called.decided.decisions.into_iter();
        Loot {
            answers,
            decided: decisions
                .map(|decision| (decision.capability, decision.verdict, decision.detail))
                .collect(),
        }
    }

    /// Opens these folders, as a host does when it starts.
    pub(crate) fn open(&self, directories: &[DirectoryGrant]) -> Result<(), FolderError> {
        self.fixture
            .runtime
            .open_folders(directories, &[&self.beside("data")])
    }

    /// A path beside the sandbox.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.fixture.folder.path().join(name)
    }

    /// The answers to operations in folders as they were opened before.
    pub(crate) async fn answers(&self, directories: &[DirectoryGrant], ops: &Value) -> Vec<String> {
        let called = self.called_with(burgling(ops), directories).await;
        serde_json::from_str(&done(&called)).unwrap()
    }

    /// A call of operations for this user, in this session, in folders as they were opened before.
    pub(crate) async fn called_for(
        &self,
        owners: Owners<'_>,
        directories: &[DirectoryGrant],
        ops: &Value,
    ) -> Called {
        let call = ToolCall {
            user_id: owners.user.to_owned(),
            agent_id: owners.agent.to_owned(),
            session_id: owners.session.to_owned(),
            ..burgling(ops)
        };
        let called = self.called_with(call, directories).await;
        self.assert_secure();
        called
    }

    async fn called_with(&self, call: ToolCall, directories: &[DirectoryGrant]) -> Called {
        let bound = Bound {
            directories: directories.to_vec(),
            ..Bound::default()
        };
        let fixture = &self.fixture;
        fixture
            .call_in_open_folders(&self.burglar, &bound, call, &Arc::default())
            .await
    }

    /// Removes the folders of an owner.
    pub(crate) async fn remove_of(&self, owner: Owner, id: &str) -> std::io::Result<u64> {
        self.fixture.runtime.remove_folders_of(owner, id).await
    }

    /// Makes the check that wasmtime's own tests make after each attack.
    fn assert_secure(&self) {
        let outside = self.fixture.folder.path().join("outside");
        assert_eq!(
            fs::read_to_string(outside.join("secret")).unwrap(),
            "secret"
        );
        assert_eq!(
            fs::read_dir(&outside).unwrap().count(),
            1,
            "something was put outside"
        );
        assert!(
            !self.sandbox.join("stolen").exists(),
            "something was stolen"
        );
    }
}

impl Loot {
    #[track_caller]
    pub(crate) fn granted(&self, capability: &str) -> &str {
        self.says(capability, BoundaryVerdict::Granted)
    }

    #[track_caller]
    pub(crate) fn refused(&self, capability: &str) -> &str {
        self.says(capability, BoundaryVerdict::Refused)
    }

    #[track_caller]
    pub(crate) fn says(&self, capability: &str, verdict: BoundaryVerdict) -> &str {
        let found = self
            .decided
            .iter()
            .find(|(name, decided, _)| name == capability && *decided == verdict);
        &found
            .unwrap_or_else(|| panic!("no {capability} {verdict:?} in {:?}", self.decided))
            .2
    }
}

/// A whole folder, one with a pattern about something else, and one with a quota: no way around may
/// be in any of them.
pub(crate) fn kinds(house: &House) -> [DirectoryGrant; 3] {
    [
        house.whole(),
        DirectoryGrant {
            deny: vec!["nothing".parse().unwrap()],
            ..house.whole()
        },
        DirectoryGrant {
            bytes_max: Some(1 << 20),
            files_max: Some(100),
            ..house.whole()
        },
    ]
}

fn linked(house: &House) {
    for (name, target) in [
        ("out", "../outside"),
        ("out-slash", "../outside/"),
        ("out-dot", "../outside/."),
        ("secret-link", "../outside/secret"),
        ("chain", "chain-2"),
        ("chain-2", "folder/../chain-3"),
        ("chain-3", "../outside"),
        (
            "absolute",
            house
                .fixture
                .folder
                .path()
                .join("outside")
                .to_str()
                .unwrap(),
        ),
        ("loop", "loop-2"),
        ("loop-2", "loop"),
        ("folder/up", "../.."),
    ] {
        symlink(target, house.sandbox.join(name)).unwrap();
    }
}

/// Paths that lead to what was not granted, or nowhere.
fn spellings(absolute: &str) -> Vec<String> {
    let spellings = [
        "../outside/secret",
        "./../outside/secret",
        "folder/../../outside/secret",
        "folder/./.././../outside/secret",
        "..",
        "../sandbox/file",
        "/outside/secret",
        "//outside/secret",
        absolute,
        "/s/file",
        "out/secret",
        "out//secret",
        "out/./secret",
        "out-slash/secret",
        "out-dot/secret",
        "chain/secret",
        "absolute/secret",
        "loop/secret",
        "folder/up/outside/secret",
        "folder/up/../outside/secret",
        "out/../outside/secret",
        &format!("{}../outside/secret", "./".repeat(1_000)),
        &format!(
            "{}{}outside/secret",
            "folder/".repeat(300),
            "../".repeat(301)
        ),
        &"a/".repeat(2_100),
        &"a".repeat(5_000),
        "secret-link",
        "secret-link/",
        "file/",
        "file/.",
        "file/../../outside/secret",
        "out\0/secret",
        "../outside/secret\0",
    ];
    spellings.map(str::to_owned).to_vec()
}

#[tokio::test]
async fn no_path_leads_out_of_a_granted_folder() {
    let house = House::new().await.with("file", "file");
    linked(&house);
    let absolute = house.fixture.folder.path().join("outside/secret");
    let spellings = spellings(absolute.to_str().unwrap());
    for grant in kinds(&house) {
        for way in spellings.iter().map(String::as_str) {
            let on = "/s";
            let follow = true;
            let mut ops = vec![
                json!({ "op": "open", "on": on, "path": way, "as": "o", "follow": follow }),
                json!({ "op": "open", "on": on, "path": way, "as": "o", "follow": follow, "directory": true }),
                json!({ "op": "open", "on": on, "path": way, "as": "o", "follow": follow, "write": true }),
                json!({ "op": "open", "on": on, "path": way, "as": "o", "follow": follow, "write": true, "truncate": true }),
                json!({ "op": "open", "on": on, "path": way, "as": "o", "follow": follow, "write": true, "create": true }),
                json!({ "op": "stat", "on": on, "path": way, "follow": follow }),
                json!({ "op": "hash", "on": on, "path": way, "follow": follow }),
                json!({ "op": "touch", "on": on, "path": way, "follow": follow }),
            ];
            // By its own name a link is the guest's to move.
            if way != "secret-link" {
                ops.extend([
                    json!({ "op": "readlink", "on": on, "path": way }),
                    json!({ "op": "rename", "on": on, "path": way, "to": "stolen" }),
                    json!({ "op": "link", "on": on, "path": way, "to": "stolen" }),
                    json!({ "op": "unlink", "on": on, "path": way }),
                    json!({ "op": "rmdir", "on": on, "path": way }),
                    json!({ "op": "symlink", "on": on, "path": way, "to": "file" }),
                    json!({ "op": "rename", "on": on, "path": "file", "to": way }),
                    json!({ "op": "link", "on": on, "path": "file", "to": way }),
                ]);
            }
            let loot = house
                .burgle(std::slice::from_ref(&grant), Value::from(ops))
                .await;
            let refused = |answer: &String| {
                answer
                    .chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '-')
                    && answer != "ok"
            };
            assert!(
                loot.answers.iter().all(refused),
                "{way} in {grant:?}: {:?}",
                loot.answers
            );
            assert_eq!(house.text("file"), "file", "{way}");
            if way.starts_with("..") && !way.contains('\0') {
                for capability in ["files.read", "files.write"] {
                    assert!(loot.refused(capability).ends_with(way));
                }
            }
        }
    }
}

#[tokio::test]
async fn a_folder_that_is_swapped_for_a_link_while_it_is_used_leads_nowhere_else() {
    let house = House::new().await.with("swap/secret", "harmless");
    let over = Arc::new(AtomicBool::new(false));
    let sandbox = house.sandbox.clone();
    symlink("../outside", sandbox.join("link")).unwrap();
    let swapping = {
        let over = over.clone();
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
    for grant in kinds(&house) {
        let ops = json!([
            { "op": "hammer", "on": "/s", "path": "swap/secret", "follow": true, "times": 500 },
            { "op": "hammer", "on": "/s", "path": "swap/secret", "follow": true, "write": true, "times": 500 },
        ]);
        for answer in house.burgle(&[grant], ops).await.answers {
            let harmless = |seen: &str| {
                matches!(
                    seen,
                    "harmless" | "no-entry" | "not-permitted" | "not-directory" | "loop" | "busy"
                )
            };
            assert!(answer.split(',').all(harmless), "{answer}");
        }
    }
    over.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
}

#[tokio::test]
async fn nothing_is_changed_in_a_read_only_folder() {
    let house = House::new().await.with("file", "file");
    let on = "/s";
    let ops = json!([
        { "op": "open", "on": on, "path": "file", "as": "t", "truncate": true },
        { "op": "open", "on": on, "path": "file", "as": "t", "write": true, "truncate": true },
        { "op": "open", "on": on, "path": "file", "as": "t", "write": true },
        { "op": "open", "on": on, "path": "new", "as": "t", "create": true },
        { "op": "mkdir", "on": on, "path": "new" },
        { "op": "unlink", "on": on, "path": "file" },
        { "op": "rmdir", "on": on, "path": "folder" },
        { "op": "touch", "on": on, "path": "file" },
        { "op": "symlink", "on": on, "path": "new", "to": "file" },
        { "op": "link", "on": on, "path": "file", "to": "new" },
        { "op": "rename", "on": on, "path": "file", "to": "new" },
        { "op": "open", "on": on, "path": "file", "as": "f" },
        { "op": "size", "on": "f", "size": 0 },
        { "op": "write", "on": "f", "text": "x" },
        { "op": "write-stream", "on": "f", "text": "x" },
        { "op": "append", "on": "f", "text": "x" },
        { "op": "read", "on": "f" },
    ]);
    for grant in kinds(&house) {
        let grant = DirectoryGrant {
            access: Access::ReadOnly,
            ..grant
        };
        let loot = house.burgle(&[grant], ops.clone()).await;
        let changes = &loot.answers[..11];
        let reads = &loot.answers[11..];
        assert!(
            changes.iter().all(|answer| answer == "not-permitted"),
            "{changes:?}"
        );
        assert_eq!(
            reads,
            [
                "ok",
                "not-permitted",
                "not-permitted",
                "not-permitted",
                "not-permitted",
                "file"
            ]
        );
        assert_eq!(loot.refused("files.write"), "/s/file");
        assert_eq!(loot.granted("files.read"), "/s/file");
        assert_eq!(loot.decided.len(), 2, "{:?}", loot.decided);
        assert_eq!(house.text("file"), "file");
    }
}

#[tokio::test]
async fn what_is_denied_is_neither_seen_nor_used_and_what_is_not_allowed_is_no_file() {
    let house = House::new()
        .await
        .with("secret/key", "key")
        .with("notes/a.md", "a")
        .with("notes/a.key", "k")
        .with("notes/.env", "e");
    let globs = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<_>>()
    };
    let grant = DirectoryGrant {
        allow: Some(globs(&["**/*.md"])),
        deny: globs(&["secret", "**/.env"]),
        ..house.whole()
    };
    let on = "/s";
    let ops = json!([
        { "op": "list", "on": on },
        { "op": "open", "on": on, "path": "notes", "as": "notes" },
        { "op": "list", "on": "notes" },
        { "op": "open", "on": "notes", "path": "a.md", "as": "a", "write": true },
        { "op": "read", "on": "a" },
        { "op": "write", "on": "a", "text": "b" },
        { "op": "stat", "on": on, "path": "notes/a.md" },
        { "op": "open", "on": "notes", "path": "new.md", "as": "n", "create": true, "write": true },
        { "op": "rename", "on": "notes", "path": "new.md", "to": "newer.md" },
        { "op": "mkdir", "on": "notes", "path": "deeper" },
        { "op": "rmdir", "on": "notes", "path": "deeper" },
        { "op": "unlink", "on": "notes", "path": "newer.md" },
    ]);
    let loot = house.burgle(std::slice::from_ref(&grant), ops).await;
    assert_eq!(
        loot.answers,
        [
            "folder,notes",
            "ok",
            "a.md",
            "ok",
            "a",
            "1",
            "file 1",
            "ok",
            "ok",
            "ok",
            "ok",
            "ok"
        ]
    );
    assert_eq!(loot.granted("files.write"), "/s/notes/a.md");
    assert_eq!(loot.decided.len(), 2, "{:?}", loot.decided);

    let barred = [
        "secret",
        "secret/key",
        "secret/",
        "./secret//key",
        "notes/../secret/key",
        "secret/../notes/a.md",
        "secret/none",
    ]
    .into_iter()
    .chain([
        "notes/.env",
        "notes/.env/x",
        "notes/a.key",
        "notes/none",
        "notes/./a.key",
        "none.txt",
    ]);
    for path in barred {
        let ops = json!([
            { "op": "stat", "on": on, "path": path },
            { "op": "stat", "on": on, "path": path, "follow": true },
            { "op": "hash", "on": on, "path": path },
            { "op": "touch", "on": on, "path": path },
            { "op": "readlink", "on": on, "path": path },
            { "op": "open", "on": on, "path": path, "as": "x" },
            { "op": "open", "on": on, "path": path, "as": "x", "directory": true },
            { "op": "open", "on": on, "path": path, "as": "x", "create": true, "write": true },
            { "op": "open", "on": on, "path": path, "as": "x", "truncate": true, "write": true },
            { "op": "unlink", "on": on, "path": path },
            { "op": "rename", "on": on, "path": path, "to": "stolen" },
            { "op": "rename", "on": on, "path": "notes/a.md", "to": path },
            { "op": "link", "on": on, "path": path, "to": "stolen" },
            { "op": "link", "on": on, "path": "notes/a.md", "to": path },
            { "op": "symlink", "on": on, "path": "stolen", "to": path },
            { "op": "symlink", "on": on, "path": path, "to": "notes/a.md" },
        ]);
        let loot = house.burgle(std::slice::from_ref(&grant), ops).await;
        assert!(
            loot.answers.iter().all(|answer| answer == "not-permitted"),
            "{path}: {:?}",
            loot.answers
        );
        assert_eq!(loot.refused("files.read"), format!("/s/{path}"));
        assert_eq!(loot.refused("files.write"), format!("/s/{path}"));
        assert_eq!(loot.decided.len(), 2, "{:?}", loot.decided);
    }
    let rmdir = |path| json!({ "op": "rmdir", "on": on, "path": path });
    let mkdir = |path| json!({ "op": "mkdir", "on": on, "path": path });
    let stat = |path| json!({ "op": "stat", "on": on, "path": path });
    let ops = json!([
        rmdir("notes/a.key"),
        rmdir("notes/none"),
        mkdir("notes/a.key"),
        mkdir("notes"),
        stat("notes/a.key/x"),
        stat("notes/none/x")
    ]);
    let no = "not-permitted";
    let none = "no-entry";
    assert_eq!(
        house.burgle(&[grant], ops).await.answers,
        [no, no, no, "exist", none, none]
    );
    assert_eq!(
        (
            house.text("secret/key"),
            house.text("notes/a.key"),
            house.text("notes/.env")
        ),
        ("key".into(), "k".into(), "e".into())
    );
}

#[tokio::test]
async fn no_link_and_no_moved_folder_gets_around_a_pattern() {
    let house = House::new()
        .await
        .with("secret/key", "key")
        .with("open/file", "open");
    for (link, target) in [
        ("to-key", "secret/key"),
        ("to-secret", "secret"),
        ("open/up", ".."),
    ] {
        symlink(target, house.sandbox.join(link)).unwrap();
    }
    let grant = DirectoryGrant {
        deny: vec!["secret".parse().unwrap(), "open/hidden".parse().unwrap()],
        ..house.whole()
    };
    let on = "/s";
    let no = "not-permitted";
    let ops = json!([
        { "op": "open", "on": on, "path": "to-key", "as": "x", "follow": true },
        { "op": "open", "on": on, "path": "to-key", "as": "x" },
        { "op": "stat", "on": on, "path": "to-key", "follow": true },
        { "op": "open", "on": on, "path": "to-secret/key", "as": "x" },
        { "op": "open", "on": on, "path": "to-secret/", "as": "x" },
        { "op": "open", "on": on, "path": "open/up/secret/key", "as": "x" },
        { "op": "open", "on": on, "path": "open/up/open/file", "as": "x" },
        { "op": "touch", "on": on, "path": "to-key", "follow": true },
        { "op": "symlink", "on": on, "path": "new", "to": "open/file" },
        { "op": "rename", "on": on, "path": "open", "to": "moved" },
        { "op": "rename", "on": on, "path": "to-secret/key", "to": "stolen" },
        { "op": "stat", "on": on, "path": "to-key" },
        { "op": "readlink", "on": on, "path": "to-key" },
    ]);
    let loot = house.burgle(&[grant], ops).await;
    assert_eq!(loot.answers[..11], [no; 11]);
    assert_eq!(loot.answers[11..], ["link 10", "secret/key"]);
    assert_eq!(loot.refused("files.read"), "/s/to-key");
    assert_eq!(loot.refused("files.write"), "/s/to-key");
}

#[tokio::test]
async fn with_a_quota_alone_links_within_the_folder_are_followed() {
    let house = House::new().await.with("real/file", "text");
    symlink("real/file", house.sandbox.join("to-file")).unwrap();
    symlink("./real/", house.sandbox.join("to-real")).unwrap();
    symlink("real/made", house.sandbox.join("dangling")).unwrap();
    let grant = DirectoryGrant {
        files_max: Some(10),
        ..house.whole()
    };
    let ops = json!([
        { "op": "open", "on": "/s", "path": "to-file", "as": "a", "follow": true },
        { "op": "read-stream", "on": "a" },
        { "op": "open", "on": "/s", "path": "to-file", "as": "x" },
        { "op": "stat", "on": "/s", "path": "to-real/file" },
        { "op": "open", "on": "/s", "path": "dangling", "as": "m", "follow": true, "create": true, "write": true },
        { "op": "append", "on": "m", "text": "made" },
        { "op": "open", "on": "/s", "path": "to-real/file", "as": "t", "write": true, "truncate": true },
    ]);
    let loot = house.burgle(&[grant], ops).await;
    assert_eq!(
        loot.answers,
        ["ok", "text", "loop", "file 4", "ok", "ok", "ok"]
    );
    assert_eq!(
        (house.text("real/made"), house.text("real/file")),
        ("made".into(), String::new())
    );
}

#[tokio::test]
async fn nothing_is_linked_or_moved_from_one_grant_into_another_of_other_rights() {
    let house = House::new().await.with("file", "file");
    let other = house.fixture.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("kept"), "kept").unwrap();
    let ops = json!([
        { "op": "link", "on": "/s", "path": "file", "toOn": "/o", "to": "taken" },
        { "op": "rename", "on": "/s", "path": "file", "toOn": "/o", "to": "taken" },
        { "op": "rename", "on": "/o", "path": "kept", "toOn": "/s", "to": "stolen" },
        { "op": "link", "on": "/o", "path": "kept", "toOn": "/s", "to": "stolen" },
    ]);
    let read_only = DirectoryGrant::whole(&other, "/o", Access::ReadOnly);
    let writable = DirectoryGrant::whole(&other, "/o", Access::ReadWrite);
    let mut limited = writable.clone();
    limited.bytes_max = Some(100);
    let mut patterned = writable;
    patterned.deny = vec!["x".parse().unwrap()];
    let mut counted = house.whole();
    counted.files_max = Some(100);
    for grants in [
        [house.whole(), read_only.clone()],
        [house.whole(), limited],
        [house.whole(), patterned],
        [counted, read_only],
    ] {
        let loot = house.burgle(&grants, ops.clone()).await;
        assert_eq!(loot.answers, ["not-permitted"; 4], "{grants:?}");
        loot.refused("files.write");
        assert_eq!(house.text("file"), "file");
        assert_eq!(fs::read_to_string(other.join("kept")).unwrap(), "kept");
    }
}

/// Programs copy what cannot be moved to another disk, when they are told so.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_move_to_another_disk_is_told_apart_from_a_fault() {
    use std::os::unix::fs::MetadataExt;
    let house = House::new().await.with("file", "file");
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let other = ["/dev/shm", "/run", "/tmp", "/var/tmp"]
        .into_iter()
        .map(Path::new)
        .filter(|path| path.is_dir() && device(path) != device(&house.sandbox))
        .find_map(|path| tempfile::tempdir_in(path).ok())
        .expect("a second disk that can be written");
    let there = DirectoryGrant::whole(other.path(), "/o", Access::ReadWrite);
    let ops = json!([
        { "op": "rename", "on": "/s", "path": "file", "toOn": "/o", "to": "file" },
        { "op": "link", "on": "/s", "path": "file", "toOn": "/o", "to": "file" },
    ]);
    let loot = house.burgle(&[house.whole(), there], ops).await;
    assert_eq!(loot.answers, ["cross-device"; 2]);
    assert_eq!(house.text("file"), "file");
}

/// Handles that nobody gave out and texts that are none end the call, and nothing else.
#[tokio::test]
async fn handles_that_nobody_gave_out_and_texts_that_are_none_end_the_call_alone() {
    let house = House::new().await.with("file", "file");
    for grant in kinds(&house) {
        let grant = std::slice::from_ref(&grant);
        for op in ["forge", "use-after-drop", "garbled"] {
            let ops = json!([{ "op": op, "on": "/s" }]);
            assert_trapped(&house.called(grant, &ops).await.outcome);
        }
        let ops = json!([
            { "op": "open", "on": "/s", "path": "file", "as": "f" },
            { "op": "close", "on": "/s" },
            { "op": "stat", "on": "/s", "path": "file" },
            { "op": "read", "on": "f" },
        ]);
        assert_eq!(
            house.burgle(grant, ops).await.answers,
            ["ok", "ok", "`/s` is not open", "file"]
        );
    }
}

#[tokio::test]
async fn a_path_goes_on_record_as_the_guest_sees_it_and_each_decision_is_counted() {
    let house = House::new().await.with("folder/file", "file");
    for grant in kinds(&house) {
        let ops = json!([
            { "op": "open", "on": "/s", "path": "folder", "as": "d" },
            { "op": "open", "on": "d", "path": "file", "as": "f", "write": true },
            { "op": "read", "on": "f" },
            { "op": "read", "on": "f" },
            { "op": "stat", "on": "d", "path": "none" },
        ]);
        let loot = house.burgle(&[grant], ops).await;
        assert_eq!(loot.answers, ["ok", "ok", "file", "file", "no-entry"]);
        let expected = [
            ("files.read", "/s/folder"),
            ("files.write", "/s/folder/file"),
        ];
        assert_eq!(
            loot.decided,
            expected.map(|(name, detail)| (
                name.to_owned(),
                BoundaryVerdict::Granted,
                detail.to_owned()
            ))
        );
    }
}

/// Bytes and entries below a folder, counted here.
pub(crate) fn really(folder: &Path) -> (u64, u64) {
    fs::read_dir(folder)
        .unwrap()
        .fold((0, 0), |(bytes, files), entry| {
            let entry = entry.unwrap();
            let meta = fs::symlink_metadata(entry.path()).unwrap();
            let (inner_bytes, inner_files) = if meta.is_dir() {
                really(&entry.path())
            } else {
                (meta.len(), 0)
            };
            (bytes + inner_bytes, files + 1 + inner_files)
        })
}
