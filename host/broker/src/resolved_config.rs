//! Resolved configurations: the view of the host for the agents of one definition, serialised
//! once.
//!
//! Every basis names a resolved configuration by digests. A run keeps the resolved configuration
//! that it began with, so that all its model calls have the same tools in the same order, and its
//! command lines read the same files of skills. What an
//! agent *may* do is another matter: that is decided from the resolved configuration of the present
//! configuration.

use crate::catalogue::Catalogue;
use crate::schemas::{GivenUp, Schema, Schemas};
use domain::authority::{Caller, Ceiling, Denies, Permissions};
use domain::basis::{Overrides, Peer, ResolvedConfigDigests};
use domain::definition::{Definition, DefinitionId};
use domain::delegate;
use domain::digest::Digest;
use domain::event::RunStarted;
use domain::grant::Grant;
use domain::memory;
use domain::panels;
use domain::skill::{self, Offer, SkillSet};
use domain::talk::{self, Reachable};
use domain::tool::ToolDefinition;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use store::{ReadError, Store};

/// Number of resolved configurations of earlier configurations that are kept. With more, the list
/// is begun anew.
const EARLIER_CONFIGS_MAX: usize = 64;
/// Bytes of the documents of those that are kept, the files of skills among them.
const EARLIER_BYTES_MAX: usize = 64 << 20;
/// The key of the names of fixed settings, beside those of prompt and settings.
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
    /// The ceiling. None for a run from before ceilings were frozen.
    pub(crate) ceiling: Option<(Sealed, Arc<Ceiling>)>,
    pub(crate) tool_list: Arc<Vec<ToolDefinition>>,
    pub(crate) peer_list: Vec<Peer>,
    /// The skills, with their files as they were read.
    pub(crate) skills: Arc<SkillSet>,
    /// The document by which they are stored; none where there are none.
    frozen_skills: Option<Sealed>,
    arguments: Arguments,
}

/// The schemas of tools' arguments, by tool, or the reason why one cannot be used.
type Arguments = HashMap<String, Result<Schema, String>>;

/// The resolved configurations of all definitions as they are configured, and those that earlier
/// runs began with.
///
/// They come with the schemas of the results that tools promise.
pub(crate) struct ResolvedConfigs {
    by_definition: BTreeMap<DefinitionId, Arc<ResolvedConfig>>,
    earlier: Mutex<HashMap<ResolvedConfigDigests, Arc<ResolvedConfig>>>,
    results: HashMap<String, Schema>,
    schemas: Schemas,
    grants: BTreeMap<String, Sealed>,
    pub(crate) delegates: Vec<delegate::Target>,
}

impl ResolvedConfigs {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let delegates: Vec<delegate::Target> = delegate::Target::ALL
            .iter()
            .copied()
            .filter(|target| {
                catalogue
                    .definition(&DefinitionId(target.as_str().to_owned()))
                    .is_some()
            })
            .collect();
        let mut tools: Vec<Arc<ToolDefinition>> =
            catalogue.tools().map(|(_, tool)| tool.clone()).collect();
        if !delegates.is_empty() {
            tools.push(Arc::new(delegate::definition(&delegates)));
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let schemas = |tool: &Arc<ToolDefinition>| {
            Some((
                tool.name.clone(),
                catalogue.tool_schemas(&tool.name)?.clone(),
            ))
        };
        let compiled: Vec<_> = tools.iter().filter_map(schemas).collect();
        let arguments: Arguments = compiled
            .iter()
            .map(|(tool, schemas)| (tool.clone(), Ok(schemas.arguments.clone())))
            .collect();
        let results = compiled
            .into_iter()
            .filter_map(|(tool, schemas)| Some((tool, schemas.results?)))
            .collect();
        let grants: BTreeMap<String, Grant> = catalogue
            .tools()
            .map(|(entry, _)| (entry.name.clone(), entry.grant.clone()))
            .collect();
        let code: BTreeMap<String, Digest> = catalogue
            .tools()
            .map(|(entry, _)| (entry.name.clone(), entry.component.digest()))
            .collect();
        let offered = Offered {
            catalogue,
            tools: &tools,
            arguments: &arguments,
            grants: &grants,
            code: &code,
        };
        let by_definition = catalogue
            .definitions()
            .map(|definition| {
                let resolved = ResolvedConfig::resolve(definition, &offered);
                (definition.agent_id.clone(), Arc::new(resolved))
            })
            .collect();
        let grants = catalogue
            .entries()
            .map(|entry| (entry.name.clone(), Sealed::json(&entry.grant)))
            .collect();
        Self {
            by_definition,
            earlier: Mutex::default(),
            results,
            schemas: catalogue.schemas().clone(),
            grants,
            delegates,
        }
    }

