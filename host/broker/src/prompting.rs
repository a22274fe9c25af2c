//! The sections of a system prompt, which the host makes from the tools and agents available to an
//! agent.
//!
//! Items that tools keep are listed by the tools themselves: a call like any other, under the same
//! lists and grants, that can only read and has little time. All of them are called at once. A
//! listing that fails leaves out its items, and nothing else.

use crate::buckets::{CallBuckets, OwnBehalf};
use crate::core::Core;
use crate::fresh;
use crate::resolved_config::ResolvedConfig;
use crate::serving::Served;
use domain::agent::Agent;
use domain::artifact::{ArtifactItem, lists_items, read_items};
use domain::authority::{Caller, Denies, Permissions};
use domain::basis::Peer;
use domain::definition::{Definition, DefinitionId};
use domain::delegate::{self, Presentation};
use domain::digest::Digest;
use domain::message::text_of;
use domain::operation::Progress;
use domain::panels::PanelInventory;
use domain::persona::Persona;
use domain::prompt_section::SectionName;
use domain::sections::{Known, Section};
use domain::shown::visible;
use domain::skill::{self, Skill, SkillListing, SkillSet};
use domain::step::Toolset;
use domain::tool::{EffectClass, ToolDefinition, ToolError};
use runtime::{CallAudit, Decided, Outcome, ToolCall, Unheard};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Milliseconds that one listing of items may take.
const LISTING_MS_MAX: u64 = 2_000;
/// Listings that are asked for one prompt.
const LISTINGS_MAX: usize = 8;
/// Characters of an outcome that are logged.
const OUTCOME_CHARS_MAX: usize = 200;

/// The facts that the sections of one prompt are made from.
pub(crate) struct Prompting<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) served: &'a Arc<Served>,
    pub(crate) definition: &'a Definition,
    /// The model that the prompt is for; none for the host's own.
    pub(crate) model: Option<&'a str>,
    pub(crate) denies: &'a Denies,
    pub(crate) permissions: &'a Permissions,
    pub(crate) behalf: OwnBehalf,
    /// The panels that a client shows together with the session.
    pub(crate) panels: Option<PanelInventory>,
}

/// The sections of a prompt, with the calls that were made for them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    pub(crate) sections: Vec<Section>,
    /// The listings that were called.
    pub(crate) listed: Vec<Listed>,
    /// True if a part of them was written by others than the user and the operator.
    pub(crate) untrusted: bool,
}

/// A listing that was called, for the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    pub(crate) tool: String,
    pub(crate) code: Digest,
    pub(crate) decided: Decided,
}

