//! The keys of the configuration that are in force at once, and those that are read at a start
//! only.

use crate::config::{Config, LimitsConfig};
use serde_json::Value;
use std::collections::BTreeSet;

/// The keys that are read again, as tables of the file.
const READ_AGAIN: [&str; 18] = [
    "agentTools",
    "agents",
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
    "queue",
    "requirePins",
    "retry",
    "roles",
    "skills",
    "triggers",
];

/// The limits that are read at a start only: by them something is made that lasts as long as the
/// host.
const LIMITS_OF_A_START: [&str; 6] = [
    "componentBytesMax",
    "instanceWaitMsMax",
    "instancesMax",
    "instancesMemoryBytesMax",
    "instancesWaitingMax",
    "modelCallsMax",
];

/// Returns the configuration that is to be served: what is read again of one, and everything else
/// of another, which is served now.
pub(super) fn beside_the_rest(read: Config, served: Config) -> Config {
    let Config {
        agents,
        agent_tools,
        components,
        require_pins,
        personas,
        default_model,
        default_system_prompt,
        models,
        retry,
        limits,
        delegation,
        queue,
        triggers,
        hooks,
        connectors,
        path_rules,
        roles,
        skills,
        secrets: _,
        providers: _,
        timeouts: _,
        breaker: _,
        server: _,
    } = read;
    let limits = LimitsConfig {
        component_bytes_max: served.limits.component_bytes_max,
        instance_wait_ms_max: served.limits.instance_wait_ms_max,
        instances_max: served.limits.instances_max,
        instances_memory_bytes_max: served.limits.instances_memory_bytes_max,
        instances_waiting_max: served.limits.instances_waiting_max,
        model_calls_max: served.limits.model_calls_max,
        ..limits
    };
    Config {
        agents,
        agent_tools,
        components,
        require_pins,
        personas,
        default_model,
        default_system_prompt,
        models,
        retry,
        limits,
        delegation,
        queue,
        triggers,
        hooks,
        connectors,
        path_rules,
        roles,
        skills,
        ..served
    }
}

/// Returns the keys with other values that are read at a start only: those of the server and the
/// limits one by one, others by their tables.
pub(crate) fn read_at_a_start(before: &Value, after: &Value) -> Vec<String> {
    let mut changed = Vec::new();
    for key in differing(Some(before), Some(after)) {
        let inner = || differing(before.get(&key), after.get(&key));
        match key.as_str() {
            "limits" => changed.extend(
                inner()
                    .into_iter()
                    .filter(|inner| LIMITS_OF_A_START.contains(&inner.as_str()))
                    .map(|inner| format!("limits.{inner}")),
            ),
            "server" => {
                changed.extend(inner().into_iter().map(|inner| format!("server.{inner}")));
            }
            table if READ_AGAIN.contains(&table) => {}
            _ => changed.push(key),
        }
    }
    changed
}

/// Returns the keys of two tables that have other values.
fn differing(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = [before, after]
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|table| table.keys())
        .collect();
    let value = |table: Option<&Value>, key: &str| table.and_then(|table| table.get(key)).cloned();
    keys.into_iter()
        .filter(|key| value(before, key) != value(after, key))
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{LIMITS_OF_A_START, READ_AGAIN, beside_the_rest, read_at_a_start};
    use crate::config::Config;
    use serde_json::{Value, json};

    #[test]
    fn keys_that_need_a_restart_are_named_and_those_that_are_read_again_are_not() {
        let before = json!(Config::default());
        for key in READ_AGAIN {
            // One that is not there is not written.
            assert!(
                before.get(key).is_some() || key == "hooks",
                "{key} is a key of the configuration"
            );
        }
        for key in LIMITS_OF_A_START {
            assert!(before["limits"].get(key).is_some(), "{key} is a limit");
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
        let next = json!(beside_the_rest(read.clone(), served.clone()));
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