    /// Returns the resolved configuration of a definition as it is configured.
    pub(crate) fn of(&self, definition: &DefinitionId) -> Option<&Arc<ResolvedConfig>> {
        self.by_definition.get(definition)
    }

    /// Returns the resolved configuration that a run began with, whatever is configured by now.
    /// None when it is not stored any more.
    pub(crate) async fn of_run(
        &self,
        store: &Store,
        started: &RunStarted,
    ) -> Result<Option<Arc<ResolvedConfig>>, ReadError> {
        let current = self.of(&started.definition);
        let Some(digests) = started
            .resolved_config
            .filter(|frozen| current.is_none_or(|current| current.digests() != *frozen))
        else {
            return Ok(current.cloned());
        };
        if let Some(earlier) = self
            .earlier
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&digests)
        {
            return Ok(Some(earlier.clone()));
        }
        let mut read = Vec::new();
        for digest in [digests.settings, digests.tools, digests.peers]
            .into_iter()
            .chain(digests.ceiling)
            .chain(digests.skills)
        {
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
        match self.schemas.compile_arguments(&tools).await {
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
        let bytes: usize = earlier.values().map(|kept| kept.bytes()).sum();
        if earlier.len() >= EARLIER_CONFIGS_MAX || bytes + resolved.bytes() > EARLIER_BYTES_MAX {
            earlier.clear();
        }
        earlier.insert(digests, resolved.clone());
        Ok(Some(resolved))
    }

    /// Returns the tools that the host builds itself: those of the memory, and those that lead to
    /// agents where there are such.
    pub(crate) fn own_tools(&self) -> impl Iterator<Item = ToolDefinition> {
        let delegate = (!self.delegates.is_empty()).then(|| delegate::definition(&self.delegates));
        let others: Vec<Reachable<'_>> = self
            .by_definition
            .keys()
            .map(|id| Reachable {
                id: &id.0,
                description: None,
            })
            .collect();
        let talk = if others.len() > 1 {
            talk::definitions(&others, true)
        } else {
            Vec::new()
        };
        delegate
            .into_iter()
            .chain(talk)
            .chain(memory::definitions(true))
            .chain(panels::definitions())
    }

    /// Returns the grant of a component, as the ledger names it.
    pub(crate) fn grant(&self, component: &str) -> Option<&Sealed> {
        self.grants.get(component)
    }

    /// Returns the faults of a tool's result; none when it fits or nothing was promised.
    pub(crate) async fn result_error(
        &self,
        tool: &str,
        result: Value,
    ) -> Result<Option<String>, GivenUp> {
        match self.results.get(tool) {
            Some(schema) => self.schemas.complaints(schema, result).await,
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
            Some(Ok(schema)) => self.schemas.complaints(schema, arguments.clone()).await,
            Some(Err(unfit)) => Ok(Some(format!(
                "the schema of the arguments cannot be used: {unfit}"
            ))),
            None => Ok(None),
        }
    }

    /// Returns whether the tool promises a result of some shape.
    pub(crate) fn promises_result(&self, tool: &str) -> bool {
        self.results.contains_key(tool)
    }
}

/// Returns whether another agent may hand work to those of a definition.
fn may_be_called(definition: &Definition, catalogue: &Catalogue) -> bool {
    let denies = Denies::default();
    let permissions = Permissions::default();
    catalogue
        .definitions()
        .filter(|other| other.agent_id != definition.agent_id)
        // What a user makes changes nothing of the configured agents.
        .filter(|other| other.made_by.is_none() || definition.made_by.is_some())
        .any(|other| {
            Caller {
                agent: other,
                denies: &denies,
                permissions: &permissions,
            }
            .may_hand_over(definition, &catalogue.grant_of(other))
            .is_ok()
        })
}

/// The parts of the catalogue that all resolved configurations are made from.
struct Offered<'a> {
    catalogue: &'a Catalogue,
    /// The tools of components and of the host, by name.
    tools: &'a [Arc<ToolDefinition>],
    arguments: &'a Arguments,
    /// The grants of the components that offer tools, by name.
    grants: &'a BTreeMap<String, Grant>,
    /// Their code, by name.
    code: &'a BTreeMap<String, Digest>,
}

