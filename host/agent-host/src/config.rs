//! The configuration: one file, TOML or JSON, the same shape in both, and strict.
//!
//! A key that is not known is an error that names the key and the nearest known one, because a grant or a deny list that is silently
//! not read is worse than a host that does not start. The environment may overlay single keys. Never in here: anything that acts on it.

mod agents;
mod buckets;
mod chat_provider;
mod check;
mod component;
mod directories;
mod environment;
mod file;
mod file_system;
#[cfg(test)]
mod fuzz;
mod identity;
mod key;
mod limits;
mod mute;
mod network;
mod overlay;
mod paths;
mod patterns;
mod personas;
mod place;
mod queue;
mod ranges;
mod secrets;
mod server;
#[cfg(test)]
mod tests;
mod unmatched;

pub(crate) use check::{Finding, Severity, check};
pub(crate) use component::{BUILT_INS, ComponentConfig};
pub(crate) use file::load;
pub(crate) use key::closest;
pub(crate) use limits::LimitsConfig;
pub(crate) use mute::mute;
#[cfg(test)]
pub(crate) use overlay::overlaid;
pub(crate) use place::locate;
use queue::QueueConfig;
pub(crate) use secrets::{SecretSource, read as secrets};
pub(crate) use server::ServerConfig;
pub(crate) use unmatched::unmatched;

use domain::definition::Definition;
use domain::path::{ModelRole, UserRule, UserRules};
use domain::persona::Persona;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The whole configuration of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "agent-host configuration")]
pub(crate) struct Config {
    /// The agents that this host serves.
    pub(crate) agents: Vec<Definition>,
    /// WebAssembly components and what each is granted, by name. The built-in `assistant`, `worker`, `tutor`, `thought`, `evaluator`,
    /// `files`, `web` and `lists` need no entry unless they are to offer their tools, or are to be granted something.
    pub(crate) components: BTreeMap<String, ComponentConfig>,
    /// Whether every component, the built-in ones too, has to be pinned by `sha256`: one that is not is refused, so that no changed file is
    /// given the grant of the one before.
    pub(crate) require_pins: bool,
    /// Personas: identities with permissions, put over threads. Each narrows what agents may do that work as it; none names a model.
    pub(crate) personas: Vec<Persona>,
    /// The model alias that is meant when nobody names one. Not needed when there is only one.
    pub(crate) default_model: Option<String>,
    /// Secrets by name, and where their values come from: `{ env = "NAME" }`, `{ file = "path" }` or `{ command = ["program", "word"] }`.
    /// No value ever stands here.
    pub(crate) secrets: BTreeMap<String, SecretSource>,
    /// Where models are, by name.
    pub(crate) providers: BTreeMap<String, llm::ProviderConfig>,
    /// Models by alias. Only these can be asked.
    pub(crate) models: BTreeMap<String, llm::ModelConfig>,
    /// How often and when a failed call of a model is made again.
    pub(crate) retry: llm::RetryLimits,
    /// How long calls of models may take.
    pub(crate) timeouts: llm::Timeouts,
    /// When a failing provider is left alone.
    pub(crate) breaker: llm::BreakerLimits,
    /// What the host as a whole may take on, and how far agents may go with each other.
    pub(crate) limits: LimitsConfig,
    /// What happens to words that arrive while their agent is busy.
    pub(crate) queue: QueueConfig,
    /// Where the host listens and keeps its data.
    pub(crate) server: ServerConfig,
    /// Who may do what with the agents of which subtree of paths. Without a rule that fits a user, roles alone decide; rules only narrow. As
    /// soon as one of a user's rules permits something (`read`, `write`), what none of them covers is not there for them; one with `none`
    /// wins over all others, and takes all that is below with it.
    pub(crate) path_rules: Vec<UserRule>,
    /// The models of the roles that agents have by their paths, by alias: `user`, `subagent`, `memory`, `memorySearch`, `task`. What a
    /// message or a session says goes before them, and what an agent's definition says comes after.
    pub(crate) roles: BTreeMap<ModelRole, String>,
}

impl Config {
    /// The part that the model gateway reads.
    pub(crate) fn gateway(&self) -> llm::Config {
        llm::Config {
            default_model: self.default_model.clone(),
            providers: self.providers.clone(),
            models: self.models.clone(),
            retry: self.retry,
            timeouts: self.timeouts,
            breaker: self.breaker,
        }
    }

    /// What the broker keeps.
    pub(crate) fn broker(&self) -> broker::Limits {
        broker::Limits { queue: self.queue.into(), ..self.limits.broker() }
    }

    /// The agents as they are to be driven: one that names a `chat.provider` and no model has that provider's model.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        let mut definitions = self.agents.clone();
        for definition in &mut definitions {
            // What is wrong with it is an error of the check.
            if let Ok(Some(alias)) = chat_provider::model(self, definition) {
                definition.model = Some(alias.to_owned());
            }
        }
        definitions
    }

    /// What the broker is told of agents by their paths.
    pub(crate) fn path_settings(&self) -> broker::PathSettings {
        // What is wrong with them is an error of the check.
        broker::PathSettings { rules: UserRules::new(&self.path_rules).unwrap_or_default(), models: self.roles.clone() }
    }

    /// The configured model that a name means: an alias, the provider's name of a model, or both with a slash between.
    fn model(&self, name: &str) -> Option<(&str, &llm::ModelConfig)> {
        let named = |model: &llm::ModelConfig| model.model == name || format!("{}/{}", model.provider, model.model) == name;
        let found = self.models.get_key_value(name).or_else(|| self.models.iter().find(|(_, model)| named(model)));
        found.map(|(alias, model)| (alias.as_str(), model))
    }

    /// The configured model that is meant when nobody names one.
    fn model_by_default(&self) -> Option<(&str, &llm::ModelConfig)> {
        match &self.default_model {
            Some(name) => self.model(name),
            None => self.models.iter().next().filter(|_| self.models.len() == 1).map(|(alias, model)| (alias.as_str(), model)),
        }
    }

    /// Names of providers that answer from a script.
    pub(crate) fn scripted(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().filter(|(_, provider)| provider.kind == llm::ProviderKind::Scripted).map(|(name, _)| name.as_str())
    }
}

/// A configuration with where it came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loaded {
    /// What it says.
    pub(crate) config: Config,
    /// The file.
    pub(crate) file: PathBuf,
    /// Environment variables that overlaid it.
    pub(crate) overlaid: Vec<String>,
}

impl Loaded {
    /// The folder from which relative paths start.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// A path of the configuration, seen from the file's folder.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        self.folder().join(path)
    }

    /// Whether it is written as TOML, and not as JSON.
    pub(crate) fn is_toml(&self) -> bool {
        self.file.extension().is_some_and(|extension| extension == "toml")
    }

    /// Where data is kept.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.config.server.data_dir.as_ref().map_or_else(place::state_dir, |path| self.resolve(path))
    }

    /// Where the bearer token is kept.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.config.server.token_file.as_ref().map_or_else(|| self.data_dir().join("token"), |path| self.resolve(path))
    }
}

/// The JSON Schema of the configuration.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(Config).to_value()
}
