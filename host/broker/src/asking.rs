//! Questions to the client: checks of what a widget shows, and the schema that every answer must
//! fit.

use crate::schemas::Schemas;
use domain::tool::ClientAction;
use domain::widget;

/// Returns the question with the schema of its answer: its own, or that of its widget.
///
/// # Errors
/// The fault that the guest has to mend, in its own terms.
pub(crate) async fn ready(
    schemas: &Schemas,
    action: &ClientAction,
) -> Result<ClientAction, String> {
    if action.widget.is_empty() {
        return Err("client: the widget has no name".to_owned());
    }
    if action.widget == domain::approval::WIDGET {
        return Err(format!(
            "client: the widget `{}` is the host's own",
            action.widget
        ));
    }
    let of_widget = widget::check(action).map_err(|complaint| format!("client: {complaint}"))?;
    let response_schema = action.response_schema.clone().or(of_widget);
    if let Some(schema) = &response_schema {
        let unfit = |error| {
            format!("client: the response schema is not a JSON Schema that can be used: {error}")
        };
        schemas.compile(schema).await.map_err(unfit)?;
    }
    Ok(ClientAction {
        response_schema,
        ..action.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::widget::document::{WIDGETS, answer, props};
    use serde_json::{Value, json};

    /// Returns props of widgets, each with whether the host takes them: only faults that a schema
    /// can name.
    fn shown() -> Vec<(&'static str, Value, bool)> {
        let many: Vec<String> = (0..101).map(|option| option.to_string()).collect();
        vec![
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": ["a", "b"] }),
                true,
            ),
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": ["a"] }),
                false,
            ),
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": many }),
                false,
            ),
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": ["a", 2] }),
                false,
            ),
            ("multiple_choice", json!({ "options": ["a", "b"] }), false),
            (
                "multi_select",
                json!({ "prompt": "?", "options": ["a", "b"], "min": 0, "max": 2 }),
                true,
            ),
            (
                "multi_select",
                json!({ "prompt": "?", "options": ["a", "b"], "min": null }),
                true,
            ),
            (
                "multi_select",
                json!({ "prompt": "?", "options": ["a", "b"], "max": 0 }),
                false,
            ),
            (
                "free_text",
                json!({ "prompt": "?", "min_length": 0, "max_length": 9, "multiline": false, "placeholder": "" }),
                true,
            ),
            (
                "free_text",
                json!({ "prompt": "?", "max_length": 131_073 }),
                false,
            ),
            (
                "free_text",
                json!({ "prompt": "?", "multiline": "yes" }),
                false,
            ),
            ("free_text", json!({ "prompt": "" }), false),
            ("free_text", json!({ "prompt": "x".repeat(8_193) }), false),
            ("free_text", json!({ "prompt": "?", "own": [1] }), true),
            (
                "code_editor",
                json!({ "prompt": "?", "language": "rust", "initial_code": "", "max_length": 100 }),
                true,
            ),
            (
                "code_editor",
                json!({ "prompt": "?", "language": "" }),
                false,
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1, "max": 5, "labels": { "1": "bad" } }),
                true,
            ),
            ("rating_scale", json!({ "prompt": "?", "min": 1 }), false),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1, "max": 5, "labels": ["x"] }),
                false,
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1.5, "max": 5 }),
                false,
            ),
            (
                "confirmation",
                json!({ "prompt": "?", "confirm_label": "Go", "skippable": true }),
                true,
            ),
            (
                "confirmation",
                json!({ "prompt": "?", "cancel_label": "" }),
                false,
            ),
            (
                "confirmation",
                json!({ "prompt": "?", "skippable": 1 }),
                false,
            ),
            (
                "approval",
                json!({ "prompt": "?", "details": [{ "x": 1 }] }),
                true,
            ),
            ("approval", json!({}), false),
            ("form", json!({ "schema": { "type": "object" } }), true),
            (
                "form",
                json!({ "prompt": "?", "schema": { "type": "array" } }),
                false,
            ),
            ("form", json!({ "prompt": "?" }), false),
            (
                "file_upload",
                json!({ "prompt": "?", "accept": ["text/plain", "image/*", "*/*"], "max_bytes": 10_485_760, "max_files": 10 }),
                true,
            ),
            (
                "file_upload",
                json!({ "prompt": "?", "accept": ["text"] }),
                false,
            ),
            ("file_upload", json!({ "prompt": "?", "accept": [] }), false),
            (
                "file_upload",
                json!({ "prompt": "?", "max_bytes": 10_485_761 }),
                false,
            ),
            (
                "file_upload",
                json!({ "prompt": "?", "max_files": 11 }),
                false,
            ),
        ]
    }

    #[tokio::test]
    async fn a_documented_widget_takes_what_the_host_takes_and_nothing_else() {
        for widget in WIDGETS {
            assert!(
                shown().iter().any(|(of, _, fits)| *of == widget && *fits),
                "{widget}"
            );
        }
        for (widget, shown, fits) in shown() {
            let action = ClientAction {
                widget: widget.to_owned(),
                props: shown.clone(),
                response_schema: None,
                lock_input: false,
            };
            let documented = jsonschema::validator_for(&props(widget)).unwrap();
            assert_eq!(
                (
                    documented.is_valid(&shown),
                    ready(&Schemas::default(), &action).await.is_ok()
                ),
                (fits, fits),
                "{widget} {shown}"
            );
        }
    }

    #[tokio::test]
    async fn what_fits_the_answer_of_a_question_fits_the_documented_one() {
        let digest = format!("sha256:{}", "ab".repeat(32));
        let small =
            json!({ "name": "x.txt", "media_type": "text/plain", "content_base64": "eA==" });
        for (widget, shown, given) in [
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": ["a", "b"] }),
                json!({ "index": 1, "selection": "b" }),
            ),
            (
                "multi_select",
                json!({ "prompt": "?", "options": ["a", "b"] }),
                json!({ "indices": [0, 1] }),
            ),
            (
                "free_text",
                json!({ "prompt": "?" }),
                json!({ "text": "words" }),
            ),
            (
                "code_editor",
                json!({ "prompt": "?" }),
                json!({ "code": "1" }),
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1, "max": 5 }),
                json!({ "rating": 5 }),
            ),
            (
                "confirmation",
                json!({ "prompt": "?" }),
                json!({ "confirmed": false }),
            ),
            (
                "approval",
                json!({ "prompt": "?" }),
                json!({ "approved": true, "comment": "fine" }),
            ),
            (
                "form",
                json!({ "schema": { "type": "object", "required": ["a"] } }),
                json!({ "a": 1 }),
            ),
            (
                "file_upload",
                json!({ "prompt": "?", "max_files": 2 }),
                json!({ "files": [{ "digest": digest }, small] }),
            ),
        ] {
            let action = ClientAction {
                widget: widget.to_owned(),
                props: shown,
                response_schema: None,
                lock_input: false,
            };
            let schema = ready(&Schemas::default(), &action)
                .await
                .unwrap()
                .response_schema
                .unwrap();
            for schema in [schema, answer(widget)] {
                let validator = jsonschema::validator_for(&schema).unwrap();
                assert!(
                    validator.is_valid(&given) && !validator.is_valid(&json!([])),
                    "{widget} {schema}"
                );
            }
        }
    }
}
