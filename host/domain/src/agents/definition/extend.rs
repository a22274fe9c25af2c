//! Definitions that extend another: inheritance, and how lists become narrower.

use super::Definition;
use crate::access::grant::{PatternList, named_only};
use serde_json::{Map, Value};

/// Keys that apply to one definition only, and are not inherited.
const OF_ONE: [&str; 4] = ["extends", "widens", "templateFor", "madeBy"];
/// The key whose table is inherited entry by entry.
const SETTINGS: &str = "settings";

/// An entry of a definition's own allow list that its base does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wider {
    /// The key of the list, such as `toolAllowlist`.
    pub list: &'static str,
    /// The entry.
    pub pattern: String,
}

/// A definition with all inherited keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Extended {
    /// The definition.
    pub definition: Definition,
    /// Entries of its own lists that are left out, because its base does not allow them.
    pub wider: Vec<Wider>,
}

/// The reason why keys and inherited keys do not form a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnfitKey {
    /// The key at fault; empty if the fault is not in a single key.
    pub key: String,
    /// The fault, and how to correct it.
    pub message: String,
}

impl Definition {
    /// Returns the definition that extends this one by some keys of its own.
    ///
    /// A missing key is inherited, and so is each of the `settings`. Lists only become narrower: an
    /// entry of an allow list that no entry here covers is left out. Deny lists and `confirm` add
    /// up, and fixed settings stay as they are. With `widens` among the keys, its own lists replace
    /// those here instead.
    ///
    /// # Errors
    /// A key has an invalid value, or sets a value that is fixed here.
    pub fn extended(&self, own: &Map<String, Value>) -> Result<Extended, UnfitKey> {
        let mut definition = self.with_keys(own)?;
        let mut wider = Vec::new();
        definition.model_names = None;
        if definition.widens {
            return Ok(Extended { definition, wider });
        }
        self.check_fixed(own)?;
        for (list, base, own) in [
            (
                "toolAllowlist",
                &self.tool_allowlist,
                &mut definition.tool_allowlist,
            ),
            (
                "skillAllowlist",
                &self.skill_allowlist,
                &mut definition.skill_allowlist,
            ),
            (
                "capabilityAllowlist",
                &self.capability_allowlist,
                &mut definition.capability_allowlist,
            ),
            (
                "agentAllowlist",
                &self.agent_allowlist,
                &mut definition.agent_allowlist,
            ),
        ] {
            let outside = narrow(base.as_ref(), own);
            wider.extend(outside.into_iter().map(|pattern| Wider { list, pattern }));
        }
        let models = self.narrow_models(&mut definition);
        wider.extend(models.into_iter().map(|pattern| Wider {
            list: "modelAllowlist",
            pattern,
        }));
        for (base, own) in [
            (&self.tool_denylist, &mut definition.tool_denylist),
            (&self.skill_denylist, &mut definition.skill_denylist),
            (
                &self.capability_denylist,
                &mut definition.capability_denylist,
            ),
            (&self.agent_denylist, &mut definition.agent_denylist),
        ] {
            add(base.as_ref(), own);
        }
        definition.confirm = self.confirm.both(&definition.confirm);
        for name in &self.fixed_settings {
            if !definition.fixed_settings.contains(name) {
                definition.fixed_settings.push(name.clone());
            }
        }
        Ok(Extended { definition, wider })
    }

    /// Narrows the models of a definition that extends this one, and returns the entries that are
    /// left out. Without a list here, only this definition's own model can be listed. A name counts
    /// as a program's name only if it is listed here too.
    fn narrow_models(&self, definition: &mut Self) -> Vec<String> {
        let own_model = PatternList(self.model.iter().cloned().collect());
        let base = self.model_allowlist.as_ref();
        let outside = match (base, &definition.model_allowlist) {
            (None, None) => Vec::new(),
            (base, _) => narrow(
                Some(base.unwrap_or(&own_model)),
                &mut definition.model_allowlist,
            ),
        };
        definition.model_names = base.map(|list| {
            let names = list.0.iter().filter(|name| self.lists_model(name));
            PatternList(names.cloned().collect())
        });
        outside
    }

