//! Components and their grants.

use super::locations::text_variable;
use domain::confirm::Confirm;
use domain::digest::Digest;
use domain::egress::EgressGrant;
use domain::grant::{BucketGrant, DirectoryGrant, Grant, GuestLimits, PatternList, SecretGrant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Components that come with the host, by their names in the configuration.
pub(crate) const BUILT_INS: [&str; 21] = [
    "assistant",
    "worker",
    "researcher",
    "tutor",
    "thought",
    "evaluator",
    "memory",
    "files",
    "web",
    "lists",
    "reading-list",
    "coder",
    "code",
    "external",
    "schedule",
    "heartbeat",
    "webhook",
    "files-watch",
    "telegram",
    "whatsapp",
    "slack",
];

/// The built-in components that are agents.
const BUILT_IN_AGENTS: [&str; 9] = [
    "assistant",
    "worker",
    "researcher",
    "tutor",
    "thought",
    "evaluator",
    "memory",
    "reading-list",
    "coder",
];

/// The built-in components that are triggers.
pub(crate) const BUILT_IN_TRIGGERS: [&str; 4] = ["schedule", "heartbeat", "webhook", "files-watch"];

/// A component and what it is granted. What is missing is not granted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ComponentConfig {
    /// The WebAssembly file, relative to the config file's folder. Not needed for the built-in
    /// components.
    pub(crate) path: Option<PathBuf>,
    /// The SHA-256 digest of the file, in hexadecimal digits as `component inspect` prints it. A
    /// file with another digest is not loaded. No other code runs under this name, not even to
    /// finish work that it began before the pin was set.
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9a-fA-F]{64}$"))]
    pub(crate) sha256: Option<Digest>,
    /// Folders that it may use. Its tools read them with the capability `files.read` and write them
    /// with `files.write`, which asks for `files.read` too.
    pub(crate) directories: Vec<DirectoryGrant>,
    /// HTTP requests that it may send. One of its tools sends them only if it names the capability
    /// `net.http`, and only for an agent that may have that. Every request and every redirect is
    /// recorded with the call.
    pub(crate) network: Vec<EgressGrant>,
    /// Environment variables that it sees, with their values. Its tools see them with the
    /// capability `env.read`. A name is not empty and has neither `=` nor NUL.
    pub(crate) environment: BTreeMap<String, EnvironmentValue>,
    /// Buckets of keys and values that it may use. Its tools read a bucket with the capability
    /// `<bucket>.read` and write it with `<bucket>.write`, which asks for `<bucket>.read` too.
    pub(crate) key_value: Vec<BucketGrant>,
    /// Secrets of this configuration that the host puts into its requests, with the capability
    /// `secrets.use`.
    pub(crate) secrets: Vec<SecretGrant>,
    /// Models that an agent component may ask, by alias, with `*` for any run of characters.
    /// Missing is none; all of them for the built-in agents.
    pub(crate) models: Option<PatternList>,
    /// Agents that an agent component may dispatch to, by `agentId`, within the lists of the agent
    /// that it drives. None by default; all of them for the built-in agents.
    pub(crate) agents: Option<PatternList>,
    /// Tools that are called only after a user has approved that very call, whoever makes it.
    /// `"destructive"` means the tools that declare themselves destructive; otherwise a list of
    /// patterns such as `["delete_*"]`.
    pub(crate) confirm: Confirm,
    /// The limits on one of its calls' use of the machine.
    pub(crate) limits: GuestLimits,
}

/// The value of an environment variable that a component sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum EnvironmentValue {
    /// This text.
    Text(String),
    /// The value of a variable in the host's own environment.
    Host(HostVariable),
}

/// A variable of the host's own environment, which has to be set when the host starts. Not for
/// secrets: a component sees the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostVariable {
    /// Its name.
    pub(crate) env: String,
}

impl EnvironmentValue {
    /// The value; none if the host's environment has no such variable, an empty one, or one that is
    /// not text, which the check refuses.
    pub(crate) fn value(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Host(HostVariable { env }) => text_variable(env),
        }
    }
}

impl ComponentConfig {
    /// The grant of a component of this name, with folders as seen from `folder`.
    pub(crate) fn grant(&self, name: &str, folder: &Path) -> Grant {
        let directories = self.directories.iter().map(|directory| DirectoryGrant {
            path: folder.join(&directory.path),
            ..directory.clone()
        });
        let own_agent = self.path.is_none() && BUILT_IN_AGENTS.contains(&name);
        let unless_named = |list: &Option<PatternList>| match list {
            Some(list) => list.clone(),
            None if own_agent => PatternList::everything(),
            None => PatternList::default(),
        };
        Grant {
            directories: directories.collect(),
            network: self.network.clone(),
            environment: self
                .environment
                .iter()
                .filter_map(|(name, value)| Some((name.clone(), value.value()?)))
                .collect(),
            key_value: self.key_value.clone(),
            secrets: self.secrets.clone(),
            models: unless_named(&self.models),
            agents: unless_named(&self.agents),
            confirm: self.confirm.clone(),
            limits: self.limits,
        }
    }
}

/// Lists the names of the built-in components for a message.
pub(super) fn built_in_names() -> String {
    BUILT_INS.map(|name| format!("`{name}`")).join(", ")
}
