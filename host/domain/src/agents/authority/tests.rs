//! Lists and grants as truth tables, and what holds of every combination of them.

use super::{Caller, Denies, ListCheck, Permissions, Rule};
use crate::access::egress::{EgressGrant, HostPattern};
use crate::access::grant::{Access, BucketGrant, DirectoryGrant, Grant, PatternList};
use crate::access::tool::{EffectClass, ToolDefinition};
use crate::agents::definition::Definition;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A definition with these keys set.
fn definition(keys: &Value) -> Definition {
    let mut whole = json!({ "agentId": "a", "displayName": "A" });
    whole
        .as_object_mut()
        .unwrap()
        .extend(keys.as_object().unwrap().clone());
    serde_json::from_value(whole).unwrap()
}

fn tool(name: &str, capabilities: &[&str]) -> ToolDefinition {
    ToolDefinition {
        capabilities: capabilities
            .iter()
            .map(|&capability| capability.to_owned())
            .collect(),
        ..ToolDefinition::reading(name, String::new(), json!({ "type": "object" }))
    }
}

/// A caller that is limited by its own lists alone.
fn unlimited(agent: &Definition) -> Caller<'_> {
    static NOTHING: LazyLock<(Denies, Permissions)> = LazyLock::new(Default::default);
    Caller {
        agent,
        denies: &NOTHING.0,
        permissions: &NOTHING.1,
    }
}

/// The rule that keeps an agent from calling a tool.
fn call(keys: &Value, tool: &ToolDefinition) -> Option<&'static str> {
    let agent = definition(keys);
    let caller = unlimited(&agent);
    caller
        .may_call(tool)
        .err()
        .map(|denied| denied.rule.as_str())
}

/// The rule that keeps an agent, whose component may dispatch to everybody, from another.
fn reach(keys: &Value, other: &Definition) -> Option<&'static str> {
    let agent = definition(keys);
    let caller = unlimited(&agent);
    let grant = Grant {
        agents: PatternList::everything(),
        ..Grant::default()
    };
    caller
        .may_reach(other, &grant)
        .err()
        .map(|denied| denied.rule.as_str())
}

#[test]
fn a_deny_list_wins_over_an_allow_list_and_a_missing_allow_list_is_everything() {
    for (keys, name, rule) in [
        (json!({}), "todo_add", None),
        (json!({ "toolAllowlist": null }), "todo_add", None),
        (
            json!({ "toolAllowlist": [] }),
            "todo_add",
            Some("toolAllowlist"),
        ),
        (json!({ "toolAllowlist": ["todo_*"] }), "todo_add", None),
        (
            json!({ "toolAllowlist": ["todo_*"] }),
            "journal_add",
            Some("toolAllowlist"),
        ),
        (
            json!({ "toolAllowlist": ["todo_*"], "toolDenylist": ["*_delete"] }),
            "todo_delete",
            Some("toolDenylist"),
        ),
        (
            json!({ "toolAllowlist": ["todo_delete"], "toolDenylist": ["todo_delete"] }),
            "todo_delete",
            Some("toolDenylist"),
        ),
        (json!({ "toolDenylist": [] }), "todo_add", None),
    ] {
        assert_eq!(call(&keys, &tool(name, &[])), rule, "{keys} {name}");
    }
}

#[test]
fn system_tools_pass_allow_lists_and_nothing_passes_a_deny_list() {
    for (keys, rule) in [
        (
            json!({ "toolAllowlist": [], "capabilityAllowlist": [] }),
            None,
        ),
        (
            json!({ "toolDenylist": ["system_*"] }),
            Some("toolDenylist"),
        ),
        (
            json!({ "toolAllowlist": ["system_status"], "toolDenylist": ["*"] }),
            Some("toolDenylist"),
        ),
    ] {
        let status = tool("system_status", &["host.read"]);
        assert_eq!(call(&keys, &status), rule, "{keys}");
    }
}

