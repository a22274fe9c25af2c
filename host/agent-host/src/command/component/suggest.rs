//! `component suggest`: runs calls again without doing harm, and prints the least grant that
//! satisfies them, together with what the running host has on record of them.
//!
//! A call gets empty folders that are removed afterwards, empty buckets that keep nothing, and no
//! network. A request is recorded and refused, unless `--network` lets it out. A call whose request
//! was refused is run again with a stand-in for the answer, so that it goes on as far as it can.

mod calls;

use super::configured;
use super::lines::{Line, Place, RefusedEntry};
use super::needs::Needs;
use crate::answer::{Answer, lines};
use crate::cli::Suggest;
use crate::config::{ComponentConfig, Loaded};
use crate::failure::{Exit, Failure};
use crate::guests::{self, Unheard, isolated_call, rulings};
use crate::serve::{Reach, command_runtime};
use anyhow::{Context, anyhow};
use broker::Entry;
use calls::{Calls, Recorded, from_file, from_host};
use domain::egress::{CREDENTIALS, EgressGrant, HostPattern, Method, Scheme};
use domain::grant::{
    Access, Bound, BucketGrant, DirectoryGrant, SecretGrant, SecretSlot, capability,
};
use domain::tool::ToolDefinition;
use runtime::{Called, Described, EmptyBuckets, Outcome, Runtime};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

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
    let document = report.document();
    let lines = report.describe(&document);
    let answer = Answer::new(document, lines);
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

