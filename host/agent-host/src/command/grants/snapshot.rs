//! A snapshot of all permissions, as a document that can be compared: agents with their lists,
//! components with code and grants.

use crate::client::Client;
use crate::config::Loaded;
use crate::failure::Failure;
use crate::fields::{list, text};
use crate::guests;
use anyhow::Context;
use api::wire;
use domain::digest::Digest;
use domain::json::camel_case;
use serde_json::{Map, Value, json};

/// Takes the snapshot of a configuration.
pub(super) async fn configured(loaded: &Loaded) -> Result<Value, Failure> {
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
pub(super) async fn running(loaded: &Loaded) -> Result<Value, Failure> {
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
    use super::{agent, component, snapshot, snapshot_of_views};
    use crate::command::grants::diff::{Change, changes};
    use api::wire;
    use domain::definition::Definition;
    use serde_json::{Value, json};

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
