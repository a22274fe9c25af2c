//! The differences between what was served and what is served now, with what the grant covers.

use crate::answer::text;
use crate::command::{Change, Place, changes, review};
use crate::config::{ComponentConfig, Config};
use broker::{Catalogue, Entry};
use domain::digest::Digest;
use domain::tool::ToolDefinition;
use runtime::Described;
use serde::Serialize;
use serde_json::{Map, Value, json};
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
    let by_id = |catalogue: &Catalogue| -> Value {
        let definitions = catalogue.definitions();
        let by_id = definitions.map(|it| (it.agent_id.0.clone(), json!(**it)));
        by_id.collect::<Map<_, _>>().into()
    };
    differing("agent", "its turns end now", &[by_id(before), by_id(after)])
}

/// Reports the triggers and connectors that differ, with the keys of their definitions.
pub(super) fn edge(before: &Config, after: &Config) -> Vec<Report> {
    let configs = [before, after];
    let triggers = configs.map(|config| json!(config.all_triggers()));
    let connectors = configs.map(|config| json!(config.all_connectors()));
    let mut reports = differing("trigger", "it is fired no more", &triggers);
    let when_gone = "nothing comes in and nothing goes out";
    reports.extend(differing("connector", when_gone, &connectors));
    reports
}

/// Reports what differs of one kind, by its names before and after, and the consequence of one that
/// is gone.
fn differing(kind: &str, when_gone: &str, of: &[Value; 2]) -> Vec<Report> {
    let names: BTreeSet<&String> = of
        .iter()
        .filter_map(Value::as_object)
        .flat_map(Map::keys)
        .collect();
    let reports = names.into_iter().filter_map(|name| {
        let [before, after] = of.each_ref().map(|all| all.get(name));
        let line = match (before, after) {
            (Some(before), Some(after)) => {
                let changed: BTreeSet<String> = changes(before, after).iter().map(key_of).collect();
                if changed.is_empty() {
                    return None;
                }
                let changed: Vec<String> = changed.into_iter().collect();
                format!("{kind} {name}: changed {}", changed.join(", "))
            }
            (None, _) => format!("{kind} {name}: new"),
            (Some(_), None) => format!("{kind} {name}: gone; {when_gone}"),
        };
        let document = json!({ "event": kind, kind: name, "before": before, "after": after });
        Some(Report {
            document,
            lines: vec![line],
        })
    });
    reports.collect()
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
    kind: String,
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
            kind: text(&json!(after.component.describes()), "/kind").to_owned(),
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
    let [before, after] = [before, after].map(|it| json!(it.component.describes()));
    let kind = text(&after, "/kind");
    if kind == "tools" || text(&before, "/kind") != kind {
        return Vec::new();
    }
    let of = |described: &Value| described.get("description").cloned().unwrap_or_default();
    changes(&of(&before), &of(&after))
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
