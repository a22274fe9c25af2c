//! Agent components that may ask no model: most of them have nothing to say then.

use super::check::{Finding, warning};
use broker::Entry;
use domain::definition::Definition;
use runtime::Described;

/// A warning for each agent component that drives an agent and is granted no model.
pub(crate) fn mute<'a>(agents: &[Definition], entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Finding> {
    let mute = entries.into_iter().filter(|entry| {
        let drives = agents.iter().any(|agent| agent.component == entry.name);
        drives && entry.grant.models.is_empty() && matches!(entry.component.describes(), Described::Agent(_))
    });
    mute.map(|entry| {
        let message = "it drives an agent and may ask no model; name the models that it may ask, or all of them with models = [\"*\"]";
        warning(format!("components.{}.models", entry.name), message)
    })
    .collect()
}
