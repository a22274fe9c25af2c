//! Templates of a rule's reply.
//!
//! `$1` and `${name}` are what the rule's patterns caught (`user`'s, or what it has not, `said`'s,
//! or else `result`'s), `$$` is a dollar sign, `{user}` is the last message of the user's,
//! `{result}` the newest tool result, `{results}` all since then, and `{result.a.b}` the field `b`
//! of the field `a` of a result that is JSON. What stands for nothing is left as it is. What was
//! filled in is not looked at again.

use serde_json::Value;

/// The values with which templates are filled.
pub(super) struct Fill<'a> {
    pub(super) captures: Vec<(String, String)>,
    pub(super) user: &'a str,
    pub(super) result: String,
    pub(super) results: String,
}

impl Fill<'_> {
    /// Fills a template.
    pub(super) fn text(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['$', '{']) {
            let (before, from) = rest.split_at(at);
            filled.push_str(before);
            let (value, length) = self
                .placeholder(from)
                .unwrap_or_else(|| (from.chars().take(1).collect(), 1));
            filled.push_str(&value);
            rest = from.get(length..).unwrap_or_default();
        }
        filled.push_str(rest);
        filled
    }

    /// Fills every text in a value.
    pub(super) fn value(&self, template: &Value) -> Value {
        match template {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.value(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
        }
    }

    /// Returns the value of the placeholder at the beginning of some text, and the number of bytes
    /// that it takes.
    fn placeholder(&self, text: &str) -> Option<(String, usize)> {
        if let Some(name) = text.strip_prefix('{') {
            let name = name.split_once('}')?.0;
            return Some((self.named(name)?, name.len() + 2));
        }
        let after = text.strip_prefix('$')?;
        if after.starts_with('$') {
            return Some(("$".to_owned(), 2));
        }
        if let Some(name) = after.strip_prefix('{') {
            let name = name.split_once('}')?.0;
            return Some((self.caught(name)?, name.len() + 3));
        }
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        Some((self.caught(after.get(..digits)?)?, digits + 1))
    }

    fn caught(&self, name: &str) -> Option<String> {
        self.captures
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }

    fn named(&self, name: &str) -> Option<String> {
        match name {
            "user" => Some(self.user.to_owned()),
            "result" => Some(self.result.clone()),
            "results" => Some(self.results.clone()),
            _ => {
                let value: Value = serde_json::from_str(&self.result).ok()?;
                let mut path = name.strip_prefix("result.")?.split('.');
                let found = path.try_fold(&value, |value, step| match value {
                    Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                    value => value.get(step),
                })?;
                Some(match found {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_once() {
        let caught = [("0", "save it"), ("1", "$2 {user}"), ("what", "it")];
        let fill = Fill {
            captures: caught
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            user: "U",
            result: r#"{"a": [{"b": "x"}, 2]}"#.to_owned(),
            results: "R".to_owned(),
        };
        assert_eq!(
            fill.text("$1, ${what}, $$1, $7, {user}{results}"),
            "$2 {user}, it, $1, $7, UR"
        );
        assert_eq!(
            fill.text("{result.a.0.b} {result.a.1} {result.a} {result.c} {x} { $"),
            "x 2 [{\"b\":\"x\"},2] {result.c} {x} { $"
        );
        assert_eq!(
            fill.value(&serde_json::json!({"k": ["${what}", 1]})),
            serde_json::json!({"k": ["it", 1]})
        );
    }
}
