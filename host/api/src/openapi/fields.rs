//! A walk over the described schemas, field by field, and over the parameters of operations.

use serde_json::{Map, Value};

/// The keys under which a schema is composed of others.
const COMPOSED: [&str; 3] = ["allOf", "oneOf", "anyOf"];

/// Returns the named schemas of a description.
pub(super) fn schemas(description: &mut Value) -> Option<&mut Map<String, Value>> {
    description
        .pointer_mut("/components/schemas")
        .and_then(Value::as_object_mut)
}

/// Calls a function with each field of each named schema: the name, the field, and its schema.
pub(super) fn for_each_field(
    description: &mut Value,
    mut visit: impl FnMut(&str, &str, &mut Value),
) {
    for (name, schema) in schemas(description).into_iter().flatten() {
        for_each_field_of(name, schema, &mut visit);
    }
}

fn for_each_field_of(
    name: &str,
    schema: &mut Value,
    visit: &mut impl FnMut(&str, &str, &mut Value),
) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (field, schema) in properties.into_iter().flatten() {
        visit(name, field, schema);
    }
    for key in COMPOSED {
        let parts = schema.get_mut(key).and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            for_each_field_of(name, part, visit);
        }
    }
}

/// Calls a function with each parameter: the id of its operation, its name, and its schema.
pub(super) fn for_each_parameter(
    description: &mut Value,
    mut visit: impl FnMut(&str, &str, &mut Value),
) {
    let paths = description.get_mut("paths").and_then(Value::as_object_mut);
    let items = paths.into_iter().flatten();
    let operations = items
        .filter_map(|(_, item)| item.as_object_mut())
        .flat_map(|item| item.values_mut());
    for operation in operations {
        let id = operation
            .get("operationId")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let parameters = operation
            .get_mut("parameters")
            .and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            let name = parameter
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            if let Some(schema) = parameter.get_mut("schema") {
                visit(&id, &name, schema);
            }
        }
    }
}

/// Returns the schema of the text that a field has, or a list in it; none if it has another type,
/// or texts of a closed list already.
pub(super) fn text(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    if schema.get("items").is_some() {
        return schema.get_mut("items").and_then(text);
    }
    let is_text = match schema.get("type") {
        Some(Value::String(kind)) => kind == "string",
        Some(Value::Array(kinds)) => {
            kinds.iter().any(|kind| kind == "string") && !kinds.iter().any(|kind| kind == "number")
        }
        _ => false,
    };
    let is_closed = ["enum", "const", "not"]
        .iter()
        .any(|key| schema.get(*key).is_some());
    schema.as_object_mut().filter(|_| is_text && !is_closed)
}
