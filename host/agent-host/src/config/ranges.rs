//! Checks of numbers and texts against the ranges and patterns in the schema of the configuration.

use super::document::{Config, schema};
use super::finding::{Finding, error};
use regex::Regex;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// Tables whose numbers the model gateway checks itself.
const OF_GATEWAY: [&str; 5] = ["breaker", "models", "providers", "retry", "timeouts"];

/// The schema of the configuration.
static SCHEMA: LazyLock<Value> = LazyLock::new(schema);

/// Finds every number that is outside the range in its schema.
pub(crate) fn check(config: &Config) -> Vec<Finding> {
    let config = json!(config);
    let mut findings = Vec::new();
    for (name, value) in config.as_object().into_iter().flatten() {
        let schema = SCHEMA.pointer(&format!("/properties/{name}"));
        if let Some(schema) = schema.filter(|_| !OF_GATEWAY.contains(&name.as_str())) {
            inspect(schema, value, name, &mut findings);
        }
    }
    findings
}

/// Looks at a value, and at everything in it.
fn inspect(schema: &Value, value: &Value, key: &str, findings: &mut Vec<Finding>) {
    let named = schema.get("$ref").and_then(Value::as_str);
    if let Some(named) = named.and_then(|it| SCHEMA.pointer(it.trim_start_matches('#'))) {
        inspect(named, value, key, findings);
    }
    let alternatives = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|it| schema.get(it));
    for alternative in alternatives.filter_map(Value::as_array).flatten() {
        // The other texts of several fit the patterns of their own.
        if !value.is_string() && is_like(alternative, value) {
            inspect(alternative, value, key, findings);
        }
    }
    match value {
        Value::Number(number) => findings.extend(number.as_u64().and_then(|number| {
            let [least, most] = ["minimum", "maximum"].map(|it| schema.get(it)?.as_u64());
            let least = least?;
            let most = most?;
            let message =
                format!("{number} is out of its range: it must be from {least} to {most}");
            (!(least..=most).contains(&number)).then(|| error(key, message))
        })),
        Value::Array(entries) => {
            let of_entries = schema.get("items").unwrap_or(&Value::Null);
            for (index, entry) in entries.iter().enumerate() {
                inspect(of_entries, entry, &format!("{key}[{index}]"), findings);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let of_field = schema.get("properties").and_then(|it| it.get(name));
                let of_field = of_field.or_else(|| schema.get("additionalProperties"));
                inspect(
                    of_field.unwrap_or(&Value::Null),
                    field,
                    &format!("{key}.{name}"),
                    findings,
                );
            }
        }
        Value::String(text) => {
            findings.extend(misfit(schema, text).map(|message| error(key, message)));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Returns what is wrong with a text that does not fit its pattern.
fn misfit(schema: &Value, text: &str) -> Option<String> {
    let pattern = schema.get("pattern").and_then(Value::as_str)?;
    if Regex::new(pattern).ok()?.is_match(text) {
        return None;
    }
    Some(match text.trim() {
        "" => "it is empty and matches nothing; take it out".to_owned(),
        trimmed if trimmed != text => {
            format!("`{text}` has blanks around it, which no name has; write `{trimmed}`")
        }
        _ => format!("`{text}` does not match `{pattern}`"),
    })
}

/// Returns whether an alternative of a schema is the one of a value, which has what it requires.
fn is_like(alternative: &Value, value: &Value) -> bool {
    let required = alternative.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    required.all(|name| value.get(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::config::Config;
    use crate::config::limits::LimitsConfig;
    use domain::grant::GuestLimits;
    use domain::limits::TurnLimits;
    use domain::ranges::out_of_range;
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde_json::json;

    /// The defaults are fine, and every number has both its bounds.
    fn whole<T: JsonSchema + Serialize + Default>() {
        assert!(out_of_range(&T::default()).is_empty());
        let schema = schemars::schema_for!(T);
        for (key, property) in schema.get("properties").unwrap().as_object().unwrap() {
            assert!(property.get("minimum").unwrap().as_u64().is_some(), "{key}");
            assert!(property.get("maximum").unwrap().as_u64().is_some(), "{key}");
        }
    }

    #[test]
    fn every_limit_of_servers_components_turns_and_models_has_a_range() {
        whole::<api::server::Limits>();
        whole::<LimitsConfig>();
        whole::<GuestLimits>();
        whole::<TurnLimits>();
        whole::<llm::RetryLimits>();
        whole::<llm::Timeouts>();
        whole::<llm::BreakerLimits>();
        whole::<llm::ProgramLimits>();
    }

    /// A number in a table, in one by name, in a list, and in what need not be there.
    #[test]
    fn a_number_out_of_its_range_is_named_with_the_range() {
        let config: Config = serde_json::from_value(json!({
            "agents": [{
                "agentId": "a", "displayName": "A", "limits": { "stepsMax": 0 },
                "memory": { "idleS": 0 },
                "maxConcurrentMessages": 0, "messageTimeout": 604_801, "maxSessionMessages": 0,
                "sessionTimeout": 0, "contextWindowSize": 999,
            }],
            "components": { "c": {
                "limits": { "cpuMsMax": 0 },
                "keyValue": [{ "bucket": "b", "access": "read-only", "keysMax": 2_000_000 }],
            } },
            "server": { "limits": { "connectionsMax": u64::MAX, "heartbeatMs": 0 } },
        }))
        .unwrap();
        let found: Vec<String> = check(&config)
            .into_iter()
            .map(|found| format!("{}: {}", found.key, found.message))
            .collect();
        let keys: Vec<&str> = found.iter().filter_map(|it| it.split(':').next()).collect();
        assert_eq!(
            keys,
            [
                "agents[0].maxConcurrentMessages",
                "agents[0].messageTimeout",
                "agents[0].maxSessionMessages",
                "agents[0].sessionTimeout",
                "agents[0].contextWindowSize",
                "agents[0].limits.stepsMax",
                "agents[0].memory.idleS",
                "components.c.keyValue[0].keysMax",
                "components.c.limits.cpuMsMax",
                "server.limits.connectionsMax",
                "server.limits.heartbeatMs",
            ]
        );
        assert_eq!(
            found[9..],
            [
                "server.limits.connectionsMax: 18446744073709551615 is out of its range: it must \
                 be from 1 to 1000000",
                "server.limits.heartbeatMs: 0 is out of its range: it must be from 1 to 3600000",
            ]
        );
        assert_eq!(check(&Config::default()), []);
    }
}
