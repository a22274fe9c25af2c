//! The test of a component of tools: sample calls, and calls that a tool has to refuse well.

use super::call::{CallEnd, Kit, Performed};
use super::cases::{Case, Ending, Left, VisibleResult, shown};
use super::declared::place;
use super::finding::{Finding, Run, Severity};
use crate::answer::serialized;
use crate::failure::Failure;
use domain::sample;
use domain::tool::ToolDefinition;
use serde_json::{Value, json};

/// The name of a tool that no component offers.
const UNKNOWN_TOOL: &str = "agent_host_no_such_tool";
/// Calls of one tool with arguments that do not fit its schema.
const MISFITS_MAX: usize = 3;

/// The results of all calls.
#[derive(Debug, Default)]
pub(crate) struct Tested {
    pub(crate) runs: Vec<Run>,
    pub(crate) findings: Vec<Finding>,
}

/// Runs the calls of a file, and those that need none.
///
/// # Errors
/// This machine could not do its part.
pub(crate) async fn test(
    kit: &Kit,
    tools: &[ToolDefinition],
    cases: &[Case],
) -> Result<Tested, Failure> {
    let mut tested = Tested::default();
    for case in cases {
        let Some(tool) = tools.iter().find(|tool| tool.name == case.tool) else {
            continue;
        };
        tested.case(kit, tool, case).await?;
    }
    for tool in tools {
        if !cases.iter().any(|case| case.tool == tool.name) {
            tested.fitting(kit, tool).await?;
        }
        tested.misfits(kit, tool).await?;
    }
    if let Some(tool) = tools.first() {
        tested.unknown_tool(kit, tool).await?;
    }
    Ok(tested)
}

