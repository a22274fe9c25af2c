//! Schemas before and after.

use super::*;

/// Returns what is sent of the only property of a tool's arguments, which may be left out.
fn property(schema: &Value) -> Value {
    of_tool(&json!({"type": "object", "properties": {"p": schema}}))["properties"]["p"].clone()
}

#[test]
fn arguments_are_an_object_with_properties_whatever_the_tool_says() {
    let none = json!({"type": "object", "properties": {}});
    for schema in [
        json!({}),
        json!(true),
        json!({"type": "object"}),
        json!({"type": "object", "required": []}),
    ] {
        assert_eq!(of_tool(&schema), none, "{schema}");
    }
    assert_eq!(
        of_tool(&json!({"type": "object", "additionalProperties": false, "$schema": "x"})),
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    );
    let either = json!({"oneOf": [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
    ]});
    assert_eq!(
        of_tool(&either),
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}})
    );
}

#[test]
fn what_grammars_and_servers_refuse_is_left_out() {
    for (given, sent) in [
        (
            json!({"type": "string", "maxLength": 2000}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "maxLength": 1999}),
            json!({"type": "string", "maxLength": 1999}),
        ),
        (
            json!({"type": "string", "minLength": 5000.0}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "array", "maxItems": 4096}),
            json!({"type": "array", "items": {}}),
        ),
        (
            json!({"type": "integer", "format": "uint32", "minimum": 0}),
            json!({"type": "integer", "minimum": 0}),
        ),
        (
            json!({"type": "integer", "maximum": u64::MAX}),
            json!({"type": "integer"}),
        ),
        (
            json!({"type": "integer", "exclusiveMinimum": 0}),
            json!({"type": "integer", "minimum": 1}),
        ),
        (
            json!({"type": "string", "format": "uri"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "format": "date-time"}),
        ),
        (
            json!({"type": "string", "pattern": "^[a-z]{1,3000}$"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "pattern": "abc"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "pattern": "^(?!x).*$"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "pattern": "^[a-z]{1,8}$"}),
            json!({"type": "string", "pattern": "^[a-z]{1,8}$"}),
        ),
        (
            json!({"const": "a"}),
            json!({"type": "string", "enum": ["a"]}),
        ),
        (
            json!({"type": "integer", "description": "A level.", "enum": [0, 1]}),
            json!({"type": "integer", "description": "A level. One of: 0, 1."}),
        ),
        (
            json!({"type": "string", "enum": ["", "a"]}),
            json!({"type": "string", "enum": ["a"]}),
        ),
        (
            json!({"type": "string", "enum": [""]}),
            json!({"type": "string"}),
        ),
        (json!({"type": []}), json!({})),
        (json!({"type": "any"}), json!({})),
        (json!({"type": "FLOAT"}), json!({"type": "number"})),
        (
            json!({"type": "integer", "enum": ["1", "2"]}),
            json!({"type": "integer", "description": "One of: \"1\", \"2\"."}),
        ),
        (
            json!({"type": "string", "enum": ["a", "a", "b"]}),
            json!({"type": "string", "enum": ["a", "b"]}),
        ),
        (
            json!({"type": "string", "pattern": "^[a$"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        (
            json!({"type": "object", "additionalProperties": {}}),
            json!({"type": "object", "properties": {}}),
        ),
        (
            json!({"anyOf": [{"not": {}}, {"type": "string"}]}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"type": "object", "properties": {}}),
        ),
        (
            json!({"description": "A level.", "default": 1, "type": ["string", "integer"]}),
            json!({"anyOf": [
                {"type": "string", "description": "A level."},
                {"type": "integer", "description": "A level."},
            ]}),
        ),
        (
            json!({"type": "object", "additionalProperties": false, "required": ["$top"],
                "properties": {"$top": {"type": "int"}, "a": {"type": "string"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "description": "Takes \"$top\" as well: {\"type\":\"integer\"}."}),
        ),
        (
            json!({"type": "object", "properties": null}),
            json!({"type": "object", "properties": {}}),
        ),
        (
            json!({"type": "string", "x-order": 1, "examples": ["a"]}),
            json!({"type": "string"}),
        ),
    ] {
        assert_eq!(property(&given), sent, "{given}");
    }
}

#[test]
fn null_is_offered_only_where_a_value_is_needed() {
    for given in [
        json!({"type": ["string", "null"], "enum": ["a", null]}),
        json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
    ] {
        assert_eq!(
            property(&given),
            json!({"type": "string", "enum": ["a"]}),
            "{given}"
        );
    }
    let needed = json!({
        "type": "object", "required": ["p", "gone", "p"],
        "properties": {"p": {"type": ["integer", "null"], "minimum": 1}},
    });
    assert_eq!(
        of_tool(&needed),
        json!({
            "type": "object", "required": ["p"],
            "properties": {"p": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}},
        })
    );
}

#[test]
fn references_are_followed_and_one_that_leads_to_itself_stands_for_anything() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree", "description": "The tree."}},
        "$defs": {
            "Tree": {"type": "object", "properties": {
                "leaf": {"allOf": [{"$ref": "#/$defs/Leaf"}]},
                "left": {"$ref": "#/$defs/Tree"},
            }},
            "Leaf": {"type": "string"},
        },
    });
    assert_eq!(
        of_tool(&schema),
        json!({"type": "object", "properties": {"tree": {
            "type": "object", "description": "The tree.",
            "properties": {"leaf": {"type": "string"}, "left": {}},
        }}})
    );
}

#[test]
fn a_schema_of_a_reply_may_have_any_root() {
    let list = json!({"type": "array", "items": {"type": "string", "maxLength": 9000}});
    assert_eq!(
        of_reply(&list),
        json!({"type": "array", "items": {"type": "string"}})
    );
}
