//! Tests of which texts are paths, and of the errors of those that are none.

use super::*;
use crate::access::user::RESERVED_WORDS;

fn refusal(text: &str) -> String {
    text.parse::<AgentPath>()
        .map(|path| path.kind())
        .expect_err(text)
        .to_string()
}

#[test]
fn every_pattern_of_the_design_is_a_path() {
    let long = format!(
        "/{}/agent/{}",
        "u".repeat(USER_BYTES_MAX),
        "n".repeat(NAME_BYTES_MAX)
    );
    for text in [
        "/u_abc123/telegram",
        "/u_abc123/telegram/sub/0",
        "/u_abc123/telegram/sub/0/memory",
        "/u_abc123/telegram/sub/0/search/0",
        "/u_grp456/telegram",
        "/u_abc123/direct",
        "/u_abc123/agent/claude/sub/1/sub/0",
        "/u_abc123/cron/daily-sync/memory",
        "/u_abc123/task/xyz789/search/12",
        "/u_abc123/subuser/sub456/sub/4294967295",
        "/u_abc123/app/notes",
        "/u_abc123/app/notes/sub/0",
        "/u_abc123/app",
        "/u_abc123/app/sub/0",
        "/system/gc",
        "/system/gc/sub/0/memory",
        "/u/agent/x/memory/memory/search/0/sub/10",
        "/carol@example.org/agent/Reader.2@home",
        "/u/agent/6f1ed002-ab59-4e46-9d7b-6b9a3b8d0c11",
        "/u/agents/memory",
        "/u/agent/subs",
        "/u/agent/0",
        "/u/agent/...",
        "/u/-/sub/0",
        "/System/gc",
        "/local/agent/reading-list",
        &long,
    ] {
        assert_eq!(path(text).to_string(), text);
        assert_eq!(path(text).as_str(), text);
    }
}

#[test]
fn what_this_host_has_made_so_far_is_a_path() {
    for text in [
        "/local/agent/assistant",
        "/local/agent/assistant/sub/0",
        "/local/agent/gone/sub/0/sub/0",
        "/ada/assistant/sub/1",
    ] {
        assert_eq!(path(text).to_string(), text);
    }
}

#[test]
fn a_wrong_segment_is_named_with_its_place_its_fault_and_what_could_stand_there() {
    for (text, parts) in [
        (
            "/",
            ["segment 1 of `/`, ``, is empty", "a user's id (1 to 64"],
        ),
        (
            "/-u/telegram",
            [
                "segment 1 of `/-u/telegram`, `-u`, does not begin with a letter",
                "beginning with a letter or a digit",
            ],
        ),
        (
            "/agent/telegram",
            [
                "segment 1",
                "`agent`, is a word that says what kind of agent",
            ],
        ),
        (
            "/system",
            ["`/system` ends before segment 2", "a tag (1 to 64 of a-z"],
        ),
        (
            "/system/memory",
            [
                "segment 2 of `/system/memory`, `memory`, is a word",
                "a tag",
            ],
        ),
        ("/system/Gc", ["has 'G' in it", "a tag"]),
        (
            "/u",
            [
                "`/u` ends before segment 2",
                "`agent`, `cron`, `task`, `subuser`, `app` or a connector's name (1 to 64",
            ],
        ),
        (
            "/u/sub/0",
            [
                "segment 2 of `/u/sub/0`, `sub`, is a word that says",
                "a connector's name",
            ],
        ),
        (
            "/u/Telegram",
            [
                "segment 2 of `/u/Telegram`, `Telegram`, has 'T' in it",
                "a connector's name",
            ],
        ),
        (
            "/u/agent",
            ["`/u/agent` ends before segment 3", "a name (1 to 512"],
        ),
        ("/u/agent/sub/0", ["segment 3", "`sub`, is a word"]),
        (
            "/u/cron/..",
            [
                "segment 3 of `/u/cron/..`, `..`, leads elsewhere",
                "neither `.` nor `..`",
            ],
        ),
        ("/u/task/a%2Fb", ["has '%' in it", "a name"]),
        (
            "/u/agent/x/y",
            [
                "segment 4 of `/u/agent/x/y`, `y`, is none of the words",
                "`sub/<n>`, `memory`, `search/<n>` or nothing",
            ],
        ),
        (
            "/u/telegram//memory",
            [
                "segment 3 of `/u/telegram//memory`, ``, is empty",
                "or nothing",
            ],
        ),
        (
            "/u/telegram/sub",
            [
                "`/u/telegram/sub` ends before segment 4",
                "a number from 0 to 4294967295",
            ],
        ),
        (
            "/u/telegram/sub/memory",
            ["segment 4", "`memory`, has 'm' in it"],
        ),
        (
            "/u/telegram/sub/00",
            [
                "`00`, has a zero before its number",
                "without zeros before it",
            ],
        ),
        ("/u/telegram/sub/+1", ["has '+' in it", "a number"]),
        ("/u/telegram/sub/٣", ["has '٣' in it", "a number"]),
        (
            "/u/telegram/sub/4294967296",
            [
                "`4294967296`, is too large",
                "a number from 0 to 4294967295",
            ],
        ),
        (
            "/u/tele\u{0}gram",
            ["`tele\\0gram`, has '\\0' in it", "a connector's name"],
        ),
    ] {
        let refused = refusal(text);
        assert!(
            parts.iter().all(|part| refused.contains(part)),
            "{text}: {refused}"
        );
    }
}

#[test]
fn what_does_not_begin_with_a_slash_is_told_what_a_path_looks_like() {
    for text in [
        "",
        " /u/telegram",
        "u/telegram",
        "telegram",
        "\\u\\telegram",
        "https://u/telegram",
    ] {
        assert!(
            refusal(text)
                .contains("`/<user>/agent/<name>`, `/<user>/<connector>` or `/system/<tag>`"),
            "{text}"
        );
    }
}

