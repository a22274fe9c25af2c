//! Configs: which model is meant, and every mistake named by its key.

use crate::setting::{CANARY, config, gateway};
use agent_host_llm::{Config, ConfigError, Gateway};
use domain::price::Price;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn refused(config: Value) -> ConfigError {
    refused_in(config, Path::new("."))
}

fn refused_in(config: Value, base: &Path) -> ConfigError {
    let env = |name: &str| match name {
        "MODEL_KEY" => Some(CANARY.to_owned()),
        "EMPTY" => Some(" \n".to_owned()),
        "TWO_LINES" => Some(format!("{CANARY}\nx")),
        _ => None,
    };
    let error = Gateway::new(serde_json::from_value(config).unwrap(), base, &env).unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("CANARY"),
        "{error:?}"
    );
    error
}

fn base() -> Value {
    config(
        "openai-compatible",
        &["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"],
    )
}

fn with(pointer: &str, value: Value) -> Value {
    let mut config = base();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    config.pointer_mut(parent).unwrap()[name] = value;
    config
}

#[test]
fn a_model_is_found_by_alias_by_name_and_by_provider_and_name() {
    let gateway = gateway(with("/models/other/contextWindow", json!(5_000)));
    let resolved = gateway.resolve(None).unwrap();
    assert_eq!(
        (
            resolved.alias.as_str(),
            resolved.provider.as_str(),
            resolved.model.as_str()
        ),
        ("m", "p", "m-1")
    );
    assert_eq!(
        (resolved.context_window, resolved.fallbacks),
        (128_000, vec!["other".to_owned()])
    );
    for name in ["other", "other-1", "q/other-1"] {
        assert_eq!(
            gateway.resolve(Some(name)).unwrap().context_window,
            5_000,
            "{name}"
        );
    }
    let unknown = gateway.resolve(Some("othr")).unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no model `othr`; did you mean `other`?; there are: m, other"
    );
    assert!(
        gateway.resolve(Some("p/gpt-expensive")).is_err(),
        "only what is configured can be asked"
    );
}

#[test]
fn a_model_says_what_its_provider_is_asked_for_where_nothing_limits_a_reply() {
    for (kind, expected) in [
        ("anthropic", Some(8_192)),
        ("openai", None),
        ("openai-compatible", None),
    ] {
        let mut config = config(kind, &["http://127.0.0.1:1/v1"]);
        config["models"]["m"]["maxTokens"] = json!(100);
        let resolved = gateway(config).resolve(None).unwrap();
        assert_eq!(
            (resolved.max_tokens, resolved.default_output_tokens),
            (Some(100), expected),
            "{kind}"
        );
    }
}

/// A model costs at most as much as it or one that is asked instead; the cost is unknown when one
/// has no price.
#[test]
fn a_model_costs_at_most_what_it_or_one_asked_instead_costs() {
    let price =
        |input: f64, output: f64| json!({ "inputPerMillion": input, "outputPerMillion": output });
    let mut config = with("/models/m/price", price(1.0, 9.0));
    assert_eq!(
        gateway(config.clone()).resolve(Some("m")).unwrap().price,
        None,
        "its fallback has none"
    );
    config["models"]["other"]["price"] = price(2.0, 3.0);
    let gateway = gateway(config);
    assert_eq!(
        gateway.resolve(Some("m")).unwrap().price,
        Price::per_million(2.0, None, 9.0)
    );
    assert_eq!(
        gateway.resolve(Some("other")).unwrap().price,
        Price::per_million(2.0, None, 3.0)
    );
}

#[test]
fn without_a_default_the_only_model_is_meant() {
    let mut config = config("openai-compatible", &["http://127.0.0.1:1/v1"]);
    config.as_object_mut().unwrap().remove("defaultModel");
    assert_eq!(gateway(config).resolve(None).unwrap().alias, "m");
    let mut two = base();
    two.as_object_mut().unwrap().remove("defaultModel");
    assert!(
        gateway(two)
            .resolve(None)
            .unwrap_err()
            .to_string()
            .contains("`defaultModel` is not set")
    );
    assert!(
        gateway(json!({}))
            .resolve(None)
            .unwrap_err()
            .to_string()
            .contains("no models are configured")
    );
}

