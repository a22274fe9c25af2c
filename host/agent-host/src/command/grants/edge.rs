//! `grants explain --trigger` and `grants explain --connector`: what the calls of a trigger's or a
//! connector's component are bound to, and on whose behalf they lead to turns.

use crate::answer::{self, Answer, fill, lines};
use crate::command::component::granted;
use crate::config::{Loaded, meant};
use crate::failure::{Exit, Failure};
use crate::serve::load_catalogue;
use anyhow::anyhow;
use broker::{Catalogue, Entry};
use domain::connector::{DIRECT, Groups, UnknownSender};
use domain::grant::Grant;
use domain::trigger::{TriggerKind, TriggerTarget};
use serde_json::json;

/// The bounds of every call of a trigger.
const NOTHING: &str = "the log, a frozen clock and seeded randomness, and nothing else";

/// A target in words.
const TARGET: &str = "[[the agent {/agent}]][[the session {/session}]][[the turn {/turn}]]\
                      [[the agent at {/path}]][[the persona {/persona}]]\
                      [[{?/smart}the thread on the same topic]]";
/// The lines on a trigger, before its further targets.
const TRIGGER: [(&str, &str); 4] = [
    ("", "the trigger {/trigger} calls {/component}@{/code:32}"),
    ("", "  the call is bound to"),
    ("/bound_to", "    {}"),
    (
        "/folder",
        "  the host looks at the folder `{}`, and the call is told names and sizes",
    ),
];
/// The lines on the turns that it leads to.
const TURNS: [(&str, &str); 2] = [
    (
        "/user",
        "  they are said for {}, and their turns may do what those of {} may",
    ),
    (
        "",
        "[[{?/untrusted}  they are untrusted, and so is all that comes of them]]",
    ),
];
/// The lines on a connector, before others than its users.
const CONNECTOR: [(&str, &str); 5] = [
    (
        "",
        "the connector {/connector} calls {/component}@{/code:32}",
    ),
    ("", "  the calls are bound to"),
    ("/bound_to", "    {}"),
    (
        "",
        "[[{?/verified}  the host verifies each call of the service before it is read]]",
    ),
    (
        "",
        "  a sender with a key of {/connector} is its user, who talks with {/agent} at \
         /<user>/{/connector}",
    ),
];
/// The lines on a connector that is the host's own chat.
const OWN_CHAT: [(&str, &str); 2] = [
    (
        "",
        "the connector {/connector} is the host's own chat for web pages",
    ),
    (
        "",
        "  each visitor is a user of their own, who talks with {/agent}",
    ),
];

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
    let folder = match &spec.on {
        TriggerKind::Files(files) => Some(&files.folder),
        _ => None,
    };
    let document = json!({
        "trigger": name, "component": entry.name, "code": entry.component.digest().reference(),
        "kind": spec.on.key(), "user": spec.user, "target": spec.target, "targets": spec.targets,
        "untrusted": is_from_outside(&spec.on), "bound_to": [NOTHING], "folder": folder,
    });
    let mut lines = lines(&document, &TRIGGER);
    lines.push(format!("  its messages go to {}", target(&spec.target)));
    let further = spec.targets.iter();
    let further = further.map(|(name, it)| format!("    or, as `{name}`, to {}", target(it)));
    lines.extend(further);
    lines.extend(answer::lines(&document, &TURNS));
    Ok(Answer::new(document, lines))
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
    fill(&json!(target), TARGET)
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
        return Ok(Answer::describing(document, |it| lines(it, &OWN_CHAT)));
    }
    let catalogue = load_catalogue(loaded).await?;
    let entry = entry(&catalogue, &spec.component)?;
    let document = json!({
        "connector": name, "component": entry.name, "code": entry.component.digest().reference(),
        "agent": spec.agent, "intake": spec.intake().as_str(), "unknown": spec.unknown.as_str(),
        "groups": spec.groups.as_str(), "bound_to": bound_to(entry),
        "untrusted": spec.untrusted, "verified": spec.webhook.is_some(),
    });
    let others = match spec.unknown {
        UnknownSender::Ignore => "  others are not heard",
        UnknownSender::Refuse => "  others are told that they are not known",
        UnknownSender::Pair => {
            "  others get a code, with which the operator or a user says who they are"
        }
    };
    let groups = match spec.groups {
        Groups::Ignore => "  groups are not heard",
        Groups::Bound => "  a group with a key is a user of its own, whose words are untrusted",
    };
    let untrusted = "[[{?/untrusted}  all messages are untrusted, whoever sends them]]";
    let mut lines = lines(&document, &CONNECTOR);
    lines.extend(answer::lines(
        &document,
        &[("", others), ("", untrusted), ("", groups)],
    ));
    Ok(Answer::new(document, lines))
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

fn unknown(what: &str, name: &str, known: &[&str]) -> Failure {
    let fix = meant(name, known, || match known {
        [] => "the configuration has none".to_owned(),
        known => format!("known are {}", known.join(", ")),
    });
    Failure::new(Exit::Usage, anyhow!("there is no {what} `{name}`; {fix}"))
}