#[test]
fn an_agent_that_only_delegates_may_call_nothing_else_not_even_a_system_tool() {
    let alone = json!({ "toolAllowlist": ["delegate"] });
    let among_others = json!({ "toolAllowlist": ["delegate", "look"] });
    for (keys, name, rule) in [
        (&alone, "delegate", None),
        (&alone, "look", Some("toolAllowlist")),
        (&alone, "system_status", Some("toolAllowlist")),
        (&alone, "system_delegate", Some("toolAllowlist")),
        (&alone, "delegate2", Some("toolAllowlist")),
        (&alone, "", Some("toolAllowlist")),
        (&among_others, "system_status", None),
        (&among_others, "look", None),
    ] {
        assert_eq!(call(keys, &tool(name, &[])), rule, "{keys} {name}");
    }
}

#[test]
fn every_capability_of_a_tool_must_be_allowed_and_none_denied() {
    for (keys, capabilities, rule) in [
        (json!({ "capabilityAllowlist": [] }), vec![], None),
        (json!({}), vec!["lists.read", "lists.write"], None),
        (
            json!({ "capabilityAllowlist": ["lists.*"] }),
            vec!["lists.read", "lists.write"],
            None,
        ),
        (
            json!({ "capabilityAllowlist": ["lists.read"] }),
            vec!["lists.read", "lists.write"],
            Some("capabilityAllowlist"),
        ),
        (
            json!({ "capabilityDenylist": ["lists.write"] }),
            vec!["lists.read", "lists.write"],
            Some("capabilityDenylist"),
        ),
        (
            json!({ "capabilityAllowlist": ["lists.*"], "capabilityDenylist": ["lists.write"] }),
            vec!["lists.write"],
            Some("capabilityDenylist"),
        ),
        (
            json!({ "capabilityAllowlist": ["lists.*"], "capabilityDenylist": ["lists.write"] }),
            vec!["lists.read"],
            None,
        ),
        (
            json!({ "capabilityDenylist": ["lists.read"] }),
            vec!["lists.write"],
            Some("capabilityDenylist"),
        ),
        (
            json!({ "capabilityAllowlist": ["lists.write"] }),
            vec!["lists.write"],
            Some("capabilityAllowlist"),
        ),
        (
            json!({ "capabilityDenylist": ["files.read"] }),
            vec!["files.write"],
            Some("capabilityDenylist"),
        ),
    ] {
        let tool = tool("lists", &capabilities);
        assert_eq!(call(&keys, &tool), rule, "{keys} {capabilities:?}");
    }
}

#[test]
fn a_peer_is_reached_when_it_is_allowed_not_denied_and_visible() {
    for (keys, visible, rule) in [
        (json!({}), true, None),
        (json!({}), false, Some("uiVisible")),
        (
            json!({ "agentAllowlist": [] }),
            true,
            Some("agentAllowlist"),
        ),
        (json!({ "agentAllowlist": ["to*"] }), true, None),
        (
            json!({ "agentAllowlist": ["todo"], "agentDenylist": ["t*"] }),
            true,
            Some("agentDenylist"),
        ),
        (
            json!({ "agentAllowlist": ["journal"] }),
            true,
            Some("agentAllowlist"),
        ),
    ] {
        let todo = definition(&json!({ "agentId": "todo", "uiVisible": visible }));
        assert_eq!(reach(&keys, &todo), rule, "{keys} {visible}");
    }
}

fn everything() -> Grant {
    Grant {
        directories: vec![DirectoryGrant::whole("/data", "/data", Access::ReadWrite)],
        network: vec![EgressGrant::of(HostPattern::parse("example.com").unwrap())],
        environment: [("LANG".to_owned(), "en".to_owned())].into(),
        key_value: vec![BucketGrant::new("lists", Access::ReadWrite)],
        ..Grant::default()
    }
}

/// Returns the instance's access to folders, requests and the bucket. It is for an agent with these
/// keys that calls a tool which asks for these capabilities.
fn bound_to(keys: &Value, asked: &[&str]) -> (Option<Access>, usize, Option<Access>) {
    let agent = definition(keys);
    let caller = unlimited(&agent);
    let bound = caller.bound(&tool("t", asked), &everything()).unwrap();
    (
        bound.directories.first().map(|folder| folder.access),
        bound.network.len(),
        bound.key_value.first().map(|bucket| bucket.access),
    )
}

