//! Outfits: what a definition's agents see of the host, serialised once and named by digest in every basis.

use crate::catalogue::Catalogue;
use domain::basis::Peer;
use domain::definition::{Definition, DefinitionId};
use domain::delegate;
use domain::digest::Digest;
use domain::tool::ToolDefinition;
use jsonschema::Validator;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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

/// What one definition's agents see.
#[derive(Debug)]
pub(crate) struct Outfit {
    pub(crate) settings: Sealed,
    pub(crate) tools: Sealed,
    pub(crate) peers: Sealed,
    pub(crate) tool_list: Arc<Vec<ToolDefinition>>,
    pub(crate) peer_list: Vec<Peer>,
}

/// The outfits of all definitions, and the validators of all tools.
pub(crate) struct Outfits {
    by_definition: BTreeMap<DefinitionId, Arc<Outfit>>,
    arguments: HashMap<String, Validator>,
    results: HashMap<String, Validator>,
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
        let validators = |schema: &dyn Fn(&ToolDefinition) -> Option<serde_json::Value>| {
            tools
                .iter()
                .filter_map(|tool| Some((tool.name.clone(), jsonschema::validator_for(&schema(tool)?).ok()?)))
                .collect::<HashMap<_, _>>()
        };
        let arguments = validators(&|tool| Some(tool.arguments.clone()));
        let results = validators(&|tool| tool.results.clone());
        let by_definition = catalogue
            .definitions()
            .map(|definition| (definition.agent_id.clone(), Arc::new(Outfit::of(definition, catalogue, &tools))))
            .collect();
        Self { by_definition, arguments, results, delegates }
    }

    pub(crate) fn of(&self, definition: &DefinitionId) -> Option<&Arc<Outfit>> {
        self.by_definition.get(definition)
    }

    /// What is wrong with a tool's arguments, in the schema's terms.
    pub(crate) fn arguments_error(&self, tool: &str, arguments: &serde_json::Value) -> Option<String> {
        complaints(self.arguments.get(tool)?, arguments)
    }

    /// What is wrong with a tool's result.
    pub(crate) fn result_error(&self, tool: &str, result: &serde_json::Value) -> Option<String> {
        complaints(self.results.get(tool)?, result)
    }

    /// Whether the tool promises a result of some shape.
    pub(crate) fn promises_result(&self, tool: &str) -> bool {
        self.results.contains_key(tool)
    }
}

/// Complaints that are told about one document.
const COMPLAINTS_MAX: usize = 5;

/// Everything that is wrong with a document, each with the place.
pub(crate) fn complaints(validator: &Validator, document: &serde_json::Value) -> Option<String> {
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

impl Outfit {
    fn of(definition: &Definition, catalogue: &Catalogue, tools: &[Arc<ToolDefinition>]) -> Self {
        let settings = serde_json::json!({ "prompt": definition.prompt(), "settings": definition.settings });
        let tool_list: Vec<ToolDefinition> =
            tools.iter().filter(|tool| definition.may_use(tool).is_ok()).map(|tool| ToolDefinition::clone(tool)).collect();
        let peer_list: Vec<Peer> = catalogue
            .definitions()
            .filter(|other| other.agent_id != definition.agent_id && definition.may_reach(other).is_ok())
            .map(|other| Peer { id: other.agent_id.0.clone(), name: other.display_name.clone(), description: other.description.clone() })
            .collect();
        Self {
            settings: Sealed::json(&settings),
            tools: Sealed::json(&tool_list),
            peers: Sealed::json(&peer_list),
            tool_list: Arc::new(tool_list),
            peer_list,
        }
    }
}
