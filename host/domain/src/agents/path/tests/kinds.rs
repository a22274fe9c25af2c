//! Tests of what a path says of the agent that lives there.

use super::*;
use crate::access::user::RESERVED_WORDS;

#[test]
fn every_kind_has_its_path_and_its_parent() {
    for ((text, kind, parent), expected) in EVERY_KIND.into_iter().zip(PathKind::ALL) {
        assert_eq!((path(text).kind(), kind), (expected, expected), "{text}");
        assert_eq!(path(text).parent(), parent.map(path), "{text}");
        assert_eq!(
            serde_json::to_string(&kind).unwrap(),
            format!("{:?}", kind.as_str())
        );
        assert_eq!(kind.to_string(), kind.as_str());
    }
}

#[test]
fn every_kind_has_the_model_role_of_the_design() {
    let roles = PathKind::ALL.map(|kind| kind.model_role().map(ModelRole::as_str));
    let user = Some("user");
    assert_eq!(
        roles,
        [
            user,
            user,
            None,
            Some("task"),
            user,
            None,
            None,
            Some("subagent"),
            Some("memory"),
            Some("memorySearch")
        ]
    );
    for role in ModelRole::ALL {
        assert_eq!(
            serde_json::to_string(&role).unwrap(),
            format!("{:?}", role.as_str())
        );
        assert_eq!(role.to_string(), role.as_str());
    }
    for (text, role) in [
        ("/u/telegram", Some(ModelRole::User)),
        ("/u/telegram/sub/0", Some(ModelRole::Subagent)),
        ("/u/telegram/sub/0/memory", Some(ModelRole::Memory)),
        ("/u/telegram/sub/0/search/0", Some(ModelRole::MemorySearch)),
        ("/u/telegram/search/0/sub/0", Some(ModelRole::Subagent)),
        ("/u/task/t", Some(ModelRole::Task)),
        ("/u/task/t/sub/0", Some(ModelRole::Subagent)),
        ("/u/cron/c", None),
        ("/u/app/notes", None),
        ("/u/cron/c/memory", Some(ModelRole::Memory)),
        ("/system/gc", None),
        ("/system/gc/sub/0", Some(ModelRole::Subagent)),
    ] {
        assert_eq!(path(text).model_role(), role, "{text}");
    }
}

#[test]
fn a_path_is_built_of_its_names() {
    let alice = user("alice");
    let reader = name("reader");
    for (built, text) in [
        (
            AgentPath::connector(alice.clone(), connector("telegram")),
            "/alice/telegram",
        ),
        (
            AgentPath::agent(alice.clone(), reader.clone()),
            "/alice/agent/reader",
        ),
        (
            AgentPath::cron(alice.clone(), reader.clone()),
            "/alice/cron/reader",
        ),
        (
            AgentPath::task(alice.clone(), reader.clone()),
            "/alice/task/reader",
        ),
        (AgentPath::subuser(alice, reader), "/alice/subuser/reader"),
        (AgentPath::system("gc".parse().unwrap()), "/system/gc"),
        (
            path("/alice/telegram").sub(0).unwrap(),
            "/alice/telegram/sub/0",
        ),
        (
            path("/alice/telegram").memory().unwrap(),
            "/alice/telegram/memory",
        ),
        (
            path("/alice/telegram").search(INDEX_MAX).unwrap(),
            "/alice/telegram/search/4294967295",
        ),
    ] {
        assert_eq!(built.to_string(), text);
        assert_eq!(built, path(text));
    }
}

#[test]
fn a_path_says_whose_it_is_and_what_it_is_below() {
    let deep = path("/alice/telegram/sub/0/memory");
    assert_eq!(deep.user(), Some(&user("alice")));
    assert_eq!(path("/system/gc/sub/0").user(), None);
    assert_eq!(deep.root(), path("/alice/telegram"));
    assert_eq!((deep.depth(), deep.root().depth()), (2, 0));
    assert_eq!(
        deep.ancestors().collect::<Vec<_>>(),
        [path("/alice/telegram/sub/0"), path("/alice/telegram")]
    );
    assert_eq!(deep.suffixes(), [Suffix::Sub(0), Suffix::Memory]);
    assert!(
        matches!(deep.origin(), Root::Connector { connector, .. } if connector.as_str() == "telegram")
    );
}

