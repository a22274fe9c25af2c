//! Checks of a trigger's definition against the rest of the host: its component, the folder and the
//! secret that it names, its targets and model, and its configuration.

use super::targets;
use crate::core::Core;
use crate::refusals::{component_not_found, invalid_field, invalid_spec};
use broker::Error;
use domain::trigger::{TriggerKind, TriggerSpec};
use runtime::Described;

/// Checks a trigger's definition.
///
/// # Errors
/// The first fault, with its field and the fix.
pub(super) async fn check(core: &Core, spec: &TriggerSpec) -> Result<(), Error> {
    spec.check().map_err(|fault| invalid_spec(&fault))?;
    let name = spec.component();
    let entry = core.component(name);
    let entry = entry.ok_or_else(|| component_not_found(name))?;
    let Described::Trigger(description) = entry.component.describes() else {
        return Err(component_not_found(name).into());
    };
    let trigger_events = spec.on.trigger_events();
    if !description
        .trigger_events
        .iter()
        .any(|kind| kind == trigger_events)
    {
        let message = format!(
            "the component `{name}` deals with {} only; name one that deals with `{trigger_events}`",
            description.trigger_events.join(", ")
        );
        return Err(invalid_field("component", message).into());
    }
    if let Some((field, folder)) = folder_of(spec)
        && !entry.grant.directories.iter().any(|it| it.at == folder)
    {
        let message = format!(
            "`{folder}` is no folder that the component `{name}` is granted; add it to \
             `components.{name}.directories` in the configuration"
        );
        return Err(invalid_field(field, message).into());
    }
    if let TriggerKind::Webhook(webhook) = &spec.on {
        let secret = webhook.auth.secret();
        if core.settings().secrets.get(secret).is_none() {
            let message = format!("there is no secret `{secret}`; add it to `secrets`");
            return Err(invalid_field("webhook.auth", message).into());
        }
    }
    targets::check(core, spec).await?;
    let document = spec.configuration.clone();
    match core
        .broker
        .complaints(&description.configuration, document)
        .await?
    {
        Some(complaints) => {
            let message = format!("it does not fit the component `{name}`: {complaints}");
            Err(invalid_field("configuration", message).into())
        }
        None => Ok(()),
    }
}

/// Returns the folder that a trigger needs, with the field that names it.
fn folder_of(spec: &TriggerSpec) -> Option<(&'static str, &str)> {
    match &spec.on {
        TriggerKind::Files(files) => Some(("files.folder", &files.folder)),
        TriggerKind::Heartbeat(heartbeat) => heartbeat
            .checklist
            .as_ref()
            .map(|file| ("heartbeat.checklist", file.component_directory.as_str())),
        TriggerKind::Schedule(_) | TriggerKind::Webhook(_) | TriggerKind::Events(_) => None,
    }
}
