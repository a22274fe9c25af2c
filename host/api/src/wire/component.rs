//! Components in public form.

use broker::Entry;
use domain::grant::Grant;
use serde::Serialize;
use serde_json::Value;

/// A component that is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Component)]
pub struct ComponentView {
    /// The operator's name for it.
    pub name: String,
    /// The digest of its bytes.
    pub digest: String,
    /// Its size in bytes, uncompiled.
    pub size_bytes: u64,
    /// The component's own description. `kind` is `agent` or `tools`; `description` is what an
    /// agent says of itself, or the tools with the JSON Schema of their arguments.
    #[schema(value_type = Object)]
    pub describes: Value,
    /// The interfaces that it imports, granted or not.
    pub imports: Vec<String>,
    /// The grant that the operator gives it, as the configuration writes it.
    #[schema(value_type = Object)]
    pub grant: Grant,
}

/// A component under its name.
#[must_use]
pub fn component(entry: &Entry) -> ComponentView {
    let component = &entry.component;
    ComponentView {
        name: entry.name.clone(),
        digest: component.digest().reference(),
        size_bytes: component.size_bytes(),
        // Records of text and numbers always have a JSON form.
        describes: serde_json::to_value(component.describes()).unwrap_or_default(),
        imports: component.imports().to_vec(),
        grant: entry.grant.clone(),
    }
}
