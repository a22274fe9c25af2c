//! The limits of schemas, one table for each.

mod fuzz;

use super::*;
use serde_json::{Map, json};

fn refused(schema: &Value) -> Unfit {
    check(schema).expect_err("a schema over a limit")
}

/// So many definitions, each of which refers to the next one by this, and the last to nothing.
fn chained(links: usize, by: impl Fn(Value) -> Value) -> Value {
    let name = |link: usize| format!("d{link}");
    let mut definitions: Map<String, Value> = (1..links)
        .map(|link| {
            (
                name(link),
                by(json!({ "$ref": format!("#/$defs/{}", name(link + 1)) })),
            )
        })
        .collect();
    definitions.insert(name(links), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/d1", "$defs": definitions })
}

fn nested(levels: usize, by: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({ "type": "integer" }), |within, _| by(within))
}

#[test]
fn a_schema_as_people_write_them_is_taken() {
    let tree = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/tree", "type": "object",
        "properties": { "name": { "type": "string", "pattern": "^[a-z]+$" }, "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] },
                        "id": { "type": "string" }, "kinds": { "items": { "$ref": "#/$defs/a~1b%20c" } } },
        "patternProperties": { "^x-": true }, "additionalProperties": false, "required": ["name"],
        "$defs": { "a/b \
                    c": { "enum": [1, 2], "default": { "id": "one" } }, "named": { "$anchor": "here" }, "there": { "$ref": "#here" } },
    });
    for schema in [
        json!(true),
        json!({}),
        tree,
        chained(CHAIN_MAX - 1, |next| next),
        chained(900, |next| json!({ "items": next })),
    ] {
        check(&schema).unwrap();
    }
}

#[test]
fn a_chain_of_references_is_as_long_as_it_may_be_and_no_longer() {
    assert_eq!(
        refused(&chained(CHAIN_MAX + 1, |next| next)).problem,
        Problem::Chain
    );
    assert_eq!(
        refused(&chained(CHAIN_MAX + 1, |next| json!({ "not": next }))).problem,
        Problem::Chain
    );
    assert_eq!(
        refused(&chained(
            REFERENCES_MAX + 2,
            |next| json!({ "items": next })
        ))
        .problem,
        Problem::References
    );
    assert_eq!(
        refused(&chained(30_000, |next| next)).problem,
        Problem::Nodes
    );
}

#[test]
fn references_that_double_are_refused_in_the_time_that_it_takes_to_read_them() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (levels, problem) in [(20, Problem::Expanded), (60, Problem::Chain)] {
            let doubling = chained(levels, |next| json!({ keyword: [next.clone(), next] }));
            assert!(doubling.to_string().len() < 5_000);
            assert_eq!(refused(&doubling).problem, problem, "{keyword}");
        }
    }
    let again = nested(
        20,
        |within| json!({ "allOf": [within], "unevaluatedProperties": false }),
    );
    assert_eq!(refused(&again).problem, Problem::Expanded);
}

#[test]
fn a_reference_stays_within_its_schema_and_never_comes_back_to_the_same_value() {
    let at = |place: &str, problem: Problem| Unfit {
        place: place.to_owned(),
        problem,
    };
    for (schema, expected) in [
        (
            json!({ "items": { "$ref": "https://example.com/x" } }),
            at("/items", Problem::Outside),
        ),
        (
            json!({ "properties": { "a\nb": { "$ref": "file:///etc/passwd" } } }),
            at("/properties/a\\nb", Problem::Outside),
        ),
        (json!({ "$dynamicRef": "#x" }), at("", Problem::Outside)),
        (json!({ "$ref": "#/$defs/none" }), at("", Problem::Missing)),
        (
            json!({ "$ref": "#x", "a": { "$anchor": "x" }, "b": { "$anchor": "x" } }),
            at("", Problem::Missing),
        ),
        (
            json!({ "anyOf": [true, { "$ref": "#" }] }),
            at("", Problem::Endless),
        ),
        (
            json!({ "items": { "$ref": "#/items" } }),
            at("/items", Problem::Endless),
        ),
        (
            json!({ "items": { "$id": "x" } }),
            at("/items", Problem::Embedded),
        ),
        (
            json!({ "$ref": "#/a/b", "a": { "$id": "x", "b": {} } }),
            at("", Problem::Embedded),
        ),
        (
            json!({ "pattern": "x".repeat(PATTERN_BYTES_MAX + 1) }),
            at("", Problem::Pattern(PATTERN_BYTES_MAX + 1)),
        ),
        (
            json!({ "$ref": format!("#/{}", "x".repeat(REFERENCE_BYTES_MAX)) }),
            at("", Problem::Reference(REFERENCE_BYTES_MAX + 2)),
        ),
        (json!(3), at("", Problem::Kind)),
    ] {
        assert_eq!(refused(&schema), expected, "{schema}");
    }
}

