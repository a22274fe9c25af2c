//! Checks of the rules on paths.

use super::document::Config;
use super::finding::{Finding, error};
use super::patterns;
use domain::path::UserRules;

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
