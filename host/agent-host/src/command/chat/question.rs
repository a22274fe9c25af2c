//! A client action as a question in the terminal, and a typed line as its answer.

use serde_json::{Value, json};

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    /// What to answer under.
    pub(super) call_id: String,
    /// Which agent asks; the one that is talked with without.
    pub(super) agent: Option<String>,
    prompt: String,
    options: Vec<String>,
    schema: Value,
}

impl Question {
    /// Reads a client action.
    pub(super) fn read(action: &Value) -> Option<Self> {
        let props = action.get("props").cloned().unwrap_or_default();
        let first = |names: &[&str]| names.iter().find_map(|name| props.get(*name)?.as_str()).map(str::to_owned);
        let options = props.get("options").or_else(|| props.get("choices")).and_then(Value::as_array);
        Some(Self {
            call_id: action.get("call_id")?.as_str()?.to_owned(),
            agent: None,
            prompt: first(&["prompt", "question", "message", "title"]).unwrap_or_else(|| props.to_string()),
            options: options.into_iter().flatten().map(label).collect(),
            schema: action.get("response_schema").cloned().unwrap_or_default(),
        })
    }

    /// The same, asked by an agent further below.
    pub(super) fn asked_by(self, agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..self }
    }

    /// What to show.
    pub(super) fn lines(&self) -> Vec<String> {
        let options = self.options.iter().enumerate().map(|(index, option)| format!("  {}) {option}", index + 1));
        let hint = match self.options.len() {
            0 if self.is_yes_or_no() => Some("  (y or n)".to_owned()),
            0 => None,
            count => Some(format!("  (1 to {count}, or the words)")),
        };
        std::iter::once(self.prompt.clone()).chain(options).chain(hint).collect()
    }

    /// The answer that a line means.
    ///
    /// # Errors
    /// What would be one.
    pub(super) fn answer(&self, line: &str) -> Result<Value, String> {
        let line = line.trim();
        if !self.options.is_empty() {
            return self.choose(line);
        }
        if let Ok(json @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(line) {
            return Ok(json);
        }
        if let Some(name) = self.only_field() {
            let value = scalar(self.schema.pointer(&format!("/properties/{name}")).unwrap_or(&Value::Null), line)?;
            return Ok(json!({ name: value }));
        }
        match self.schema.get("type").and_then(Value::as_str) {
            Some("object" | "array") => Err(format!("type the answer as JSON that fits {}", self.schema)),
            _ => scalar(&self.schema, line),
        }
    }

    fn choose(&self, line: &str) -> Result<Value, String> {
        let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1)).filter(|index| *index < self.options.len());
        let words = || self.options.iter().position(|option| option.eq_ignore_ascii_case(line));
        let found = number.or_else(words).and_then(|index| Some((index, self.options.get(index)?)));
        let (index, selection) =
            found.ok_or_else(|| format!("type a number from 1 to {}, or the words of an option", self.options.len()))?;
        match self.schema.get("type").and_then(Value::as_str) {
            Some("string") => Ok(json!(selection)),
            Some("integer" | "number") => Ok(json!(index)),
            _ => Ok(json!({ "index": index, "selection": selection })),
        }
    }

    /// The only field that an answer must have.
    fn only_field(&self) -> Option<&str> {
        match self.schema.get("required")?.as_array()?.as_slice() {
            [name] => name.as_str(),
            _ => None,
        }
    }

    fn is_yes_or_no(&self) -> bool {
        let field = self.only_field().and_then(|name| self.schema.pointer(&format!("/properties/{name}")));
        field.unwrap_or(&self.schema).get("type").and_then(Value::as_str) == Some("boolean")
    }
}

/// Text, or what of an option is for people.
fn label(option: &Value) -> String {
    let named = ["label", "text", "title", "value", "id"].iter().find_map(|name| option.get(*name)?.as_str());
    named.or(option.as_str()).map_or_else(|| option.to_string(), str::to_owned)
}

fn scalar(schema: &Value, line: &str) -> Result<Value, String> {
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => match line.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(json!(true)),
            "n" | "no" | "false" => Ok(json!(false)),
            _ => Err("type y or n".to_owned()),
        },
        Some("integer") => line.parse::<i64>().map(Value::from).map_err(|_| "type a whole number".to_owned()),
        Some("number") => line.parse::<f64>().map(Value::from).map_err(|_| "type a number".to_owned()),
        _ => Ok(json!(line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(props: &Value, schema: &Value) -> Question {
        Question::read(&json!({ "call_id": "c", "widget": "w", "props": props, "response_schema": schema })).unwrap()
    }

    #[test]
    fn an_option_is_chosen_by_number_or_by_words() {
        let schema = json!({ "type": "object", "properties": { "index": { "type": "integer" } }, "required": ["index"] });
        let question = question(&json!({ "prompt": "Which?", "options": ["Venus", { "label": "Mars" }] }), &schema);
        assert_eq!(question.lines(), ["Which?", "  1) Venus", "  2) Mars", "  (1 to 2, or the words)"]);
        assert_eq!(question.answer(" 2 "), Ok(json!({ "index": 1, "selection": "Mars" })));
        assert_eq!(question.answer("venus"), Ok(json!({ "index": 0, "selection": "Venus" })));
        for wrong in ["0", "3", "Pluto", ""] {
            assert!(question.answer(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_takes_the_shape_that_is_asked_for() {
        let field = |name: &str, kind: &str| json!({ "type": "object", "properties": { name: { "type": kind } }, "required": [name] });
        for (schema, line, expected) in [
            (field("text", "string"), "hello", Ok(json!({ "text": "hello" }))),
            (field("confirmed", "boolean"), "yes", Ok(json!({ "confirmed": true }))),
            (field("confirmed", "boolean"), "maybe", Err(())),
            (field("count", "integer"), "3", Ok(json!({ "count": 3 }))),
            (json!({ "type": "string" }), "hi", Ok(json!("hi"))),
            (json!({ "type": "object" }), "{\"a\":1}", Ok(json!({ "a": 1 }))),
            (json!({ "type": "object" }), "a", Err(())),
            (json!(null), "free", Ok(json!("free"))),
        ] {
            let answer = question(&json!({ "prompt": "?" }), &schema).answer(line).map_err(|_| ());
            assert_eq!(answer, expected, "{schema} {line}");
        }
    }
}
