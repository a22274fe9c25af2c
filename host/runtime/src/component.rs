//! A component that is loaded: checked, compiled, linked, and asked once what it is.

use crate::exports::{Version, World};
use crate::guest_semaphore::Gate;
use crate::manifest::ReadManifest;
use domain::connector::Abilities;
use domain::digest::Digest;
use domain::grant::capability::{self, Buckets};
use domain::manifest::{BadManifest, Manifest};
use domain::operation::Progress;
use domain::tool::wording::{self, BadWording};
use domain::tool::{ToolDefinition, ToolError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The beginning of the interfaces by which a component opens buckets.
const BUCKETS_IMPORT: &str = "wasi:keyvalue/";

/// The self-description of an agent component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDescription {
    /// A short name.
    pub id: String,
    /// Its name for people.
    pub display_name: String,
    /// Its purpose.
    pub summary: String,
    /// The structured session types that it can lead.
    pub session_types: Vec<String>,
    /// Tools that it is of little use without.
    pub wants: Vec<String>,
    /// The memo formats that it can read.
    pub memo_formats: Vec<u32>,
}

/// The self-description of a trigger component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerDescription {
    /// A short name.
    pub id: String,
    /// Its purpose.
    pub summary: String,
    /// The JSON Schema of its configuration, which is an object.
    pub configuration: Value,
    /// The kinds of trigger events that it can deal with: `clock`, `heartbeat`, `webhook`, `files`,
    /// `events`.
    pub trigger_events: Vec<String>,
    /// The state formats that it can read.
    pub state_formats: Vec<u32>,
}

/// The self-description of a connector component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectorDescription {
    /// A short name.
    pub id: String,
    /// Its purpose.
    pub summary: String,
    /// The JSON Schema of its configuration, which is an object.
    pub configuration: Value,
    /// The abilities of its service.
    #[serde(flatten)]
    pub abilities: Abilities,
}

/// The self-description of a component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "description", rename_all = "snake_case")]
pub enum Described {
    /// An agent.
    Agent(AgentDescription),
    /// A component with these tools: 1 to 128, their names unique within it.
    Tools(Vec<ToolDefinition>),
    /// A trigger.
    Trigger(TriggerDescription),
    /// A connector.
    Connector(ConnectorDescription),
}

impl Described {
    /// Checks for descriptions that are too long, and for invisible characters in them.
    pub(crate) fn check_wording(&self) -> Result<(), BadWording> {
        match self {
            Self::Agent(AgentDescription {
                display_name,
                summary,
                wants,
                ..
            }) => {
                wants
                    .iter()
                    .try_for_each(|want| wording::check_name("wants", want))?;
                wording::check_name("display-name", display_name)?;
                wording::check_description("summary", summary).map(drop)
            }
            Self::Tools(tools) => wording::check_tools(tools),
            Self::Trigger(TriggerDescription {
                summary,
                configuration,
                ..
            })
            | Self::Connector(ConnectorDescription {
                summary,
                configuration,
                ..
            }) => {
                wording::check_description("summary", summary)?;
                check_schema("configuration", configuration)
            }
        }
    }

    /// Returns the kind of plugin that it is, with its article.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Agent(_) => "an agent",
            Self::Tools(_) => "a component of tools",
            Self::Trigger(_) => "a trigger",
            Self::Connector(_) => "a connector",
        }
    }

    /// Checks that this host knows every capability that a tool declares. The error names the tool
    /// and the capability that was probably meant.
    pub(crate) fn check_capabilities(&self, imports: &[String]) -> Result<(), String> {
        let Self::Tools(tools) = self else {
            return Ok(());
        };
        let opens = |import: &String| import.starts_with(BUCKETS_IMPORT);
        let buckets = if imports.iter().any(opens) {
            Buckets::Imported
        } else {
            Buckets::Absent
        };
        for tool in tools {
            for name in &tool.capabilities {
                capability::check(name, buckets)
                    .map_err(|unknown| format!("`{}.capabilities` {unknown}", tool.name))?;
            }
        }
        Ok(())
    }
}

/// Checks every key and every text of a schema for what is too long or hidden.
fn check_schema(place: &str, schema: &Value) -> Result<(), BadWording> {
    match schema {
        Value::String(text) => wording::check_description(place, text).map(drop),
        Value::Array(items) => items.iter().try_for_each(|item| check_schema(place, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            wording::check_name(place, key)?;
            check_schema(&format!("{place}.{key}"), value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// A component that is loaded. Only the runtime that loaded it can run it.
#[derive(Clone)]
pub struct Component {
    pub(crate) digest: Digest,
    /// The name under which its requests are counted: its digest, until it is given a name.
    pub(crate) name: String,
    pub(crate) described: Arc<Described>,
    pub(crate) imports: Arc<[String]>,
    pub(crate) size_bytes: u64,
    pub(crate) wit_version: &'static str,
    pub(crate) manifest: ReadManifest,
    pub(crate) world: Arc<World>,
    pub(crate) gate: Arc<Gate>,
}

impl Component {
    /// Returns tools without code, beside which an agent is tried. Each call gets this answer, and
    /// without one it never ends.
    #[must_use]
    pub fn stand_in(
        tools: Vec<ToolDefinition>,
        answer: Option<Result<Progress, ToolError>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            digest: Digest::of(b"stand-in"),
            name: "stand-in".to_owned(),
            described: Arc::new(Described::Tools(tools)),
            imports: Arc::default(),
            size_bytes: 0,
            wit_version: Version::V0_2.as_str(),
            manifest: None,
            world: Arc::new(World::StandIn(answer)),
            gate: Arc::default(),
        })
    }

    /// Returns the same code under a name of the operator's, with limits of its own: its calls are
    /// counted apart from those of the same code under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            gate: Arc::default(),
            ..self.clone()
        })
    }

    /// Returns the same code in the role of another component: it has that one's name, and its
    /// calls count as that one's.
    #[must_use]
    pub fn in_place_of(&self, other: &Self) -> Arc<Self> {
        Arc::new(Self {
            name: other.name.clone(),
            gate: other.gate.clone(),
            ..self.clone()
        })
    }

    /// The SHA-256 digest of its bytes: what it is known by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns its self-description.
    #[must_use]
    pub fn describes(&self) -> &Described {
        &self.described
    }

    /// The interfaces that it imports, granted or not.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Returns the manifest that its author put into it, or the reason why that is not read; none
    /// when it has none.
    #[must_use]
    pub fn manifest(&self) -> Option<Result<&Manifest, &BadManifest>> {
        self.manifest.as_deref().map(Result::as_ref)
    }

    /// Returns the version that its manifest tells.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        let manifest = self.manifest()?.ok()?;
        Some(manifest.version.as_str()).filter(|version| !version.is_empty())
    }

    /// Returns the version of the interface between plugins and the host that it was built for.
    #[must_use]
    pub fn wit_version(&self) -> &'static str {
        self.wit_version
    }

    /// Returns its size in bytes, uncompiled.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            digest,
            described,
            size_bytes,
            ..
        } = self;
        f.debug_struct("Component")
            .field("digest", digest)
            .field("described", described)
            .field("size_bytes", size_bytes)
            .finish_non_exhaustive()
    }
}
