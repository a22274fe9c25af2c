//! Commands on agents: create, find, list, set up.

use super::once::{AsItWas, Once, Plan};
use super::{AgentView, Agents, By, CreateAgent, Error, Request, Target, Whom};
use crate::boxed::boxed;
use crate::journal::Context;
use crate::refusals::{
    agent_archived, agent_not_found, agent_purged, definition_not_found, spawned,
};
pub(super) use crate::shared::error::invalid;
use domain::agent::Agent;
use domain::agent::describe::ConfigChanges;
use domain::definition::{Definition, DefinitionId};
use domain::error_code::ErrorCode;
use domain::event::{AgentCreated, Event};
use domain::id::{AgentId, Stream};
use domain::refusal::Refusal;
use domain::role::{AgentRole, Right};
use domain::time::Timestamp;
use domain::user::UserId;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{AgentFilter, AgentGuard, AgentRow, Clash, Commit, Expected};

/// Number of paths for a user's agents of one definition, those that were handed over included.
const NUMBERED_MAX: usize = 1_000;

/// The result of looking for a user's agent of a definition.
enum Own {
    Agent(Box<AgentRow>),
    /// The user has none; a new one would get this path.
    None {
        path: String,
    },
}

/// The template that an agent is made from.
#[derive(Debug, Clone)]
pub enum Template {
    /// A definition.
    Definition(DefinitionId),
    /// The first definition that makes agents of this type.
    Type(String),
}

/// Changes to the set-up of an agent. A part that is not named does not change.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Its name.
    pub name: Option<String>,
    /// Its own system prompt. `Some(None)` returns to the definition's.
    pub system_prompt_override: Option<Option<String>>,
    /// Keys of its settings. A `null` removes a key.
    pub settings: Option<serde_json::Map<String, Value>>,
    /// Changes to the configuration in addition to its address.
    pub config: ConfigChanges,
}

