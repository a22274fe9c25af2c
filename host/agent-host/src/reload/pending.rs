//! Changes of the configuration while the host serves: taken up one at a time, for its file, for
//! requests over HTTP and for SIGHUP; and what the file would change, of which nothing is put in
//! force.

use super::files::paths_of;
use super::watch::Settling;
use super::{Refused, ReloadOrder, Reloading};
use crate::command::{Change, changes, warnings_of_code};
use crate::config;
use crate::config::{Config, Finding, InForce, LeftBehind, Loaded, Severity};
use api::{Api, PendingChange, PendingConfig, PendingFinding, ReloadRefused, ReloadRequest};
use broker::{Catalogue, Entry};
use domain::event::ReloadCause;
use domain::user::UserId;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io;
use std::time::Duration;
use store::Kept;
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio::time::Instant;

impl Reloading {
    /// Compares the file with what is in force, and checks it as reading it again would.
    pub(super) async fn pending(&mut self) -> PendingConfig {
        let mut pending = PendingConfig {
            file: self.host.loaded.file.display().to_string(),
            is_taken_up: !self.is_manual(),
            moved_folders: self.moved_folders().await,
            in_force: whole(&self.host.loaded.config),
            ..PendingConfig::default()
        };
        let compared = Box::pin(self.compare(&mut pending)).await;
        pending.refused = compared.err().map(|refused| refused.reason());
        pending
    }

    async fn compare(&mut self, pending: &mut PendingConfig) -> Result<(), Refused> {
        let read = self.read()?;
        let changed = changes(&pending.in_force, &whole(&read.config));
        pending.changes = changed.into_iter().map(PendingChange::from).collect();
        pending.needs_restart =
            config::read_at_a_start(&json!(self.start.config), &json!(read.config));
        let next = self.beside_the_rest(read.clone())?;
        let mut findings = config::check_with_commands(&read).await;
        let left = self.left_behind(&next).await;
        findings.extend(left.anyway);
        pending.left_behind = left.by_change.into_iter().map(Into::into).collect();
        findings.extend(self.unowned(&read.config).await);
        pending.findings = findings.into_iter().map(PendingFinding::from).collect();
        self.check_whole(read).await?;
        let other_code = self.other_code(&next, true).await?;
        pending.needs_restart.extend(paths_of(&other_code));
        let entries = self.entries(&next, true).await?;
        let served = names_of_tools(&self.host.broker.catalogue());
        let catalogue = self.put_together(&next, entries.clone()).await?;
        pending.changes.extend(tools(&served, &catalogue));
        let of_code = warnings_of_code(&next, &catalogue);
        let of_code = of_code.into_iter().map(PendingFinding::from);
        pending.findings.extend(of_code);
        if other_code.is_empty() {
            return Ok(());
        }
        let entries = entries.into_iter().map(|stored| {
            let mut other = other_code.iter();
            other
                .find(|it| it.name == stored.name)
                .cloned()
                .unwrap_or(stored)
        });
        let found = match self.put_together(&next, entries.collect()).await {
            Ok(restarted) => {
                let of_restart = tools(&names_of_tools(&catalogue), &restarted).into_iter();
                pending.changes.extend(of_restart.map(|it| PendingChange {
                    needs_restart: true,
                    ..it
                }));
                warnings_of_code(&next, &restarted)
            }
            Err(refused) => vec![config::error("components", refused.reason())],
        };
        let found = found.into_iter().map(PendingFinding::from);
        let new = found.filter(|it| !pending.findings.contains(it));
        let new: Vec<PendingFinding> = new.collect();
        pending.findings.extend(new);
        Ok(())
    }

    /// Finds triggers that speak for users of whom nothing is on record. Where tokens of others
    /// are taken, anybody may be a user. What cannot be read is not told of.
    async fn unowned(&self, config: &Config) -> Vec<Finding> {
        let mut findings = Vec::new();
        if !config.server.identity.is_empty() {
            return findings;
        }
        let keys = self.host.broker.keys();
        for (name, spec) in &config.triggers {
            let Some(user) = spec.user.as_ref().filter(|it| **it != UserId::local()) else {
                continue;
            };
            if matches!(keys.knows(user).await, Ok(false)) {
                let message = format!(
                    "`{user}` has no API key and is no sender at a connector: nobody may hear \
                     what is said for this user; write the id of one who has, or `connector \
                     bind` a sender"
                );
                findings.push(config::warning(format!("triggers.{name}.user"), message));
            }
        }
        findings
    }

