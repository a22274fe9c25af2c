//! Checks of connectors that are well-formed but may still be wrong; and of connectors and triggers
//! against what their components say of themselves.

use super::document::Config;
use super::finding::{Finding, error, faults_within, meant, warning};
use super::{hooks, known, secrets, turn_limits};
use broker::Catalogue;
use domain::connector::{CONNECTORS_MAX, ConnectorSpec, DIRECT, WebhookCheck};
use domain::path::ConnectorName;
use domain::shown::visible;
use domain::trigger::{TriggerName, TriggerSpec};
use runtime::Described;
use serde_json::Value;
use std::collections::BTreeSet;

/// Finds all faults and oddities of the connectors.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let count = config.connectors.len();
    if count > CONNECTORS_MAX {
        let message = format!("there are {count}, and {CONNECTORS_MAX} is the most; take some out");
        findings.push(error("connectors", message));
    }
    for (name, spec) in &config.connectors {
        check_one(config, name, spec, findings);
    }
    check_channels(config, findings);
}

fn check_one(
    config: &Config,
    name: &ConnectorName,
    spec: &ConnectorSpec,
    findings: &mut Vec<Finding>,
) {
    let section = format!("connectors.{name}");
    let key = |field: &str| format!("{section}.{field}");
    findings.extend(faults_within(&section, spec.faults()));
    let no_agent = known::no_agent(config, &spec.agent);
    findings.extend(no_agent.map(|message| error(key("agent"), message)));
    for Named { field, secret } in secrets_of(spec) {
        if !config.secrets.contains_key(secret) {
            findings.push(error(key(&field), secrets::not_there(config)));
        }
    }
    if spec.component == DIRECT {
        if config.components.contains_key(DIRECT) {
            let message = "a connector of this component is the host's own chat for web pages, \
                           which needs no component; give this one another name";
            findings.push(error(format!("components.{DIRECT}"), message));
        }
        return;
    }
    match known::no_component(config, &spec.component) {
        Some(message) => findings.push(error(key("component"), message)),
        None if spec.enabled => findings.extend(without_network(config, &spec.component)),
        None => {}
    }
}

/// A secret that a connector's definition names.
struct Named<'a> {
    /// The field below the connector.
    field: String,
    /// The name.
    secret: &'a str,
}

/// Returns the secrets with which calls of a connector's service are checked.
fn secrets_of(spec: &ConnectorSpec) -> Vec<Named<'_>> {
    let Some(check) = &spec.webhook else {
        return Vec::new();
    };
    let kind = match check {
        WebhookCheck::Telegram { .. } => "telegram",
        WebhookCheck::Meta { .. } => "meta",
        WebhookCheck::Slack { .. } => "slack",
        WebhookCheck::Token { .. } => "token",
    };
    let named = |field: &str, secret| Named {
        field: format!("webhook.{kind}.{field}"),
        secret,
    };
    let handshake = check.verify_token();
    std::iter::once(named("secret", check.secret()))
        .chain(handshake.map(|token| named("verifyToken", token)))
        .collect()
}

/// Returns the finding about a connector's component that can send no request.
fn without_network(config: &Config, component: &str) -> Option<Finding> {
    let configured = config.components.get(component);
    let has_network = configured.is_some_and(|it| !it.network.is_empty());
    let message = "a connector that may send no request reaches no service; grant it the hosts of \
                   its service, and in `secrets` the token that they ask for";
    (!has_network).then(|| warning(format!("components.{component}.network"), message))
}

/// Finds settings of the queue for connectors that there are not.
fn check_channels(config: &Config, findings: &mut Vec<Finding>) {
    let known: Vec<&str> = config
        .connectors
        .keys()
        .map(ConnectorName::as_str)
        .collect();
    for name in config.queue.by_channel.keys() {
        if config.connectors.contains_key(name) {
            continue;
        }
        let fix = meant(name.as_str(), &known, || "it has no effect".to_owned());
        let message = format!("there is no connector `{name}` in `connectors`; {fix}");
        findings.push(warning(format!("queue.byChannel.{name}"), message));
    }
}

/// Bytes that are shown of a component's complaint about its configuration.
const COMPLAINT_BYTES_MAX: usize = 1_024;