/// The lines of the least grant.
const LEAST: [(&str, &str); 2] = [("/block", "  {}"), ("", "[[{!/lines}  nothing]]")];

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
    fn describe(&self, document: &Value) -> Vec<String> {
        let mut described = vec![head(self.calls.kept.len(), self.component)];
        described.extend(lines(document, &LEAST));
        let granted = json!({ "granted": self.needs.granted_although_refused() });
        let only = "[[only ever refused, so see whether it is meant: {/granted:list}]]";
        described.extend(lines(&granted, &[("", only)]));
        let only = "[[{?/refused}refused; add to these lists of components.{/component} only what \
                    is meant:]]";
        described.extend(lines(document, &[("", only)]));
        let entries = self.refused.iter();
        described.extend(entries.map(|it| format!("  {}", it.text(self.place.is_toml()))));
        described.extend(lines(document, &[("/notes", "note: {}")]));
        let failed = self.failed.iter();
        described.extend(failed.map(|(reason, times)| failed_here(reason, *times)));
        described
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

/// Maximum number of runs of one call, each with the buckets that the run before asked for.
const ROUNDS_MAX: usize = 8;
/// The path of the stand-in for a folder when the component is granted none.
const FOLDER_AT: &str = "/workspace";
/// The path of the stand-in for everything else, so that it is seen what a call opens elsewhere.
const ELSEWHERE_AT: &str = "/";
/// The outcome that egress records for a request that no grant allows.
const NOT_GRANTED: &str = "not-granted";

/// A host that there is not, by RFC 2606.
const NOWHERE: &str = "nowhere.invalid";

/// A component and where its calls are run.
struct Trial {
    /// Here a request that goes nowhere is refused.
    strict: Stage,
    /// Here it gets a stand-in for an answer, so that the call goes on.
    rehearsal: Stage,
    /// True if reading requests are let out.
    network: bool,
}

/// The folders of a run.
#[derive(Debug, Clone, Copy)]
enum Folders {
    /// Folders at the places of the component's own.
    Granted,
    /// The same, and one for everything else.
    AndElsewhere,
}

/// A runtime, and the component loaded in it.
struct Stage {
    runtime: Runtime,
    entry: Entry,
}

impl Trial {
    /// Prepares the trial of a component.
    async fn new(
        loaded: &Loaded,
        name: &str,
        config: &ComponentConfig,
        network: bool,
    ) -> Result<Self, Failure> {
        let stage = async |reach: Reach| {
            let runtime = command_runtime(loaded, reach).await?;
            let entry = guests::load_one(loaded, &runtime, name.to_owned(), config).await?;
            Ok::<_, Failure>(Stage { runtime, entry })
        };
        Ok(Self {
            strict: stage(Reach::without_secrets()?).await?,
            rehearsal: stage(Reach::rehearsing()?).await?,
            network,
        })
    }

    /// Returns the component.
    fn entry(&self) -> &Entry {
        &self.strict.entry
    }

    /// Runs one call, and adds its needs to the others. A call that fails is run again with a
    /// folder for everything else, as it may have looked for its files there.
    async fn run(
        &self,
        tool: &ToolDefinition,
        call: &Recorded,
        needs: &mut Needs,
    ) -> Result<Called, Failure> {
        let called = Box::pin(self.run_in(Folders::Granted, tool, call, needs)).await?;
        if reason(&called).is_none() {
            return Ok(called);
        }
        let again = self.run_in(Folders::AndElsewhere, tool, call, needs);
        let again = Box::pin(again).await?;
        Ok(if reason(&again).is_none() {
            again
        } else {
            called
        })
    }

    /// Runs one call. If a request of it was refused, it is run again with a stand-in for the
    /// answer.
    async fn run_in(
        &self,
        folders: Folders,
        tool: &ToolDefinition,
        call: &Recorded,
        needs: &mut Needs,
    ) -> Result<Called, Failure> {
        let called = self
            .rounds(&self.strict, folders, tool, call, needs)
            .await?;
        let is_refused = |verdict: &str| verdict == NOT_GRANTED;
        if called
            .egress
            .hops
            .iter()
            .any(|hop| is_refused(&hop.verdict))
        {
            self.rounds(&self.rehearsal, folders, tool, call, needs)
                .await?;
        }
        Ok(called)
    }

    /// Runs one call, again with every bucket that it turns out to ask for.
    async fn rounds(
        &self,
        stage: &Stage,
        folders: Folders,
        tool: &ToolDefinition,
        call: &Recorded,
        needs: &mut Needs,
    ) -> Result<Called, Failure> {
        let mut round = 0;
        loop {
            let folder = tempfile::tempdir()?;
            let bound = self.bound(tool, self.stand_ins(folders, folder.path())?, needs)?;
            stage.runtime.open_folders(&bound.directories, &[])?;
            let called = stage
                .runtime
                .call(
                    &stage.entry.component,
                    &bound,
                    isolated_call("suggest", &call.tool, &call.arguments),
                    Arc::new(Unheard),
                    Arc::new(EmptyBuckets),
                )
                .await;
            round += 1;
            let is_new = needs.take_of(tool, &called.decided.decisions, &called.egress);
            if !is_new || round == ROUNDS_MAX {
                return Ok(called);
            }
        }
    }

    /// Returns everything that a call may use here.
    fn bound(
        &self,
        tool: &ToolDefinition,
        directories: Vec<DirectoryGrant>,
        needs: &Needs,
    ) -> Result<Bound, Failure> {
        let granted = &self.entry().grant;
        let anywhere = EgressGrant {
            any_host: true,
            schemes: vec![Scheme::Http, Scheme::Https],
            methods: vec![Method::Get, Method::Head],
            ..EgressGrant::of(HostPattern::parse("*").context("the pattern for every host")?)
        };
        Ok(Bound {
            directories,
            network: if self.network {
                vec![anywhere]
            } else {
                Vec::new()
            },
            environment: granted.environment.clone(),
            key_value: needs
                .buckets()
                .map(|bucket| BucketGrant::new(bucket, Access::ReadWrite))
                .collect(),
            secrets: slots(self.entry(), tool),
            limits: granted.limits,
            rulings: rulings(tool),
        })
    }

    /// Makes, in an empty folder, one for each place at which the component has one, and on demand
    /// one for everything else.
    fn stand_ins(&self, folders: Folders, folder: &Path) -> Result<Vec<DirectoryGrant>, Failure> {
        let granted = &self.entry().grant.directories;
        let mut places: Vec<String> = granted.iter().map(|it| it.at.clone()).collect();
        if places.is_empty() {
            places.push(FOLDER_AT.to_owned());
        }
        if matches!(folders, Folders::AndElsewhere) && !places.iter().any(|at| at == ELSEWHERE_AT) {
            places.push(ELSEWHERE_AT.to_owned());
        }
        let made =
            places
                .into_iter()
                .enumerate()
                .map(|(index, at)| -> Result<DirectoryGrant, Failure> {
                    let own = folder.join(index.to_string());
                    std::fs::create_dir(&own)?;
                    Ok(DirectoryGrant::whole(own, at, Access::ReadWrite))
                });
        made.collect()
    }
}

/// Returns slots for the headers reserved for secrets, at a host that does not exist. A header that
/// a call writes is then refused when it is sent, and recorded with its place.
fn slots(entry: &Entry, tool: &ToolDefinition) -> Vec<SecretGrant> {
    if !tool
        .capabilities
        .iter()
        .any(|capability| capability == capability::SECRETS_USE)
    {
        return Vec::new();
    }
    let own = entry
        .grant
        .secrets
        .iter()
        .filter_map(|grant| match &grant.slot {
            SecretSlot::Header(name) => Some(name.as_str()),
            SecretSlot::Query(_) | SecretSlot::Path(_) => None,
        });
    let slot = |name: &str| SecretGrant {
        secret: "none".to_owned(),
        host: NOWHERE.to_owned(),
        port: None,
        slot: SecretSlot::Header(name.to_owned()),
        prefix: String::new(),
    };
    CREDENTIALS.iter().copied().chain(own).map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::{failed_here, head, rulings};
    use serde_json::json;

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

    #[test]
    fn a_tool_that_declares_to_write_is_granted_to_read_as_by_the_host() {
        let tool = serde_json::from_value(json!({
            "name": "note", "description": "", "arguments": {}, "effect": "idempotent",
            "capabilities": ["expenses.write", "files.write"],
        }));
        let mut names: Vec<String> = rulings(&tool.unwrap())
            .into_iter()
            .map(|ruling| ruling.capability)
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                "expenses.read",
                "expenses.write",
                "files.read",
                "files.write"
            ]
        );
    }
}
