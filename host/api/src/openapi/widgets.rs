//! The widgets in the description: their properties and their answers, referred to by every
//! question and every answer.

use super::reference;
use domain::widget::document::{WIDGETS, answer, props, skipped_answer};
use serde_json::{Map, Value, json};

/// The location of the schemas in a description.
const SCHEMAS: &str = "/components/schemas";
/// The objects that ask a question.
const QUESTIONS: [&str; 2] = ["PendingAction", "ClientActionFrame"];
/// The field of a question that names the widget.
const WIDGET_TYPE: &str = "widget_type";
/// The objects that answer one.
const ANSWERS: [&str; 2] = ["ClientActionAnswer", "SubmitResponseRequest"];
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
    for question in QUESTIONS {
        if let Some(schema) = schemas.remove(question) {
            divide(schemas, &Question { question, schema });
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

fn described(mut schema: Value, description: &str) -> Value {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), description.into());
    }
    schema
}

/// An object that asks a question.
struct Question {
    /// The name of its schema.
    question: &'static str,
    /// Its schema, for every widget alike.
    schema: Value,
}

/// Adds a schema of a question for each widget, and one for widgets of the client's own. Exactly
/// one of them fits any question. Each is complete: generators read a composed one in many ways.
fn divide(schemas: &mut Map<String, Value>, it: &Question) {
    let mut alternatives = Vec::new();
    for widget in WIDGETS {
        let mut schema = it.schema.clone();
        if let Some(schema) = schema.as_object_mut() {
            // What it is answered with, which no part of the question itself is.
            schema.insert("x-answer".to_owned(), reference(&name(widget, "Answer")));
        }
        it.set(
            &mut schema,
            WIDGET_TYPE,
            json!({ "type": "string", "const": widget }),
        );
        it.set(&mut schema, "props", reference(&name(widget, "Props")));
        alternatives.push((name(widget, it.question), schema));
    }
    let mut own = it.schema.clone();
    it.set(
        &mut own,
        WIDGET_TYPE,
        json!({ "type": "string", "not": { "enum": WIDGETS } }),
    );
    alternatives.push((format!("Other{}", it.question), own));
    let references: Vec<Value> = alternatives
        .iter()
        .map(|(name, _)| reference(name))
        .collect();
    let mut any = Map::from_iter([("anyOf".to_owned(), references.into())]);
    if let Some(about) = it.schema.get("description") {
        any.insert("description".to_owned(), about.clone());
    }
    schemas.insert(it.question.to_owned(), any.into());
    schemas.extend(alternatives);
}

impl Question {
    /// Sets the schema of a field, and keeps its description.
    fn set(&self, schema: &mut Value, field: &str, mut described: Value) {
        let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
            return;
        };
        let before = properties.get(field).and_then(|it| it.get("description"));
        if let (Some(before), Some(described)) = (before.cloned(), described.as_object_mut()) {
            described.insert("description".to_owned(), before);
        }
        properties.insert(field.to_owned(), described);
    }
}

fn any_answer() -> Value {
    let known = WIDGETS
        .iter()
        .map(|widget| reference(&name(widget, "Answer")));
    let own = Value::Object(Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("additionalProperties".to_owned(), json!(true)),
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
