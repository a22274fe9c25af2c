//! The prompt that an agent's model would get now, section by section.

use super::Whom;
use super::sessions::visible;
use super::{Agents, Error, Target};
use crate::boxed::boxed;
use crate::buckets::OwnBehalf;
use crate::prompting::{Prompting, own_base};
use crate::refusals::session_of_another;
use domain::agent::Agent;
use domain::authority::{Denies, Permissions};
use domain::compaction::text_tokens;
use domain::id::SessionId;
use domain::panels::PanelInventory;
use domain::persona::Persona;
use domain::role::{AgentRole, Right};
use domain::sections::SystemBlocks;
use domain::tool::ToolDefinition;
use domain::user::UserId;
use serde_json::Value;
use store::SessionRow;
use uuid::Uuid;

/// The name of the part that every prompt begins with.
const BASE: &str = "base";

/// A part of a prompt: its base, or a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptPart {
    /// Its name: `base`, or that of a section.
    pub name: &'static str,
    /// The text that a model gets.
    pub text: String,
    /// The estimated number of its tokens.
    pub tokens: u64,
}

/// A tool of a prompt, as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub arguments: Value,
    /// The estimated number of the tokens of all of these.
    pub tokens: u64,
}

/// A prompt: the input of a model before the first message.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownPrompt {
    /// The parts of the system prompt, in order.
    pub parts: Vec<PromptPart>,
    /// The tools, in order.
    pub tools: Vec<PromptTool>,
}

impl From<ToolDefinition> for PromptTool {
    fn from(tool: ToolDefinition) -> Self {
        Self {
            tokens: text_tokens(tool.shown_bytes()),
            name: tool.name,
            description: tool.description,
            arguments: tool.arguments,
        }
    }
}

impl PromptPart {
    fn new(name: &'static str, text: String) -> Self {
        Self {
            name,
            tokens: text_tokens(text.len()),
            text,
        }
    }
}

/// The agent whose prompt a user views, and the user's role with it.
struct PromptSubject {
    agent: Agent,
    role: AgentRole,
}

/// An agent with the session whose prompt is asked for.
struct PromptOwner<'a> {
    agent: &'a Agent,
    session: Option<&'a SessionRow>,
    /// The persona under which the session is led.
    persona: Option<&'a Persona>,
}

impl PromptOwner<'_> {
    fn denies(&self) -> Denies {
        let own = &self.agent.denies;
        self.persona
            .map_or_else(|| own.clone(), |persona| persona.denies(own))
    }

    fn permissions(&self) -> Permissions {
        self.persona
            .map(Persona::permissions)
            .unwrap_or_default()
            .both(&self.agent.permissions)
    }
}

impl Agents<'_> {
    /// Returns the prompt, with its tools, of a run of the agent that would begin now: in a
    /// session, or in a chat that is opened for the user. A definition means the user's agent of
    /// it, also before that exists.
    ///
    /// Tools that list items are called for it, which only read. Nothing is stored.
    ///
    /// # Errors
    /// There is no such agent or session; the user's role does not show how the agent is set up.
    #[boxed]
    pub async fn prompt(
        &self,
        user: &UserId,
        target: &Target,
        session: Option<SessionId>,
    ) -> Result<ShownPrompt, Error> {
        let inspected = self.inspected(user, target).await?;
        let session = match session {
            Some(id) => Some(self.inspected_in(user, &inspected, id).await?),
            None => None,
        };
        let agent = inspected.agent;
        let definition = self.definition(&agent.definition)?;
        let served = self.core.served();
        let config = match session.as_ref().and_then(|row| row.config) {
            Some(digest) => self.store().blob(digest).await?,
            None => None,
        };
        let config: Option<Value> = config.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let persona = session
            .as_ref()
            .and_then(|row| served.catalogue.persona(row.persona.as_ref()?))
            .map(|persona| &**persona);
        let asked = PromptOwner {
            agent: &agent,
            session: session.as_ref(),
            persona,
        };
        let own = asked.session.and_then(|row| row.model.as_deref());
        let kind = agent.kind;
        let prompting = Prompting {
            core: self.core,
            served: &served,
            definition: &definition,
            model: own.or_else(|| served.settings.paths.model_of(kind, &definition)),
            denies: &asked.denies(),
            permissions: &asked.permissions(),
            behalf: OwnBehalf {
                user: asked.session.map_or(user, |row| &row.user_id).clone(),
                agent: agent.id,
                session: asked.session.map_or(SessionId(Uuid::nil()), |row| row.id),
            },
            panels: asked
                .session
                .and_then(|row| PanelInventory::of_session(&row.attributes)),
        };
        let base = own_base(&agent, &definition, persona, config.as_ref())
            .unwrap_or_else(|| definition.prompt());
        let resolved = served.resolved_configs.of(&definition.agent_id);
        let takes_tools =
            served.settings.gateway.takes_tools(prompting.model) && definition.program().is_none();
        let resolved = resolved.filter(|_| takes_tools);
        let tools = resolved.iter().flat_map(|it| prompting.shown(it));
        let tools: Vec<PromptTool> = tools.map(PromptTool::from).collect();
        // As for a call of a model: a tool's output may be a block of its speaker.
        let base = SystemBlocks::of_agent(vec![base]).explaining(!tools.is_empty());
        let sections = Box::pin(prompting.make()).await.sections.into_iter();
        let parts = std::iter::once(PromptPart::new(BASE, base.texts.concat()))
            .chain(sections.map(|section| PromptPart::new(section.name.as_str(), section.text)));
        Ok(ShownPrompt {
            parts: parts.collect(),
            tools,
        })
    }

    /// Returns the agent whose prompt a user views.
    async fn inspected(&self, user: &UserId, target: &Target) -> Result<PromptSubject, Error> {
        let found = match target {
            Target::Definition(_) => self.find_or_make(user, target, Right::Configure).await?,
            Target::Agent(_) | Target::Path(_) => {
                let (row, role) = self.find(user, target).await?;
                Whom::There(Box::new(row), role)
            }
        };
        match found {
            Whom::There(row, role) => {
                may_inspect(role)?;
                Ok(PromptSubject {
                    agent: row.agent,
                    role,
                })
            }
            Whom::New(created) => Ok(PromptSubject {
                agent: Agent::created(&created),
                role: AgentRole::Primary,
            }),
        }
    }

    /// Returns the session of an agent for which its prompt is viewed.
    ///
    /// # Errors
    /// The agent has no such session. A visible session of another agent gets an error of its own.
    async fn inspected_in(
        &self,
        user: &UserId,
        inspected: &PromptSubject,
        id: SessionId,
    ) -> Result<SessionRow, Error> {
        let agent = inspected.agent.id;
        let row = self.store().session(id).await?;
        if let Some(of) = row.as_ref().map(|row| row.agent)
            && of != agent
            && let Ok((_, other)) = self.sessions().visible(user, &Target::Agent(of), id).await
        {
            return Err(session_of_another(id, &other).into());
        }
        Ok(visible(row, agent, user, inspected.role, id)?)
    }
}

/// Checks that a role shows how an agent is set up: its prompt is hidden from a mentee.
fn may_inspect(role: AgentRole) -> Result<(), Error> {
    if !role.sees_all_sessions() {
        role.permits(Right::Configure)?;
    }
    Ok(())
}
