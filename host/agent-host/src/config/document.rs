//! The configuration as a whole, and the file that it was read from.

use super::component::ComponentConfig;
use super::hooks::HooksConfig;
use super::limits::{AgentToolsConfig, DelegationConfig, LimitsConfig};
use super::locations;
use super::queue::QueueConfig;
use super::roles::{RoleConfig, RoleForms};
use super::secrets::SecretSource;
use super::server::ServerConfig;
use super::skills::SkillConfig;
use domain::connector::ConnectorSpec;
use domain::definition::Definition;
use domain::digest::Digest;
use domain::path::{ConnectorName, ModelRole, UserRule, UserRules};
use domain::persona::Persona;
use domain::trigger::{TriggerKind, TriggerName, TriggerSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The whole configuration of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(title = "agent-host configuration")]
pub(crate) struct Config {
    /// The agents that this host serves.
    pub(crate) agents: Vec<Definition>,
    /// WebAssembly components and their grants, by name. The built-in `assistant`, `worker`,
    /// `researcher`, `tutor`, `thought`, `evaluator`, `memory`, `files`, `web`, `lists`,
    /// `reading-list`, `coder`, `code` and `external` need no entry unless they are to offer their
    /// tools or to get a grant.
    /// The built-in triggers `schedule`, `heartbeat`, `webhook` and `files-watch` need one only for
    /// folders; the connectors `telegram`, `whatsapp` and `slack` need one for their requests.
    pub(crate) components: BTreeMap<String, ComponentConfig>,
    /// True if every component, built-in ones included, must be pinned by `sha256`. An unpinned
    /// component is refused, so that no changed file gets the grant of the one before.
    pub(crate) require_pins: bool,
    /// Personas: identities with permissions, put over threads. Each narrows what agents may do
    /// that work as it; none names a model.
    pub(crate) personas: Vec<Persona>,
    /// Skills of the operator's, by name: folders that agents with a `toolExposure` of `skills` or
    /// `mixed` read. One with the name of a component is read in place of what is made from the
    /// component's tools.
    pub(crate) skills: BTreeMap<String, SkillConfig>,
    /// The model alias that is used by default. Not needed when there is only one.
    pub(crate) default_model: Option<String>,
    /// The system prompt of agents whose definition says nothing of them: it has neither
    /// `systemPrompt` nor `description`. Without it, theirs is "You are {displayName}."
    pub(crate) default_system_prompt: Option<String>,
    /// Secrets by name, and the sources of their values: `{ env = "NAME" }`, `{ file = "path" }` or
    /// `{ command = ["program", "word"] }`. Values never appear here.
    #[schemars(extend("x-read" = "start"))]
    pub(crate) secrets: BTreeMap<String, SecretSource>,
    /// The providers of models, by name.
    #[schemars(extend("x-read" = "start"))]
    pub(crate) providers: BTreeMap<String, llm::ProviderConfig>,
    /// Models by alias. Only these can be asked.
    pub(crate) models: BTreeMap<String, llm::ModelConfig>,
    /// The number and timing of retries of a failed model call.
    pub(crate) retry: llm::RetryLimits,
    /// The time limits of model calls.
    #[schemars(extend("x-read" = "start"))]
    pub(crate) timeouts: llm::Timeouts,
    /// The conditions under which a failing provider is left alone.
    #[schemars(extend("x-read" = "start"))]
    pub(crate) breaker: llm::BreakerLimits,
    /// Limits on the load of the host as a whole, and on the work that agents give each other.
    pub(crate) limits: LimitsConfig,
    /// The host's own tools with which agents reach each other: which of them no agent has.
    pub(crate) agent_tools: AgentToolsConfig,
    /// Delegations: whether results are used again.
    pub(crate) delegation: DelegationConfig,
    /// The queue for messages that arrive while their agent is busy.
    pub(crate) queue: QueueConfig,
    /// Triggers by name: what makes the host speak to an agent without being spoken to. Each has
    /// exactly one of `schedule`, `heartbeat`, `webhook`, `files` and `events`.
    pub(crate) triggers: BTreeMap<TriggerName, TriggerSpec>,
    /// The two webhooks for words of programs, `/hooks/wake` and `/hooks/agent`; off without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hooks: Option<HooksConfig>,
    /// Connectors by name: how agents talk with people at messaging services.
    pub(crate) connectors: BTreeMap<ConnectorName, ConnectorSpec>,
    /// The address at which the host listens, and the location of its data.
    pub(crate) server: ServerConfig,
    /// Rules on what users may do with the agents in a subtree of paths. Rules only narrow: where
    /// no rule fits a user, roles alone decide. As soon as one of a user's rules permits something
    /// (`read`, `write`), agents that none of them covers do not exist for that user. A rule with
    /// `none` wins over all others, and covers everything below its path too.
    pub(crate) path_rules: Vec<UserRule>,
    /// The models of the roles that agents have by their paths, by alias: `user`, `subagent`,
    /// `memory`, `memorySearch`, `task`. The model of a message or a session takes precedence over
    /// them; that of an agent's definition comes after them. Two more roles, `research` and `code`,
    /// are those of agents to which work for a `researcher` or `coder` is handed: they go before
    /// `subagent`, for a definition that names no model. The role `heartbeat` is for the turns that
    /// heartbeats begin, unless they name a model themselves. In place of an alias a role may have
    /// a table with `model` and `modelAllowlist`: the models that may answer agents in the role,
    /// and agents that work for them.
    #[schemars(with = "BTreeMap<ModelRole, RoleForms>")]
    pub(crate) roles: BTreeMap<ModelRole, RoleConfig>,
}

