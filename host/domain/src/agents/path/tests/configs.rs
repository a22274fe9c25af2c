//! Tests of what is kept beside an address.

use super::*;

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
