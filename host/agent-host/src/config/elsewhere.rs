//! Names that other programs of this kind have for what is said elsewhere here: keys of an agent,
//! and variables of the environment.

use super::finding::{Finding, warning};
use super::locations::variable;

/// Keys of an agent, each with the key that says it here.
const OF_AGENT: &[(&str, &str)] = &[
    (
        "name",
        "`displayName` is its name for people, and `agentId` its id",
    ),
    (
        "orchestratorUrl",
        "the host drives its agents itself; `server.listen` is where it listens",
    ),
    (
        "defaultModel",
        "`model` is the agent's own, and `defaultModel` beside `agents` that of all agents",
    ),
    (
        "heartbeatInterval",
        "write a trigger with `heartbeat.every` whose `agent` it is",
    ),
    (
        "maxRetries",
        "`retry.attemptsMax` beside `agents` holds for all models",
    ),
    (
        "labels",
        "labels are put on messages (`labels` of a message), and not on agents",
    ),
    (
        "debug",
        "`server.log` says how much is logged, such as `debug`",
    ),
];

/// Variables of the environment that are not read, each with what says it here.
const VARIABLES: &[(&str, &str)] = &[
    (
        "ORCHESTRATOR_URL",
        "`AGENT_HOST__SERVER__LISTEN` is where the host listens",
    ),
    (
        "AGENT_NAME",
        "agents are the entries of `agents` in the configuration",
    ),
    (
        "LOG_LEVEL",
        "`AGENT_HOST__SERVER__LOG` says how much is logged, and so does `RUST_LOG`",
    ),
    (
        "DEFAULT_MODEL",
        "`AGENT_HOST__DEFAULT_MODEL` is the model of all agents",
    ),
];

/// Returns what says an unknown key here; none of a key that is nothing known elsewhere.
pub(super) fn of_key(parent: &str, key: &str) -> Option<&'static str> {
    let is_agent = parent.starts_with("agents[") && parent.ends_with(']');
    let mut known = OF_AGENT.iter().filter(|_| is_agent);
    known
        .find(|(name, _)| *name == key)
        .map(|(_, reported)| *reported)
}

/// Warns of variables that are set and not read. They are no error: without the host's prefix, they
/// may be meant for another program.
pub(super) fn check(findings: &mut Vec<Finding>) {
    findings.extend(of_variables(|name| variable(name).is_some()));
}

fn of_variables(is_set: impl Fn(&str) -> bool) -> Vec<Finding> {
    let set = VARIABLES.iter().filter(|(name, _)| is_set(name));
    let reported = set.map(|(name, reported)| {
        let message = format!("the environment variable is set, and not read: {reported}");
        warning(*name, message)
    });
    reported.collect()
}

#[cfg(test)]
mod tests {
    use super::{VARIABLES, of_key, of_variables};
    use crate::config::finding::Severity;

    #[test]
    fn every_name_of_other_programs_is_told_with_the_one_that_says_it_here() {
        for (key, ours) in [
            ("name", "`displayName`"),
            ("orchestratorUrl", "`server.listen`"),
            ("defaultModel", "`model`"),
            ("heartbeatInterval", "`heartbeat.every`"),
            ("maxRetries", "`retry.attemptsMax`"),
            ("labels", "`labels`"),
            ("debug", "`server.log`"),
        ] {
            let said = of_key("agents[2]", key).unwrap_or_default();
            assert!(said.contains(ours), "{key}: {said}");
            assert_eq!(of_key("server", key), None, "{key}");
        }
        for (name, ours) in [
            ("ORCHESTRATOR_URL", "`AGENT_HOST__SERVER__LISTEN`"),
            ("AGENT_NAME", "`agents`"),
            ("LOG_LEVEL", "`AGENT_HOST__SERVER__LOG`"),
            ("DEFAULT_MODEL", "`AGENT_HOST__DEFAULT_MODEL`"),
        ] {
            let found = of_variables(|set| set == name);
            let [finding] = found.as_slice() else {
                panic!("{name}: {found:?}");
            };
            assert_eq!(
                (finding.severity, finding.key.as_str()),
                (Severity::Warning, name)
            );
            assert!(finding.message.contains(ours), "{finding:?}");
        }
        assert_eq!(of_variables(|_| true).len(), VARIABLES.len());
        assert_eq!(of_variables(|_| false), []);
    }
}