impl Agents<'_> {
    /// Creates an agent from a definition.
    ///
    /// # Errors
    /// An unknown definition, a malformed or taken path, a taken id.
    #[boxed]
    pub async fn create(&self, command: CreateAgent) -> Result<AgentView, Error> {
        let by = By::new(&command.user, command.idempotency_key.as_ref());
        let (definition, agent_type) = match &command.template {
            Template::Definition(id) => (Some(&id.0), None),
            Template::Type(agent_type) => (None, Some(agent_type)),
        };
        let below = command.below.as_ref();
        let asked = json!({
            "create": { "definition": definition, "agent_type": agent_type },
            "id": command.id,
            "name": command.name,
            "path": command.path,
            "config": command.config,
            "below": below.map(|below| (below.parent.named(), below.kind)),
        });
        let request = Request::of(by, &asked)?;
        let act = self.make(&command, request.as_ref());
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(view) => Ok(view),
            Once::Before(was) => self.view_as_it_was(&was).await,
        }
    }

    /// Returns the agents that a user has a role with, ordered by id, after one of them.
    #[boxed]
    pub async fn list(
        &self,
        user: &UserId,
        filter: AgentFilter,
        after: Option<AgentId>,
        limit: usize,
    ) -> Result<Vec<AgentView>, Error> {
        let rows = self.store().agents(user, filter, after, limit).await?;
        Ok(rows
            .into_iter()
            .map(|(row, role)| self.view(row, role))
            .collect())
    }

    /// Returns the id of an agent that a user is assigned to.
    ///
    /// # Errors
    /// The agent does not exist, or the user is not assigned to it.
    #[boxed]
    pub async fn id(&self, user: &UserId, target: &Target) -> Result<AgentId, Error> {
        Ok(self.find(user, target).await?.0.agent.id)
    }

    /// Returns the agent at a path, whoever owns it; none without one.
    ///
    /// # Errors
    /// The store cannot be read.
    #[boxed]
    pub async fn at(&self, path: &str) -> Result<Option<AgentId>, Error> {
        let row = self.store().agent_at(path).await?;
        Ok(row.map(|row| row.agent.id))
    }

    /// Returns one agent, with all its users.
    ///
    /// # Errors
    /// The agent does not exist, or the user is not assigned to it.
    #[boxed]
    pub async fn get(&self, user: &UserId, target: &Target) -> Result<AgentView, Error> {
        let (row, role) = self.find_with_users(user, target).await?;
        Ok(self.view(row, role))
    }

    /// Returns an agent that a user is assigned to, and the user's role with it.
    pub(super) async fn find(
        &self,
        user: &UserId,
        target: &Target,
    ) -> Result<(AgentRow, AgentRole), Error> {
        let (id, named) = match target {
            Target::Agent(id) => (Some(*id), id.to_string()),
            Target::Path(path) => (
                self.store().agent_at(path).await?.map(|row| row.agent.id),
                path.clone(),
            ),
            Target::Definition(id) => match self.own_agent(user, id).await? {
                Own::Agent(row) if self.access().may_see(user, row.agent.path.as_str()) => {
                    return Ok((*row, AgentRole::Primary));
                }
                Own::Agent(_) | Own::None { .. } => (None, id.to_string()),
            },
        };
        let found = match id {
            Some(id) => self.store().agent_for(user, id).await?,
            None => None,
        };
        // The owners of a purged agent are not known any more. A caller that knows its id may learn
        // that it was there.
        if let (None, Some(id)) = (&found, id)
            && self.store().agent(id).await?.is_some_and(|row| row.purged)
        {
            return Err(agent_purged(id).into());
        }
        // Another user's agent looks absent, and so does one that the operator's rules hide: 404,
        // never 403.
        found
            .filter(|(row, _)| self.access().may_see(user, row.agent.path.as_str()))
            .ok_or_else(|| agent_not_found(&named).into())
    }

    /// Finds an agent like [`Self::find`], with all its users.
    async fn find_with_users(
        &self,
        user: &UserId,
        target: &Target,
    ) -> Result<(AgentRow, AgentRole), Error> {
        let (row, role) = self.find(user, target).await?;
        let id = row.agent.id;
        Ok((
            self.store()
                .agent_with_users(id)
                .await?
                .ok_or_else(|| agent_not_found(&id.to_string()))?,
            role,
        ))
    }

    /// Finds an agent for a command that needs a right, if the agent is not archived.
    ///
    /// Checks the user's role, the operator's rules, and for [`Right::Interact`] that the agent
    /// takes words.
    pub(super) async fn find_for(
        &self,
        user: &UserId,
        target: &Target,
        right: Right,
    ) -> Result<(AgentRow, AgentRole), Error> {
        let (row, role) = self.find(user, target).await?;
        role.permits(right)?;
        self.access().may_command(user, row.agent.path.as_str())?;
        if !row.active {
            row.agent.is_active()?;
            return Err(agent_archived(row.agent.id).into());
        }
        if right == Right::Interact {
            self.access().takes_words(&row).await?;
        }
        Ok((row, role))
    }

    /// Returns the agent with which a session begins. A definition means the user's agent of it,
    /// which has to be made if it does not exist.
    pub(crate) async fn find_or_make(
        &self,
        user: &UserId,
        target: &Target,
        right: Right,
    ) -> Result<Whom, Error> {
        if let Target::Definition(id) = target
            && let Own::None { path } = self.own_agent(user, id).await?
        {
            let template = Template::Definition(id.clone());
            let create = CreateAgent {
                path: Some(path),
                ..CreateAgent::of(template, user.clone())
            };
            return Ok(Whom::New(Box::new(self.created(&create, self.core.now())?)));
        }
        let (row, role) = self.find_for(user, target, right).await?;
        Ok(Whom::There(Box::new(row), role))
    }

    /// Returns a user's agent of a definition.
    ///
    /// It is the first with the user as PRIMARY at the definition's path or at one of its numbered
    /// siblings. An agent that was handed over keeps its path and no longer belongs to the user.
    async fn own_agent(&self, user: &UserId, id: &DefinitionId) -> Result<Own, Error> {
        let path = default_path(user, id);
        let mut there = self
            .store()
            .agents_numbered(user, &path, NUMBERED_MAX)
            .await?;
        let is_own = |there: &(AgentRow, Option<AgentRole>)| {
            there.0.parent.is_none()
                && there.0.agent.definition == *id
                && there.1 == Some(AgentRole::Primary)
        };
        if let Some(own) = there.iter().position(is_own) {
            return Ok(Own::Agent(Box::new(there.swap_remove(own).0)));
        }
        let numbered = (2..=NUMBERED_MAX).map(|number| format!("{path}.{number}"));
        let free = std::iter::once(path.clone())
            .chain(numbered)
            .find(|path| !there.iter().any(|(row, _)| row.agent.path.as_str() == path));
        let path = free.ok_or_else(|| {
            Refusal::new(
                ErrorCode::PathTaken,
                format!("all paths from `{path}` to `{path}.{NUMBERED_MAX}` are taken"),
            )
        })?;
        Ok(Own::None { path })
    }

    /// Decides a change of an agent and commits it; under a key once. Returns the agent afterwards.
    ///
    /// `asked` is the request without the agent.
    pub(super) async fn change(
        &self,
        by: By<'_>,
        target: &Target,
        right: Right,
        asked: Value,
        decide: impl Fn(&Agent, Timestamp) -> Result<Vec<Event>, Refusal> + Send + Sync,
    ) -> Result<AgentView, Error> {
        let request = Request::of(by, &json!({ "change": target.named(), "asked": asked }))?;
        let act = self.try_change(by.user, target, right, request.as_ref(), decide);
        match self.requests().once(request.as_ref(), act).await? {
            Once::Now(view) => Ok(view),
            Once::Before(was) => self.view_as_it_was(&was).await,
        }
    }

    async fn try_change(
        &self,
        user: &UserId,
        target: &Target,
        right: Right,
        request: Option<&Request>,
        decide: impl Fn(&Agent, Timestamp) -> Result<Vec<Event>, Refusal> + Send + Sync,
    ) -> Result<AgentView, Error> {
        let plan = || async {
            let (row, role) = self.find_with_users(user, target).await?;
            if row.parent.is_some() && right != Right::Interact {
                return Err(spawned(row.agent.id).into());
            }
            role.permits(right)?;
            self.access().may_command(user, row.agent.path.as_str())?;
            if !row.active && !row.agent.is_archived() {
                return Err(agent_archived(row.agent.id).into());
            }
            let now = self.core.now();
            let events = decide(&row.agent, now)?;
            let was = AsItWas {
                agent: row.agent.id,
                version: row.version + events.len() as u64,
                role,
            };
            let key = request.map(|request| request.answered(&was));
            if events.is_empty() {
                let commit = Commit {
                    key,
                    ..Commit::new()
                };
                return Ok(Plan::new(commit, (row, role)));
            }
            let context = Context::by(user, now).about(row.agent.id, None, None);
            let stream = Stream::Agent(row.agent.id);
            // The view is of the agent right after this commit, even if another has changed it
            // since. Users who removed themselves see how they left it.
            let after = events
                .iter()
                .fold(row.agent.clone(), |agent, event| agent.after(event));
            let grows = events.iter().any(is_set_up);
            let commit = Commit {
                key,
                ..Commit::new()
            }
            .append(
                stream,
                Expected::Version(row.version),
                context.events(events),
            )
            // A commit that ends or shares something is not refused because of stored bytes.
            .guards(self.access().may_store(user).filter(|_| grows));
            let row = AgentRow {
                active: row.active && !after.is_archived(),
                agent: after,
                version: was.version,
                updated_at: now,
                ..row
            };
            Ok(Plan::new(commit, (row, role)))
        };
        let (row, role) = self.requests().attempt("the agent", plan).await?;
        Ok(self.view(row, role))
    }

    /// Returns an agent as a command has left it.
    pub(super) async fn view_as_it_was(&self, was: &AsItWas) -> Result<AgentView, Error> {
        Ok(self.view(self.requests().agent_as_it_was(was).await?, was.role))
    }

    /// Changes the set-up of an agent: all of it or nothing.
    ///
    /// # Errors
    /// As for each part; the user may not.
    #[boxed]
    pub async fn set_up<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        setup: Setup,
    ) -> Result<AgentView, Error> {
        let prompt = setup.system_prompt_override.as_ref();
        let mut asked = json!({ "set_up": {
            "name": setup.name,
            "prompt": prompt.map(|prompt| json!({ "is": prompt })),
            "settings": setup.settings,
        } });
        if !setup.config.is_empty()
            && let Some(asked) = asked.as_object_mut()
        {
            asked.insert("config".to_owned(), json!(setup.config.named()));
        }
        let served = self.core.served();
        self.change(by, target, Right::Configure, asked, |agent, now| {
            if let (Some(settings), Some(definition)) = (
                &setup.settings,
                served.catalogue.definition(&agent.definition),
            ) {
                definition.check_own_settings(settings)?;
            }
            let mut events: Vec<Event> = Vec::new();
            if let Some(name) = setup.name.clone() {
                events.extend(agent.rename(name, now)?);
            }
            if let Some(prompt) = setup.system_prompt_override.clone() {
                events.extend(agent.override_prompt(prompt, now)?);
            }
            if let Some(settings) = setup.settings.clone() {
                events.extend(agent.update_settings(settings, now)?);
            }
            let config = ConfigChanges {
                name: setup.name.clone(),
                ..setup.config.clone()
            };
            if !config.is_empty() {
                events.extend(agent.describe(&config, now)?);
            }
            Ok(events)
        })
        .await
    }

    /// Merges keys into an agent's preferences: for all its users, or for the one who asks.
    ///
    /// # Errors
    /// The agent is archived; the preferences would be too large; the user has no right to it.
    #[boxed]
    pub async fn prefer<'a>(
        &'a self,
        by: By<'a>,
        target: &Target,
        preferences: serde_json::Map<String, Value>,
        own: bool,
    ) -> Result<AgentView, Error> {
        let right = if own {
            Right::Interact
        } else {
            Right::Configure
        };
        let asked = json!({ "prefer": preferences, "own": own });
        let of = own.then(|| by.user.clone());
        let decide = |agent: &Agent, now| {
            Ok(agent
                .update_preferences(preferences.clone(), of.clone(), now)?
                .into_iter()
                .collect())
        };
        self.change(by, target, right, asked, decide).await
    }

    pub(super) fn definition(&self, id: &DefinitionId) -> Result<Arc<Definition>, Refusal> {
        let served = self.core.served();
        let catalogue = &served.catalogue;
        let found = catalogue.definition(id).cloned();
        found.ok_or_else(|| definition_not_found(&id.0, &self.definitions().known()))
    }

    fn view(&self, row: AgentRow, role: AgentRole) -> AgentView {
        let served = self.core.served();
        let definition = served.catalogue.definition(&row.agent.definition);
        let resolved = served.resolved_configs.of(&row.agent.definition);
        AgentView {
            definition_name: definition.map(|definition| definition.display_name.clone()),
            tools: resolved
                .map(|resolved| {
                    resolved
                        .tool_list
                        .iter()
                        .map(|tool| tool.name.clone())
                        .collect()
                })
                .unwrap_or_default(),
            session_types: definition
                .map(|definition| served.catalogue.session_types(definition))
                .unwrap_or_default(),
            row,
            role,
        }
    }
}

