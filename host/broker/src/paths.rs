//! What the operator says of agents by their paths: who may do what with which, and which models they use.

use domain::path::{ModelRole, UserRules};
use std::collections::BTreeMap;

/// See the module. By default everything is allowed, and no role has a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathSettings {
    /// Rules on subtrees, user by user.
    pub rules: UserRules,
    /// The models of the roles that agents have by their paths: aliases. What a message or a session says goes before them, and what a
    /// definition says comes after.
    pub models: BTreeMap<ModelRole, String>,
}
