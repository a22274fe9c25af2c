//! Paths in tables and as properties: what is one, what it says, what a rule makes of it.

mod grammar;
mod kinds;
mod rules;
mod targets;

use super::*;
use proptest::prelude::*;

fn path(text: &str) -> AgentPath {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn user(text: &str) -> UserId {
    text.parse().unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn connector(text: &str) -> ConnectorName {
    text.parse().unwrap()
}

/// Returns whether a path is another or below it.
fn is_within(path: &AgentPath, above: &AgentPath) -> bool {
    path.origin() == above.origin() && path.suffixes().starts_with(above.suffixes())
}

/// The pattern for an agent and all that is below it.
fn and_below(path: &AgentPath) -> Subtree {
    format!("{path}/**").parse().unwrap()
}

/// One path of every kind, and what it is below.
const EVERY_KIND: [(&str, PathKind, Option<&str>); 10] = [
    ("/alice/telegram", PathKind::Connector, None),
    ("/alice/agent/reader", PathKind::Agent, None),
    ("/alice/cron/daily-sync", PathKind::Cron, None),
    ("/alice/task/xyz789", PathKind::Task, None),
    ("/alice/subuser/sub456", PathKind::Subuser, None),
    ("/alice/app/notes", PathKind::App, None),
    ("/system/gc", PathKind::System, None),
    (
        "/alice/telegram/sub/0",
        PathKind::Sub,
        Some("/alice/telegram"),
    ),
    (
        "/alice/agent/reader/sub/1/memory",
        PathKind::Memory,
        Some("/alice/agent/reader/sub/1"),
    ),
    ("/system/gc/search/7", PathKind::Search, Some("/system/gc")),
];

/// Names of few letters, so that many of them begin alike. Some have the signs that come before and
/// after `/`.
fn names() -> impl Strategy<Value = Name> {
    "[a-bZ0.@_-]{1,3}".prop_filter_map("a name", |text| text.parse().ok())
}

fn connectors() -> impl Strategy<Value = ConnectorName> {
    "[a-b0_-]{1,3}".prop_filter_map("a connector's name", |text| text.parse().ok())
}

fn users() -> impl Strategy<Value = UserId> {
    "[a-b][a-b0.@_-]{0,2}".prop_filter_map("a user's id", |text| text.parse().ok())
}

fn roots() -> impl Strategy<Value = AgentPath> {
    prop_oneof![
        (users(), connectors()).prop_map(|(user, connector)| AgentPath::connector(user, connector)),
        (users(), names()).prop_map(|(user, name)| AgentPath::agent(user, name)),
        (users(), names()).prop_map(|(user, name)| AgentPath::cron(user, name)),
        (users(), names()).prop_map(|(user, name)| AgentPath::task(user, name)),
        (users(), names()).prop_map(|(user, name)| AgentPath::subuser(user, name)),
        (users(), names()).prop_map(|(user, name)| AgentPath::app(user, name)),
        "[a-b0_-]{1,3}".prop_map(|tag| AgentPath::system(tag.parse().unwrap())),
    ]
}

fn suffixes() -> impl Strategy<Value = Vec<Suffix>> {
    let index = || prop_oneof![0..3_u32, Just(10), Just(u32::MAX), any::<u32>()];
    let suffix = prop_oneof![
        index().prop_map(Suffix::Sub),
        Just(Suffix::Memory),
        index().prop_map(Suffix::Search)
    ];
    prop::collection::vec(suffix, 0..5)
}

fn built(root: AgentPath, suffixes: &[Suffix]) -> AgentPath {
    suffixes
        .iter()
        .fold(root, |path, suffix| below(&path, *suffix))
}

fn below(path: &AgentPath, suffix: Suffix) -> AgentPath {
    match suffix {
        Suffix::Sub(index) => path.sub(index),
        Suffix::Memory => path.memory(),
        Suffix::Search(index) => path.search(index),
    }
    .unwrap()
}

fn paths() -> impl Strategy<Value = AgentPath> {
    (roots(), suffixes()).prop_map(|(root, suffixes)| built(root, &suffixes))
}
