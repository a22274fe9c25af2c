//! Checks of personas' entries that are well-formed but may still be wrong.

use super::document::Config;
use super::finding::{Finding, error};
use super::patterns;
use domain::user::UserId;
use std::collections::BTreeSet;

/// Finds all faults of the personas, one by one and beside each other.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    let mut seen = BTreeSet::new();
    for (index, persona) in config.personas.iter().enumerate() {
        let key = |name: &str| format!("personas[{index}].{name}");
        if !seen.insert(&persona.id) {
            findings.push(error(
                key("id"),
                format!(
                    "`{}` is defined twice; give one of them another id",
                    persona.id
                ),
            ));
        }
        if !config
            .agents
            .iter()
            .any(|agent| agent.agent_id == persona.agent)
        {
            findings.push(error(
                key("agent"),
                format!("there is no agent `{}` in `agents`", persona.agent),
            ));
        }
        for (place, user) in persona.users.iter().flatten().enumerate() {
            if let Err(wrong) = user.parse::<UserId>() {
                findings.push(error(key(&format!("users[{place}]")), wrong.to_string()));
            }
        }
        for (list, entries) in [
            ("toolAllowlist", &persona.tool_allowlist),
            ("toolDenylist", &persona.tool_denylist),
            ("capabilityAllowlist", &persona.capability_allowlist),
            ("capabilityDenylist", &persona.capability_denylist),
            ("agentDenylist", &persona.agent_denylist),
            ("modelAllowlist", &persona.model_allowlist),
        ] {
            findings.extend(patterns::entries(&key(list), entries.as_ref()));
        }
        let models = persona.model_allowlist.as_ref();
        findings.extend(patterns::models(
            &key("modelAllowlist"),
            models,
            &config.models,
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::findings;

    #[test]
    fn what_is_wrong_with_a_persona_is_told_with_its_key() {
        let text = "[[agents]]\nagentId = \"a\"\ndisplayName = \"A\"\n\
            [[personas]]\nid = \"home\"\ndisplayName = \"Home\"\nagent = \"b\"\nusers = [\"ada\", \
            \"a b\"]\ntoolDenylist = [\"\"]\n\
            [[personas]]\nid = \"home\"\ndisplayName = \"Again\"\nagent = \"a\"\n";
        let reported: Vec<String> = findings(text)
            .into_iter()
            .map(|(_, key, _)| key)
            .filter(|key| key.starts_with("personas"))
            .collect();
        assert_eq!(
            reported,
            [
                "personas[0].agent",
                "personas[0].users[1]",
                "personas[0].toolDenylist[0]",
                "personas[1].id"
            ]
        );
    }
}
