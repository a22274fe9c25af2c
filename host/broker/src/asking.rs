//! Questions to the client: checks of a widget's content, and the schema that every answer must
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

    /// Props of widgets that the host takes.
    const TAKEN: &str = r#"[
        ["multiple_choice", { "prompt": "?", "options": ["a", "b"] }],
        ["multi_select", { "prompt": "?", "options": ["a", "b"], "min": 0, "max": 2 }],
        ["multi_select", { "prompt": "?", "options": ["a", "b"], "min": null }],
        ["free_text", { "prompt": "?", "min_length": 0, "max_length": 9, "placeholder": "" }],
        ["free_text", { "prompt": "?", "multiline": false }],
        ["free_text", { "prompt": "?", "own": [1] }],
        ["code_editor", { "prompt": "?", "language": "rust", "initial_code": "" }],
        ["code_editor", { "prompt": "?", "max_length": 100 }],
        ["rating_scale", { "prompt": "?", "min": 1, "max": 5, "labels": { "1": "bad" } }],
        ["confirmation", { "prompt": "?", "confirm_label": "Go", "skippable": true }],
        ["approval", { "prompt": "?", "details": [{ "x": 1 }] }],
        ["form", { "schema": { "type": "object" } }],
        ["file_upload", { "prompt": "?", "accept": ["text/plain", "image/*", "*/*"] }],
        ["file_upload", { "prompt": "?", "max_bytes": 10485760, "max_files": 10 }]
    ]"#;

    /// Props of widgets that the host refuses, for faults that a schema can name.
    const REFUSED: &str = r#"[
        ["multiple_choice", { "prompt": "?", "options": ["a"] }],
        ["multiple_choice", { "prompt": "?", "options": ["a", 2] }],
        ["multiple_choice", { "options": ["a", "b"] }],
        ["multi_select", { "prompt": "?", "options": ["a", "b"], "max": 0 }],
        ["free_text", { "prompt": "?", "max_length": 131073 }],
        ["free_text", { "prompt": "?", "multiline": "yes" }],
        ["free_text", { "prompt": "" }],
        ["code_editor", { "prompt": "?", "language": "" }],
        ["rating_scale", { "prompt": "?", "min": 1 }],
        ["rating_scale", { "prompt": "?", "min": 1, "max": 5, "labels": ["x"] }],
        ["rating_scale", { "prompt": "?", "min": 1.5, "max": 5 }],
        ["confirmation", { "prompt": "?", "cancel_label": "" }],
        ["confirmation", { "prompt": "?", "skippable": 1 }],
        ["approval", {}],
        ["form", { "prompt": "?", "schema": { "type": "array" } }],
        ["form", { "prompt": "?" }],
        ["file_upload", { "prompt": "?", "accept": ["text"] }],
        ["file_upload", { "prompt": "?", "accept": [] }],
        ["file_upload", { "prompt": "?", "max_bytes": 10485761 }],
        ["file_upload", { "prompt": "?", "max_files": 11 }]
    ]"#;

    /// Widgets with props and with an answer that fits them.
    const ANSWERED: &str = r#"[
        ["multiple_choice", { "prompt": "?", "options": ["a", "b"] },
            { "index": 1, "selection": "b" }],
        ["multi_select", { "prompt": "?", "options": ["a", "b"] }, { "indices": [0, 1] }],
        ["free_text", { "prompt": "?" }, { "text": "words" }],
        ["code_editor", { "prompt": "?" }, { "code": "1" }],
        ["rating_scale", { "prompt": "?", "min": 1, "max": 5 }, { "rating": 5 }],
        ["confirmation", { "prompt": "?" }, { "confirmed": false }],
        ["approval", { "prompt": "?" }, { "approved": true, "comment": "fine" }],
        ["form", { "schema": { "type": "object", "required": ["a"] } }, { "a": 1 }]
    ]"#;

    fn action(widget: &str, props: Value) -> ClientAction {
        ClientAction {
            widget: widget.to_owned(),
            props,
            response_schema: None,
            lock_input: false,
        }
    }

    async fn assert_same_judgement(widget: &str, shown: Value, fits: bool) {
        let documented = jsonschema::validator_for(&props(widget)).unwrap();
        let is_documented = documented.is_valid(&shown);
        let action = action(widget, shown);
        let is_taken = ready(&Schemas::default(), &action).await.is_ok();
        assert_eq!(
            (is_documented, is_taken),
            (fits, fits),
            "{widget} {}",
            action.props
        );
    }

    #[tokio::test]
    async fn a_documented_widget_takes_what_the_host_takes_and_nothing_else() {
        let taken: Vec<(String, Value)> = serde_json::from_str(TAKEN).unwrap();
        for widget in WIDGETS {
            assert!(taken.iter().any(|(name, _)| name == widget), "{widget}");
        }
        for (widget, shown) in taken {
            assert_same_judgement(&widget, shown, true).await;
        }
        let refused: Vec<(String, Value)> = serde_json::from_str(REFUSED).unwrap();
        for (widget, shown) in refused {
            assert_same_judgement(&widget, shown, false).await;
        }
        let many: Vec<String> = (0..101).map(|option| option.to_string()).collect();
        let too_many = json!({ "prompt": "?", "options": many });
        assert_same_judgement("multiple_choice", too_many, false).await;
        let too_long = json!({ "prompt": "x".repeat(8_193) });
        assert_same_judgement("free_text", too_long, false).await;
    }

    #[tokio::test]
    async fn what_fits_the_answer_of_a_question_fits_the_documented_one() {
        let mut answered: Vec<(String, Value, Value)> = serde_json::from_str(ANSWERED).unwrap();
        let digest = format!("sha256:{}", "ab".repeat(32));
        let small =
            json!({ "name": "x.txt", "media_type": "text/plain", "content_base64": "eA==" });
        answered.push((
            "file_upload".to_owned(),
            json!({ "prompt": "?", "max_files": 2 }),
            json!({ "files": [{ "digest": digest }, small] }),
        ));
        for (widget, shown, given) in answered {
            let schema = ready(&Schemas::default(), &action(&widget, shown))
                .await
                .unwrap()
                .response_schema
                .unwrap();
            for schema in [schema, answer(&widget)] {
                let validator = jsonschema::validator_for(&schema).unwrap();
                assert!(
                    validator.is_valid(&given) && !validator.is_valid(&json!([])),
                    "{widget} {schema}"
                );
            }
        }
    }
}
