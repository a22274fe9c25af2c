//! Checks of agents that are programs elsewhere.

use super::document::Config;
use super::finding::{Finding, error, said_of, warning};
use super::{component, secrets};
use domain::definition::{AgentType, Definition};
use domain::egress::Scheme;
use domain::external::{COMPONENT, ExternalSettings};
use domain::sampling::GenerationSettings;
use domain::secret::Secrets;

/// Finds what is wrong or odd about an agent's program.
pub(super) fn check(
    config: &Config,
    definition: &Definition,
    key: &dyn Fn(&str) -> String,
    findings: &mut Vec<Finding>,
) {
    let program = match (definition.agent_type, &definition.external) {
        (AgentType::Chat, None) => return,
        (AgentType::Chat, Some(_)) => {
            let message =
                "it has an effect only with `type = \"external\"`; set that, or take it out";
            return findings.push(error(key("external"), message));
        }
        (AgentType::External, None) => {
            let message =
                "an external agent needs `external`, with its `inputUrl` and its `secret`";
            return findings.push(error(key("external"), message));
        }
        (AgentType::External, Some(program)) => program,
    };
    if definition.template_for.is_some() {
        let message = "no agents are made of an external one, because its secret is its own; take \
                       this out";
        findings.push(error(key("templateFor"), message));
    }
    check_url(program, key, findings);
    if let Err(why) = program.check_callback() {
        findings.push(error(key("external.callbackBase"), why.to_string()));
    }
    let wrong = wrong_with_secret(config, definition, program);
    findings.extend(wrong.map(|message| error(key("external.secret"), message)));
    if is_of_host(definition) {
        let said = without_effect(definition).into_iter();
        findings.extend(said.map(|name| {
            let message = "it has no effect: the program behind this agent is sent what is said to \
                           it, and nothing else";
            warning(key(name), message)
        }));
    }
}

/// Returns whether an agent is an external one that the host's own component drives.
pub(super) fn is_of_host(definition: &Definition) -> bool {
    definition.program().is_some() && definition.driver() == COMPONENT
}

/// Keys that a definition has and that the host's own component does not act upon, besides those
/// of tools.
fn without_effect(definition: &Definition) -> Vec<&'static str> {
    let said = [
        ("systemPrompt", definition.system_prompt.is_some()),
        (
            "generation",
            definition.generation != GenerationSettings::default(),
        ),
        ("settings", !definition.settings.is_empty()),
        ("fixedSettings", !definition.fixed_settings.is_empty()),
        ("memoryHints", definition.memory_hints.is_some()),
    ];
    said_of(said)
}

/// Finds what is wrong with the URL that messages are posted to.
fn check_url(
    program: &ExternalSettings,
    key: &dyn Fn(&str) -> String,
    findings: &mut Vec<Finding>,
) {
    let grant = match program.grant() {
        Ok(grant) => grant,
        Err(why) => return findings.push(error(key("external.inputUrl"), why.to_string())),
    };
    if let Some(message) = component::nowhere(&grant) {
        findings.push(error(key("external.privateAddresses"), message));
    }
    let is_open = program
        .target()
        .is_ok_and(|target| target.scheme() == Scheme::Http && !target.host().is_loopback());
    if is_open {
        let message = "what is posted can be read on the way; use https://";
        findings.push(warning(key("external.inputUrl"), message));
    }
}

/// Returns the reason why an agent cannot sign with its secret: it is not there, or another agent
/// signs with it too.
fn wrong_with_secret(
    config: &Config,
    definition: &Definition,
    program: &ExternalSettings,
) -> Option<String> {
    let secret = &program.secret;
    if !config.secrets.contains_key(secret) {
        return Some(secrets::not_there(config));
    }
    let shares = |other: &&Definition| {
        let is_other = other.agent_id != definition.agent_id;
        let of_other = other.program().map(|program| &program.secret);
        is_other && of_other == Some(secret)
    };
    let other = config.agents.iter().find(shares)?;
    Some(format!(
        "`{}` signs with `{secret}` too, so each could answer for the other; give each a secret of \
         its own",
        other.agent_id
    ))
}

