//! Resolved configurations: the view of the host for the agents of one definition, serialised
//! once.
//!
//! Every basis names a resolved configuration by digests. A run keeps the one that it began with.
//! So all its model calls have the same tools in the same order, and its command lines read the
//! same files of skills. The *rights* of an agent are a different matter: the present resolved
//! configuration decides them.

mod kept;
mod offered;
#[cfg(test)]
mod tests;

use crate::catalogue::Catalogue;
use crate::schemas::{GivenUp, Schema};
use domain::authority::{Caller, Ceiling, Denies, Permissions};
use domain::basis::{Overrides, Peer, ResolvedConfigDigests};
use domain::compaction::{MESSAGE_TOKENS, text_tokens};
use domain::definition::{Definition, DefinitionId, Operations};
use domain::delegate::{self, Offers, OperationRule, Presentation};
use domain::digest::Digest;
use domain::direct_message::{self, Reachable};
use domain::event::RunStarted;
use domain::memory;
use domain::panels;
use domain::sections::Known;
use domain::skill::SkillSet;
use domain::step::Toolset;
use domain::tool::ToolDefinition;
use domain::trigger;
use domain::user::UserId;
use kept::Kept;
use offered::{Offered, Tooling};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use store::{ReadError, Store};

/// Number of resolved configurations of earlier configurations that are kept.
const EARLIER_CONFIGS_MAX: usize = 256;
/// Bytes of the documents of those that are kept, the files of skills among them.
const EARLIER_BYTES_MAX: usize = 64 << 20;
/// Number of resolved configurations of users' definitions that are kept.
const MADE_CONFIGS_MAX: usize = 512;
/// Bytes of the documents of those that are kept.
const MADE_CONFIGS_BYTES_MAX: usize = 32 << 20;
/// The key of the names of fixed settings, in addition to those of prompt and settings.
const FIXED: &str = "fixed";

/// Bytes with their digest.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) digest: Digest,
    pub(crate) bytes: Arc<Vec<u8>>,
}

