//! Agents at the paths of a trigger's own work: `/<user>/cron/<name>` and `/<user>/task/<name>`.
//! They are made when a trigger first fires there.

use super::{Agents, CreateAgent, Definitions, Error, Template};
use crate::boxed::boxed;
use domain::definition::DefinitionId;
use domain::path::{AgentPath, PathKind, Root};
use domain::user::UserId;

/// The definition of agents whose paths name none.
const USUAL: &str = "assistant";

impl Definitions<'_> {
    /// Returns the definition of a new agent at a trigger's own path: the one that the path is
    /// named after, or else `assistant`, or else the only one. None for any other path, and if no
    /// definition can be chosen.
    #[must_use]
    pub fn of_own_path(&self, path: &AgentPath) -> Option<DefinitionId> {
        let (PathKind::Cron | PathKind::Task, Root::Named { name, .. }) =
            (path.kind(), path.origin())
        else {
            return None;
        };
        let served = self.core.served();
        let named = [name.as_str(), USUAL].map(|id| DefinitionId(id.to_owned()));
        let mut named = named.iter();
        let found = named.find_map(|id| served.catalogue.definition(id));
        let mut all = served.catalogue.definitions();
        let only = all.next().filter(|_| all.next().is_none());
        let definition = found.or(only)?;
        Some(definition.agent_id.clone())
    }
}

impl Agents<'_> {
    /// Makes the agent of a path of a trigger's own, unless an agent lives there. Does nothing for
    /// other paths and for those of other users: words that go there are refused.
    ///
    /// # Errors
    /// The agent cannot be made.
    #[boxed]
    pub async fn make_at_own_path(&self, user: &UserId, path: &AgentPath) -> Result<(), Error> {
        let Some(definition) = self.definitions().of_own_path(path) else {
            return Ok(());
        };
        let is_there = self.store().agent_at(path.as_str()).await?.is_some();
        if is_there || path.user() != Some(user) {
            return Ok(());
        }
        let create = CreateAgent {
            path: Some(path.to_string()),
            ..CreateAgent::of(Template::Definition(definition), user.clone())
        };
        self.create(create).await.map(drop)
    }
}
