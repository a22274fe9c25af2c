//! Configuration of an agent besides its address. It is given when the agent is made, and changed
//! field by field.

use super::Agent;
use crate::agents::path::AgentConfig;
use crate::events::event::{AgentConfigured, Event};
use crate::values::error_code::ErrorCode;
use crate::values::refusal::Refusal;
use crate::values::time::Timestamp;
use std::collections::BTreeMap;

/// Changes to the configuration. Fields that are not given stay unchanged, and `Some(None)` removes
/// a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigChanges {
    /// The given name, which its label contains. Without one the label is derived from its path.
    pub name: Option<String>,
    /// Name of the agent in mentions (`@name`).
    pub username: Option<Option<String>>,
    /// Purpose of the agent.
    pub description: Option<Option<String>>,
    /// The folder that it works in.
    pub workspace_dir: Option<Option<String>>,
    /// The app that it belongs to.
    pub app_id: Option<Option<String>>,
}

impl ConfigChanges {
    /// Returns whether nothing would change.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The given fields, except the name, with their new values; `null` where a field is removed.
    #[must_use]
    pub fn named(&self) -> BTreeMap<&'static str, Option<&str>> {
        let Self {
            name: _,
            username,
            description,
            workspace_dir,
            app_id,
        } = self;
        let fields = [
            ("username", username),
            ("description", description),
            ("workspace_dir", workspace_dir),
            ("app_id", app_id),
        ];
        fields
            .into_iter()
            .filter_map(|(name, change)| Some((name, change.as_ref()?.as_deref())))
            .collect()
    }

    /// A configuration with the changes.
    #[must_use]
    pub fn apply_to(&self, config: &AgentConfig) -> AgentConfig {
        let after = |change: &Option<Option<String>>, before: &Option<String>| {
            change.clone().unwrap_or_else(|| before.clone())
        };
        AgentConfig {
            name: self.name.clone().or_else(|| config.name.clone()),
            system_prompt: config.system_prompt.clone(),
            username: after(&self.username, &config.username),
            description: after(&self.description, &config.description),
            workspace_dir: after(&self.workspace_dir, &config.workspace_dir),
            app_id: after(&self.app_id, &config.app_id),
        }
    }
}

/// Checks that fields do not repeat what is configured elsewhere.
///
/// # Errors
/// A folder or an app is given, with the place where it is configured.
pub fn check_place(workspace_dir: Option<&str>, app_id: Option<&str>) -> Result<(), Refusal> {
    let folder = "an agent has no folder of its own: grant one to the components whose tools it \
                  calls (`directories`)";
    let app = "the app that an agent belongs to is said by its path: make it at \
               `/<user>/app/<name>`";
    let no = |message: &str, field: &str| Err(Refusal::new(ErrorCode::Invalid, message).at(field));
    match (workspace_dir, app_id) {
        (Some(_), _) => no(folder, "/config/workspace_dir"),
        (None, Some(_)) => no(app, "/config/app_id"),
        (None, None) => Ok(()),
    }
}

/// Checks a configuration.
///
/// # Errors
/// The first field that exceeds its limits.
pub fn check_config(config: &AgentConfig) -> Result<(), Refusal> {
    let field = |field: &str| format!("/config/{field}");
    config
        .check()
        .map_err(|error| Refusal::new(ErrorCode::Invalid, error.to_string()).at(field(error.field)))
}

impl Agent {
    /// Changes its description; no event if nothing changes.
    ///
    /// # Errors
    /// It is archived; a field exceeds its limits, or belongs elsewhere.
    pub fn describe(
        &self,
        changes: &ConfigChanges,
        now: Timestamp,
    ) -> Result<Option<Event>, Refusal> {
        self.is_active()?;
        let said = |change: &Option<Option<String>>| change.clone().flatten();
        check_place(
            said(&changes.workspace_dir).as_deref(),
            said(&changes.app_id).as_deref(),
        )?;
        let config = changes.apply_to(&self.config);
        check_config(&config)?;
        let event = |config| {
            Event::AgentConfigured(Box::new(AgentConfigured {
                agent: self.id,
                config,
                updated_at: now,
            }))
        };
        Ok((config != self.config).then(|| event(config)))
    }

    /// Its whole description, with its name and its own prompt.
    #[must_use]
    pub fn described(&self) -> AgentConfig {
        AgentConfig {
            system_prompt: self.system_prompt_override.clone(),
            ..self.config.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{T, agent, code_of, field_of};
    use super::*;

    fn set(text: &str) -> Option<Option<String>> {
        Some(Some(text.to_owned()))
    }

    #[test]
    fn what_is_kept_about_an_agent_changes_field_by_field() {
        let agent = agent();
        let both = ConfigChanges {
            username: set("ada"),
            description: set("Reads."),
            ..ConfigChanges::default()
        };
        let said = agent.then(agent.describe(&both, T));
        assert_eq!(said.describe(&both, T).unwrap(), None);
        let less = ConfigChanges {
            description: Some(None),
            name: Some("Ada".into()),
            ..ConfigChanges::default()
        };
        let less = said.then(said.describe(&less, T));
        let expected = AgentConfig {
            name: Some("Ada".into()),
            username: Some("ada".into()),
            ..AgentConfig::default()
        };
        assert_eq!(less.config, expected);
        assert_eq!(less.described(), expected);
        assert_eq!(said.described().name, None, "nobody has said one");
    }

    #[test]
    fn a_field_that_does_not_keep_its_limits_is_named() {
        let none = ConfigChanges::default;
        let username = set("a b");
        let workspace_dir = set("work");
        let description = set(&"x".repeat(9_000));
        let app_id = set("shop");
        for (changes, field) in [
            (ConfigChanges { username, ..none() }, "/config/username"),
            (
                ConfigChanges {
                    workspace_dir,
                    ..none()
                },
                "/config/workspace_dir",
            ),
            (
                ConfigChanges {
                    description,
                    ..none()
                },
                "/config/description",
            ),
            (ConfigChanges { app_id, ..none() }, "/config/app_id"),
        ] {
            assert_eq!(field_of(agent().describe(&changes, T)), field);
        }
        let archived = agent().then(agent().archive("x".into(), T));
        assert_eq!(
            code_of(archived.describe(&ConfigChanges::default(), T)),
            "AGENT_ARCHIVED"
        );
    }
}
