//! Tests of post targets and reply targets.

use super::*;

const ID: &str = "6f1ed002-ab59-4e46-9d7b-6b9a3b8d0c11";

#[test]
fn a_target_is_an_id_or_a_path_as_text_and_in_json() {
    for (text, json) in [
        (ID, format!(r#"{{"agent_id":"{ID}"}}"#)),
        (
            "/u/telegram/sub/0",
            r#"{"path":"/u/telegram/sub/0"}"#.to_owned(),
        ),
    ] {
        let target: PostTarget = text.parse().unwrap();
        assert_eq!(target.to_string(), text);
        assert_eq!(serde_json::to_string(&target).unwrap(), json);
        assert_eq!(serde_json::from_str::<PostTarget>(&json).unwrap(), target);
    }
    assert_eq!(
        PostTarget::from(path("/system/gc")),
        "/system/gc".parse().unwrap()
    );
    assert!(
        matches!(ID.parse().unwrap(), PostTarget::Agent(id) if PostTarget::from(id).to_string() == ID)
    );
    let with_null = format!(r#"{{"agent_id":"{ID}","path":null}}"#);
    assert!(matches!(
        serde_json::from_str(&with_null).unwrap(),
        PostTarget::Agent(_)
    ));
}

#[test]
fn what_names_no_agent_or_two_says_so() {
    let both = format!(r#"{{"agent_id":"{ID}","path":"/u/telegram"}}"#);
    for (json, reported) in [
        (both.as_str(), "`agent_id` and `path` both name an agent"),
        ("{}", "say `agent_id` or `path`"),
        (r#"{"agent_id":null}"#, "say `agent_id` or `path`"),
        (
            r#"{"agentId":"x"}"#,
            "unknown field `agentId`, expected `agent_id` or `path`",
        ),
        (
            r#"{"path":"/u/telegram","session":"s"}"#,
            "unknown field `session`",
        ),
        (r#"{"path":"/u/sub/0"}"#, "segment 2 of `/u/sub/0`, `sub`"),
        (
            r#"{"path":"/u/telegram","path":"/u/telegram"}"#,
            "duplicate field `path`",
        ),
        (r#"{"agent_id":"/u/telegram"}"#, "UUID"),
        (r#""/u/telegram""#, "invalid type"),
    ] {
        let refused = serde_json::from_str::<PostTarget>(json)
            .expect_err(json)
            .to_string();
        assert!(refused.contains(reported), "{json}: {refused}");
    }
    for (text, reported) in [
        (
            "",
            "its id, which is a UUID, or its path, which begins with `/`",
        ),
        ("reader", "`reader` names no agent"),
        (" /u/telegram", "which begins with `/`"),
        ("/u", "`/u` ends before segment 2"),
    ] {
        let refused = text.parse::<PostTarget>().unwrap_err().to_string();
        assert!(refused.contains(reported), "{text}: {refused}");
    }
}

#[test]
fn a_connector_key_is_a_connector_and_what_its_service_calls_the_user() {
    for (text, external_id) in [
        ("telegram:123456", "123456"),
        ("telegram:-100123", "-100123"),
        ("matrix:@alice:example.org", "@alice:example.org"),
        ("email:alice@example.org", "alice@example.org"),
        ("x:a b/ü", "a b/ü"),
    ] {
        let key: ConnectorKey = text.parse().unwrap();
        assert_eq!(
            (key.external_id(), key.to_string().as_str()),
            (external_id, text)
        );
        assert_eq!(serde_json::to_string(&key).unwrap(), format!("{text:?}"));
        assert_eq!(
            ConnectorKey::new(key.connector().clone(), external_id).unwrap(),
            key
        );
    }
    for (text, reported) in [
        ("", "looks like `telegram:123456`"),
        ("telegram", "`telegram` has no `:` in it"),
        (":1", "`` is empty"),
        ("Telegram:1", "`Telegram` has 'T' in it"),
        ("agent:1", "`agent` is a word"),
        ("telegram:", "`telegram:` has nothing after the `:`"),
        ("telegram: 1", "begins or ends with a space"),
        ("telegram:1 ", "begins or ends with a space"),
        ("telegram:1\n", "has a control character"),
        (
            &format!("telegram:{}", "1".repeat(EXTERNAL_ID_BYTES_MAX + 1)),
            "has 257 bytes; 256 is the most",
        ),
    ] {
        let refused = text.parse::<ConnectorKey>().unwrap_err().to_string();
        assert!(refused.contains(reported), "{text}: {refused}");
        assert!(
            serde_json::from_value::<ConnectorKey>(serde_json::json!(text)).is_err(),
            "{text}"
        );
    }
}

#[test]
fn a_reply_goes_where_the_connector_knows_the_user_by_one_key() {
    let keys = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| text.parse().unwrap())
            .collect::<Vec<ConnectorKey>>()
    };
    let target = |text: &str, texts: &[&str]| {
        ReplyTarget::resolve(&path(text), &keys(texts)).map_err(|error| error.to_string())
    };
    let known = ["whatsapp:9", "telegram:123", "tele:5", "telegram:123"];
    let found = target("/u/telegram", &known).unwrap();
    assert_eq!(
        serde_json::to_string(&found).unwrap(),
        r#"{"connector":"telegram","target_id":"123"}"#
    );
    for (text, texts, reported) in [
        (
            "/u/telegram",
            [].as_slice(),
            "no connector key of the user is of `telegram`; add one that looks like \
             `telegram:<id>`",
        ),
        (
            "/u/telegram",
            &["whatsapp:9"],
            "no connector key of the user is of `telegram`",
        ),
        (
            "/u/telegram",
            &["telegram:1", "telegram:2"],
            "2 connector keys of the user are of `telegram`",
        ),
        (
            "/u/telegram/sub/0",
            &known,
            "the agent at `/u/telegram/sub/0` talks through no connector",
        ),
        ("/u/agent/telegram", &known, "talks through no connector"),
        ("/system/telegram", &known, "talks through no connector"),
    ] {
        let refused = target(text, texts).unwrap_err();
        assert!(refused.contains(reported), "{text}: {refused}");
    }
}

proptest! {
    #[test]
    fn a_connector_key_reads_what_it_writes(connector in connectors(), id in any::<String>()) {
        if let Ok(key) = ConnectorKey::new(connector, &id) {
            prop_assert_eq!(key.to_string().parse::<ConnectorKey>().unwrap(), key);
        }
    }

    #[test]
    fn no_text_makes_a_target_or_a_key_panic_and_a_target_reads_what_it_writes(text in "\\PC{0,40}|(/[a-b0-9]{0,3}){0,4}") {
        let _ = text.parse::<ConnectorKey>();
        if let Ok(target) = text.parse::<PostTarget>() {
            prop_assert_eq!(target.to_string().parse::<PostTarget>().unwrap(), target);
        }
    }
}

// Tests of what is kept beside an address.

#[test]
fn a_config_has_the_fields_of_the_design_and_no_identity() {
    assert_eq!(
        serde_json::to_string(&AgentConfig::default()).unwrap(),
        "{}"
    );
    let text = r#"{"name":"Claude","username":"claude","description":"d","system_prompt":"s","workspace_dir":"/srv/w","app_id":"a"}"#;
    let config: AgentConfig = serde_json::from_str(text).unwrap();
    assert_eq!(config.check(), Ok(()));
    assert_eq!(serde_json::to_string(&config).unwrap(), text);
    for key in ["connector_user_id", "path", "id"] {
        let refused = serde_json::from_value::<AgentConfig>(serde_json::json!({ key: "1" }))
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains(&format!("unknown field `{key}`")),
            "{refused}"
        );
    }
}

#[test]
fn a_field_that_cannot_be_what_it_is_is_named_with_what_it_may_be() {
    let long = |bytes: usize| "x".repeat(bytes);
    for (field, value, reported) in [
        ("name", String::new(), "`name` is empty; leave it out"),
        ("name", "  ".to_owned(), "`name` is empty"),
        ("name", "a\nb".to_owned(), "`name` has a control character"),
        (
            "name",
            long(AGENT_NAME_BYTES_MAX + 1),
            "`name` has 201 bytes; 200 is the most",
        ),
        (
            "username",
            "a b".to_owned(),
            "`username` has ' ' in it; write letters",
        ),
        ("username", "@a".to_owned(), "`username` has '@' in it"),
        ("username", long(USERNAME_BYTES_MAX + 1), "64 is the most"),
        (
            "description",
            long(DESCRIPTION_BYTES_MAX + 1),
            "`description` has 8193 bytes",
        ),
        (
            "system_prompt",
            long(PROMPT_BYTES_MAX + 1),
            "`system_prompt` has 65537 bytes",
        ),
        ("workspace_dir", String::new(), "`workspace_dir` is empty"),
        (
            "workspace_dir",
            "a/../b".to_owned(),
            "`workspace_dir` has `..` in it; write the path without",
        ),
        ("workspace_dir", "..".to_owned(), "has `..` in it"),
        ("workspace_dir", "a\\..".to_owned(), "has `..` in it"),
        ("workspace_dir", "a\0".to_owned(), "has a control character"),
        (
            "workspace_dir",
            long(WORKSPACE_DIR_BYTES_MAX + 1),
            "4096 is the most",
        ),
        ("app_id", "a/b".to_owned(), "`app_id` has '/' in it"),
        ("app_id", long(65), "64 is the most"),
    ] {
        let config: AgentConfig =
            serde_json::from_value(serde_json::json!({ field: value })).unwrap();
        let refused = config.check().unwrap_err();
        assert_eq!(refused.field, field);
        assert!(refused.to_string().contains(reported), "{refused}");
    }
    for (field, value) in [
        ("name", long(AGENT_NAME_BYTES_MAX)),
        ("description", "a\nb".to_owned()),
        ("workspace_dir", "a/..b".to_owned()),
    ] {
        let config: AgentConfig =
            serde_json::from_value(serde_json::json!({ field: value })).unwrap();
        assert_eq!(config.check(), Ok(()), "{field}");
    }
}

#[test]
fn a_user_name_stands_behind_the_name_of_whom_people_talk_with() {
    let config = |name: &str, username: &str| AgentConfig {
        name: Some(name.to_owned()),
        username: Some(username.to_owned()),
        ..AgentConfig::default()
    };
    for (text, expected) in [
        ("/u/agent/claude", "Claude (@helpful)"),
        ("/u/telegram", "Claude (@helpful)"),
        ("/u/telegram/sub/0", "Claude (@helpful)"),
        ("/u/cron/daily", "Claude"),
        ("/u/telegram/search/0", "Claude"),
        ("/u/telegram/memory", "memory-agent"),
        ("/system/gc", "gc"),
    ] {
        assert_eq!(
            config("Claude", "helpful").label(&path(text)),
            expected,
            "{text}"
        );
    }
    assert_eq!(
        config("Claude", " ").label(&path("/u/agent/claude")),
        "Claude"
    );
    assert_eq!(
        config(" ", "helpful").label(&path("/u/agent/claude")),
        "claude"
    );
    assert_eq!(AgentConfig::default().label(&path("/u/telegram")), "user");
}
