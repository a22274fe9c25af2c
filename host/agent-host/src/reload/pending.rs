//! Changes that the file of the configuration would make, and what a reading of it would find.
//! Nothing of it is put in force.

use super::{Refused, Reloading, keys};
use crate::command::{Change, changes};
use crate::config::{self, Config, Finding, InForce, LeftBehind, Loaded, Severity};
use api::{PendingChange, PendingConfig, PendingFinding};
use broker::Entry;
use runtime::Described;
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
            ..PendingConfig::default()
        };
        let compared = Box::pin(self.compare(&mut pending)).await;
        pending.refused = compared.err().map(|refused| refused.reason());
        pending
    }

    async fn compare(&mut self, pending: &mut PendingConfig) -> Result<(), Refused> {
        let read = self.read()?;
        let before = whole(&self.host.loaded.config);
        let changed = changes(&before, &whole(&read.config));
        pending.changes = changed.into_iter().map(PendingChange::from).collect();
        pending.needs_restart =
            keys::read_at_a_start(&json!(self.start.config), &json!(read.config));
        let next = self.beside_the_rest(read.clone());
        let mut findings = config::check(&read);
        let left = self.left_behind(&next).await;
        findings.extend(left.anyway);
        pending.left_behind = left.by_change.into_iter().map(Into::into).collect();
        pending.findings = findings.into_iter().map(PendingFinding::from).collect();
        self.check_whole(read).await?;
        let other_code = self.other_code(&next, true).await?;
        pending.needs_restart.extend(other_code);
        let entries = self.entries(&next, true).await?;
        let before = self.host.broker.catalogue();
        let served = before.tools().map(|(_, tool)| tool.name.clone());
        pending.changes.extend(tools(&served.collect(), &entries));
        // What it would refuse is all that it is put together for.
        self.catalogue(&next, entries, before.skill_folders().to_vec())
            .await
            .map(drop)
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

/// Returns a configuration in which agents and personas have their names for keys.
fn whole(config: &Config) -> Value {
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

/// Returns the tools that would be offered and are not, and those that would not be any more.
fn tools(served: &BTreeSet<String>, entries: &[Entry]) -> Vec<PendingChange> {
    let offered = entries
        .iter()
        .filter_map(|entry| match entry.component.describes() {
            Described::Tools(tools) => Some(tools.iter().map(|tool| tool.name.clone())),
            Described::Agent(_) | Described::Trigger(_) | Described::Connector(_) => None,
        });
    let offered: BTreeSet<String> = offered.flatten().collect();
    let change = |before: Option<&String>, after: Option<&String>| PendingChange {
        key: "tools".to_owned(),
        before: before.cloned(),
        after: after.cloned(),
    };
    let added = offered
        .difference(served)
        .map(|name| change(None, Some(name)));
    let removed = served
        .difference(&offered)
        .map(|name| change(Some(name), None));
    added.chain(removed).collect()
}

impl From<Change> for PendingChange {
    fn from(change: Change) -> Self {
        match change {
            Change::Added { key, value } => Self {
                key,
                before: None,
                after: Some(value),
            },
            Change::Removed { key, value } => Self {
                key,
                before: Some(value),
                after: None,
            },
            Change::Changed { key, before, after } => Self {
                key,
                before: Some(before),
                after: Some(after),
            },
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
