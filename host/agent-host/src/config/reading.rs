//! The keys of the configuration by when they are read: at every reload, or at a start only.
//!
//! The schema says it: `x-read = "start"` marks a key, or a table with all of its keys, of which
//! something is made that lasts as long as the host. Everything else is read again.

use super::document::{Config, schema};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The keys that are read at a start only, as JSON pointers.
static READ_AT_A_START: LazyLock<Vec<String>> = LazyLock::new(|| {
    let schema = schema();
    let mut marked = Vec::new();
    collect(&schema, &schema, "", &mut marked);
    marked.sort_unstable();
    marked
});

/// Adds the marked keys of a table, which is a part of the schema.
fn collect(schema: &Value, table: &Value, at: &str, into: &mut Vec<String>) {
    let is_marked = |it: &Value| it.get("x-read").is_some_and(|when| when == "start");
    let properties = table.get("properties").and_then(Value::as_object);
    for (key, property) in properties.into_iter().flatten() {
        let at = format!("{at}/{key}");
        let inner = property.get("$ref").and_then(Value::as_str);
        let inner = inner.and_then(|it| schema.pointer(it.trim_start_matches('#')));
        match inner {
            _ if is_marked(table) || is_marked(property) => into.push(at),
            Some(inner) => collect(schema, inner, &at, into),
            None => {}
        }
    }
}

/// Returns what is in force after a reload: what is read again of one configuration, and the rest
/// of the one that is served.
///
/// # Errors
/// None is to be expected: what was read can be read again.
pub(crate) fn reloaded(read: &Config, served: &Config) -> serde_json::Result<Config> {
    let mut next = json!(read);
    let served = json!(served);
    for key in &*READ_AT_A_START {
        if let (Some(value), Some(served)) = (next.pointer_mut(key), served.pointer(key)) {
            *value = served.clone();
        }
    }
    serde_json::from_value(next)
}

/// Returns the keys with other values that are read at a start only.
pub(crate) fn read_at_a_start(before: &Value, after: &Value) -> Vec<String> {
    let keys = READ_AT_A_START.iter();
    let changed = keys.filter(|key| before.pointer(key) != after.pointer(key));
    changed
        .map(|key| key.replacen('/', "", 1).replace('/', "."))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{READ_AT_A_START, read_at_a_start, reloaded};
    use crate::config::Config;
    use serde_json::{Value, json};

    #[test]
    fn keys_that_need_a_restart_are_named_and_those_that_are_read_again_are_not() {
        let before = json!(Config::default());
        for key in &*READ_AT_A_START {
            assert!(
                before.pointer(key).is_some(),
                "{key} is a key of the configuration"
            );
        }
        let mut after = before.clone();
        after["server"]["listen"] = json!("127.0.0.1:1");
        after["server"]["dataDir"] = json!("elsewhere");
        after["providers"] = json!({ "p": {} });
        after["models"] = json!({ "m": {} });
        after["limits"]["hopsMax"] = json!(3);
        after["limits"]["instancesMax"] = json!(3);
        after["components"] = json!({ "c": {} });
        after["agents"] = json!([{}]);
        after["hooks"] = json!({});
        after["triggers"] = json!({ "t": {} });
        assert_eq!(
            read_at_a_start(&before, &after),
            [
                "limits.instancesMax",
                "providers",
                "server.dataDir",
                "server.listen"
            ]
        );
        assert!(read_at_a_start(&before, &before).is_empty());
    }

    #[test]
    fn what_is_served_has_all_that_is_read_again_and_nothing_that_is_not() {
        let served = Config::default();
        let read: Config = serde_json::from_value(json!({
            "agents": [{ "agentId": "a", "displayName": "A" }],
            "providers": { "p": { "kind": "scripted", "script": "s.toml" } },
            "models": { "m": { "provider": "p", "model": "m" } },
            "defaultModel": "m",
            "limits": { "hopsMax": 3, "instancesMax": 3 },
            "roles": { "memory": "m" },
            "requirePins": true,
            "triggers": { "t": { "heartbeat": {}, "target": { "agent": "a" } } },
            "hooks": { "token": "hook", "user": "ada", "agent": "a" },
            "connectors": { "c": { "component": "telegram", "agent": "a" } },
            "server": { "listen": "127.0.0.1:1" },
        }))
        .unwrap();
        let next = json!(reloaded(&read, &served).unwrap());
        let read = json!(read);
        let served = json!(served);
        let of = |config: &Value, key: &str| config.pointer(key).cloned();
        for key in [
            "/agents",
            "/models",
            "/defaultModel",
            "/limits/hopsMax",
            "/roles",
            "/triggers/t",
            "/hooks",
            "/connectors/c",
        ] {
            assert_eq!(of(&next, key), of(&read, key), "{key}");
            assert_ne!(of(&next, key), of(&served, key), "{key}");
        }
        for key in ["/providers", "/server", "/limits/instancesMax"] {
            assert_eq!(of(&next, key), of(&served, key), "{key}");
        }
        // Each key that is not named as in need of a restart is taken up, and no other.
        assert_eq!(
            read_at_a_start(&next, &read),
            read_at_a_start(&served, &read)
        );
    }
}
