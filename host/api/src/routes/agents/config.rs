//! Configuration of an agent other than its address, and the parent of a new agent, as request
//! bodies give them.

use crate::input::{given, read_field, target};
use crate::problem::Problem;
use broker::{Below, Target};
use domain::agent::describe::ConfigChanges;
use domain::id::AgentId;
use domain::path::{AgentConfig, PostTarget};
use serde::Deserialize;

/// Configuration of an agent other than its address.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = AgentConfig)]
pub(super) struct NewConfig {
    /// Its name for people: the same as `name` beside it.
    name: Option<String>,
    /// Its user name, for mentions as `@name`: 1 to 64 letters, digits, `-`, `_` and `.`.
    username: Option<String>,
    /// Its purpose, in place of its definition's: 8 KiB at most.
    description: Option<String>,
    /// Its own system prompt, in place of its definition's: 64 KiB at most.
    system_prompt: Option<String>,
    /// Refused: the operator grants folders to the components of tools.
    workspace_dir: Option<String>,
    /// Refused: the path says to which app an agent belongs.
    app_id: Option<String>,
}

impl From<NewConfig> for AgentConfig {
    fn from(new: NewConfig) -> Self {
        Self {
            name: new.name,
            username: new.username,
            description: new.description,
            system_prompt: new.system_prompt,
            workspace_dir: new.workspace_dir,
            app_id: new.app_id,
        }
    }
}

/// Fields to change of what is kept about an agent, the same as of a new one: they are merged, and
/// `null` takes one away.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = AgentConfigChanges)]
pub(super) struct NewFields {
    /// Its name for people: the same as `name` beside it.
    pub(super) name: Option<String>,
    /// Its own system prompt: the same as `system_prompt_override` beside it.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    pub(super) system_prompt: Option<Option<String>>,
    /// Its user name, for mentions as `@name`: 1 to 64 letters, digits, `-`, `_` and `.`.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    username: Option<Option<String>>,
    /// Its purpose, in place of its definition's: 8 KiB at most.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    /// Only `null`: the operator grants folders to the components of tools.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    workspace_dir: Option<Option<String>>,
    /// Only `null`: the path says to which app an agent belongs.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    app_id: Option<Option<String>>,
}

impl From<NewFields> for ConfigChanges {
    fn from(new: NewFields) -> Self {
        Self {
            name: None,
            username: new.username,
            description: new.description,
            workspace_dir: new.workspace_dir,
            app_id: new.app_id,
        }
    }
}

/// Returns what is said beside the configuration or in it.
///
/// # Errors
/// Both are said, and are not the same.
pub(super) fn either<T: PartialEq>(
    beside: Option<T>,
    within: Option<T>,
    names: [&str; 2],
) -> Result<Option<T>, Problem> {
    let [name, field] = names;
    match (&beside, &within) {
        (Some(one), Some(other)) if one != other => Err(Problem::invalid_field(
            &format!("/config/{field}"),
            format!("`{name}` and `config.{field}` are not the same; say one of them"),
        )),
        _ => Ok(beside.or(within)),
    }
}

/// An agent, by its id or by its path: one of them.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PostTarget)]
pub(super) struct Named {
    /// Its UUID.
    #[schema(value_type = Option<AgentId>)]
    agent_id: Option<String>,
    /// Its path.
    path: Option<String>,
}

impl Named {
    /// Returns the agent that it names.
    fn target(self, field: &str) -> Result<Target, Problem> {
        let at = |name: &str| format!("{field}/{name}");
        match (self.agent_id, self.path) {
            (Some(id), None) => {
                let parsed: Result<PostTarget, _> = id.parse();
                match parsed {
                    Ok(PostTarget::Agent(agent)) => Ok(Target::Agent(agent)),
                    Ok(PostTarget::Path(_)) => Err(Problem::invalid_field(
                        &at("agent_id"),
                        format!("`{id}` is a path; give it as `path`"),
                    )),
                    Err(error) => Err(Problem::invalid_field(&at("agent_id"), error.to_string())),
                }
            }
            (None, Some(path)) if path.starts_with('/') => Ok(target(&path)),
            (None, Some(path)) => Err(Problem::invalid_field(
                &at("path"),
                format!("`{path}` does not begin with `/`, as paths do"),
            )),
            (Some(_), Some(_)) => Err(Problem::invalid_field(
                field,
                "`agent_id` and `path` both name an agent; leave one of them out",
            )),
            (None, None) => Err(Problem::invalid_field(
                field,
                "nothing names an agent; say `agent_id` or `path`",
            )),
        }
    }
}

/// Below which agent one is made, as what.
pub(super) fn below(parent: Option<Named>, kind: Option<String>) -> Result<Option<Below>, Problem> {
    match (parent, kind) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(Problem::missing_field(
            "/kind",
            "give in `kind` its role below that agent: `sub`, `memory` or `search`",
        )),
        (None, Some(_)) => Err(Problem::missing_field(
            "/parent",
            "give the agent above it in `parent`; without one, the path determines the kind",
        )),
        (Some(parent), Some(kind)) => {
            let kind = read_field("/kind", &kind)?;
            let parent = parent.target("/parent")?;
            Ok(Some(Below { parent, kind }))
        }
    }
}