#[test]
fn every_mistake_is_named_by_its_key() {
    for (pointer, below, value, text) in [
        ("/defaultModel", "", json!("mm"), "did you mean `m`"),
        (
            "/models/m/provider",
            "",
            json!("x"),
            "there is no provider `x`",
        ),
        (
            "/models/m/fallbacks",
            "",
            json!(["othr"]),
            "did you mean `other`",
        ),
        (
            "/models/m/parameters",
            ".stream",
            json!({"stream": false}),
            "the host sets this",
        ),
        (
            "/providers/p/apiKey",
            "",
            json!(CANARY),
            "a key does not belong in the config",
        ),
        (
            "/providers/p/apiKeyEnv",
            "",
            json!(CANARY),
            "not the name of an environment variable",
        ),
        (
            "/providers/p/apiKeyEnv",
            "",
            json!("NOT_SET"),
            "`NOT_SET` is not set",
        ),
        ("/providers/p/apiKeyEnv", "", json!("EMPTY"), "no key in it"),
        (
            "/providers/p/apiKeyEnv",
            "",
            json!("TWO_LINES"),
            "not a key",
        ),
        ("/providers/p/apiKeyFile", "", json!("key"), "not both"),
        (
            "/providers/p/baseUrl",
            "",
            json!("ftp://x"),
            "http:// or https://",
        ),
        (
            "/providers/p/baseUrl",
            "",
            json!("https://u:p@x/v1"),
            "does not belong",
        ),
        (
            "/providers/p/baseUrl",
            "",
            json!("https://x/v1?key=1"),
            "end with its path",
        ),
        (
            "/providers/p/baseUrl",
            "",
            Value::Null,
            "where its server is",
        ),
        ("/providers/p/script", "", json!("x"), "no meaning"),
        ("/providers/p/concurrentMax", "", json!(0), "from 1 to 1000"),
        (
            "/models/m/price",
            "",
            json!({"inputPerMillion": -1, "outputPerMillion": 2}),
            "from 0 to 1000000",
        ),
        (
            "/models/m/price",
            "",
            json!({"inputPerMillion": 1, "outputPerMillion": 1e9}),
            "from 0 to 1000000",
        ),
        ("/retry/attemptsMax", "", json!(0), "from 1 to 10"),
        ("/timeouts/idleMs", "", json!(0), "from 1 to"),
        (
            "/providers/p",
            ".apiKeyEnv",
            json!({"kind": "openai"}),
            "`OPENAI_API_KEY` is not set",
        ),
        (
            "/providers/p",
            ".script",
            json!({"kind": "scripted"}),
            "rule file",
        ),
        (
            "/providers/p",
            ".script",
            json!({"kind": "scripted", "script": "none.toml"}),
            "cannot read",
        ),
    ] {
        let key = format!("{}{below}", pointer[1..].replace('/', "."));
        let error = refused(with(pointer, value));
        assert_eq!(error.key, key);
        assert!(
            error.to_string().starts_with(&format!("`{key}`: "))
                && error.to_string().contains(text),
            "{error}"
        );
    }
}

#[test]
fn a_number_is_refused_outside_of_the_range_that_the_schema_tells() {
    let schema = serde_json::to_value(schemars::schema_for!(Config)).unwrap();
    for (section, kind) in [
        ("retry", "RetryLimits"),
        ("timeouts", "Timeouts"),
        ("breaker", "BreakerLimits"),
    ] {
        for (key, reported) in schema["$defs"][kind]["properties"].as_object().unwrap() {
            let least = reported["minimum"].as_u64().unwrap();
            let most = reported["maximum"].as_u64().unwrap();
            let configured =
                |value: u64| with(&format!("/{section}"), json!({ key.as_str(): value }));
            for wrong in least.checked_sub(1).into_iter().chain([most + 1]) {
                let error = refused(configured(wrong));
                assert_eq!(
                    error.to_string(),
                    format!("`{section}.{key}`: must be from {least} to {most}")
                );
            }
            gateway(configured(least));
            gateway(configured(most));
        }
    }
    let reported = &schema["$defs"]["ProviderConfig"]["properties"]["concurrentMax"];
    assert_eq!(
        (&reported["minimum"], &reported["maximum"]),
        (&json!(1), &json!(1_000))
    );
}