impl Config {
    /// Returns whether an external agent signs with a secret.
    pub(super) fn signs_with(&self, secret: &str) -> bool {
        let mut programs = self.agents.iter().filter_map(Definition::program);
        programs.any(|program| program.secret == secret)
    }

    /// Returns whether calls from outside are verified with a secret.
    pub(super) fn verifies_with(&self, secret: &str) -> bool {
        let of_hooks = self.hooks.as_ref().map(|hooks| hooks.token.as_str());
        let mut of_triggers = self.triggers.values().filter_map(|spec| match &spec.on {
            TriggerKind::Webhook(webhook) => Some(webhook.auth.secret()),
            _ => None,
        });
        let checks = self.connectors.values();
        let mut checks = checks.filter_map(|spec| spec.webhook.as_ref());
        of_hooks == Some(secret)
            || of_triggers.any(|named| named == secret)
            || checks.any(|it| it.secret() == secret || it.verify_token() == Some(secret))
    }

    /// Returns the triggers that the configuration makes: those that it has, and those of `hooks`.
    pub(crate) fn all_triggers(&self) -> BTreeMap<TriggerName, TriggerSpec> {
        let of_hooks = self.hooks.iter().flat_map(HooksConfig::triggers);
        self.triggers.clone().into_iter().chain(of_hooks).collect()
    }

    /// Returns the connectors, each with the queue's settings of its channel beneath its own.
    pub(crate) fn all_connectors(&self) -> BTreeMap<ConnectorName, ConnectorSpec> {
        let connectors = self.connectors.clone().into_iter();
        connectors
            .map(|(name, mut spec)| {
                spec.queue = spec.queue.over(self.queue.of_channel(&name));
                (name, spec)
            })
            .collect()
    }

    /// Returns the digest of all of it, by which records tell what a turn began with.
    pub(crate) fn digest(&self) -> Digest {
        // Serialising what was read cannot fail.
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns the part that the model gateway reads.
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

    /// Returns the limits of the broker.
    pub(crate) fn broker(&self) -> broker::Limits {
        broker::Limits {
            queue: (&self.queue).into(),
            delegation_cache: self.delegation.cache,
            ..self.limits.broker()
        }
    }

    /// Returns the agents as they are driven. One that names a `chat.provider` and no model has
    /// that provider's model, and one of which nothing is said has the default prompt.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        let mut definitions = self.agents.clone();
        for definition in &mut definitions {
            definition.component = definition.driver().to_owned();
            if let Some(program) = &mut definition.external {
                program
                    .callback_base
                    .get_or_insert_with(|| self.server.base());
            }
            // What is wrong with it is an error of the check.
            if let Ok(Some(alias)) = chosen_model(self, definition) {
                definition.model = Some(alias.to_owned());
            }
            if definition.says_nothing() {
                definition
                    .system_prompt
                    .clone_from(&self.default_system_prompt);
            }
        }
        definitions
    }

    /// Returns the settings of agents by their paths, for the broker.
    pub(crate) fn path_settings(&self) -> broker::PathSettings {
        // What is wrong with them is an error of the check.
        broker::PathSettings {
            rules: UserRules::new(&self.path_rules).unwrap_or_default(),
            models: self.of_roles(|role| role.model.clone()),
            role_lists: self.of_roles(|role| role.model_allowlist.clone()),
        }
    }

    /// Returns what roles have, where they have it.
    fn of_roles<T>(&self, of: impl Fn(&RoleConfig) -> Option<T>) -> BTreeMap<ModelRole, T> {
        let roles = self.roles.iter();
        roles
            .filter_map(|(role, has)| Some((*role, of(has)?)))
            .collect()
    }

    /// Returns the configured model for a name: an alias, the provider's name of a model, or both
    /// joined by a slash.
    pub(super) fn model(&self, name: &str) -> Option<(&str, &llm::ModelConfig)> {
        let named = |model: &llm::ModelConfig| {
            model.model == name || format!("{}/{}", model.provider, model.model) == name
        };
        let found = self
            .models
            .get_key_value(name)
            .or_else(|| self.models.iter().find(|(_, model)| named(model)));
        found.map(|(alias, model)| (alias.as_str(), model))
    }

    /// Returns whether the model of an alias is a program of the operating system.
    pub(super) fn is_program(&self, alias: &str) -> bool {
        let provider = self.models.get(alias).map(|model| &model.provider);
        let provider = provider.and_then(|name| self.providers.get(name));
        provider.is_some_and(|provider| provider.program.is_some())
    }