    /// Puts a catalogue together, with the skills that are in force. What it would refuse shows.
    async fn put_together(&self, next: &Loaded, entries: Vec<Entry>) -> Result<Catalogue, Refused> {
        let skills = self.host.broker.catalogue().skill_folders().to_vec();
        self.catalogue(next, entries, skills).await
    }

    /// Finds the content that another configuration leaves behind. What cannot be read is not told
    /// of.
    pub(super) async fn left_behind(&self, next: &Loaded) -> LeftBehind {
        let broker = &self.host.broker;
        let kept = broker.maintenance().kept().await.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "it is not known what is kept under the names of the configuration"
            );
            Kept::default()
        });
        let catalogue = broker.catalogue();
        let grants = catalogue.entries();
        let connectors = self.host.loaded.config.connectors.keys();
        let definitions = catalogue.definitions();
        let before = InForce {
            grants: grants
                .map(|entry| (entry.name.clone(), entry.grant.clone()))
                .collect(),
            connectors: connectors.map(ToString::to_string).collect(),
            definitions: definitions.map(|it| it.agent_id.0.clone()).collect(),
        };
        let next = next.clone();
        let found = move || config::left_behind(Some(&before), &next, &kept);
        // Folders are looked into.
        tokio::task::spawn_blocking(found).await.unwrap_or_default()
    }
}

/// Returns a configuration as it is compared: agents and personas have their names for keys.
pub(crate) fn whole(config: &Config) -> Value {
    let mut whole = json!(config);
    for (list, name) in [("agents", "agentId"), ("personas", "id")] {
        let Some(entries) = whole.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        let named = entries.iter().filter_map(|entry| {
            let name = entry.get(name)?.as_str()?.to_owned();
            Some((name, entry.clone()))
        });
        let named: Map<String, Value> = named.collect();
        if let Some(place) = whole.get_mut(list).filter(|_| !named.is_empty()) {
            *place = named.into();
        }
    }
    whole
}

fn names_of_tools(catalogue: &Catalogue) -> BTreeSet<String> {
    catalogue
        .tools()
        .map(|(_, tool)| tool.name.clone())
        .collect()
}

/// Returns the tools that a catalogue offers beside those that are served, with the agents whose
/// lists let them call them, and those that it does not offer any more.
pub(crate) fn tools(served: &BTreeSet<String>, next: &Catalogue) -> Vec<PendingChange> {
    let offered = names_of_tools(next);
    let added = next.tools().map(|(_, tool)| tool);
    let added = added.filter(|tool| !served.contains(&tool.name));
    let added = added.map(|tool| PendingChange {
        agents: next.agents_with(tool).map(ToString::to_string).collect(),
        ..change("tools", None, Some(tool.name.clone()))
    });
    let removed = served.difference(&offered);
    let removed = removed.map(|name| change("tools", Some(name.clone()), None));
    added.chain(removed).collect()
}

fn change(key: impl Into<String>, before: Option<String>, after: Option<String>) -> PendingChange {
    PendingChange {
        key: key.into(),
        before,
        after,
        agents: Vec::new(),
        needs_restart: false,
    }
}

impl From<Change> for PendingChange {
    fn from(of: Change) -> Self {
        match of {
            Change::Added { key, value } => change(key, None, Some(value)),
            Change::Removed { key, value } => change(key, Some(value), None),
            Change::Changed { key, before, after } => change(key, Some(before), Some(after)),
        }
    }
}

impl From<Finding> for PendingFinding {
    fn from(finding: Finding) -> Self {
        Self {
            is_error: finding.severity == Severity::Error,
            key: finding.key,
            message: finding.message,
        }
    }
}

/// The time between two polls at the file.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// The time between two polls at a file that has just changed. If both find the same, it is read.
const POLL_AGAIN_AFTER: Duration = Duration::from_millis(30);
/// The time until a configuration that was refused is tried again though its file has not changed,
/// for what it lacks may be a folder.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The ways in which a host is told to read its configuration again, beside its file.
pub(crate) struct ReloadChannels {
    /// SIGHUP.
    hangups: Signal,
    /// Requests over HTTP.
    requests: mpsc::Receiver<ReloadRequest>,
}