impl Prompting<'_> {
    /// Makes the sections.
    pub(crate) async fn make(&self) -> Made {
        // The program behind an external agent gets the user's words alone, and one in a model's
        // place gets no tools but its own.
        let takes_tools = self.served.settings.gateway.takes_tools(self.model);
        if self.definition.program().is_some() || !takes_tools {
            return Made::default();
        }
        let configs = &self.served.resolved_configs;
        let Some(config) = configs.of(&self.definition.agent_id) else {
            return Made::default();
        };
        let caller = self.caller();
        // The definition of `delegate` already lists all possible operations.
        let tools: Vec<&ToolDefinition> = config
            .tool_list
            .iter()
            .filter(|tool| match tool.name.as_str() {
                delegate::NAME => false,
                skill::BASH => caller.may_use_skills().is_ok(),
                _ => caller.may_call(*tool).is_ok(),
            })
            .collect();
        let skills = self.skills(&config.skills);
        // Tools of skills list their items as any others do.
        let of_skills = skills.iter().copied().flat_map(|skill| &skill.tools);
        let listings: Vec<&ToolDefinition> = tools
            .iter()
            .copied()
            .chain(of_skills)
            .filter(|tool| lists_items(tool) && caller.may_call(*tool).is_ok())
            .collect();
        let skills: Vec<SkillListing> = skills.into_iter().map(Skill::listing).collect();
        let peers = self.peers(&config.peer_list);
        let off = &self.definition.prompt_sections_off;
        let mut made = Made::default();
        let mut items = Vec::new();
        if !off.contains(&SectionName::ArtifactItems) {
            for (found, listed) in self.list_all(&listings).await {
                items.extend(found);
                made.listed.push(listed);
            }
        }
        items.sort();
        let known = Known {
            tools: &tools,
            skills: &skills,
            has_artifacts: !listings.is_empty(),
            items: &items,
            panels: self.panels.as_ref(),
            peers: &peers,
            off,
        };
        made.untrusted = known.are_untrusted();
        made.sections = known.sections();
        made
    }

    /// Returns the tools that the model is shown.
    pub(crate) fn shown(&self, config: &ResolvedConfig) -> Vec<ToolDefinition> {
        let model = self.served.settings.gateway.resolve(self.model);
        let of_model = model.map_or(Presentation::One, |model| model.operations);
        config.shown(&Toolset::All, of_model)
    }

    fn caller(&self) -> Caller<'_> {
        Caller {
            agent: self.definition,
            denies: self.denies,
            permissions: self.permissions,
        }
    }

    /// Returns those of the agent's skills that every deny list allows: a folder alone, or a
    /// command with at least one permitted tool.
    fn skills<'s>(&self, all: &'s SkillSet) -> Vec<&'s Skill> {
        let caller = self.caller();
        if caller.may_use_skills().is_err() {
            return Vec::new();
        }
        let is_usable = |skill: &&Skill| {
            let mut tools = skill.tools.iter();
            skill.tools.is_empty() || tools.any(|tool| caller.may_call(tool).is_ok())
        };
        all.skills().iter().filter(is_usable).collect()
    }

    /// Returns those of the agent's peers that may be reached under every deny list.
    fn peers<'p>(&self, all: &'p [Peer]) -> Vec<&'p Peer> {
        let catalogue = &self.served.catalogue;
        let caller = self.caller();
        let granted = catalogue.grant_of(self.definition);
        all.iter()
            .filter(|peer| {
                catalogue
                    .definition(&DefinitionId(peer.id.clone()))
                    .is_some_and(|other| caller.may_reach(other, &granted).is_ok())
            })
            .collect()
    }

    /// Has tools list their items, in the order of the tools.
    async fn list_all(&self, listings: &[&ToolDefinition]) -> Vec<(Vec<ArtifactItem>, Listed)> {
        let left_out = listings.len().saturating_sub(LISTINGS_MAX);
        if left_out > 0 {
            let agent = &self.definition.agent_id;
            tracing::warn!(%agent, left_out, "tools that list items are not asked for them");
        }
        let asked = listings.iter().copied().take(LISTINGS_MAX);
        // The turn waits for the slowest of them alone.
        let listed = asked.map(|tool| Box::pin(self.list(tool)));
        let listed = futures::future::join_all(listed).await;
        listed.into_iter().flatten().collect()
    }

    /// Makes a tool list its items. None if it is not called, because it needs an approval, or a
    /// rule forbids it.
    async fn list(&self, tool: &ToolDefinition) -> Option<(Vec<ArtifactItem>, Listed)> {
        let (entry, definition) = self.served.catalogue.tool(&tool.name)?;
        let caller = self.caller();
        if caller.must_ask(definition, &entry.grant) {
            return None;
        }
        let bound = caller.bound(&**definition, &entry.grant).ok()?;
        let mut bound = bound.for_effect(EffectClass::ReadOnly);
        bound.limits.wall_ms_max = bound.limits.wall_ms_max.min(LISTING_MS_MAX);
        let audit = CallAudit::default();
        let buckets = CallBuckets::new(self.core, &entry.name, self.behalf.clone());
        let call = self.core.runtime.call_noting(
            &entry.component,
            &bound,
            self.call(&tool.name, bound.limits.wall_ms_max),
            Arc::new(Unheard),
            Arc::new(buckets),
            &audit,
        );
        // The time limit of a call begins with its admission.
        let read = match timeout(Duration::from_millis(LISTING_MS_MAX), call).await {
            Ok(ran) => {
                crate::guest_log::record(&entry.name, &ran.logs);
                items_of(ran.outcome)
            }
            Err(_) => Err("there was no place for it in time".to_owned()),
        };
        let items = read.unwrap_or_else(|reason| {
            let tool = &tool.name;
            tracing::warn!(tool, reason, "a tool could not list its items for a prompt");
            Vec::new()
        });
        let (decided, _) = audit.take();
        let listed = Listed {
            tool: tool.name.clone(),
            code: entry.component.digest(),
            decided,
        };
        Some((items, listed))
    }

    fn call(&self, tool: &str, within_ms: u64) -> ToolCall {
        let id = fresh::call();
        ToolCall {
            agent_id: self.behalf.agent.to_string(),
            session_id: self.behalf.session.to_string(),
            user_id: self.behalf.user.to_string(),
            call_id: id.clone(),
            idempotency_key: id,
            deadline_ms: u32::try_from(within_ms).unwrap_or(u32::MAX),
            segment: 0,
            resumed: None,
            answer: None,
            tool: tool.to_owned(),
            arguments: "{}".to_owned(),
        }
    }
}

/// Returns the items of a listing, or the reason why it has none.
fn items_of(outcome: Outcome<Result<Progress, ToolError>>) -> Result<Vec<ArtifactItem>, String> {
    match outcome {
        Outcome::Returned(Ok(Progress::Done { parts })) => domain::json::parse(&text_of(&parts))
            .map_err(|refused| refused.to_string())
            .and_then(|result| read_items(&result)),
        outcome => {
            let reported = visible(&format!("{outcome:?}"), OUTCOME_CHARS_MAX);
            Err(format!("it ended with {reported}"))
        }
    }
}

/// The key of a session's configuration for a system prompt of its own.
pub(crate) const SYSTEM_PROMPT: &str = "system_prompt";
/// The key of the settings of replies in a session's configuration: a
/// [`SessionGeneration`](domain::sampling::SessionGeneration).
pub(crate) const GENERATION: &str = "generation";

/// Returns the base of the prompt if it is not the definition's own: the session's, the agent's,
/// or, under a persona, any base with the persona's part.
pub(crate) fn own_base(
    agent: &Agent,
    definition: &Definition,
    persona: Option<&Persona>,
    config: Option<&Value>,
) -> Option<String> {
    let of_session = config.and_then(|config| config.get(SYSTEM_PROMPT)?.as_str());
    let own = of_session
        .map(str::to_owned)
        .or_else(|| agent.system_prompt_override.clone())
        .or_else(|| definition.prompt_for(agent.config.description.as_deref()?));
    match persona {
        None => own,
        Some(persona) => Some(persona.prompt(&own.unwrap_or_else(|| definition.prompt()))),
    }
}