#[test]
fn a_call_is_bound_to_what_its_tool_asks_for_and_to_no_more() {
    let none = json!({});
    for (asked, expected) in [
        (&[][..], (None, 0, None)),
        (&["files.read"], (Some(Access::ReadOnly), 0, None)),
        (&["files.write"], (Some(Access::ReadWrite), 0, None)),
        (
            &["files.read", "files.write", "net"],
            (Some(Access::ReadWrite), 0, None),
        ),
        (&["net.http"], (None, 1, None)),
        (&["lists.read"], (None, 0, Some(Access::ReadOnly))),
        (&["lists.write"], (None, 0, Some(Access::ReadWrite))),
        (&["notes.write"], (None, 0, None)),
    ] {
        assert_eq!(bound_to(&none, asked), expected, "{asked:?}");
    }
}

#[test]
fn a_denied_capability_refuses_the_tool_that_asks_for_it_before_it_is_called() {
    let agent =
        json!({ "capabilityAllowlist": ["lists.*"], "capabilityDenylist": ["lists.write"] });
    assert_eq!(
        bound_to(&agent, &["lists.read"]),
        (None, 0, Some(Access::ReadOnly))
    );
    assert_eq!(
        call(&agent, &tool("t", &["lists.read", "lists.write"])),
        Some("capabilityDenylist")
    );
}

/// Agents that may not read may not write either, and those that may write see read-only grants.
#[test]
fn reading_is_needed_for_writing_and_writers_see_read_only_grants() {
    let boss = definition(&json!({ "capabilityDenylist": ["files.read"] }));
    let agent = definition(&json!({}));
    let write = tool("write", &["files.write"]);
    let refused = |agent: &Definition, denies: &Denies| {
        let caller = Caller {
            denies,
            ..unlimited(agent)
        };
        caller
            .bound(&write, &everything())
            .err()
            .map(|denied| (denied.rule, denied.what))
    };
    let reading = "files.read".to_owned();
    assert_eq!(
        refused(&boss, &Denies::default()),
        Some((Rule::CapabilityDenylist, reading.clone()))
    );
    assert_eq!(
        refused(&agent, &Denies::default().and_of(&boss)),
        Some((Rule::CallersDenylist, reading.clone()))
    );

    let caller = unlimited(&boss);
    let stopping: Vec<_> = caller
        .explain(&write, &everything())
        .into_iter()
        .filter(ListCheck::stops)
        .collect();
    assert_eq!(stopping.len(), 1);
    assert_eq!(
        (stopping[0].rule, &stopping[0].name),
        (Rule::CapabilityDenylist, &reading)
    );
    assert_eq!(stopping[0].with.as_deref(), Some("files.write"));

    let mut grant = everything();
    grant.directories[0].access = Access::ReadOnly;
    grant.key_value[0].access = Access::ReadOnly;
    let caller = unlimited(&agent);
    let bound = caller
        .bound(&tool("write", &["files.write", "lists.write"]), &grant)
        .unwrap();
    assert_eq!(
        (bound.directories[0].access, bound.key_value[0].access),
        (Access::ReadOnly, Access::ReadOnly)
    );
}

#[test]
fn only_a_deny_is_explained_as_against_the_use_of_skills() {
    let by_boss = definition(&json!({ "toolDenylist": ["ba*"] }));
    let denied = Denies::default().and_of(&by_boss);
    for (keys, denies, expected) in [
        (json!({ "toolAllowlist": [] }), Denies::default(), None),
        (
            json!({ "toolDenylist": ["bash"] }),
            Denies::default(),
            Some(Rule::ToolDenylist),
        ),
        (json!({}), denied, Some(Rule::CallersDenylist)),
    ] {
        let agent = definition(&keys);
        let caller = Caller {
            denies: &denies,
            ..unlimited(&agent)
        };
        let stopping = caller.explain_skills().into_iter().find(ListCheck::stops);
        assert_eq!(stopping.map(|check| check.rule), expected);
        let refused = caller.may_use_skills().err().map(|denied| denied.rule);
        assert_eq!(refused, expected);
    }
}

