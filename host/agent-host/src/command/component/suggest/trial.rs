//! Running one call in isolation: with stand-ins for folders and buckets, and without a network.

use super::super::needs::Needs;
use super::calls::Recorded;
use super::reason;
use crate::config::{ComponentConfig, Loaded};
use crate::failure::Failure;
use crate::guests;
use crate::serve::{Reach, command_runtime};
use anyhow::Context;
use broker::Entry;
use domain::authority::ToolRequirements;
use domain::egress::{CREDENTIALS, EgressGrant, HostPattern, Method, Scheme};
use domain::grant::{
    Access, Bound, BucketGrant, DirectoryGrant, SecretGrant, SecretSlot, capability,
};
use domain::ruling::{Rule, Ruling};
use domain::tool::ToolDefinition;
use runtime::{Called, EmptyBuckets, Notes, Runtime, ToolCall};
use std::path::Path;
use std::sync::Arc;

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
pub(super) struct Trial {
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
    pub(super) async fn new(
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
    pub(super) fn entry(&self) -> &Entry {
        &self.strict.entry
    }

    /// Runs one call, and adds its needs to the others. A call that fails is run again with a
    /// folder for everything else, as it may have looked for its files there.
    pub(super) async fn run(
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
                    tool_call(call),
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

/// Returns the rulings of a call that is granted all that its tool needs: also what a capability
/// that it declares brings with it, as writing does reading.
fn rulings(tool: &ToolDefinition) -> Vec<Ruling> {
    let needed = ToolRequirements::from(tool)
        .capabilities_needed()
        .into_iter();
    needed
        .map(|capability| Ruling {
            capability,
            allowed: true,
            rule: Rule::Granted,
        })
        .collect()
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

fn tool_call(call: &Recorded) -> ToolCall {
    let arguments = if call.arguments.is_null() {
        "{}".to_owned()
    } else {
        call.arguments.to_string()
    };
    ToolCall {
        agent_id: "suggest".to_owned(),
        session_id: "suggest".to_owned(),
        user_id: "suggest".to_owned(),
        call_id: "suggest".to_owned(),
        idempotency_key: "suggest".to_owned(),
        segment: 0,
        resumed: None,
        answer: None,
        tool: call.tool.clone(),
        arguments,
        deadline_ms: u32::MAX,
    }
}

/// A sink for the progress notes of a call, which nobody reads.
struct Unheard;

impl Notes for Unheard {
    fn note(&self, _message: &str) {}
}

#[cfg(test)]
mod tests {
    use super::rulings;
    use serde_json::json;

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
