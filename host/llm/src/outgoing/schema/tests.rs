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

/// Pairs of a property's schema and the schema that is sent for it.
const LEFT_OUT: &str = r#"
{"type": "string", "maxLength": 2000} becomes {"type": "string"}
{"type": "string", "maxLength": 1999} becomes {"type": "string", "maxLength": 1999}
{"type": "string", "minLength": 5000.0} becomes {"type": "string"}
{"type": "array", "maxItems": 4096} becomes {"type": "array", "items": {}}
{"type": "integer", "format": "uint32", "minimum": 0} becomes {"type": "integer", "minimum": 0}
{"type": "integer", "maximum": 18446744073709551615} becomes {"type": "integer"}
{"type": "integer", "exclusiveMinimum": 0} becomes {"type": "integer", "minimum": 1}
{"type": "string", "format": "uri"} becomes {"type": "string"}
{"type": "string", "format": "date-time"} becomes {"type": "string", "format": "date-time"}
{"type": "string", "pattern": "^[a-z]{1,3000}$"} becomes {"type": "string"}
{"type": "string", "pattern": "abc"} becomes {"type": "string"}
{"type": "string", "pattern": "^(?!x).*$"} becomes {"type": "string"}
{"type": "string", "pattern": "^[a-z]{1,8}$"} becomes {"type": "string", "pattern": "^[a-z]{1,8}$"}
{"const": "a"} becomes {"type": "string", "enum": ["a"]}
{"type": "integer", "description": "A level.", "enum": [0, 1]}
  becomes {"type": "integer", "description": "A level. One of: 0, 1."}
{"type": "string", "enum": ["", "a"]} becomes {"type": "string", "enum": ["a"]}
{"type": "string", "enum": [""]} becomes {"type": "string"}
{"type": []} becomes {}
{"type": "any"} becomes {}
{"type": "FLOAT"} becomes {"type": "number"}
{"type": "integer", "enum": ["1", "2"]}
  becomes {"type": "integer", "description": "One of: \"1\", \"2\"."}
{"type": "string", "enum": ["a", "a", "b"]} becomes {"type": "string", "enum": ["a", "b"]}
{"type": "string", "pattern": "^[a$"} becomes {"type": "string"}
{"type": "array", "items": {"type": "string"}, "uniqueItems": true}
  becomes {"type": "array", "items": {"type": "string"}}
{"type": "object", "additionalProperties": {}} becomes {"type": "object", "properties": {}}
{"anyOf": [{"not": {}}, {"type": "string"}]} becomes {"type": "string"}
{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
  becomes {"type": "object", "properties": {}}
{"description": "A level.", "default": 1, "type": ["string", "integer"]}
  becomes {"anyOf": [{"type": "string", "description": "A level."}, {"type": "integer",
  "description": "A level."}]}
{"type": "object", "additionalProperties": false, "required": ["$top"],
  "properties": {"$top": {"type": "int"}, "a": {"type": "string"}}}
  becomes {"type": "object", "properties": {"a": {"type": "string"}},
  "description": "Takes \"$top\" as well: {\"type\":\"integer\"}."}
{"type": "object", "properties": null} becomes {"type": "object", "properties": {}}
{"type": "string", "x-order": 1, "examples": ["a"]} becomes {"type": "string"}
"#;

#[test]
fn what_grammars_and_servers_refuse_is_left_out() {
    for row in LEFT_OUT
        .replace("\n  ", " ")
        .lines()
        .filter(|row| !row.is_empty())
    {
        let [given, sent] = row
            .split(" becomes ")
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        let given: Value = serde_json::from_str(given).unwrap();
        let sent: Value = serde_json::from_str(sent).unwrap();
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
