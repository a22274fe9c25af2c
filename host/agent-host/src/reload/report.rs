//! The differences between what was served and what is served now, with what the grant covers.

use crate::command::{Change, Place, changes, review};
use crate::config::{ComponentConfig, Config};
use broker::{Catalogue, Entry};
use domain::definition::Definition;
use domain::digest::Digest;
use domain::tool::ToolDefinition;
use runtime::Described;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A difference, for programs and for people.
pub(super) struct Report {
    pub(super) document: Value,
    pub(super) lines: Vec<String>,
}

/// The names that are new, and those that are gone.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Names {
    added: Vec<String>,
    removed: Vec<String>,
}

impl Names {
    fn between(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Self {
        Self {
            added: after.difference(before).cloned().collect(),
            removed: before.difference(after).cloned().collect(),
        }
    }

    fn lines(&self, what: &str) -> Vec<String> {
        let added = self
            .added
            .iter()
            .map(|name| format!("  + {what:<8} {name}"));
        let removed = self
            .removed
            .iter()
            .map(|name| format!("  - {what:<8} {name}"));
        added.chain(removed).collect()
    }
}

/// Reports a component that is served: its code, imports, capabilities, tools and grant. None when
/// it is the same as before.
pub(super) fn component(
    before: Option<&Entry>,
    after: &Entry,
    config: &ComponentConfig,
    place: &Place,
) -> Option<Report> {
    let digest = |entry: &Entry| entry.component.digest();
    let grant = changes(
        &json!(before.map(|before| &before.grant)),
        &json!(Some(&after.grant)),
    );
    let is_same_code = before.is_some_and(|before| digest(before) == digest(after));
    let is_same_pin = before.is_some_and(|before| before.is_pinned == after.is_pinned);
    if is_same_code && is_same_pin && grant.is_empty() {
        return None;
    }
    let imports = Names::between(
        &before.map(imports_of).unwrap_or_default(),
        &imports_of(after),
    );
    let asked = Names::between(&before.map(asked_by).unwrap_or_default(), &asked_by(after));
    let tools = Tools::between(before, after);
    // A component that is new has its whole grant from the configuration.
    let grant = before.map(|_| grant).unwrap_or_default();
    let review = review(after, config, place);
    let code = |entry: &Entry| digest(entry).reference();
    let document = json!({
        "event": "component",
        "component": after.name,
        "code": { "before": before.map(code), "after": code(after) },
        "pinned": after.is_pinned,
        "imports": imports,
        "asked": asked,
        "tools": tools,
        "described": tools.itself,
        "grant": grant,
        "review": review.document,
    });
    let mut lines = vec![head(before, after)];
    lines.extend(imports.lines("import"));
    lines.extend(asked.lines("asks"));
    lines.extend(tools.lines());
    lines.extend(
        grant
            .iter()
            .map(|change| format!("  grant    {}", change.line())),
    );
    lines.extend(review.lines);
    Some(Report { document, lines })
}

/// Returns the first line: which code takes the place of which.
fn head(before: Option<&Entry>, after: &Entry) -> String {
    let short = |digest: Digest| digest.short();
    let name = &after.name;
    let code = after.component.digest();
    match before.map(|before| before.component.digest()) {
        None => format!("{name}: new, {} from now on", short(code)),
        Some(before) if before == code => {
            format!(
                "{name}: {}, with another grant from the next call on",
                short(code)
            )
        }
        Some(before) => format!(
            "{name}: {} -> {} from the next turn on; turns under way end with the old code",
            short(before),
            short(code)
        ),
    }
}

/// Reports a component that is not served any more.
pub(super) fn removed(name: &str) -> Report {
    Report {
        document: json!({ "event": "component", "component": name, "removed": true }),
        lines: vec![format!("{name}: gone; its calls are refused from now on")],
    }
}

/// Reports the agents that differ, with the keys of their definitions.
pub(super) fn agents(before: &Catalogue, after: &Catalogue) -> Vec<Report> {
    let by_id = |catalogue: &Catalogue| -> BTreeMap<String, Value> {
        let definitions = catalogue.definitions();
        definitions
            .map(|definition| (definition.agent_id.0.clone(), written(definition)))
            .collect()
    };
    let kind = Kind {
        name: "agent",
        when_gone: "its turns end now",
    };
    kind.reports(&by_id(before), &by_id(after))
}

/// Reports the triggers and connectors that differ, with the keys of their definitions.
pub(super) fn edge(before: &Config, after: &Config) -> Vec<Report> {
    let triggers = |config: &Config| -> BTreeMap<String, Value> {
        let triggers = config.all_triggers().into_iter();
        triggers
            .map(|(name, spec)| (name.to_string(), json!(spec)))
            .collect()
    };
    let connectors = |config: &Config| -> BTreeMap<String, Value> {
        let connectors = config.all_connectors().into_iter();
        connectors
            .map(|(name, spec)| (name.to_string(), json!(spec)))
            .collect()
    };
    let trigger = Kind {
        name: "trigger",
        when_gone: "it is fired no more",
    };
    let connector = Kind {
        name: "connector",
        when_gone: "nothing comes in and nothing goes out",
    };
    let mut reports = trigger.reports(&triggers(before), &triggers(after));
    reports.extend(connector.reports(&connectors(before), &connectors(after)));
    reports
}

/// A kind of what a configuration defines by name.
struct Kind {
    name: &'static str,
    /// The consequence when one is gone.
    when_gone: &'static str,
}

impl Kind {
    /// Reports those that differ, by their names.
    fn reports(
        &self,
        before: &BTreeMap<String, Value>,
        after: &BTreeMap<String, Value>,
    ) -> Vec<Report> {
        let all: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let kind = self.name;
        let reports = all.into_iter().filter_map(|name| {
            let line = match (before.get(name), after.get(name)) {
                (Some(before), Some(after)) => {
                    let changed: BTreeSet<String> =
                        changes(before, after).iter().map(key_of).collect();
                    if changed.is_empty() {
                        return None;
                    }
                    let changed: Vec<String> = changed.into_iter().collect();
                    format!("{kind} {name}: changed {}", changed.join(", "))
                }
                (None, _) => format!("{kind} {name}: new"),
                (Some(_), None) => format!("{kind} {name}: gone; {}", self.when_gone),
            };
            let mut document = json!({
                "event": kind, "before": before.get(name), "after": after.get(name),
            });
            if let Some(fields) = document.as_object_mut() {
                fields.insert(kind.to_owned(), name.as_str().into());
            }
            Some(Report {
                document,
                lines: vec![line],
            })
        });
        reports.collect()
    }
}

fn written(definition: &std::sync::Arc<Definition>) -> Value {
    json!(**definition)
}

/// Returns the first part of a change's key.
fn key_of(change: &Change) -> String {
    let (Change::Added { key, .. } | Change::Removed { key, .. } | Change::Changed { key, .. }) =
        change;
    key.split('.').next().unwrap_or_default().to_owned()
}

fn imports_of(entry: &Entry) -> BTreeSet<String> {
    entry.component.imports().iter().cloned().collect()
}

fn tools_of(entry: &Entry) -> &[ToolDefinition] {
    match entry.component.describes() {
        Described::Tools(tools) => tools,
        Described::Agent(_) | Described::Trigger(_) | Described::Connector(_) => &[],
    }
}

/// Returns the capabilities that the tools of a component declare.
fn asked_by(entry: &Entry) -> BTreeSet<String> {
    tools_of(entry)
        .iter()
        .flat_map(|tool| tool.capabilities.iter().cloned())
        .collect()
}

/// The differences between the tools of a component, or of what another one says of itself.
#[derive(Default, Serialize)]
struct Tools {
    #[serde(flatten)]
    names: Names,
    /// The differences between the two definitions of a tool.
    changed: BTreeMap<String, Vec<Change>>,
    /// The differences between the two descriptions of an agent, a trigger or a connector.
    #[serde(skip)]
    itself: Vec<Change>,
    /// The kind of the component.
    #[serde(skip)]
    kind: &'static str,
}

impl Tools {
    fn between(before: Option<&Entry>, after: &Entry) -> Self {
        let by_name = |entry: &Entry| -> BTreeMap<String, Value> {
            let tools = tools_of(entry).iter();
            tools.map(|tool| (tool.name.clone(), json!(tool))).collect()
        };
        let old = before.map(by_name).unwrap_or_default();
        let new = by_name(after);
        let names = |tools: &BTreeMap<String, Value>| tools.keys().cloned().collect();
        let changed = new.iter().filter_map(|(name, new)| {
            let changes = changes(old.get(name)?, new);
            (!changes.is_empty()).then(|| (name.clone(), changes))
        });
        Self {
            names: Names::between(&names(&old), &names(&new)),
            changed: changed.collect(),
            itself: match before {
                Some(before) => own_changes(before, after),
                None => Vec::new(),
            },
            kind: match after.component.describes() {
                Described::Agent(_) => "agent",
                Described::Tools(_) => "tools",
                Described::Trigger(_) => "trigger",
                Described::Connector(_) => "connector",
            },
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = self.names.lines("tool");
        for (name, changes) in &self.changed {
            let changes = changes.iter();
            lines.extend(changes.map(|change| format!("  ~ tool     {name}: {}", change.line())));
        }
        let changes = self.itself.iter();
        lines.extend(changes.map(|change| format!("  ~ {:<8} {}", self.kind, change.line())));
        lines
    }
}

fn own_changes(before: &Entry, after: &Entry) -> Vec<Change> {
    match (before.component.describes(), after.component.describes()) {
        (Described::Agent(before), Described::Agent(after)) => {
            changes(&json!(before), &json!(after))
        }
        (Described::Trigger(before), Described::Trigger(after)) => {
            changes(&json!(before), &json!(after))
        }
        (Described::Connector(before), Described::Connector(after)) => {
            changes(&json!(before), &json!(after))
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, edge};
    use crate::config::Config;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn imports_that_came_and_went_are_named_for_programs_and_for_people() {
        let set = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(ToString::to_string).collect()
        };
        let before = set(&["wasi:cli/exit@0.2.6", "wasi:io/poll@0.2.6"]);
        let after = set(&["wasi:cli/exit@0.2.6", "wasi:http/types@0.2.6"]);
        let imports = Names::between(&before, &after);
        assert_eq!(
            json!(imports),
            json!({ "added": ["wasi:http/types@0.2.6"], "removed": ["wasi:io/poll@0.2.6"] })
        );
        assert_eq!(
            imports.lines("import"),
            [
                "  + import   wasi:http/types@0.2.6",
                "  - import   wasi:io/poll@0.2.6"
            ]
        );
        assert_eq!(Names::between(&after, &after), Names::default());
    }

    #[test]
    fn triggers_and_connectors_that_changed_are_told_with_their_keys() {
        let config = |triggers: serde_json::Value| -> Config {
            let connectors = json!({ "c": { "component": "telegram", "agent": "a" } });
            let config = json!({ "triggers": triggers, "connectors": connectors });
            serde_json::from_value(config).unwrap()
        };
        let beat = json!({ "heartbeat": {}, "target": { "agent": "a" } });
        let other =
            json!({ "heartbeat": { "every": "1h" }, "message": "x", "target": { "agent": "a" } });
        let before = config(json!({ "old": beat, "t": beat, "same": beat }));
        let after = config(json!({ "new": beat, "t": other, "same": beat }));
        let reports = edge(&before, &after);
        let lines: Vec<&str> = reports
            .iter()
            .flat_map(|report| &report.lines)
            .map(String::as_str)
            .collect();
        assert_eq!(
            lines,
            [
                "trigger new: new",
                "trigger old: gone; it is fired no more",
                "trigger t: changed heartbeat, message",
            ]
        );
        assert_eq!(reports[0].document["trigger"], "new");
        let reported: Vec<String> = edge(&after, &Config::default())
            .into_iter()
            .flat_map(|report| report.lines)
            .filter(|line| line.starts_with("connector"))
            .collect();
        assert_eq!(
            reported,
            ["connector c: gone; nothing comes in and nothing goes out"]
        );
    }
}
