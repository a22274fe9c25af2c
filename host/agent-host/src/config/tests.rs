//! The configuration as operators write it, right and wrong.

mod agents;
mod components;
mod models;
mod strict;

use super::document::Config;
use super::{LimitsConfig, Loaded, Severity, check, load, schema};
use domain::grant::{Access, PatternList};
use domain::queue::{QueueOverride, QueueSettings};
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