impl Tested {
    /// Adds findings, each fault once.
    pub(crate) fn add(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            if !self.findings.iter().any(|there| there.what == finding.what) {
                self.findings.push(finding);
            }
        }
    }

    /// Runs a call of a file and compares.
    async fn case(&mut self, kit: &Kit, tool: &ToolDefinition, case: &Case) -> Result<(), Failure> {
        let arguments = Value::Object(case.arguments.clone());
        let label = format!("{}: {}", case.name, tool.name);
        if let Some(fault) = kit
            .catalogue
            .arguments_fault(&tool.name, arguments.clone())
            .await
        {
            // As a host does: the tool is not called.
            let seen = VisibleResult {
                ending: Ending::InvalidArguments,
                text: fault,
            };
            self.runs
                .push(Run::new(label, "refused by its schema", None));
            let left = Left {
                files: case.files.clone(),
                buckets: case.buckets.clone(),
            };
            self.compare(case, &seen, &left);
            return Ok(());
        }
        let performed = kit.perform(tool, case, &arguments).await?;
        self.record(label, &performed);
        self.requests(&case.name, case.expect.outcome, &performed);
        match &performed.end {
            CallEnd::VisibleResult(seen) => self.compare(case, seen, &performed.left),
            CallEnd::Stopped(stopped) => {
                let finding = Finding::error(&case.name, &stopped.what, &stopped.fix)
                    .with_stderr(&stopped.stderr);
                self.findings.push(finding);
            }
        }
        Ok(())
    }

    fn compare(&mut self, case: &Case, seen: &VisibleResult, left: &Left) {
        let differences = case.expect.differences(seen, left);
        let fix = format!("mend `{}`, or what the case expects", case.tool);
        let findings = differences
            .into_iter()
            .map(|difference| Finding::error(&case.name, difference, &fix));
        self.findings.extend(findings);
    }

    /// Calls a tool with arguments that are made from its schema. Any outcome is good, if only it
    /// is one.
    async fn fitting(&mut self, kit: &Kit, tool: &ToolDefinition) -> Result<(), Failure> {
        let arguments = sample::fitting(&tool.arguments);
        if kit
            .catalogue
            .arguments_fault(&tool.name, arguments.clone())
            .await
            .is_some()
        {
            let finding = Finding::note(
                place(tool),
                "no arguments for it could be made up from its schema",
                "write a sample call into a file for --cases",
            );
            self.findings.push(finding);
            return Ok(());
        }
        let performed = kit
            .perform(tool, &Case::plain(&tool.name), &arguments)
            .await?;
        self.record(format!("{} with {arguments}", tool.name), &performed);
        self.requests(&place(tool), Ending::Done, &performed);
        if let CallEnd::Stopped(stopped) = &performed.end {
            let what = format!("{} (with {arguments}, which fits its schema)", stopped.what);
            let finding = Finding::error(place(tool), what, &stopped.fix);
            self.findings.push(finding.with_stderr(&stopped.stderr));
        }
        Ok(())
    }

    /// Calls a tool with arguments that do not fit its schema, as no host does.
    async fn misfits(&mut self, kit: &Kit, tool: &ToolDefinition) -> Result<(), Failure> {
        let mut left = MISFITS_MAX;
        for arguments in sample::misfits(&tool.arguments) {
            let fault = kit
                .catalogue
                .arguments_fault(&tool.name, arguments.clone())
                .await;
            if fault.is_none() {
                continue;
            }
            let performed = kit
                .perform(tool, &Case::plain(&tool.name), &arguments)
                .await?;
            self.record(format!("{} with misfit {arguments}", tool.name), &performed);
            if let Some(finding) = misfit(tool, &arguments, &performed.end) {
                self.findings.push(finding);
                break;
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Calls a tool that the component does not offer.
    async fn unknown_tool(&mut self, kit: &Kit, any: &ToolDefinition) -> Result<(), Failure> {
        let unknown = ToolDefinition {
            name: UNKNOWN_TOOL.to_owned(),
            capabilities: Vec::new(),
            ..any.clone()
        };
        let performed = kit
            .perform(&unknown, &Case::plain(UNKNOWN_TOOL), &json!({}))
            .await?;
        self.record(format!("the unknown tool {UNKNOWN_TOOL}"), &performed);
        self.findings.extend(unknown_name(&performed.end));
        Ok(())
    }

    fn record(&mut self, label: String, performed: &Performed) {
        let (ended, why) = match &performed.end {
            CallEnd::VisibleResult(seen) => {
                let is_error = !matches!(seen.ending, Ending::Done | Ending::Asks);
                let why = is_error.then_some(seen.text.as_str());
                (serialized(&seen.ending), why.unwrap_or_default())
            }
            CallEnd::Stopped(_) => ("stopped".to_owned(), ""),
        };
        self.runs
            .push(Run::new(label, ended, Some(&performed.usage)).because(why));
    }

    fn requests(&mut self, place: &str, expected: Ending, performed: &Performed) {
        // Who expects a denial means the refusal.
        if performed.requests.is_empty() || expected == Ending::Denied {
            return;
        }
        let requests: Vec<&str> = performed.requests.iter().map(String::as_str).collect();
        self.findings.push(Finding::note(
            place,
            format!("requests were refused here: {}", requests.join(", ")),
            "grant the hosts that are meant; nothing leaves this machine in a test",
        ));
    }
}

/// Returns the finding of a call with arguments that do not fit.
fn misfit(tool: &ToolDefinition, arguments: &Value, end: &CallEnd) -> Option<Finding> {
    let with = shown(&arguments.to_string());
    let fix = "return `invalid-arguments` with the field and the fix";
    let (severity, what) = match end {
        CallEnd::VisibleResult(seen) => match seen.ending {
            Ending::Done | Ending::Asks => (
                Severity::Note,
                format!("it takes arguments that do not fit its schema: {with}"),
            ),
            _ => return None,
        },
        CallEnd::Stopped(stopped) => (
            Severity::Warning,
            format!(
                "{} (with arguments that do not fit its schema: {with})",
                stopped.what
            ),
        ),
    };
    let fix = format!("{fix}; a host compares arguments with the schema first");
    Some(Finding::new(severity, place(tool), what, fix).with_stderr(end.stderr()))
}

/// Returns the finding of a call of a tool that the component does not offer.
fn unknown_name(end: &CallEnd) -> Option<Finding> {
    let fix = "return `not-found`; a host calls by names that `describe` returned";
    let (severity, what) = match end {
        CallEnd::VisibleResult(seen) if seen.ending == Ending::Done => (
            Severity::Note,
            "a call of a tool that it does not offer succeeds".to_owned(),
        ),
        CallEnd::VisibleResult(_) => return None,
        CallEnd::Stopped(stopped) => (
            Severity::Warning,
            format!(
                "{} (called by the name of a tool that it does not offer)",
                stopped.what
            ),
        ),
    };
    Some(Finding::new(severity, "call", what, fix).with_stderr(end.stderr()))
}

#[cfg(test)]
mod tests {
    use super::{CallEnd, Ending, Left, Performed, Tested, VisibleResult};
    use domain::operation::CallUsage;
    use std::collections::{BTreeMap, BTreeSet};

    fn denied() -> Performed {
        Performed {
            end: CallEnd::VisibleResult(VisibleResult {
                ending: Ending::Denied,
                text: "not allowed".to_owned(),
            }),
            usage: CallUsage::default(),
            left: Left::new(BTreeMap::new()),
            requests: BTreeSet::from(["GET https://a.example/".to_owned()]),
        }
    }

    #[test]
    fn requests_that_were_refused_are_no_note_where_a_denial_is_expected() {
        for (expected, notes) in [(Ending::Denied, 0), (Ending::Done, 1)] {
            let mut tested = Tested::default();
            tested.requests("c", expected, &denied());
            assert_eq!(tested.findings.len(), notes);
        }
    }

    #[test]
    fn a_call_that_fails_is_told_with_the_text_of_its_error() {
        let mut tested = Tested::default();
        tested.record("t with {}".to_owned(), &denied());
        let line = tested.runs[0].line();
        assert!(
            line.starts_with("  ran      t with {}: denied (\"not allowed\"), "),
            "{line}"
        );
    }
}
