//! Tests of what a path says of the agent that lives there.

use super::*;

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
