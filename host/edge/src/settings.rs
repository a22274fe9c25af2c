//! The settings of the edge that the operator configured.

use domain::connector::ConnectorSpec;
use domain::path::ConnectorName;
use domain::secret::Secrets;
use domain::trigger::{TriggerName, TriggerSpec};
use std::collections::BTreeMap;

/// The edge's part of the configuration, which is replaced as a whole. The components of triggers
/// and connectors are in the broker's catalogue, with their grants.
#[derive(Debug, Clone, Default)]
pub struct EdgeSettings {
    /// The triggers of the configuration. Those that were made over the API are in the store.
    pub triggers: BTreeMap<TriggerName, TriggerSpec>,
    /// The connectors.
    pub connectors: BTreeMap<ConnectorName, ConnectorSpec>,
    /// The host's secrets, including those that verify calls from outside.
    pub secrets: Secrets,
}
