//! Changes that the file of the configuration would make, and what a reading of it would find.
//! Nothing of it is put in force.

use super::code::paths_of;
use super::{Refused, Reloading};
use crate::command::{Change, changes, warnings_of_code};
use crate::config::{self, Config, Finding, InForce, LeftBehind, Loaded, Severity};
use api::{Clock, PendingChange, PendingConfig, PendingFinding};
use broker::{Catalogue, Entry};
use domain::user::UserId;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use store::Kept;

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
            Err(refused) => vec![Finding {
                severity: Severity::Error,
                key: "components".to_owned(),
                message: refused.reason(),
            }],
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
        let store = self.host.broker.store();
        let now = Clock::system().now();
        for (name, spec) in &config.triggers {
            let Some(user) = spec.user.as_ref().filter(|it| **it != UserId::local()) else {
                continue;
            };
            let keys = store.keys_that_count(user, now).await;
            let senders = store.keys_of_user(user, 1).await;
            if matches!((&keys, &senders), (Ok(0), Ok(senders)) if senders.is_empty()) {
                findings.push(Finding {
                    severity: Severity::Warning,
                    key: format!("triggers.{name}.user"),
                    message: format!(
                        "`{user}` has no API key and is no sender at a connector: nobody may hear \
                         what is said for this user; write the id of one who has, or `connector \
                         bind` a sender"
                    ),
                });
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
        let kept = broker.store().kept().await.unwrap_or_else(|error| {
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
