//! Words of a running host on its configuration's file: what it would change, and what a check
//! finds in the host's own environment.

use crate::client::Client;
use crate::config::{Finding, InForce, LeftBehind, Loaded, Severity, kept_of, left_behind};
use crate::failure::Failure;
use crate::fields::{list, text};
use domain::grant::Grant;
use serde_json::Value;
use std::path::Path;
use store::kept_at_rest;

/// The answer of a running host.
#[derive(Debug)]
pub(crate) struct Pending {
    document: Value,
    /// What it has in force.
    in_force: InForce,
}

impl Pending {
    /// Asks the running host.
    pub(crate) async fn ask(loaded: &Loaded) -> Result<Self, Failure> {
        let client = Client::new(loaded)?;
        let document = client.get("/api/config/pending").await?;
        let components = client.get("/api/components").await?;
        let grants = list(&components, "/components").iter().filter_map(|it| {
            let grant: Grant = serde_json::from_value(it.get("grant")?.clone()).ok()?;
            Some((text(it, "/name").to_owned(), grant))
        });
        let connectors = client.get("/api/connectors").await?;
        let definitions = client.definitions().await?;
        let named = |listed: &Value, pointer: &str, name: &str| {
            let listed = list(listed, pointer).iter();
            listed.map(|it| text(it, name).to_owned()).collect()
        };
        let in_force = InForce {
            grants: grants.collect(),
            connectors: named(&connectors, "/connectors", "/name"),
            definitions: named(&definitions, "/definitions", "/agentId"),
        };
        Ok(Self { document, in_force })
    }

    /// Asks the running host; none while there is none, or when it may not be asked.
    pub(crate) async fn of_running(loaded: &Loaded) -> Option<Self> {
        Self::ask(loaded).await.ok()
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Returns whether it is about the file of a configuration.
    pub(crate) fn is_of(&self, loaded: &Loaded) -> bool {
        let real = |file: &Path| std::fs::canonicalize(file).ok();
        let own = Path::new(text(&self.document, "/file"));
        own == loaded.file || real(own).is_some_and(|own| real(&loaded.file) == Some(own))
    }

    /// Returns the reason why the file would be refused as a whole.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.document.get("refused")?.as_str()
    }

    /// Returns what a check finds in the host's environment, and what the file leaves behind.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        [self.listed("/findings"), self.left_behind()].concat()
    }

    /// Returns what the host says that its file leaves behind or opens to others.
    pub(crate) fn left_behind(&self) -> Vec<Finding> {
        self.listed("/left_behind")
    }

    fn listed(&self, pointer: &str) -> Vec<Finding> {
        let findings = list(&self.document, pointer).iter();
        let finding = |it: &Value| Finding {
            severity: match text(it, "/severity") {
                "error" => Severity::Error,
                _ => Severity::Warning,
            },
            key: text(it, "/key").to_owned(),
            message: text(it, "/message").to_owned(),
        };
        findings.map(finding).collect()
    }

    /// Returns a warning for each granted folder in whose place another one is now, or none.
    pub(crate) fn moved_folders(&self, loaded: &Loaded) -> Vec<Finding> {
        let moved = list(&self.document, "/moved_folders").iter();
        let moved = moved.filter_map(Value::as_str).flat_map(|moved| {
            let components = loaded.config.components.iter();
            let of = components.filter(move |(_, component)| {
                let mut folders = component.directories.iter();
                folders.any(|folder| loaded.resolve(&folder.path) == Path::new(moved))
            });
            of.map(move |(name, _)| Finding {
                severity: Severity::Warning,
                key: format!("components.{name}.directories"),
                message: format!(
                    "the folder at `{moved}` is not the one that the running host has open: it was \
                     moved, removed or replaced; `agent-host reload` opens what is there"
                ),
            })
        });
        moved.collect()
    }

    /// Returns the lines for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let file = text(&self.document, "/file");
        let changes = list(&self.document, "/changes");
        let head = match changes {
            [] => format!("{file} is what is in force"),
            _ => format!("{file} against what is in force: + is new, - would go"),
        };
        let value = |it: &Value, name: &str| it.get(name)?.as_str().map(str::to_owned);
        let changes = changes.iter().map(|it| {
            let key = text(it, "/key");
            match (value(it, "before"), value(it, "after")) {
                (Some(before), Some(after)) => format!("~ {key}: {before} -> {after}"),
                (None, after) => format!("+ {key} = {}", after.unwrap_or_default()),
                (Some(before), None) => format!("- {key} = {before}"),
            }
        });
        let restart = list(&self.document, "/needs_restart").iter();
        let restart = restart
            .filter_map(Value::as_str)
            .map(|key| format!("after a restart only: {key}"));
        let moved = list(&self.document, "/moved_folders").iter();
        let moved = moved
            .filter_map(Value::as_str)
            .map(|folder| format!("opened anew: {folder}"));
        // Errors because of which all of it is refused are told by the refusal.
        let refused = self.refused().unwrap_or_default();
        let is_told = |it: &Finding| {
            let error = format!("{}: {}", it.key, it.message);
            it.severity == Severity::Error && refused.contains(&error)
        };
        let findings = self.findings().into_iter();
        let findings = findings.filter(|it| !is_told(it)).map(|it| {
            let grade = match it.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            format!("{grade}: {}: {}", it.key, it.message)
        });
        std::iter::once(head)
            .chain(changes)
            .chain(restart)
            .chain(moved)
            .chain(findings)
            .collect()
    }
}

/// Finds the content that a configuration leaves behind: beside what a running host has in force,
/// or by what is in the data folder of one that is stopped. What cannot be read is not told of.
pub(crate) async fn left_behind_by(loaded: &Loaded, running: Option<&Pending>) -> LeftBehind {
    match running {
        // It has said so itself.
        Some(pending) if pending.is_of(loaded) => LeftBehind::default(),
        Some(pending) => left_behind(Some(&pending.in_force), loaded, &kept_of(&pending.document)),
        None => {
            let data = loaded.data_dir();
            let kept = tokio::task::spawn_blocking(move || kept_at_rest(&data)).await;
            match kept {
                Ok(Ok(kept)) => left_behind(None, loaded, &kept),
                Ok(Err(_)) | Err(_) => LeftBehind::default(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{InForce, Pending};
    use serde_json::json;

    #[test]
    fn an_error_that_refuses_the_file_is_left_to_the_refusal() {
        let finding = |severity: &str, key: &str| json!({ "severity": severity, "key": key, "message": "so it is" });
        let pending = Pending {
            in_force: InForce::default(),
            document: json!({
                "file": "c.toml",
                "refused": "the configuration has 2 errors:\n  a: so it is\n  b: so it is",
                "findings": [finding("error", "a"), finding("error", "b"), finding("warning", "c")],
                "left_behind": [finding("warning", "d")],
            }),
        };
        assert_eq!(
            pending.lines(),
            [
                "c.toml is what is in force",
                "warning: c: so it is",
                "warning: d: so it is",
            ]
        );
    }
}
