//! A client action as a question in the terminal, and a typed line as its answer.

use crate::answer::{is_true, list, text};
use domain::approval::WIDGET;
use domain::shown::visible;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// The id to answer under.
    pub(super) tool_call_id: String,
    /// The agent that asks; none for the agent of the conversation.
    pub(super) agent: Option<String>,
    prompt: String,
    options: Vec<String>,
    /// The schema of a real answer, without the schema for skipping the question.
    schema: Value,
    can_be_skipped: bool,
    /// The hash of the call that the host asks approval for; none for a question of an agent or a
    /// tool.
    approves: Option<String>,
}

impl Question {
    /// Reads a client action.
    pub(super) fn read(action: &Value) -> Option<Self> {
        let props = action.get("props").cloned().unwrap_or_default();
        let first = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| props.get(*name)?.as_str())
                .map(str::to_owned)
        };
        let options = match list(&props, "/options") {
            [] => list(&props, "/choices"),
            options => options,
        };
        let schema = action.get("response_schema").cloned().unwrap_or_default();
        let can_be_skipped = is_true(&props, "/skippable");
        let answer = schema
            .pointer("/anyOf/0")
            .filter(|_| can_be_skipped)
            .cloned();
        let is_hosts = text(action, "/widget_type") == WIDGET;
        let approves = props
            .get("call")
            .and_then(Value::as_str)
            .filter(|_| is_hosts)
            .map(str::to_owned);
        let prompt =
            first(&["prompt", "question", "message", "title"]).unwrap_or_else(|| props.to_string());
        let exact = |name: &str| props.get(name).map(ToString::to_string).unwrap_or_default();
        Some(Self {
            tool_call_id: action.get("tool_call_id")?.as_str()?.to_owned(),
            agent: None,
            prompt: match approves {
                // The terminal would leave out what could steer it, and show another call.
                Some(_) => visible(
                    &format!("{prompt} {} {}", exact("tool"), exact("arguments")),
                    usize::MAX,
                ),
                None => prompt,
            },
            options: options.iter().map(label).collect(),
            schema: answer.unwrap_or(schema),
            can_be_skipped,
            approves,
        })
    }

    /// The same, asked by an agent further below.
    pub(super) fn asked_by(self, agent: &str) -> Self {
        Self {
            agent: Some(agent.to_owned()),
            ..self
        }
    }

    /// Returns the lines to show.
    pub(super) fn lines(&self) -> Vec<String> {
        let options = self
            .options
            .iter()
            .enumerate()
            .map(|(index, option)| format!("  {}) {option}", index + 1));
        let hint = match self.options.len() {
            0 if self.is_yes_or_no() || self.approves.is_some() => Some("y or n".to_owned()),
            0 => self.scale().map(|(min, max)| format!("{min} to {max}")),
            count if self.takes_several() => Some(format!(
                "numbers from 1 to {count}, such as `1 {count}`, or `none`"
            )),
            count => Some(format!("1 to {count}, or the words")),
        };
        let skip = self
            .can_be_skipped
            .then(|| "`skip` to leave it out".to_owned());
        let hints: Vec<String> = hint.into_iter().chain(skip).collect();
        let hint = (!hints.is_empty()).then(|| format!("  ({})", hints.join("; ")));
        std::iter::once(self.prompt.clone())
            .chain(options)
            .chain(hint)
            .collect()
    }

    /// Reads a line as an answer.
    ///
    /// # Errors
    /// The line is no answer. The error says which lines are.
    pub(super) fn answer(&self, line: &str) -> Result<Value, String> {
        let line = line.trim();
        if self.can_be_skipped && line.eq_ignore_ascii_case("skip") {
            return Ok(json!({ "skipped": true }));
        }
        if let Some(call) = &self.approves {
            let approve = scalar(&json!({ "type": "boolean" }), line)?;
            return Ok(json!({ "approve": approve, "call": call }));
        }
        if self.takes_several() {
            return self.choose_several(line);
        }
        if !self.options.is_empty() {
            return self.choose(line);
        }
        if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(line) {
            return Ok(json);
        }
        if let Some(name) = self.only_field() {
            let value = scalar(
                self.schema
                    .pointer(&format!("/properties/{name}"))
                    .unwrap_or(&Value::Null),
                line,
            )?;
            return Ok(json!({ name: value }));
        }
        match text(&self.schema, "/type") {
            "object" | "array" => Err(format!("type the answer as JSON that fits {}", self.schema)),
            _ => scalar(&self.schema, line),
        }
    }

    fn choose(&self, line: &str) -> Result<Value, String> {
        let number = self.index(line);
        let words = || {
            self.options
                .iter()
                .position(|option| option.eq_ignore_ascii_case(line))
        };
        let found = number
            .or_else(words)
            .and_then(|index| Some((index, self.options.get(index)?)));
        let (index, selection) = found.ok_or_else(|| {
            format!(
                "type a number from 1 to {}, or the words of an option",
                self.options.len()
            )
        })?;
        match text(&self.schema, "/type") {
            "string" => Ok(json!(selection)),
            "integer" | "number" => Ok(json!(index)),
            _ => Ok(json!({ "index": index, "selection": selection })),
        }
    }

    /// Returns the option that a number stands for.
    fn index(&self, word: &str) -> Option<usize> {
        let number = word.parse::<usize>().ok()?;
        let index = number.checked_sub(1);
        index.filter(|index| *index < self.options.len())
    }

    fn choose_several(&self, line: &str) -> Result<Value, String> {
        let count = self.options.len();
        let mut words: Vec<&str> = line
            .split([' ', ','])
            .filter(|word| !word.is_empty())
            .collect();
        if words.is_empty() {
            return Err(format!("type numbers from 1 to {count}, or `none`"));
        }
        words.retain(|word| !word.eq_ignore_ascii_case("none"));
        let indices: Option<BTreeSet<usize>> =
            words.into_iter().map(|word| self.index(word)).collect();
        indices
            .map(|indices| json!({ "indices": indices }))
            .ok_or_else(|| format!("type numbers from 1 to {count}, or `none`"))
    }

    /// Returns whether an answer is any number of the options.
    fn takes_several(&self) -> bool {
        !self.options.is_empty() && self.only_field() == Some("indices")
    }

    /// Returns the lowest and the highest number that an answer may be.
    fn scale(&self) -> Option<(i64, i64)> {
        let field = self.schema.get("properties")?.get(self.only_field()?)?;
        Some((
            field.get("minimum")?.as_i64()?,
            field.get("maximum")?.as_i64()?,
        ))
    }

    /// The only field that an answer must have.
    fn only_field(&self) -> Option<&str> {
        match self.schema.get("required")?.as_array()?.as_slice() {
            [name] => name.as_str(),
            _ => None,
        }
    }

    fn is_yes_or_no(&self) -> bool {
        let field = self
            .only_field()
            .and_then(|name| self.schema.pointer(&format!("/properties/{name}")));
        text(field.unwrap_or(&self.schema), "/type") == "boolean"
    }
}

