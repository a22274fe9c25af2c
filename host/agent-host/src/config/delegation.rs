//! The settings of delegations.

use super::finding::Finding;
use super::ranges;
use domain::delegate::CacheLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of delegations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct DelegationConfig {
    /// The cache for results of operations that only read. Off without it. A result is used again
    /// for the same operation and parameters of the same agent, user and authority, until it is too
    /// old, something is written for that user, a session or an agent is purged, or the
    /// configuration or a component changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheLimits>,
}

impl DelegationConfig {
    /// Every value that is out of its range.
    pub(crate) fn check(&self) -> Vec<Finding> {
        self.cache
            .iter()
            .flat_map(|cache| ranges::check("delegation.cache", cache))
            .collect()
    }
}
