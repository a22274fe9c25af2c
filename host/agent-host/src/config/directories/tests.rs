//! Tests of the findings about granted folders that make no sense, or that should not be granted.

use super::{FileSystemKind, dangerous, doubt, kind_of, open_to_others};
use crate::config::check::check;
use crate::config::finding::Severity;
use crate::config::load;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;

/// Returns the findings about these entries of one component, in a folder with `work`, `work/in`
/// and `other`.
fn found(entries: &str) -> Vec<(Severity, String, String)> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let text = format!(
        "[server]\ndataDir = \"/nowhere/data\"\n[components.files]\npath = \
                 \"plugins/p\"\ndirectories = [{entries}]\n"
    );
    std::fs::write(&file, text).unwrap();
    for made in ["work/in", "other", "plugins"] {
        std::fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    std::fs::write(folder.path().join("plugins/p"), "").unwrap();
    std::os::unix::fs::symlink("work", folder.path().join("to-work")).unwrap();
    let findings = check(&load(&file, []).unwrap()).into_iter();
    let key = |key: String| {
        key.strip_prefix("components.files.directories")
            .map(str::to_owned)
    };
    findings
        .filter_map(|found| Some((found.severity, key(found.key)?, found.message)))
        .collect()
}

fn one(keys: &str) -> String {
    format!("{{ path = \"work\", at = \"/w\", access = \"read-write\", {keys} }}")
}

#[test]
fn patterns_and_quotas_without_sense_are_refused_with_the_fix() {
    for (keys, at, fix) in [
        ("allow = []", "[0].allow", "leave `allow` out for all files"),
        (
            r#"allow = ["a"], deny = ["./a"]"#,
            "[0].allow[0]",
            "`a` is also in `deny`, which wins; remove it from one",
        ),
        (
            r#"allow = ["x", "src/**/*.rs"], deny = ["src"]"#,
            "[0].allow[1]",
            "`deny` has `src`, which covers all of it",
        ),
        (
            r#"allow = ["a"], deny = ["**"]"#,
            "[0].allow[0]",
            "`deny` has `**`",
        ),
        ("bytesMax = 0", "[0].bytesMax", "must be from 1 to"),
        ("filesMax = 0", "[0].filesMax", "must be from 1 to 1000000"),
        (
            "filesMax = 1000001",
            "[0].filesMax",
            "must be from 1 to 1000000",
        ),
    ] {
        let found = found(&one(keys));
        let [(Severity::Error, key, message)] = found.as_slice() else {
            panic!("{keys}: {found:?}")
        };
        assert!(
            key == at && message.contains(fix),
            "{keys}: {key}: {message}"
        );
    }
    for keys in [
        r#"allow = ["**/*.md"], deny = ["secret/**"], bytesMax = 1, filesMax = 1"#,
        r#"allow = ["src/**"], deny = ["src/gen", "**/.env"]"#,
    ] {
        assert_eq!(found(&one(keys)), [], "{keys}");
    }
}