/// A path is within itself and what it is below and within nothing that only begins alike.
#[test]
fn only_the_agent_of_a_connector_itself_has_the_connectors_name() {
    for (text, expected) in [
        ("/u/telegram", Some("telegram")),
        ("/u/telegram/sub/0", None),
        ("/u/agent/telegram", None),
        ("/u/subuser/telegram", None),
        ("/system/telegram", None),
    ] {
        assert_eq!(
            path(text).connector_name().map(ConnectorName::as_str),
            expected,
            "{text}"
        );
    }
    assert_eq!(
        path("/u/telegram/sub/0").root().connector_name(),
        Some(&connector("telegram"))
    );
}

#[test]
fn an_agent_is_called_by_its_name_or_else_by_what_its_path_says() {
    for (text, unnamed, named) in [
        ("/u/telegram", "user", "Claude"),
        ("/u/agent/claude", "claude", "Claude"),
        ("/u/subuser/s1", "s1", "Claude"),
        ("/u/cron/daily", "cron task", "Claude"),
        ("/u/task/task-1", "task task-1", "task task-1"),
        ("/system/gc", "gc", "gc"),
        ("/u/telegram/sub/0", "subagent", "Claude"),
        ("/u/telegram/memory", "memory-agent", "memory-agent"),
        ("/u/telegram/search/0", "memory-search", "Claude"),
    ] {
        assert_eq!(path(text).label(None), unnamed, "{text}");
        assert_eq!(path(text).label(Some(" \t")), unnamed, "{text}");
        assert_eq!(path(text).label(Some(" Claude ")), named, "{text}");
    }
}

#[test]
fn a_fetch_strategy_finds_what_people_talk_with_or_the_heartbeat() {
    for (text, foreground, heartbeat) in [
        ("/u/telegram", true, false),
        ("/u/agent/claude", true, false),
        ("/u/subuser/s1", true, false),
        ("/u/app/notes", false, false),
        ("/u/app", true, false),
        ("/u/heartbeat", true, false),
        ("/u/task/t1", false, false),
        ("/u/cron/heartbeat", false, false),
        ("/u/telegram/sub/0", false, false),
        ("/u/agent/claude/memory", false, false),
        ("/u/agent/claude/search/0", false, false),
        ("/system/gc", false, false),
        ("/system/heartbeat", false, true),
        ("/system/heartbeat/sub/0", false, false),
    ] {
        let found = FetchStrategy::ALL.map(|strategy| strategy.matches(&path(text)));
        assert_eq!(found, [foreground, heartbeat], "{text}");
    }
    for strategy in FetchStrategy::ALL {
        assert_eq!(
            serde_json::to_string(&strategy).unwrap(),
            format!("{:?}", strategy.as_str())
        );
    }
}

// Properties of every path.

/// Texts that are nearly paths.
fn nearly() -> impl Strategy<Value = String> {
    const WORDS: [&str; 20] = [
        "agent",
        "cron",
        "task",
        "subuser",
        "app",
        "sub",
        "memory",
        "search",
        "system",
        "a",
        "b-",
        "0",
        "1",
        "01",
        "10",
        "4294967295",
        "4294967296",
        "..",
        "A",
        "",
    ];
    let segments = |most: usize| {
        let words = prop::collection::vec(prop::sample::select(WORDS.as_slice()), 0..most);
        words.prop_map(|words| {
            words
                .into_iter()
                .map(|word| format!("/{word}"))
                .collect::<String>()
        })
    };
    prop_oneof![
        any::<String>(),
        segments(8),
        segments(5).prop_map(|below| format!("/a/telegram{below}"))
    ]
}

