//! Panels that a client shows beside a conversation, and the tools by which an agent without its
//! own client reads them: `panels_list` and `panels_selected`.
//!
//! A client pushes the whole inventory whenever it changes. The host keeps the newest inventory in
//! the session's attributes, and never invents one.

use crate::access::artifact::lists_items;
use crate::access::grant::{PANEL_TOOLS, PatternList};
use crate::access::tool::ToolDefinition;
use crate::values::error_code::ErrorCode;
use crate::values::id::SessionId;
use crate::values::refusal::Refusal;
use crate::values::shown::controls_what_is_shown;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Lists the panels.
pub const LIST: &str = "panels_list";
/// Shows the panel that is selected.
pub const SELECTED: &str = "panels_selected";
/// All of them.
pub const NAMES: [&str; 2] = [LIST, SELECTED];
/// The attribute of a session that contains its inventory.
pub const ATTRIBUTE: &str = "panel_inventory";

/// Panels of one inventory.
pub const PANELS_MAX: usize = 64;
/// Bytes of one text in an inventory.
pub const TEXT_BYTES_MAX: usize = 512;
/// Items that are selected in one panel.
pub const SELECTION_MAX: usize = 100;
/// The most sessions of a user that are searched for panels, latest first.
pub const SESSIONS_MAX: usize = 32;

/// The kind of a client's push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The whole inventory.
    #[default]
    PanelInventory,
}

/// The panels that a client shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelInventory {
    /// The kind of payload.
    #[serde(rename = "type", default)]
    pub kind: Kind,
    /// The open panels, in the client's order.
    pub panels: Vec<Panel>,
    /// The panel that is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_panel_id: Option<String>,
}

/// A panel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Its id within the client.
    pub panel_id: String,
    /// The kind of panel, such as `artifacts`.
    pub panel_type: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel_title: Option<String>,
    /// The active item or view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<PanelContext>,
}

/// The active item or view of a panel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PanelContext {
    /// The item's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub item_type: Option<String>,
    /// The item's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The item's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The view's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view_name: Option<String>,
    /// The view's query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view_query: Option<String>,
    /// The ids of the selected items.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selection: Vec<String>,
    /// The requested style of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

impl PanelContext {
    fn texts(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let single = [
            ("type", &self.item_type),
            ("id", &self.id),
            ("name", &self.name),
            ("view_name", &self.view_name),
            ("view_query", &self.view_query),
            ("mode", &self.mode),
        ];
        single
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.as_ref()?)))
            .chain(self.selection.iter().map(|id| ("selection", id)))
    }
}

impl PanelInventory {
    /// Checks a client's push.
    ///
    /// # Errors
    /// There are too many panels or selected items; a text is too long, has control characters or
    /// is an empty id; an id occurs twice; the selected panel is missing. The refusal names the
    /// field.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.panels.len() > PANELS_MAX {
            let reported = format!("at most {PANELS_MAX} panels are taken");
            return Err(invalid("/panels", reported));
        }
        let mut ids = BTreeSet::new();
        for (index, panel) in self.panels.iter().enumerate() {
            panel.check(&format!("/panels/{index}"))?;
            if !ids.insert(panel.panel_id.as_str()) {
                let reported = format!("the id `{}` stands twice", panel.panel_id);
                return Err(invalid(format!("/panels/{index}/panel_id"), reported));
            }
        }
        match &self.selected_panel_id {
            Some(id) if !ids.contains(id.as_str()) => Err(invalid(
                "/selected_panel_id",
                "it is none of the panels; name one of them, or leave it out",
            )),
            _ => Ok(()),
        }
    }

    /// Reads the inventory among the attributes of a session. None if it is missing or invalid.
    #[must_use]
    pub fn of_session(attributes: &Map<String, Value>) -> Option<Self> {
        let inventory = Self::deserialize(attributes.get(ATTRIBUTE)?).ok()?;
        inventory.check().is_ok().then_some(inventory)
    }
}

