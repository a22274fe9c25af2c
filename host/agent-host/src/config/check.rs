//! What can be wrong with a configuration that is well-formed.

use super::{BUILT_INS, Config, Loaded, ranges};
use domain::definition::{AgentType, Definition, ToolExposure};
use domain::grant::DirectoryGrant;
use serde::Serialize;
use std::collections::BTreeSet;

/// Characters of a definition's id.
const ID_CHARS_MAX: usize = 64;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// The host does not start.
    Error,
    /// The host starts; somebody should look at it.
    Warning,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The key.
    pub(crate) key: String,
    /// What is wrong, and the fix.
    pub(crate) message: String,
}

pub(super) fn error(key: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding { severity: Severity::Error, key: key.into(), message: message.into() }
}

fn warning(key: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding { severity: Severity::Warning, key: key.into(), message: message.into() }
}

/// Everything that is wrong or odd. Looks at folders and files, and at nothing else.
pub(crate) fn check(loaded: &Loaded) -> Vec<Finding> {
    let mut findings = Vec::new();
    check_agents(loaded, &mut findings);
    check_components(loaded, &mut findings);
    check_models(loaded, &mut findings);
    findings.extend(loaded.config.limits.check());
    findings.extend(ranges::check("server.limits", &loaded.config.server.limits));
    let listen = loaded.config.server.listen;
    if !listen.ip().is_loopback() {
        let message =
            format!("{listen} can be reached from other machines, and the API speaks plain HTTP; put something in front that speaks TLS");
        findings.push(warning("server.listen", message));
    }
    findings
}

fn check_agents(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let config = &loaded.config;
    if config.agents.is_empty() {
        findings.push(warning("agents", "no agent is defined, so there is nobody to talk to"));
    }
    let mut seen = BTreeSet::new();
    for (index, definition) in config.agents.iter().enumerate() {
        let Definition { agent_id, agent_type, component, model, .. } = definition;
        let id = agent_id.0.as_str();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if id.is_empty() || id.len() > ID_CHARS_MAX || !id.chars().all(fits) {
            let message = format!("`{id}` must be 1 to {ID_CHARS_MAX} of a-z, 0-9, `-` and `_`");
            findings.push(error(format!("agents[{index}].agentId"), message));
        }
        if !seen.insert(id) {
            findings.push(error(format!("agents[{index}].agentId"), format!("`{id}` is defined twice; give one of them another agentId")));
        }
        findings.extend(ranges::check(&format!("agents[{index}].limits"), &definition.limits));
        if *agent_type == AgentType::External {
            findings.push(error(format!("agents[{index}].type"), "this version drives no agents outside of the host; leave `type` out"));
        }
        for key in without_effect(definition) {
            findings.push(warning(format!("agents[{index}].{key}"), "it is read and has no effect in this version"));
        }
        let built_in = BUILT_INS.iter().any(|(name, _)| name == component);
        if !built_in && !config.components.contains_key(component) {
            let message = format!("there is no component `{component}`; add it to `components`, or name one of {}", built_in_names());
            findings.push(error(format!("agents[{index}].component"), message));
        }
        if let Some(model) = model.as_ref().filter(|model| !names_a_model(config, model)) {
            findings.push(error(format!("agents[{index}].model"), format!("there is no model `{model}` in `models`")));
        }
    }
}

/// Keys of the design that say something this version does not act upon.
fn without_effect(definition: &Definition) -> Vec<&'static str> {
    let said = [
        ("chat.provider", definition.chat.provider.is_some()),
        ("toolExposure", definition.tool_exposure != ToolExposure::Tools),
        ("skillAllowlist", definition.skill_allowlist.is_some()),
        ("skillDenylist", definition.skill_denylist.is_some()),
        ("apiExposed", definition.api_exposed),
    ];
    said.into_iter().filter(|(_, said)| *said).map(|(key, _)| key).collect()
}

/// Whether it is an alias, the provider's name of a model, or both with a slash between.
fn names_a_model(config: &Config, name: &str) -> bool {
    config.models.contains_key(name)
        || config.models.values().any(|model| model.model == name || format!("{}/{}", model.provider, model.model) == name)
}

fn built_in_names() -> String {
    BUILT_INS.map(|(name, _)| format!("`{name}`")).join(", ")
}

fn check_components(loaded: &Loaded, findings: &mut Vec<Finding>) {
    for (name, component) in &loaded.config.components {
        let built_in = BUILT_INS.iter().any(|(built_in, _)| built_in == name);
        match &component.path {
            None if !built_in => {
                let message = format!("say which file it is; only {} are known without", built_in_names());
                findings.push(error(format!("components.{name}.path"), message));
            }
            Some(path) if !loaded.resolve(path).is_file() => {
                let path = loaded.resolve(path);
                let message = match path.exists() {
                    true => format!("`{}` is not a regular file", path.display()),
                    false => format!("there is no file `{}`", path.display()),
                };
                findings.push(error(format!("components.{name}.path"), message));
            }
            Some(_) | None => {}
        }
        findings.extend(ranges::check(&format!("components.{name}.limits"), &component.limits));
        let mut seen = BTreeSet::new();
        for (index, DirectoryGrant { path, at, .. }) in component.directories.iter().enumerate() {
            let key = format!("components.{name}.directories[{index}]");
            let path = loaded.resolve(path);
            if !path.is_dir() {
                let message = format!("there is no folder `{}`; make it with: mkdir -p {}", path.display(), path.display());
                findings.push(error(format!("{key}.path"), message));
            }
            if !at.starts_with('/') {
                findings.push(error(format!("{key}.at"), format!("`{at}` must begin with `/`, such as `/workspace`")));
            }
            if !seen.insert(at) {
                findings.push(error(format!("{key}.at"), format!("`{at}` is granted twice")));
            }
        }
    }
}

fn check_models(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let config = &loaded.config;
    if config.models.is_empty() && !config.agents.is_empty() {
        findings.push(warning("models", "no model is configured: agents that ask one will be told so"));
    }
    for name in config.scripted() {
        findings.push(warning(format!("providers.{name}"), "answers from a script: no model is asked"));
    }
}
