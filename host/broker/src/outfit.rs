//! Outfits: what a definition's agents see of the host, serialised once and named by digest in every basis.
//!
//! A run keeps the outfit that it began with, so that all its model calls have the same tools in the same order. What an agent *may* do is
//! another matter: that is decided from the outfit of the present configuration.

use crate::catalogue::Catalogue;
use domain::authority::{Caller, Ceiling, Denies, Permissions};
use domain::basis::{OutfitDigests, Overrides, Peer};
use domain::definition::{Definition, DefinitionId};
use domain::delegate;
use domain::digest::Digest;
use domain::event::RunStarted;
use domain::grant::Grant;
use domain::talk::{self, Reachable};
use domain::tool::ToolDefinition;
use jsonschema::Validator;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use store::{ReadError, Store};

/// Outfits of earlier configurations that are kept at hand; then the list is begun anew.
const EARLIER_OUTFITS_MAX: usize = 64;
/// Where the names of the fixed settings stand beside prompt and settings.
const FIXED: &str = "fixed";

/// Bytes with their digest.
#[derive(Debug, Clone)]
pub(crate) struct Sealed {
    pub(crate) digest: Digest,
    pub(crate) bytes: Arc<Vec<u8>>,
}

impl Sealed {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { digest: Digest::of(&bytes), bytes: Arc::new(bytes) }
    }

    /// A JSON document, sealed. Serialising what this crate builds cannot fail.
    pub(crate) fn json(value: &impl serde::Serialize) -> Self {
        Self::new(serde_json::to_vec(value).unwrap_or_default())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// What one definition's agents see, and what they may have at most.
#[derive(Debug)]
pub(crate) struct Outfit {
    pub(crate) settings: Sealed,
    pub(crate) tools: Sealed,
    pub(crate) peers: Sealed,
    /// None for a run from before it was frozen.
    pub(crate) ceiling: Option<(Sealed, Arc<Ceiling>)>,
    pub(crate) tool_list: Arc<Vec<ToolDefinition>>,
    pub(crate) peer_list: Vec<Peer>,
    arguments: HashMap<String, Arc<Validator>>,
}

/// The outfits of all definitions as they are configured, those of earlier configurations that runs have been found with, and what tools
/// promise.
pub(crate) struct Outfits {
    by_definition: BTreeMap<DefinitionId, Arc<Outfit>>,
    earlier: Mutex<HashMap<OutfitDigests, Arc<Outfit>>>,
    results: HashMap<String, Validator>,
    grants: BTreeMap<String, Sealed>,
    pub(crate) delegates: Vec<delegate::Target>,
}

impl Outfits {
    pub(crate) fn new(catalogue: &Catalogue) -> Self {
        let delegates: Vec<delegate::Target> = delegate::Target::ALL
            .iter()
            .copied()
            .filter(|target| catalogue.definition(&DefinitionId(target.name().to_owned())).is_some())
            .collect();
        let mut tools: Vec<Arc<ToolDefinition>> = catalogue.tools().map(|(_, tool)| tool.clone()).collect();
        if !delegates.is_empty() {
            tools.push(Arc::new(delegate::definition(&delegates)));
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let arguments: HashMap<String, Arc<Validator>> = tools.iter().filter_map(|tool| checks_arguments(tool)).collect();
        let results =
            tools.iter().filter_map(|tool| Some((tool.name.clone(), jsonschema::validator_for(tool.results.as_ref()?).ok()?))).collect();
        let grants: BTreeMap<String, Grant> = catalogue.tools().map(|(entry, _)| (entry.name.clone(), entry.grant.clone())).collect();
        let by_definition = catalogue
            .definitions()
            .map(|definition| (definition.agent_id.clone(), Arc::new(Outfit::of(definition, catalogue, &tools, &arguments, &grants))))
            .collect();
        let grants = catalogue.entries().map(|entry| (entry.name.clone(), Sealed::json(&entry.grant))).collect();
        Self { by_definition, earlier: Mutex::default(), results, grants, delegates }
    }

    /// What a definition's agents see as it is configured.
    pub(crate) fn of(&self, definition: &DefinitionId) -> Option<&Arc<Outfit>> {
        self.by_definition.get(definition)
    }

    /// What a run's agent sees: what it saw when the run began, whatever is configured by now. None when that is not stored any more.
    pub(crate) async fn of_run(&self, store: &Store, started: &RunStarted) -> Result<Option<Arc<Outfit>>, ReadError> {
        let current = self.of(&started.definition);
        let Some(digests) = started.outfit.filter(|frozen| current.is_none_or(|current| current.digests() != *frozen)) else {
            return Ok(current.cloned());
        };
        if let Some(earlier) = self.earlier.lock().unwrap_or_else(PoisonError::into_inner).get(&digests) {
            return Ok(Some(earlier.clone()));
        }
        let mut read = Vec::new();
        for digest in [digests.settings, digests.tools, digests.peers].into_iter().chain(digests.ceiling) {
            let Some(bytes) = store.blob(digest).await? else { return Ok(None) };
            read.push(Sealed { digest, bytes: Arc::new(bytes) });
        }
        let Some(outfit) = Outfit::read(read).map(Arc::new) else { return Ok(None) };
        let mut earlier = self.earlier.lock().unwrap_or_else(PoisonError::into_inner);
        if earlier.len() >= EARLIER_OUTFITS_MAX {
            earlier.clear();
        }
        earlier.insert(digests, outfit.clone());
        Ok(Some(outfit))
    }

    /// The tools that the host builds itself, as far as there is somebody whom they lead to.
    pub(crate) fn own_tools(&self) -> impl Iterator<Item = ToolDefinition> {
        let delegate = (!self.delegates.is_empty()).then(|| delegate::definition(&self.delegates));
        let others: Vec<Reachable<'_>> = self.by_definition.keys().map(|id| Reachable { id: &id.0, description: None }).collect();
        let talk = if others.len() > 1 { talk::definitions(&others, true) } else { Vec::new() };
        delegate.into_iter().chain(talk)
    }

    /// What a component is granted, as the ledger names it.
    pub(crate) fn grant(&self, component: &str) -> Option<&Sealed> {
        self.grants.get(component)
    }

    /// What is wrong with a tool's result.
    pub(crate) fn result_error(&self, tool: &str, result: &Value) -> Option<String> {
        complaints(self.results.get(tool)?, result)
    }

    /// Whether the tool promises a result of some shape.
    pub(crate) fn promises_result(&self, tool: &str) -> bool {
        self.results.contains_key(tool)
    }
}

/// Complaints that are told about one document.
const COMPLAINTS_MAX: usize = 5;

/// Why nothing can be compared with a schema: it is none, or refers to what stands elsewhere, which is never fetched.
pub(crate) fn schema_error(schema: &Value) -> Option<String> {
    jsonschema::validator_for(schema).err().map(|error| error.to_string())
}

/// Everything that is wrong with a document, each with the place.
pub(crate) fn complaints(validator: &Validator, document: &Value) -> Option<String> {
    let complaints: Vec<String> = validator
        .iter_errors(document)
        .take(COMPLAINTS_MAX)
        .map(|error| {
            let place = error.instance_path().to_string();
            if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
        })
        .collect();
    (!complaints.is_empty()).then(|| complaints.join("; "))
}

/// Whether there is another agent that may hand work to those of a definition.
fn may_be_called(definition: &Definition, catalogue: &Catalogue) -> bool {
    let (denies, permissions) = (Denies::default(), Permissions::default());
    catalogue.definitions().filter(|other| other.agent_id != definition.agent_id).any(|other| {
        let granted = catalogue.entry(&other.component).map(|entry| entry.grant.clone()).unwrap_or_default();
        Caller { agent: other, denies: &denies, permissions: &permissions }.may_hand_over(definition, &granted).is_ok()
    })
}

/// What checks a tool's arguments, under the tool's name; none when its schema is not one.
fn checks_arguments(tool: &ToolDefinition) -> Option<(String, Arc<Validator>)> {
    Some((tool.name.clone(), Arc::new(jsonschema::validator_for(&tool.arguments).ok()?)))
}

impl Outfit {
    fn of(
        definition: &Definition,
        catalogue: &Catalogue,
        tools: &[Arc<ToolDefinition>],
        arguments: &HashMap<String, Arc<Validator>>,
        grants: &BTreeMap<String, Grant>,
    ) -> Self {
        let caller = Caller { agent: definition, denies: &Denies::default(), permissions: &Permissions::default() };
        let granted = catalogue.entry(&definition.component).map(|entry| entry.grant.clone()).unwrap_or_default();
        let mut settings = Map::from_iter([
            ("prompt".to_owned(), Value::from(definition.prompt())),
            ("settings".to_owned(), Value::from(definition.settings.clone())),
        ]);
        if !definition.fixed_settings.is_empty() {
            settings.insert(FIXED.to_owned(), Value::from(definition.fixed_settings.clone()));
        }
        let peer_list: Vec<Peer> = catalogue
            .definitions()
            .filter(|other| other.agent_id != definition.agent_id && caller.may_reach(other, &granted).is_ok())
            .map(|other| Peer { id: other.agent_id.0.clone(), name: other.display_name.clone(), description: other.description.clone() })
            .collect();
        let reachable: Vec<Reachable<'_>> =
            peer_list.iter().map(|peer| Reachable { id: &peer.id, description: Some(peer.description.as_str()) }).collect();
        let own = talk::definitions(&reachable, may_be_called(definition, catalogue));
        let mut tool_list: Vec<ToolDefinition> =
            tools.iter().map(|tool| ToolDefinition::clone(tool)).chain(own).filter(|tool| caller.may_call(tool).is_ok()).collect();
        tool_list.sort_by(|a, b| a.name.cmp(&b.name));
        let ceiling = Ceiling { agent: definition.clone(), grants: grants.clone() };
        let own = tool_list.iter().filter_map(|tool| Some((tool.name.clone(), arguments.get(&tool.name)?.clone())));
        Self {
            settings: Sealed::json(&settings),
            tools: Sealed::json(&tool_list),
            peers: Sealed::json(&peer_list),
            ceiling: Some((Sealed::json(&ceiling), Arc::new(ceiling))),
            arguments: own.collect(),
            tool_list: Arc::new(tool_list),
            peer_list,
        }
    }

    /// An earlier outfit from its settings, tools, peers and ceiling as they were stored.
    fn read(sealed: Vec<Sealed>) -> Option<Self> {
        let mut sealed = sealed.into_iter();
        let (settings, tools, peers) = (sealed.next()?, sealed.next()?, sealed.next()?);
        let ceiling = match sealed.next() {
            Some(sealed) => {
                let ceiling = serde_json::from_slice(&sealed.bytes).ok()?;
                Some((sealed, Arc::new(ceiling)))
            }
            None => None,
        };
        let tool_list: Vec<ToolDefinition> = serde_json::from_slice(&tools.bytes).ok()?;
        let peer_list = serde_json::from_slice(&peers.bytes).ok()?;
        let arguments = tool_list.iter().filter_map(checks_arguments).collect();
        Some(Self { settings, tools, peers, ceiling, tool_list: Arc::new(tool_list), peer_list, arguments })
    }

    /// Its settings with an agent's own over them, but for those that are fixed.
    pub(crate) fn settings_with(&self, overrides: &Overrides) -> Sealed {
        let mut all: Value = serde_json::from_slice(&self.settings.bytes).unwrap_or_default();
        if let (Some(prompt), Some(there)) = (&overrides.system_prompt, all.get_mut("prompt")) {
            *there = Value::String(prompt.clone());
        }
        let fixed: Vec<Value> = all.get(FIXED).and_then(Value::as_array).cloned().unwrap_or_default();
        if let Some(Value::Object(settings)) = all.get_mut("settings") {
            let own = overrides.settings.iter().filter(|(name, _)| !fixed.iter().any(|fixed| fixed == name.as_str()));
            settings.extend(own.map(|(name, value)| (name.clone(), value.clone())));
        }
        Sealed::json(&all)
    }

    /// What it is known by.
    pub(crate) fn digests(&self) -> OutfitDigests {
        let ceiling = self.ceiling.as_ref().map(|(sealed, _)| sealed.digest);
        OutfitDigests { settings: self.settings.digest, tools: self.tools.digest, peers: self.peers.digest, ceiling }
    }

    /// What has to be stored for it to be found again.
    pub(crate) fn sealed(&self) -> impl Iterator<Item = Sealed> {
        let ceiling = self.ceiling.iter().map(|(sealed, _)| sealed.clone());
        [self.settings.clone(), self.tools.clone(), self.peers.clone()].into_iter().chain(ceiling)
    }

    /// One of its tools.
    pub(crate) fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tool_list.iter().find(|tool| tool.name == name)
    }

    /// What is wrong with a tool's arguments, in the terms of the schema that the agent was shown.
    pub(crate) fn arguments_error(&self, tool: &str, arguments: &Value) -> Option<String> {
        complaints(self.arguments.get(tool)?, arguments)
    }
}