    /// Returns this definition with some keys replaced, whatever they allow.
    fn with_keys(&self, own: &Map<String, Value>) -> Result<Self, UnfitKey> {
        let unfit = |error: serde_json::Error| UnfitKey {
            key: String::new(),
            message: error.to_string(),
        };
        let mut keys = match serde_json::to_value(self).map_err(unfit)? {
            Value::Object(keys) => keys,
            _ => Map::new(),
        };
        for key in OF_ONE {
            keys.remove(key);
        }
        for (key, value) in own {
            match (keys.get_mut(key), value) {
                (Some(Value::Object(inherited)), Value::Object(given)) if key == SETTINGS => {
                    inherited.extend(given.clone());
                }
                _ => {
                    keys.insert(key.clone(), value.clone());
                }
            }
        }
        serde_json::from_value(Value::Object(keys)).map_err(unfit)
    }

    /// Checks that the settings among some keys do not change fixed settings.
    fn check_fixed(&self, own: &Map<String, Value>) -> Result<(), UnfitKey> {
        let given = own.get(SETTINGS).and_then(Value::as_object);
        let set = given.into_iter().flatten().find(|(name, value)| {
            self.fixed_settings.contains(name) && self.settings.get(*name) != Some(*value)
        });
        match set {
            None => Ok(()),
            Some((name, _)) => Err(UnfitKey {
                key: format!("{SETTINGS}.{name}"),
                message: format!(
                    "`{name}` is fixed by `{}`, which it extends (`fixedSettings`); leave it out",
                    self.agent_id
                ),
            }),
        }
    }
}

/// Removes the entries of an allow list that its base does not cover, and returns them. A missing
/// list becomes that of the base.
fn narrow(base: Option<&PatternList>, own: &mut Option<PatternList>) -> Vec<String> {
    let Some(given) = own.take() else {
        *own = base.cloned();
        return Vec::new();
    };
    let is_within = |pattern: &String| match base {
        Some(base) => base.covers(pattern),
        // A missing list does not offer names that need a specific pattern.
        None => named_only(pattern).is_none(),
    };
    let (within, outside): (Vec<String>, Vec<String>) = given.0.into_iter().partition(is_within);
    *own = Some(PatternList(within));
    outside
}

