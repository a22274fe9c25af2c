//! Refusals that JSON and TOML share, whatever the parser of either takes.

use super::load_with;
use serde_json::json;

#[test]
fn a_key_that_stands_twice_is_refused_in_json_as_in_toml() {
    for (json, toml, key) in [
        (
            r#"{ "components": { "files": { "confirm": "destructive" }, "files": {} } }"#,
            "[components.files]\nconfirm = \"destructive\"\n[components.files]\n",
            "files",
        ),
        (
            r#"{ "components": { "files": { "environment": { "A": "x", "A": "y" } } } }"#,
            "[components.files]\nenvironment = { A = \"x\", A = \"y\" }\n",
            "A",
        ),
        (
            r#"{ "triggers": {}, "roles": { "user": "a", "user": "b" } }"#,
            "[roles]\nuser = \"a\"\nuser = \"b\"\n",
            "user",
        ),
        (
            r#"{ "models": {}, "models": {} }"#,
            "[models]\n[models]\n",
            "models",
        ),
    ] {
        for (name, text) in [("c.json", json), ("c.toml", toml)] {
            let reported = load_with(name, text, &[]).unwrap_err();
            assert!(reported.contains("duplicate"), "{name}: {reported}");
            assert!(name != "c.json" || reported.contains(key), "{reported}");
        }
    }
    // The place of an inner one is told.
    let inner = r#"{ "components": { "files": { "environment": { "A": "x", "A": "y" } } } }"#;
    let reported = load_with("c.json", inner, &[]).unwrap_err();
    assert!(
        reported.starts_with("c.json:1:") && reported.contains("components.files.environment"),
        "{reported}"
    );
}

#[test]
fn a_number_that_is_none_is_refused_by_its_key() {
    for number in ["nan", "inf", "-inf"] {
        let text = format!(
            "[models.m]\nprovider = \"p\"\nmodel = \"m\"\nprice = {{ inputPerMillion = {number}, \
             outputPerMillion = 1.0 }}\n"
        );
        let reported = load_with("c.toml", &text, &[]).unwrap_err();
        assert!(
            reported.contains("models.m.price.inputPerMillion: "),
            "{reported}"
        );
    }
    let listed = "[models.m]\nprovider = \"p\"\nmodel = \"m\"\nparameters = { a = [1.0, nan] }\n";
    let reported = load_with("c.toml", listed, &[]).unwrap_err();
    assert!(
        reported.contains("models.m.parameters.a[1]: "),
        "{reported}"
    );
}

#[test]
fn an_empty_variable_overlays_nothing() {
    let text = "defaultSystemPrompt = \"x\"\n";
    let with = |value: &str| {
        let variables = [("AGENT_HOST__DEFAULT_SYSTEM_PROMPT", value)];
        let loaded = load_with("c.toml", text, &variables).unwrap();
        json!([loaded.config.default_system_prompt, loaded.overlaid.len()])
    };
    assert_eq!(with(""), json!(["x", 0]));
    assert_eq!(with("\"\""), json!(["", 1]));
    assert_eq!(with("y"), json!(["y", 1]));
}
