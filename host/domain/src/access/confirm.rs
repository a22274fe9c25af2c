//! Confirmation: the tools that a definition or a grant permits only after a user has agreed.
//!
//! The question and its answer are approvals, which are part of the folder `work`.

use crate::access::grant::PatternList;
use crate::access::tool::ToolDefinition;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

/// The keyword of a configuration for all tools that declare themselves destructive.
const DESTRUCTIVE: &str = "destructive";

/// Tools that need approval: `"destructive"`, or a list of patterns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confirm {
    /// True for tools that declare themselves destructive.
    pub destructive: bool,
    /// Tools with matching names.
    pub tools: PatternList,
}

impl Confirm {
    /// Returns whether no call needs an approval.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a call of a tool needs an approval.
    #[must_use]
    pub fn asks(&self, tool: &ToolDefinition) -> bool {
        (self.destructive && tool.destructive) || self.tools.matches(&tool.name)
    }

    /// Returns the union of both.
    #[must_use]
    pub fn both(&self, others: &Self) -> Self {
        Self {
            destructive: self.destructive || others.destructive,
            tools: self.tools.and(Some(&others.tools)),
        }
    }
}

impl Serialize for Confirm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.destructive, self.tools.is_empty()) {
            (true, true) => serializer.serialize_str(DESTRUCTIVE),
            (false, _) => self.tools.serialize(serializer),
            (true, false) => {
                json!({ "destructive": true, "tools": self.tools }).serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Confirm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Word(String),
            Tools(PatternList),
            Both {
                destructive: bool,
                tools: PatternList,
            },
        }
        match Written::deserialize(deserializer) {
            Ok(Written::Word(word)) if word == DESTRUCTIVE => Ok(Self {
                destructive: true,
                tools: PatternList::default(),
            }),
            Ok(Written::Tools(tools)) => Ok(Self {
                destructive: false,
                tools,
            }),
            Ok(Written::Both { destructive, tools }) => Ok(Self { destructive, tools }),
            Ok(Written::Word(_)) | Err(_) => Err(serde::de::Error::custom(
                "`confirm` is \"destructive\" or a list of patterns of tools, such as \
                 [\"delete_*\"]",
            )),
        }
    }
}

impl schemars::JsonSchema for Confirm {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Confirm".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [{ "const": DESTRUCTIVE }, { "type": "array", "items": { "type": "string" } }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn what_asks_is_a_word_or_patterns_and_several_add_up() {
        let read = |text: Value| serde_json::from_value::<Confirm>(text);
        let word = read(json!("destructive")).unwrap();
        let list = read(json!(["delete_*"])).unwrap();
        assert!(read(json!("everything")).is_err() && read(json!(7)).is_err());
        let both = word.both(&list);
        for confirm in [&word, &list, &both, &Confirm::default()] {
            assert_eq!(read(json!(confirm)).unwrap(), *confirm);
        }
        let tool = |name: &str, destructive: bool| ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            arguments: json!({}),
            results: None,
            capabilities: Vec::new(),
            effect: crate::access::tool::EffectClass::Idempotent,
            destructive,
            time_limit_ms: None,
        };
        for (name, destructive, by) in [
            ("wipe", true, [true, false, true]),
            ("delete_file", false, [false, true, true]),
            ("read_file", false, [false, false, false]),
        ] {
            assert_eq!(
                [&word, &list, &both].map(|confirm| confirm.asks(&tool(name, destructive))),
                by,
                "{name}"
            );
        }
    }
}
