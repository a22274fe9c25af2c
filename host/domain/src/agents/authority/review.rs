//! Requested against granted: the capabilities that a component will be refused, and the grants
//! that it does not use.

use super::{ToolRequirements, granted};
use crate::access::grant::Grant;
use crate::access::tool::ToolDefinition;
use serde::{Deserialize, Serialize};

/// The status of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapabilityStatus {
    /// Asked for and granted.
    Granted,
    /// Requested and not granted: the tools run without it.
    Refused,
    /// Granted, and requested by no tool.
    Unused,
}

/// One capability of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewed {
    /// The capability.
    pub capability: String,
    /// Its status.
    pub status: CapabilityStatus,
    /// The tools that ask for it.
    pub tools: Vec<String>,
}

/// Every capability that the tools request or the grant contains, by name.
#[must_use]
pub fn review(tools: &[ToolDefinition], grant: &Grant) -> Vec<Reviewed> {
    let given: Vec<String> = granted(grant).collect();
    let needs = |tool: &ToolDefinition| ToolRequirements::from(tool).capabilities_needed();
    let mut names: Vec<String> = tools
        .iter()
        .flat_map(needs)
        .chain(given.iter().cloned())
        .collect();
    names.sort();
    names.dedup();
    let reviewed = names.into_iter().map(|capability| {
        let asking = tools
            .iter()
            .filter(|tool| needs(tool).contains(&capability));
        let asking: Vec<String> = asking.map(|tool| tool.name.clone()).collect();
        let status = match (asking.is_empty(), given.contains(&capability)) {
            (false, true) => CapabilityStatus::Granted,
            (false, false) => CapabilityStatus::Refused,
            (true, _) => CapabilityStatus::Unused,
        };
        Reviewed {
            capability,
            status,
            tools: asking,
        }
    });
    reviewed.collect()
}
