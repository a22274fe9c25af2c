//! Components in public form.

use super::ContentDigest;
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
    pub digest: ContentDigest,
    /// The code that was admitted under this name before, if the present code took its place and
    /// no digest in the configuration says that it is meant. In the list of a running host only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Its size in bytes, uncompiled.
    pub size_bytes: u64,
    /// The component's own description. `kind` is `agent` or `tools`; `description` is what an
    /// agent says of itself, or the tools with the JSON Schema of their arguments.
    #[schema(value_type = Object)]
    pub describes: Value,
    /// The manifest that its author put into it: version, authors, licence, homepage, and the
    /// grants that it would like. None without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub manifest: Option<Value>,
    /// The reason why its manifest is not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_fault: Option<String>,
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
    let manifest = component.manifest();
    ComponentView {
        name: entry.name.clone(),
        digest: ContentDigest(component.digest()),
        replaces: None,
        size_bytes: component.size_bytes(),
        // Records of text and numbers always have a JSON form.
        describes: serde_json::to_value(component.describes()).unwrap_or_default(),
        manifest: manifest
            .and_then(Result::ok)
            .and_then(|manifest| serde_json::to_value(manifest).ok()),
        manifest_fault: manifest.and_then(Result::err).map(ToString::to_string),
        imports: component.imports().to_vec(),
        grant: entry.grant.clone(),
    }
}