/// Returns the kinds of a text by the design's own order. Its end counts before its beginning, and
/// each pattern is matched from end to end.
fn kinds_of(text: &str) -> Vec<PathKind> {
    let segments: Vec<&str> = text.split('/').skip(1).collect();
    let is_number = |text: &str| {
        text.parse::<u32>()
            .is_ok_and(|number| number.to_string() == text)
    };
    let reserved = |text: &str| RESERVED_WORDS.contains(&text);
    let (last, rest) = segments
        .split_last()
        .map_or(("", [].as_slice()), |(last, rest)| (*last, rest));
    let before = rest.last().copied().unwrap_or_default();
    let second = segments.get(1).copied().unwrap_or_default();
    let named = |word: &str| {
        segments.len() == 3 && second == word && segments[0] != "system" && !reserved(last)
    };
    let all = [
        (PathKind::Memory, last == "memory"),
        (PathKind::Search, before == "search" && is_number(last)),
        (PathKind::Sub, before == "sub" && is_number(last)),
        (
            PathKind::System,
            segments.len() == 2 && segments[0] == "system" && !reserved(last),
        ),
        (PathKind::Agent, named("agent")),
        (PathKind::Cron, named("cron")),
        (PathKind::Task, named("task")),
        (PathKind::Subuser, named("subuser")),
        (PathKind::App, named("app")),
        (
            PathKind::Connector,
            segments.len() == 2 && segments[0] != "system" && !reserved(last),
        ),
    ];
    all.into_iter()
        .filter(|(_, is)| *is)
        .map(|(kind, _)| kind)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_built_is_read_back_with_all_its_parts(root in roots(), suffixes in suffixes()) {
        let made = built(root.clone(), &suffixes);
        let read = path(made.as_str());
        prop_assert_eq!(&read, &made);
        prop_assert_eq!(read.suffixes(), suffixes.as_slice());
        prop_assert_eq!(read.origin(), root.origin());
        prop_assert_eq!(read.user(), root.user());
        prop_assert_eq!(read.root(), root);
        prop_assert_eq!(read.depth(), suffixes.len());
        let json = serde_json::to_string(&made).unwrap();
        prop_assert_eq!(serde_json::from_str::<AgentPath>(&json).unwrap(), made);
    }

    #[test]
    fn the_parent_of_what_is_built_is_what_it_was_built_from(from in paths(), index in any::<u32>()) {
        for (made, kind) in [
            (from.sub(index), PathKind::Sub),
            (from.memory(), PathKind::Memory),
            (from.search(index), PathKind::Search),
        ] {
            let made = made.unwrap();
            prop_assert_eq!(made.kind(), kind);
            prop_assert_eq!(made.parent(), Some(from.clone()));
            let above: Vec<AgentPath> = made.ancestors().collect();
            prop_assert_eq!(above.len(), made.depth());
            prop_assert_eq!(above.last(), Some(&from.root()));
            prop_assert!(above.iter().all(|ancestor| is_within(&made, ancestor) && !is_within(ancestor, &made)));
        }
        prop_assert_eq!(from.root().parent(), None);
    }

    #[test]
    fn no_text_makes_the_reader_panic_and_what_it_reads_is_the_text(text in nearly()) {
        match text.parse::<AgentPath>() {
            Ok(path) => prop_assert_eq!(path.to_string(), text),
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control), "{error}"),
        }
    }

    #[test]
    fn no_text_reads_as_two_kinds(text in nearly()) {
        if let Ok(path) = text.parse::<AgentPath>() {
            prop_assert_eq!(kinds_of(&text), vec![path.kind()], "{}", text);
            // The parts make the same text again in one way only.
            prop_assert_eq!(built(path.root(), path.suffixes()).to_string(), text);
        }
    }

    #[test]
    fn in_order_what_is_below_a_path_follows_each_other_without_a_gap(
        mut all in prop::collection::vec(paths(), 1..40), at in any::<prop::sample::Index>(),
    ) {
        let above = at.get(&all).clone();
        all.extend([above.sub(0).unwrap(), above.sub(10).unwrap(), above.memory().unwrap()]);
        all.sort();
        let below: Vec<bool> = all.iter().map(|path| is_within(path, &above) && *path != above).collect();
        let changes = below.windows(2).filter(|pair| pair[0] != pair[1]).count();
        prop_assert!(changes <= 2, "{above}: {all:?}");
        let texts: Vec<&str> = all.iter().map(AgentPath::as_str).collect();
        prop_assert!(texts.is_sorted(), "in the order of the texts");
    }

    #[test]
    fn every_name_that_fits_makes_a_path_that_fits(text in "[A-Za-z0-9_.@-]{1,512}", id in "[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}") {
        if let (Ok(name), Ok(user)) = (text.parse::<Name>(), id.parse::<UserId>()) {
            let path = AgentPath::subuser(user, name);
            prop_assert_eq!(path.as_str().parse(), Ok(path));
        }
    }
}