#[test]
fn a_segment_keeps_its_limit_and_says_how_long_it_is() {
    for (text, expected) in [
        (
            format!("/{}/telegram", "u".repeat(USER_BYTES_MAX + 1)),
            "has 65 bytes",
        ),
        (
            format!("/u/{}", "c".repeat(CONNECTOR_NAME_BYTES_MAX + 1)),
            "has 65 bytes",
        ),
        (
            format!("/system/{}", "t".repeat(CONNECTOR_NAME_BYTES_MAX + 1)),
            "has 65 bytes",
        ),
        (
            format!("/u/agent/{}", "n".repeat(NAME_BYTES_MAX + 1)),
            "has 513 bytes",
        ),
    ] {
        assert!(refusal(&text).contains(expected), "{}", refusal(&text));
    }
    path(&format!("/u/{}", "c".repeat(CONNECTOR_NAME_BYTES_MAX)));
    path(&format!("/system/{}", "t".repeat(CONNECTOR_NAME_BYTES_MAX)));
}

#[test]
fn a_path_keeps_its_limits_of_bytes_and_segments() {
    let deepest = format!(
        "/u/telegram{}",
        "/memory".repeat((PATH_BYTES_MAX - "/u/telegram".len()) / "/memory".len())
    );
    assert!(path(&deepest).memory().is_err_and(
        |error| matches!(error, PathError::TooLong { bytes } if bytes > PATH_BYTES_MAX)
    ));
    let longer = format!("{deepest}/memory");
    assert_eq!(
        refusal(&longer),
        format!("the path has {} bytes; 1024 is the most", longer.len())
    );

    let many = format!("/u/t{}", "/sub/0".repeat((PATH_SEGMENTS_MAX - 2) / 2));
    assert_eq!(path(&many).depth(), 127);
    let more = format!("{many}/sub/0");
    assert_eq!(refusal(&more), "the path has 258 segments; 256 is the most");
    assert_eq!(path(&many).sub(0), more.parse());
    assert_eq!(
        path(&many).memory().map_err(|error| error.to_string()),
        Err("the path has 257 segments; 256 is the most".to_owned())
    );
}

#[test]
fn a_path_of_no_pattern_is_refused_in_the_designs_words() {
    for (text, designs) in [
        ("/alice", true),
        ("/alice/agent", true),
        ("/system", true),
        ("/alice/telegram/sub", true),
        ("/alice/agent/x/y", true),
        ("/alice/Telegram", false),
        ("/alice/agent/sub", false),
    ] {
        let words = format!("Unknown path pattern: {text}; ");
        assert_eq!(refusal(text).starts_with(&words), designs, "{text}");
    }
}

#[test]
fn an_app_stands_below_no_other_agent() {
    assert_eq!(path("/u/app/notes").kind(), PathKind::App);
    for text in [
        "/u/agent/x/app/notes",
        "/u/app/shop/app/notes",
        "/u/telegram/app/notes",
        "/u/agent/x/sub/0/app/notes",
        "/system/gc/app/notes",
    ] {
        let refused = refusal(text);
        assert!(refused.contains("`app`"), "{refused}");
    }
}

#[test]
fn a_connector_called_app_is_where_it_was_before_apps_had_paths() {
    for (text, kind) in [
        ("/u/app", PathKind::Connector),
        ("/u/app/memory", PathKind::Memory),
        ("/u/app/search/0", PathKind::Search),
        ("/u/app/notes", PathKind::App),
        ("/u/app/notes/memory", PathKind::Memory),
    ] {
        assert_eq!(path(text).kind(), kind, "{text}");
    }
    assert_eq!(
        path("/u/app/sub/0").parent(),
        Some(path("/u/app")),
        "below the connector"
    );
}

#[test]
fn a_name_says_what_it_has_to_be() {
    let refused = "Telegram!"
        .parse::<ConnectorName>()
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "`Telegram!` has 'T' in it; it has to be 1 to 64 of a-z, 0-9, `-` and `_`, and no reserved \
         word"
    );
    let long = "x".repeat(100_000).parse::<Tag>().unwrap_err();
    assert_eq!(
        (long.given.len(), long.fault),
        (64, SegmentFault::TooLong { bytes: 100_000 })
    );
    for word in RESERVED_WORDS {
        assert_eq!(
            word.parse::<ConnectorName>().unwrap_err().fault,
            SegmentFault::Reserved
        );
        assert_eq!(
            word.parse::<Tag>().unwrap_err().fault,
            SegmentFault::Reserved
        );
        assert_eq!(
            word.parse::<Name>().unwrap_err().fault,
            SegmentFault::Reserved
        );
        assert!(word.parse::<UserId>().is_err());
    }
}

#[test]
fn a_path_and_its_names_are_texts_in_json_and_are_checked_when_they_are_read() {
    let text = r#""/alice/agent/reader/sub/0""#;
    assert_eq!(
        serde_json::to_string(&serde_json::from_str::<AgentPath>(text).unwrap()).unwrap(),
        text
    );
    let refused = serde_json::from_str::<AgentPath>(r#""/alice/sub/0""#)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("segment 2 of `/alice/sub/0`, `sub`"),
        "{refused}"
    );
    assert_eq!(
        serde_json::to_string(&connector("telegram")).unwrap(),
        r#""telegram""#
    );
    assert!(serde_json::from_str::<ConnectorName>(r#""agent""#).is_err());
    assert!(serde_json::from_str::<Name>(r#""a/b""#).is_err());
    assert!(serde_json::from_str::<Tag>("1").is_err());
}
