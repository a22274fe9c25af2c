//! Checks of the environment variables that a component is granted.

use super::component::{EnvironmentValue, HostVariable};
use super::finding::{Finding, error};
use std::collections::BTreeMap;

/// Every variable that no guest could be given.
pub(super) fn check(
    component: &str,
    environment: &BTreeMap<String, EnvironmentValue>,
    findings: &mut Vec<Finding>,
) {
    for (name, value) in environment {
        findings.extend(wrong(name, value).map(|message| {
            error(
                format!("components.{component}.environment.{name}"),
                message,
            )
        }));
    }
}

fn wrong(name: &str, value: &EnvironmentValue) -> Option<String> {
    if !is_name(name) {
        return Some(
            "the name of an environment variable is not empty and has neither `=` nor NUL"
                .to_owned(),
        );
    }
    match value {
        EnvironmentValue::Text(text) => text
            .contains('\0')
            .then(|| "the value of an environment variable has no NUL".to_owned()),
        EnvironmentValue::Host(HostVariable { env }) if !is_name(env) => Some(
            "`env` is the name of a variable of the host's own environment: not empty, and with \
             neither `=` nor NUL"
                .to_owned(),
        ),
        EnvironmentValue::Host(HostVariable { env }) => value.value().is_none().then(|| {
            format!(
                "the host's environment variable `{env}` is not set, empty or not text; set it, \
                     or write the value here"
            )
        }),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::config::component::ComponentConfig;
    use serde_json::json;

    #[test]
    fn a_variable_that_no_guest_could_be_given_is_an_error_that_names_it() {
        for (environment, expected) in [
            (
                json!({ "LANG": "en", "EMPTY": "", "lower.case": "x", "PATH": { "env": "PATH" } }),
                None,
            ),
            (
                json!({ "": "x" }),
                Some("components.c.environment.: the name of an environment variable is not empty"),
            ),
            (
                json!({ "A=B": "x" }),
                Some("components.c.environment.A=B: the name"),
            ),
            (
                json!({ "A\0": "x" }),
                Some("components.c.environment.A\0: the name"),
            ),
            (
                json!({ "A": "x\0" }),
                Some("components.c.environment.A: the value of an environment variable has no NUL"),
            ),
            (
                json!({ "A": { "env": "" } }),
                Some("components.c.environment.A: `env` is the name"),
            ),
            (
                json!({ "A": { "env": "X=Y" } }),
                Some("components.c.environment.A: `env` is the name"),
            ),
            (
                json!({ "A": { "env": "AGENT_HOST_TEST_UNSET" } }),
                Some(
                    "components.c.environment.A: the host's environment variable \
                      `AGENT_HOST_TEST_UNSET` is not set",
                ),
            ),
        ] {
            let component: ComponentConfig =
                serde_json::from_value(json!({ "environment": environment })).unwrap();
            let mut findings = Vec::new();
            check("c", &component.environment, &mut findings);
            let found = findings
                .first()
                .map(|finding| format!("{}: {}", finding.key, finding.message));
            assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
            assert!(
                found.is_none_or(|found| found.starts_with(expected.unwrap_or_default())),
                "{expected:?}"
            );
        }
    }
}