/// Adds the entries of its base to a deny list.
fn add(base: Option<&PatternList>, own: &mut Option<PatternList>) {
    if let Some(base) = base {
        *own = Some(base.and(own.as_ref()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::definition::DefinitionId;
    use serde_json::json;

    fn base() -> Definition {
        serde_json::from_value(json!({
            "agentId": "base", "displayName": "Base", "description": "d", "uiVisible": false,
            "toolAllowlist": ["web_*", "read_file"], "toolDenylist": ["web_post"],
            "agentAllowlist": [], "confirm": ["read_file"], "settings": { "a": 1, "b": 2 },
            "fixedSettings": ["b"], "templateFor": ["*"], "model": "small",
        }))
        .unwrap()
    }

    fn extended(own: &Value) -> Result<Extended, UnfitKey> {
        let mut keys = json!({ "agentId": "own", "displayName": "Own", "extends": "base" });
        keys.as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        base().extended(keys.as_object().unwrap())
    }

    fn lists(patterns: &[&str]) -> Option<PatternList> {
        Some(PatternList(
            patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
        ))
    }

    #[test]
    fn a_definition_inherits_every_key_that_it_does_not_have() {
        let Extended { definition, wider } =
            extended(&json!({ "uiVisible": true, "settings": { "a": 3, "c": 4 } })).unwrap();
        assert_eq!(wider, []);
        assert_eq!(
            definition,
            Definition {
                agent_id: DefinitionId("own".into()),
                display_name: "Own".into(),
                extends: Some(DefinitionId("base".into())),
                ui_visible: true,
                template_for: None,
                settings: json!({ "a": 3, "b": 2, "c": 4 })
                    .as_object()
                    .unwrap()
                    .clone(),
                ..base()
            }
        );
    }

    #[test]
    fn an_allow_list_only_becomes_narrower_whatever_is_asked_for() {
        for (asked, kept, left_out) in [
            (json!(null), vec!["web_*", "read_file"], vec![]),
            (json!([]), vec![], vec![]),
            (json!(["web_get"]), vec!["web_get"], vec![]),
            (json!(["web_*"]), vec!["web_*"], vec![]),
            (json!(["web_*_x"]), vec!["web_*_x"], vec![]),
            (json!(["*"]), vec![], vec!["*"]),
            (json!(["web*"]), vec![], vec!["web*"]),
            (json!(["*web_"]), vec![], vec!["*web_"]),
            (json!(["read_*"]), vec![], vec!["read_*"]),
            (
                json!(["read_file", "write_file"]),
                vec!["read_file"],
                vec!["write_file"],
            ),
        ] {
            let found = extended(&json!({ "toolAllowlist": asked })).unwrap();
            assert_eq!(found.definition.tool_allowlist, lists(&kept), "{asked}");
            let outside: Vec<_> = found.wider.iter().map(|it| it.pattern.as_str()).collect();
            assert_eq!(outside, left_out, "{asked}");
        }
        let agents = extended(&json!({ "agentAllowlist": ["*"] })).unwrap();
        assert_eq!(agents.definition.agent_allowlist, lists(&[]));
    }

    #[test]
    fn what_only_a_pattern_for_it_offers_needs_one_in_the_base() {
        let all = json!(["*"]);
        for (list, base, asked, left_out) in [
            ("toolAllowlist", &all, "memory_*", true),
            ("toolAllowlist", &all, "memory_save", true),
            ("toolAllowlist", &all, "panels_list", true),
            ("toolAllowlist", &all, "read_file", false),
            ("toolAllowlist", &json!(null), "panels_*", true),
            ("toolAllowlist", &json!(null), "*", false),
            ("toolAllowlist", &json!(["memory_s*"]), "memory_save", false),
            ("toolAllowlist", &json!(["memory_save"]), "memory_*", true),
            ("capabilityAllowlist", &all, "triggers.write", true),
            ("capabilityAllowlist", &json!(null), "triggers.*", true),
            (
                "capabilityAllowlist",
                &json!(["triggers.*"]),
                "triggers.write",
                false,
            ),
        ] {
            let base = json!({ "agentId": "base", "displayName": "Base", list: base });
            let base: Definition = serde_json::from_value(base).unwrap();
            let own = json!({ "agentId": "own", "displayName": "Own", list: [asked] });
            let found = base.extended(own.as_object().unwrap()).unwrap();
            assert_eq!(found.wider.len(), usize::from(left_out), "{list} {asked}");
        }
    }

    #[test]
    fn denials_and_questions_of_the_base_stay() {
        let found = extended(&json!({
            "toolDenylist": ["web_get"], "confirm": "destructive", "agentDenylist": ["x"],
            "fixedSettings": [],
        }))
        .unwrap()
        .definition;
        assert_eq!(found.tool_denylist, lists(&["web_post", "web_get"]));
        assert_eq!(found.agent_denylist, lists(&["x"]));
        assert!(found.confirm.destructive && found.confirm.tools.matches("read_file"));
        assert_eq!(found.fixed_settings, ["b"]);
    }

    #[test]
    fn what_the_base_fixes_is_not_set() {
        let unfit = extended(&json!({ "settings": { "b": 3 } })).unwrap_err();
        assert_eq!(unfit.key, "settings.b");
        assert!(unfit.message.contains("fixedSettings"), "{unfit}");
        assert!(extended(&json!({ "settings": { "b": 2 } })).is_ok());
        assert!(extended(&json!({ "toolAllowlist": 7 })).is_err());
        assert!(extended(&json!({ "toolAllowList": [] })).is_err());
    }

    #[test]
    fn the_operator_says_that_lists_take_the_place_of_those_of_the_base() {
        let found = extended(&json!({
            "widens": true, "toolAllowlist": ["*"], "toolDenylist": [], "settings": { "b": 3 },
        }))
        .unwrap();
        assert_eq!(found.wider, []);
        assert_eq!(found.definition.tool_allowlist, lists(&["*"]));
        assert_eq!(found.definition.tool_denylist, lists(&[]));
        assert_eq!(found.definition.agent_allowlist, lists(&[]));
    }
}
