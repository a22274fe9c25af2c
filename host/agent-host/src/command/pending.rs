//! Words of a running host on its configuration's file: what it would change, and what a check
//! finds in the host's own environment.

use super::{changes, warnings_of_code};
use crate::answer::{is_true, lines, list, text};
use crate::client::Client;
use crate::config::{
    Finding, InForce, LeftBehind, Loaded, Severity, check_with_commands, kept_of, left_behind,
    read_at_a_start, unfit, warning,
};
use crate::failure::Failure;
use crate::reload::pending::{tools, whole};
use crate::serve::{load_catalogue, refuse_errors};
use api::PendingChange;
use domain::grant::Grant;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use store::kept_at_rest;

/// The lines on keys with other values, and on what else would change.
const CHANGES: [(&str, &str); 3] = [
    (
        "/changes",
        "[[{?/needs_restart}after a restart only: ]][[~ {/key}: {/before} -> {/after}]]\
         [[{!/before}+ {/key} = {/after}]][[{!/after}- {/key} = {/before}]][[, for {/agents:list}]]",
    ),
    ("/needs_restart", "after a restart only: {}"),
    ("/moved_folders", "opened anew: {}"),
];

/// The answer of a running host.
#[derive(Debug)]
pub(crate) struct Pending {
    document: Value,
    /// The names and grants that it has in force.
    in_force: InForce,
    /// The components that it serves.
    components: Value,
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
        Ok(Self {
            document,
            in_force,
            components,
        })
    }

    /// Compares another file with what the host has in force, and checks it, in the environment of
    /// the caller.
    pub(crate) async fn beside(self, loaded: &Loaded) -> Result<Self, Failure> {
        let null = Value::Null;
        let in_force = self.document.get("in_force").unwrap_or(&null);
        let next = whole(&loaded.config);
        let mut needs_restart = read_at_a_start(in_force, &next);
        let mut changed: Vec<PendingChange> = changes(in_force, &next)
            .into_iter()
            .map(PendingChange::from)
            .collect();
        let mut findings = check_with_commands(loaded).await;
        let left = left_behind_by(loaded, Some(&self)).await;
        findings.extend(left.anyway);
        let mut refused = refuse_errors(&findings).err();
        if refused.is_none() {
            let catalogue = load_catalogue(loaded).await?;
            refused = refuse_errors(&unfit(&loaded.config, &catalogue).await).err();
            findings.extend(warnings_of_code(loaded, &catalogue));
            let served = self.served_tools();
            let by_restart = self.by_restart(in_force, &next, |name| {
                let entry = catalogue.entry(name)?;
                Some(entry.component.digest().reference())
            });
            let owner = |tool: &str| Some(catalogue.tool(tool)?.0.name.clone());
            changed.extend(
                tools(&served.keys().cloned().collect(), &catalogue)
                    .into_iter()
                    .map(|it| {
                        let tool = it
                            .after
                            .as_deref()
                            .or(it.before.as_deref())
                            .unwrap_or_default();
                        let owner = owner(tool).or_else(|| served.get(tool).cloned());
                        PendingChange {
                            needs_restart: owner.is_some_and(|it| by_restart.contains(&it)),
                            ..it
                        }
                    }),
            );
            needs_restart.extend(by_restart.iter().map(|it| format!("components.{it}.path")));
        }
        let document = json!({
            "file": loaded.file,
            "refused": refused.map(|it| it.error.to_string()),
            "findings": findings,
            "left_behind": left.by_change,
            "changes": changed.iter().map(change).collect::<Vec<_>>(),
            "needs_restart": needs_restart,
        });
        Ok(Self { document, ..self })
    }

    /// Returns the tools that the host serves, with their components.
    fn served_tools(&self) -> BTreeMap<String, String> {
        let components = list(&self.components, "/components").iter();
        let of = |component: &Value| {
            let name = text(component, "/name").to_owned();
            let is_of_tools = text(component, "/describes/kind") == "tools";
            let tools = list(component, "/describes/description").iter();
            let tools: Vec<(String, String)> = tools
                .filter(|_| is_of_tools)
                .map(|tool| (text(tool, "/name").to_owned(), name.clone()))
                .collect();
            tools
        };
        components.flat_map(of).collect()
    }

    /// Returns the components that keep their code until a restart: other code is in the files that
    /// they were loaded from, and no other digest is pinned.
    fn by_restart(
        &self,
        in_force: &Value,
        next: &Value,
        code_of: impl Fn(&str) -> Option<String>,
    ) -> BTreeSet<String> {
        let key = |of: &Value, name: &str, key: &str| {
            let found = of.pointer(&format!("/components/{name}/{key}"));
            found.filter(|it| !it.is_null()).cloned()
        };
        let served = list(&self.components, "/components").iter();
        let kept = served.filter(|it| {
            let name = text(it, "/name");
            let digest = text(it, "/digest");
            let is_other = code_of(name).is_some_and(|code| code != digest);
            let pinned = key(next, name, "sha256");
            let may_stay =
                pinned.is_none_or(|pin| pin.as_str().is_some_and(|it| digest.ends_with(it)));
            is_other && may_stay && key(in_force, name, "path") == key(next, name, "path")
        });
        kept.map(|it| text(it, "/name").to_owned()).collect()
    }

    /// Asks the running host; none while there is none, or when it may not be asked.
    pub(crate) async fn of_running(loaded: &Loaded) -> Option<Self> {
        Self::ask(loaded).await.ok()
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Returns the file that it is about.
    pub(crate) fn file(&self) -> &str {
        text(&self.document, "/file")
    }

    /// Returns whether the host keeps the code of a component until a restart, though other code is
    /// in its file.
    pub(crate) fn holds_code_of(&self, component: &str) -> bool {
        let key = format!("components.{component}.path");
        let mut restart = list(&self.document, "/needs_restart").iter();
        restart.any(|it| it.as_str() == Some(key.as_str()))
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
        let findings = list(&self.document, pointer).iter().cloned();
        findings
            .filter_map(|it| serde_json::from_value(it).ok())
            .collect()
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
            of.map(move |(name, _)| {
                let message = format!(
                    "the folder at `{moved}` is not the one that the running host has open: it was \
                     moved, removed or replaced; `agent-host reload` opens what is there"
                );
                warning(format!("components.{name}.directories"), message)
            })
        });
        moved.collect()
    }

    /// Returns the lines for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let file = self.file();
        let changes = list(&self.document, "/changes");
        let restart = list(&self.document, "/needs_restart");
        let is_now = |it: &&Value| !is_true(it, "/needs_restart");
        let head = match (changes.iter().filter(is_now).count(), restart) {
            (0, []) => format!("{file} is what is in force"),
            (0, _) => format!("{file} changes nothing of what is in force before a restart"),
            _ => format!("{file} against what is in force: + is new, - would go"),
        };
        let changes = lines(&self.document, &CHANGES);
        // Errors because of which all of it is refused are told by the refusal.
        let refused = self.refused().unwrap_or_default();
        let is_reported = |it: &Finding| {
            it.severity == Severity::Error && refused.contains(&it.without_severity())
        };
        let findings = self.findings().into_iter();
        let findings = findings
            .filter(|it| !is_reported(it))
            .map(|it| it.to_string());
        std::iter::once(head)
            .chain(changes)
            .chain(findings)
            .collect()
    }
}

