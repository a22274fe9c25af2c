//! The catalogue: the definitions and components that this host serves, and the grants of each.

use crate::engine::Component;
use crate::line_component::LineComponent;
use crate::schemas::{Schemas, ToolSchemas};
use domain::authority::{Caller, Denies, Permissions, is_system, only_delegates};
use domain::definition::{Definition, DefinitionId, ToolExposure};
use domain::delegate;
use domain::digest::Digest;
use domain::direct_message;
use domain::event::DefinitionMade;
use domain::grant::{Grant, PatternList};
use domain::memory;
use domain::panels;
use domain::persona::{Persona, PersonaId};
use domain::session::CHAT;
use domain::skill::{self, Offer, SkillFolder, SkillSet};
use domain::tool::ToolDefinition;
use domain::trigger;
use domain::user::UserId;
use runtime::Described;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A component under the operator's name for it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The operator's name.
    pub name: String,
    /// The loaded component.
    pub component: Arc<Component>,
    /// The grant of the component.
    pub grant: Grant,
    /// True if no other code may run under its name, not even to finish work in progress.
    pub is_pinned: bool,
}

/// A definition that a user made and that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutDefinition {
    /// Its id.
    pub definition: DefinitionId,
    /// Its name for people.
    pub display_name: String,
    /// The definition that it was made of.
    pub template: DefinitionId,
    /// The user who owns it.
    pub user: UserId,
    /// The reason in words.
    pub reason: String,
}

/// The catalogue of the whole configuration. It never changes; a new one replaces it.
#[derive(Clone, Default)]
pub struct Catalogue {
    definitions: BTreeMap<DefinitionId, Arc<Definition>>,
    /// Users' definitions that do not fit any more, by id.
    left_out: Vec<LeftOutDefinition>,
    entries: BTreeMap<String, Arc<Entry>>,
    tools: BTreeMap<String, (Arc<Entry>, Arc<ToolDefinition>)>,
    schemas: Schemas,
    tool_schemas: BTreeMap<String, ToolSchemas>,
    personas: BTreeMap<PersonaId, Arc<Persona>>,
    configured: Option<Digest>,
    skill_folders: Arc<Vec<SkillFolder>>,
    /// The component that carries command lines out.
    pub line_component: LineComponent,
    /// The host's tools for reaching agents that no agent has.
    disabled: BTreeSet<&'static str>,
}

impl std::fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalogue")
            .field("definitions", &self.definitions.keys().collect::<Vec<_>>())
            .field("components", &self.entries.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A fault in the configuration: parts that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Two definitions have one id.
    #[error("agents: `{0}` is defined twice; give one of them another agentId")]
    DefinitionTwice(DefinitionId),
    /// A definition names a component that is not configured.
    #[error("agents[{index}].component: there is no component `{component}`; known are {known}")]
    NoSuchComponent {
        /// The place of the definition in the list, from 0.
        index: usize,
        /// The name it gave.
        component: String,
        /// The names there are.
        known: String,
    },
    /// A definition names a component that is not an agent.
    #[error(
        "agents[{index}].component: `{component}` offers tools and is not an agent; name an agent, \
             which calls the tools of all components"
    )]
    NotAnAgent {
        /// The place of the definition in the list, from 0.
        index: usize,
        /// The component.
        component: String,
    },
    /// Two personas have one id.
    #[error("personas: `{0}` is defined twice; give one of them another id")]
    PersonaTwice(PersonaId),
    /// No agent could lead a persona's main sessions.
    #[error("personas[{index}].agent: there is no agent `{agent}` in `agents`")]
    PersonaWithoutAgent {
        /// The place of the persona in the list, from 0.
        index: usize,
        /// The definition that it names.
        agent: DefinitionId,
    },
    /// Nobody could read the chats of a definition, or search its memory.
    #[error(
        "agents[{index}].memory: there is no agent `{agent}` in `agents`; add one, or name another \
             in `agent` or `search`"
    )]
    MemoryWithoutAgent {
        /// The place of the definition in the list, from 0.
        index: usize,
        /// The definition that it names.
        agent: DefinitionId,
    },
    /// Two components offer a tool under one name.
    #[error(
        "components.{second}: it offers the tool `{tool}`, which `{first}` offers already; \
             leave one of them out"
    )]
    ToolTwice {
        /// The tool.
        tool: String,
        /// The component that has it.
        first: String,
        /// The component that offers it again.
        second: String,
    },
    /// A component offers a tool under a name that is the host's.
    #[error(
        "components.{component}: it offers the tool `{tool}`, a name that only tools of the \
             host itself have; leave the component out"
    )]
    ToolOfTheHost {
        /// The tool.
        tool: String,
        /// The component.
        component: String,
    },
    /// A component's tool has a schema that cannot be compared.
    #[error(
        "components.{component}: its tool has a schema that cannot be used: {problem}; leave \
             the component out"
    )]
    Schema {
        /// The component.
        component: String,
        /// The tool, the schema, the place in it, and the fault.
        problem: String,
    },
}