/// Finds all triggers and connectors that their components cannot be, and limits of turns below one
/// call with the tools that components bring. One whose component is not
/// there is a finding of the configuration alone.
pub(crate) async fn unfit(config: &Config, catalogue: &Catalogue) -> Vec<Finding> {
    let mut findings = turn_limits::with_tools(config, catalogue);
    for (name, spec) in &config.all_triggers() {
        findings.extend(of_trigger(config, catalogue, NamedSpec { name, spec }).await);
    }
    for (name, spec) in &config.connectors {
        findings.extend(of_connector(catalogue, NamedSpec { name, spec }).await);
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
struct NamedSpec<'a, N, S> {
    name: &'a N,
    spec: &'a S,
}

async fn of_trigger(
    config: &Config,
    catalogue: &Catalogue,
    trigger: NamedSpec<'_, TriggerName, TriggerSpec>,
) -> Option<Finding> {
    let NamedSpec { name, spec } = trigger;
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
    connector: NamedSpec<'_, ConnectorName, ConnectorSpec>,
) -> Option<Finding> {
    let NamedSpec { name, spec } = connector;
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

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::super::tests::findings;

    const AGENT: &str = "[[agents]]\nagentId = \"assistant\"\ndisplayName = \"A\"\n";

    fn reported(text: &str) -> Vec<String> {
        findings(&format!("{AGENT}{text}"))
            .into_iter()
            .filter(|(_, key, _)| key != "models" && !key.starts_with("secrets."))
            .map(|(severity, key, message)| match severity {
                Severity::Error => format!("{key}: {message}"),
                Severity::Warning => format!("warning: {key}: {message}"),
            })
            .collect()
    }

    /// A connector that is fine, with further lines.
    fn telegram(more: &str) -> String {
        format!(
            "[components.telegram]\nnetwork = [{{ host = \"api.telegram.org\", methods = \
             [\"POST\"] }}]\n[secrets.hook]\ncommand = [\"true\"]\n[connectors.telegram]\n\
             component = \"telegram\"\nagent = \"assistant\"\n{more}"
        )
    }

    #[test]
    fn a_connector_whose_names_are_all_there_is_fine() {
        assert_eq!(reported(&telegram("")), Vec::<String>::new());
        let webhook = "webhook = { telegram = { secret = \"hook\" } }\n";
        assert_eq!(reported(&telegram(webhook)), Vec::<String>::new());
        let pages = "[connectors.web]\ncomponent = \"direct\"\nagent = \"assistant\"\n\
                     configuration = { origins = [\"https://a.example\"] }\n";
        assert_eq!(reported(pages), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_with_a_connector_is_told_with_its_key_and_the_fix() {
        for (text, key, says) in [
            (
                telegram("intake = \"webhook\"\n"),
                "connectors.telegram.webhook",
                "how calls of the service prove",
            ),
            (
                telegram("webhook = { telegram = { secret = \"hok\" } }\n"),
                "connectors.telegram.webhook.telegram.secret",
                "it names no secret of `secrets`, which has `hook`",
            ),
            (
                telegram("refusal = \"no\"\n"),
                "connectors.telegram.refusal",
                "`refuse`",
            ),
            (
                telegram("").replace("\"assistant\"\n", "\"asistant\"\n"),
                "connectors.telegram.agent",
                "did you mean `assistant`?",
            ),
            (
                telegram("").replace("component = \"telegram\"", "component = \"telegarm\""),
                "connectors.telegram.component",
                "did you mean `telegram`?",
            ),
            (
                "[connectors.web]\ncomponent = \"direct\"\nagent = \"assistant\"\n\
                 configuration = { origins = [\"*\"] }\n"
                    .to_owned(),
                "connectors.web.configuration.origins",
                "`*` is no origin",
            ),
            (
                "[connectors.slack]\ncomponent = \"slack\"\nagent = \"assistant\"\n".to_owned(),
                "warning: components.slack.network",
                "grant it the hosts",
            ),
            (
                format!(
                    "{}[queue.byChannel]\ntelegarm = \"collect\"\n",
                    telegram("")
                ),
                "warning: queue.byChannel.telegarm",
                "did you mean `telegram`?",
            ),
        ] {
            let found = reported(&text);
            let [one] = found.as_slice() else {
                panic!("{text}: {found:?}")
            };
            assert!(
                one.starts_with(&format!("{key}: ")) && one.contains(says),
                "{one}"
            );
        }
    }
}
