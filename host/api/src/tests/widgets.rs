//! The widgets in the description: a client that knows nothing else can show every question and
//! answer it.

use crate::routes::description;
use domain::tool::ClientAction;
use domain::widget::check;
use domain::widget::document::{WIDGETS, answer, props, skipped_answer};
use serde_json::{Value, json};

fn without_words(mut schema: Value) -> Value {
    schema.as_object_mut().unwrap().remove("description");
    schema
}

/// The schema of an object that may have any fields, as the description says it.
fn opened(mut schema: Value) -> Value {
    crate::openapi::free::add(&mut schema);
    schema
}

#[test]
fn every_widgets_props_and_answer_are_described_and_referred_to() {
    let description = description();
    let schemas = &description["components"]["schemas"];
    let field = "widget_type";
    for question in ["PendingAction", "ClientActionFrame"] {
        let named = |reference: &Value| {
            let name = reference["$ref"]
                .as_str()
                .unwrap()
                .strip_prefix("#/components/schemas/")
                .unwrap();
            schemas[name].clone()
        };
        let variants = schemas[question]["anyOf"].as_array().unwrap();
        let variants: Vec<Value> = variants.iter().map(named).collect();
        assert_eq!(variants.len(), WIDGETS.len() + 1, "{question}");
        for (widget, variant) in WIDGETS.iter().zip(&variants) {
            assert_eq!(variant["properties"][field]["const"], *widget);
            assert!(
                variant["required"]
                    .as_array()
                    .unwrap()
                    .contains(&json!(field)),
                "{question}: what tells the widgets apart is always there"
            );
            let named = |reference: &Value| without_words(named(reference));
            let described = named(&variant["properties"]["props"]);
            assert_eq!(described, opened(props(widget)));
            assert_eq!(named(&variant["x-answer"]), opened(answer(widget)));
        }
        assert_eq!(
            variants[WIDGETS.len()]["properties"][field]["not"]["enum"],
            json!(WIDGETS)
        );
    }
    assert_eq!(
        without_words(schemas["SkippedAnswer"].clone()),
        skipped_answer()
    );
    for answered in ["ClientActionAnswer", "SubmitResponseRequest"] {
        let alternatives = schemas[answered]["properties"]["response"]["anyOf"]
            .as_array()
            .unwrap();
        for name in ["MultipleChoiceAnswer", "FileUploadAnswer", "SkippedAnswer"] {
            assert!(
                alternatives.contains(&json!({ "$ref": format!("#/components/schemas/{name}") })),
                "{answered} {name}"
            );
        }
    }
    let refers = |schema: &Value, name: &str| {
        schema
            .to_string()
            .contains(&format!("\"#/components/schemas/{name}\""))
    };
    assert!(refers(&schemas["Session"], "PendingAction"));
    assert!(refers(
        &schemas["UiState"]["properties"]["active_widget"],
        "PendingAction"
    ));
    let frames = &description["paths"]["/api/agents/{id}/stream"]["get"]["x-events"]["session"];
    assert!(
        refers(&frames["client_action"], "ClientActionFrame"),
        "{frames}"
    );
}

/// A schema without what depends on the props of one question.
fn without_bounds(schema: &Value) -> Value {
    const BOUNDS: [&str; 6] = [
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
    ];
    match schema {
        Value::Object(fields) => {
            let kept = fields
                .iter()
                .filter(|(name, value)| !(BOUNDS.contains(&name.as_str()) && value.is_number()));
            kept.map(|(name, value)| (name.clone(), without_bounds(value)))
                .collect()
        }
        Value::Array(items) => items.iter().map(without_bounds).collect(),
        other => other.clone(),
    }
}

/// The answer that is described for a widget is the one that the host checks, but for its bounds.
#[test]
fn the_described_answer_of_a_widget_is_what_the_host_checks_but_for_its_bounds() {
    for (widget, props) in [
        (
            "multiple_choice",
            json!({ "prompt": "?", "options": ["a", "b"] }),
        ),
        (
            "multi_select",
            json!({ "prompt": "?", "options": ["a", "b", "c"], "max": 2 }),
        ),
        ("free_text", json!({ "prompt": "?", "max_length": 5 })),
        ("code_editor", json!({ "prompt": "?", "max_length": 5 })),
        ("rating_scale", json!({ "prompt": "?", "min": 1, "max": 5 })),
        ("confirmation", json!({ "prompt": "?" })),
        ("approval", json!({ "prompt": "?" })),
        ("form", json!({ "schema": { "type": "object" } })),
        (
            "file_upload",
            json!({ "prompt": "?", "max_bytes": 5, "max_files": 2 }),
        ),
    ] {
        let action = ClientAction {
            widget: widget.to_owned(),
            props,
            response_schema: None,
            lock_input: false,
        };
        let checked = check(&action).unwrap().unwrap();
        assert_eq!(
            without_bounds(&checked),
            without_bounds(&answer(widget)),
            "{widget}"
        );
    }
}