impl Sealed {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            digest: Digest::of(&bytes),
            bytes: Arc::new(bytes),
        }
    }

    /// Seals a JSON document. Serialising what this crate builds cannot fail.
    pub(crate) fn json(value: &impl serde::Serialize) -> Self {
        Self::new(serde_json::to_vec(value).unwrap_or_default())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The view of the host for one definition's agents, with the ceiling of their grants.
#[derive(Debug)]
pub(crate) struct ResolvedConfig {
    pub(crate) settings: Sealed,
    pub(crate) tools: Sealed,
    pub(crate) peers: Sealed,
    sealed_ceiling: Sealed,
    pub(crate) ceiling: Arc<Ceiling>,
    pub(crate) tool_list: Arc<Vec<ToolDefinition>>,
    /// The operations of `delegate` as tools, for models that get those in its place. None for a
    /// run that began with an earlier configuration, before the host was started.
    operations: Arc<Vec<ToolDefinition>>,
    pub(crate) peer_list: Vec<Peer>,
    /// The skills, with their files as they were read.
    pub(crate) skills: Arc<SkillSet>,
    /// The document by which they are stored; none without skills.
    frozen_skills: Option<Sealed>,
    arguments: Arguments,
}

/// The schemas of tools' arguments, by tool, or the reason why one cannot be used.
type Arguments = HashMap<String, Result<Schema, String>>;

/// The resolved configurations of all definitions as they are configured, and those that earlier
/// runs began with.
///
/// Those of users' definitions are resolved on demand, so that making and removing them costs
/// nothing here. They include the schemas of the results that tools promise.
pub(crate) struct ResolvedConfigs {
    catalogue: Arc<Catalogue>,
    configured: Arc<BTreeMap<DefinitionId, Arc<ResolvedConfig>>>,
    made: Mutex<Kept<DefinitionId>>,
    earlier: Arc<Mutex<Kept<ResolvedConfigDigests>>>,
    tooling: Arc<Tooling>,
    pub(crate) delegates: Offers,
}

impl ResolvedConfigs {
    pub(crate) fn new(catalogue: Arc<Catalogue>) -> Self {
        let mut tooling = Tooling::new(&catalogue);
        let delegates = Offered {
            catalogue: &catalogue,
            tooling: &tooling,
        }
        .delegates();
        tooling.delegate(&delegates);
        let offered = Offered {
            catalogue: &catalogue,
            tooling: &tooling,
        };
        let configured = catalogue
            .definitions()
            .filter(|definition| definition.made_by.is_none())
            .map(|definition| {
                let resolved = ResolvedConfig::resolve(definition, &offered);
                (definition.agent_id.clone(), Arc::new(resolved))
            })
            .collect();
        Self {
            configured: Arc::new(configured),
            made: Mutex::new(Kept::at_most(MADE_CONFIGS_MAX, MADE_CONFIGS_BYTES_MAX)),
            earlier: Arc::new(Mutex::new(Kept::at_most(
                EARLIER_CONFIGS_MAX,
                EARLIER_BYTES_MAX,
            ))),
            tooling: Arc::new(tooling),
            delegates,
            catalogue,
        }
    }

    /// Returns those of a catalogue that differs only in this user's definitions.
    ///
    /// Unchanged parts are shared. Changed parts are resolved again on demand, and stay for the
    /// runs that began with them.
    pub(crate) fn renewed(&self, catalogue: Arc<Catalogue>, user: &UserId) -> Self {
        let mut made = self
            .made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        // A user's agents know of each other.
        let replaced = made.take(|id| {
            let definition = self.catalogue.definition(id);
            definition.is_none_or(|definition| definition.made_by.as_ref() == Some(user))
        });
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        for resolved in replaced {
            earlier.keep(resolved.digests(), resolved);
        }
        drop(earlier);
        Self {
            catalogue,
            configured: self.configured.clone(),
            made: Mutex::new(made),
            earlier: self.earlier.clone(),
            tooling: self.tooling.clone(),
            delegates: self.delegates.clone(),
        }
    }

    /// Returns the resolved configuration of a definition as it is configured.
    pub(crate) fn of(&self, definition: &DefinitionId) -> Option<Arc<ResolvedConfig>> {
        let definition = self.catalogue.definition(definition)?;
        Some(self.resolved(definition))
    }

    /// Returns the resolved configuration of a definition of the catalogue.
    pub(crate) fn resolved(&self, definition: &Definition) -> Arc<ResolvedConfig> {
        let id = &definition.agent_id;
        if let Some(configured) = self.configured.get(id) {
            return configured.clone();
        }
        let kept = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = kept().get(id) {
            return there.clone();
        }
        let offered = Offered {
            catalogue: &self.catalogue,
            tooling: &self.tooling,
        };
        let resolved = Arc::new(ResolvedConfig::resolve(definition, &offered));
        kept().keep(id.clone(), resolved.clone());
        resolved
    }

    /// Forgets the resolved configurations of users' definitions, until they are asked for again.
    pub(crate) fn forget_made(&self) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.take(|_| true);
    }

    /// Returns the resolved configuration that a run began with, if it is in memory.
    pub(crate) fn begun_with(&self, started: &RunStarted) -> Option<Arc<ResolvedConfig>> {
        let digests = started.resolved_config;
        self.of(&started.definition)
            .filter(|current| current.digests() == digests)
            .or_else(|| {
                let earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
                earlier.get(&digests).cloned()
            })
    }

    /// Returns the resolved configuration that a run began with, whatever is configured now. None
    /// if it is no longer stored.
    pub(crate) async fn of_run(
        &self,
        store: &Store,
        started: &RunStarted,
    ) -> Result<Option<Arc<ResolvedConfig>>, ReadError> {
        if let Some(there) = self.begun_with(started) {
            return Ok(Some(there));
        }
        let digests = started.resolved_config;
        let mut read = Vec::new();
        for digest in digests.all() {
            let Some(bytes) = store.blob(digest).await? else {
                return Ok(None);
            };
            read.push(Sealed {
                digest,
                bytes: Arc::new(bytes),
            });
        }
        let Some(mut resolved) = ResolvedConfig::read(&digests, read) else {
            return Ok(None);
        };
        let tools: Vec<ToolDefinition> = resolved.all_tools().cloned().collect();
        match self.catalogue.schemas().compile_arguments(&tools).await {
            Ok(arguments) => resolved.arguments = arguments.into_iter().collect(),
            // Not remembered: it may succeed the next time.
            Err(given_up) => {
                let refused =
                    |tool: &ToolDefinition| (tool.name.clone(), Err(given_up.to_string()));
                resolved.arguments = tools.iter().map(refused).collect();
                return Ok(Some(Arc::new(resolved)));
            }
        }
        let resolved = Arc::new(resolved);
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.keep(digests, resolved.clone());
        Ok(Some(resolved))
    }

    /// Returns the tools that the host builds itself: those of the memory, panels and triggers,
    /// and those that lead to agents where there are such.
    pub(crate) fn own_tools(&self) -> impl Iterator<Item = ToolDefinition> {
        let delegates = &self.delegates;
        let delegate = (!delegates.0.is_empty()).then(|| delegates.definition());
        let others: Vec<Reachable<'_>> = self
            .catalogue
            .definitions()
            .map(|definition| Reachable {
                id: &definition.agent_id.0,
                description: None,
            })
            .collect();
        let direct_message = if others.len() > 1 {
            direct_message::definitions(&others, true)
        } else {
            Vec::new()
        };
        delegate
            .into_iter()
            .chain(direct_message)
            .chain(memory::definitions(true))
            .chain(panels::definitions())
            .chain(trigger::trigger_tools())
    }

    /// Returns the grant of a component, as the ledger names it.
    pub(crate) fn grant(&self, component: &str) -> Option<&Sealed> {
        self.tooling.sealed_grants.get(component)
    }

    /// Returns the faults of a tool's result; none when it fits or nothing was promised.
    pub(crate) async fn result_error(
        &self,
        tool: &str,
        result: Value,
    ) -> Result<Option<String>, GivenUp> {
        match self.tooling.results.get(tool) {
            Some(schema) => self.catalogue.schemas().complaints(schema, result).await,
            None => Ok(None),
        }
    }

    /// Returns the faults of a tool's arguments, by the schema that the agent was shown.
    pub(crate) async fn arguments_error(
        &self,
        resolved: &ResolvedConfig,
        tool: &str,
        arguments: &Value,
    ) -> Result<Option<String>, GivenUp> {
        match resolved.arguments.get(tool) {
            Some(Ok(schema)) => {
                let schemas = self.catalogue.schemas();
                schemas.complaints(schema, arguments.clone()).await
            }
            Some(Err(unfit)) => Ok(Some(format!(
                "the schema of the arguments cannot be used: {unfit}"
            ))),
            None => Ok(None),
        }
    }

    /// Returns whether the tool promises a result of some shape.
    pub(crate) fn promises_result(&self, tool: &str) -> bool {
        self.tooling.results.contains_key(tool)
    }
}