#[test]
fn what_a_caller_is_denied_is_denied_to_whoever_works_for_it() {
    let boss = definition(
        &json!({ "toolDenylist": ["x_*"], "capabilityDenylist": ["files.write"], "agentDenylist": ["coder"] }),
    );
    let denies = Denies::default().and_of(&boss);
    let worker = definition(&json!({}));
    let coder = definition(&json!({ "agentId": "coder" }));
    let caller = Caller {
        denies: &denies,
        ..unlimited(&worker)
    };
    let callers = Some(Rule::CallersDenylist);
    assert_eq!(
        caller
            .may_call(&tool("x_rm", &[]))
            .err()
            .map(|denied| denied.rule),
        callers
    );
    assert_eq!(
        caller
            .may_call(&tool("write", &["files.write"]))
            .err()
            .map(|denied| denied.rule),
        callers
    );
    assert_eq!(
        caller
            .may_reach(
                &coder,
                &Grant {
                    agents: PatternList::everything(),
                    ..Grant::default()
                }
            )
            .err()
            .map(|d| d.rule),
        callers
    );
    assert!(caller.may_call(&tool("read", &["files.read"])).is_ok());
}

#[test]
fn an_agent_whose_component_is_granted_no_agents_reaches_none() {
    let agent = definition(&json!({}));
    let todo = definition(&json!({ "agentId": "todo" }));
    let caller = unlimited(&agent);
    assert_eq!(
        caller
            .may_reach(&todo, &Grant::default())
            .err()
            .map(|denied| denied.rule),
        Some(Rule::NotGranted)
    );
}

#[test]
fn a_grant_that_is_widened_during_a_run_is_not_for_it_and_one_that_is_narrowed_is() {
    let agent = definition(&json!({}));
    let caller = unlimited(&agent);
    let tool = tool("t", &["files.read", "files.write", "net.http"]);
    let wide = everything();
    let mut narrow = Grant {
        network: Vec::new(),
        ..everything()
    };
    narrow.directories[0].access = Access::ReadOnly;
    narrow.limits.cpu_ms_max = 10;
    let of = |grant: &Grant| caller.bound(&tool, grant).unwrap();
    for (now, then) in [(&wide, &narrow), (&narrow, &wide)] {
        let bound = of(now).within(&of(then));
        assert_eq!(bound.directories[0].access, Access::ReadOnly);
        assert_eq!((bound.network.len(), bound.limits.cpu_ms_max), (0, 10));
    }
    let ruling = of(&wide)
        .within(&of(&narrow))
        .rulings
        .into_iter()
        .find(|ruling| ruling.capability == "net.http")
        .unwrap();
    assert_eq!((ruling.allowed, ruling.rule), (false, Rule::Ceiling));
}

#[test]
fn a_tool_that_only_reads_gets_its_buckets_read_only() {
    let agent = definition(&json!({}));
    let caller = unlimited(&agent);
    let bound = caller
        .bound(
            &tool("t", &["lists.read", "lists.write", "files.write"]),
            &everything(),
        )
        .unwrap();
    for (effect, access, rule) in [
        (EffectClass::ReadOnly, Access::ReadOnly, Rule::ReadOnly),
        (EffectClass::Idempotent, Access::ReadWrite, Rule::Granted),
        (EffectClass::NonIdempotent, Access::ReadWrite, Rule::Granted),
    ] {
        let bound = bound.clone().for_effect(effect);
        assert_eq!(
            (bound.key_value[0].access, bound.directories[0].access),
            (access, Access::ReadWrite),
            "{effect:?}"
        );
        let ruling = bound
            .rulings
            .iter()
            .find(|ruling| ruling.capability == "lists.write")
            .unwrap();
        assert_eq!(
            (ruling.allowed, ruling.rule),
            (rule == Rule::Granted, rule),
            "{effect:?}"
        );
    }
}

