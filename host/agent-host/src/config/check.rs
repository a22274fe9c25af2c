//! Checks of a configuration that is well-formed but may still be wrong.

use super::component::{BUILT_INS, built_in_names};
use super::document::{Config, Loaded};
use super::finding::{Finding, Severity, error, warning};
use super::{
    agents, component, connectors, directories, elsewhere, external, literal_paths, patterns,
    programs, ranges, secrets, server, skills, triggers, turn_limits,
};
use crate::guests;
use broker::Catalogue;
use domain::grant::GuestLimits;
use domain::path::PathKind;
use std::collections::BTreeSet;

/// Finds all faults and oddities. It looks at folders, files, the variables that are named in it
/// and those that say something elsewhere, and at nothing else.
pub(crate) fn check(loaded: &Loaded) -> Vec<Finding> {
    let mut findings = Vec::new();
    elsewhere::check(&mut findings);
    literal_paths::check(&loaded.config, &mut findings);
    agents::check(&loaded.config, &mut findings);
    agents::check_personas(&loaded.config, &mut findings);
    agents::check_rules(&loaded.config, &mut findings);
    agents::check_roles(&loaded.config, &mut findings);
    skills::check(loaded, &mut findings);
    check_components(loaded, &mut findings);
    check_pins(loaded, &mut findings);
    directories::check_overlaps(loaded, &mut findings);
    triggers::check(&loaded.config, &mut findings);
    connectors::check(&loaded.config, &mut findings);
    secrets::check(loaded, &mut findings);
    let at_rest = secrets::at_rest(loaded);
    findings.extend(external::alike(&loaded.config, &at_rest));
    check_models(loaded, &mut findings);
    turn_limits::check(&loaded.config, &mut findings);
    programs::check(loaded, &mut findings);
    findings.extend(loaded.config.agent_tools.check());
    let of_schema = ranges::check(&loaded.config).into_iter();
    let is_reported = |key: &str| {
        let mut errors = findings.iter().filter(|it| it.severity == Severity::Error);
        errors.any(|it| it.key == key)
    };
    let new: Vec<Finding> = of_schema.filter(|it| !is_reported(&it.key)).collect();
    findings.extend(new);
    server::check_identity(&loaded.config.server.identity, &mut findings);
    directories::check_file_system(loaded, &mut findings);
    let listen = loaded.config.server.listen;
    if !listen.ip().is_loopback() {
        let message = format!(
            "{listen} can be reached from other machines, and the API speaks plain HTTP; \
                     put something in front that speaks TLS"
        );
        findings.push(warning("server.listen", message));
    }
    findings
}

/// Finds what an operator should look at in the code of the components: patterns and wishes that it
/// does not fit.
pub(crate) fn about_code(loaded: &Loaded, catalogue: &Catalogue) -> Vec<Finding> {
    let Config {
        agents, components, ..
    } = &loaded.config;
    let tools = || catalogue.tools().map(|(_, tool)| &**tool);
    let entries = || catalogue.entries().map(|entry| &**entry);
    let mut findings = patterns::unmatched(agents, tools());
    findings.extend(patterns::mute(agents, components, entries()));
    findings.extend(patterns::wanted(agents, entries(), tools()));
    findings
}

/// Finds what [`check`] finds, and what is wrong with what the commands for secrets say. They are
/// run as a start runs them.
pub(crate) async fn check_with_commands(loaded: &Loaded) -> Vec<Finding> {
    let mut findings = check(loaded);
    let (values, refused) = secrets::tried(loaded).await;
    findings.extend(refused);
    let alike = external::alike(&loaded.config, &values).into_iter();
    let new: Vec<Finding> = alike.filter(|it| !findings.contains(it)).collect();
    findings.extend(new);
    findings
}

/// Finds components without a digest, where each has to have one.
fn check_pins(loaded: &Loaded, findings: &mut Vec<Finding>) {
    if !loaded.config.require_pins {
        return;
    }
    for (name, _) in guests::wanted(loaded)
        .iter()
        .filter(|(_, component)| component.sha256.is_none())
    {
        let message = format!(
            "`requirePins` is set, and no digest says which code is meant; `agent-host \
                     component inspect {name}` tells it"
        );
        findings.push(error(format!("components.{name}.sha256"), message));
    }
}

fn check_components(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let models: BTreeSet<&str> = loaded.config.models.keys().map(String::as_str).collect();
    let agents: BTreeSet<&str> = loaded
        .config
        .agents
        .iter()
        .map(|agent| agent.agent_id.0.as_str())
        .collect();
    for (name, component) in &loaded.config.components {
        let built_in = BUILT_INS.contains(&name.as_str());
        match &component.path {
            None if !built_in => {
                let message = format!(
                    "say which file it is; only {} are known without",
                    built_in_names()
                );
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
        directories::check(loaded, name, &component.directories, findings);
        component::check_buckets(name, &component.key_value, findings);
        component::check_environment(name, &component.environment, findings);
        component::check_network(name, &component.network, &component.limits, findings);
        check_times(name, &component.limits, findings);
        for (key, list, what, known) in [
            ("models", &component.models, "model of `models`", &models),
            ("agents", &component.agents, "agent", &agents),
        ] {
            let key = format!("components.{name}.{key}");
            findings.extend(patterns::nothing(&key, list.as_ref(), what, known));
        }
    }
}

/// Finds a call that computes for longer than it lasts. A limit that is not written is not looked
/// at: it is no mistake of the operator's.
fn check_times(component: &str, limits: &GuestLimits, findings: &mut Vec<Finding>) {
    let GuestLimits {
        cpu_ms_max,
        wall_ms_max,
        ..
    } = *limits;
    if wall_ms_max < cpu_ms_max && cpu_ms_max != GuestLimits::default().cpu_ms_max {
        let message = format!(
            "a call that ends after {wall_ms_max} ms (`wallMsMax`) never computes for \
             {cpu_ms_max}; make it at most {wall_ms_max}, or \
             `wallMsMax` at least {cpu_ms_max}"
        );
        findings.push(error(
            format!("components.{component}.limits.cpuMsMax"),
            message,
        ));
    }
}

fn check_models(loaded: &Loaded, findings: &mut Vec<Finding>) {
    let config = &loaded.config;
    if config.models.is_empty() && !config.agents.is_empty() {
        findings.push(warning(
            "models",
            "no model is configured: agents that ask one will be told so",
        ));
    }
    if config.models.len() > 1 && config.default_model.is_none() {
        let without = without_model(config);
        if !without.is_empty() {
            let message = format!(
                "there are several models, and none of them is the default: turns of agents that \
                 name none cannot ask any ({}); name one here",
                without.join(", ")
            );
            findings.push(warning("defaultModel", message));
        }
    }
    for name in config.scripted() {
        findings.push(warning(
            format!("providers.{name}"),
            "answers from a script: no model is asked",
        ));
    }
}

/// Returns the agents for which no model is named: by themselves, or by a role that they may have.
fn without_model(config: &Config) -> Vec<String> {
    let paths = config.path_settings();
    let kinds = [
        PathKind::Agent,
        PathKind::Sub,
        PathKind::Memory,
        PathKind::Search,
    ];
    let definitions = config.definitions().into_iter();
    definitions
        .filter(|definition| definition.program().is_none())
        .filter(|definition| {
            kinds
                .iter()
                .all(|kind| paths.model_of(*kind, definition).is_none())
        })
        .map(|definition| definition.agent_id.0)
        .collect()
}
