//! Lines that are printed, put where they say, and read by the real parser.

use super::{Line, Missing, Place};
use crate::config::{ComponentConfig, load};
use domain::egress::EgressGrant;
use domain::grant::BucketScope;
use serde_json::json;
use std::path::Path;

/// A component of a configuration in TOML.
pub(in crate::command::component) fn parsed(keys: &str) -> ComponentConfig {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, format!("[components.c]\n{keys}\n")).unwrap();
    load(&file, [])
        .unwrap_or_else(|error| panic!("{error}: {keys}"))
        .config
        .components
        .remove("c")
        .unwrap()
}

/// The same when it is written as JSON.
fn parsed_as_json(keys: &str) -> ComponentConfig {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.json");
    std::fs::write(&file, format!("{{\"components\": {{\"c\": {{{keys}}}}}}}")).unwrap();
    load(&file, [])
        .unwrap_or_else(|error| panic!("{error}: {keys}"))
        .config
        .components
        .remove("c")
        .unwrap()
}

/// Returns the configuration after the lines are inserted. A line that replaces a key takes its
/// place.
pub(in crate::command::component) fn pasted(keys: &[&str], lines: &[Line]) -> ComponentConfig {
    let kept = keys.iter().filter(|line| {
        !lines
            .iter()
            .any(|new| new.replaces && line.starts_with(&format!("{} ", new.key)))
    });
    let all: Vec<String> = kept
        .map(ToString::to_string)
        .chain(lines.iter().map(|line| line.text(true)))
        .collect();
    let json: Vec<String> = lines.iter().map(|line| line.text(false)).collect();
    parsed_as_json(&json.join(", "));
    parsed(&all.join("\n"))
}

fn granting(keys: &[&str], capabilities: &[&str]) -> ComponentConfig {
    let lines = Missing::of(capabilities.iter().copied()).lines(&parsed(&keys.join("\n")));
    pasted(keys, &lines)
}