#[test]
fn what_a_schema_may_hold_is_counted() {
    let bytes = json!({ "description": "x".repeat(SCHEMA_BYTES_MAX) });
    assert!(matches!(refused(&bytes).problem, Problem::Bytes(_)));
    assert_eq!(
        refused(&json!({ "enum": vec![1; SCHEMA_NODES_MAX] })).problem,
        Problem::Nodes
    );
    assert_eq!(
        refused(&nested(SCHEMA_DEPTH_MAX, |within| json!({ "not": within }))).problem,
        Problem::Depth
    );
    let patterns: Map<String, Value> = (0..=PATTERNS_MAX)
        .map(|n| (n.to_string(), json!(true)))
        .collect();
    assert_eq!(
        refused(&json!({ "patternProperties": patterns })).problem,
        Problem::Patterns
    );
}

/// A few kilobytes of what one keyword lists are taken once, and not as often as references repeat
/// them.
#[test]
fn what_a_keyword_lists_is_counted_as_often_as_references_repeat_it() {
    let names: Vec<String> = (0..500).map(|n| format!("n{n}")).collect();
    let by_name = |value: Value| -> Map<String, Value> {
        names
            .iter()
            .map(|name| (name.clone(), value.clone()))
            .collect()
    };
    for listing in [
        json!({ "enum": names }),
        json!({ "enum": [{ "a": { "b": names } }, 1] }),
        json!({ "const": names }),
        json!({ "const": "x".repeat(50_000) }),
        json!({ "required": names }),
        json!({ "dependentRequired": { "a": names } }),
        json!({ "dependencies": { "a": names } }),
        json!({ "properties": by_name(json!(true)) }),
        json!({ "patternProperties": { "x": true }, "properties": by_name(json!({})) }),
        by_name(json!(1)).into(),
    ] {
        // Two hundred definitions lead to it: 100,000 of what it lists, and 600 schemas.
        let repeated = |times: usize| json!({ "allOf": vec![json!({ "$ref": "#/$defs/it" }); times], "$defs": { "it": listing } });
        check(&repeated(10)).unwrap();
        assert_eq!(refused(&repeated(200)).problem, Problem::Expanded);
    }
}

#[test]
fn as_many_literals_as_a_schema_may_hold_are_taken() {
    check(&json!({ "enum": vec![1; SCHEMA_NODES_MAX - 10] })).unwrap();
}

#[test]
fn a_literal_counts_for_each_value_that_is_compared_with_it() {
    let literal = json!([{ "a": vec![1; 100] }, "x".repeat(10_000)]);
    for keyword in ["const", "enum"] {
        let schema = json!({ "items": { keyword: literal } });
        check(&schema).unwrap();
        // The list; for each item the schema, two values, one field, a hundred numbers, and a text
        // that is as long as a hundred values.
        let one = 1 + 2 + 1 + 100 + 100;
        assert_eq!(comparisons(&schema, &json!([1, 2])), Ok(1 + 2 * one));
        assert_eq!(
            comparisons(&schema, &json!(vec![1; 10_000])),
            Err(TooCostly)
        );
    }
}

#[test]
fn names_are_looked_up_in_every_object_and_in_nothing_else() {
    let names: Vec<String> = (0..500).map(|n| format!("n{n}")).collect();
    let objects = json!(vec![json!({}); 3_000]);
    for listing in [
        json!({ "required": names }),
        json!({ "dependentRequired": { "a": names } }),
        json!({ "dependencies": { "a": names } }),
    ] {
        let schema = json!({ "items": listing });
        assert_eq!(comparisons(&schema, &objects), Err(TooCostly), "{schema}");
        assert_eq!(comparisons(&schema, &json!(vec![1; 3_000])), Ok(1 + 3_000));
    }
    let wide: Map<String, Value> = (0..5_000).map(|n| (format!("n{n}"), json!(true))).collect();
    let schema = json!({ "items": { "properties": wide } });
    assert_eq!(comparisons(&schema, &objects), Err(TooCostly));
    assert!(comparisons(&schema, &json!(vec![json!({}); 100])).is_ok());
}

#[test]
fn unique_items_count_by_the_pairs_that_a_hash_does_not_tell_apart() {
    fn list(count: u64, item: fn(u64) -> Value) -> Value {
        (0..count).map(item).collect()
    }
    let unique = json!({ "uniqueItems": true });
    // Texts and usual numbers have hashes of their own.
    assert_eq!(
        comparisons(&unique, &list(100_000, |n| json!(n))),
        Ok(1 + 10_000)
    );
    assert!(comparisons(&unique, &list(100_000, |n| json!(n.to_string()))).is_ok());
    let alike: [fn(u64) -> Value; 3] = [
        |n| json!([n]),
        |n| json!({ "a": n }),
        |n| json!(u64::MAX - n),
    ];
    for item in alike {
        assert!(comparisons(&unique, &list(500, item)).is_ok());
        assert_eq!(comparisons(&unique, &list(5_000, item)), Err(TooCostly));
    }
    // Lists alone are counted, and only where they are to be unique.
    assert_eq!(comparisons(&unique, &json!("x")), Ok(1));
    let any = json!({ "uniqueItems": false });
    assert_eq!(comparisons(&any, &list(5_000, |n| json!([n]))), Ok(1));
}

