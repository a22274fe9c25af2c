//! The models of roles, which agents have by their paths.

use domain::grant::PatternList;
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
