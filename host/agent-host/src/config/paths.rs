//! Checks of the settings of agents by their paths: rules, and the models of roles.

use super::agents::no_model;
use super::document::Config;
use super::finding::{Finding, error};
use super::patterns;
use domain::path::{ModelRole, UserRules};

/// Finds all faults of the rules on paths.
pub(super) fn check(config: &Config, findings: &mut Vec<Finding>) {
    findings.extend(
        UserRules::new(&config.path_rules)
            .err()
            .map(|many| error("pathRules", many.to_string())),
    );
    for (index, rule) in config.path_rules.iter().enumerate() {
        if rule.users.as_ref().is_some_and(Vec::is_empty) {
            let message = "nobody is named, so the rule is for nobody; name users, or leave `users` out for \
                 all of them";
            findings.push(error(format!("pathRules[{index}].users"), message));
        }
        let key = format!("pathRules[{index}].modelAllowlist");
        let models = rule.model_allowlist.as_ref();
        findings.extend(patterns::entries(&key, models));
        findings.extend(patterns::models(&key, models, &config.models));
    }
}

/// Finds all faults of the models of roles.
pub(super) fn check_roles(config: &Config, findings: &mut Vec<Finding>) {
    for (role, models) in &config.roles {
        let key = format!("roles.{role}");
        let list = models.model_allowlist.as_ref();
        let found = models.model.as_deref().map(|model| config.model(model));
        match (found, &models.model) {
            (Some(None), Some(model)) => {
                findings.push(error(key.clone(), no_model(config, model)));
            }
            (Some(Some((alias, _))), _) if list.is_some_and(|list| !list.matches(alias)) => {
                let message = format!(
                    "it does not match `{alias}`, the model of the role, which then answers \
                     nobody; add it"
                );
                findings.push(error(format!("{key}.modelAllowlist"), message));
            }
            _ => {}
        }
        let key = format!("{key}.modelAllowlist");
        if *role == ModelRole::Heartbeat && list.is_some() {
            let message = "a heartbeat wakes agents of other roles; write it at those roles";
            findings.push(error(key.clone(), message));
        }
        findings.extend(patterns::entries(&key, list));
        findings.extend(patterns::models(&key, list, &config.models));
    }
}
