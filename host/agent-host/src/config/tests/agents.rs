//! Agents that are well-formed and may still be wrong.

use super::super::Severity;
use super::super::patterns::unmatched;
use super::models::MODELS;
use super::{config, findings};
use domain::tool::ToolDefinition;
use serde_json::json;

#[test]
fn agents_without_a_model_are_told_where_several_have_no_default() {
    let warned = |more: &str| {
        let found = findings(&format!(
            "{more}[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\n[[agents]]\nagentId = \
             \"b\"\ndisplayName = \"B\"\nmodel = \"one\"\n[providers.p]\nkind = \
             \"anthropic\"\n[models.one]\nprovider = \"p\"\nmodel = \"x\"\n[models.two]\n\
             provider = \"p\"\nmodel = \"y\"\n"
        ));
        let of_default = found.into_iter().find(|(_, key, _)| key == "defaultModel");
        of_default.map(|(severity, _, message)| (severity, message))
    };
    let (severity, message) = warned("").unwrap();
    assert_eq!(severity, Severity::Warning);
    assert!(message.contains("cannot ask any (a);"), "{message}");
    assert_eq!(warned("defaultModel = \"two\"\n"), None);
    assert_eq!(warned("[roles]\nuser = \"one\"\n"), None);
}

#[test]
fn an_agent_cannot_be_called_what_would_be_read_as_something_else() {
    let wrong = |id: &str| {
        let found = findings(&format!(
            "[[agents]]\nagentId = \"{id}\"\ndisplayName = \"x\"\n"
        ));
        found.into_iter().find(|(severity, key, _)| {
            (*severity, key.as_str()) == (Severity::Error, "agents[0].agentId")
        })
    };
    for reserved in [
        "agent", "cron", "task", "subuser", "sub", "memory", "search", "system",
    ] {
        let (_, _, message) = wrong(reserved).unwrap_or_else(|| panic!("`{reserved}` is accepted"));
        assert!(
            message.starts_with(&format!(
                "`{reserved}` is reserved: in the path of an agent,"
            )),
            "{message}"
        );
    }
    for uuid in [
        "7b3c2a54-8a75-4c7b-9d7e-0d7f3c1d2e3f",
        "7b3c2a548a754c7b9d7e0d7f3c1d2e3f",
    ] {
        let (_, _, message) = wrong(uuid).unwrap();
        assert!(
            message.starts_with(&format!("`{uuid}` reads as a UUID")),
            "{message}"
        );
    }
    for right in ["memory-2", "tasks", "a", "7b3c2a54"] {
        assert_eq!(wrong(right), None);
    }
}

#[test]
fn what_this_version_does_not_act_upon_is_told() {
    let agent = "[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\n";
    for (line, key) in [
        ("skillAllowlist = [\"notes\"]", "skillAllowlist"),
        ("skillDenylist = []", "skillDenylist"),
        ("apiExposed = true", "apiExposed"),
    ] {
        let found = findings(&format!("{agent}{line}\n"));
        let reported = |(severity, at, message): &&(Severity, String, String)| {
            (*severity, at.as_str()) == (Severity::Warning, format!("agents[0].{key}").as_str())
                && message.contains("has no effect")
        };
        assert_eq!(
            found.iter().filter(reported).count(),
            1,
            "{line}: {found:?}"
        );
    }
    assert!(
        findings(&format!(
            "{agent}toolExposure = \"tools\"\napiExposed = false\n"
        ))
        .iter()
        .all(|(_, key, _)| key == "models")
    );
}