#[test]
fn a_folder_whose_patterns_or_quota_changed_since_the_run_began_is_not_for_it() {
    let agent = definition(&json!({}));
    let caller = unlimited(&agent);
    let tool = tool("t", &["files.read"]);
    let of = |grant: &Grant| caller.bound(&tool, grant).unwrap();
    let then = everything();
    assert_eq!(of(&then).within(&of(&then)).directories.len(), 1);
    let changes: [fn(&mut DirectoryGrant); 4] = [
        |folder| folder.allow = Some(Vec::new()),
        |folder| folder.deny.push("secret".parse().unwrap()),
        |folder| folder.bytes_max = Some(1),
        |folder| folder.files_max = Some(1),
    ];
    for change in changes {
        let mut now = everything();
        change(&mut now.directories[0]);
        assert!(
            of(&now).within(&of(&then)).directories.is_empty()
                && of(&then).within(&of(&now)).directories.is_empty(),
            "{now:?}"
        );
    }
}

const CAPABILITIES: [&str; 6] = [
    "files.read",
    "files.write",
    "net.http",
    "env.read",
    "lists.read",
    "lists.write",
];

fn list() -> impl Strategy<Value = Vec<String>> {
    let patterns = CAPABILITIES.iter().map(|name| (*name).to_owned()).chain([
        "*".to_owned(),
        "lists.*".to_owned(),
        "nothing".to_owned(),
    ]);
    proptest::sample::subsequence(patterns.collect::<Vec<_>>(), 0..4)
}

fn some_grant() -> impl Strategy<Value = Grant> {
    (0..3_u8, any::<bool>(), any::<bool>(), 0..3_u8).prop_map(
        |(files, network, environment, lists)| {
            let access = |kind: u8| {
                if kind == 1 {
                    Access::ReadOnly
                } else {
                    Access::ReadWrite
                }
            };
            let mut grant = everything();
            grant.directories.retain(|_| files > 0);
            grant.key_value.retain(|_| lists > 0);
            grant
                .directories
                .iter_mut()
                .for_each(|folder| folder.access = access(files));
            grant
                .key_value
                .iter_mut()
                .for_each(|bucket| bucket.access = access(lists));
            grant.network.retain(|_| network);
            grant.environment.retain(|_, _| environment);
            grant
        },
    )
}

/// Returns what an instance can do with what it is bound to, in capabilities.
fn can(bound: &crate::access::grant::Bound) -> Vec<&'static str> {
    let folder = bound.directories.first().map(|folder| folder.access);
    let bucket = bound.key_value.first().map(|bucket| bucket.access);
    let can = [
        folder.is_some(),
        folder == Some(Access::ReadWrite),
        !bound.network.is_empty(),
        !bound.environment.is_empty(),
        bucket.is_some(),
        bucket == Some(Access::ReadWrite),
    ];
    CAPABILITIES
        .iter()
        .zip(can)
        .filter(|(_, can)| *can)
        .map(|(name, _)| *name)
        .collect()
}