#[test]
fn unknown_keys_are_refused_and_the_schema_has_no_place_for_a_key() {
    let unknown = serde_json::from_value::<Config>(
        json!({"providers": {"p": {"kind": "openai", "bseUrl": "x"}}}),
    )
    .unwrap_err();
    assert!(unknown.to_string().contains("bseUrl"), "{unknown}");
    let literal: Config =
        serde_json::from_value(json!({"providers": {"p": {"kind": "openai", "api_key": CANARY}}}))
            .unwrap();
    assert!(
        !format!("{literal:?} {}", serde_json::to_string(&literal).unwrap()).contains("CANARY")
    );
    let schema = serde_json::to_value(schemars::schema_for!(Config)).unwrap();
    let provider = schema["$defs"]["ProviderConfig"]["properties"]
        .as_object()
        .unwrap();
    assert!(provider.contains_key("apiKeyEnv") && !provider.contains_key("apiKey"));
}

#[test]
fn a_key_file_that_others_can_read_is_refused_with_the_command_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    std::fs::write(&path, format!("{CANARY}\n")).unwrap();
    let config = |file: &str| {
        with(
            "/providers/p",
            json!({"kind": "anthropic", "apiKeyFile": file}),
        )
    };
    let env = |name: &str| (name == "MODEL_KEY").then(|| CANARY.to_owned());
    for mode in [0o644, 0o640, 0o604] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = refused_in(config("key"), folder.path());
        assert_eq!(error.key, "providers.p.apiKeyFile");
        assert!(
            error
                .to_string()
                .ends_with(&format!("run: chmod 600 {}", path.display())),
            "{error}"
        );
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(
        Gateway::new(
            serde_json::from_value(config("key")).unwrap(),
            folder.path(),
            &env
        )
        .is_ok()
    );
    assert!(
        refused_in(config("none"), folder.path())
            .to_string()
            .contains("cannot read")
    );
}

#[test]
fn a_config_reads_from_toml_as_from_json() {
    let text = r#"
        defaultModel = "fast"
        [providers.local]
        kind = "openai-compatible"
        baseUrl = "http://127.0.0.1:8080/v1"
        [models.fast]
        provider = "local"
        model = "qwen"
        parameters = { temperature = 0 }
    "#;
    let config: Config = toml::from_str(text).unwrap();
    let gateway = Gateway::new(config, Path::new("."), &|_| None).unwrap();
    assert_eq!(gateway.resolve(None).unwrap().model, "qwen");
}

#[test]
fn other_models_are_set_up_over_the_providers_that_are_there() {
    let before = gateway(base());
    let next = |models: Value| {
        let mut next = base();
        next["models"] = models;
        next["defaultModel"] = json!("n");
        // These do not count: what is there goes on.
        next["providers"] = json!({});
        next["timeouts"]["totalMs"] = json!(1);
        before.successor(serde_json::from_value(next).unwrap())
    };
    let after = next(json!({ "n": { "provider": "p", "model": "n-1" } })).unwrap();
    let resolved = after.resolve(None).unwrap();
    assert_eq!(
        (resolved.alias.as_str(), resolved.model.as_str()),
        ("n", "n-1")
    );
    assert!(after.has("n") && !after.has("m") && before.has("m"));
    assert!(after.resolve(Some("m")).is_err());
    let unknown = next(json!({ "n": { "provider": "new", "model": "n-1" } })).unwrap_err();
    assert!(
        unknown.to_string().contains("models.n.provider"),
        "{unknown}"
    );
}