impl Catalogue {
    /// Returns the estimated tokens of the smallest prompt of each configured definition's agents,
    /// as a call of a model reserves them: the instructions, the tools with their descriptions, and
    /// a short message.
    #[must_use]
    pub fn least_prompts(&self, of_model: Presentation) -> BTreeMap<DefinitionId, u64> {
        let configs = ResolvedConfigs::new(Arc::new(self.clone()));
        let least = configs.configured.iter().filter_map(|(id, resolved)| {
            let definition = self.definition(id)?;
            let tools = resolved.shown(&Toolset::All, of_model);
            let tools: usize = tools.iter().map(ToolDefinition::shown_bytes).sum();
            let reported: usize = resolved.reported_of_tools(definition).iter().sum();
            let bytes = definition.prompt().len() + tools + reported;
            Some((
                id.clone(),
                MESSAGE_TOKENS.saturating_add(text_tokens(bytes)),
            ))
        });
        least.collect()
    }
}

/// Returns a definition's prompt and settings, as its agents see them.
fn settings_of(definition: &Definition) -> Map<String, Value> {
    let mut settings = Map::from_iter([
        ("prompt".to_owned(), Value::from(definition.prompt())),
        (
            "settings".to_owned(),
            Value::from(definition.settings.clone()),
        ),
    ]);
    if !definition.fixed_settings.is_empty() {
        settings.insert(
            FIXED.to_owned(),
            Value::from(definition.fixed_settings.clone()),
        );
    }
    settings
}

