//! `grants explain` and `grants diff`: why an agent may or may not, and what a changed
//! configuration changes.

mod edge;
mod explain;
mod skills;

use super::pending::{Pending, left_behind_by};
use crate::answer::{Answer, fill, list, text};
use crate::cli::Grants;
use crate::client::Client;
use crate::config::{Finding, Loaded, load};
use crate::failure::{Exit, Failure};
use crate::guests;
use anyhow::Context;
use api::wire;
use domain::authority::{ListCheck, Says};
use domain::digest::Digest;
use domain::json::camel_case;
use domain::ruling::Rule;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Runs the command.
pub(super) async fn run(loaded: &Loaded, what: Grants) -> Result<Answer, Failure> {
    match what {
        Grants::Explain {
            trigger: Some(name),
            ..
        } => edge::trigger(loaded, &name).await,
        Grants::Explain {
            connector: Some(name),
            ..
        } => edge::connector(loaded, &name).await,
        Grants::Explain { agent, tool, .. } => {
            // The command line has both where it has neither of the others.
            let agent = agent.unwrap_or_default();
            let tool = tool.unwrap_or_default();
            explain::run(loaded, &agent, &tool).await
        }
        Grants::Diff { against } => difference(loaded, against.as_deref()).await,
    }
}

async fn difference(loaded: &Loaded, against: Option<&Path>) -> Result<Answer, Failure> {
    let (before, what) = match against {
        Some(file) => {
            let other =
                load(file, std::iter::empty()).map_err(|error| Failure::new(Exit::Usage, error))?;
            (configured(&other).await?, file.display().to_string())
        }
        None => (running(loaded).await?, "the running host".to_owned()),
    };
    let changes = changes(&before, &configured(loaded).await?);
    let running = match against {
        Some(_) => None,
        None => Pending::of_running(loaded).await,
    };
    let left: Vec<Finding> = match &running {
        Some(running) if running.is_of(loaded) => running.left_behind(),
        Some(_) => left_behind_by(loaded, running.as_ref()).await.by_change,
        None => Vec::new(),
    };
    let document = json!({
        "against": what, "config": loaded.file, "changes": changes, "left_behind": left,
    });
    let file = loaded.file.display();
    if changes.is_empty() && left.is_empty() {
        return Ok(Answer::line(
            document,
            format!("{file} grants the same as {what}"),
        ));
    }
    let head = format!("{file} against {what}: + is there now, - is not any more");
    let left = left.iter().map(ToString::to_string);
    let changes = changes.iter().map(Change::line);
    Ok(Answer::new(
        document,
        [head].into_iter().chain(changes).chain(left),
    ))
}

/// Returns the line for one inspection: the list, its verdict, and the pattern that decides.
fn check_line(check: &ListCheck) -> String {
    let list = match check.rule {
        Rule::NotGranted => "grant",
        rule => rule.as_str(),
    };
    let says = match &check.says {
        Says::Nothing => "-",
        Says::Passes { .. } => "passes",
        Says::Stops { .. } => "stops it",
    };
    let by = "[[ by `{/pattern}`]][[ (asked for with `{/with}`)]]";
    let by = fill(&json!(check), by);
    format!("  {:<24}{list:<22}{says}{by}", check.name)
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum Change {
    /// An entry that was added.
    Added { key: String, value: String },
    /// An entry that was removed.
    Removed { key: String, value: String },
    /// A value that was changed.
    Changed {
        key: String,
        before: String,
        after: String,
    },
}

impl Change {
    fn added(key: &str, value: &Value) -> Self {
        Self::Added {
            key: key.to_owned(),
            value: value.to_string(),
        }
    }

    fn removed(key: &str, value: &Value) -> Self {
        Self::Removed {
            key: key.to_owned(),
            value: value.to_string(),
        }
    }

    /// Returns the line for people.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Added { key, value } => format!("+ {key} = {value}"),
            Self::Removed { key, value } => format!("- {key} = {value}"),
            Self::Changed { key, before, after } => format!("~ {key}: {before} -> {after}"),
        }
    }
}

/// Returns all differences, by key. The order of a list does not matter.
pub(crate) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    changes
}

fn compare(key: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                compare(&key, before.get(name), after.get(name), changes);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            let removed = before.iter().filter(|entry| !after.contains(entry));
            changes.extend(removed.map(|entry| Change::removed(key, entry)));
            let added = after.iter().filter(|entry| !before.contains(entry));
            changes.extend(added.map(|entry| Change::added(key, entry)));
        }
        (Some(before), Some(after)) if before == after => {}
        (Some(before), Some(after)) => {
            changes.push(Change::Changed {
                key: key.to_owned(),
                before: before.to_string(),
                after: after.to_string(),
            });
        }
        (Some(before), None) => changes.push(Change::removed(key, before)),
        (None, Some(after)) => changes.push(Change::added(key, after)),
        (None, None) => {}
    }
}