    /// Returns the configured model that is used by default.
    pub(super) fn model_by_default(&self) -> Option<(&str, &llm::ModelConfig)> {
        match &self.default_model {
            Some(name) => self.model(name),
            None => self
                .models
                .iter()
                .next()
                .filter(|_| self.models.len() == 1)
                .map(|(alias, model)| (alias.as_str(), model)),
        }
    }

    /// Returns the names of providers that answer from a script.
    pub(crate) fn scripted(&self) -> impl Iterator<Item = &str> {
        self.providers
            .iter()
            .filter(|(_, provider)| provider.kind == llm::ProviderKind::Scripted)
            .map(|(name, _)| name.as_str())
    }
}

/// A configuration with its origin.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loaded {
    /// The configuration.
    pub(crate) config: Config,
    pub(crate) file: PathBuf,
    /// The text of the file.
    pub(crate) written: Arc<str>,
    /// The data folder that the command line names; it goes before the configuration's.
    pub(crate) data: Option<PathBuf>,
    /// True if the command line trusts whoever listens at the host's address.
    pub(crate) trusts_address: bool,
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

    /// Returns the same with the address at which the host really listens.
    pub(crate) fn listening_at(&self, address: SocketAddr) -> Self {
        let mut there = self.clone();
        there.config.server.listen = address;
        there
    }

    /// Returns true if it is written as TOML, and not as JSON.
    pub(crate) fn is_toml(&self) -> bool {
        self.file
            .extension()
            .is_some_and(|extension| extension == "toml")
    }

    /// Returns the folder for data.
    pub(crate) fn data_dir(&self) -> PathBuf {
        match (&self.data, &self.config.server.data_dir) {
            (Some(named), _) => named.clone(),
            (None, Some(path)) => self.resolve(path),
            (None, None) => locations::state_dir(),
        }
    }

    /// Returns the file with the key by which the host proves itself to commands.
    pub(crate) fn proof_file(&self) -> PathBuf {
        self.data_dir().join("proof")
    }

    /// Returns the file that holds the bearer token.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.config
            .server
            .token_file
            .as_ref()
            .map_or_else(|| self.data_dir().join("token"), |path| self.resolve(path))
    }
}

/// The JSON Schema of the configuration.
pub(crate) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    if let Some(entry) = schema.pointer_mut("/$defs/PatternList/items") {
        // No name has blanks around it, and none is empty.
        *entry = json!({ "type": "string", "pattern": r"^\S(.*\S)?$" });
    }
    schema
}

/// Returns the alias of the model that an agent's `chat.provider` chooses. It is the default model
/// if that is at the provider, or else the provider's only one. A provider is named by its name in
/// `providers` or, if none has that name, by its kind.
///
/// None when the agent names no provider or also a model, or when no model is configured at all,
/// which is a finding of its own.
///
/// # Errors
/// No model is at that provider, more than one is, or the agent's model is elsewhere.
pub(super) fn chosen_model<'a>(
    config: &'a Config,
    definition: &Definition,
) -> Result<Option<&'a str>, String> {
    let Some(meant) = definition
        .chat
        .provider
        .as_deref()
        .filter(|_| !config.models.is_empty())
    else {
        return Ok(None);
    };
    let is_kind = |name: &str| {
        config
            .providers
            .get(name)
            .is_some_and(|provider| json!(provider.kind) == *meant)
    };
    let by_name = config.providers.contains_key(meant);
    let is_there = |model: &llm::ModelConfig| {
        if by_name {
            model.provider == meant
        } else {
            is_kind(&model.provider)
        }
    };
    if let Some((alias, model)) = definition
        .model
        .as_deref()
        .and_then(|name| config.model(name))
    {
        if is_there(model) {
            return Ok(None);
        }
        return Err(format!(
            "the agent's model `{alias}` is at `{}` and not at `{meant}`; leave one of the two out",
            model.provider
        ));
    }
    if let Some((alias, _)) = config
        .model_by_default()
        .filter(|(_, model)| is_there(model))
    {
        return Ok(Some(alias));
    }
    let there: Vec<&str> = config
        .models
        .iter()
        .filter(|(_, model)| is_there(model))
        .map(|(alias, _)| alias.as_str())
        .collect();
    only_one(config, meant, &there).map(Some)
}

/// Returns the only one of the models at a provider.
fn only_one<'a>(config: &Config, meant: &str, there: &[&'a str]) -> Result<&'a str, String> {
    let quoted = |names: &[&str]| {
        names
            .iter()
            .map(|name| format!("`{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match there {
        [alias] => Ok(*alias),
        [] => {
            let known: Vec<&str> = config.providers.keys().map(String::as_str).collect();
            Err(format!(
                "no model of `models` is at a provider of the name or kind `{meant}`; providers \
                 are {}",
                quoted(&known)
            ))
        }
        several => Err(format!(
            "{} are at `{meant}`: say which one with `model`",
            quoted(several)
        )),
    }
}
