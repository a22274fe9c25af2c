//! The file tools over folders of their own.

use crate::Files;
use crate::folders::NAMES_REPORTED_MAX;
use crate::list::LISTED_MAX;
use crate::read::READ_BYTES_MAX;
use crate::search::MATCHES_MAX;
use agent_host_sdk::harness::Bench;
use agent_host_sdk::{EffectClass, ToolError};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

struct World {
    dir: TempDir,
    bench: Bench<Files>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bench = Bench::new(Files::over(vec![dir.path().to_owned()]));
        Self { dir, bench }
    }

    fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    fn text(&self, tool: &str, arguments: Value) -> String {
        self.bench.text(tool, arguments).unwrap()
    }

    fn error(&self, tool: &str, arguments: Value) -> ToolError {
        self.bench.text(tool, arguments).unwrap_err()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

fn invalid(error: ToolError) -> String {
    match error {
        ToolError::InvalidArguments(message) => message,
        other => panic!("not about the arguments: {other:?}"),
    }
}

fn not_found(error: ToolError) -> String {
    match error {
        ToolError::NotFound(message) => message,
        other => panic!("not about something missing: {other:?}"),
    }
}

#[test]
fn definitions_say_what_each_tool_needs_and_does() {
    let bench = Bench::new(Files::granted());
    let summary: Vec<(String, String, EffectClass, bool)> = bench
        .definitions()
        .into_iter()
        .map(|tool| {
            (
                tool.name,
                tool.capabilities.join(","),
                tool.effect,
                tool.destructive,
            )
        })
        .collect();
    let expected = [
        ("read_file", "files.read", EffectClass::ReadOnly, false),
        ("write_file", "files.write", EffectClass::Idempotent, false),
        (
            "delete_file",
            "files.write",
            EffectClass::NonIdempotent,
            true,
        ),
        ("list_files", "files.read", EffectClass::ReadOnly, false),
        ("search_files", "files.read", EffectClass::ReadOnly, false),
    ];
    assert_eq!(
        summary,
        expected.map(|(name, needs, effect, harm)| (
            name.to_owned(),
            needs.to_owned(),
            effect,
            harm
        ))
    );
}

#[test]
fn parameters_are_named_as_on_the_wire() {
    let bench = Bench::new(Files::granted());
    let parameters = |tool: &str| {
        let schema = bench.definition(tool).arguments;
        let mut names: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        names.sort();
        (names.join(" "), schema["required"].clone())
    };
    assert_eq!(
        parameters("read_file"),
        ("limit offset path".to_owned(), json!(["path"]))
    );
    assert_eq!(
        parameters("write_file"),
        (
            "content createParents path".to_owned(),
            json!(["path", "content"])
        )
    );
    assert_eq!(
        parameters("delete_file"),
        ("path recursive".to_owned(), json!(["path"]))
    );
    assert_eq!(
        parameters("list_files"),
        ("maxDepth path pattern".to_owned(), json!(["path"]))
    );
    assert_eq!(
        parameters("search_files"),
        (
            "path pattern recursive".to_owned(),
            json!(["path", "pattern"])
        )
    );
}

#[test]
fn a_file_is_read_back_as_it_was_written() {
    let world = World::new();
    let written = world.text(
        "write_file",
        json!({ "path": "notes.txt", "content": "buy milk\nünd brot\n" }),
    );
    assert!(written.starts_with("wrote 19 bytes to `"), "{written}");
    assert_eq!(
        world.text("read_file", json!({ "path": "notes.txt" })),
        "buy milk\nünd brot\n"
    );
    assert_eq!(world.names(), ["notes.txt"]);
}

#[test]
fn an_absolute_path_in_the_folder_is_as_good_as_a_relative_one() {
    let world = World::new().with("a.txt", "a");
    let absolute = world.dir.path().join("a.txt");
    assert_eq!(world.text("read_file", json!({ "path": absolute })), "a");
    assert_eq!(world.text("read_file", json!({ "path": "./a.txt" })), "a");
}

#[test]
fn lines_are_read_by_offset_and_limit_and_say_how_to_go_on() {
    let world = World::new().with("a.txt", "one\ntwo\nthree\nfour\n");
    let read = |arguments: Value| world.text("read_file", arguments);
    assert_eq!(
        read(json!({ "path": "a.txt", "offset": 1, "limit": 2 })),
        "two\nthree\n\n[there is more; go on with offset 3]"
    );
    assert_eq!(
        read(json!({ "path": "a.txt", "offset": 3, "limit": 2 })),
        "four\n"
    );
    assert_eq!(
        read(json!({ "path": "a.txt", "offset": 9 })),
        "[the file has only 4 lines]"
    );
}

#[test]
fn a_long_file_comes_in_pieces_that_together_are_the_file() {
    let whole: String = (0..9_000).map(|n| format!("line {n}\n")).collect();
    let world = World::new().with("long.txt", &whole);
    let mut together = String::new();
    let mut offset = 0_u64;
    loop {
        let chunk = world.text("read_file", json!({ "path": "long.txt", "offset": offset }));
        assert!(chunk.len() <= READ_BYTES_MAX + 100);
        match chunk.split_once("\n[there is more; go on with offset ") {
            Some((lines, next)) => {
                together.push_str(lines);
                offset = next.trim_end_matches(']').parse().unwrap();
            }
            None => {
                together.push_str(&chunk);
                break;
            }
        }
    }
    assert_eq!(together, whole);
}

#[test]
fn a_line_that_is_too_long_is_cut_and_passed() {
    let world = World::new().with(
        "wide.txt",
        format!("{}\nend\n", "x".repeat(READ_BYTES_MAX * 2)),
    );
    let read = world.text("read_file", json!({ "path": "wide.txt" }));
    assert!(
        read.contains("[line 1 is longer than"),
        "{}",
        &read[read.len() - 120..]
    );
    assert!(read.ends_with("[there is more; go on with offset 1]"));
    assert_eq!(
        world.text("read_file", json!({ "path": "wide.txt", "offset": 1 })),
        "end\n"
    );
}

#[test]
fn a_line_of_just_over_the_limit_does_not_swallow_the_next() {
    for length in [READ_BYTES_MAX - 1, READ_BYTES_MAX, READ_BYTES_MAX + 1] {
        let world = World::new().with("wide.txt", format!("{}\nend\n", "x".repeat(length)));
        let read = world.text("read_file", json!({ "path": "wide.txt" }));
        assert!(
            read.ends_with("[there is more; go on with offset 1]"),
            "{length}"
        );
        assert_eq!(
            world.text("read_file", json!({ "path": "wide.txt", "offset": 1 })),
            "end\n"
        );
    }
}

#[test]
fn what_is_not_text_is_named_with_its_size() {
    let world = World::new().with("a.bin", [0_u8, 159, 146, 150]);
    let read = world.text("read_file", json!({ "path": "a.bin" }));
    assert!(read.ends_with("is not text; it has 4 bytes"), "{read}");
}

#[test]
fn an_empty_file_is_empty_text() {
    let world = World::new().with("a.txt", "");
    assert_eq!(world.text("read_file", json!({ "path": "a.txt" })), "");
}

#[test]
fn what_is_missing_is_told_with_the_names_in_the_nearest_folder_above() {
    let world = World::new();
    let folder = world.dir.path().display().to_string();
    let path = json!({ "path": "ghost/notes.txt" });
    let missing = format!("there is no `{folder}/ghost/notes.txt`; ");
    let nothing = format!("{missing}nothing is in `{folder}`");
    assert_eq!(not_found(world.error("read_file", path.clone())), nothing);
    let world = world.with("b.txt", "b").with("a/deep.txt", "a");
    let names = format!("{missing}in `{folder}` there are: `a/`, `b.txt`");
    for tool in ["read_file", "list_files"] {
        assert_eq!(not_found(world.error(tool, path.clone())), names, "{tool}");
    }
    // Who writes may not be one who reads.
    let deletes = not_found(world.error("delete_file", path.clone()));
    assert_eq!(
        deletes,
        format!("{missing}the granted folders are: `{folder}`")
    );
    let world = (2..NAMES_REPORTED_MAX).fold(world, |world, n| world.with(&format!("{n}.txt"), ""));
    let whole = not_found(world.error("read_file", path.clone()));
    assert!(whole.ends_with("`b.txt`"), "{whole}");
    let part = not_found(world.with("more.txt", "").error("read_file", path));
    assert!(
        part.ends_with(", and more; list_files shows them"),
        "{part}"
    );
    assert_eq!(
        part.matches("`, `").count(),
        NAMES_REPORTED_MAX - 1,
        "{part}"
    );
}

#[test]
fn paths_that_lead_out_are_refused_with_the_field() {
    let world = World::new().with("a.txt", "a");
    for tool in ["read_file", "delete_file", "list_files"] {
        assert_eq!(
            invalid(world.error(tool, json!({ "path": "../a.txt" }))),
            "`path` must not contain `..`"
        );
        assert!(
            not_found(world.error(tool, json!({ "path": "/etc/passwd" })))
                .contains("is not in a granted folder")
        );
        assert!(
            invalid(world.error(tool, json!({ "path": "" })))
                .starts_with("`path` must not be empty")
        );
    }
}

#[test]
fn several_folders_want_absolute_paths_and_none_says_so() {
    let first = tempfile::tempdir().unwrap();
    let second = tempfile::tempdir().unwrap();
    let bench = Bench::new(Files::over(vec![
        first.path().to_owned(),
        second.path().to_owned(),
    ]));
    let message = invalid(
        bench
            .text("list_files", json!({ "path": "." }))
            .unwrap_err(),
    );
    assert!(
        message.starts_with("`path` must be absolute and in one of: "),
        "{message}"
    );
    fs::write(second.path().join("b.txt"), "b").unwrap();
    assert_eq!(
        bench
            .text("list_files", json!({ "path": second.path() }))
            .unwrap(),
        "b.txt (1 bytes)"
    );
    let none = Bench::new(Files::over(Vec::new()));
    assert!(
        not_found(none.text("list_files", json!({ "path": "." })).unwrap_err())
            .starts_with("no folder is granted")
    );
}

#[test]
fn writing_makes_folders_only_when_told_to() {
    let world = World::new();
    let message =
        not_found(world.error("write_file", json!({ "path": "a/b/c.txt", "content": "x" })));
    assert!(message.contains("createParents"), "{message}");
    world.text(
        "write_file",
        json!({ "path": "a/b/c.txt", "content": "x", "createParents": true }),
    );
    assert_eq!(world.text("read_file", json!({ "path": "a/b/c.txt" })), "x");
}

#[test]
fn writing_twice_is_the_same_as_once_and_leaves_nothing_behind() {
    let world = World::new().with("a.txt", "old");
    for _ in 0..2 {
        world.text("write_file", json!({ "path": "a.txt", "content": "new" }));
    }
    assert_eq!(world.names(), ["a.txt"]);
    assert_eq!(world.text("read_file", json!({ "path": "a.txt" })), "new");
}

#[test]
fn an_attempt_takes_up_what_an_earlier_one_left_unfinished() {
    let world = World::new().with(".calloftest.part.txt", "half of a much longer te");
    world.text("write_file", json!({ "path": "a.txt", "content": "new" }));
    assert_eq!(world.names(), ["a.txt"]);
    assert_eq!(world.text("read_file", json!({ "path": "a.txt" })), "new");
}

#[cfg(unix)]
#[test]
fn a_written_file_keeps_its_permissions_and_its_other_names() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new().with("run.sh", "old").with("h1", "old");
    let path = |name: &str| world.dir.path().join(name);
    fs::set_permissions(path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(path("h1"), path("h2")).unwrap();
    for name in ["run.sh", "h1"] {
        world.text(
            "write_file",
            json!({ "path": name, "content": "new and longer" }),
        );
    }
    let mode = fs::metadata(path("run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o750);
    assert_eq!(fs::read_to_string(path("h2")).unwrap(), "new and longer");
    world.text("write_file", json!({ "path": "h2", "content": "short" }));
    assert_eq!(fs::read_to_string(path("h1")).unwrap(), "short");
    assert_eq!(world.names().len(), 3);
}

#[cfg(unix)]
#[test]
fn the_file_that_was_read_through_a_link_is_the_one_that_is_written() {
    use std::os::unix::fs::symlink;
    let world = World::new().with("sub/real.txt", "old");
    let path = |name: &str| world.dir.path().join(name);
    symlink("real.txt", path("sub/link.txt")).unwrap();
    symlink("sub/../sub/link.txt", path("far.txt")).unwrap();
    symlink("/etc/hostname", path("out.txt")).unwrap();
    symlink("../escape.txt", path("up.txt")).unwrap();
    symlink("round.txt", path("round.txt")).unwrap();
    world.text("write_file", json!({ "path": "far.txt", "content": "new" }));
    assert_eq!(fs::read_to_string(path("sub/real.txt")).unwrap(), "new");
    for link in ["far.txt", "sub/link.txt"] {
        assert!(path(link).is_symlink(), "{link}");
    }
    for link in ["out.txt", "up.txt", "round.txt"] {
        let error = world.error("write_file", json!({ "path": link, "content": "x" }));
        assert!(format!("{error:?}").contains(link), "{error:?}");
        assert!(path(link).is_symlink(), "{link}");
    }
    assert!(!world.dir.path().with_file_name("escape.txt").exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_replaced_by_a_file() {
    let world = World::new();
    let pipe = world.dir.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let said = invalid(world.error("write_file", json!({ "path": "pipe", "content": "x" })));
    assert!(said.contains("pipe"), "{said}");
    assert!(!fs::symlink_metadata(&pipe).unwrap().is_file());
}

#[test]
fn a_file_has_any_name_that_the_disk_takes() {
    let world = World::new();
    for name in [
        "x".repeat(255),
        format!("{}.md", "x".repeat(252)),
        "日".repeat(85),
        format!("a.{}", "é".repeat(126)),
        ".hidden".to_owned(),
        "-rf *?[x] {y}".to_owned(),
    ] {
        world.text("write_file", json!({ "path": name, "content": "new" }));
        world.text("write_file", json!({ "path": name, "content": "newer" }));
        assert_eq!(world.text("read_file", json!({ "path": name })), "newer");
        world.text("delete_file", json!({ "path": name }));
    }
    assert!(world.names().is_empty());
}

#[cfg(unix)]
#[test]
fn a_file_is_written_in_place_where_none_may_stand_beside_it() {
    let world = World::new().with("a.txt", "old").with("gone.txt", "x");
    // What has the name of the unfinished file and is no file keeps every other from it.
    fs::create_dir(world.dir.path().join(".calloftest.part.txt")).unwrap();
    for content in ["longer than it was", "short", ""] {
        world.text("write_file", json!({ "path": "a.txt", "content": content }));
        assert_eq!(world.text("read_file", json!({ "path": "a.txt" })), content);
    }
    world.text("write_file", json!({ "path": "b.txt", "content": "new" }));
    assert_eq!(world.text("read_file", json!({ "path": "b.txt" })), "new");
}

#[test]
fn a_folder_is_not_written_over_or_read() {
    let world = World::new().with("dir/a.txt", "a");
    for path in ["dir", ".", "dir/"] {
        assert!(
            invalid(world.error("write_file", json!({ "path": path, "content": "x" })))
                .contains("is a folder")
        );
        assert!(
            invalid(world.error("read_file", json!({ "path": path }))).contains("use list_files")
        );
    }
}

#[test]
fn deleting_a_folder_wants_to_be_told_twice_and_the_granted_one_stays() {
    let world = World::new().with("dir/a.txt", "a").with("b.txt", "b");
    world.text("delete_file", json!({ "path": "b.txt" }));
    assert!(
        invalid(world.error("delete_file", json!({ "path": "dir" })))
            .starts_with("`recursive` must be true")
    );
    assert!(
        invalid(world.error("delete_file", json!({ "path": ".", "recursive": true })))
            .contains("which stays")
    );
    world.text("delete_file", json!({ "path": "dir", "recursive": true }));
    assert!(world.names().is_empty());
    not_found(world.error("delete_file", json!({ "path": "b.txt" })));
}

#[cfg(target_os = "linux")]
#[test]
fn a_deletion_that_ends_half_way_says_what_is_gone() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new()
        .with("dir/a.txt", "a")
        .with("dir/sub/b.txt", "b");
    let odd = std::ffi::OsStr::from_bytes(b"\xff.txt");
    fs::write(world.dir.path().join("dir/sub").join(odd), "x").unwrap();
    let deleted = world.text("delete_file", json!({ "path": "dir", "recursive": true }));
    assert!(
        deleted.ends_with("which stays\n[passed over 1 entries that no call can name]"),
        "{deleted}"
    );
    let left: Vec<_> = fs::read_dir(world.dir.path().join("dir"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn a_listing_is_sorted_and_as_deep_as_asked() {
    let world = World::new()
        .with("b.txt", "bb")
        .with("a/deep/x.md", "x")
        .with("a/y.md", "yy");
    let list = |arguments: Value| world.text("list_files", arguments);
    assert_eq!(list(json!({ "path": "." })), "a/\nb.txt (2 bytes)");
    assert_eq!(
        list(json!({ "path": ".", "maxDepth": 2 })),
        "a/\na/deep/\na/y.md (2 bytes)\nb.txt (2 bytes)"
    );
    assert_eq!(
        list(json!({ "path": ".", "pattern": "**/*.md" })),
        "a/deep/x.md (1 bytes)\na/y.md (2 bytes)"
    );
    assert_eq!(
        list(json!({ "path": ".", "pattern": "*.md", "maxDepth": 2 })),
        "a/y.md (2 bytes)"
    );
    assert!(list(json!({ "path": "a", "pattern": "*.rs" })).ends_with("matches]"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_text_hides_nothing_else() {
    use std::os::unix::ffi::OsStrExt;
    let world = World::new().with("sub/good.txt", "needle");
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(world.dir.path().join("sub").join(odd), "needle").unwrap();
    let note = "\n[passed over 1 entries whose names are not UTF-8]";
    for (tool, arguments, expected) in [
        ("list_files", json!({ "path": "sub" }), "good.txt (6 bytes)"),
        (
            "list_files",
            json!({ "path": ".", "pattern": "**/*.txt" }),
            "sub/good.txt (6 bytes)",
        ),
        (
            "search_files",
            json!({ "path": ".", "pattern": "needle" }),
            "sub/good.txt:1: needle",
        ),
    ] {
        assert_eq!(world.text(tool, arguments), format!("{expected}{note}"));
    }
    let deleted = world.text("delete_file", json!({ "path": "sub", "recursive": true }));
    assert!(deleted.contains("passed over 1"), "{deleted}");
    assert!(!world.dir.path().join("sub/good.txt").exists());
    assert!(world.dir.path().join("sub").join(odd).exists());
}

#[test]
fn a_pattern_finds_the_one_file_among_very_many() {
    let mut world = World::new().with("n/notes.txt", "x");
    for n in 0..25_000 {
        world = world.with(&format!("n/img{n}.jpg"), "");
    }
    assert_eq!(
        world.text("list_files", json!({ "path": "n", "pattern": "*.txt" })),
        "notes.txt (1 bytes)"
    );
}

#[test]
fn a_large_folder_is_cut_with_a_word() {
    let mut world = World::new();
    for n in 0..LISTED_MAX + 5 {
        world = world.with(&format!("{n:04}.txt"), "");
    }
    let listed = world.text("list_files", json!({ "path": "." }));
    assert_eq!(listed.lines().count(), LISTED_MAX + 1);
    assert!(listed.ends_with("[there is more; narrow the path or the pattern]"));
}

#[test]
fn a_search_names_file_line_and_text() {
    let world = World::new()
        .with("a.txt", "milk\nbread\nMILK 2\n")
        .with("sub/b.txt", "no\nmilky way\n")
        .with("c.bin", [0_u8, 1]);
    let search = |arguments: Value| world.text("search_files", arguments);
    assert_eq!(
        search(json!({ "path": ".", "pattern": "(?i)milk" })),
        "a.txt:1: milk\na.txt:3: MILK 2\nsub/b.txt:2: milky way\n[passed over 1 files that are not \
         text, too large or not readable]"
    );
    assert!(
        !search(json!({ "path": ".", "pattern": "milk", "recursive": false })).contains("sub/")
    );
    assert!(search(json!({ "path": "a.txt", "pattern": "^bread$" })).ends_with("a.txt:2: bread"));
    assert!(search(json!({ "path": "a.txt", "pattern": "cheese" })).starts_with("[no line in `"));
}

#[test]
fn a_pattern_that_is_not_one_says_how_to_mend_it() {
    let world = World::new();
    let message = invalid(world.error("search_files", json!({ "path": ".", "pattern": "call(" })));
    assert!(
        message.starts_with("`pattern` is not a regular expression") && message.contains("\\("),
        "{message}"
    );
}

#[test]
fn what_an_editor_adds_around_lines_is_no_part_of_them() {
    let world = World::new()
        .with("crlf.txt", "alpha;\r\nbeta;\r\n")
        .with("cr.txt", "alpha;\rbeta;\r")
        .with("bom.txt", "\u{feff}alpha;\nbeta;")
        .with("lf.txt", "\nalpha;\n\nbeta;");
    let search =
        |pattern: &str| world.text("search_files", json!({ "path": ".", "pattern": pattern }));
    assert_eq!(
        search("^alpha;$"),
        "bom.txt:1: alpha;\ncr.txt:1: alpha;\ncrlf.txt:1: alpha;\nlf.txt:2: alpha;"
    );
    assert_eq!(
        search("^beta;$"),
        "bom.txt:2: beta;\ncr.txt:2: beta;\ncrlf.txt:2: beta;\nlf.txt:4: beta;"
    );
    assert_eq!(search("^$"), "lf.txt:1: \nlf.txt:3: ");
    for (name, rest) in [
        ("crlf.txt", "beta;\r\n"),
        ("cr.txt", "beta;\r"),
        ("bom.txt", "beta;"),
    ] {
        let read = world.text("read_file", json!({ "path": name, "offset": 1 }));
        assert_eq!(read, rest, "{name}");
    }
    assert_eq!(
        world.text("read_file", json!({ "path": "bom.txt" })),
        "alpha;\nbeta;"
    );
}

#[test]
fn a_search_whose_time_is_over_tells_what_it_has() {
    let mut world = World::new()
        .with(
            "log1.txt",
            format!("NEEDLE here\n{}", "filler\n".repeat(1_000_000)),
        )
        .with("log2.txt", "filler\n".repeat(1_000_000));
    world.bench = world.bench.with_deadline_ms(20);
    let found = world.text("search_files", json!({ "path": ".", "pattern": "NEEDLE" }));
    assert_eq!(
        found,
        "log1.txt:1: NEEDLE here\n[there may be more; narrow the path or the pattern]"
    );
}

#[test]
fn a_search_says_of_which_lines_it_saw_the_beginning_alone() {
    let line = "x".repeat(100_000);
    let world = World::new().with("a.json", format!("{line}needle\nneedle\n"));
    let search =
        |pattern: &str| world.text("search_files", json!({ "path": ".", "pattern": pattern }));
    let note = "[searched only the first 65536 bytes of 1 longer lines]";
    assert_eq!(search("needle"), format!("a.json:2: needle\n{note}"));
    assert!(!search("^x").contains(note));
}

#[test]
fn a_search_stops_when_there_is_enough() {
    let world = World::new().with("a.txt", "x\n".repeat(MATCHES_MAX * 2));
    let found = world.text("search_files", json!({ "path": ".", "pattern": "x" }));
    assert_eq!(found.lines().count(), MATCHES_MAX + 1);
}

#[cfg(unix)]
#[test]
fn links_are_shown_and_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    let world = World::new();
    std::os::unix::fs::symlink(outside.path(), world.dir.path().join("way_out")).unwrap();
    assert_eq!(
        world.text("list_files", json!({ "path": ".", "maxDepth": 5 })),
        "way_out@"
    );
    assert!(
        world
            .text("search_files", json!({ "path": ".", "pattern": "secret" }))
            .starts_with("[no line")
    );
    world.text(
        "delete_file",
        json!({ "path": "way_out", "recursive": true }),
    );
    assert!(outside.path().join("secret.txt").exists());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_opened_because_nobody_may_ever_write_to_it() {
    let world = World::new();
    let made = std::process::Command::new("mkfifo")
        .arg(world.dir.path().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    assert!(invalid(world.error("read_file", json!({ "path": "pipe" }))).contains("no file"));
    assert!(
        world
            .text("search_files", json!({ "path": ".", "pattern": "x" }))
            .starts_with("[no line")
    );
}

#[test]
fn unknown_parameters_are_refused_by_name() {
    let world = World::new();
    assert!(
        invalid(world.error("read_file", json!({ "path": "a", "ofset": 1 }))).contains("`ofset`")
    );
}
