//! Configuration of an agent other than its address, and the parent of a new agent, as request
//! bodies give them.

use super::given;
use crate::input::target;
use crate::problem::{Problem, RequestPart};
use broker::{Below, Target};
use domain::agent::describe::ConfigChanges;
use domain::path::{AgentConfig, NotAKind, PathKind, PostTarget};
use http::StatusCode;
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
    /// Its purpose: 8 KiB at most.
    description: Option<String>,
    /// Its own system prompt, in place of its definition's: 64 KiB at most.
    system_prompt: Option<String>,
    /// The folder that it works in: 4,096 bytes at most, without `..`.
    workspace_dir: Option<String>,
    /// The app that it belongs to: 1 to 64 letters, digits, `-`, `_` and `.`.
    app_id: Option<String>,
}

impl From<NewConfig> for AgentConfig {
    fn from(new: NewConfig) -> Self {
        let NewConfig {
            name,
            username,
            description,
            system_prompt,
            workspace_dir,
            app_id,
        } = new;
        Self {
            name,
            username,
            description,
            system_prompt,
            workspace_dir,
            app_id,
        }
    }
}

/// Fields to change of what is kept about an agent: they are merged, and `null` takes one away.
#[derive(Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = AgentConfigChanges)]
pub(super) struct NewFields {
    /// Its user name, for mentions as `@name`: 1 to 64 letters, digits, `-`, `_` and `.`.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    username: Option<Option<String>>,
    /// Its purpose: 8 KiB at most.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    /// The folder that it works in: 4,096 bytes at most, without `..`.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    workspace_dir: Option<Option<String>>,
    /// The app that it belongs to: 1 to 64 letters, digits, `-`, `_` and `.`.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    app_id: Option<Option<String>>,
}

impl From<NewFields> for ConfigChanges {
    fn from(new: NewFields) -> Self {
        let NewFields {
            username,
            description,
            workspace_dir,
            app_id,
        } = new;
        Self {
            username,
            description,
            workspace_dir,
            app_id,
        }
    }
}

/// An agent, by its id or by its path: one of them.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = PostTarget)]
pub(super) struct Named {
    /// Its UUID.
    agent_id: Option<String>,
    /// Its path.
    path: Option<String>,
}

impl Named {
    /// Returns the agent that it names. A path from before paths had their present form is accepted
    /// too.
    fn target(self, field: &str) -> Result<Target, Problem> {
        let at = |name: &str| format!("{field}/{name}");
        let invalid = |detail: String, field: &str| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_FIELD", detail)
                .at(RequestPart::Body(field))
        };
        match (self.agent_id, self.path) {
            (Some(id), None) => {
                let parsed: Result<PostTarget, _> = id.parse();
                match parsed {
                    Ok(PostTarget::Agent(agent)) => Ok(Target::Agent(agent)),
                    Ok(PostTarget::Path(_)) => Err(invalid(
                        format!("`{id}` is a path; give it as `path`"),
                        &at("agentId"),
                    )),
                    Err(error) => Err(invalid(error.to_string(), &at("agentId"))),
                }
            }
            (None, Some(path)) if path.starts_with('/') => Ok(target(&path)),
            (None, Some(path)) => Err(invalid(
                format!("`{path}` does not begin with `/`, as paths do"),
                &at("path"),
            )),
            (Some(_), Some(_)) => Err(invalid(
                "`agentId` and `path` both name an agent; leave one of them out".to_owned(),
                field,
            )),
            (None, None) => Err(invalid(
                "nothing names an agent; say `agentId` or `path`".to_owned(),
                field,
            )),
        }
    }
}

/// Below which agent one is made, as what.
pub(super) fn below(parent: Option<Named>, kind: Option<String>) -> Result<Option<Below>, Problem> {
    let missing = |detail: &str, field: &str| {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "MISSING_FIELD", detail)
            .at(RequestPart::Body(field))
    };
    match (parent, kind) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing(
            "give in `kind` its role below that agent: `sub`, `memory` or `search`",
            "/kind",
        )),
        (None, Some(_)) => Err(missing(
            "give the agent above it in `parent`; without one, the path determines the kind",
            "/parent",
        )),
        (Some(parent), Some(kind)) => {
            let kind: PathKind = kind.parse().map_err(|error: NotAKind| {
                Problem::new(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    "INVALID_FIELD",
                    error.to_string(),
                )
                .at(RequestPart::Body("/kind"))
            })?;
            Ok(Some(Below {
                parent: parent.target("/parent")?,
                kind,
            }))
        }
    }
}