#[test]
fn the_lines_of_every_capability_are_read_by_the_parser_all_together() {
    let all = [
        "files.read",
        "files.write",
        "net.http",
        "env.read",
        "secrets.use",
        "lists.read",
        "lists.write",
        "models",
        "agents",
    ];
    let config = granting(&[], &all);
    assert_eq!(
        (
            config.directories.len(),
            config.network.len(),
            config.key_value.len(),
            config.secrets.len()
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(
        config.key_value,
        parsed(r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-write" }]"#)
            .key_value
    );
    assert!(config.models.is_some() && config.agents.is_some() && config.environment.len() == 1);
}

#[test]
fn what_a_key_grants_already_stays_as_it_is() {
    let keys = [
        r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-only", keysMax = 5 }, { bucket = "b", access = "read-only" }]"#,
        r#"directories = [{ path = "notes/{user}", at = "/n", access = "read-only", deny = ["x"] }]"#,
        r#"environment = { "A.B" = "a\"b" }"#,
    ];
    let config = granting(
        &keys,
        &["lists.write", "files.write", "env.read", "new.read"],
    );
    let expected = [
        r#"keyValue = [{ bucket = "lists", scope = "user", access = "read-write", keysMax = 5 }, { bucket = "b", access = "read-only" }, { bucket = "new", scope = "user", access = "read-only" }]"#,
        r#"directories = [{ path = "notes/{user}", at = "/n", access = "read-write", deny = ["x"] }]"#,
        keys[2],
    ];
    assert_eq!(config, parsed(&expected.join("\n")));
}

/// A line says what it grants, and not who else is in the folder.
#[test]
fn no_line_lets_all_users_write_what_they_share() {
    let folder = |path: &str, access: &str| {
        format!(r#"directories = [{{ path = "{path}", at = "/n", access = "{access}" }}]"#)
    };
    let bucket = |scope: &str, access: &str| {
        format!(r#"keyValue = [{{ bucket = "b", scope = "{scope}", access = "{access}" }}]"#)
    };
    for (before, after) in [
        (
            folder("notes", "read-only"),
            folder("notes/{user}", "read-write"),
        ),
        (
            folder("notes/{agent}", "read-only"),
            folder("notes/{agent}/{user}", "read-write"),
        ),
        (
            folder("notes/{session}", "read-only"),
            folder("notes/{session}", "read-write"),
        ),
        (folder("notes", "read-write"), folder("notes", "read-write")),
        (
            bucket("component", "read-only"),
            bucket("user", "read-write"),
        ),
        (bucket("agent", "read-only"), bucket("user", "read-write")),
        (
            bucket("session", "read-only"),
            bucket("session", "read-write"),
        ),
        (
            bucket("component", "read-write"),
            bucket("component", "read-write"),
        ),
    ] {
        let missing = match before.starts_with("keyValue") {
            true => "b.write",
            false => "files.write",
        };
        let lines = Missing::of([missing]).lines(&parsed(&before));
        let is_reported = lines[0]
            .text(true)
            .ends_with("what they share now stays behind");
        let was_shared = after.contains("user") && !before.contains("user");
        assert_eq!(is_reported, was_shared, "{before}");
        assert_eq!(pasted(&[&before], &lines), parsed(&after), "{before}");
    }
    // Of several, it is the one that a user has alone.
    let keys = r#"directories = [{ path = "notes", at = "/n", access = "read-only" }, { path = "own/{user}", at = "/o", access = "read-only" }]"#;
    let after = r#"directories = [{ path = "notes", at = "/n", access = "read-only" }, { path = "own/{user}", at = "/o", access = "read-write" }]"#;
    assert_eq!(granting(&[keys], &["files.write"]), parsed(after));
}

#[test]
fn what_is_only_an_example_says_that_it_is_to_be_chosen() {
    let lines = Missing::of(["files.read"]).lines(&ComponentConfig::default());
    let reported = [true, false].map(|is_toml| {
        let place = Place {
            is_toml,
            ..Place::in_toml("c")
        };
        place.describe(&lines)
    });
    let first = "make the folder first: mkdir -p workspace";
    assert_eq!(
        reported[0],
        [
            first,
            "add to components.c:",
            r#"  directories = [{ path = "workspace/{user}", at = "/workspace", access = "read-only" }]  # choose the folder; `{user}` keeps users apart"#
        ]
    );
    assert_eq!(
        reported[1],
        [
            first,
            "add to components.c (choose the folder; `{user}` keeps users apart):",
            r#"  "directories": [{"path":"workspace/{user}","at":"/workspace","access":"read-only"}]"#
        ]
    );
}

/// Nothing of it has to be put together, and a host starts with it.
#[test]
fn lines_are_blocks_that_are_pasted_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let all = ["files.write", "lists.write", "secrets.use"];
    let lines = Missing::of(all).lines(&ComponentConfig::default());
    for (name, beginning) in [("toml", ""), ("json", "{ \"components\": {")] {
        let file = folder.path().join(format!("c.{name}"));
        let empty = if name == "toml" { "# c\n" } else { "{}" };
        std::fs::write(&file, empty).unwrap();
        let place = Place::in_config(&load(&file, []).unwrap(), "lists");
        let reported = place.describe(&lines);
        let later = reported
            .iter()
            .position(|line| line.starts_with("once "))
            .unwrap();
        let [make, _, block @ ..] = &reported[..later] else {
            panic!("{reported:?}")
        };
        assert!(
            make.starts_with("make the folder first: mkdir -p "),
            "{make}"
        );
        let end = if beginning.is_empty() { "" } else { "}}" };
        std::fs::write(&file, format!("{beginning}{}{end}", block.join("\n"))).unwrap();
        let pasted = load(&file, []).unwrap().config.components["lists"].clone();
        assert_eq!(
            (
                pasted.directories[0].path.to_str().unwrap(),
                pasted.key_value[0].scope,
                pasted.secrets.len(),
            ),
            ("workspace/{user}", BucketScope::User, 0),
            "{reported:?}"
        );
    }
}

/// The configuration is seldom in the folder in which somebody looks at a component.
#[test]
fn a_file_that_wants_nothing_has_an_entry_that_finds_it_from_anywhere() {
    let reported = Place::of_file(Path::new("target/word_count.wasm")).describe(&[]);
    let [head, table, path] = reported.try_into().unwrap();
    assert_eq!(head, "add to the configuration:");
    assert_eq!(table, "  [components.word-count]");
    assert!(path.starts_with("  path = \"/"), "{path}");
    assert!(path.ends_with("/target/word_count.wasm\""), "{path}");
    assert!(Place::in_toml("c").describe(&[]).is_empty());
}

#[test]
fn keys_that_are_there_are_named_once_before_the_block() {
    let config = parsed(r#"keyValue = [{ bucket = "b", access = "read-only" }]"#);
    let lines = Missing::of(["b.write", "files.read"]).lines(&config);
    let reported = Place::in_toml("c").describe(&lines);
    assert_eq!(reported[1], "put into components.c in place of `keyValue`:");
    assert_eq!(reported.len(), 4, "{reported:?}");
}

#[test]
fn what_is_as_when_it_is_not_written_is_not_written() {
    let written = json!({ "host": "a.example", "redirects": 2 });
    let grant: EgressGrant = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(super::requests(&grant), written);
}
