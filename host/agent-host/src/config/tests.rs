//! The configuration as operators write it, right and wrong.

mod models;
mod strict;

use super::document::Config;
use super::patterns::unmatched;
use super::{LimitsConfig, Loaded, Severity, check, load, schema};
use domain::grant::{Access, PatternList};
use domain::queue::{QueueOverride, QueueSettings};
use domain::tool::ToolDefinition;
use models::MODELS;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The configuration that the design of configurable agents shows, word for word.
const DESIGN: &str = include_str!("design.json");

fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn load_with(name: &str, text: &str, variables: &[(&str, &str)]) -> Result<Loaded, String> {
    let (_folder, path) = file(name, text);
    let variables = variables
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let folder = format!("{}/", path.parent().unwrap().display());
    load(&path, variables).map_err(|error| error.to_string().replace(&folder, ""))
}

fn config(text: &str) -> Config {
    load_with("c.toml", text, &[]).unwrap().config
}

#[test]
fn the_designs_example_loads_as_it_is_written() {
    let config = load_with("design.json", DESIGN, &[]).unwrap().config;
    let ids: Vec<&str> = config
        .agents
        .iter()
        .map(|agent| agent.agent_id.0.as_str())
        .collect();
    assert_eq!(ids, ["reading-list", "todo", "journal", "general"]);
    assert!(
        config
            .agents
            .iter()
            .all(|agent| agent.component == "assistant")
    );
    assert_eq!(
        config.agents[0].tool_allowlist,
        Some(PatternList(vec!["reading_list_*".to_owned()]))
    );
    assert_eq!(config.agents[3].tool_allowlist, None);
}