#[test]
fn a_quota_on_a_folder_that_is_only_read_is_warned_of() {
    let found = found(r#"{ path = "work", at = "/w", access = "read-only", bytesMax = 10 }"#);
    let [(Severity::Warning, _, message)] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert!(
        message.contains("remove it, or grant `read-write`"),
        "{message}"
    );
}

#[test]
fn folders_of_one_component_that_hold_one_another_are_granted_alike_or_not_at_all() {
    let two = |one: &str, other: &str| {
        found(&format!(
            "{{ {one}, at = \"/a\" }}, {{ {other}, at = \"/b\" }}"
        ))
    };
    let read = r#"path = "work", access = "read-only""#;
    let write = r#"path = "work", access = "read-write""#;
    let hold = "of `directories[0]` hold one another";
    let through = "is reached through `work` of `components.files.directories[0]`";
    for (first, second, reported) in [
        (read, r#"path = "work/in", access = "read-write""#, hold),
        (r#"path = "work/in", access = "read-write""#, read, hold),
        (read, r#"path = "to-work/in", access = "read-write""#, hold),
        (write, r#"path = "work/in", access = "read-write""#, through),
        (
            write,
            r#"path = "to-work/in", access = "read-only""#,
            through,
        ),
        (
            write,
            r#"path = "work/in", access = "read-write", deny = ["x"]"#,
            through,
        ),
        (
            r#"path = "work", access = "read-write", deny = ["in"]"#,
            r#"path = "work/in", access = "read-write""#,
            through,
        ),
        (
            r#"path = "work", access = "read-write", bytesMax = 5"#,
            write,
            hold,
        ),
    ] {
        let found = two(first, second);
        let [(Severity::Error, key, message)] = found.as_slice() else {
            panic!("{first}, {second}: {found:?}")
        };
        assert!(
            key == "[1].path" && message.contains(reported),
            "{key}: {message}"
        );
    }
    for (first, second) in [
        (write, r#"path = "other", access = "read-only""#),
        (read, r#"path = "work/in", access = "read-only""#),
    ] {
        assert_eq!(two(first, second), []);
    }
}

#[test]
fn placeholders_are_whole_names_and_known_ones() {
    let at = |path: &str| {
        found(&format!(
            "{{ path = {path:?}, at = \"/w\", access = \"read-write\" }}"
        ))
    };
    for path in ["work/{user}", "work/{agent}/notes", "work/{session}/{user}"] {
        assert_eq!(at(path), [], "{path}");
    }
    for (path, fix) in [
        ("work/{usr}", "known are `{user}`, `{agent}`, `{session}`"),
        ("work/of-{user}", "a placeholder is a whole name"),
        ("work/{user}/{user}", "name it once"),
        ("work/{user}/..", "write the path without it"),
        // The base is the operator's, and what may not be granted may not be a base.
        ("work/none/{user}", "mkdir -p"),
        ("/etc/{user}", "the configuration of the machine"),
        ("{user}", "holds"),
    ] {
        let found = at(path);
        let [(Severity::Error, key, message)] = found.as_slice() else {
            panic!("{path}: {found:?}")
        };
        assert!(
            key == "[0].path" && message.contains(fix),
            "{path}: {message}"
        );
    }
}

#[test]
fn folders_that_could_be_an_owners_are_granted_apart() {
    let write = "read-write";
    let through = "is reached through `work";
    let owned = "can be the folder of one user in `work/{user}`";
    for (first, second, access, reported) in [
        ("work/{user}", "work/{session}", write, owned),
        ("work/{user}", "work/{agent}", "read-only", owned),
        ("work/{user}", "work/in", "read-only", owned),
        ("work/{user}", "work/in/{session}", write, owned),
        ("work/{user}", "work/{user}/notes", "read-only", through),
        ("work", "work/{user}", write, through),
        ("work", "to-work/{user}", write, through),
        ("work/{user}", "work", "read-only", "hold one another"),
        (
            "work/{user}",
            "work/{user}",
            "read-only",
            "hold one another",
        ),
    ] {
        let found = found(&format!(
            "{{ path = {first:?}, at = \"/a\", access = \"read-write\" }}, \
             {{ path = {second:?}, at = \"/b\", access = \"{access}\" }}"
        ));
        let [(Severity::Error, key, message)] = found.as_slice() else {
            panic!("{first}, {second}: {found:?}")
        };
        assert!(
            key == "[1].path" && message.contains(reported),
            "{key}: {message}"
        );
    }
    let apart = found(
        "{ path = \"work/{user}/a\", at = \"/a\", access = \"read-write\" }, \
         { path = \"work/{user}/b\", at = \"/b\", access = \"read-only\" }, \
         { path = \"other/{session}\", at = \"/c\", access = \"read-write\" }",
    );
    assert_eq!(apart, []);
}

#[test]
fn folders_of_the_machine_and_of_people_are_refused_with_the_reason() {
    let home = Some(Path::new("/home/ann"));
    for (path, home, reason) in [
        ("/", None, "`/etc`"),
        ("/etc", None, "`/etc`"),
        ("/etc/ssl/private", None, "`/etc`"),
        ("/proc/self", None, "`/proc`"),
        ("/sys", None, "`/sys`"),
        ("/dev/shm", None, "`/dev`"),
        ("/boot", None, "`/boot`"),
        ("/root", home, "`/root`"),
        (concat!("/root", "/work"), home, "`/root`"),
        ("/home", home, "the home"),
        ("/home", None, "`/home`"),
        ("/usr", None, "`/usr`"),
        ("/usr/local/bin", None, "`/usr`"),
        ("/usr/share/any", home, "`/usr`"),
        ("/opt", None, "`/opt`"),
        ("/var", None, "`/var`"),
        ("/var/lib", home, "`/var/lib`"),
        ("/var/log", None, "`/var/log`"),
        ("/var/spool", None, "`/var/spool`"),
        ("/home/ann", home, "the home"),
        ("/home/ann/.ssh", home, "`~/.ssh`"),
        ("/home/ann/.ssh/deep", home, "`~/.ssh`"),
        ("/home/ann/.gnupg", home, "`~/.gnupg`"),
        ("/root", Some(Path::new("/root")), "the home"),
        (
            concat!("/root", "/.ssh"),
            Some(Path::new("/root")),
            "`~/.ssh`",
        ),
    ] {
        let found = dangerous(Path::new(path), home).unwrap_or_else(|| panic!("{path} is fine"));
        assert!(found.contains(reason), "{path}: {found}");
    }
    for (path, home) in [
        ("/srv/data", home),
        ("/var/lib/mydata", None),
        ("/var/log/mine", None),
        ("/opt/app/data", None),
        ("/home/me/notes", None),
        ("/home/me/notes", home),
        ("/home/ann/work", home),
        ("/home/ann/.sshx", home),
        ("/etcetera", None),
        (concat!("/root", "/work"), Some(Path::new("/root"))),
        ("/srv", Some(Path::new("/"))),
    ] {
        assert_eq!(dangerous(Path::new(path), home), None, "{path}");
    }
}

#[test]
fn what_the_host_runs_lies_in_no_folder_that_a_component_writes() {
    let program = std::env::current_exe().unwrap();
    let beside = crate::guests::places().remove(0);
    for (holding, reason) in [
        (program.parent().unwrap(), "the program of the host"),
        (beside.as_path(), "its built-in components"),
    ] {
        let grant = |access: &str| {
            found(&format!(
                "{{ path = {holding:?}, at = \"/w\", access = \"{access}\" }}"
            ))
        };
        let refused = grant("read-write");
        assert!(
            refused
                .iter()
                .any(|(severity, _, message)| *severity == Severity::Error
                    && message.contains(reason)),
            "{refused:?}"
        );
        assert!(
            !grant("read-only")
                .iter()
                .any(|(.., message)| message.contains(reason)),
            "{holding:?}"
        );
    }
}

#[test]
fn what_a_command_that_says_a_secret_consists_of_lies_in_no_folder_of_a_component() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("kit/bin")).unwrap();
    for name in ["kit/bin/say", "kit/kept"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    // A folder in which the granted one is.
    std::fs::create_dir(folder.path().join("above")).unwrap();
    std::fs::rename(folder.path().join("kit"), folder.path().join("above/kit")).unwrap();
    std::os::unix::fs::symlink("above/kit", folder.path().join("kit")).unwrap();
    let file = folder.path().join("c.toml");
    for (words, expected) in [
        (r#"["./kit/bin/say"]"#, true),
        (r#"["sh", "kit/bin/say"]"#, true),
        (r#"["cat", "kit/kept"]"#, true),
        (r#"["cat", "--from=kit/kept"]"#, true),
        (r#"["cat", "--from=kit"]"#, true),
        (r#"["ls", "kit"]"#, true),
        (r#"["ls", "kit/bin"]"#, true),
        (r#"["ls", "--dir=above"]"#, true),
        (r#"["ls", "--from="]"#, false),
        (r#"["ls", "."]"#, false),
        (r#"["echo", "word"]"#, false),
    ] {
        let text = format!(
            "[server]\ndataDir = \"/nowhere/data\"\n[secrets]\nkey = {{ command = {words} \
             }}\n[components.files]\n\
             directories = [{{ path = \"kit\", at = \"/w\", access = \"read-only\" }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let findings = check(&load(&file, []).unwrap());
        let reported = findings.iter().any(|found| {
            found
                .message
                .contains(" of the command that says the secret `key`")
        });
        assert_eq!(reported, expected, "{words}: {findings:?}");
    }
}

/// A skill or the rules of a scripted model in a folder that one user's agent writes would be
/// everybody's system prompt, or every reply.
#[test]
fn what_the_host_reads_as_its_operators_word_is_written_by_no_component() {
    let folder = tempfile::tempdir().unwrap();
    for made in ["work/style/more", "style", "other"] {
        std::fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    std::fs::write(folder.path().join("work/rules.toml"), "").unwrap();
    for (link, end) in [
        ("by-link", "work/style"),
        ("to-work", "work"),
        ("work/out", "../style"),
    ] {
        std::os::unix::fs::symlink(end, folder.path().join(link)).unwrap();
    }
    let file = folder.path().join("c.toml");
    let reported = |trusted: &str, granted: &str, access: &str| {
        let text = format!(
            "[server]\ndataDir = \"/nowhere/data\"\n{trusted}\n[components.files]\n\
             directories = [{{ path = \"{granted}\", at = \"/w\", access = \"{access}\" }}]\n"
        );
        std::fs::write(&file, text).unwrap();
        let findings = check(&load(&file, []).unwrap()).into_iter();
        let mut reported = findings.filter(|found| {
            found.severity == Severity::Error
                && found.key == "components.files.directories[0].path"
                && (found.message.contains("the skill `style`")
                    || found.message.contains("the rules of the provider `p`"))
        });
        reported.next().is_some()
    };
    let skill = |path: &str| format!("[skills.style]\npath = \"{path}\"");
    let rules = "[providers.p]\nkind = \"scripted\"\nscript = \"work/rules.toml\"";
    for (trusted, granted) in [
        (skill("work/style"), "work"),
        (skill("work/style"), "work/style"),
        (skill("work/style"), "work/style/more"),
        (skill("work/style"), "work/{user}"),
        (skill("work/style"), "work/{user}/notes"),
        (skill("work/style"), "to-work"),
        (skill("by-link"), "work"),
        (skill("to-work/style"), "work"),
        (skill("work/out"), "work"),
        (rules.to_owned(), "work"),
        (rules.to_owned(), "work/{user}"),
        (rules.to_owned(), "to-work"),
    ] {
        assert!(
            reported(&trusted, granted, "read-write"),
            "{trusted} {granted}"
        );
        assert!(
            !reported(&trusted, granted, "read-only"),
            "{trusted} {granted}"
        );
    }
    for trusted in [skill("work/style"), skill("style"), rules.to_owned()] {
        assert!(!reported(&trusted, "other", "read-write"), "{trusted}");
        assert!(
            !reported(&trusted, "other/{user}", "read-write"),
            "{trusted}"
        );
    }
}

#[test]
fn a_local_disk_is_not_doubted_and_others_are_by_name() {
    // ext4, XFS, Btrfs, ZFS.
    for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x2fc1_2fc1] {
        assert_eq!(doubt(FileSystemKind(local)), None, "{local:x}");
    }
    for (number, name) in [
        (0x0102_1994, "tmpfs"),
        (0x6969, "NFS"),
        (0x794c_7630, "overlay"),
        (0xff53_4d42, "CIFS"),
    ] {
        let doubted = doubt(FileSystemKind(number));
        assert_eq!(doubted.map(|(name, _)| name), Some(name));
    }
}

#[test]
fn a_data_folder_that_others_enter_is_warned_of_and_one_that_all_write_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    assert_eq!(open_to_others(&data), None, "the first start makes it");
    std::fs::create_dir(&data).unwrap();
    for (mode, graded) in [
        (0o700, None),
        (0o750, Some(Severity::Warning)),
        (0o701, Some(Severity::Warning)),
        (0o775, Some(Severity::Warning)),
        (0o777, Some(Severity::Error)),
        (0o702, Some(Severity::Error)),
    ] {
        std::fs::set_permissions(&data, Permissions::from_mode(mode)).unwrap();
        let found = open_to_others(&data);
        assert_eq!(
            found.as_ref().map(|found| found.severity),
            graded,
            "{mode:o}"
        );
        if let Some(found) = found {
            assert!(found.message.contains("run: chmod 700 "), "{found:?}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn data_in_memory_is_warned_of_by_the_name_of_the_file_system() {
    // The kernel says of its own tables that they are on `proc`, wherever this runs.
    let kind = kind_of(Path::new("/proc/self/not/there"));
    assert_eq!(kind, Some(FileSystemKind(0x9fa0)));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let warned = |data: &str| {
        std::fs::write(&file, format!("[server]\ndataDir = {data:?}\n")).unwrap();
        let findings = check(&load(&file, []).unwrap());
        let mut found = findings
            .into_iter()
            .filter(|finding| finding.key == "server.dataDir");
        found
            .next()
            .map(|finding| (finding.severity, finding.message))
    };
    let (severity, message) = warned("/dev/shm/agent-host/data").unwrap();
    assert!(
        severity == Severity::Warning && message.contains("(tmpfs) that is kept in memory"),
        "{message}"
    );
    assert_eq!(
        warned("/proc/self/data"),
        None,
        "what is not listed is not doubted"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn data_in_memory_is_logged_once_with_its_folder() {
    const DATA: &str = "/dev/shm/agent-host/logged";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, format!("[server]\ndataDir = {DATA:?}\n")).unwrap();
    let log = folder.path().join("log");
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(Mutex::new(File::create(&log).unwrap()))
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..2 {
            check(&load(&file, []).unwrap());
        }
    });
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(DATA)).collect();
    assert!(
        lines.len() == 1
            && lines[0].contains("WARN")
            && lines[0].contains(&format!("folder={DATA}"))
            && lines[0].contains("tmpfs")
            && lines[0].contains("is kept in memory"),
        "{log}"
    );
}
