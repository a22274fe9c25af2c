//! Questions to the client, made ready: what the widget shows is checked, and every answer has a schema that it must fit.

use crate::outfit::schema_error;
use domain::tool::ClientAction;
use domain::widget;

/// The question with the schema of its answer: its own, or that of its widget.
///
/// # Errors
/// What the guest has to mend, in its own terms.
pub(crate) fn ready(action: &ClientAction) -> Result<ClientAction, String> {
    if action.widget.is_empty() {
        return Err("client: the widget has no name".to_owned());
    }
    let of_widget = widget::check(action).map_err(|complaint| format!("client: {complaint}"))?;
    let response_schema = action.response_schema.clone().or(of_widget);
    if let Some(error) = response_schema.as_ref().and_then(schema_error) {
        return Err(format!("client: the response schema is not a JSON Schema: {error}"));
    }
    Ok(ClientAction { response_schema, ..action.clone() })
}