impl ResolvedConfig {
    /// Resolves the configuration of a definition's agents.
    fn resolve(definition: &Definition, offered: &Offered<'_>) -> Self {
        let caller = Caller {
            agent: definition,
            denies: &Denies::default(),
            permissions: &Permissions::default(),
        };
        let peer_list = offered.peers(&caller);
        let mut tool_list = offered.tools(&caller, &peer_list);
        let skills = offered.skills(&caller, &mut tool_list);
        let ceiling = offered.ceiling(definition);
        let schema = |tool: &ToolDefinition| offered.tooling.arguments.get(&tool.name).cloned();
        let arguments = tool_list
            .iter()
            .chain(skills.tools())
            .filter_map(|tool| Some((tool.name.clone(), schema(tool)?)))
            .collect();
        Self {
            settings: Sealed::json(&settings_of(definition)),
            tools: Sealed::json(&tool_list),
            peers: Sealed::json(&peer_list),
            sealed_ceiling: Sealed::json(&ceiling),
            ceiling: Arc::new(ceiling),
            arguments,
            tool_list: Arc::new(tool_list),
            operations: offered.tooling.operations.clone(),
            peer_list,
            frozen_skills: skills.freeze().map(Sealed::new),
            skills: Arc::new(skills),
        }
    }

    /// Reads an earlier resolved configuration from its stored documents, in the order of these
    /// digests. The schemas of arguments are compiled later.
    fn read(digests: &ResolvedConfigDigests, sealed: Vec<Sealed>) -> Option<Self> {
        let mut sealed = sealed.into_iter();
        let settings = sealed.next()?;
        let tools = sealed.next()?;
        let peers = sealed.next()?;
        let sealed_ceiling = sealed.next()?;
        let frozen_skills = match digests.skills {
            Some(_) => Some(sealed.next()?),
            None => None,
        };
        let skills = match &frozen_skills {
            Some(sealed) => SkillSet::thaw(&sealed.bytes)?,
            None => SkillSet::default(),
        };
        let tool_list: Vec<ToolDefinition> = serde_json::from_slice(&tools.bytes).ok()?;
        let peer_list = serde_json::from_slice(&peers.bytes).ok()?;
        let ceiling = serde_json::from_slice(&sealed_ceiling.bytes).ok()?;
        Some(Self {
            settings,
            tools,
            peers,
            sealed_ceiling,
            ceiling: Arc::new(ceiling),
            tool_list: Arc::new(tool_list),
            operations: Arc::default(),
            peer_list,
            skills: Arc::new(skills),
            frozen_skills,
            arguments: Arguments::new(),
        })
    }

    /// Returns the bytes of a prompt's sections about tools and peers.
    fn reported_of_tools(&self, definition: &Definition) -> Vec<usize> {
        let tools = self.tool_list.iter();
        let tools: Vec<&ToolDefinition> = tools.filter(|it| it.name != delegate::NAME).collect();
        let known = Known {
            tools: &tools,
            skills: &[],
            has_artifacts: false,
            items: &[],
            panels: None,
            peers: &self.peer_list.iter().collect::<Vec<_>>(),
            off: &definition.prompt_sections_off,
        };
        known.sections().iter().map(|it| it.text.len()).collect()
    }