/// Lines of a definition that matter only to an agent with tools, and their keys.
const TOOL_KEYS: [(&str, &str); 11] = [
    ("toolAllowlist = [\"*\"]", "toolAllowlist"),
    ("toolDenylist = []", "toolDenylist"),
    ("toolExposure = \"mixed\"", "toolExposure"),
    (
        "toolExposure = \"skills\"\nskillAllowlist = []",
        "skillAllowlist",
    ),
    (
        "toolExposure = \"skills\"\nskillDenylist = []",
        "skillDenylist",
    ),
    ("capabilityAllowlist = []", "capabilityAllowlist"),
    ("capabilityDenylist = []", "capabilityDenylist"),
    ("agentAllowlist = []", "agentAllowlist"),
    ("agentDenylist = []", "agentDenylist"),
    ("confirm = \"destructive\"", "confirm"),
    ("promptSectionsOff = [\"tools\"]", "promptSectionsOff"),
];

/// The number of warnings that a key of the first agent has no effect.
fn reported_without_effect(text: &str, key: &str) -> usize {
    let at = format!("agents[0].{key}");
    let found = findings(text).into_iter();
    let reported = found.filter(|(severity, key, message)| {
        (*severity, key) == (Severity::Warning, &at) && message.contains("has no effect")
    });
    reported.count()
}

#[test]
fn what_an_external_agent_does_not_act_upon_is_told() {
    let agent = "[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\ntype = \"external\"\n\
                 external = { inputUrl = \"https://peer.example/in\", secret = \"peer\" }\n";
    let others = [
        ("systemPrompt = \"x\"", "systemPrompt"),
        ("generation = { temperature = 1.0 }", "generation"),
        ("settings = { tone = \"x\" }", "settings"),
        ("fixedSettings = [\"tone\"]", "fixedSettings"),
        ("memoryHints = {}", "memoryHints"),
    ];
    for (line, key) in TOOL_KEYS.into_iter().chain(others) {
        assert_eq!(reported_without_effect(agent, key), 0, "{key}");
        let with = format!("{agent}{line}\n");
        assert_eq!(reported_without_effect(&with, key), 1, "{key}");
        // A component of the operator's may act upon all of them.
        let driven = format!("{with}component = \"own\"\n");
        assert_eq!(reported_without_effect(&driven, key), 0, "{key}");
    }
}

#[test]
fn what_an_agent_of_a_program_does_not_act_upon_is_told() {
    let program = "[providers.coder]\nkind = \"pi-cli\"\n[models.m]\nprovider = \"coder\"\n\
                   model = \"x\"\n[providers.coder.program]\npath = \"/usr/bin/pi\"\n\
                   folder = \"/srv/work\"\nhome = \"/srv/homes\"\n";
    let service = "[providers.coder]\nkind = \"openai\"\n[models.m]\nprovider = \"coder\"\n\
                   model = \"x\"\n";
    let agent = "[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\n";
    for (line, key) in TOOL_KEYS {
        for chosen in ["", "model = \"m\"\n", "chat = { provider = \"coder\" }\n"] {
            let text = format!("{agent}{chosen}{line}\n");
            let count = reported_without_effect(&format!("{text}{program}"), key);
            assert_eq!(count, 1, "{chosen}{key}");
            let count = reported_without_effect(&format!("{text}{service}"), key);
            assert_eq!(count, 0, "{chosen}{key}");
        }
    }
}

fn tool(name: &str, capabilities: &[&str]) -> ToolDefinition {
    let tool = json!({ "name": name, "description": "", "arguments": {}, "effect": "read-only", "capabilities": capabilities });
    serde_json::from_value(tool).unwrap()
}