#[test]
fn an_unknown_key_is_told_with_its_place_and_the_nearest_known_key() {
    for (name, text, expected) in [
        (
            "c.toml",
            "[server]\nlistn = \"x\"\n",
            "c.toml:2:1: server.listn: unknown key `listn` in `server`; did you mean `listen`?",
        ),
        (
            "c.toml",
            "[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\ntool_allowlist = []\n",
            "c.toml:4:1: agents[0].tool_allowlist: unknown key `tool_allowlist` in `agents[0]`; \
             did you mean `toolAllowlist`?",
        ),
        (
            "c.toml",
            "[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\nmaxRetries = 3\n",
            "c.toml:4:1: agents[0].maxRetries: unknown key `maxRetries` in `agents[0]`; \
             `retry.attemptsMax` beside `agents` holds for all models",
        ),
        (
            "c.toml",
            "[[agents]]\nagentId = \"a\"\nname = \"A\"\n",
            "c.toml:3:1: agents[0].name: unknown key `name` in `agents[0]`; `displayName` is its \
             name for people, and `agentId` its id",
        ),
        (
            "c.toml",
            "agent = []\n",
            "c.toml:1:1: agent: unknown key `agent`; did you mean `agents`?",
        ),
        (
            "c.json",
            "{\n  \"components\": {\"files\": {\"alow\": []}}\n}",
            "c.json:2:33: components.files.alow: unknown key `alow` in `components.files`; known \
             are `path`, `sha256`, `directories`, `network`, `environment`, `keyValue`, `secrets`, \
             `models`, `agents`, `confirm`, `limits`",
        ),
        (
            "c.json",
            r#"{"components": {"files": {"directories": [{"path": ".", "at": "/w", "access": "readwrite"}]}}}"#,
            "c.json:1:89: components.files.directories[0].access: `readwrite` is not one of its \
             values; did you mean `read-write`?",
        ),
        (
            "c.toml",
            "[[agents]]\nagentId = \"a\"\n",
            "c.toml:1:1: agents[0]: the key `displayName` is missing",
        ),
        (
            "c.toml",
            "[server.limits]\nidleMsMax = -1\n",
            "c.toml:2:13: server.limits.idleMsMax: `-1` is not a whole number from 0 on",
        ),
        (
            "c.toml",
            "[server]\nlog = \"inof\"\n",
            "c.toml:2:7: server.log: `inof` is no level of the log; write `off`, `error`, `warn`, \
             `info`, `debug` or `trace`, or a part of the program with its own, such as \
             `warn,broker=debug`",
        ),
        (
            "c.toml",
            "[server\n",
            "c.toml:1:8: unclosed table, expected `]`",
        ),
        (
            "c.json",
            "{\"agents\": [}",
            "c.json:1:13: agents[0]: expected value",
        ),
        (
            "c.yaml",
            "agents: []",
            "`c.yaml` is neither .toml nor .json: the extension says how it is written",
        ),
        ("c.toml", "", "`c.toml` is empty"),
        ("c.json", " \n", "`c.json` is empty"),
    ] {
        assert_eq!(load_with(name, text, &[]).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn a_list_is_no_configuration_whether_it_has_entries_or_none() {
    for (text, place) in [("[]", "1:1"), ("\n []", "2:2"), ("[{}]", "1:1")] {
        assert_eq!(
            load_with("c.json", text, &[]).unwrap_err(),
            format!("c.json:{place}: a list is not a table")
        );
    }
}

#[test]
fn the_environment_overlays_single_keys_and_is_as_strict() {
    let variables = [
        ("AGENT_HOST__SERVER__LISTEN", "127.0.0.1:9"),
        ("AGENT_HOST__SERVER__DATA_DIR", "elsewhere"),
        ("AGENT_HOST__SERVER__LIMITS__IDLE_MS_MAX", "5"),
        ("AGENT_HOST_CONFIG", "not a key"),
    ];
    let loaded = load_with(
        "c.toml",
        "[server]\nlisten = \"127.0.0.1:1\"\nhosts = [\"a\"]\n",
        &variables,
    )
    .unwrap();
    let server = &loaded.config.server;
    assert_eq!(
        (
            server.listen.port(),
            server.limits.idle_ms_max,
            server.hosts.len()
        ),
        (9, 5, 1)
    );
    assert!(loaded.data_dir().ends_with("elsewhere"));
    assert_eq!(loaded.overlaid.len(), 3);

    let twice = r#"{"hopsMax":3,"hopsMax":4}"#;
    let wrong = load_with("c.toml", "# nothing\n", &[("AGENT_HOST__LIMITS", twice)]).unwrap_err();
    assert_eq!(
        wrong,
        "environment variable AGENT_HOST__LIMITS: duplicate key `hopsMax`"
    );
    let wrong = load_with(
        "c.toml",
        "# nothing\n",
        &[("AGENT_HOST__SERVER__LISTN", "x")],
    )
    .unwrap_err();
    assert_eq!(
        wrong,
        "environment variable AGENT_HOST__SERVER__LISTN: server.listn: unknown key `listn` in \
         `server`; did you mean `listen`?"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_file() {
    for (name, text) in [
        ("c.toml", "defaultModel = 'm'\n"),
        ("c.json", "{\"defaultModel\":\"m\"}"),
    ] {
        let loaded = load_with(name, &format!("\u{feff}{text}"), &[]).unwrap();
        assert_eq!(loaded.config.default_model.as_deref(), Some("m"), "{name}");
    }
}

#[test]
fn paths_start_from_the_files_folder() {
    let (folder, path) = file(
        "c.toml",
        "[server]\ndataDir = \"data\"\n[components.files]\ndirectories = [{ path = \"w\", at = \
         \"/w\", access = \"read-only\" }]\n",
    );
    let loaded = load(&path, []).unwrap();
    assert_eq!(loaded.data_dir(), folder.path().join("data"));
    assert_eq!(loaded.token_file(), folder.path().join("data/token"));
    let elsewhere = Loaded {
        data: Some("/elsewhere".into()),
        ..loaded.clone()
    };
    assert_eq!(elsewhere.data_dir(), Path::new("/elsewhere"));
    assert_eq!(elsewhere.token_file(), Path::new("/elsewhere/token"));
    let grant = loaded.config.components["files"].grant("files", loaded.folder());
    assert_eq!(grant.directories[0].path, folder.path().join("w"));
    assert_eq!(grant.directories[0].access, Access::ReadOnly);
}

#[test]
fn what_is_well_formed_and_wrong_is_found() {
    let text = r#"
        [[agents]]
        agentId = "A b"
        displayName = "x"
        component = "weather"
        model = "big"
        [[agents]]
        agentId = "a"
        displayName = "x"
        type = "external"
        [[agents]]
        agentId = "a"
        displayName = "x"
        [components.mine]
        directories = [{ path = "nowhere", at = "w", access = "read-only" }]
        [server]
        listen = "0.0.0.0:1"
    "#;
    let found: Vec<(Severity, String)> = findings(text)
        .into_iter()
        .map(|(severity, key, _)| (severity, key))
        .collect();
    let error = |key: &str| (Severity::Error, key.to_owned());
    let warning = |key: &str| (Severity::Warning, key.to_owned());
    assert_eq!(
        found,
        [
            error("agents[0].agentId"),
            error("agents[0].component"),
            error("agents[0].model"),
            error("agents[1].external"),
            error("agents[2].agentId"),
            error("components.mine.path"),
            error("components.mine.directories[0].path"),
            error("components.mine.directories[0].at"),
            warning("models"),
            warning("server.listen"),
        ]
    );
}

/// Returns the findings in a configuration: severity, key and message.
pub(super) fn findings(text: &str) -> Vec<(Severity, String, String)> {
    let loaded = Loaded {
        config: config(text),
        file: "/none/c.toml".into(),
        written: "".into(),
        data: None,
        trusts_address: false,
        overlaid: Vec::new(),
    };
    check(&loaded)
        .into_iter()
        .map(|finding| (finding.severity, finding.key, finding.message))
        .collect()
}

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

/// Returns the findings about one granted folder, beside data, a key and a link to each of them.
fn granting(path: &str, at: &str, access: &str) -> Vec<String> {
    let (folder, file) = file(
        "c.toml",
        &format!(
            "[server]\ndataDir = \"state/../state/data\"\ntokenFile = \"secrets/token\"\n\
             [providers.p]\nkind = \"anthropic\"\napiKeyFile = \"keys/linked\"\n\
             [components.files]\npath = \"c.toml\"\ndirectories = [{{ path = \"{path}\", at = \
             \"{at}\", access = \"{access}\" }}]\n"
        ),
    );
    for made in ["state/data/cache", "secrets", "keys", "real-keys", "work"] {
        std::fs::create_dir_all(folder.path().join(made)).unwrap();
    }
    for (link, to) in [
        ("to-data", "state/data"),
        ("work/up", ".."),
        ("keys/linked", "../real-keys/key"),
    ] {
        std::os::unix::fs::symlink(to, folder.path().join(link)).unwrap();
    }
    std::fs::write(folder.path().join("real-keys/key"), "k").unwrap();
    let found = check(&load(&file, []).unwrap());
    found
        .into_iter()
        .filter(|finding| finding.key.starts_with("components"))
        .map(|finding| finding.message)
        .collect()
}

#[test]
fn a_granted_folder_holds_nothing_of_the_hosts_own() {
    for (path, access, holds) in [
        ("state/data", "read-only", "data of the host"),
        ("state", "read-only", "data of the host"),
        ("state/data/cache", "read-write", "data of the host"),
        ("work/../state/data", "read-only", "data of the host"),
        ("to-data", "read-only", "data of the host"),
        ("work/up", "read-only", "data of the host"),
        ("secrets", "read-only", "the token of the API"),
        ("keys", "read-write", "the key of the provider `p`"),
        ("real-keys", "read-only", "the key of the provider `p`"),
        ("/", "read-only", "data of the host"),
    ] {
        let found = granting(path, "/w", access);
        let [message] = found.as_slice() else {
            panic!("{path}: {found:?}")
        };
        assert!(
            message.contains(&format!("` holds {holds}")),
            "{path}: {message}"
        );
    }
    assert_eq!(granting("work", "/w", "read-write"), [""; 0]);
}

#[test]
fn a_folder_of_the_configuration_or_of_components_may_be_granted_for_reading_alone() {
    for (granted, says) in [
        (".", "which no component may have"),
        ("plugins", "holds the file of the component `mine`"),
    ] {
        let folder = |access: &str| {
            format!(
                "directories = [{{ path = \"{granted}\", at = \"/w\", access = \"{access}\" }}]"
            )
        };
        let (dir, file) = file(
            "c.toml",
            &format!(
                "[server]\ndataDir = \"/nowhere/data\"\n\
                 [components.mine]\npath = \"plugins/mine.wasm\"\n{}\n\
                 [components.other]\npath = \"c.toml\"\n{}\n",
                folder("read-only"),
                folder("read-write")
            ),
        );
        std::fs::create_dir(dir.path().join("plugins")).unwrap();
        std::fs::write(dir.path().join("plugins/mine.wasm"), "").unwrap();
        let found = check(&load(&file, []).unwrap());
        let found: Vec<_> = found
            .iter()
            .filter(|it| it.key.starts_with("comp"))
            .collect();
        let [finding] = found.as_slice() else {
            panic!("{found:?}")
        };
        assert_eq!(finding.key, "components.other.directories[0].path");
        assert!(finding.message.contains(says), "{}", finding.message);
    }
}

#[test]
fn a_place_of_a_folder_can_be_written_in_one_way_only() {
    for wrong in ["w", "", "/w/", "//w", "/w//x", "/./w", "/w/..", "/..", "//"] {
        let found = granting("work", wrong, "read-only");
        assert!(
            found
                .iter()
                .any(|message| message.starts_with(&format!("`{wrong}` must be a path such as"))),
            "{wrong}: {found:?}"
        );
    }
    for right in ["/", "/w", "/w/x", "/.w/..x"] {
        assert_eq!(granting("work", right, "read-only"), [""; 0], "{right}");
    }
}

/// Loads a configuration of the examples, which has no error and whose models can be set up.
fn example(file: &str) -> Loaded {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let loaded = load(&examples.join(file), []).unwrap();
    let found = check(&loaded).into_iter();
    let errors: Vec<_> = found.filter(|it| it.severity == Severity::Error).collect();
    assert_eq!(errors, []);
    llm::Gateway::new(loaded.config.gateway(), loaded.folder(), &|_| None).unwrap();
    loaded
}

#[test]
fn the_demos_configuration_is_in_order() {
    let loaded = example("demo/agent-host.toml");
    assert_eq!(loaded.config.scripted().count(), 1);
    assert!(loaded.config.components["files"].confirm.destructive);
}

#[test]
fn the_reading_lists_example_has_the_designs_agents_and_is_in_order() {
    let agents =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["agents"].take();
    let mut designed = agents(DESIGN);
    // The design says nothing of components.
    designed[0]["component"] = json!("reading-list");
    let loaded = example("reading-list/agent-host.json");
    assert_eq!(agents(&loaded.written), designed);
}

#[test]
fn the_schema_knows_every_key_and_no_other() {
    let schema = schema();
    assert_eq!(schema["additionalProperties"], json!(false));
    let mut keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "agentTools",
            "agents",
            "breaker",
            "components",
            "connectors",
            "defaultModel",
            "defaultSystemPrompt",
            "delegation",
            "hooks",
            "limits",
            "models",
            "pathRules",
            "personas",
            "providers",
            "queue",
            "requirePins",
            "retry",
            "roles",
            "secrets",
            "server",
            "skills",
            "timeouts",
            "triggers"
        ]
    );
}

#[test]
fn every_configured_limit_reaches_the_runtime_or_the_broker() {
    assert_eq!(config("# nothing\n").limits, LimitsConfig::default());
    let defaults = json!(LimitsConfig::default());
    let keys: Vec<&String> = defaults.as_object().unwrap().keys().collect();
    // A value of its own for each key, none of them its default.
    let values = [
        11, 12, 13, 67_108_865, 65_537, 14, 15, 16, 1_001, 3, 4, 17, 18, 33, 19, 21, 22, 1_048_577,
        1_048_578, 20_001, 70_001,
    ];
    assert_eq!(keys.len(), values.len());
    let text: String = keys
        .iter()
        .zip(values)
        .map(|(key, value)| format!("{key} = {value}\n"))
        .collect();
    let limits = config(&format!("[limits]\n{text}")).limits;
    let runtime = limits.runtime("cache".into());
    let broker = limits.broker();
    assert_eq!(runtime.cache_dir, Path::new("cache"));
    let reached = [
        u64::from(runtime.instances_max),
        runtime.wait_max as u64,
        runtime.wait_ms_max,
        runtime.process_memory_bytes_max,
        runtime.component_bytes_max as u64,
        broker.model_calls_max as u64,
        broker.reserved_tokens,
        broker.dispatch_ms,
        broker.approval_ms,
        broker.dispatch.call_depth_max.into(),
        broker.dispatch.spawn_depth_max.into(),
        broker.dispatch.children_max.into(),
        broker.dispatch.tree_dispatches_max.into(),
        broker.dispatch.delegations_queued_max.into(),
        broker.dispatch.hops_max.into(),
        broker.dispatch.runs_per_message_max.into(),
        broker.users.sessions_per_minute_max,
        broker.users.stored_bytes_max,
        broker.users.key_stored_bytes_max,
        broker.patience.idle_signal_ms,
        broker.patience.poison_pill_ms,
    ];
    assert_eq!(reached, values);
}

#[test]
fn a_bucket_has_a_plain_name_of_its_own_and_a_quota_in_its_range() {
    let component = |buckets: &str| format!("[components.files]\n{buckets}");
    let bucket =
        |keys: &str| format!("[[components.files.keyValue]]\naccess = \"read-write\"\n{keys}\n");
    let name = "a bucket's name is 1 to 64 of a-z, 0-9, - and _";
    for (buckets, expected) in [
        (
            bucket("bucket = \"lists\"") + &bucket("bucket = \"reading_list-2\"\nscope = \"user\""),
            vec![],
        ),
        (
            bucket("bucket = \"Lists\""),
            vec![format!("keyValue[0].bucket: `Lists`: {name}")],
        ),
        (
            bucket("bucket = \"\""),
            vec![format!("keyValue[0].bucket: ``: {name}")],
        ),
        (
            bucket("bucket = \"files\""),
            vec![
                "keyValue[0].bucket: `files`: a bucket cannot be called `files`, `net`, `env`, \
                 `secrets`, `tools`, `models` or `agents`: its \
                 capabilities would be those of something else"
                    .to_owned(),
            ],
        ),
        (
            bucket("bucket = \"lists\"") + &bucket("bucket = \"lists\"\nscope = \"session\""),
            vec![
                "keyValue[1].bucket: `lists` is granted twice: a component opens it by this name, \
                  with one scope and one access"
                    .to_owned(),
            ],
        ),
        (
            bucket("bucket = \"lists\"\nbytesMax = 0\nkeysMax = 2000000"),
            vec![
                "keyValue[0].bytesMax: 0 is out of its range: it must be from 1 to \
                 67108864"
                    .to_owned(),
                "keyValue[0].keysMax: 2000000 is out of its range: it must be from 1 to \
                 1000000"
                    .to_owned(),
            ],
        ),
    ] {
        let loaded = load_with("c.toml", &component(&buckets), &[]).unwrap();
        let found: Vec<String> = check(&loaded)
            .into_iter()
            .filter_map(|finding| {
                Some(format!(
                    "{}: {}",
                    finding.key.strip_prefix("components.files.")?,
                    finding.message
                ))
            })
            .collect();
        assert_eq!(found, expected, "{buckets}");
    }
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
    "#;
    let found = findings(&format!("{MODELS}{text}"));
    let found: Vec<_> = found
        .iter()
        .filter(|(_, key, _)| key.starts_with("agents") || key.starts_with("components"))
        .collect();
    let error = Severity::Error;
    let warning = Severity::Warning;
    let expected = [
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
            "components.assistant.models[0]",
            "`smal` matches no model of `models`; the nearest is `small`",
        ),
        (
            error,
            "components.assistant.agents[1]",
            "`read* ` has blanks around it, which no name has; write `read*`",
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
fn a_call_is_not_to_compute_for_longer_than_it_lasts() {
    let wrong = |limits: &str| {
        let found = findings(&format!("[components.web]\nlimits = {{ {limits} }}\n"));
        found
            .into_iter()
            .find(|(_, key, _)| key == "components.web.limits.cpuMsMax")
            .map(|(.., message)| message)
    };
    let message = wrong("cpuMsMax = 5000, wallMsMax = 2000").unwrap();
    assert!(
        message.contains("make it at most 2000, or `wallMsMax` at least 5000"),
        "{message}"
    );
    assert_eq!(wrong("wallMsMax = 200"), None);
    assert_eq!(wrong("cpuMsMax = 5000, wallMsMax = 5000"), None);
}

#[test]
fn a_component_is_pinned_by_the_digest_of_its_file() {
    let pinned = |digest: &str| {
        load_with(
            "c.toml",
            &format!("[components.web]\nsha256 = \"{digest}\"\n"),
            &[],
        )
    };
    let digest = domain::digest::Digest::of(b"code");
    assert_eq!(
        pinned(&digest.hex()).unwrap().config.components["web"].sha256,
        Some(digest)
    );
    for wrong in ["", "abc", &digest.reference(), &digest.hex()[1..]] {
        let reported = pinned(wrong).unwrap_err();
        assert!(
            reported.contains("components.web.sha256")
                && reported.contains("64 hexadecimal digits"),
            "{reported}"
        );
    }
}

#[test]
fn the_configured_queue_reaches_the_broker_in_every_spelling() {
    let none = config("# nothing\n").broker().queue;
    assert_eq!(
        QueueSettings::resolve([QueueOverride::default(), QueueOverride::default(), none]),
        QueueSettings::default()
    );
    for text in [
        "[queue]\nmode = \"Coalesce\"\ndebounce = \"2s\"\ncap = 25\ndrop = \"oldest\"",
        "[queue]\nmode = \"collect\"\ndebounce = 2000\ncap = \"25\"\ndrop = \"old\"",
    ] {
        let queue = config(text).broker().queue;
        let reported = serde_json::to_value(queue).unwrap();
        assert_eq!(
            reported,
            json!({ "mode": "collect", "debounce_ms": 2_000, "cap": 25, "drop": "old" }),
            "{text}"
        );
    }
    for (text, expected) in [
        ("mode = \"wait\"", "`wait` is no mode of the queue"),
        ("debounce = \"2 days\"", "`2 days` is no debounce"),
        ("cap = 0", "`0` is no cap; write a number from 1 to 1000"),
        ("drop = \"all\"", "`all` is no drop policy"),
        ("steer = true", "unknown key `steer` in `queue`"),
    ] {
        let refused = load_with("c.toml", &format!("[queue]\n{text}\n"), &[]).unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
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
