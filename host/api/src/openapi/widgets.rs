//! The widgets in the description: their properties and their answers, referred to by every
//! question and every answer.

use domain::widget::document::{WIDGETS, answer, props, skipped_answer};
use serde_json::{Map, Value, json};

/// The location of the schemas in a description.
const SCHEMAS: &str = "/components/schemas";
/// The objects that ask a question, and what in each names the widget.
const QUESTIONS: [(&str, &str); 3] = [
    ("ClientAction", "widget"),
    ("PendingAction", "widget_type"),
    ("ClientActionFrame", "widget_type"),
];
/// The objects that answer one.
const ANSWERS: [&str; 2] = ["Response", "SubmitResponseRequest"];
/// The schema of the answer that passes on a question.
const SKIPPED: &str = "SkippedAnswer";

/// Adds the schemas of all widgets, and refers to them where they apply.
pub(crate) fn add(description: &mut Value) {
    let Some(schemas) = description
        .pointer_mut(SCHEMAS)
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for widget in WIDGETS {
        schemas.insert(
            name(widget, "Props"),
            described(
                props(widget),
                &format!("The properties that the widget `{widget}` shows."),
            ),
        );
        let description = format!(
            "An answer to the widget `{widget}`. The `response_schema` of a question has \
                     the bounds that hold for it."
        );
        schemas.insert(
            name(widget, "Answer"),
            described(answer(widget), &description),
        );
    }
    schemas.insert(
        SKIPPED.to_owned(),
        described(
            skipped_answer(),
            "An answer to any question whose props have `skippable` as true.",
        ),
    );
    for (question, field) in QUESTIONS {
        if let Some(schema) = schemas.get_mut(question).and_then(Value::as_object_mut) {
            schema.insert("oneOf".to_owned(), of_each_widget(field));
        }
    }
    for answered in ANSWERS {
        let response = schemas
            .get_mut(answered)
            .and_then(|schema| schema.pointer_mut("/properties/response"));
        if let Some(response) = response.and_then(Value::as_object_mut) {
            response.remove("type");
            response.insert("anyOf".to_owned(), any_answer());
        }
    }
}

/// `MultipleChoiceProps` for `multiple_choice`.
fn name(widget: &str, what: &str) -> String {
    let capital = |word: &str| {
        word.chars()
            .next()
            .map(|first| first.to_ascii_uppercase().to_string() + word.get(1..).unwrap_or_default())
    };
    widget
        .split('_')
        .filter_map(capital)
        .chain([what.to_owned()])
        .collect()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn described(mut schema: Value, description: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), description.into());
    }
    schema
}

/// Returns one alternative for each widget, and one for widgets of the client's own. Exactly one of
/// them fits any question.
fn of_each_widget(field: &str) -> Value {
    let known = WIDGETS.iter().map(|widget| {
        json!({
            "title": widget, "type": "object",
            "properties": {
                field: { "const": widget },
                "props": reference(&name(widget, "Props")),
            },
            // What it is answered with, which no part of the question itself is.
            "x-answer": reference(&name(widget, "Answer")),
        })
    });
    let own = json!({
        "title": "a widget of the client's own",
        "type": "object",
        "properties": { field: { "not": { "enum": WIDGETS } } },
    });
    known.chain([own]).collect()
}

fn any_answer() -> Value {
    let known = WIDGETS
        .iter()
        .map(|widget| reference(&name(widget, "Answer")));
    let own = Value::Object(Map::from_iter([
        ("type".to_owned(), json!("object")),
        (
            "description".to_owned(),
            json!(
                "An answer to a widget of the client's own, or to a question with a schema of \
                   the agent's own."
            ),
        ),
    ]));
    known.chain([reference(SKIPPED), own]).collect()
}
