//! Commands on agents: create, find, list.

use super::{AgentView, Broker, CreateAgent, Error, Target};
use crate::core::fresh;
use crate::journal::Context;
use crate::refusals::{agent_not_found, definition_not_found};
use domain::definition::DefinitionId;
use domain::event::{AgentCreated, Event};
use domain::id::{AgentId, Stream};
use domain::refusal::{Kind, Refusal};
use store::{AgentRow, Clash, Commit, CommitError, Expected, Guard};

/// Bytes of an agent's path.
const PATH_BYTES_MAX: usize = 512;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 200;

impl Broker {
    /// Creates an agent from a definition.
    ///
    /// # Errors
    /// An unknown definition, a malformed or taken path, a taken id.
    pub async fn create_agent(&self, command: CreateAgent) -> Result<AgentView, Error> {
        let definition = self.definition(&command.definition).map_err(|refusal| refusal.at("/definition"))?;
        let id = command.id.unwrap_or_else(fresh::agent);
        let path = command.path.unwrap_or_else(|| format!("/{}/agent/{}", command.user, definition.agent_id));
        check_path(&path, &command.user)?;
        let name = command.name.unwrap_or_else(|| definition.display_name.clone());
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(invalid(format!("a name has 1 to {NAME_BYTES_MAX} bytes"), "/name"));
        }
        let now = self.core.now();
        let created = AgentCreated {
            agent: id,
            definition: definition.agent_id.clone(),
            path: path.clone(),
            parent: None,
            owner_user_id: command.user.clone(),
            name,
            denies: Default::default(),
            created_at: now,
        };
        let context = Context::new(format!("user:{}", command.user), now).about(id, None, None);
        let commit = Commit::new().guard(Guard::PathFree(path.clone())).append(
            Stream::Agent(id),
            Expected::New,
            vec![context.event(Event::AgentCreated(created))],
        );
        match self.core.store.commit(commit).await {
            Ok(_) => {}
            Err(CommitError::Conflict(conflict)) => return Err(taken(&conflict.clash, &path, id)),
            Err(error) => return Err(error.into()),
        }
        self.agent(&command.user, &Target::Agent(id)).await
    }

    /// The agents that a user may use, in the order of their ids, after one of them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn agents(&self, user: &str, after: Option<AgentId>, limit: usize) -> Result<Vec<AgentView>, Error> {
        let rows = self.core.store.agents(user, after, limit).await?;
        Ok(rows.into_iter().map(|row| self.view(row)).collect())
    }

    /// One agent.
    ///
    /// # Errors
    /// There is no such agent, or it is not the user's.
    pub async fn agent(&self, user: &str, target: &Target) -> Result<AgentView, Error> {
        Ok(self.view(self.find(user, target).await?))
    }

    pub(super) async fn find(&self, user: &str, target: &Target) -> Result<AgentRow, Error> {
        let (row, named) = match target {
            Target::Agent(id) => (self.core.store.agent(*id).await?, id.to_string()),
            Target::Path(path) => (self.core.store.agent_at(path).await?, path.clone()),
            Target::Definition(id) => (self.core.store.agent_at(&default_path(user, id)).await?, id.to_string()),
        };
        match row {
            // What is not yours is not there: 404, never 403.
            Some(row) if row.agent.owner_user_id == user => Ok(row),
            _ => Err(agent_not_found(&named).into()),
        }
    }

    /// One agent; a definition's agent is created when it is not there yet.
    pub(super) async fn find_or_create(&self, user: &str, target: &Target) -> Result<AgentRow, Error> {
        let Target::Definition(id) = target else { return self.find(user, target).await };
        if let Some(row) = self.core.store.agent_at(&default_path(user, id)).await? {
            return Ok(row);
        }
        let create = CreateAgent { definition: id.clone(), id: None, name: None, path: None, user: user.to_owned() };
        match self.create_agent(create).await {
            Ok(view) => Ok(view.row),
            // Somebody else created it in between.
            Err(Error::Refused(refusal)) if refusal.code == "PATH_TAKEN" => self.find(user, target).await,
            Err(error) => Err(error),
        }
    }

    pub(super) fn definition(&self, id: &DefinitionId) -> Result<&domain::definition::Definition, Refusal> {
        self.core.catalogue.definition(id).map(AsRef::as_ref).ok_or_else(|| {
            let known: Vec<&str> = self.core.catalogue.definitions().map(|definition| definition.agent_id.0.as_str()).collect();
            definition_not_found(&id.0, &known)
        })
    }

    fn view(&self, row: AgentRow) -> AgentView {
        let definition = self.core.catalogue.definition(&row.agent.definition);
        let outfit = self.core.outfits.of(&row.agent.definition);
        AgentView {
            definition_name: definition.map(|definition| definition.display_name.clone()),
            tools: outfit.map(|outfit| outfit.tool_list.iter().map(|tool| tool.name.clone()).collect()).unwrap_or_default(),
            row,
        }
    }
}

fn default_path(user: &str, definition: &DefinitionId) -> String {
    format!("/{user}/agent/{definition}")
}

/// Paths are read nowhere yet but for equality; their form is checked so that what is stored today stays valid.
fn check_path(path: &str, user: &str) -> Result<(), Error> {
    let segments: Vec<&str> = path.split('/').collect();
    let well_formed = path.len() <= PATH_BYTES_MAX
        && segments.len() >= 3
        && segments.first() == Some(&"")
        && segments
            .iter()
            .skip(1)
            .all(|segment| !segment.is_empty() && segment.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)));
    if !well_formed || segments.get(1) != Some(&user) {
        let message = format!("a path looks like `/{user}/agent/<name>`: at least two segments of letters, digits, `-`, `_` and `.`");
        return Err(invalid(message, "/path"));
    }
    Ok(())
}

fn taken(clash: &Clash, path: &str, id: AgentId) -> Error {
    match clash {
        Clash::Stream(_) => Refusal::new(Kind::Conflict, "AGENT_EXISTS", format!("there is an agent `{id}` already")).at("/id").into(),
        _ => Refusal::new(Kind::Conflict, "PATH_TAKEN", format!("an active agent lives at `{path}`")).at("/path").into(),
    }
}

pub(super) fn invalid(message: impl Into<String>, field: &str) -> Error {
    Refusal::new(Kind::Invalid, "INVALID", message).at(field).into()
}
