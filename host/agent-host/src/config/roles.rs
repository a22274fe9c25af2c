//! Settings of agents by their paths: the models of roles, and the checks of these and of rules.

use super::agents::no_model;
use super::document::Config;
use super::finding::{Finding, error};
use super::patterns;
use domain::grant::PatternList;
use domain::path::{ModelRole, UserRules};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// The models of a role. An alias alone is `model`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleConfig {
    /// The model of the agents in the role, by its alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The models that may answer them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_allowlist: Option<PatternList>,
}

/// Several settings of a role.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct RoleTable {
    /// The model of the agents in the role, by its alias.
    model: Option<String>,
    /// Models that may answer these agents, and agents that work for them, by their aliases;
    /// without, the role limits none.
    model_allowlist: Option<PatternList>,
}

/// The forms in which the models of a role may be written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes how the models of a role are read")]
pub(super) enum RoleForms {
    /// The alias of its model.
    Model(String),
    /// Several settings.
    Table(RoleTable),
}

impl<'de> Deserialize<'de> for RoleConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RoleVisitor)
    }
}

/// Reads the models of a role in either form.
struct RoleVisitor;

impl<'de> Visitor<'de> for RoleVisitor {
    type Value = RoleConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the alias of a model, or a table with `model`, `modelAllowlist`")
    }

    fn visit_str<E: de::Error>(self, alias: &str) -> Result<RoleConfig, E> {
        Ok(RoleConfig {
            model: Some(alias.to_owned()),
            model_allowlist: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RoleConfig, A::Error> {
        let RoleTable {
            model,
            model_allowlist,
        } = RoleTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RoleConfig {
            model,
            model_allowlist,
        })
    }
}

/// Finds all faults of the rules on paths.
pub(super) fn check_rules(config: &Config, findings: &mut Vec<Finding>) {
    findings.extend(
        UserRules::new(&config.path_rules)
            .err()
            .map(|many| error("pathRules", many.to_string())),
    );
    for (index, rule) in config.path_rules.iter().enumerate() {
        if rule.users.as_ref().is_some_and(Vec::is_empty) {
            let message = "nobody is named, so the rule is for nobody; name users, or leave `users` out for \
                 all of them";
            findings.push(error(format!("pathRules[{index}].users"), message));
        }
        let key = format!("pathRules[{index}].modelAllowlist");
        let models = rule.model_allowlist.as_ref();
        findings.extend(patterns::entries(&key, models));
        findings.extend(patterns::models(&key, models, &config.models));
    }
}

/// Finds all faults of the models of roles.
pub(super) fn check_roles(config: &Config, findings: &mut Vec<Finding>) {
    for (role, models) in &config.roles {
        let key = format!("roles.{role}");
        let list = models.model_allowlist.as_ref();
        let found = models.model.as_deref().map(|model| config.model(model));
        match (found, &models.model) {
            (Some(None), Some(model)) => {
                findings.push(error(key.clone(), no_model(config, model)));
            }
            (Some(Some((alias, _))), _) if list.is_some_and(|list| !list.matches(alias)) => {
                let message = format!(
                    "it does not match `{alias}`, the model of the role, which then answers \
                     nobody; add it"
                );
                findings.push(error(format!("{key}.modelAllowlist"), message));
            }
            _ => {}
        }
        let key = format!("{key}.modelAllowlist");
        if *role == ModelRole::Heartbeat && list.is_some() {
            let message = "a heartbeat wakes agents of other roles; write it at those roles";
            findings.push(error(key.clone(), message));
        }
        findings.extend(patterns::entries(&key, list));
        findings.extend(patterns::models(&key, list, &config.models));
    }
}

#[cfg(test)]
mod tests {
    use super::RoleConfig;
    use serde_json::json;

    #[test]
    fn a_role_is_an_alias_or_a_table_and_nothing_else() {
        let read = |value| serde_json::from_value::<RoleConfig>(value);
        let alias = read(json!("small")).unwrap();
        assert_eq!(alias.model.as_deref(), Some("small"));
        assert_eq!(alias, read(json!({ "model": "small" })).unwrap());
        let both = json!({ "model": "small", "modelAllowlist": ["small", "fast-*"] });
        let read_both = read(both.clone()).unwrap();
        assert_eq!(json!(read_both), both);
        for (wrong, reported) in [
            (json!(["small"]), "the alias of a model, or a table"),
            (json!({ "models": [] }), "unknown field `models`"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(reported), "{error}");
        }
    }
}