impl ReloadChannels {
    /// Takes the signal, and requests to an API from now on.
    pub(crate) fn new(hangups: Signal, api: &Api) -> Self {
        Self {
            hangups,
            requests: api.reload_requests(),
        }
    }

    /// Waits for the next time that somebody asks. Never ends once nobody can ask any more.
    pub(crate) async fn next(&mut self) -> ReloadAsker {
        loop {
            tokio::select! {
                Some(()) = self.hangups.recv() => return ReloadAsker::Signal,
                Some(request) = self.requests.recv() => return ReloadAsker::Request(request),
                else => std::future::pending::<()>().await,
            }
        }
    }
}

/// Somebody who asks that the configuration is read again.
pub(crate) enum ReloadAsker {
    Signal,
    Request(ReloadRequest),
}

impl ReloadAsker {
    /// Has the configuration read again, and answers.
    pub(crate) async fn served_by(self, reloading: &mut Reloading, holds_code: bool) {
        match self {
            Self::Signal => {
                tracing::info!("SIGHUP: the configuration is read again");
                let reload_order = ReloadOrder {
                    because: ReloadCause::Signal,
                    user: None,
                    holds_code,
                    may_be_cut: false,
                };
                // A refusal is told by whoever refuses.
                let _ = Box::pin(reloading.reload(&reload_order)).await;
            }
            Self::Request(ReloadRequest::Compare { reply }) => {
                let pending = Box::pin(reloading.pending()).await;
                // The client may have gone.
                let _ = reply.send(pending);
            }
            Self::Request(ReloadRequest::Apply { user, reply }) => {
                let reload_order = ReloadOrder {
                    because: ReloadCause::Request,
                    user: Some(user),
                    holds_code,
                    may_be_cut: false,
                };
                let reloaded = Box::pin(reloading.reload(&reload_order)).await;
                // The client may have gone.
                let _ = reply.send(reloaded.map_err(refusal));
            }
        }
    }
}

fn refusal(refused: Refused) -> ReloadRefused {
    let reason = refused.reason();
    let error = refused.failure.error;
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    if causes.any(|cause| cause.kind() == io::ErrorKind::StorageFull) {
        return ReloadRefused::Unrecorded(broker::Error::DiskFull);
    }
    match error.downcast() {
        Ok(unrecorded) => ReloadRefused::Unrecorded(unrecorded),
        Err(_) => ReloadRefused::Configuration { reason },
    }
}

/// Takes up changes of the configuration for as long as the host serves, or only those that
/// somebody asks for where the configuration says so. Never ends.
///
/// The code of components stays what it is, as long as their files and pins in the configuration
/// do. A change that takes served agents away, or a file that may have been cut, waits until it has
/// stayed what it is for longer than other changes do.
pub(crate) async fn keep_up(mut reloading: Reloading, mut channels: ReloadChannels) {
    while reloading.is_manual() {
        channels.next().await.served_by(&mut reloading, true).await;
    }
    // What has changed since it was read at the start counts.
    let mut settling = Settling::new(reloading.start.file.clone());
    let mut again_at: Option<Instant> = None;
    loop {
        let pause = if settling.is_unsettled() {
            POLL_AGAIN_AFTER
        } else {
            POLL_EVERY
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            asked = channels.next() => {
                asked.served_by(&mut reloading, true).await;
                continue;
            }
        }
        let has_changed = !settling.take(reloading.poll_file().await).is_empty();
        let is_due = !settling.is_unsettled() && again_at.is_some_and(|at| Instant::now() >= at);
        let reload_order = match (has_changed, is_due) {
            (true, _) => ReloadOrder::of_changed_file(true),
            (false, true) => ReloadOrder::of_file(true),
            (false, false) => continue,
        };
        let reloaded = Box::pin(reloading.reload(&reload_order)).await;
        let again_after = reloaded
            .err()
            .and_then(|refused| refused.again_after(TRY_AGAIN_AFTER));
        again_at = again_after.map(|after| Instant::now() + after);
    }
}