/// Returns whether an event sets up an agent, or adds to its preferences.
fn is_set_up(event: &Event) -> bool {
    matches!(
        event,
        Event::PreferencesUpdated(_)
            | Event::SettingsUpdated(_)
            | Event::PromptOverridden(_)
            | Event::AgentRenamed(_)
            | Event::AgentConfigured(_)
    )
}

/// Returns the commit that makes an agent, if no active agent lives at its path.
pub(super) fn making(by: &UserId, created: AgentCreated) -> Commit {
    let id = created.agent;
    let path = created.path.to_string();
    let context = Context::by(by, created.created_at).about(id, None, None);
    let made = vec![context.event(Event::AgentCreated(created))];
    Commit::new()
        .guard(AgentGuard::PathFree(path))
        .append(Stream::Agent(id), Expected::New, made)
}

pub(super) fn default_path(user: &UserId, definition: &DefinitionId) -> String {
    format!("/{user}/agent/{definition}")
}

pub(super) fn taken(clash: &Clash, path: &str, id: AgentId) -> Error {
    match clash {
        Clash::Stream(_) => Refusal::new(
            ErrorCode::AgentExists,
            format!("there is an agent `{id}` already"),
        )
        .into(),
        _ => Refusal::new(
            ErrorCode::PathTaken,
            format!("an active agent lives at `{path}`"),
        )
        .at("/path")
        .into(),
    }
}
