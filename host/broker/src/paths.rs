//! The operator's settings on agents by their paths: access rules, and the models of roles.

use domain::definition::Definition;
use domain::delegate::Target;
use domain::path::{ModelRole, PathKind, UserRules};
use std::collections::BTreeMap;

/// The operator's settings on agents by their paths. By default everything is allowed, and no role
/// has a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSettings {
    /// Rules on subtrees, user by user.
    pub rules: UserRules,
    /// The models of the roles that agents have by their paths or as targets of delegations:
    /// aliases. The model of a message or a session goes before them, and that of a definition
    /// comes after.
    pub models: BTreeMap<ModelRole, String>,
}

impl PathSettings {
    /// Returns the model of an agent's turns where neither message nor session names one; none for
    /// the host's own.
    ///
    /// The first that names one decides: the role of a delegation's target whose definition names
    /// none, the role that the agent has by its path, its definition.
    #[must_use]
    pub fn model_of<'a>(&'a self, kind: PathKind, definition: &'a Definition) -> Option<&'a str> {
        let of_target = || {
            let target = Target::from_word(&definition.agent_id.0)?;
            let is_open = kind == PathKind::Sub && definition.model.is_none();
            let role = target.model_role().filter(|_| is_open)?;
            self.models.get(&role)
        };
        let of_role = || self.models.get(&kind.model_role()?);
        of_target()
            .or_else(of_role)
            .or(definition.model.as_ref())
            .map(String::as_str)
    }
}
