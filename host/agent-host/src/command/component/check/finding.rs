//! The errors and warnings of `component check`, and what they and refusals make of its exit code.

use super::{BUCKETS, Import, is_missing};
use crate::config::{Finding, Severity};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use domain::authority::{CapabilityStatus, Reviewed};
use domain::grant::{Grant, capability};
use std::collections::BTreeSet;

/// Returns a warning for each capability that the component's imports need and that no tool
/// declares: no grant opens them.
pub(super) fn undeclared(imports: &[Import], statuses: &[Reviewed]) -> Vec<String> {
    let missed = imports.iter().filter(|import| import.is_undeclared);
    let capabilities: BTreeSet<&str> = missed.filter_map(|import| import.opened_by).collect();
    let reported = capabilities.into_iter().map(|name| {
        let (interface, declared, use_of) = match name {
            BUCKETS => ("wasi:keyvalue", "<bucket>.read", "bucket"),
            _ => ("wasi:http", capability::NET_HTTP, "request"),
        };
        let is_granted = statuses
            .iter()
            .any(|it| it.capability == name && it.status == CapabilityStatus::Unused);
        let granted = if is_granted {
            ", also what is granted now"
        } else {
            ", whatever is granted"
        };
        format!(
            "it imports {interface}, and none of its tools declares {declared}: every {use_of} is \
             refused{granted}; its author has to name {declared} in the `capabilities` of the tool"
        )
    });
    reported.collect()
}

/// Returns the errors of a configuration that are about a component or a secret that it is granted:
/// the host does not start with them.
pub(super) fn faults(findings: &[Finding], component: &str, grant: &Grant) -> Vec<String> {
    let own = format!("components.{component}.");
    let secrets = grant.secrets.iter();
    let secrets: BTreeSet<String> = secrets
        .map(|grant| format!("secrets.{}", grant.secret))
        .collect();
    let is_about = |key: &str| key.starts_with(&own) || secrets.contains(key);
    let errors = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error && is_about(&finding.key));
    errors
        .map(|finding| format!("{}: {}", finding.key, finding.message))
        .collect()
}

/// Returns the warnings about the buckets and folders of a component, each as a whole: what would
/// stay behind, what users share, and what was moved.
pub(super) fn about_content(findings: &[Finding], component: &str) -> Vec<String> {
    let keys = ["keyValue", "directories"].map(|key| format!("components.{component}.{key}"));
    let is_about = |key: &str| {
        let rest = keys.iter().find_map(|it| key.strip_prefix(it.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('[') && rest.ends_with(']'))
    };
    let reported = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Warning && is_about(&finding.key));
    reported.map(|finding| finding.message.clone()).collect()
}

/// The numbers of what is wrong with the components that were checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    faults: usize,
    refused: usize,
    warnings: usize,
}

impl Tally {
    /// Counts what is wrong with one component.
    pub(super) fn count(&mut self, statuses: &[Reviewed], warnings: &[String], faults: &[String]) {
        self.faults += faults.len();
        self.add(statuses, warnings.len());
    }

    fn add(&mut self, statuses: &[Reviewed], warnings: usize) {
        let statuses = statuses.iter();
        self.refused += statuses.clone().filter(|it| is_missing(it)).count();
        let unused = statuses.filter(|it| it.status == CapabilityStatus::Unused);
        self.warnings += unused.count() + warnings;
    }

