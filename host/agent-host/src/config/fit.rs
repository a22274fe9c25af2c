//! Checks of triggers and connectors against what their components say of themselves: the kind of
//! component, what it can deal with, and the schema of its configuration.

use super::document::Config;
use super::finding::{Finding, error, faults_within, warning};
use super::{hooks, turn_limits};
use broker::Catalogue;
use domain::connector::ConnectorSpec;
use domain::path::ConnectorName;
use domain::shown::visible;
use domain::trigger::{TriggerName, TriggerSpec};
use runtime::Described;
use serde_json::Value;
use std::collections::BTreeSet;

/// Bytes that are shown of a component's complaint about its configuration.
const COMPLAINT_BYTES_MAX: usize = 1_024;

/// Finds all triggers and connectors that their components cannot be, and limits of turns below one
/// call with the tools that components bring. One whose component is not
/// there is a finding of the configuration alone.
pub(crate) async fn unfit(config: &Config, catalogue: &Catalogue) -> Vec<Finding> {
    let mut findings = turn_limits::with_tools(config, catalogue);
    for (name, spec) in &config.all_triggers() {
        findings.extend(of_trigger(config, catalogue, Named { name, spec }).await);
    }
    for (name, spec) in &config.connectors {
        findings.extend(of_connector(catalogue, Named { name, spec }).await);
    }
    findings
}

/// Finds connectors whose component is not granted the secret that it asks for: the one that its
/// configuration names under `secret`, as those of the host do.
pub(crate) fn without_secret(config: &Config, catalogue: &Catalogue) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, spec) in &config.connectors {
        let Some(entry) = catalogue.entry(&spec.component).filter(|_| spec.enabled) else {
            continue;
        };
        let Described::Connector(description) = entry.component.describes() else {
            continue;
        };
        let schema = &description.configuration;
        let default = || schema.pointer("/properties/secret/default");
        let asked = spec.configuration.get("secret").or_else(default);
        let Some(asked) = asked.and_then(Value::as_str) else {
            continue;
        };
        let granted = &entry.grant.secrets;
        if granted.iter().any(|grant| grant.secret == asked) {
            continue;
        }
        let component = &spec.component;
        let names: BTreeSet<&str> = granted.iter().map(|grant| grant.secret.as_str()).collect();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let fix = match names.as_slice() {
            [] => format!("grant it in `components.{component}.secrets`"),
            names => format!("write one that is granted: {}", names.join(", ")),
        };
        let message = format!("`{component}` is not granted the secret `{asked}`; {fix}");
        let key = format!("connectors.{name}.configuration.secret");
        findings.push(warning(key, message));
    }
    findings
}

/// A trigger or a connector with its name.
struct Named<'a, N, S> {
    name: &'a N,
    spec: &'a S,
}

async fn of_trigger(
    config: &Config,
    catalogue: &Catalogue,
    trigger: Named<'_, TriggerName, TriggerSpec>,
) -> Option<Finding> {
    let Named { name, spec } = trigger;
    let component = spec.component();
    let is_of_hooks = config.hooks.is_some() && hooks::NAMES.contains(&name.as_str());
    let section = if is_of_hooks {
        "hooks".to_owned()
    } else {
        format!("triggers.{name}")
    };
    let entry = catalogue.entry(component)?;
    let Described::Trigger(description) = entry.component.describes() else {
        let kind = entry.component.describes().kind();
        let message = format!("`{component}` is {kind}, and a trigger is needed; name another");
        return Some(error(format!("{section}.component"), message));
    };
    let asked = spec.on.trigger_events();
    if !description
        .trigger_events
        .iter()
        .any(|known| known == asked)
    {
        let message = format!(
            "`{component}` deals with trigger events of the kinds {}, and not with `{asked}`; name \
             another",
            description.trigger_events.join(", ")
        );
        return Some(error(format!("{section}.component"), message));
    }
    let configured = Configured {
        component,
        schema: &description.configuration,
        configuration: &spec.configuration,
    };
    configured.check(catalogue, &section).await
}

async fn of_connector(
    catalogue: &Catalogue,
    connector: Named<'_, ConnectorName, ConnectorSpec>,
) -> Option<Finding> {
    let Named { name, spec } = connector;
    let section = format!("connectors.{name}");
    let component = &spec.component;
    let entry = catalogue.entry(component)?;
    let Described::Connector(description) = entry.component.describes() else {
        let kind = entry.component.describes().kind();
        let message = format!("`{component}` is {kind}, and a connector is needed; name another");
        return Some(error(format!("{section}.component"), message));
    };
    if let Err(wrong) = spec.check_abilities(&description.abilities) {
        return faults_within(&section, [wrong]).next();
    }
    let configured = Configured {
        component,
        schema: &description.configuration,
        configuration: &spec.configuration,
    };
    configured.check(catalogue, &section).await
}

/// A configuration for a component.
struct Configured<'a> {
    component: &'a str,
    schema: &'a Value,
    configuration: &'a Value,
}

impl Configured<'_> {
    /// Compares it with the component's schema. Its values are not repeated beyond what the schema
    /// complains about.
    async fn check(&self, catalogue: &Catalogue, section: &str) -> Option<Finding> {
        let Self {
            component,
            schema,
            configuration,
        } = self;
        let compared = catalogue.complaints(schema, (*configuration).clone());
        let complaint = match compared.await {
            Ok(None) => return None,
            Ok(Some(complaint)) => visible(&complaint, COMPLAINT_BYTES_MAX),
            Err(given_up) => given_up,
        };
        let message = format!(
            "it does not fit what `{component}` takes: {complaint}; `agent-host component inspect \
             {component}` lists the keys"
        );
        Some(error(format!("{section}.configuration"), message))
    }
}