/// Text, or what of an option is for people.
fn label(option: &Value) -> String {
    let named = ["label", "text", "title", "value", "id"]
        .iter()
        .find_map(|name| option.get(*name)?.as_str());
    named
        .or(option.as_str())
        .map_or_else(|| option.to_string(), str::to_owned)
}

fn scalar(schema: &Value, line: &str) -> Result<Value, String> {
    match text(schema, "/type") {
        "boolean" => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(json!(true)),
            "n" | "no" | "false" => Ok(json!(false)),
            _ => Err("type y or n".to_owned()),
        },
        "integer" => line
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| "type a whole number".to_owned()),
        "number" => line
            .parse::<f64>()
            .map(Value::from)
            .map_err(|_| "type a number".to_owned()),
        // Files, for one.
        "array" | "object" => Err(format!(
            "type the answer as JSON, with a field that fits {schema}"
        )),
        _ => Ok(json!(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::clean;

    fn question(props: &Value, schema: &Value) -> Question {
        Question::read(&json!({
            "tool_call_id": "c", "widget_type": "w", "props": props, "response_schema": schema,
        }))
        .unwrap()
    }

    #[test]
    fn an_option_is_chosen_by_number_or_by_words() {
        let schema = json!({ "type": "object", "properties": { "index": { "type": "integer" } }, "required": ["index"] });
        let question = question(
            &json!({ "prompt": "Which?", "options": ["Venus", { "label": "Mars" }] }),
            &schema,
        );
        assert_eq!(
            question.lines(),
            [
                "Which?",
                "  1) Venus",
                "  2) Mars",
                "  (1 to 2, or the words)"
            ]
        );
        assert_eq!(
            question.answer(" 2 "),
            Ok(json!({ "index": 1, "selection": "Mars" }))
        );
        assert_eq!(
            question.answer("venus"),
            Ok(json!({ "index": 0, "selection": "Venus" }))
        );
        for wrong in ["0", "3", "Pluto", ""] {
            assert!(question.answer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_takes_the_shape_that_is_asked_for() {
        let field = |name: &str, kind: &str| json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] });
        for (schema, line, expected) in [
            (
                field("text", "string"),
                "hello",
                Ok(json!({ "text": "hello" })),
            ),
            (
                field("confirmed", "boolean"),
                "yes",
                Ok(json!({ "confirmed": true })),
            ),
            (field("confirmed", "boolean"), "maybe", Err(())),
            (field("count", "integer"), "3", Ok(json!({ "count": 3 }))),
            (field("files", "array"), "notes.txt", Err(())),
            (
                field("files", "array"),
                "{\"files\":[]}",
                Ok(json!({ "files": [] })),
            ),
            (json!({ "type": "string" }), "hi", Ok(json!("hi"))),
            (
                json!({ "type": "object" }),
                "{\"a\":1}",
                Ok(json!({ "a": 1 })),
            ),
            (json!({ "type": "object" }), "a", Err(())),
            (json!(null), "free", Ok(json!("free"))),
        ] {
            let answer = question(&json!({ "prompt": "?" }), &schema)
                .answer(line)
                .map_err(|_| ());
            assert_eq!(answer, expected, "{schema} {line}");
        }
    }

    #[test]
    fn several_options_are_chosen_by_their_numbers() {
        let schema = json!({ "type": "object", "properties": { "indices": { "type": "array" } }, "required": ["indices"] });
        let question = question(
            &json!({ "prompt": "Which?", "options": ["Venus", "Mars", "Pluto"] }),
            &schema,
        );
        assert_eq!(
            question.lines().last().unwrap(),
            "  (numbers from 1 to 3, such as `1 3`, or `none`)"
        );
        assert_eq!(question.answer("3, 1 1"), Ok(json!({ "indices": [0, 2] })));
        assert_eq!(question.answer("none"), Ok(json!({ "indices": [] })));
        for wrong in ["", "4", "0", "Venus", "skip"] {
            assert!(question.answer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_question_that_can_be_skipped_takes_that_word_and_answers_of_its_shape() {
        let rating = json!({ "type": "object", "properties": { "rating": { "type": "integer", "minimum": 1, "maximum": 5 } }, "required": ["rating"] });
        let question = question(
            &json!({ "prompt": "How?", "skippable": true }),
            &json!({ "anyOf": [rating, { "type": "object" }] }),
        );
        assert_eq!(
            question.lines(),
            ["How?", "  (1 to 5; `skip` to leave it out)"]
        );
        assert_eq!(question.answer("Skip"), Ok(json!({ "skipped": true })));
        assert_eq!(question.answer("4"), Ok(json!({ "rating": 4 })));
    }

    #[test]
    fn every_character_of_a_call_is_seen_in_the_question_that_approves_it() {
        let props = json!({
            "prompt": "May `puppet` call `put`?", "tool": "put", "call": "12",
            "arguments": { "path": "a\u{202e}b\u{200b}c\u{7f}d\n\\u{202e} \u{e9}" },
        });
        let asked = json!({ "tool_call_id": "c", "widget_type": WIDGET, "props": props });
        let question = Question::read(&asked).unwrap();
        let expected =
            r#"May `puppet` call `put`? "put" {"path":"a\u{202e}b\u{200b}c\u{7f}d\n\\u{202e} é"}"#;
        assert_eq!(question.lines(), [expected, "  (y or n)"]);
        assert_eq!(clean(expected), expected, "a terminal leaves nothing out");
    }
}