/// Finds agents whose programs would sign with one value under two names.
pub(crate) fn alike(config: &Config, secrets: &Secrets) -> Vec<Finding> {
    let values: Vec<(usize, &Definition, &str, &str)> = config
        .agents
        .iter()
        .enumerate()
        .filter_map(|(index, definition)| {
            let name = definition.program()?.secret.as_str();
            let value = secrets.get(name)?;
            Some((index, definition, name, value.expose()))
        })
        .collect();
    let found = values.iter().filter_map(|(index, _, name, value)| {
        let (_, other, other_name, _) = values
            .iter()
            .find(|(_, _, of_other, other)| of_other != name && other == value)?;
        let message = format!(
            "`{}` signs with `{other_name}`, which has the same value, so each could answer for \
             the other; give each a secret of its own",
            other.agent_id
        );
        Some(error(format!("agents[{index}].external.secret"), message))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::config::document::Config;
    use serde_json::{Value, json};

    fn config(agents: &Value) -> Config {
        let config = json!({ "agents": agents, "secrets": { "peer": { "env": "PEER" } } });
        serde_json::from_value(config).unwrap()
    }

    fn agent(id: &str, more: &Value) -> Value {
        let mut agent = json!({ "agentId": id, "displayName": id, "type": "external" });
        let fields = more.as_object().unwrap().clone();
        agent.as_object_mut().unwrap().extend(fields);
        agent
    }

    fn found(agents: &Value) -> Vec<String> {
        let config = config(agents);
        let mut findings = Vec::new();
        for definition in &config.agents {
            let key = |name: &str| format!("{}.{name}", definition.agent_id);
            check(&config, definition, &key, &mut findings);
        }
        findings
            .into_iter()
            .map(|found| format!("{}: {}", found.key, found.message))
            .collect()
    }

    fn external(url: &str) -> Value {
        json!({ "external": { "inputUrl": url, "secret": "peer" } })
    }

    #[test]
    fn a_program_with_a_url_and_a_secret_of_its_own_is_fine() {
        let url = external("https://peer.example/in");
        assert_eq!(found(&json!([agent("a", &url)])), Vec::<String>::new());
        assert!(config(&json!([agent("a", &url)])).signs_with("peer"));
        assert!(!config(&json!([])).signs_with("peer"));
    }

    #[test]
    fn what_cannot_work_is_told_with_the_key_and_the_fix() {
        for (agents, key, says) in [
            (
                json!([agent("a", &json!({}))]),
                "a.external",
                "needs `external`",
            ),
            (
                json!([agent("a", &external("peer.example"))]),
                "a.external.inputUrl",
                "https://",
            ),
            (
                json!([agent("a", &external("https://10.0.0.1/in"))]),
                "a.external.privateAddresses",
                "privateAddresses = [\"10.0.0.1\"]",
            ),
            (
                json!([agent("a", &external("http://peer.example/in"))]),
                "a.external.inputUrl",
                "can be read on the way",
            ),
            (
                json!([agent(
                    "a",
                    &json!({ "external": {
                    "inputUrl": "https://peer.example/in", "secret": "gone",
                } })
                )]),
                "a.external.secret",
                "[secrets.NAME]",
            ),
            (
                json!([agent(
                    "a",
                    &json!({ "external": {
                    "inputUrl": "https://peer.example/in", "secret": "peer",
                    "callbackBase": "https://h.example/?x",
                } })
                )]),
                "a.external.callbackBase",
                "without `?`",
            ),
        ] {
            let found = found(&agents);
            let [one] = found.as_slice() else {
                panic!("{agents}: {found:?}")
            };
            assert!(
                one.starts_with(&format!("{key}: ")) && one.contains(says),
                "{one}"
            );
        }
        let chat = json!([{
            "agentId": "a", "displayName": "A",
            "external": { "inputUrl": "https://peer.example/in", "secret": "peer" },
        }]);
        assert!(found(&chat)[0].contains("only with `type = \"external\"`"));
    }

    #[test]
    fn a_secret_in_the_place_of_its_name_is_not_repeated() {
        let found = found(&json!([agent(
            "a",
            &json!({ "external": {
                "inputUrl": "https://peer.example/in", "secret": "sk-live-12345",
            } })
        )]));
        assert!(
            found[0].contains("a.external.secret: it names no secret"),
            "{found:?}"
        );
        assert!(
            found[0].contains("`peer`"),
            "those that are there: {found:?}"
        );
        assert!(!found.concat().contains("12345"), "{found:?}");
    }

    #[test]
    fn two_agents_never_sign_with_one_secret() {
        let url = external("https://peer.example/in");
        let found = found(&json!([agent("a", &url), agent("b", &url)]));
        assert!(
            found.len() == 2 && found[0].contains("`b` signs with `peer` too"),
            "{found:?}"
        );
    }

    #[test]
    fn the_host_is_called_back_at_its_own_address_unless_another_is_named() {
        let base = |config: &Config| {
            let definition = config.definitions().remove(0);
            assert_eq!(definition.component, "external");
            definition.external.unwrap().callback_base.unwrap()
        };
        let mut config = config(&json!([agent("a", &external("https://peer.example/in"))]));
        config.server.listen = "192.0.2.1:80".parse().unwrap();
        assert_eq!(base(&config), "http://192.0.2.1:80");
        // A host that listens everywhere has no address of its own to name.
        config.server.listen = "0.0.0.0:7777".parse().unwrap();
        assert_eq!(base(&config), "http://127.0.0.1:7777");
        let program = config.agents[0].external.as_mut().unwrap();
        program.callback_base = Some("https://h".into());
        assert_eq!(base(&config), "https://h");
    }
}