impl Panel {
    fn check(&self, at: &str) -> Result<(), Refusal> {
        for (name, id) in [
            ("panel_id", &self.panel_id),
            ("panel_type", &self.panel_type),
        ] {
            if id.is_empty() {
                return Err(invalid(format!("{at}/{name}"), "it must not be empty"));
            }
        }
        let own = [
            ("panel_id", Some(&self.panel_id)),
            ("panel_type", Some(&self.panel_type)),
            ("panel_title", self.panel_title.as_ref()),
        ];
        let own = own
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), text?)));
        let context = self.context.iter().flat_map(PanelContext::texts);
        let context = context.map(|(name, text)| (format!("context/{name}"), text));
        for (name, text) in own.chain(context) {
            if text.len() > TEXT_BYTES_MAX {
                let reported = format!("it has {} bytes; at most {TEXT_BYTES_MAX}", text.len());
                return Err(invalid(format!("{at}/{name}"), reported));
            }
            if text.chars().any(controls_what_is_shown) {
                let reported = "it has control characters; leave them out";
                return Err(invalid(format!("{at}/{name}"), reported));
            }
        }
        let selected = self.context.as_ref().map_or(0, |it| it.selection.len());
        if selected > SELECTION_MAX {
            let reported = format!("at most {SELECTION_MAX} items can be selected");
            return Err(invalid(format!("{at}/context/selection"), reported));
        }
        Ok(())
    }
}

fn invalid(field: impl Into<String>, reported: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::Invalid, reported).at(field)
}

/// Returns whether the tools are offered to an agent: it has a tool that lists items, or its allow
/// list has a pattern specific to them.
#[must_use]
pub fn are_offered<'t>(
    allowlist: Option<&PatternList>,
    tools: impl IntoIterator<Item = &'t ToolDefinition>,
) -> bool {
    let is_named = allowlist.is_some_and(|list| {
        list.0
            .iter()
            .any(|pattern| pattern.starts_with(PANEL_TOOLS))
    });
    is_named || tools.into_iter().any(lists_items)
}

/// The tools, by name.
#[must_use]
pub fn definitions() -> Vec<ToolDefinition> {
    vec![
        tool(
            LIST,
            "Lists the panels that the user's clients show. Use it when none are named to you.",
        ),
        tool(
            SELECTED,
            "Shows which panel the user has selected. Use it when none are named to you.",
        ),
    ]
}

fn tool(name: &str, description: &str) -> ToolDefinition {
    let about = "Whether the item, view and selection of each panel are shown; false without.";
    ToolDefinition::reading(
        name,
        description,
        json!({
            "type": "object",
            "properties": { "includeContext": { "type": "boolean", "description": about } },
            "additionalProperties": false,
        }),
    )
}

/// Checks the arguments of a call; returns whether it requests the context of the panels.
///
/// # Errors
/// The first fault, with the fix.
pub fn include_context(tool: &str, arguments: &Map<String, Value>) -> Result<bool, String> {
    if let Some(unknown) = arguments.keys().find(|name| *name != "includeContext") {
        return Err(format!(
            "`{unknown}` is not an argument of {tool}; there is: includeContext"
        ));
    }
    match arguments.get("includeContext") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(wanted)) => Ok(*wanted),
        Some(_) => Err("`includeContext` must be true or false".to_owned()),
    }
}

/// Returns the result of a call: the panels of some sessions, or the selected ones.
#[must_use]
pub fn result(tool: &str, shown: &[(SessionId, PanelInventory)], with_context: bool) -> Value {
    let only_selected = tool == SELECTED;
    let mut panels = Vec::new();
    for (session, inventory) in shown {
        for panel in &inventory.panels {
            let selected = inventory.selected_panel_id.as_ref() == Some(&panel.panel_id);
            if only_selected && !selected {
                continue;
            }
            let mut reported = json!({
                "panel_id": panel.panel_id,
                "panel_type": panel.panel_type,
                "panel_title": panel.panel_title,
                "selected": selected,
                "session_id": session,
            });
            if let Some(fields) = reported.as_object_mut().filter(|_| with_context) {
                fields.insert("context".to_owned(), json!(panel.context));
            }
            panels.push(reported);
        }
    }
    json!({ "panels": panels })
}

#[cfg(test)]
mod tests {
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
}
