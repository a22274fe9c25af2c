//! What panels a client may tell of, and what an agent reads of them.

use super::*;
use uuid::Uuid;

fn inventory(value: Value) -> PanelInventory {
    serde_json::from_value(value).unwrap()
}

fn two() -> PanelInventory {
    inventory(json!({
        "type": "panel_inventory",
        "panels": [
            { "panel_id": "p1", "panel_type": "artifacts", "panel_title": "Lists",
              "context": { "type": "todo", "id": "2", "name": "Milk", "selection": ["2"] } },
            { "panel_id": "p2", "panel_type": "chat" },
        ],
        "selected_panel_id": "p1",
    }))
}

#[test]
fn a_fault_of_an_inventory_is_refused_with_its_field() {
    assert_eq!(two().check(), Ok(()));
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    let panel = json!({ "panel_id": "p", "panel_type": "t" });
    let many: Vec<Value> = (0..=PANELS_MAX)
        .map(|id| json!({ "panel_id": id.to_string(), "panel_type": "t" }))
        .collect();
    let selection = vec!["1"; SELECTION_MAX + 1];
    for (value, field) in [
        (json!({ "panels": many }), "/panels"),
        (json!({ "panels": [panel, panel] }), "/panels/1/panel_id"),
        (
            json!({ "panels": [{ "panel_id": "", "panel_type": "t" }] }),
            "/panels/0/panel_id",
        ),
        (
            json!({ "panels": [{ "panel_id": "p", "panel_type": "t\n" }] }),
            "/panels/0/panel_type",
        ),
        (
            json!({ "panels": [{ "panel_id": "p", "panel_type": "t", "panel_title": long }] }),
            "/panels/0/panel_title",
        ),
        (
            json!({ "panels": [{ "panel_id": "p", "panel_type": "t",
                "context": { "name": long } }] }),
            "/panels/0/context/name",
        ),
        (
            json!({ "panels": [{ "panel_id": "p", "panel_type": "t",
                "context": { "selection": selection } }] }),
            "/panels/0/context/selection",
        ),
        (
            json!({ "panels": [panel], "selected_panel_id": "q" }),
            "/selected_panel_id",
        ),
    ] {
        let refusal = inventory(value).check().unwrap_err();
        assert_eq!(refusal.field.as_deref(), Some(field));
    }
}

#[test]
fn what_is_no_inventory_among_attributes_counts_as_none() {
    let read = |value: Value| {
        let attributes = Map::from_iter([(ATTRIBUTE.to_owned(), value)]);
        PanelInventory::of_session(&attributes)
    };
    assert_eq!(read(serde_json::to_value(two()).unwrap()), Some(two()));
    for wrong in [
        json!("panels"),
        json!({}),
        json!({ "panels": [{ "panel_id": "" }] }),
    ] {
        assert_eq!(read(wrong), None);
    }
    assert_eq!(PanelInventory::of_session(&Map::new()), None);
}

#[test]
fn the_context_of_panels_is_shown_when_it_is_wanted() {
    let session = SessionId(Uuid::from_u128(1));
    let shown = [(session, two())];
    let all = result(LIST, &shown, false);
    assert_eq!(all["panels"].as_array().unwrap().len(), 2);
    assert_eq!(all["panels"][0].get("context"), None);
    let selected = result(SELECTED, &shown, true);
    assert_eq!(selected["panels"].as_array().unwrap().len(), 1);
    assert_eq!(selected["panels"][0]["context"]["name"], "Milk");
    assert_eq!(selected["panels"][0]["selected"], true);
    assert_eq!(result(LIST, &[], true), json!({ "panels": [] }));
}

#[test]
fn arguments_of_the_panels_tools_are_checked() {
    let read = |value: Value| include_context(LIST, value.as_object().unwrap());
    assert_eq!(read(json!({})), Ok(false));
    assert_eq!(read(json!({ "includeContext": null })), Ok(false));
    assert_eq!(read(json!({ "includeContext": true })), Ok(true));
    for wrong in [
        json!({ "includeContext": "yes" }),
        json!({ "context": true }),
    ] {
        assert!(read(wrong).unwrap_err().contains("includeContext"));
    }
}

#[test]
fn an_agent_has_the_panels_tools_with_artifacts_or_by_name() {
    let list = |patterns: &[&str]| {
        PatternList(
            patterns
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect(),
        )
    };
    let mut lister = tool("items", "Lists items.");
    lister.results = Some(json!({ crate::access::artifact::MARK: true }));
    let plain = tool("plain", "Does nothing.");
    assert!(are_offered(None, [&lister]));
    assert!(!are_offered(None, [&plain]));
    assert!(!are_offered(Some(&list(&["*"])), [&plain]));
    assert!(are_offered(Some(&list(&["panels_*"])), [&plain]));
}