proptest! {
    /// Checks all combinations of asked, granted, allowed, permitted and denied. An instance can do
    /// what all of them agree upon, and nothing else.
    #[test]
    fn an_instance_can_do_what_everybody_agrees_upon_and_nothing_else(
        asked in proptest::sample::subsequence(CAPABILITIES.to_vec(), 0..=CAPABILITIES.len()),
        grant in some_grant(),
        allow in proptest::option::of(list()),
        deny in list(),
        role in proptest::option::of(list()),
        callers in list(),
    ) {
        let agent = definition(&json!({ "capabilityAllowlist": allow, "capabilityDenylist": deny }));
        let permissions = Permissions { capabilities: role.clone().map(PatternList), ..Permissions::default() };
        let denies = Denies { capabilities: PatternList(callers.clone()), ..Denies::default() };
        let caller = Caller { agent: &agent, denies: &denies, permissions: &permissions };
        let has = |list: &[String], name: &str| PatternList(list.to_vec()).matches(name);
        let listed = |name: &str| {
            allow.as_ref().is_none_or(|list| has(list, name))
                && role.as_ref().is_none_or(|list| has(list, name))
                && !has(&deny, name)
                && !has(&callers, name)
        };
        let stopped = caller.explain(&tool("t", &asked), &grant).into_iter().find(|check| check.stops() && check.rule != Rule::NotGranted);
        let refused = caller.may_call(&tool("t", &asked)).err();
        prop_assert_eq!(stopped.map(|check| (check.rule, check.name)), refused.map(|denied| (denied.rule, denied.what)));
        // Writing to a folder or a bucket needs reading: a tool that asks for the one asks for the
        // other.
        let needed = |name: &str| asked.contains(&name) || asked.contains(&name.replace(".read", ".write").as_str());
        let all_listed = CAPABILITIES.iter().all(|name| !needed(name) || listed(name));
        match caller.bound(&tool("t", &asked), &grant) {
            Err(denied) => prop_assert!(!all_listed, "{denied}"),
            Ok(bound) => {
                prop_assert!(all_listed);
                let granted: Vec<String> = super::granted(&grant).collect();
                for name in CAPABILITIES {
                    let agreed = needed(name) && listed(name) && granted.iter().any(|granted| granted == name);
                    prop_assert_eq!(agreed, can(&bound).contains(&name), "{}", name);
                }
                let same = bound.clone().within(&bound);
                prop_assert_eq!(same, bound);
            }
        }
    }
}

#[test]
fn what_is_asked_and_not_granted_is_told_apart_from_what_is_granted_and_not_asked() {
    let tools = [
        tool("read", &["files.read"]),
        tool("send", &["files.read", "secrets.use"]),
    ];
    let reported: Vec<String> = super::review(&tools, &everything())
        .into_iter()
        .map(|reviewed| {
            format!(
                "{} {:?} {}",
                reviewed.capability,
                reviewed.status,
                reviewed.tools.join(",")
            )
        })
        .collect();
    assert_eq!(
        reported,
        [
            "env.read Unused ",
            "files.read Granted read,send",
            "files.write Unused ",
            "lists.read Unused ",
            "lists.write Unused ",
            "net.http Unused ",
            "secrets.use Refused send",
        ]
    );
}

#[test]
fn what_two_permit_is_what_both_permit_and_each_counts_once() {
    let list = |names: &[&str]| {
        Some(PatternList(
            names.iter().map(|name| (*name).to_owned()).collect(),
        ))
    };
    let all = Permissions::default();
    let reads = Permissions {
        tools: list(&["read_*", "look"]),
        ..Permissions::default()
    };
    let bare = Permissions {
        tools: list(&["look", "delegate"]),
        capabilities: list(&[]),
        ..Permissions::default()
    };
    let both = reads.both(&bare);
    for (tool, permitted) in [("look", true), ("read_file", false), ("delegate", false)] {
        assert_eq!(both.permit_tool(tool), permitted, "{tool}");
    }
    assert!(reads.permit_capability("files.read") && !both.permit_capability("files.read"));
    assert_eq!(
        (all.both(&reads), reads.both(&all), both.both(&both)),
        (reads.clone(), reads.clone(), both.clone())
    );
    assert!(all.both(&all).are_all());
    // What a path gives is told from what narrows a turn besides.
    for (of_path, besides) in [(&all, &both), (&bare, &reads), (&both, &all)] {
        assert_eq!(&both.beyond(of_path), besides);
    }
    let stored = serde_json::to_value(&both).unwrap();
    assert_eq!(serde_json::from_value::<Permissions>(stored).unwrap(), both);
    // An agent has what its own lists and all of them let through.
    let agent = definition(&json!({}));
    let caller = Caller {
        permissions: &both,
        ..unlimited(&agent)
    };
    assert_eq!(
        caller
            .may_call(&tool("look", &["files.read"]))
            .unwrap_err()
            .rule,
        Rule::Permissions
    );
    assert_eq!(caller.may_call(&tool("look", &[])).unwrap(), Rule::Granted);
}
