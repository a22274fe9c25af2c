//! The configuration of an agent besides its address: its name, its purpose, its set-up. It never
//! changes the identity.

use super::{AgentPath, PathKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Bytes of a name.
pub const AGENT_NAME_BYTES_MAX: usize = 200;
/// Bytes of a system prompt.
pub const PROMPT_BYTES_MAX: usize = 64 << 10;
/// Bytes of a user name.
pub const USERNAME_BYTES_MAX: usize = 64;
/// Bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 8 << 10;
/// Bytes of the path of a folder.
pub const WORKSPACE_DIR_BYTES_MAX: usize = 4_096;
/// Bytes of an app's id.
const APP_ID_BYTES_MAX: usize = 64;

/// Configuration of an agent besides its address. Every field is optional; the agent's definition
/// supplies a missing one.
///
/// A user's id in a service is not part of it: that is a connector key ([`super::ConnectorKey`]).
/// Unknown fields are refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ShownAgentConfig)]
pub struct AgentConfig {
    /// Its name for people: 1 to 200 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its name where people write `@name`: 1 to 64 letters of ASCII, digits, `-`, `_` and `.`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Its purpose: at most 8 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its system prompt: at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The folder that it works in: 1 to 4,096 bytes, without `..` and control characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_dir: Option<String>,
    /// The app that it belongs to: 1 to 64 letters of ASCII, digits, `-`, `_` and `.`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<String>,
}

/// An invalid field of an agent's configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {wrong}")]
pub struct AgentConfigError {
    /// The field.
    pub field: &'static str,
    wrong: String,
}

impl AgentConfig {
    /// Returns whether no field is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that every field keeps its limits.
    ///
    /// # Errors
    /// The first field at fault, and the rule that it breaks.
    pub fn check(&self) -> Result<(), AgentConfigError> {
        let Self {
            name,
            username,
            description,
            system_prompt,
            workspace_dir,
            app_id,
        } = self;
        line("name", name.as_deref(), AGENT_NAME_BYTES_MAX)?;
        check_plain_text("username", username.as_deref(), USERNAME_BYTES_MAX)?;
        at_most("description", description.as_deref(), DESCRIPTION_BYTES_MAX)?;
        at_most("system_prompt", system_prompt.as_deref(), PROMPT_BYTES_MAX)?;
        line(
            "workspace_dir",
            workspace_dir.as_deref(),
            WORKSPACE_DIR_BYTES_MAX,
        )?;
        if workspace_dir
            .as_ref()
            .is_some_and(|folder| folder.split(['/', '\\']).any(|name| name == ".."))
        {
            return Err(wrong(
                "workspace_dir",
                "has `..` in it; write the path without".to_owned(),
            ));
        }
        check_plain_text("app_id", app_id.as_deref(), APP_ID_BYTES_MAX)
    }

    /// Returns the label of the agent at a path for people. It is that of [`AgentPath::label`]; a
    /// name is followed by the user name. Schedules and searches have no user name.
    #[must_use]
    pub fn label(&self, path: &AgentPath) -> String {
        let filled = |text: &Option<String>| {
            text.as_deref()
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let name = filled(&self.name);
        match (path.kind(), &name, filled(&self.username)) {
            (
                PathKind::Connector
                | PathKind::Agent
                | PathKind::Subuser
                | PathKind::App
                | PathKind::Sub,
                Some(name),
                Some(username),
            ) => path.label(Some(&format!("{name} (@{username})"))),
            _ => path.label(name.as_deref()),
        }
    }
}

fn wrong(field: &'static str, wrong: String) -> AgentConfigError {
    AgentConfigError { field, wrong }
}

fn at_most(
    field: &'static str,
    text: Option<&str>,
    bytes_max: usize,
) -> Result<(), AgentConfigError> {
    let bytes = text.map_or(0, str::len);
    if bytes > bytes_max {
        Err(wrong(
            field,
            format!("has {bytes} bytes; {bytes_max} is the most"),
        ))
    } else {
        Ok(())
    }
}

/// A text of one line that is not blank.
fn line(field: &'static str, text: Option<&str>, bytes_max: usize) -> Result<(), AgentConfigError> {
    at_most(field, text, bytes_max)?;
    match text {
        Some(text) if text.trim().is_empty() => {
            Err(wrong(field, "is empty; leave it out".to_owned()))
        }
        Some(text) if text.chars().any(char::is_control) => Err(wrong(
            field,
            "has a control character in it; leave that out".to_owned(),
        )),
        Some(_) | None => Ok(()),
    }
}

/// A text that can be embedded in another.
fn check_plain_text(
    field: &'static str,
    text: Option<&str>,
    bytes_max: usize,
) -> Result<(), AgentConfigError> {
    line(field, text, bytes_max)?;
    let odd = |sign: &char| !sign.is_ascii_alphanumeric() && !"-_.".contains(*sign);
    match text.and_then(|text| text.chars().find(odd)) {
        Some(sign) => Err(wrong(
            field,
            format!("has {sign:?} in it; write letters, digits, `-`, `_` and `.`"),
        )),
        None => Ok(()),
    }
}
