//! The built-in file tools in granted folders: what a grant allows works, whatever else it says.

use crate::files::{House, kinds};
use crate::fixture::{Fixture, built, done, failed};
use agent_host_runtime::{Called, Component};
use domain::grant::{Access, Bound, DirectoryGrant};
use domain::tool::ToolError;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

/// The file tools, and a folder for them.
struct Desk {
    fixture: Fixture,
    tools: Arc<Component>,
    folder: PathBuf,
}

impl Desk {
    async fn new() -> Self {
        let fixture = Fixture::new();
        let tools = fixture
            .runtime
            .load(built("guests", "files"))
            .await
            .unwrap();
        let folder = fixture.folder.path().join("desk");
        fs::create_dir_all(folder.join("notes")).unwrap();
        Self {
            fixture,
            tools,
            folder,
        }
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::write(self.folder.join(path), content).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.folder.join(path)).unwrap()
    }

    fn whole(&self) -> DirectoryGrant {
        DirectoryGrant::whole(&self.folder, "/w", Access::ReadWrite)
    }

    /// The same, with patterns.
    fn patterned(&self, allow: Option<&[&str]>, deny: &[&str]) -> DirectoryGrant {
        let globs = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        DirectoryGrant {
            allow: allow.map(globs),
            deny: globs(deny),
            ..self.whole()
        }
    }

    async fn call(&self, grant: &DirectoryGrant, tool: &str, arguments: Value) -> Called {
        let bound = Bound {
            directories: vec![grant.clone()],
            ..Bound::default()
        };
        self.fixture
            .call_bound(&self.tools, &bound, tool, &arguments.to_string())
            .await
    }

    async fn write(&self, grant: &DirectoryGrant, path: &str, content: &str) -> Called {
        let arguments = json!({ "path": path, "content": content });
        self.call(grant, "write_file", arguments).await
    }

    /// The names in a folder, sorted.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join(path)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[tokio::test]
async fn a_file_that_the_patterns_allow_is_written_and_no_other() {
    let desk = Desk::new().await;
    for (allow, deny) in [
        (Some(&["**/*.md"][..]), &[][..]),
        (Some(&["notes/a.md"]), &[]),
        (Some(&["notes/?.md", "x"]), &["**/.*"]),
        (None, &["**/.*"]),
        (None, &["**/*.part", "**/.*.part.*"]),
        (Some(&["**"]), &["secret"]),
    ] {
        let grant = desk.patterned(allow, deny);
        desk.put("notes/a.md", "old and long");
        for content in ["new", "longer than the old was"] {
            done(&desk.write(&grant, "notes/a.md", content).await);
            assert_eq!(desk.text("notes/a.md"), content, "{grant:?}");
        }
        fs::remove_file(desk.folder.join("notes/a.md")).unwrap();
        done(&desk.write(&grant, "notes/a.md", "made").await);
        assert_eq!(desk.names("notes"), ["a.md"], "{grant:?}");
    }
    desk.put("notes/b.txt", "kept");
    desk.put("secret", "kept");
    for (grant, path) in [
        (desk.patterned(Some(&["**/*.md"]), &[]), "notes/b.txt"),
        (desk.patterned(Some(&["**/*.md"]), &[]), "notes/new.txt"),
        (desk.patterned(None, &["secret"]), "secret"),
    ] {
        let refused = failed(&desk.write(&grant, path, "taken").await);
        assert!(matches!(refused, ToolError::Denied), "{refused:?}");
    }
    assert_eq!(desk.names("notes"), ["a.md", "b.txt"]);
    assert_eq!(
        (desk.text("notes/b.txt"), desk.text("secret")),
        ("kept".into(), "kept".into())
    );
}

#[tokio::test]
async fn a_written_file_keeps_its_permissions_its_owner_and_its_names() {
    let desk = Desk::new().await;
    let quota = DirectoryGrant {
        bytes_max: Some(1_000),
        files_max: Some(10),
        ..desk.whole()
    };
    let in_place = desk.patterned(Some(&["file.sh", "one"]), &[]);
    for grant in [desk.whole(), quota, desk.patterned(None, &["x"]), in_place] {
        for mode in [0o755, 0o600, 0o664, 0o4_750] {
            desk.put("file.sh", "old");
            let path = desk.folder.join("file.sh");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let before = fs::metadata(&path).unwrap();
            done(&desk.write(&grant, "file.sh", "new").await);
            let after = fs::metadata(&path).unwrap();
            assert_eq!(desk.text("file.sh"), "new");
            // Nobody's rights are lent to what a component wrote.
            assert_eq!(after.mode() & 0o777, mode & 0o777, "{grant:?}");
            assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        }
        fs::remove_file(desk.folder.join("file.sh")).unwrap();
        desk.put("one", "old");
        fs::hard_link(desk.folder.join("one"), desk.folder.join("other")).unwrap();
        done(&desk.write(&grant, "one", "new").await);
        assert_eq!(desk.text("other"), "new", "{grant:?}");
        fs::remove_file(desk.folder.join("other")).unwrap();
    }
}

