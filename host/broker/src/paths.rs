//! The operator's settings on agents by their paths: access rules, and the models of roles.

use domain::path::{ModelRole, UserRules};
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