#[test]
fn a_pattern_that_matches_nothing_is_told_with_its_place_and_the_nearest_name() {
    let config = config(
        r#"
        [[agents]]
        agentId = "assistant"
        displayName = "x"
        toolAllowlist = ["delegate", "read_*", "*"]
        capabilityAllowlist = ["files.*"]
        agentAllowlist = ["work*"]
        [[agents]]
        agentId = "worker"
        displayName = "x"
        toolAllowlist = ["raed_file", "read_file"]
        toolDenylist = ["write_file", "system_*"]
        capabilityAllowlist = ["file.*"]
        capabilityDenylist = ["net"]
        agentAllowlist = []
        agentDenylist = ["asistant", "*"]
        skillAllowlist = ["nothing"]
    "#,
    );
    let tools = [
        tool("read_file", &["files.read"]),
        tool("remove_file", &["files.write"]),
    ];
    let found: Vec<_> = unmatched(&config.agents, &tools)
        .into_iter()
        .map(|found| (found.key, found.message))
        .collect();
    let reported = |key: &str, message: &str| (format!("agents[1].{key}"), message.to_owned());
    assert_eq!(
        found,
        [
            reported(
                "toolAllowlist[0]",
                "`raed_file` matches no tool; the nearest is `read_file`"
            ),
            reported(
                "toolDenylist[0]",
                "`write_file` matches no tool; the nearest is `read_file`"
            ),
            reported(
                "toolDenylist[1]",
                "`system_*` matches no tool; the nearest is `delegate`"
            ),
            reported(
                "capabilityAllowlist[0]",
                "`file.*` matches no capability of a tool; the nearest is `files.read`"
            ),
            reported(
                "capabilityDenylist[0]",
                "`net` matches no capability of a tool; the nearest is `files.read`"
            ),
            reported(
                "agentDenylist[0]",
                "`asistant` matches no agent; the nearest is `assistant`"
            ),
        ]
    );
    let alone = unmatched(&config.agents[..1], &[]);
    let found: Vec<_> = alone
        .into_iter()
        .map(|found| format!("{}: {}", found.key, found.message))
        .collect();
    assert_eq!(
        found,
        [
            "agents[0].toolAllowlist[0]: `delegate` matches no tool; the nearest is `panels_list`",
            "agents[0].toolAllowlist[1]: `read_*` matches no tool; the nearest is `panels_list`",
            "agents[0].capabilityAllowlist[0]: `files.*` matches no capability of a tool; there is \
             none",
            "agents[0].agentAllowlist[0]: `work*` matches no agent; the nearest is `assistant`",
        ]
    );
}

#[test]
fn an_agent_that_has_destructive_tools_confirmed_where_there_are_none_is_told() {
    let config = config(
        r#"
        [[agents]]
        agentId = "careful"
        displayName = "x"
        confirm = "destructive"
        [[agents]]
        agentId = "trusting"
        displayName = "x"
    "#,
    );
    let mut tools = [tool("read_file", &[]), tool("remove_file", &[])];
    let found: Vec<_> = unmatched(&config.agents, &tools)
        .into_iter()
        .map(|found| format!("{}: {}", found.key, found.message))
        .collect();
    assert_eq!(
        found,
        [
            "agents[0].confirm: it asks about nothing: no tool of a component declares itself \
             destructive; list the tools to be confirmed, such as [\"delete_*\"]"
        ]
    );
    tools[1].destructive = true;
    assert_eq!(unmatched(&config.agents, &tools), []);
}

