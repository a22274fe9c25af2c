//! Triggers in the description, as the configuration writes them: its schema is that of the
//! configuration's file.

use super::fields::schemas;
use domain::trigger::TriggerSpec;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The name of the schema, which [`crate::wire::TriggerSpecShape`] holds the place of.
const NAME: &str = "TriggerSpec";

/// Adds the schema of a trigger to a description.
pub(super) fn add(description: &mut Value) {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let schema = settings
        .into_generator()
        .into_root_schema_for::<TriggerSpec>();
    if let Some(schemas) = schemas(description) {
        schemas.insert(NAME.to_owned(), schema.to_value());
    }
}