    /// Returns the failure of the command; none where nothing is wrong.
    pub(super) fn failure(&self) -> Option<Failure> {
        let Self {
            faults,
            refused,
            warnings,
        } = *self;
        let exit = match (faults, refused, warnings) {
            (0, 0, 0) => return None,
            (0, 0, _) => Exit::Failed,
            (0, _, _) => Exit::Refused,
            (_, _, _) => Exit::Usage,
        };
        let counted = [
            (faults, "error", "errors"),
            (refused, "refused capability", "refused capabilities"),
            (warnings, "warning", "warnings"),
        ];
        let reported = counted.into_iter().filter(|(count, ..)| *count > 0);
        let reported = reported.map(|(count, one, many)| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        });
        let what = reported.collect::<Vec<_>>().join(" and ");
        Some(Failure::new(exit, anyhow!("the check found {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Import, Tally, faults, undeclared};
    use crate::config::{Finding, Severity};
    use crate::failure::Exit;
    use domain::authority::{CapabilityStatus, Reviewed};
    use domain::grant::Grant;
    use serde_json::json;

    fn reviewed(capability: &str, status: CapabilityStatus) -> Reviewed {
        Reviewed {
            capability: capability.to_owned(),
            status,
            tools: Vec::new(),
        }
    }

    #[test]
    fn imports_that_no_tool_declares_are_told_whatever_is_granted() {
        let import = |interface: &str, opened_by: &'static str| Import {
            interface: interface.to_owned(),
            opened_by: Some(opened_by),
            is_undeclared: true,
        };
        let imports = [
            import("wasi:http/outgoing-handler@0.2.6", "net.http"),
            import("wasi:keyvalue/store", BUCKETS),
            import("wasi:keyvalue/batch", BUCKETS),
        ];
        let reported = undeclared(&imports, &[reviewed("net.http", CapabilityStatus::Unused)]);
        assert!(
            reported.len() == 2
                && reported[0]
                    .contains("wasi:keyvalue, and none of its tools declares <bucket>.read")
                && reported[1].contains("wasi:http, and none of its tools declares net.http")
                && reported[1].contains("also what is granted now"),
            "{reported:?}"
        );
    }

    #[test]
    fn refusals_and_warnings_fail_the_check_with_codes_of_their_own() {
        let refused = [reviewed("net.http", CapabilityStatus::Refused)];
        let unused = [reviewed("env.read", CapabilityStatus::Unused)];
        let agents = [reviewed("agents", CapabilityStatus::Refused)];
        for (statuses, warnings, exit, message) in [
            (&refused[..], 0, Exit::Refused, "1 refused capability"),
            (
                &refused,
                2,
                Exit::Refused,
                "1 refused capability and 2 warnings",
            ),
            (&unused, 0, Exit::Failed, "1 warning"),
        ] {
            let mut tally = Tally::default();
            tally.add(statuses, warnings);
            let failure = tally.failure().unwrap();
            assert_eq!(failure.exit, exit);
            assert!(failure.error.to_string().ends_with(message), "{failure:?}");
        }
        let mut tally = Tally::default();
        tally.add(&agents, 0);
        assert!(tally.failure().is_none());
    }

    #[test]
    fn errors_of_the_configuration_about_a_component_fail_its_check_as_the_host_would() {
        let finding = |severity, key: &str| Finding {
            severity,
            key: key.to_owned(),
            message: "wrong".to_owned(),
        };
        let findings = [
            finding(Severity::Error, "components.c.network[0].privateAddresses"),
            finding(Severity::Warning, "components.c.directories[0]"),
            finding(Severity::Error, "components.c2.path"),
            finding(Severity::Error, "agents[0].component"),
            finding(Severity::Error, "secrets.key"),
            finding(Severity::Error, "secrets.key2"),
        ];
        let reported = faults(&findings, "c", &Grant::default());
        assert_eq!(
            reported,
            ["components.c.network[0].privateAddresses: wrong"]
        );
        let granted = json!({ "secrets": [
            { "secret": "key", "host": "api.example.com", "slot": { "header": "authorization" } },
        ] });
        let granted: Grant = serde_json::from_value(granted).unwrap();
        assert_eq!(faults(&findings, "c", &granted).len(), 2);
        let tally = Tally {
            faults: reported.len(),
            refused: 1,
            warnings: 0,
        };
        let failure = tally.failure().unwrap();
        assert_eq!(failure.exit, Exit::Usage);
        let reported = failure.error.to_string();
        assert!(
            reported.ends_with("1 error and 1 refused capability"),
            "{reported}"
        );
    }
}