#[test]
fn entries_that_can_never_match_are_refused_and_those_that_match_nothing_are_told() {
    let text = r#"
        [[agents]]
        agentId = "reader"
        displayName = "x"
        toolDenylist = ["", " write_*", "read_file"]
        [components.assistant]
        models = ["smal", "*"]
        agents = ["raeder", "read* "]
        [components.worker]
        agents = ["raeder", "read*"]
        [agentTools]
        disabled = ["delegate "]
    "#;
    let found = findings(&format!("{MODELS}{text}"));
    let mut found: Vec<_> = found
        .iter()
        .filter(|(_, key, _)| key.starts_with("agent") || key.starts_with("components"))
        .collect();
    found.sort_by_key(|(_, key, _)| key);
    let error = Severity::Error;
    let warning = Severity::Warning;
    let expected = [
        (
            error,
            "agentTools.disabled[0]",
            "`delegate ` has blanks around it, which no name has; write `delegate`",
        ),
        (
            error,
            "agents[0].toolDenylist[0]",
            "it is empty and matches nothing; take it out",
        ),
        (
            error,
            "agents[0].toolDenylist[1]",
            "` write_*` has blanks around it, which no name has; write `write_*`",
        ),
        (
            warning,
            "components.assistant.agents[0]",
            "`raeder` matches no agent; the nearest is `reader`",
        ),
        (
            error,
            "components.assistant.agents[1]",
            "`read* ` has blanks around it, which no name has; write `read*`",
        ),
        (
            warning,
            "components.assistant.models[0]",
            "`smal` matches no model of `models`; the nearest is `small`",
        ),
        (
            warning,
            "components.worker.agents[0]",
            "`raeder` matches no agent; the nearest is `reader`",
        ),
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((severity, key, message), expected) in found.into_iter().zip(expected) {
        assert_eq!((*severity, key.as_str(), message.as_str()), expected);
    }
}

#[test]
fn a_memory_names_agents_that_there_are() {
    let text = r#"
        [[agents]]
        agentId = "reader"
        displayName = "x"
        memory = { search = "searcher" }
    "#;
    let found = findings(&format!("{MODELS}{text}"));
    let found: Vec<(&str, &str)> = found
        .iter()
        .filter(|(severity, key, _)| *severity == Severity::Error && key.starts_with("agents"))
        .map(|(_, key, message)| (key.as_str(), message.as_str()))
        .collect();
    let missing = |agent: &str| {
        format!(
            "there is no agent `{agent}` in `agents`; add one, such as one whose `component` is \
             `memory`, or name another"
        )
    };
    assert_eq!(
        found,
        [
            ("agents[0].memory.agent", missing("memory-agent").as_str()),
            ("agents[0].memory.search", missing("searcher").as_str()),
        ]
    );
}

#[test]
fn a_list_of_skills_that_matches_nothing_is_told_with_its_place() {
    let agent = "[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\ntoolExposure = \"mixed\"\n";
    let found = findings(&format!("{agent}skillAllowlist = [\"lists\", \"lisst\"]\n"));
    let reported = |(severity, at, message): &&(Severity, String, String)| {
        (*severity, at.as_str()) == (Severity::Warning, "agents[0].skillAllowlist[1]")
            && message.contains("matches no skill; the nearest is `lists`")
    };
    assert_eq!(found.iter().filter(reported).count(), 1, "{found:?}");
    let found = findings("[skills.nowhere]\npath = \"is/not/there\"\n");
    assert!(
        found
            .iter()
            .any(|(severity, at, _)| (*severity, at.as_str())
                == (Severity::Error, "skills.nowhere.path")),
        "{found:?}"
    );
}

#[test]
fn a_turn_that_ends_before_its_models_had_their_time_is_warned_of() {
    let with = |timeouts: &str, agent: &str| {
        let text = format!(
            "[timeouts]\n{timeouts}\n[[agents]]\nagentId = \"a\"\ndisplayName = \"x\"\n{agent}\n"
        );
        let reported = findings(&text).into_iter();
        let warned = reported.filter(|(severity, ..)| *severity == Severity::Warning);
        let keys = warned.map(|(_, key, _)| key);
        keys.filter(|key| key.ends_with("messageTimeout") || key.ends_with("activeMsMax"))
            .collect::<Vec<_>>()
    };
    let long = "firstTokenMs = 590000";
    assert!(with(long, "").is_empty(), "without a number it gives way");
    assert_eq!(
        with(long, "messageTimeout = 120"),
        ["agents[0].messageTimeout"]
    );
    assert!(with(long, "messageTimeout = 600").is_empty());
    assert_eq!(
        with("idleMs = 90000", "messageTimeout = 60"),
        ["agents[0].messageTimeout"]
    );
    let turn = "limits = { activeMsMax = 60000 }";
    assert_eq!(
        with("wholeMs = 300000", turn),
        ["agents[0].limits.activeMsMax"]
    );
}