impl Offered<'_> {
    /// Returns the agents that a caller may hand work to.
    fn peers(&self, caller: &Caller<'_>) -> Vec<Peer> {
        let granted = self.catalogue.grant_of(caller.agent);
        self.catalogue
            .definitions()
            .filter(|other| {
                other.agent_id != caller.agent.agent_id && caller.may_reach(other, &granted).is_ok()
            })
            .map(|other| Peer {
                id: other.agent_id.0.clone(),
                name: other.display_name.clone(),
                description: other.description.clone(),
            })
            .collect()
    }

    /// Returns the most that an agent of a definition can have.
    fn ceiling(&self, definition: &Definition) -> Ceiling {
        let mut grants = self.grants.clone();
        grants.insert(
            definition.component.clone(),
            self.catalogue.grant_of(definition),
        );
        let known = self
            .catalogue
            .definitions()
            .filter(|other| other.is_known_to(definition))
            .map(|other| other.agent_id.clone());
        Ceiling {
            agent: definition.clone(),
            grants,
            code: self.code.clone(),
            agents: Some(known.collect()),
        }
    }

    /// Returns the tools that an agent may call, by name.
    fn tools(&self, caller: &Caller<'_>, peers: &[Peer]) -> Vec<ToolDefinition> {
        let reachable: Vec<Reachable<'_>> = peers
            .iter()
            .map(|peer| Reachable {
                id: &peer.id,
                description: Some(peer.description.as_str()),
            })
            .collect();
        let own = talk::definitions(&reachable, may_be_called(caller.agent, self.catalogue));
        let allowlist = caller.agent.tool_allowlist.as_ref();
        let settings = caller.agent.memory.as_ref();
        let deep = settings.is_some_and(|settings| settings.search.is_some());
        let of_memory = memory::definitions(deep)
            .into_iter()
            .filter(|tool| memory::is_listed(allowlist, &tool.name));
        let mut tools: Vec<ToolDefinition> = self
            .tools
            .iter()
            .map(|tool| ToolDefinition::clone(tool))
            .chain(own)
            .chain(of_memory)
            .filter(|tool| !self.catalogue.is_disabled(&tool.name))
            .filter(|tool| caller.may_call(tool).is_ok())
            .collect();
        if panels::are_offered(allowlist, &tools) {
            let of_panels = panels::definitions().into_iter();
            tools.extend(of_panels.filter(|tool| caller.may_call(tool).is_ok()));
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    /// Takes the tools of components that are offered as skills, or not at all, from a list, and
    /// returns the skills. The list then has the tool by which they are used.
    fn skills(&self, caller: &Caller<'_>, tools: &mut Vec<ToolDefinition>) -> SkillSet {
        let Some(skills) = self.catalogue.skills_of(caller) else {
            return SkillSet::default();
        };
        tools.retain(|tool| match self.catalogue.tool(&tool.name) {
            Some((entry, _)) => skill::offer(caller.agent, &entry.name) == Offer::Tools,
            None => true,
        });
        if !skills.is_empty() {
            tools.push(skill::bash());
            tools.sort_by(|a, b| a.name.cmp(&b.name));
        }
        skills
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
        let schema = |tool: &ToolDefinition| offered.arguments.get(&tool.name).cloned();
        let arguments = tool_list
            .iter()
            .chain(skills.tools())
            .filter_map(|tool| Some((tool.name.clone(), schema(tool)?)))
            .collect();
        Self {
            settings: Sealed::json(&settings_of(definition)),
            tools: Sealed::json(&tool_list),
            peers: Sealed::json(&peer_list),
            ceiling: Some((Sealed::json(&ceiling), Arc::new(ceiling))),
            arguments,
            tool_list: Arc::new(tool_list),
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
        let ceiling = match digests.ceiling {
            Some(_) => {
                let sealed = sealed.next()?;
                let ceiling = serde_json::from_slice(&sealed.bytes).ok()?;
                Some((sealed, Arc::new(ceiling)))
            }
            None => None,
        };
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
        Some(Self {
            settings,
            tools,
            peers,
            ceiling,
            tool_list: Arc::new(tool_list),
            peer_list,
            skills: Arc::new(skills),
            frozen_skills,
            arguments: Arguments::new(),
        })
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

    /// Returns the digests by which it is known.
    pub(crate) fn digests(&self) -> ResolvedConfigDigests {
        let ceiling = self.ceiling.as_ref().map(|(sealed, _)| sealed.digest);
        ResolvedConfigDigests {
            settings: self.settings.digest,
            tools: self.tools.digest,
            peers: self.peers.digest,
            ceiling,
            skills: self.frozen_skills.as_ref().map(|sealed| sealed.digest),
        }
    }

    /// Returns the documents that must be stored for it to be found again.
    pub(crate) fn sealed(&self) -> impl Iterator<Item = Sealed> {
        let ceiling = self.ceiling.iter().map(|(sealed, _)| sealed.clone());
        [
            self.settings.clone(),
            self.tools.clone(),
            self.peers.clone(),
        ]
        .into_iter()
        .chain(ceiling)
        .chain(self.frozen_skills.clone())
    }

    /// Returns the number of bytes of these documents.
    fn bytes(&self) -> usize {
        self.sealed().map(|sealed| sealed.bytes.len()).sum()
    }

    /// Returns the tools that a model is shown, and those of the skills.
    fn all_tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tool_list.iter().chain(self.skills.tools())
    }

    /// Returns one of its tools.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tool_list.iter().find(|tool| tool.name == name)
    }
}
