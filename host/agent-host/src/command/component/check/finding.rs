//! The warnings of `component check`, and what they and refusals make of its exit code.

use super::{BUCKETS, Import};
use crate::failure::{Exit, Failure};
use anyhow::anyhow;
use broker::Entry;
use domain::authority::{CapabilityStatus, Reviewed};
use domain::grant::capability;
use runtime::Described;
use std::collections::BTreeSet;

/// Returns a warning for each capability that the component's imports need and that no tool
/// declares: no grant opens them.
pub(super) fn undeclared(imports: &[Import], standings: &[Reviewed]) -> Vec<String> {
    let missed = imports.iter().filter(|import| import.is_undeclared);
    let capabilities: BTreeSet<&str> = missed.filter_map(|import| import.opened_by).collect();
    let told = capabilities.into_iter().map(|name| {
        let (interface, declared, use_of) = match name {
            BUCKETS => ("wasi:keyvalue", "<bucket>.read", "bucket"),
            _ => ("wasi:http", capability::NET_HTTP, "request"),
        };
        let is_granted = standings
            .iter()
            .any(|it| it.capability == name && it.standing == CapabilityStatus::Unused);
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
    told.collect()
}

/// The numbers of what is wrong with the components that were checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    refused: usize,
    warnings: usize,
}

impl Tally {
    /// Counts what is wrong with one component. An agent that may reach no other agents is in
    /// order: many need none.
    pub(super) fn count(&mut self, entry: &Entry, standings: &[Reviewed], warnings: &[String]) {
        let is_agent = matches!(entry.component.describes(), Described::Agent(_));
        self.add(is_agent, standings, warnings.len());
    }

    fn add(&mut self, is_agent: bool, standings: &[Reviewed], warnings: usize) {
        let count = |standing: CapabilityStatus| {
            let matching = standings.iter().filter(|it| it.standing == standing);
            matching
                .filter(|it| !(is_agent && it.capability == super::AGENTS))
                .count()
        };
        self.refused += count(CapabilityStatus::Refused);
        self.warnings += count(CapabilityStatus::Unused) + warnings;
    }

    /// Returns the result of the command.
    pub(super) fn result(&self) -> Result<(), Failure> {
        let Self { refused, warnings } = *self;
        let many = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        let refused_text =
            many(refused, "refused capability").replace("capabilitys", "capabilities");
        let (exit, what) = match (refused, warnings) {
            (0, 0) => return Ok(()),
            (0, warnings) => (Exit::Failed, many(warnings, "warning")),
            (_, 0) => (Exit::Refused, refused_text),
            (_, warnings) => (
                Exit::Refused,
                format!("{refused_text} and {}", many(warnings, "warning")),
            ),
        };
        Err(Failure::new(exit, anyhow!("the check found {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Import, Tally, undeclared};
    use crate::failure::Exit;
    use domain::authority::{CapabilityStatus, Reviewed};

    fn reviewed(capability: &str, standing: CapabilityStatus) -> Reviewed {
        Reviewed {
            capability: capability.to_owned(),
            standing,
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
        let told = undeclared(&imports, &[reviewed("net.http", CapabilityStatus::Unused)]);
        assert!(
            told.len() == 2
                && told[0].contains("wasi:keyvalue, and none of its tools declares <bucket>.read")
                && told[1].contains("wasi:http, and none of its tools declares net.http")
                && told[1].contains("also what is granted now"),
            "{told:?}"
        );
    }

    #[test]
    fn refusals_and_warnings_fail_the_check_with_codes_of_their_own() {
        let refused = [reviewed("net.http", CapabilityStatus::Refused)];
        let unused = [reviewed("env.read", CapabilityStatus::Unused)];
        let agents = [reviewed("agents", CapabilityStatus::Refused)];
        for (is_agent, standings, warnings, exit, message) in [
            (
                false,
                &refused[..],
                0,
                Exit::Refused,
                "1 refused capability",
            ),
            (
                false,
                &refused,
                2,
                Exit::Refused,
                "1 refused capability and 2 warnings",
            ),
            (false, &unused, 0, Exit::Failed, "1 warning"),
        ] {
            let mut tally = Tally::default();
            tally.add(is_agent, standings, warnings);
            let failure = tally.result().unwrap_err();
            assert_eq!(failure.exit, exit);
            assert!(failure.error.to_string().ends_with(message), "{failure:?}");
        }
        let mut tally = Tally::default();
        tally.add(true, &agents, 0);
        assert!(tally.result().is_ok());
    }
}