/// Returns the definitions of the agents that read chats or search memories, each with the place of
/// the definition that names it.
fn readers_of(definitions: &[Definition]) -> Vec<(usize, DefinitionId)> {
    let mut readers = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        if let Some(memory) = &definition.memory {
            readers.push((index, memory.agent.clone()));
            readers.extend(memory.search.iter().map(|search| (index, search.clone())));
        }
    }
    readers
}

impl Catalogue {
    /// Puts definitions and components together.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn new(definitions: Vec<Definition>, entries: Vec<Entry>) -> Result<Self, Misfit> {
        Self::default().successor(definitions, entries)
    }

    /// Builds the catalogue of new definitions and components that replaces this one. A component
    /// of the same name keeps the limits of the previous one: counted calls stay counted. Waits for
    /// the schemas of its tools to be compiled.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn successor(
        &self,
        definitions: Vec<Definition>,
        entries: Vec<Entry>,
    ) -> Result<Self, Misfit> {
        let mut catalogue = Self {
            schemas: self.schemas.clone(),
            ..Self::default()
        };
        for entry in entries {
            // The same code under two names is two components, each within its own limits.
            let component = match self.entries.get(&entry.name) {
                Some(before) => entry.component.in_place_of(&before.component),
                None => entry.component.named(&entry.name),
            };
            let entry = Arc::new(Entry { component, ..entry });
            if let Described::Tools(tools) = entry.component.describes() {
                let misfit = |problem| Misfit::Schema {
                    component: entry.name.clone(),
                    problem,
                };
                let compiled = catalogue.schemas.compile_tools(tools).map_err(misfit)?;
                catalogue
                    .tool_schemas
                    .extend(tools.iter().map(|tool| tool.name.clone()).zip(compiled));
                for tool in tools {
                    // Such a tool would pass every allow list, or its texts would be taken for the
                    // host's own.
                    if is_system(&tool.name)
                        || tool.name == delegate::NAME
                        || direct_message::NAMES.contains(&tool.name.as_str())
                        || memory::NAMES.contains(&tool.name.as_str())
                        || panels::NAMES.contains(&tool.name.as_str())
                        || trigger::OWN_TOOLS.contains(&tool.name.as_str())
                        || tool.name == skill::BASH
                    {
                        return Err(Misfit::ToolOfTheHost {
                            tool: tool.name.clone(),
                            component: entry.name.clone(),
                        });
                    }
                    let there = catalogue
                        .tools
                        .insert(tool.name.clone(), (entry.clone(), Arc::new(tool.clone())));
                    if let Some((first, _)) = there {
                        return Err(Misfit::ToolTwice {
                            tool: tool.name.clone(),
                            first: first.name.clone(),
                            second: entry.name.clone(),
                        });
                    }
                }
            }
            catalogue.entries.insert(entry.name.clone(), entry);
        }
        let readers = readers_of(&definitions);
        for (index, definition) in definitions.into_iter().enumerate() {
            catalogue.add(index, definition)?;
        }
        for (index, agent) in readers {
            if !catalogue.definitions.contains_key(&agent) {
                return Err(Misfit::MemoryWithoutAgent { index, agent });
            }
        }
        Ok(catalogue)
    }

    fn add(&mut self, index: usize, definition: Definition) -> Result<(), Misfit> {
        let id = definition.agent_id.clone();
        let known = || self.entries.keys().cloned().collect::<Vec<_>>().join(", ");
        let Some(entry) = self.entries.get(&definition.component) else {
            return Err(Misfit::NoSuchComponent {
                index,
                component: definition.component,
                known: known(),
            });
        };
        if !matches!(entry.component.describes(), Described::Agent(_)) {
            return Err(Misfit::NotAnAgent {
                index,
                component: definition.component,
            });
        }
        match self.definitions.insert(id.clone(), Arc::new(definition)) {
            Some(_) => Err(Misfit::DefinitionTwice(id)),
            None => Ok(()),
        }
    }

    /// Adds personas to the catalogue.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn with_personas(mut self, personas: Vec<Persona>) -> Result<Self, Misfit> {
        for (index, persona) in personas.into_iter().enumerate() {
            let id = persona.id.clone();
            if !self.definitions.contains_key(&persona.agent) {
                return Err(Misfit::PersonaWithoutAgent {
                    index,
                    agent: persona.agent,
                });
            }
            if self
                .personas
                .insert(id.clone(), Arc::new(persona))
                .is_some()
            {
                return Err(Misfit::PersonaTwice(id));
            }
        }
        Ok(self)
    }

    /// Sets the digest of the configuration that it was read from, with the settings served
    /// together with it. Turns record this digest at their start.
    #[must_use]
    pub fn read_from(mut self, configuration: Digest) -> Self {
        self.configured = Some(configuration);
        self
    }

    /// Returns the digest of the configuration that it was read from, if that was noted.
    pub(crate) fn configured(&self) -> Option<Digest> {
        self.configured
    }

    /// Replaces the definitions that users made by these. A definition that no longer fits is left
    /// out: its template is gone, or is not available to its user. Unchanged ones are shared with
    /// the previous catalogue.
    pub(crate) fn with_all_made(mut self, made: &[DefinitionMade], before: &Self) -> Self {
        self.definitions
            .retain(|_, definition| definition.made_by.is_none());
        self.left_out.clear();
        for it in made {
            match self.made_of(it) {
                Ok(definition) => {
                    let there = before.definition(&it.definition);
                    let same = there.filter(|there| ***there == definition);
                    let definition = same.cloned().unwrap_or_else(|| Arc::new(definition));
                    self.definitions.insert(it.definition.clone(), definition);
                }
                Err(reason) => self.left_out.push(LeftOutDefinition {
                    definition: it.definition.clone(),
                    display_name: it.own.display_name.clone(),
                    template: it.template.clone(),
                    user: it.user_id.clone(),
                    reason,
                }),
            }
        }
        if let Some(first) = self.left_out.first() {
            tracing::warn!(
                count = self.left_out.len(), definition.id = %first.definition,
                reason = first.reason.as_str(), "definitions that users made are left out"
            );
        }
        self
    }

    /// Adds a definition that a user made.
    pub(crate) fn with_made(mut self, definition: Definition) -> Self {
        let id = definition.agent_id.clone();
        let there = self.definitions.entry(id);
        there.or_insert_with(|| Arc::new(definition));
        self
    }

    /// Takes away a definition that a user made.
    pub(crate) fn without_made(mut self, id: &DefinitionId) -> Self {
        self.definitions
            .retain(|there, definition| there != id || definition.made_by.is_none());
        self.left_out.retain(|left_out| left_out.definition != *id);
        self
    }

    /// Returns the definitions that users made and that do not fit any more, by id.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOutDefinition] {
        &self.left_out
    }

    /// Returns a definition that a user made, based on its template in its present state.
    fn made_of(&self, it: &DefinitionMade) -> Result<Definition, String> {
        if self.definitions.contains_key(&it.definition) {
            return Err("the configuration has a definition of its id".to_owned());
        }
        let template = self
            .definitions
            .get(&it.template)
            .filter(|template| template.is_template_for(&it.user_id))
            .ok_or_else(|| format!("`{}` is no template for its user", it.template))?;
        let made = template.made(it.definition.clone(), &it.user_id, &it.own);
        made.map(|made| made.definition)
            .map_err(|unfit| unfit.message)
    }

    /// Adds the operator's folders of skills to the catalogue.
    #[must_use]
    pub fn with_skills(mut self, folders: Vec<SkillFolder>) -> Self {
        self.skill_folders = Arc::new(folders);
        self
    }

    /// Returns the operator's folders of skills.
    #[must_use]
    pub fn skill_folders(&self) -> &[SkillFolder] {
        &self.skill_folders
    }

    /// Returns the skills of a caller: of components whose tools are offered to it as skills, with
    /// those that it may call, and of the operator's folders. The list is empty if the caller may
    /// not use skills. None if all tools are offered as tools.
    #[must_use]
    pub fn skills_of(&self, caller: &Caller<'_>) -> Option<SkillSet> {
        let agent = caller.agent;
        if agent.tool_exposure == ToolExposure::Tools || only_delegates(agent) {
            return None;
        }
        if caller.may_use_skills().is_err() {
            return Some(SkillSet::default());
        }
        let mut components: BTreeMap<String, Vec<ToolDefinition>> = BTreeMap::new();
        for (entry, tool) in self.tools() {
            let is_skill = skill::offer(agent, &entry.name) == Offer::Skill;
            if is_skill && caller.may_call(&**tool).is_ok() {
                let of_component = components.entry(entry.name.clone()).or_default();
                of_component.push(ToolDefinition::clone(tool));
            }
        }
        Some(skill::skills_of(agent, components, &self.skill_folders))
    }

    /// Disables those of the host's tools that reach other agents and match one of these patterns:
    /// `delegate`, `agents_message`, `dispatch_to_agent`, `reply_to_caller`. No agent has them
    /// then, whatever its lists allow. Tools of components are not affected.
    #[must_use]
    pub fn without_agent_tools(mut self, patterns: &PatternList) -> Self {
        let own = direct_message::NAMES.into_iter().chain([delegate::NAME]);
        self.disabled = own.filter(|name| patterns.matches(name)).collect();
        self
    }

    /// Returns whether a tool is one of the host's that is disabled.
    #[must_use]
    pub fn is_disabled(&self, tool: &str) -> bool {
        self.disabled.contains(tool)
    }

    /// Returns a persona.
    #[must_use]
    pub fn persona(&self, id: &PersonaId) -> Option<&Arc<Persona>> {
        self.personas.get(id)
    }

    /// Returns all personas, by id.
    pub fn personas(&self) -> impl Iterator<Item = &Arc<Persona>> {
        self.personas.values()
    }

    /// Returns a definition.
    #[must_use]
    pub fn definition(&self, id: &DefinitionId) -> Option<&Arc<Definition>> {
        self.definitions.get(id)
    }

    /// Returns the type of a definition's agents: the definition's own, else that of its component.
    #[must_use]
    pub fn agent_type(&self, definition: &Definition) -> String {
        let own = self.entries.get(&definition.component).and_then(|entry| {
            match entry.component.describes() {
                Described::Agent(description) => Some(description.id.clone()),
                Described::Tools(_) | Described::Trigger(_) | Described::Connector(_) => None,
            }
        });
        definition
            .type_tag
            .clone()
            .or(own)
            .unwrap_or_else(|| definition.agent_id.0.clone())
    }

    /// Returns the first definition of the configuration that makes agents of a type, in the order
    /// of the ids.
    #[must_use]
    pub fn of_type(&self, agent_type: &str) -> Option<&Arc<Definition>> {
        self.definitions()
            .filter(|definition| definition.made_by.is_none())
            .find(|definition| self.agent_type(definition) == agent_type)
    }

    /// Returns the first definition of the configuration whose agents lead sessions of a type, in
    /// the order of the ids.
    #[must_use]
    pub fn leading(&self, session_type: &str) -> Option<&Arc<Definition>> {
        let configured = |definition: &&Arc<Definition>| definition.made_by.is_none();
        self.definitions().filter(configured).find(|definition| {
            self.session_types(definition)
                .iter()
                .any(|leads| leads == session_type)
        })
    }

    /// Returns the session types that a definition's agents lead. The first is opened when none is
    /// asked for.
    #[must_use]
    pub fn session_types(&self, definition: &Definition) -> Vec<String> {
        let types = match self
            .entries
            .get(&definition.component)
            .map(|entry| entry.component.describes())
        {
            Some(Described::Agent(description)) => description.session_types.clone(),
            _ => Vec::new(),
        };
        if types.is_empty() {
            vec![CHAT.to_owned()]
        } else {
            types
        }
    }

    /// Returns all definitions, by id.
    pub fn definitions(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// Returns a component by the operator's name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// Returns the grant of a definition's component.
    pub(crate) fn grant_of(&self, definition: &Definition) -> Grant {
        let entry = self.entries.get(&definition.component);
        entry.map(|entry| entry.grant.clone()).unwrap_or_default()
    }

    /// Returns all components, by name.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.entries.values()
    }

    /// Returns a tool with the component that offers it.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&(Arc<Entry>, Arc<ToolDefinition>)> {
        self.tools.get(name)
    }

    /// Returns the schemas of a tool of a component, for its arguments and its results.
    pub(crate) fn tool_schemas(&self, name: &str) -> Option<&ToolSchemas> {
        self.tool_schemas.get(name)
    }

    /// Returns the faults of a configuration by the schema of its component, each with its place;
    /// none when it fits.
    ///
    /// # Errors
    /// It could not be compared in time.
    pub async fn complaints(
        &self,
        schema: &serde_json::Value,
        configuration: serde_json::Value,
    ) -> Result<Option<String>, String> {
        let judged = self.schemas.judge(schema, configuration).await;
        judged.map_err(|given_up| given_up.to_string())
    }

    /// Returns the service that compiles schemas and compares documents with them.
    pub(crate) fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// Returns all tools of components, by name.
    pub fn tools(&self) -> impl Iterator<Item = &(Arc<Entry>, Arc<ToolDefinition>)> {
        self.tools.values()
    }

    /// Returns the configured agents whose lists let them call a tool, by their definitions.
    pub fn agents_with(&self, tool: &ToolDefinition) -> impl Iterator<Item = &DefinitionId> {
        let may_call = move |agent: &Definition| {
            let caller = Caller {
                agent,
                denies: &Denies::default(),
                permissions: &Permissions::default(),
            };
            caller.may_call(tool).is_ok()
        };
        let configured = self.definitions().filter(|it| it.made_by.is_none());
        configured
            .filter(move |it| may_call(it))
            .map(|it| &it.agent_id)
    }
}