    /// Returns its settings with the overrides of a run over them, except settings that are fixed.
    pub(crate) fn settings_with(&self, overrides: &Overrides) -> Sealed {
        let mut all: Value = serde_json::from_slice(&self.settings.bytes).unwrap_or_default();
        if let (Some(prompt), Some(there)) = (&overrides.system_prompt, all.get_mut("prompt")) {
            *there = Value::String(prompt.clone());
        }
        let fixed: Vec<Value> = all
            .get(FIXED)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if let Some(Value::Object(settings)) = all.get_mut("settings") {
            let own = overrides
                .settings
                .iter()
                .filter(|(name, _)| !fixed.iter().any(|fixed| fixed == name.as_str()));
            settings.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        }
        Sealed::json(&all)
    }

    /// Returns the digests that identify it.
    pub(crate) fn digests(&self) -> ResolvedConfigDigests {
        ResolvedConfigDigests {
            settings: self.settings.digest,
            tools: self.tools.digest,
            peers: self.peers.digest,
            ceiling: self.sealed_ceiling.digest,
            skills: self.frozen_skills.as_ref().map(|sealed| sealed.digest),
        }
    }

    /// Returns the documents that must be stored for it to be found again.
    pub(crate) fn sealed(&self) -> impl Iterator<Item = Sealed> {
        [
            &self.settings,
            &self.tools,
            &self.peers,
            &self.sealed_ceiling,
        ]
        .into_iter()
        .chain(&self.frozen_skills)
        .cloned()
    }

    /// Returns the number of bytes of these documents.
    fn bytes(&self) -> usize {
        self.sealed().map(|sealed| sealed.bytes.len()).sum()
    }

    /// Returns the tools that a model is shown, and those of the skills.
    fn all_tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tool_list.iter().chain(self.skills.tools())
    }

    /// Returns the tools of a model's call, in the form that its agent's definition names, or that
    /// suits the model. In place of `delegate` these are a tool for each operation, except those
    /// whose name another tool has. They are the same in the same order in every call of a turn.
    pub(crate) fn shown(&self, toolset: &Toolset, of_model: Presentation) -> Vec<ToolDefinition> {
        let is_in = |name: &str| match toolset {
            Toolset::All => true,
            Toolset::Named(names) => names.iter().any(|named| named == name),
            Toolset::None => false,
        };
        let is_split = match self.ceiling.agent.operations {
            Operations::One => false,
            Operations::ByOperation => true,
            Operations::Auto => of_model == Presentation::ByOperation,
        };
        let is_split = is_split && !self.operations.is_empty();
        let operations = self.operations.iter().filter(|tool| {
            is_split && is_in(delegate::NAME) && self.operation_named(&tool.name).is_some()
        });
        let own = self
            .tool_list
            .iter()
            .filter(|tool| is_in(&tool.name) && !(is_split && tool.name == delegate::NAME));
        let shown = operations.chain(own).map(ToolDefinition::shown);
        let mut shown: Vec<ToolDefinition> = shown.collect();
        shown.sort_by(|a, b| a.name.cmp(&b.name));
        shown
    }

    /// Returns the operation of `delegate` with this name, unless a tool has the name: one of those
    /// that its agents are offered.
    pub(crate) fn operation_named(&self, name: &str) -> Option<&'static OperationRule> {
        let rule = delegate::operation_named(name).filter(|_| self.tool(name).is_none())?;
        let offered = &self.tool(delegate::NAME)?.arguments;
        let offered = offered.pointer("/properties/operation/enum")?.as_array()?;
        offered.iter().any(|it| it == name).then_some(rule)
    }

    /// Returns one of its tools.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tool_list.iter().find(|tool| tool.name == name)
    }
}