#[test]
fn what_goes_through_a_text_counts_by_its_length() {
    let text = json!("a".repeat(4 << 20));
    for (keyword, value, at_least) in [
        ("minLength", json!(1), 40_000),
        ("maxLength", json!(1), 40_000),
        ("contentEncoding", json!("base64"), 400_000),
        ("contentMediaType", json!("application/json"), 400_000),
    ] {
        let once = json!({ keyword: value });
        assert!(comparisons(&once, &text).unwrap() > at_least, "{keyword}");
        let often = json!({ "allOf": vec![once; 100] });
        check(&often).unwrap();
        assert_eq!(comparisons(&often, &text), Err(TooCostly), "{keyword}");
    }
}

/// A schema without a keyword about items is not asked for each of them, so counting ends at once.
#[test]
fn many_schemas_without_a_word_about_items_are_counted_in_no_time() {
    let many = json!({ "anyOf": vec![json!({}); 9_000] });
    check(&many).unwrap();
    let began = std::time::Instant::now();
    assert_eq!(comparisons(&many, &json!(vec![1; 300_000])), Ok(1 + 9_000));
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    let inspected_again = json!({ "unevaluatedItems": true, "anyOf": vec![json!({}); 100] });
    assert_eq!(
        comparisons(&inspected_again, &json!(vec![1; 10_000])),
        Err(TooCostly)
    );
}

#[test]
fn a_document_is_compared_as_often_as_its_schema_says() {
    let list = json!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, { "enum": [1, 2, 3] }] } });
    // The list; for each item the schema, both branches, and the three values of one.
    assert_eq!(comparisons(&list, &json!([1, 2])), Ok(1 + 2 * 6));
    assert_eq!(comparisons(&list, &json!("x")), Ok(1));
    let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } });
    let leaves = json!({ "left": { "left": 1, "right": 2 }, "right": 3 });
    assert_eq!(comparisons(&tree, &leaves), Ok(1 + 4 * 2));
}

#[test]
fn a_short_pattern_of_many_states_is_refused_and_those_that_people_write_are_not() {
    for pattern in [
        r"^[A-Za-z0-9_.+-]+@[a-z0-9-]+\.[a-z0-9.-]+$",
        r"^\w{1,64}$",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$",
        r"^\p{L}{1,20}$",
    ] {
        check(&json!({ "pattern": pattern })).unwrap();
    }
    let many = json!({ "pattern": "[ab]*a([ab]{200}){250}c" });
    assert!(
        matches!(refused(&many).problem, Problem::PatternStates(states) if states > 50_000),
        "{many}"
    );
    let together: Map<String, Value> = (0..8)
        .map(|n| (format!("x{{9000}}{n}"), json!(true)))
        .collect();
    assert!(matches!(
        refused(&json!({ "patternProperties": together })).problem,
        Problem::PatternStates(_)
    ));
}

#[test]
fn a_match_counts_as_much_as_its_pattern_and_its_text_come_to() {
    let costly =
        json!({ "pattern": "[ab]*a[ab]{8000}c", "propertyNames": { "pattern": "[ab]{100}c" } });
    check(&costly).unwrap();
    assert_eq!(
        comparisons(&costly, &json!("a".repeat(64 << 10))),
        Err(TooCostly)
    );
    assert!(comparisons(&costly, &json!("a".repeat(100))).unwrap() > 8_000);
    let name = "a".repeat(1_000);
    assert!(comparisons(&costly, &json!({ name: 1 })).unwrap() > 1_000);
    let simple = json!({ "pattern": "^[A-Za-z0-9+/]*=*$" });
    assert!(comparisons(&simple, &json!("a".repeat(4 << 20))).is_ok());
}

#[test]
fn a_reference_is_resolved_once_however_often_it_is_followed() {
    const LEVELS: usize = 25;
    let name = "n".repeat(15);
    let deep = (0..LEVELS).fold(
        json!({ "type": "integer" }),
        |within, _| json!({ "properties": { &name: within } }),
    );
    let reference = format!("#/$defs/x{}", format!("/properties/{name}").repeat(LEVELS));
    let schema = json!({ "$defs": { "x": deep }, "items": { "$ref": reference } });
    check(&schema).unwrap();
    assert_eq!(
        comparisons(&schema, &json!(vec![1; 100_000])),
        Ok(1 + 2 * 100_000)
    );
}

/// A schema that doubles with every level of its document is refused for deep ones only.
#[test]
fn a_schema_that_doubles_with_every_level_is_refused_for_deep_documents_only() {
    let doubling = json!({ "allOf": [{ "properties": { "a": { "$ref": "#" } } }, { "properties": { "a": { "$ref": "#" } } }] });
    check(&doubling).unwrap();
    let deep = |levels: usize| (0..levels).fold(json!(1), |within, _| json!({ "a": within }));
    assert!(comparisons(&doubling, &deep(8)).is_ok());
    assert_eq!(comparisons(&doubling, &deep(60)), Err(TooCostly));
}
