//! Fuzz target: whatever a schema is made of, looking at it ends, and what is taken can be counted
//! with any document.

use super::super::*;
use serde_json::{Map, Number, json};

const KEYWORDS: [&str; 19] = [
    "$ref",
    "allOf",
    "anyOf",
    "not",
    "if",
    "items",
    "properties",
    "$defs",
    "patternProperties",
    "unevaluatedProperties",
    "dependencies",
    "$anchor",
    "$id",
    "enum",
    "contains",
    "pattern",
    "const",
    "required",
    "uniqueItems",
];
const TEXTS: [&str; 8] = [
    "#",
    "#/$defs/a",
    "#/$defs/$ref",
    "#x",
    "x",
    "#/items",
    "https://example.com",
    "#/allOf/0",
];
/// Levels of what is made.
const LEVELS_MAX: usize = 6;
/// Comparisons that a schema and a document of this size may come to without being over a limit.
const PARTS_MAX: usize = 64;

/// A value that the bytes spell.
fn value(bytes: &mut std::slice::Iter<'_, u8>, level: usize) -> Value {
    let Some(kind) = bytes.next() else {
        return json!(true);
    };
    let count = usize::from(kind >> 5);
    match kind % 8 {
        0 => json!(kind % 16 < 8),
        1 => Value::Number(Number::from(*kind)),
        2 | 3 => json!(TEXTS.get(count)),
        4 if level < LEVELS_MAX => (0..count).map(|_| value(bytes, level + 1)).collect(),
        _ if level < LEVELS_MAX => {
            let field = |bytes: &mut std::slice::Iter<'_, u8>| {
                let name = KEYWORDS.get(usize::from(*bytes.next()?) % KEYWORDS.len())?;
                Some(((*name).to_owned(), value(bytes, level + 1)))
            };
            Value::Object(
                (0..count)
                    .map_while(|_| field(bytes))
                    .collect::<Map<_, _>>(),
            )
        }
        _ => json!({}),
    }
}

#[test]
fn any_schema_is_taken_or_refused_and_any_document_counted() {
    bolero::check!()
        .with_type::<(Vec<u8>, Vec<u8>)>()
        .for_each(|(schema, document)| {
            let mut schema = schema.iter();
            let mut document = document.iter();
            let schema = value(&mut schema, 0);
            let document = value(&mut document, 0);
            if let Err(unfit) = check(&schema) {
                assert!(unfit.place.len() < PARTS_MAX * SHOWN_CHARS_MAX, "{unfit}");
                return;
            }
            if let Ok(count) = comparisons(&schema, &document) {
                assert!((1..=COMPARISONS_MAX).contains(&count));
            }
        });
}
