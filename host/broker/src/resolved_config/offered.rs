//! The tools, peers and skills that a catalogue has for an agent.

use super::{Arguments, Sealed};
use crate::catalogue::Catalogue;
use crate::schemas::Schema;
use domain::authority::{Caller, Ceiling, Denies, Permissions};
use domain::basis::Peer;
use domain::definition::{Definition, DefinitionId};
use domain::delegate::{Offer as Delegable, Offers, Target};
use domain::digest::Digest;
use domain::direct_message::{self, Reachable};
use domain::grant::Grant;
use domain::memory;
use domain::panels;
use domain::skill::{self, Offer, SkillSet};
use domain::tool::ToolDefinition;
use domain::trigger;
use runtime::Described;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The tools of all components and of the host, with the facts about them that all resolved
/// configurations are made from.
pub(super) struct Tooling {
    /// The tools, by name.
    pub(super) tools: Vec<Arc<ToolDefinition>>,
    /// The operations of `delegate`, as tools.
    pub(super) operations: Arc<Vec<ToolDefinition>>,
    pub(super) arguments: Arguments,
    pub(super) results: HashMap<String, Schema>,
    /// The grants of the components that offer tools, by name.
    pub(super) grants: BTreeMap<String, Grant>,
    /// Their code, by name.
    pub(super) code: BTreeMap<String, Digest>,
    /// The grants of all components, as the ledger names them.
    pub(super) sealed_grants: BTreeMap<String, Sealed>,
}

impl Tooling {
    /// The tools of all components. [`delegate`](Self::delegate) adds the host's own.
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let mut tools: Vec<Arc<ToolDefinition>> =
            catalogue.tools().map(|(_, tool)| tool.clone()).collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let schemas = |tool: &Arc<ToolDefinition>| {
            Some((
                tool.name.clone(),
                catalogue.tool_schemas(&tool.name)?.clone(),
            ))
        };
        let compiled: Vec<_> = tools.iter().filter_map(schemas).collect();
        let arguments = compiled
            .iter()
            .map(|(tool, schemas)| (tool.clone(), Ok(schemas.arguments.clone())))
            .collect();
        let results = compiled
            .into_iter()
            .filter_map(|(tool, schemas)| Some((tool, schemas.results?)))
            .collect();
        let of_tools = || catalogue.tools().map(|(entry, _)| entry);
        Self {
            tools,
            operations: Arc::default(),
            arguments,
            results,
            grants: of_tools()
                .map(|entry| (entry.name.clone(), entry.grant.clone()))
                .collect(),
            code: of_tools()
                .map(|entry| (entry.name.clone(), entry.component.digest()))
                .collect(),
            sealed_grants: catalogue
                .entries()
                .map(|entry| (entry.name.clone(), Sealed::json(&entry.grant)))
                .collect(),
        }
    }
}

impl Tooling {
    /// Adds the tool by which these operations are delegated, if there are any.
    pub(super) fn delegate(&mut self, offers: &Offers) {
        if !offers.0.is_empty() {
            self.tools.push(Arc::new(offers.definition()));
            self.tools.sort_by(|a, b| a.name.cmp(&b.name));
            self.operations = Arc::new(offers.by_operation());
        }
    }
}

/// The catalogue and its tools, from which resolved configurations are made.
pub(super) struct Offered<'a> {
    pub(super) catalogue: &'a Catalogue,
    pub(super) tooling: &'a Tooling,
}

impl Offered<'_> {
    /// Returns the operations that the configured agents can carry out. The host's own worker,
    /// researcher and coder need tools for theirs; of another component nothing is known.
    pub(super) fn delegates(&self) -> Offers {
        let each = Target::ALL.iter().filter_map(|target| {
            let id = DefinitionId(target.as_str().to_owned());
            let definition = self.catalogue.definition(&id)?;
            let entry = self.catalogue.entry(&definition.component);
            let is_hosts_own = entry.is_some_and(|entry| {
                matches!(entry.component.describes(), Described::Agent(it) if it.id == id.0)
            });
            if !is_hosts_own {
                return Some(Delegable::whole(*target));
            }
            let caller = Caller {
                agent: definition,
                denies: &Denies::default(),
                permissions: &Permissions::default(),
            };
            let mut tools = self.tools(&caller, &self.peers(&caller));
            self.skills(&caller, &mut tools);
            Some(Delegable::with_tools(*target, &tools))
        });
        Offers(each.collect())
    }

    /// Returns the agents that a caller may hand work to.
    pub(super) fn peers(&self, caller: &Caller<'_>) -> Vec<Peer> {
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
    pub(super) fn ceiling(&self, definition: &Definition) -> Ceiling {
        let mut grants = self.tooling.grants.clone();
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
            code: self.tooling.code.clone(),
            agents: known.collect(),
        }
    }

    /// Returns the tools that an agent may call, by name.
    pub(super) fn tools(&self, caller: &Caller<'_>, peers: &[Peer]) -> Vec<ToolDefinition> {
        let reachable: Vec<Reachable<'_>> = peers
            .iter()
            .map(|peer| Reachable {
                id: &peer.id,
                description: Some(peer.description.as_str()),
            })
            .collect();
        let own =
            direct_message::definitions(&reachable, may_be_called(caller.agent, self.catalogue));
        let allowlist = caller.agent.tool_allowlist.as_ref();
        let settings = caller.agent.memory.as_ref();
        let deep = settings.is_some_and(|settings| settings.search.is_some());
        let of_memory = memory::definitions(deep)
            .into_iter()
            .filter(|tool| memory::is_listed(allowlist, &tool.name));
        let of_triggers = trigger::trigger_tools()
            .into_iter()
            .filter(|_| trigger::are_triggers_granted(caller.agent.capability_allowlist.as_ref()))
            .filter(|_| caller.may_have(trigger::TRIGGERS_WRITE).is_ok());
        let mut tools: Vec<ToolDefinition> = self
            .tooling
            .tools
            .iter()
            .map(|tool| ToolDefinition::clone(tool))
            .chain(own)
            .chain(of_memory)
            .chain(of_triggers)
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

    /// Removes the tools of components that are offered as skills, or not at all, from a list, and
    /// returns the skills. The list then has the tool for using them.
    pub(super) fn skills(&self, caller: &Caller<'_>, tools: &mut Vec<ToolDefinition>) -> SkillSet {
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

/// Returns whether another agent may hand work to those of a definition.
fn may_be_called(definition: &Definition, catalogue: &Catalogue) -> bool {
    let denies = Denies::default();
    let permissions = Permissions::default();
    catalogue
        .definitions()
        .filter(|other| other.agent_id != definition.agent_id)
        // A user's definition changes nothing of the configured agents.
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
