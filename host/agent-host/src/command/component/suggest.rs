//! `component suggest`: runs calls again without doing harm, and prints the least grant that
//! satisfies them, together with what the running host has on record of them.
//!
//! A call gets empty folders that are removed afterwards, empty buckets that keep nothing, and no
//! network. A request is recorded and refused, unless `--network` lets it out. A call whose request
//! was refused is run again with a stand-in for the answer, so that it goes on as far as it can.

mod calls;
mod trial;

use super::configured;
use super::lines::{Line, Place, RefusedEntry};
use super::needs::Needs;
use crate::answer::Answer;
use crate::cli::Suggest;
use crate::config::Loaded;
use crate::failure::{Exit, Failure};
use anyhow::{Context, anyhow};
use calls::{Calls, from_file, from_host};
use domain::tool::ToolDefinition;
use runtime::{Called, Described, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trial::Trial;

/// The outcome of all trials.
struct Report<'a> {
    component: &'a str,
    place: Place,
    calls: &'a Calls,
    lines: Vec<Line>,
    /// The grants for the requests and secrets that were only ever refused.
    refused: Vec<RefusedEntry>,
    /// All that was only ever refused.
    only_refused: Vec<String>,
    needs: Needs,
    /// The calls that failed here, with the reasons and their numbers.
    failed: BTreeMap<String, usize>,
}

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: &Suggest) -> Result<Answer, Failure> {
    let config = configured(loaded, &what.component)?;
    let trial = Trial::new(loaded, &what.component, &config, what.network).await?;
    let name = trial.entry().name.as_str();
    let Described::Tools(tools) = trial.entry().component.describes() else {
        let kind = trial.entry().component.describes().kind();
        let advice = "`component check` says what it needs";
        return Err(
            Failure::new(Exit::Usage, anyhow!("`{name}` is {kind} and has no calls"))
                .advise(advice),
        );
    };
    let places = config.directories.iter().map(|folder| folder.at.clone());
    let mut needs = Needs::with_folders_at(places);
    let calls = match &what.calls {
        Some(file) => from_file(file, tools)?,
        None => from_host(loaded, trial.entry(), tools, &mut needs).await?,
    };
    let failed = run_all(&trial, &calls, tools, &mut needs).await?;
    let report = Report {
        component: name,
        place: Place::in_config(loaded, name),
        calls: &calls,
        lines: needs.lines(&config),
        refused: needs.refused_entries(&config),
        only_refused: needs.only_refused(&config),
        needs,
        failed,
    };
    let answer = Answer::new(report.document(), report.describe());
    Ok(answer.notice((calls.without_arguments > 0).then(|| {
        format!(
            "{} calls were left out: they were refused before they began, and their arguments are \
             not kept; put such calls into a file for --calls",
            calls.without_arguments
        )
    })))
}

/// Runs all calls, and returns the tools whose calls failed with the reasons, and how often.
async fn run_all(
    trial: &Trial,
    calls: &Calls,
    tools: &[ToolDefinition],
    needs: &mut Needs,
) -> Result<BTreeMap<String, usize>, Failure> {
    let mut failed = BTreeMap::new();
    for call in &calls.kept {
        let tool = tools
            .iter()
            .find(|tool| tool.name == call.tool)
            .context("a tool that was just found")?;
        let called = trial.run(tool, call, needs).await?;
        if let Some(reason) = reason(&called) {
            *failed
                .entry(format!("{}: {reason}", call.tool))
                .or_default() += 1;
        }
    }
    Ok(failed)
}

impl Report<'_> {
    /// Returns the document for programs.
    fn document(&self) -> Value {
        let grant: serde_json::Map<String, Value> = self
            .lines
            .iter()
            .map(|line| (line.key.to_owned(), line.value.clone()))
            .collect();
        let lines = self
            .lines
            .iter()
            .map(|line| line.document(self.place.is_toml()));
        json!({
            "component": self.component, "calls": self.calls.kept.len(),
            "without_arguments": self.calls.without_arguments, "failed": self.failed.keys().collect::<Vec<_>>(),
            "grant": grant, "lines": lines.collect::<Vec<_>>(), "block": self.place.describe(&self.lines),
            "only_refused": self.only_refused, "refused": self.refused, "notes": self.needs.notes(),
        })
    }

    /// Returns the lines for people.
    fn describe(&self) -> Vec<String> {
        let head = head(self.calls.kept.len(), self.component);
        let least = self.place.describe(&self.lines).into_iter();
        let nothing = self.lines.is_empty().then(|| "nothing".to_owned());
        let granted = self.needs.granted_although_refused();
        let granted = (!granted.is_empty()).then(|| {
            format!(
                "only ever refused, so see whether it is meant: {}",
                granted.join(", ")
            )
        });
        let refused = (!self.refused.is_empty()).then(|| {
            let name = self.component;
            format!("refused; add to these lists of components.{name} only what is meant:")
        });
        let entries = self.refused.iter();
        let entries = entries.map(|entry| format!("  {}", entry.text(self.place.is_toml())));
        let notes = self
            .needs
            .notes()
            .into_iter()
            .map(|it| format!("note: {it}"));
        let failed = self
            .failed
            .iter()
            .map(|(reason, times)| failed_here(reason, *times));
        let indented = least.chain(nothing).map(|line| format!("  {line}"));
        std::iter::once(head)
            .chain(indented)
            .chain(granted)
            .chain(refused)
            .chain(entries)
            .chain(notes)
            .chain(failed)
            .collect()
    }
}

fn head(calls: usize, component: &str) -> String {
    match calls {
        1 => format!("1 call of {component} was run; the least grant for it:"),
        calls => format!("{calls} calls of {component} were run; the least grant for them:"),
    }
}

fn failed_here(reason: &str, times: usize) -> String {
    let times = match times {
        1 => String::new(),
        times => format!(" ({times} times)"),
    };
    format!("failed here, and may need more: {reason}{times}")
}

/// Returns the reason why a call did not succeed; none when it did.
fn reason(called: &Called) -> Option<String> {
    match &called.outcome {
        Outcome::Returned(Ok(_)) => None,
        Outcome::Returned(Err(error)) => Some(format!("{error:?}")),
        other => Some(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{failed_here, head};

    #[test]
    fn calls_that_fail_alike_are_told_once_with_their_number() {
        assert_eq!(
            failed_here("read: Denied", 9),
            "failed here, and may need more: read: Denied (9 times)"
        );
        assert_eq!(
            failed_here("read: Denied", 1),
            "failed here, and may need more: read: Denied"
        );
        assert_eq!(head(1, "c"), "1 call of c was run; the least grant for it:");
        assert!(head(2, "c").starts_with("2 calls of c were run"));
    }
}
