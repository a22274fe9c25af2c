//! Making agents: at a path of the user's choosing, or below an agent at a path of the host's.

use super::agents::{default_path, making, taken};
use super::once::AsItWas;
use super::{AgentView, Agents, CreateAgent, Error, Request, Target, Template};
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::busy;
use crate::shared::error::invalid;
use crate::shared::guards::passed_limit;
use domain::agent::configure::check_name;
use domain::agent::describe::{check_config, check_place};
use domain::agent::lifecycle::default_name;
use domain::authority::{Denies, Permissions};
use domain::definition::{Definition, DefinitionId};
use domain::error_code::ErrorCode;
use domain::event::{AgentCreated, Event, PromptOverridden};
use domain::id::AgentId;
use domain::path::{AgentConfig, AgentPath, PathError, PathKind};
use domain::refusal::Refusal;
use domain::role::{AgentRole, Right};
use domain::time::Timestamp;
use domain::user::UserId;
use std::sync::Arc;
use store::{AgentGuard, Clash, CommitError, Guard};

/// Number of tries to find a path below an agent while others are made there at the same time.
const TRIES_MAX: u32 = 16;

/// The place of an agent that is made below another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Below {
    /// The agent above it.
    pub parent: Target,
    /// Its kind: `sub`, `memory` or `search`. The host gives the rest of the path.
    pub kind: PathKind,
}

impl Below {
    /// Returns whether its path ends in a number of its own.
    fn is_numbered(&self) -> bool {
        matches!(self.kind, PathKind::Sub | PathKind::Search)
    }
}

/// The parts of a new agent that do not depend on its path.
struct Made {
    id: AgentId,
    definition: DefinitionId,
    agent_type: String,
    name: String,
    config: AgentConfig,
}

impl Made {
    /// Returns the event that makes it, without an agent above it.
    fn at(self, path: AgentPath, owner: &UserId, now: Timestamp) -> AgentCreated {
        AgentCreated {
            agent: self.id,
            definition: self.definition,
            agent_type: self.agent_type,
            kind: path.kind(),
            path,
            config: self.config,
            parent: None,
            owner_user_id: owner.clone(),
            name: self.name,
            denies: Denies::default(),
            permissions: Permissions::default(),
            created_at: now,
        }
    }
}

