//! `grants explain --trigger` and `grants explain --connector`: what the calls of a trigger's or a
//! connector's component are bound to, and on whose behalf they lead to turns.

use crate::answer::Answer;
use crate::command::component::granted;
use crate::config::{Loaded, meant};
use crate::failure::{Exit, Failure};
use crate::serve::load_catalogue;
use anyhow::anyhow;
use broker::{Catalogue, Entry};
use domain::connector::{ConnectorSpec, DIRECT, Groups, UnknownSender};
use domain::grant::Grant;
use domain::trigger::{TriggerKind, TriggerSpec, TriggerTarget};
use serde_json::json;

/// The bounds of every call of a trigger.
const NOTHING: &str = "the log, a frozen clock and seeded randomness, and nothing else";

/// Explains a trigger of the configuration.
pub(super) async fn trigger(loaded: &Loaded, name: &str) -> Result<Answer, Failure> {
    let triggers = loaded.config.all_triggers();
    let known: Vec<&str> = triggers.keys().map(|name| name.as_str()).collect();
    let found = triggers.iter().find(|(known, _)| known.as_str() == name);
    let Some((_, spec)) = found else {
        return Err(unknown("trigger", name, &known));
    };
    let catalogue = load_catalogue(loaded).await?;
    let entry = entry(&catalogue, spec.component())?;
    let outside = is_from_outside(&spec.on);
    let document = json!({
        "trigger": name, "component": entry.name, "code": entry.component.digest().reference(),
        "kind": spec.on.key(), "user": spec.user, "target": spec.target, "targets": spec.targets,
        "untrusted": outside, "bound_to": [NOTHING],
    });
    Ok(Answer::new(document, trigger_lines(name, spec, entry)))
}

fn trigger_lines(name: &str, spec: &TriggerSpec, entry: &Entry) -> Vec<String> {
    let user = spec.user.as_ref().map(ToString::to_string);
    let user = user.unwrap_or_default();
    let mut lines = vec![
        format!("the trigger {name} calls {}", code(entry)),
        "  the call is bound to".to_owned(),
        format!("    {NOTHING}"),
    ];
    if let TriggerKind::Files(files) = &spec.on {
        lines.push(format!(
            "  the host looks at the folder `{}`, and the call is told names and sizes",
            files.folder
        ));
    }
    lines.push(format!("  its messages go to {}", target(&spec.target)));
    let further = spec.targets.iter();
    lines.extend(further.map(|(name, it)| format!("    or, as `{name}`, to {}", target(it))));
    lines.push(format!(
        "  they are said for {user}, and their turns may do what those of {user} may"
    ));
    if is_from_outside(&spec.on) {
        lines.push("  they are untrusted, and so is all that comes of them".to_owned());
    }
    lines
}

/// Returns whether trigger events of a kind bring what somebody outside wrote.
fn is_from_outside(kind: &TriggerKind) -> bool {
    match kind {
        TriggerKind::Webhook(_) | TriggerKind::Files(_) | TriggerKind::Events(_) => true,
        TriggerKind::Schedule(_) | TriggerKind::Heartbeat(_) => false,
    }
}

/// Returns a target in words.
fn target(target: &TriggerTarget) -> String {
    match target {
        TriggerTarget::Agent { agent } => format!("the agent {agent}"),
        TriggerTarget::Session { session } => format!("the session {session}"),
        TriggerTarget::Turn { turn } => format!("the turn {turn}"),
        TriggerTarget::Path { path } => format!("the agent at {path}"),
        TriggerTarget::Persona { persona } => format!("the persona {persona}"),
        TriggerTarget::Smart { .. } => "the thread on the same topic".to_owned(),
    }
}

/// Explains a connector of the configuration.
pub(super) async fn connector(loaded: &Loaded, name: &str) -> Result<Answer, Failure> {
    let connectors = &loaded.config.connectors;
    let known: Vec<&str> = connectors.keys().map(|name| name.as_str()).collect();
    let found = connectors.iter().find(|(known, _)| known.as_str() == name);
    let Some((_, spec)) = found else {
        return Err(unknown("connector", name, &known));
    };
    if spec.component == DIRECT {
        let bounds = ["the host itself: it has no component"];
        let document = json!({ "connector": name, "agent": spec.agent, "bound_to": bounds });
        let lines = [
            format!("the connector {name} is the host's own chat for web pages"),
            format!(
                "  each visitor is a user of their own, who talks with {}",
                spec.agent
            ),
        ];
        return Ok(Answer::new(document, lines));
    }
    let catalogue = load_catalogue(loaded).await?;
    let entry = entry(&catalogue, &spec.component)?;
    let document = json!({
        "connector": name, "component": entry.name, "code": entry.component.digest().reference(),
        "agent": spec.agent, "intake": spec.intake().as_str(), "unknown": spec.unknown.as_str(),
        "groups": spec.groups.as_str(), "bound_to": bound_to(entry),
    });
    Ok(Answer::new(document, connector_lines(name, spec, entry)))
}

fn connector_lines(name: &str, spec: &ConnectorSpec, entry: &Entry) -> Vec<String> {
    let mut lines = vec![
        format!("the connector {name} calls {}", code(entry)),
        "  the calls are bound to".to_owned(),
    ];
    let bounds = bound_to(entry).into_iter();
    lines.extend(bounds.map(|bound| format!("    {bound}")));
    if spec.webhook.is_some() {
        lines.push("  the host verifies each call of the service before it is read".to_owned());
    }
    lines.push(format!(
        "  a sender with a key of {name} is its user, who talks with {} at /<user>/{name}",
        spec.agent
    ));
    lines.push(match spec.unknown {
        UnknownSender::Ignore => "  others are not heard".to_owned(),
        UnknownSender::Refuse => "  others are told that they are not known".to_owned(),
        UnknownSender::Pair => {
            "  others get a code, with which the operator or a user says who they are".to_owned()
        }
    });
    if spec.untrusted {
        lines.push("  all messages are untrusted, whoever sends them".to_owned());
    }
    lines.push(match spec.groups {
        Groups::Ignore => "  groups are not heard".to_owned(),
        Groups::Bound => {
            "  a group with a key is a user of its own, whose words are untrusted".to_owned()
        }
    });
    lines
}

/// Returns what the calls of a connector's component may use. It has no use for other grants.
fn bound_to(entry: &Entry) -> Vec<String> {
    let used = Grant {
        network: entry.grant.network.clone(),
        environment: entry.grant.environment.clone(),
        secrets: entry.grant.secrets.clone(),
        ..Grant::default()
    };
    let bounds = granted(&used);
    if bounds.is_empty() {
        return vec!["nothing but their arguments".to_owned()];
    }
    bounds
}

fn entry<'a>(catalogue: &'a Catalogue, component: &str) -> Result<&'a Entry, Failure> {
    let found = catalogue.entry(component).map(|entry| &**entry);
    found.ok_or_else(|| Failure::new(Exit::Usage, anyhow!("there is no component `{component}`")))
}

/// Returns a component with its code.
fn code(entry: &Entry) -> String {
    format!("{}@{}", entry.name, entry.component.digest().short())
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Failure {
    let fix = meant(name, known, || match known {
        [] => "the configuration has none".to_owned(),
        known => format!("known are {}", known.join(", ")),
    });
    Failure::new(Exit::Usage, anyhow!("there is no {what} `{name}`; {fix}"))
}