/// A change as the host would tell it.
fn change(of: &PendingChange) -> Value {
    json!({
        "key": of.key, "before": of.before, "after": of.after, "agents": of.agents,
        "needs_restart": of.needs_restart,
    })
}

/// Finds what a check of a configuration finds. Where a host runs with the same file, its
/// environment counts, and not the caller's.
pub(crate) async fn found_in(loaded: &Loaded, running: Option<&Pending>) -> Vec<Finding> {
    let mut findings = match running.filter(|pending| pending.is_of(loaded)) {
        Some(pending) => pending.findings(),
        None => check_with_commands(loaded).await,
    };
    findings.extend(left_behind_by(loaded, running).await.all());
    findings.extend(running.into_iter().flat_map(|it| it.moved_folders(loaded)));
    findings
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
    use super::*;

    fn pending(document: Value, components: Value) -> Pending {
        Pending {
            document,
            in_force: InForce::default(),
            components,
        }
    }

    #[test]
    fn what_is_in_force_and_what_a_restart_brings_do_not_contradict_each_other() {
        let head = |changes: Value, restart: Value| {
            let document = json!({
                "file": "/c.toml", "changes": changes, "needs_restart": restart,
            });
            pending(document, json!({})).lines()
        };
        assert_eq!(head(json!([]), json!([])), ["/c.toml is what is in force"]);
        let tool = |is_later: bool| {
            json!([{
                "key": "tools", "after": "shout", "agents": ["a", "b"], "needs_restart": is_later,
            }])
        };
        assert_eq!(
            head(tool(true), json!(["components.mytool.path"])),
            [
                "/c.toml changes nothing of what is in force before a restart",
                "after a restart only: + tools = shout, for a, b",
                "after a restart only: components.mytool.path",
            ]
        );
        assert_eq!(
            head(tool(false), json!([])),
            [
                "/c.toml against what is in force: + is new, - would go",
                "+ tools = shout, for a, b",
            ]
        );
    }

    #[test]
    fn code_is_kept_until_a_restart_where_neither_path_nor_digest_changes() {
        let served = json!({ "components": [{
            "name": "c", "digest": "sha256:01",
            "describes": { "kind": "tools", "description": [{ "name": "shout" }] },
        }] });
        let host = pending(json!({ "file": "/c.toml" }), served);
        let of = |component: Value| json!({ "components": { "c": component } });
        let plain = of(json!({ "path": "c.wasm" }));
        for (next, code, is_kept) in [
            (plain.clone(), "sha256:01", false),
            (plain.clone(), "sha256:02", true),
            (
                of(json!({ "path": "c.wasm", "sha256": "01" })),
                "sha256:02",
                true,
            ),
            (
                of(json!({ "path": "c.wasm", "sha256": "02" })),
                "sha256:02",
                false,
            ),
            (of(json!({ "path": "d.wasm" })), "sha256:02", false),
        ] {
            let kept = host.by_restart(&plain, &next, |_| Some(code.to_owned()));
            assert_eq!(kept.contains("c"), is_kept, "{next} {code}");
        }
        let tools = host.served_tools();
        assert_eq!(
            tools,
            BTreeMap::from([("shout".to_owned(), "c".to_owned())])
        );
    }

    #[test]
    fn an_error_that_refuses_the_file_is_left_to_the_refusal() {
        let finding =
            |is: &str, key: &str| json!({ "severity": is, "key": key, "message": "so it is" });
        let document = json!({
            "file": "c.toml",
            "refused": "the configuration has 2 errors:\n  a: so it is\n  b: so it is",
            "findings": [finding("error", "a"), finding("error", "b"), finding("warning", "c")],
            "left_behind": [finding("warning", "d")],
        });
        let pending = pending(document, Value::Null);
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