impl Agents<'_> {
    /// Makes an agent, with a prompt of its own if its configuration has one.
    pub(super) async fn make(
        &self,
        command: &CreateAgent,
        request: Option<&Request>,
    ) -> Result<AgentView, Error> {
        for _ in 0..TRIES_MAX {
            let now = self.core.now();
            let (created, guards) = match &command.below {
                None => (self.created(command, now)?, Vec::new()),
                Some(below) => self.created_below(command, below, now).await?,
            };
            let id = created.agent;
            let path = created.path.to_string();
            let mut commit = making(&command.user, created);
            commit.guards.extend(guards);
            commit.guards.extend(self.access().may_store(&command.user));
            let prompt = command.config.system_prompt.clone().map(|prompt| {
                let overridden = PromptOverridden {
                    agent: id,
                    system_prompt: Some(prompt),
                    overridden_at: now,
                };
                Context::by(&command.user, now)
                    .about(id, None, None)
                    .event(Event::PromptOverridden(overridden))
            });
            let version = 1 + u64::from(prompt.is_some());
            if let Some(append) = commit.appends.last_mut() {
                append.events.extend(prompt);
            }
            commit.key = request.map(|request| {
                request.answered(&AsItWas {
                    agent: id,
                    version,
                    role: AgentRole::Primary,
                })
            });
            match self.store().commit(commit).await {
                Ok(_) => return self.get(&command.user, &Target::Agent(id)).await,
                // Another agent was given the number, or the role was taken away. Look again: the
                // inspection finds the reason.
                Err(CommitError::Conflict(conflict)) => match conflict.clash {
                    Clash::Guard(Guard::Agent(
                        AgentGuard::SubCount { .. }
                        | AgentGuard::Role { .. }
                        | AgentGuard::Active(_),
                    )) => {}
                    Clash::Guard(Guard::Agent(AgentGuard::PathFree(_)))
                        if command.below.as_ref().is_some_and(Below::is_numbered) => {}
                    clash => {
                        let refusal = passed_limit(&clash);
                        return Err(refusal.map_or_else(|| taken(&clash, &path, id), Error::from));
                    }
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy("agents are being made there at this moment; try again shortly").into())
    }

    /// Returns the event of an agent that no other agent spawned, at its path.
    pub(super) fn created(
        &self,
        command: &CreateAgent,
        now: Timestamp,
    ) -> Result<AgentCreated, Error> {
        let made = self.made(command)?;
        let text = command
            .path
            .clone()
            .unwrap_or_else(|| default_path(&command.user, &made.definition));
        let path: AgentPath = text
            .parse()
            .map_err(|error: PathError| invalid(error.to_string(), "/path"))?;
        check_home(&path, command)?;
        self.access()
            .may_command(&command.user, path.as_str())
            .map_err(|refusal| refusal.at("/path"))?;
        Ok(made.at(path, &command.user, now))
    }

    /// Returns the event of an agent below another one, and the guards for its commit.
    ///
    /// It inherits the denials of the agents above it.
    async fn created_below(
        &self,
        command: &CreateAgent,
        below: &Below,
        now: Timestamp,
    ) -> Result<(AgentCreated, Vec<Guard>), Error> {
        let made = self.made(command)?;
        let (row, _) = self
            .find_for(&command.user, &below.parent, Right::Configure)
            .await?;
        let path = path_below(&row.agent.path, below.kind, row.sub_count)?;
        self.access()
            .may_command(&command.user, path.as_str())
            .map_err(|refusal| refusal.at("/parent"))?;
        let served = self.core.served();
        let above = served.catalogue.definition(&row.agent.definition);
        let parent = row.agent.id;
        let guards = vec![
            Guard::Agent(AgentGuard::Active(parent)),
            Guard::Agent(AgentGuard::Role {
                agent: parent,
                user: command.user.clone(),
                right: Right::Configure,
            }),
            Guard::Agent(AgentGuard::SubCount {
                agent: parent,
                count: row.sub_count,
            }),
        ];
        let created = AgentCreated {
            parent: Some(parent),
            denies: above.map_or_else(
                || row.agent.denies.clone(),
                |above| row.agent.denies.and_of(above),
            ),
            permissions: row.agent.permissions.clone(),
            ..made.at(path, &row.agent.owner_user_id, now)
        };
        Ok((created, guards))
    }

    fn made(&self, command: &CreateAgent) -> Result<Made, Error> {
        let (definition, name) = match &command.template {
            Template::Definition(id) => {
                let definition = self
                    .definitions()
                    .get(&command.user, id)
                    .map_err(|refusal| refusal.at("/definition"))?;
                let name = definition.display_name.clone();
                (definition, name)
            }
            Template::Type(agent_type) => (self.of_type(agent_type)?, default_name(agent_type)),
        };
        if let (Some(name), Some(other)) = (&command.name, &command.config.name)
            && name != other
        {
            return Err(invalid(
                "`name` and the configuration's name are not the same; say one of them",
                "/config/name",
            ));
        }
        check_config(&command.config)?;
        check_place(
            command.config.workspace_dir.as_deref(),
            command.config.app_id.as_deref(),
        )?;
        let said = command.name.clone().or_else(|| command.config.name.clone());
        let name = said.clone().unwrap_or(name);
        check_name(&name)?;
        let config = AgentConfig {
            name: said,
            system_prompt: None,
            ..command.config.clone()
        };
        Ok(Made {
            id: command.id.unwrap_or_else(fresh::agent),
            definition: definition.agent_id.clone(),
            agent_type: self.core.served().catalogue.agent_type(&definition),
            name,
            config,
        })
    }

    fn of_type(&self, agent_type: &str) -> Result<Arc<Definition>, Refusal> {
        let served = self.core.served();
        let catalogue = &served.catalogue;
        catalogue.of_type(agent_type).cloned().ok_or_else(|| {
            let types: Vec<String> = catalogue
                .definitions()
                .map(|definition| catalogue.agent_type(definition))
                .collect();
            let message = format!(
                "no definition makes agents of the type `{agent_type}`; there are: {}",
                types.join(", ")
            );
            Refusal::new(ErrorCode::DefinitionNotFound, message).at("/agent_type")
        })
    }
}

/// Returns the path of an agent below another one that has had so many.
fn path_below(parent: &AgentPath, kind: PathKind, sub_count: u64) -> Result<AgentPath, Error> {
    let index = u32::try_from(sub_count).map_err(|_| {
        Refusal::new(
            ErrorCode::IndicesUsedUp,
            format!("no number is left below `{parent}`"),
        )
    })?;
    let path = match kind {
        PathKind::Sub => parent.sub(index),
        PathKind::Memory => parent.memory(),
        PathKind::Search => parent.search(index),
        other => {
            return Err(invalid(
                format!("below an agent there is no `{other}`; there are sub, memory and search"),
                "/kind",
            ));
        }
    };
    path.map_err(|error| invalid(error.to_string(), "/parent"))
}

/// Checks that the user may make an agent at the path that they chose.
///
/// Users make agents below their own id, and administrators below `/system` as well.
fn check_home(path: &AgentPath, command: &CreateAgent) -> Result<(), Error> {
    let user: &UserId = &command.user;
    if path.depth() > 0 {
        let message = "an agent below another one is made with `parent` and `kind`, and the host \
                       says its path; leave `path` out";
        return Err(invalid(message, "/path"));
    }
    match path.user() {
        Some(owner) if owner == user => Ok(()),
        Some(owner) => {
            let message = format!(
                "segment 1 of the path is `{owner}`, and agents of yours live below \
                         `/{user}/`, such as `/{user}/agent/<name>`"
            );
            Err(invalid(message, "/path"))
        }
        None if command.as_operator => Ok(()),
        None => {
            let message = "agents below `/system` are made with the scope `admin`";
            Err(Refusal::new(ErrorCode::ScopeMissing, message)
                .at("/path")
                .into())
        }
    }
}
