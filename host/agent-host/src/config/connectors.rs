//! Checks of connectors that are well-formed but may still be wrong. Those that need the component
//! itself are in `fit.rs`.

use super::document::Config;
use super::finding::{Finding, error, faults_within, warning};
use super::key::nearest;
use super::{known, secrets};
use domain::connector::{CONNECTORS_MAX, ConnectorSpec, DIRECT, WebhookCheck};
use domain::path::ConnectorName;

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
        let fix = match nearest(name.as_str(), &known) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "it has no effect".to_owned(),
        };
        let message = format!("there is no connector `{name}` in `connectors`; {fix}");
        findings.push(warning(format!("queue.byChannel.{name}"), message));
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