#[tokio::test]
async fn the_file_behind_a_link_is_the_one_that_is_read_and_written() {
    let desk = Desk::new().await;
    desk.put("notes/real.txt", "old");
    symlink("notes/real.txt", desk.folder.join("link.txt")).unwrap();
    symlink("../outside.txt", desk.folder.join("out.txt")).unwrap();
    done(&desk.write(&desk.whole(), "link.txt", "new").await);
    assert_eq!(desk.text("notes/real.txt"), "new");
    assert!(desk.folder.join("link.txt").is_symlink());
    for (grant, link) in [
        (desk.whole(), "out.txt"),
        (desk.patterned(None, &["x"]), "link.txt"),
    ] {
        failed(&desk.write(&grant, link, "x").await);
        assert!(desk.folder.join(link).is_symlink(), "{link}");
    }
    assert_eq!(desk.text("notes/real.txt"), "new");
    assert!(!desk.fixture.folder.path().join("outside.txt").exists());
}

#[tokio::test]
async fn what_fits_into_a_quota_in_the_end_is_written() {
    let desk = Desk::new().await;
    fs::remove_dir(desk.folder.join("notes")).unwrap();
    let grant = |bytes_max, files_max| DirectoryGrant {
        bytes_max,
        files_max,
        ..desk.whole()
    };
    let bytes = grant(Some(100_000), None);
    for (there, written) in [
        (60_000, 60_000),
        (95_000, 10_000),
        (100_000, 100_000),
        (0, 100_000),
    ] {
        desk.put("big.txt", "o".repeat(there));
        let new = "n".repeat(written);
        done(&desk.write(&bytes, "big.txt", &new).await);
        assert!(desk.text("big.txt") == new, "{there} {written}");
    }
    desk.put("big.txt", "o".repeat(60_000));
    failed(&desk.write(&bytes, "big.txt", &"n".repeat(100_001)).await);
    assert_eq!(desk.text("big.txt"), "o".repeat(60_000));
    done(&desk.write(&grant(None, Some(1)), "big.txt", "new").await);
    failed(&desk.write(&grant(None, Some(1)), "other.txt", "new").await);
    assert_eq!(desk.names(""), ["big.txt"]);
}

#[tokio::test]
async fn any_name_that_the_disk_takes_is_written_and_no_name_hides_others() {
    let desk = Desk::new().await;
    for name in [
        "x".repeat(255),
        "日".repeat(85),
        format!("{}.md", "x".repeat(252)),
    ] {
        done(&desk.write(&desk.whole(), &name, "one").await);
        done(&desk.write(&desk.whole(), &name, "two").await);
        assert_eq!(desk.text(&name), "two");
    }
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::ffi::OsStrExt;
        desk.put("notes/good.txt", "needle");
        let odd = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
        fs::write(desk.folder.join("notes").join(odd), "needle").unwrap();
        let passed_over = "passed over 1 entries whose names are not UTF-8";
        for grant in [desk.whole(), desk.patterned(None, &["nothing"])] {
            for (tool, arguments, said) in [
                (
                    "list_files",
                    json!({ "path": "notes" }),
                    "good.txt (6 bytes)",
                ),
                (
                    "search_files",
                    json!({ "path": ".", "pattern": "needle" }),
                    "notes/good.txt:1: needle",
                ),
            ] {
                let listed = done(&desk.call(&grant, tool, arguments).await);
                assert!(
                    listed.contains(said) && listed.contains(passed_over),
                    "{listed}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_search_of_more_than_its_time_allows_tells_what_it_found() {
    let desk = Desk::new().await;
    let filler = "a line of a log that says nothing at all of any use\n";
    for n in 0..40 {
        let first = if n == 0 { "NEEDLE here\n" } else { "" };
        desk.put(
            &format!("log{n:02}.txt"),
            format!("{first}{}", filler.repeat(150_000)),
        );
    }
    let arguments = json!({ "path": ".", "pattern": "(?i)needle|(a|b|c)+x" });
    let found = done(&desk.call(&desk.whole(), "search_files", arguments).await);
    assert!(found.starts_with("log00.txt:1: NEEDLE here\n"), "{found}");
    assert!(found.contains("[there may be more"), "{found}");
}

/// The permissions that somebody chose are those of the file that is moved, unless the call made
/// it.
#[tokio::test]
async fn only_a_file_that_the_call_made_takes_over_permissions() {
    let house = House::new().await;
    for grant in kinds(&house) {
        for (name, mode) in [("private", 0o600), ("public", 0o644), ("script", 0o755)] {
            fs::write(house.sandbox.join(name), name).unwrap();
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(house.sandbox.join(name), mode).unwrap();
        }
        let ops = json!([
            { "op": "rename", "on": "/s", "path": "private", "to": "public" },
            { "op": "open", "on": "/s", "path": "new", "as": "n", "create": true, "exclusive": true, "write": true },
            { "op": "append", "on": "n", "text": "new" },
            { "op": "rename", "on": "/s", "path": "new", "to": "script" },
        ]);
        assert_eq!(house.burgle(&[grant], ops).await.answers, ["ok"; 4]);
        let mode = |name: &str| fs::metadata(house.sandbox.join(name)).unwrap().mode() & 0o777;
        assert_eq!((mode("public"), mode("script")), (0o600, 0o755));
        assert_eq!(house.text("script"), "new");
    }
}
