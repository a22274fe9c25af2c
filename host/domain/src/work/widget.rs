//! Widgets: the props of a client action, checked before they are shown, and the valid answers to
//! it.
//!
//! A client may have its own widgets, of which only the name is known here.

pub mod document;
pub mod upload;

use crate::access::tool::ClientAction;
use serde_json::Value;

/// Checks the content of a client action. Returns the JSON Schema of its answer, for an action
/// without its own schema. None for a client's own widget.
///
/// # Errors
/// The first thing at fault and its fix, such as `props.options: 2 to 100 texts are needed, there
/// is 1`.
pub fn check(action: &ClientAction) -> Result<Option<Value>, String> {
    shapes::widget::check(&action.widget, &action.props)
}

/// Returns the fault of an answer that fits its schema and contradicts itself. That is a choice
/// whose name and index differ.
#[must_use]
pub fn contradiction(action: &ClientAction, answer: &Value) -> Option<String> {
    let options = action.props.get("options")?.as_array()?;
    let option = |index: &Value| options.get(usize::try_from(index.as_u64()?).ok()?);
    match action.widget.as_str() {
        "multiple_choice" => {
            let index = answer.get("index")?;
            let selection = answer.get("selection")?;
            let chosen = option(index)?;
            (chosen != selection).then(|| {
                format!("the option of index {index} is {chosen}, and the selection is {selection}")
            })
        }
        "multi_select" => {
            let indices = answer.get("indices")?.as_array()?;
            let selections = answer.get("selections")?.as_array()?;
            let chosen: Vec<&Value> = indices.iter().filter_map(option).collect();
            let same = chosen.len() == selections.len()
                && chosen.iter().all(|option| selections.contains(option));
            (!same).then(|| "the selections are other options than those of the indices".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{check, contradiction, document};
    use crate::access::tool::ClientAction;
    use serde_json::{Value, json};

    fn checked(widget: &str, props: Value) -> Result<Option<Value>, String> {
        check(&ClientAction::of(widget, props))
    }

    fn answer(widget: &str, props: Value) -> Value {
        checked(widget, props).unwrap().unwrap()
    }

    fn fault(widget: &str, props: Value) -> String {
        checked(widget, props).unwrap_err()
    }

    #[test]
    fn a_choice_is_the_index_of_an_option() {
        let schema = answer(
            "multiple_choice",
            json!({ "prompt": "Which?", "options": ["a", "b", "c"] }),
        );
        assert_eq!(schema["required"], json!(["index"]));
        assert_eq!(
            schema["properties"]["index"],
            json!({ "type": "integer", "minimum": 0, "maximum": 2 })
        );
    }

    #[test]
    fn several_choices_are_indices_of_which_none_comes_twice() {
        let props = json!({ "prompt": "Which?", "options": ["a", "b", "c"], "min": 1, "max": 2 });
        let indices = &answer("multi_select", props)["properties"]["indices"];
        assert_eq!(
            (
                &indices["uniqueItems"],
                &indices["minItems"],
                &indices["maxItems"]
            ),
            (&json!(true), &json!(1), &json!(2))
        );
        let unbounded = &answer(
            "multi_select",
            json!({ "prompt": "Which?", "options": ["a", "b", "c"] }),
        )["properties"]["indices"];
        assert_eq!(
            (
                &unbounded["minItems"],
                &unbounded["maxItems"],
                &unbounded["items"]["maximum"]
            ),
            (&json!(0), &json!(3), &json!(2))
        );
    }

    #[test]
    fn text_and_code_have_the_length_that_the_props_allow_or_a_usual_one() {
        let text = |props| answer("free_text", props)["properties"]["text"].clone();
        assert_eq!(
            text(json!({ "prompt": "Why?" })),
            json!({ "type": "string", "minLength": 1, "maxLength": 2_000 })
        );
        assert_eq!(
            text(json!({ "prompt": "Why?", "min_length": 0, "max_length": 9 })),
            json!({ "type": "string", "minLength": 0, "maxLength": 9 })
        );
        let code = answer(
            "code_editor",
            json!({ "prompt": "Write it", "language": "rust", "initial_code": "fn main() {}" }),
        );
        assert_eq!(code["properties"]["code"]["maxLength"], 65_536);
    }

    #[test]
    fn a_rating_is_a_whole_number_of_the_scale() {
        let props = json!({ "prompt": "How was it?", "min": 1, "max": 5, "labels": { "1": "bad", "5": "good" } });
        let schema = answer("rating_scale", props);
        assert_eq!(
            schema["properties"]["rating"],
            json!({ "type": "integer", "minimum": 1, "maximum": 5 })
        );
    }

    #[test]
    fn a_form_is_answered_by_what_its_schema_describes() {
        let schema = json!({ "type": "object", "properties": { "name": { "$ref": "#/$defs/name" } }, "$defs": { "name": { "type": "string" } } });
        assert_eq!(answer("form", json!({ "schema": schema })), schema);
        let either = answer("form", json!({ "schema": schema, "skippable": true }));
        assert_eq!(
            either["$defs"], schema["$defs"],
            "references still find what they name"
        );
        assert_eq!(either["anyOf"][0]["properties"], schema["properties"]);
    }

    #[test]
    fn an_upload_names_files_by_digest_or_has_small_ones_as_base64() {
        let props = json!({ "prompt": "Your essay", "accept": ["text/*", "application/vnd.a+json"], "max_bytes": 100, "max_files": 3 });
        let schema = answer("file_upload", props);
        let files = &schema["properties"]["files"];
        assert_eq!(
            (&files["minItems"], &files["maxItems"]),
            (&json!(1), &json!(3))
        );
        let [named, inline] = [&files["items"]["anyOf"][0], &files["items"]["anyOf"][1]];
        assert_eq!(named["required"], json!(["digest"]));
        assert_eq!(
            inline["properties"]["media_type"]["pattern"],
            "^(text/[^/]+|application/vnd\\.a\\+json)( *;.*)?$"
        );
        assert_eq!(inline["properties"]["content_base64"]["maxLength"], 136);
        let any = answer("file_upload", json!({ "prompt": "Your essay" }));
        assert_eq!(any["properties"]["files"]["maxItems"], 1);
        assert_eq!(
            any["properties"]["files"]["items"]["anyOf"][1]["properties"]["content_base64"]["maxLength"],
            699_052
        );
    }

    #[test]
    fn a_file_that_is_handed_over_may_be_as_large_as_one_that_is_asked_for() {
        assert_eq!(
            shapes::widget::UPLOAD_BYTES_MAX.unsigned_abs(),
            crate::values::file::FILE_BYTES_MAX as u64
        );
    }

    /// Returns the props that a widget needs to be shown, with the widest bounds that it can have.
    fn widest(widget: &str) -> Value {
        let options: Vec<String> = (0..100).map(|option| option.to_string()).collect();
        match widget {
            "multiple_choice" | "multi_select" => json!({ "prompt": "?", "options": options }),
            "free_text" => json!({ "prompt": "?", "min_length": 0, "max_length": 131_072 }),
            "code_editor" => json!({ "prompt": "?", "max_length": 131_072 }),
            "rating_scale" => json!({ "prompt": "?", "min": 0, "max": 100 }),
            "form" => json!({ "schema": { "type": "object" } }),
            "file_upload" => json!({ "prompt": "?", "max_files": 10 }),
            _ => json!({ "prompt": "?" }),
        }
    }

    #[test]
    fn each_widgets_documented_answer_is_the_one_that_answers_are_checked_against() {
        for widget in document::WIDGETS {
            let mut documented = document::answer(widget);
            if widget == "rating_scale" {
                // No scale has all ratings that there can be.
                documented["properties"]["rating"]["minimum"] = json!(0);
                documented["properties"]["rating"]["maximum"] = json!(100);
            }
            assert_eq!(answer(widget, widest(widget)), documented, "{widget}");
            let mut skippable = widest(widget);
            skippable["skippable"] = json!(true);
            assert_eq!(
                answer(widget, skippable)["anyOf"][1],
                document::skipped_answer(),
                "{widget}"
            );
        }
    }

    #[test]
    fn every_widget_is_documented_and_no_other() {
        for widget in document::WIDGETS {
            assert!(
                checked(widget, widest(widget)).unwrap().is_some(),
                "{widget}"
            );
            let props = document::props(widget);
            let needed = props["required"].as_array().unwrap();
            assert!(
                needed
                    .iter()
                    .all(|name| props["properties"][name.as_str().unwrap()].is_object()),
                "{widget}"
            );
            assert!(props["properties"]["skippable"].is_object(), "{widget}");
        }
        assert_eq!(document::props("star_map")["required"], json!([]));
    }

    #[test]
    fn what_can_be_skipped_may_also_be_answered_with_that() {
        for (widget, props) in [
            (
                "confirmation",
                json!({ "prompt": "Sure?", "skippable": true }),
            ),
            (
                "approval",
                json!({ "prompt": "May I?", "details": ["x"], "skippable": true }),
            ),
        ] {
            let schema = answer(widget, props);
            assert_eq!(
                schema["anyOf"][1]["properties"],
                json!({ "skipped": { "const": true } }),
                "{widget}"
            );
        }
        let schema = answer(
            "confirmation",
            json!({ "prompt": "Sure?", "skippable": false }),
        );
        assert_eq!(schema["required"], json!(["confirmed"]));
    }

    #[test]
    fn a_widget_of_the_clients_own_passes_if_it_has_a_name() {
        assert_eq!(checked("star_map-2", json!({ "anything": 1 })), Ok(None));
        for wrong in ["", "Map", "a b", "ä", &"x".repeat(65)] {
            let fault = fault(wrong, json!({}));
            assert!(
                fault.starts_with(
                    "widget: 1 to 64 of `a-z`, `0-9`, `_` and `-` are needed, this is `"
                ),
                "{fault}"
            );
        }
    }

    #[test]
    fn a_fault_names_the_prop_and_what_it_has_to_be() {
        let upload = |accept: &str| json!({ "prompt": "?", "accept": [accept] });
        for (widget, props, expected) in [
            (
                "free_text",
                json!(3),
                "props: an object is needed, this is a number",
            ),
            (
                "free_text",
                json!({}),
                "props.prompt: a text is needed, there is none",
            ),
            (
                "free_text",
                json!({ "prompt": "" }),
                "props.prompt: a text of 1 to 8192 bytes is needed, this one has 0",
            ),
            (
                "free_text",
                json!({ "prompt": "x".repeat(8_193) }),
                "props.prompt: a text of 1 to 8192 bytes is needed, this one has 8193",
            ),
            (
                "free_text",
                json!({ "prompt": "?", "max_length": 0 }),
                "props.max_length: a whole number from 1 to 131072 is needed, this is 0",
            ),
            (
                "free_text",
                json!({ "prompt": "?", "min_length": 9, "max_length": 5 }),
                "props.min_length: a whole number from 0 to 5 is needed, this is 9",
            ),
            (
                "free_text",
                json!({ "prompt": "?", "multiline": "yes" }),
                "props.multiline: true or false is needed, this is a text",
            ),
            (
                "multiple_choice",
                json!({ "prompt": "?" }),
                "props.options: 2 to 100 texts are needed, there are none",
            ),
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": vec!["a"; 101] }),
                "props.options: 2 to 100 texts are needed, there are 101",
            ),
            (
                "multiple_choice",
                json!({ "prompt": "?", "options": ["a", 2] }),
                "props.options[1]: a text is needed, this is a number",
            ),
            (
                "multi_select",
                json!({ "prompt": "?", "options": ["a", "b"], "max": 3 }),
                "props.max: a whole number from 1 to 2 is needed, this is 3",
            ),
            (
                "multi_select",
                json!({ "prompt": "?", "options": ["a", "b"], "min": 0.5 }),
                "props.min: a whole number from 0 to 2 is needed, this is a number",
            ),
            (
                "code_editor",
                json!({ "prompt": "?", "max_length": 2, "initial_code": "abc" }),
                "props.initial_code: at most 2 characters are allowed, as `max_length` says, these are \
             3",
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1 }),
                "props.max: a whole number is needed, there is none",
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1, "max": 1 }),
                "props.max: 2 to 101 is needed, as `min` is 1, this is 1",
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1, "max": 3, "labels": { "4": "x" } }),
                "props.labels: each name is a rating from 1 to 3, `4` is not",
            ),
            (
                "rating_scale",
                json!({ "prompt": "?", "min": 1, "max": 3, "labels": ["x"] }),
                "props.labels: an object of ratings and their labels is needed, this is a list",
            ),
            (
                "confirmation",
                json!({ "prompt": "?", "confirm_label": "" }),
                "props.confirm_label: a text of 1 to 2048 bytes is needed, this one has 0",
            ),
            (
                "form",
                json!({ "prompt": "?" }),
                "props.schema: a JSON Schema with `\"type\": \"object\"` is needed, there is none",
            ),
            (
                "form",
                json!({ "schema": { "type": "array" } }),
                "props.schema: a JSON Schema with `\"type\": \"object\"` is needed, this is another \
             one",
            ),
            (
                "file_upload",
                upload("a(b/c"),
                "props.accept[0]: a media type such as `text/plain` or `image/*` is needed, this is \
             `a(b/c`",
            ),
            (
                "file_upload",
                json!({ "prompt": "?", "max_bytes": 10_485_761 }),
                "props.max_bytes: a whole number from 1 to 10485760 is needed, this is 10485761",
            ),
            (
                "approval",
                json!({ "prompt": "?", "details": "x".repeat(262_144) }),
                "props: 262144 bytes at most are allowed, these are 262171",
            ),
        ] {
            assert_eq!(fault(widget, props), expected, "{widget}");
        }
    }

    #[test]
    fn an_optional_prop_may_be_null() {
        let props =
            json!({ "prompt": "?", "max_length": null, "placeholder": null, "skippable": null });
        assert_eq!(
            answer("free_text", props),
            answer("free_text", json!({ "prompt": "?" }))
        );
    }

    #[test]
    fn a_choice_that_names_another_option_than_it_points_at_contradicts_itself() {
        let choose = |widget: &str| {
            ClientAction::of(widget, json!({ "prompt": "?", "options": ["2", "3"] }))
        };
        let one = choose("multiple_choice");
        assert_eq!(contradiction(&one, &json!({ "index": 0 })), None);
        assert_eq!(
            contradiction(&one, &json!({ "index": 1, "selection": "3" })),
            None
        );
        assert!(
            contradiction(&one, &json!({ "index": 1, "selection": "2" }))
                .unwrap()
                .contains("the option of index 1 is \"3\"")
        );
        let several = choose("multi_select");
        assert_eq!(
            contradiction(
                &several,
                &json!({ "indices": [1, 0], "selections": ["2", "3"] })
            ),
            None
        );
        assert!(contradiction(&several, &json!({ "indices": [1], "selections": ["2"] })).is_some());
        assert!(
            contradiction(&several, &json!({ "indices": [0, 1], "selections": ["2"] })).is_some()
        );
    }
}