/// Takes the snapshot of a configuration.
async fn configured(loaded: &Loaded) -> Result<Value, Failure> {
    let agents = loaded
        .config
        .definitions()
        .iter()
        .map(|definition| agent(&json!(wire::definition(definition))))
        .collect::<Vec<_>>();
    let mut components = Map::new();
    for (name, config) in guests::served(loaded) {
        let file = guests::locate(loaded, &name, &config)?;
        let code = tokio::fs::read(&file)
            .await
            .with_context(|| format!("components.{name}: cannot read `{}`", file.display()))?;
        let code = tokio::task::spawn_blocking(move || Digest::of(&code)).await?;
        components.insert(
            name.clone(),
            component(
                &json!(code.reference()),
                &json!(config.grant(&name, loaded.folder())),
            ),
        );
    }
    Ok(snapshot(agents, components))
}

/// Takes the snapshot of a running host.
async fn running(loaded: &Loaded) -> Result<Value, Failure> {
    let client = Client::new(loaded)?;
    let definitions = client.definitions().await?;
    let components = client.get("/api/components").await?;
    Ok(snapshot_of_views(&definitions, &components))
}

/// Takes the snapshot from a host's views of its definitions and components.
fn snapshot_of_views(definitions: &Value, components: &Value) -> Value {
    // What users make is within its templates, and no part of the configuration.
    let agents = list(definitions, "/definitions")
        .iter()
        .filter(|it| text(it, "/made_by").is_empty())
        .map(agent);
    let components = list(components, "/components").iter().filter_map(|it| {
        let name = it.get("name")?.as_str()?.to_owned();
        Some((name, component(it.get("digest")?, it.get("grant")?)))
    });
    snapshot(agents, components)
}

fn snapshot(
    agents: impl IntoIterator<Item = (String, Value)>,
    components: impl IntoIterator<Item = (String, Value)>,
) -> Value {
    json!({ "agents": Map::from_iter(agents), "components": Map::from_iter(components) })
}

/// An agent by its `agentId`, with what its lists and its component say of it. A list that is not
/// there is left out.
fn agent(view: &Value) -> (String, Value) {
    let lists = view
        .get("lists")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut agent: Map<String, Value> = lists
        .filter(|(_, list)| !list.is_null())
        .map(|(name, list)| (camel_case(name), list.clone()))
        .collect();
    agent.insert("component".to_owned(), text(view, "/component").into());
    agent.insert(
        "uiVisible".to_owned(),
        view.get("ui_visible").cloned().unwrap_or_default(),
    );
    (text(view, "/definition").to_owned(), agent.into())
}

fn component(code: &Value, grant: &Value) -> Value {
    let mut component = grant.as_object().cloned().unwrap_or_default();
    component.insert("code".to_owned(), code.clone());
    component.into()
}

#[cfg(test)]
mod tests {
    use super::{Change, agent, changes, component, snapshot, snapshot_of_views};
    use api::wire;
    use domain::definition::Definition;
    use serde_json::{Value, json};

    #[test]
    fn what_was_added_removed_and_changed_is_told_by_its_key() {
        let files = |first: &str, second: &str, ms: u64| json!({ "directories": [{ "at": first }, { "at": second }], "limits": { "cpuMsMax": ms } });
        let before = json!({ "components": { "files": files("/a", "/b", 1), "old": {} } });
        let after = json!({ "components": { "files": files("/b", "/c", 2), "web": {} } });
        let reported: Vec<String> = changes(&before, &after).iter().map(Change::line).collect();
        assert_eq!(
            reported,
            [
                "- components.files.directories = {\"at\":\"/a\"}",
                "+ components.files.directories = {\"at\":\"/c\"}",
                "~ components.files.limits.cpuMsMax: 1 -> 2",
                "- components.old = {}",
                "+ components.web = {}",
            ]
        );
        assert!(changes(&before, &before).is_empty());
    }

    fn definition(id: &str, more: &Value) -> Definition {
        let mut definition = json!({ "agentId": id, "displayName": id, "component": "c" });
        definition
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        serde_json::from_value(definition).unwrap()
    }

    #[test]
    fn lists_agents_and_code_that_a_restart_would_change_are_told() {
        let running = [
            definition(
                "a",
                &json!({ "toolDenylist": ["x"], "agentAllowlist": ["b"] }),
            ),
            definition("old", &json!({})),
        ];
        let views: Vec<Value> = running
            .iter()
            .map(|definition| json!(wire::definition(definition)))
            .collect();
        let component_view =
            json!({ "name": "c", "digest": "sha256:aa", "grant": { "models": ["*"] } });
        let before = snapshot_of_views(
            &json!({ "definitions": views }),
            &json!({ "components": [component_view] }),
        );
        let configured = [
            definition(
                "a",
                &json!({ "toolAllowlist": [], "agentAllowlist": ["b"] }),
            ),
            definition("new", &json!({})),
        ];
        let agents = configured
            .iter()
            .map(|definition| agent(&json!(wire::definition(definition))));
        let components = [(
            "c".to_owned(),
            component(&json!("sha256:bb"), &json!({ "models": ["*"] })),
        )];
        let after = snapshot(agents, components);
        let reported: Vec<String> = changes(&before, &after).iter().map(Change::line).collect();
        assert_eq!(
            reported,
            [
                "+ agents.a.toolAllowlist = []",
                "- agents.a.toolDenylist = [\"x\"]",
                "+ agents.new = {\"component\":\"c\",\"uiVisible\":true}",
                "- agents.old = {\"component\":\"c\",\"uiVisible\":true}",
                "~ components.c.code: \"sha256:aa\" -> \"sha256:bb\"",
            ]
        );
        assert!(changes(&before, &before).is_empty());
    }
}
